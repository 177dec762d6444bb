//===- Workbench.cpp - one program, open for work -------------------------===//
#include "optiml/Driver/Workbench.h"
#include "Diagnosis.h"
#include "GuardedCompile.h"
#include "SearchRun.h"
#include "SourceRecipes.h"
#include "optiml/Emit/Emit.h"
#include "optiml/Evaluate/Predict/Compile.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Frontend/ProgramTextCheck.h"
#include "optiml/Propose/KernelWriter.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Processors.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <thread>

using namespace optiml;

static constexpr double leastGain = 1.02;
// A run of a changed program, which may hang.
static constexpr double mostRunSeconds = 20;

struct Workbench::Impl {
  Toolchain toolchain;
  OwnFlags flags;
  std::vector<std::string> arguments;
  CompileOptions options;
  Deadline deadline;
  TempDir scratch;
  OriginalBuilds originals;
  std::unique_ptr<Program> device, host;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<SearchTask> task;
  std::unique_ptr<KernelSpace> space;
  std::shared_ptr<KernelTexts> texts = std::make_shared<KernelTexts>();
  Evaluator *evaluator = nullptr;
  std::unique_ptr<TextCompiler> compiler; ///< for compile(); null until it is needed
  SearchState root;
  Measurement baseline;
  std::mutex concluding;

  Impl(const Toolchain &toolchain, const std::atomic<bool> *cancel, TempDir scratch, OriginalBuilds originals)
      : toolchain(toolchain), deadline(0, cancel), scratch(std::move(scratch)), originals(std::move(originals)) {}
  llvm::Error read(const WorkbenchRequest &request);
  llvm::Error observe(const std::function<void(const std::string &)> &stage);
  llvm::Expected<EmittedProgram> emit(const Variant &variant, double gain);
};

Workbench::Workbench() = default;
Workbench::~Workbench() = default;
const char *Workbench::version() { return searchVersion; }

llvm::Error Workbench::Impl::read(const WorkbenchRequest &request) {
  flags.backend = request.backend;
  flags.kernel = request.kernel;
  flags.store = "none";
  flags.strict = true;
  flags.budget = {0, request.seconds};
  flags.args = request.programArguments;
  std::string problem;
  if (!splitCommandLine(flags.args, flags.programArgs, problem))
    return makeError("the program's arguments: {0}", problem);
  arguments = request.nvccFlags;
  arguments.push_back(request.path);
  options = CompileOptions::parse(arguments);
  if (!options.tooHard.empty())
    return makeError("{0}", options.tooHard);
  if (options.inputs.size() != 1)
    return makeError("the flags name another source");
  auto text = readFile(request.path);
  if (!text)
    return text.takeError();
  auto parsed =
      Program::parseWithLaunches(absolutePath(request.path), request.path, *text, options, toolchain, View::Device);
  if (!parsed)
    return parsed.takeError();
  device = std::move(*parsed);
  if (device->kernels().empty())
    return makeError("{0}: there is no kernel in this file", request.path);
  return llvm::Error::success();
}

llvm::Error Workbench::Impl::observe(const std::function<void(const std::string &)> &stage) {
  task.reset(new SearchTask{flags, toolchain, options, arguments, device->path(), device->text(), scratch.path(),
                            &deadline, &originals, device.get()});
  task->testsTexts = true;
  stage("running the program");
  if (llvm::Error e = backend->observe(*task))
    return e;
  stage("evaluating the original");
  auto made = createSearchSpace(*task, *device, backend->performance());
  if (!made)
    return made.takeError();
  space = std::move(*made);
  if (llvm::Error e = backend->evaluator(*task).moveInto(evaluator))
    return e;
  acceptKernelTexts(*space, texts, *task, *device, *backend);
  if (llvm::Error e = space->root().moveInto(root))
    return e;
  baseline = evaluator->evaluate(*root.variant, Fidelity::Verified);
  return baseline.correct() ? llvm::Error::success() : makeError("the original cannot be evaluated: {0}", baseline.why);
}

llvm::Expected<std::unique_ptr<Workbench>> Workbench::open(const WorkbenchRequest &request, const Toolchain &toolchain,
                                                           const std::atomic<bool> *cancel,
                                                           const std::function<void(const std::string &)> &stage) {
  auto scratch = TempDir::create("optiml-workbench");
  if (!scratch)
    return scratch.takeError();
  auto originals = OriginalBuilds::create();
  if (!originals)
    return originals.takeError();
  std::unique_ptr<Workbench> bench(new Workbench);
  bench->impl = std::make_unique<Impl>(toolchain, cancel, std::move(*scratch), std::move(*originals));
  Impl &impl = *bench->impl;
  stage("reading the source");
  if (llvm::Error e = impl.read(request))
    return std::move(e);
  auto chosen = chooseBackend(request.backend, toolchain, impl.options, &impl.arguments, cancel);
  if (!chosen)
    return chosen.takeError();
  impl.backend = std::move(chosen->backend);
  if (llvm::Error e = impl.observe(stage)) {
    if (!impl.backend->measures() || request.backend == BackendChoice::Gpu || *impl.deadline.flag())
      return std::move(e);
    stage("the GPU cannot be used for it (" + llvm::toString(std::move(e)) + "), trying the emulator");
    impl.evaluator = nullptr;
    impl.backend = makeCpuBackend(impl.options.arch);
    if (llvm::Error again = impl.observe(stage))
      return std::move(again);
  }
  return bench;
}

bool Workbench::measures() const { return impl->backend->measures(); }
const Measurement &Workbench::baseline() const { return impl->baseline; }
const std::string &Workbench::source() const { return impl->device->text(); }

nlohmann::json Workbench::about() const {
  const SearchFacts facts = searchFacts(*impl->task, *impl->device, *impl->space, *impl->backend);
  nlohmann::json about = {{"gpu", facts.gpu},
                          {"rules", facts.rules},
                          {"times", facts.measured ? "measured" : "predicted by a model on the CPU"},
                          {"otherSizes", impl->backend->otherSizes()},
                          {"notes", impl->backend->notes()},
                          {"kernels", nlohmann::json::array()},
                          {"leftAsTheyAre", nlohmann::json::array()}};
  for (const KernelFacts &kernel : facts.kernels) {
    nlohmann::json one = {
        {"name", kernel.name},         {"twin", kernel.twin},     {"parameters", kernel.parameters},
        {"launches", kernel.launches}, {"source", kernel.source}, {"rulesForNewText", kernelTextRules(kernel, false)}};
    if (const KernelState *state = impl->space->kernel(kernel.name))
      if (auto use = impl->backend->timeOf(state->rewrite.originalSymbol))
        one["shareOfTime"] = use->share;
    about["kernels"].push_back(one);
  }
  for (const KernelSpace::Skipped &skipped : impl->space->skipped())
    about["leftAsTheyAre"].push_back({{"kernel", skipped.kernel}, {"why", skipped.reason}});
  return about;
}

nlohmann::json Workbench::diagnosis() {
  nlohmann::json all = diagnosisOf(*impl->space, *impl->device, &impl->baseline);
  all["gpu"] = impl->backend->gpuName();
  const nlohmann::json known = about();
  for (nlohmann::json &kernel : all["kernels"])
    for (const nlohmann::json &same : known["kernels"])
      if (same["name"] == kernel["name"]) {
        kernel["launches"] = same["launches"];
        if (same.contains("shareOfTime"))
          kernel["share"] = same["shareOfTime"];
      }
  return all;
}

llvm::Expected<SearchState> Workbench::apply(const Recipe &recipe) { return impl->space->applyAll(recipe); }

static llvm::Expected<std::string> disassembled(const std::string &cubin, const Toolchain &toolchain,
                                                const std::atomic<bool> *cancel) {
  std::string program = (llvm::sys::path::parent_path(toolchain.nvcc) + "/nvdisasm").str();
  if (!llvm::sys::fs::can_execute(program) && (program = findOnPath("nvdisasm")).empty())
    return makeError("nvdisasm is not installed here, which shows machine code; it is part of the CUDA Toolkit");
  ProcessOptions options;
  options.limits.seconds = 60;
  options.cancel = cancel;
  auto shown = runProcess({program, "-c", cubin}, options);
  if (!shown)
    return shown.takeError();
  return shown->ok() ? llvm::Expected<std::string>(std::move(shown->out))
                     : makeError("nvdisasm: {0}", shown->describe());
}

llvm::Expected<Workbench::Code> Workbench::compile(const Variant &variant, const std::string &kind) {
  std::lock_guard lock(impl->concluding);
  if (!impl->compiler)
    if (llvm::Error e =
            TextCompiler::create(impl->toolchain, impl->device->path(), impl->options, impl->deadline.flag())
                .moveInto(impl->compiler))
      return std::move(e);
  Verdict verdict;
  auto compiled = impl->compiler->compile(variant, verdict);
  if (!compiled)
    return compiled.takeError();
  Code code;
  code.kernels = nlohmann::json::array();
  for (const auto &[symbol, resources] : (*compiled)->ptxas)
    code.kernels.push_back({{"kernel", llvm::demangle(symbol)},
                            {"registers", resources.registers},
                            {"staticSharedBytes", resources.staticShared},
                            {"spilledBytes", resources.spillStores + resources.spillLoads}});
  if (kind == "ptx" || kind == "sass") {
    auto text = kind == "ptx" ? impl->compiler->ptx(**compiled)
                              : disassembled((*compiled)->cubin, impl->toolchain, impl->deadline.flag());
    if (!text)
      return text.takeError();
    code.text = std::move(*text);
  }
  return code;
}

Measurement Workbench::evaluate(const Variant &variant) {
  return impl->evaluator->evaluate(variant, Fidelity::Verified);
}

std::vector<std::string> Workbench::textsThatDidNotRun(const Variant &variant, const Measurement &m) const {
  const std::vector<LaunchImage> &launches = impl->backend->performance().launches;
  const std::vector<double> &now = m.time.perLaunch, &before = impl->baseline.time.perLaunch;
  std::vector<std::string> names;
  for (const KernelRewrite &rewrite : variant.rewrites) {
    bool ran = !rewrite.testedOnly;
    for (size_t i = 0; i < std::min({launches.size(), now.size(), before.size()}); ++i)
      ran |= launches[i].kernel == rewrite.originalSymbol && now[i] != before[i]; // else it is the original's own time
    if (!ran)
      names.push_back(rewrite.original);
  }
  return names;
}

Measurement Workbench::examine(const Variant &variant) { return impl->backend->examine(variant); }

std::string Workbench::addText(KernelText text) { return impl->texts->add(std::move(text)); }

nlohmann::json Workbench::textsOf(const Recipe &recipe) const { return optiml::textsOf(recipe, *impl->texts); }

llvm::Expected<SearchResult> Workbench::tune(const Recipe &from, const TuneLimits &limits, SearchObserver *observer) {
  SearchSettings settings;
  settings.evaluations = limits.evaluations;
  settings.seconds = limits.seconds;
  settings.jobs = availableProcessors();
  settings.simplerWithin = 1.02;
  impl->backend->configure(settings);
  settings.margin = 1; // conclude() decides
  settings.cancel = limits.cancel;
  if (!from.empty()) {
    settings.first = {from};
    settings.openingBook = false;
  }
  ProposerChain proposers;
  return runSearch(*impl->space, proposers.first(), *impl->evaluator, settings, nullptr, observer);
}

llvm::Expected<Workbench::ProgramAnswer>
Workbench::compareProgram(const std::string &changed, double seconds, const std::atomic<bool> *cancel,
                          const std::function<void(const std::string &)> &stage) {
  const SearchTask &task = *impl->task;
  if (llvm::Error e = checkChangedProgram(changed, task.text))
    return std::move(e);
  stage("compiling");
  const GuardedCompile guarded{impl->toolchain.libDir + "/../bin/optiml-search", task.path, task.arguments, cancel};
  if (llvm::Error e = guarded(changed))
    return std::move(e);
  stage("comparing the programs");
  std::lock_guard lock(impl->concluding);
  CompareOptions compare;
  compare.verify = verifyOptions(task);
  compare.verify.cancel = cancel;
  compare.arguments = impl->flags.programArgs;
  compare.seconds = mostRunSeconds;
  compare.coverageSeconds = seconds;
  compare.sandboxed = true;
  ProgramAnswer answer;
  if (llvm::Error e = comparePrograms(impl->originals, impl->toolchain, impl->options.inputs.front(), changed,
                                      impl->options, compare)
                          .moveInto(answer.report))
    return std::move(e);
  if (!answer.report.correct() || measures())
    return answer;
  stage("predicting its time");
  if (auto times = impl->backend->timeProgram(task, changed, /*executable=*/"")) {
    answer.before = times->before;
    answer.after = times->after;
  } else {
    answer.report.notes.push_back("its time is not predicted: " + llvm::toString(times.takeError()));
  }
  return answer;
}

llvm::Expected<EmittedProgram> Workbench::Impl::emit(const Variant &variant, double gain) {
  if (!host)
    if (llvm::Error e = Program::parse(device->path(), task->text, options, toolchain, View::Host).moveInto(host))
      return std::move(e);
  return emitProgram(limitedToLaunches(variant, backend->performance(), flags.threads), *host, options.inputs.front(),
                     gainTexts(variant, gain, *backend));
}

llvm::Expected<Workbench::Outcome> Workbench::conclude(const Recipe &recipe) {
  auto state = apply(recipe);
  if (!state)
    return state.takeError();
  std::lock_guard lock(impl->concluding);
  const Measurement measured = evaluate(*state->variant);
  if (!measured.correct())
    return makeError("{0}: {1}", verdictName(measured.verdict), measured.why);
  SearchResult result;
  result.baseline = {impl->root.variant, {}, impl->root.key, impl->baseline};
  result.best = {state->variant, recipe, state->key, measured};
  result.top = {result.best};
  result.improved = measured.guardrails.empty() && result.best.speedup() >= leastGain;
  if (!result.improved)
    return makeError("it is {0:f2} times as fast as the original{1}", result.best.speedup(),
                     measured.guardrails.empty() ? "" : "; " + measured.guardrails.front());
  nlohmann::json settled = nlohmann::json::object();
  impl->backend->settle(*impl->task, result, settled);
  if (!result.improved)
    return makeError("{0}", result.notes.empty() ? "it does not stand a closer look" : result.notes.back());
  Outcome outcome;
  outcome.summary = summaryOf(result, *impl->backend);
  outcome.summary.update(settled);
  auto emitted = impl->emit(*result.best.variant, result.best.speedup());
  if (!emitted)
    return emitted.takeError();
  if (!emitted->dispatched && !emitted->entries)
    return makeError("no launch can be redirected to it{0}",
                     emitted->remarks.empty() ? "" : ": " + emitted->remarks.front());
  if (llvm::Error e = impl->backend->checkProgram(*impl->task, emitted->text, "", outcome.summary))
    return std::move(e);
  outcome.text = withoutLineMarks(emitted->text);
  return outcome;
}
