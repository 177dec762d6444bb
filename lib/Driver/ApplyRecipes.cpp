//===- ApplyRecipes.cpp - saved recipes, written and applied --------------===//
#include "ApplyRecipes.h"
#include "FinalCompile.h"
#include "RecipeFile.h"
#include "SearchRun.h"
#include "optiml/Emit/Emit.h"
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

std::string optiml::deviceFlags(const CompileOptions &options) {
  static constexpr llvm::StringRef names[] = {"use_fast_math", "ftz", "prec-div", "prec-sqrt", "fmad", "maxrregcount"};
  std::vector<std::string> found;
  for (const std::string &flag : cubinFlags(options.nvccArgs)) {
    llvm::StringRef name = llvm::StringRef(flag).ltrim('-').split('=').first;
    if (llvm::is_contained(names, name))
      found.push_back(llvm::StringRef(flag).ltrim('-').str());
  }
  llvm::sort(found);
  return llvm::join(found, " ");
}

Variant optiml::limitedTo(Variant variant, const std::map<std::string, uint64_t> &leastThreads) {
  for (KernelRewrite &rewrite : variant.rewrites)
    if (auto least = leastThreads.find(rewrite.originalSymbol); least != leastThreads.end() && least->second >= 2)
      rewrite.conditions.insert(rewrite.conditions.begin(),
                                {IntExpr::of("grid.x * grid.y * grid.z * block.x * block.y * block.z >= " +
                                             std::to_string(least->second / 2)),
                                 "smaller launches were not looked at"});
  return variant;
}

/// The kernels of these records, with the launches that they were searched on.
static llvm::Expected<std::unique_ptr<KernelSpace>> spaceOf(const Program &device, const CompileOptions &options,
                                                            const FloatRule &floats,
                                                            llvm::ArrayRef<const KernelRecipe *> records) {
  std::map<std::string, LaunchHints> hints;
  for (const KernelRecipe *r : records)
    setRules(hints[r->symbol] = r->hints, floats, options);
  return KernelSpace::create(
      device, [&](const KernelDecl &decl) { return hints.count(decl.symbol); },
      [&](const KernelDecl &decl) { return hints.at(decl.symbol); });
}

/// Some of these kernels, rewritten as the records say. The error tells why one cannot be read, or names the first
/// action that does not apply.
static llvm::Expected<std::shared_ptr<const Variant>> replay(KernelSpace &space,
                                                             llvm::ArrayRef<const KernelRecipe *> records) {
  Recipe all;
  for (const KernelRecipe *r : records) {
    for (const KernelSpace::Skipped &skipped : space.skipped())
      if (skipped.kernel == r->kernel)
        return makeError("{0}", skipped.reason);
    llvm::append_range(all, r->recipe);
  }
  auto state = space.applyAll(all);
  if (!state)
    return state.takeError();
  return state->variant;
}

/// Without what it makes of the kernel.
static KernelRecipe recordOf(const KernelRewrite &rewrite, const SearchTask &task, const Backend &backend,
                             const Recipe &recipe, LaunchHints hints) {
  KernelRecipe r;
  r.symbol = rewrite.originalSymbol;
  r.kernel = rewrite.original;
  r.arch = task.options.arch;
  r.fp = task.flags.fp.str();
  llvm::copy_if(recipe, std::back_inserter(r.recipe),
                [&](const Action &action) { return siteKernel(action.site) == rewrite.original; });
  r.hints = std::move(hints);
  r.hints.buffers.clear(); // addresses differ from run to run
  for (size_t i = 0; i < std::min(r.hints.heaviest.size(), rewrite.originalParameters.size()); ++i)
    if (rewrite.originalParameters[i].kind == Parameter::Kind::Pointer)
      r.hints.heaviest[i].clear();
  r.flags = deviceFlags(task.options);
  r.gpu = backend.gpuName();
  r.isMeasured = backend.measures();
  r.version = searchVersion;
  return r;
}

llvm::Error optiml::saveRecipes(const SearchTask &task, const Program &device, const Backend &backend,
                                const SearchResult &result, const std::map<std::string, uint64_t> &leastThreads,
                                const nlohmann::json &summary) {
  auto file = RecipeFile::read(task.flags.saveRecipes);
  if (!file)
    return file.takeError();
  std::map<std::string, LaunchHints> hints = launchHints(task, backend.performance());
  llvm::Error failures = llvm::Error::success();
  auto leaveOut = [&](const std::string &kernel, const std::string &why) {
    failures = llvm::joinErrors(std::move(failures), makeError("{0}: {1}", kernel, why));
  };
  std::vector<std::pair<KernelRecipe, const KernelRewrite *>> records;
  for (const KernelRewrite &rewrite : result.best.variant->rewrites) {
    if (rewrite.testedOnly) {
      leaveOut(rewrite.original, "a language model wrote it, and recipes hold no text");
      continue;
    }
    KernelRecipe r = recordOf(rewrite, task, backend, result.best.recipe, hints[rewrite.originalSymbol]);
    r.file = file->nameOf(task.path);
    r.speedup = summary.value("speedup", result.best.speedup());
    if (auto least = leastThreads.find(r.symbol); least != leastThreads.end())
      r.leastThreads = least->second;
    records.emplace_back(std::move(r), &rewrite);
  }
  std::vector<const KernelRecipe *> all;
  for (const auto &[r, rewrite] : records)
    all.push_back(&r);
  auto space = spaceOf(device, task.options, task.flags.fp, all);
  if (!space)
    return llvm::joinErrors(std::move(failures), space.takeError());
  for (auto &[r, rewrite] : records) {
    auto again = replay(**space, &r);
    if (!again) {
      leaveOut(r.kernel, llvm::toString(again.takeError()));
      continue;
    }
    if ((*again)->rewrites.size() != 1 || (*again)->rewrites[0].twinText != rewrite->twinText) {
      leaveOut(r.kernel, "its recipe rests on more than a record holds");
      continue;
    }
    r.outcome = (*again)->key();
    file->add(r);
  }
  return llvm::joinErrors(std::move(failures), file->write());
}

namespace {

class Application {
public:
  Application(const OwnFlags &flags, const std::vector<std::string> &arguments, const Toolchain &toolchain)
      : flags(flags), arguments(arguments), toolchain(toolchain), options(CompileOptions::parse(arguments)) {}
  int run();

private:
  /// The records of this source for its GPU and mode whose kernels are still there and compiled alike.
  std::vector<const KernelRecipe *> wanted(const RecipeFile &file, const Program &device);
  /// Those of them that still make what they made. What does not is told.
  std::vector<const KernelRecipe *> applicable(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records);
  llvm::Expected<EmittedProgram> emit(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records,
                                      const std::string &source) const;
  void stale(const KernelRecipe &r, const std::string &why);

  const OwnFlags &flags;
  const std::vector<std::string> &arguments;
  const Toolchain &toolchain;
  const CompileOptions options;
  std::string text;
  bool isStale = false;
};

} // namespace

void Application::stale(const KernelRecipe &r, const std::string &why) {
  isStale = true;
  llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning") << ": " << options.inputs.front()
               << ": kernel " << r.kernel << " is compiled as it is: " << why << "\n";
}

std::vector<const KernelRecipe *> Application::wanted(const RecipeFile &file, const Program &device) {
  std::vector<const KernelRecipe *> result;
  const std::string now = deviceFlags(options);
  for (const KernelRecipe *r : file.of(device.path())) {
    if (r->arch != options.arch || r->fp != flags.fp.str())
      continue; // of another GPU, or another mode
    if (!device.findKernel(r->symbol))
      stale(*r, "it is no longer in this file");
    else if (r->flags != now)
      stale(*r, llvm::formatv("its recipe was found with the flags '{0}', and they are '{1}' now", r->flags, now));
    else
      result.push_back(r);
  }
  return result;
}

std::vector<const KernelRecipe *> Application::applicable(KernelSpace &space,
                                                          llvm::ArrayRef<const KernelRecipe *> records) {
  std::vector<const KernelRecipe *> result;
  for (const KernelRecipe *r : records) {
    auto variant = replay(space, r);
    if (!variant)
      stale(*r, "its recipe no longer applies: " + llvm::toString(variant.takeError()));
    else if ((*variant)->key() != r->outcome)
      stale(*r, "it has changed since its recipe was found");
    else
      result.push_back(r);
  }
  return result;
}

llvm::Expected<EmittedProgram> Application::emit(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records,
                                                 const std::string &source) const {
  auto variant = replay(space, records);
  if (!variant)
    return variant.takeError();
  auto host = Program::parse(source, text, options, toolchain, View::Host);
  if (!host)
    return host.takeError();
  std::map<std::string, uint64_t> least;
  std::map<std::string, std::string> summaries;
  for (const KernelRecipe *r : records) {
    least[r->symbol] = r->leastThreads;
    summaries[r->kernel] = gainText(r->speedup, r->isMeasured, r->gpu);
  }
  return emitProgram(limitedTo(**variant, least), **host, options.inputs.front(), summaries, {});
}

int Application::run() {
  auto warn = [&](llvm::Error why) {
    llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning")
                 << ": no recipe is applied: " << llvm::toString(std::move(why)) << "\n";
    return flags.strictRecipes ? 1 : compileAsGiven(toolchain, arguments);
  };
  if (!llvm::sys::fs::exists(flags.recipes))
    return warn(makeError("there is no file '{0}'", flags.recipes));
  auto file = RecipeFile::read(flags.recipes);
  if (!file)
    return warn(file.takeError());
  if (!options.tooHard.empty() || options.inputs.size() != 1 || file->of(options.inputs.front()).empty())
    return compileAsGiven(toolchain, arguments);
  const std::string &path = options.inputs.front();
  if (llvm::Error e = readFile(path).moveInto(text)) {
    llvm::consumeError(std::move(e));
    return compileAsGiven(toolchain, arguments); // nvcc says what is wrong
  }
  auto device = Program::parse(absolutePath(path), text, options, toolchain, View::Device);
  if (!device)
    return warn(device.takeError());
  std::vector<const KernelRecipe *> records = wanted(*file, **device);
  auto space = spaceOf(**device, options, flags.fp, records);
  if (!space)
    return warn(space.takeError());
  records = applicable(**space, records);
  if (isStale && flags.strictRecipes)
    return 1;
  if (records.empty())
    return compileAsGiven(toolchain, arguments);
  auto emitted = emit(**space, records, (*device)->path());
  if (!emitted)
    return warn(emitted.takeError());
  for (const std::string &remark : emitted->remarks)
    llvm::errs() << remark << "\n";
  if (!flags.emit.empty())
    if (llvm::Error e = writeFileAtomically(flags.emit, withoutLineDirectives(emitted->text)))
      return warn(std::move(e));
  auto code = compileReplaced(toolchain, arguments, path, emitted->text, nullptr, nullptr, flags.recipes);
  if (code && *code == 0)
    return 0;
  return warn(code ? makeError("nvcc did not accept the rewritten program") : code.takeError());
}

int optiml::applyRecipes(const OwnFlags &flags, const std::vector<std::string> &arguments, const Toolchain &toolchain) {
  return Application(flags, arguments, toolchain).run();
}
