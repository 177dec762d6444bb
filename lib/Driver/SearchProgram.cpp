//===- SearchProgram.cpp - optiml-clang -O-search -------------------------===//
//
// Understands the command line, chooses a backend, parses, looks the search up in the store or makes it
// (ProgramSearch.h), and compiles. Whatever goes wrong on the way, the file is compiled as nvcc would and one warning
// says why (an error with
// --optiml-strict).
//
//===----------------------------------------------------------------------===//
#include "ApplyRecipes.h"
#include "Diagnosis.h"
#include "FinalCompile.h"
#include "GuardedCompile.h"
#include "ProgramSearch.h"
#include "SearchReports.h"
#include "optiml/Driver/Models.h"
#include "optiml/Driver/Programs.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Interrupt.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

namespace {

// Where variants are measured: the final race, the sanitizer and the whole program's runs have a reserve within the
// budget. What takes longer than that is cut so much later, as a gain would be lost with it.
double settleSeconds(double budget) { return std::clamp(0.5 * budget, 15.0, 90.0); }

class Session {
public:
  Session(OwnFlags flags, std::vector<std::string> arguments, Toolchain toolchain)
      : flags(std::move(flags)), arguments(std::move(arguments)), toolchain(std::move(toolchain)),
        budget(this->flags.budget.seconds, &interrupted()),
        settled(this->flags.budget.seconds > 0 ? this->flags.budget.seconds + settleSeconds(this->flags.budget.seconds)
                                               : 0,
                &interrupted()) {}
  int run();

private:
  llvm::Expected<SearchOutcome> search();
  std::unique_ptr<Store> openStore() const;
  llvm::Error chooseBackend();
  llvm::Error openModels();
  int fallBack(const std::string &why);
  int finish(const SearchOutcome &outcome);
  int dryRun() const;

  OwnFlags flags;
  std::vector<std::string> arguments;
  Toolchain toolchain;
  CompileOptions options;
  std::unique_ptr<ModelSession> models; ///< null: none could be opened
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  const Deadline budget;            ///< of the search
  const Deadline settled;           ///< of what follows it where variants are measured
  std::unique_ptr<Backend> backend; ///< what it runs looks at these
  std::string path, text;
  std::optional<TempDir> scratch; ///< while there is something to tell of the search
  bool fromStore = false;
};

int Session::fallBack(const std::string &why) {
  llvm::StringRef reason = llvm::StringRef(why).trim();
  if (flags.strict) {
    llvm::errs() << "optiml-clang: error: " << reason << "\n";
    return 1;
  }
  llvm::errs() << "optiml-clang: warning: no search, compiled as nvcc would: " << reason << "\n";
  return compileAsGiven(toolchain, arguments);
}

llvm::Error Session::openModels() {
  auto opened =
      optiml::openModels(flags, "optiml-clang", options.inputs.empty() ? "" : options.inputs[0], budget.flag());
  if (!opened)
    return opened.takeError();
  models = std::move(*opened);
  return llvm::Error::success();
}

int Session::run() {
  options = CompileOptions::parse(arguments);
  if (llvm::Error e = openModels()) {
    std::string why = llvm::toString(std::move(e));
    if (flags.strict)
      return fallBack(why);
    llvm::errs() << "optiml-clang: warning: no language model is asked: " << why << "\n";
  }
  if (!options.tooHard.empty())
    return fallBack(options.tooHard);
  if (options.deviceDebug)
    return fallBack("-G asks for device code to debug");
  if (options.inputs.size() != 1)
    return fallBack(options.inputs.empty()
                        ? "there is no CUDA source on the command line"
                        : "there are several CUDA sources on the command line; search them one by one");
  if (flags.dryRun)
    return dryRun();
  if (llvm::Error e = chooseBackend())
    return fallBack(llvm::toString(std::move(e)));
  auto outcome = search();
  if (!outcome && backend->measures() && flags.backend == BackendChoice::Auto && !interrupted()) {
    llvm::errs() << "optiml-clang: warning: no search on the GPU, trying the CPU emulator: "
                 << llvm::toString(outcome.takeError()) << "\n";
    backend = makeCpuBackend(options.arch);
    outcome = search();
  }
  if (!outcome) {
    std::string why = llvm::toString(outcome.takeError());
    bool late = !interrupted() && flags.budget.seconds > 0 && budget.passed();
    return fallBack(late ? llvm::formatv("the {0:f0} s of -O-search were over before the search could begin: {1}",
                                         flags.budget.seconds, why)
                               .str()
                         : why);
  }
  return finish(*outcome);
}

/// Takes a GPU where there is one, unless told otherwise, and says so.
llvm::Error Session::chooseBackend() {
  auto chosen = optiml::chooseBackend(flags.backend, toolchain, options, flags.workloads.empty() ? &arguments : nullptr,
                                      &interrupted());
  if (!chosen)
    return makeError("--optiml-backend=gpu: {0}", llvm::toString(chosen.takeError()));
  backend = std::move(chosen->backend);
  if (backend->measures()) {
    llvm::errs() << "optiml-clang: variants are measured on " << backend->gpuName();
    if (backend->gpuCount() > 1)
      llvm::errs() << ", " << backend->gpuCount() << " of them";
    llvm::errs() << "\n";
    return llvm::Error::success();
  }
  llvm::errs() << "optiml-clang: variants are predicted for " << backend->gpuName() << " on the CPU emulator ("
               << chosen->why << ")\n";
  return llvm::Error::success();
}

int Session::dryRun() const {
  auto text = readFile(options.inputs[0]);
  auto device = text ? Program::parseWithLaunches(absolutePath(options.inputs[0]), options.inputs[0], *text, options,
                                                  toolchain, View::Device)
                     : llvm::Expected<std::unique_ptr<Program>>(text.takeError());
  auto space =
      device ? spaceFromText(**device, flags.kernel) : llvm::Expected<std::unique_ptr<KernelSpace>>(device.takeError());
  if (!space) {
    llvm::errs() << "optiml-clang: error: " << llvm::toString(space.takeError()) << "\n";
    return 1;
  }
  llvm::outs() << options.inputs[0] << ": would be searched by " << flags.strategy;
  if (flags.budget.evaluations)
    llvm::outs() << ", at most " << flags.budget.evaluations << " evaluations";
  if (flags.budget.seconds > 0)
    llvm::outs() << llvm::formatv(", at most {0:f0} s", flags.budget.seconds);
  llvm::outs() << "\n" << sitesText(**space, **device);
  return 0;
}

std::unique_ptr<Store> Session::openStore() const {
  if (flags.store == "none")
    return nullptr;
  auto opened = Store::open(storeFolderOf(flags) + "/store.db");
  if (opened) {
    if (!(*opened)->note().empty())
      llvm::errs() << "optiml-clang: remark: the store '" << (*opened)->path() << "': " << (*opened)->note() << "\n";
    return std::move(*opened);
  }
  llvm::errs() << "optiml-clang: warning: the search goes on without a store: " << llvm::toString(opened.takeError())
               << "\n";
  return nullptr;
}

llvm::Expected<SearchOutcome> Session::search() {
  path = options.inputs[0];
  auto content = readFile(path);
  if (!content)
    return content.takeError();
  text = std::move(*content);
  auto device = Program::parseWithLaunches(absolutePath(path), path, text, options, toolchain, View::Device);
  if (!device)
    return device.takeError();
  for (const std::string &wrong : (*device)->wrongDirectives())
    llvm::errs() << wrong << "\n";
  if ((*device)->kernels().empty())
    return makeError("{0}: there is no kernel in this file", path);
  SearchKey key = searchKeyOf(flags, options, **device, *backend, models.get());
  std::unique_ptr<Store> store = openStore();
  if (store) {
    auto known = store->findSearch(key.search);
    if (!known)
      llvm::consumeError(known.takeError());
    else if (*known && (flags.saveRecipes.empty() || (*known)->emittedText.empty())) { // recipes need the launches
      fromStore = true;
      return SearchOutcome{
          !(*known)->emittedText.empty(), (*known)->emittedText, "", (*known)->summary, (*known)->recipe, false};
    }
  }
  removeAbandonedTempDirs();
  auto folder = TempDir::create("optiml-search");
  if (!folder)
    return folder.takeError();
  scratch.emplace(std::move(*folder));
  auto originals = OriginalBuilds::create();
  if (!originals)
    return originals.takeError();
  SearchTask task{flags,
                  toolchain,
                  options,
                  arguments,
                  (*device)->path(),
                  (*device)->text(),
                  scratch->path(),
                  backend->measures() ? &settled : &budget,
                  &*originals,
                  device->get(),
                  began};
  task.mayPause = true;
  Progress progress(2, {flags.budget.evaluations, flags.budget.seconds, began});
  return ProgramSearch(std::move(task), *backend, **device, std::move(key),
                       {store.get(), models.get(), progress, interrupted()}, {flags.budget.evaluations, budget})
      .run();
}

int Session::finish(const SearchOutcome &outcome) {
  if (!flags.emit.empty())
    if (llvm::Error e = writeFileAtomically(flags.emit, outcome.improved ? withoutLineMarks(outcome.emitted) : text)) {
      llvm::errs() << "optiml-clang: error: --optiml-emit: " << llvm::toString(std::move(e)) << "\n";
      return 1;
    }
  printSummary(outcome, flags, path, fromStore);
  if (flags.report.any())
    if (llvm::Error e = writeReports(flags.report, outcome.summary.value("trajectory", std::string()), path, text,
                                     outcome.improved ? withoutLineMarks(outcome.emitted) : text))
      llvm::errs() << "optiml-clang: warning: a report is missing: " << llvm::toString(std::move(e)) << "\n";
  if (!outcome.improved)
    return compileAsGiven(toolchain, arguments);
  if (!outcome.executable.empty()) {
    auto isPut = putProgram(arguments, outcome.executable);
    if (isPut && *isPut)
      return 0;
    if (!isPut)
      llvm::consumeError(isPut.takeError()); // nvcc says what is wrong there
  }
  auto code = compileReplaced(toolchain, arguments, {{path, outcome.emitted}});
  if (code && *code == 0)
    return 0;
  return fallBack(code ? "nvcc did not accept the rewritten program" : llvm::toString(code.takeError()));
}

} // namespace

int optiml::searchProgram(int argc, char **argv) {
  if (argc > 3 && llvm::StringRef(argv[1]) == guardedCompileFlag) {
    auto toolchain = Toolchain::find(argv[0]);
    return toolchain ? compileGuarded(*toolchain, std::vector<std::string>(argv + 2, argv + argc))
                     : (llvm::consumeError(toolchain.takeError()), 1);
  }
  OwnFlags flags;
  std::vector<std::string> rest;
  std::string error;
  if (!parseOwnFlags({argv + 1, argv + argc}, processEnvironment(), flags, rest, error)) {
    llvm::errs() << "optiml-clang: error: " << error << "\n";
    return 1;
  }
  std::vector<std::string> typed(argv, argv + argc);
  typed[0] = "optiml-clang";
  flags.command = shellQuote(typed);
  if (flags.isMemoryCommand())
    return runMemoryCommand(flags);
  auto toolchain = Toolchain::find(argv[0]);
  if (!toolchain) {
    llvm::errs() << "optiml-clang: error: " << llvm::toString(toolchain.takeError()) << "\n";
    return 1;
  }
  if (!flags.search && !flags.recipes.empty())
    return applyRecipes(flags, rest, *toolchain);
  return Session(std::move(flags), std::move(rest), std::move(*toolchain)).run();
}
