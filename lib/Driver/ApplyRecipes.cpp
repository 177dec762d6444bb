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

static LaunchHints hintsOf(const KernelRecipe &r, const CompileOptions &options) {
  LaunchHints hints = r.hints;
  FloatRule rule;
  std::string error;
  if (!FloatRule::parse(r.fp, rule, error))
    return hints;
  hints.strictFloat = rule.isStrict();
  hints.approximate = rule.isFast();
  hints.tensorFloat = rule.allowsTensorCores();
  hints.arch = options.leastArch;
  hints.multiprocessors = GpuSpec::forArch(r.arch).sms;
  return hints;
}

/// The kernels of these records, rewritten as they say. The error names the first action that does not apply.
static llvm::Expected<std::shared_ptr<const Variant>> replay(const Program &device, const CompileOptions &options,
                                                             llvm::ArrayRef<const KernelRecipe *> records) {
  auto of = [&](const KernelDecl &decl) -> const KernelRecipe * {
    auto found = llvm::find_if(records, [&](const KernelRecipe *r) { return r->symbol == decl.symbol; });
    return found == records.end() ? nullptr : *found;
  };
  auto space = KernelSpace::create(
      device, [&](const KernelDecl &decl) { return of(decl) != nullptr; },
      [&](const KernelDecl &decl) { return hintsOf(*of(decl), options); });
  if (!space)
    return space.takeError();
  if (!(*space)->skipped().empty())
    return makeError("{0}", (*space)->skipped().front().reason);
  Recipe all;
  for (const KernelRecipe *r : records)
    llvm::append_range(all, r->recipe);
  auto state = (*space)->applyAll(all);
  if (!state)
    return state.takeError();
  return state->variant;
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
  for (const KernelRewrite &rewrite : result.best.variant->rewrites) {
    KernelRecipe r;
    r.file = file->nameOf(task.path);
    r.symbol = rewrite.originalSymbol;
    r.kernel = rewrite.original;
    r.arch = task.options.arch;
    r.fp = task.flags.fp.str();
    llvm::copy_if(result.best.recipe, std::back_inserter(r.recipe),
                  [&](const Action &action) { return siteKernel(action.site) == rewrite.original; });
    r.hints = hints[rewrite.originalSymbol];
    r.hints.buffers.clear(); // addresses differ from run to run
    for (size_t i = 0; i < std::min(r.hints.heaviest.size(), rewrite.originalParameters.size()); ++i)
      if (rewrite.originalParameters[i].kind == Parameter::Kind::Pointer)
        r.hints.heaviest[i].clear();
    if (auto least = leastThreads.find(r.symbol); least != leastThreads.end())
      r.leastThreads = least->second;
    r.flags = deviceFlags(task.options);
    r.gpu = backend.gpuName();
    r.speedup = summary.value("speedup", result.best.speedup());
    r.isMeasured = backend.measures();
    r.version = searchVersion;
    if (rewrite.testedOnly) {
      leaveOut(r.kernel, "a language model wrote it, and recipes hold no text");
      continue;
    }
    auto again = replay(device, task.options, &r);
    if (!again) {
      leaveOut(r.kernel, llvm::toString(again.takeError()));
      continue;
    }
    if ((*again)->rewrites.size() != 1 || (*again)->rewrites[0].twinText != rewrite.twinText) {
      leaveOut(r.kernel, "its recipe rests on more than a record holds");
      continue;
    }
    r.outcome = (*again)->key();
    file->add(std::move(r));
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
  int compileAsGiven() const;
  /// The records of this source that apply. What does not is told; empty: nothing does.
  llvm::Expected<std::vector<const KernelRecipe *>> applicable(const RecipeFile &file, const Program &device);
  llvm::Expected<EmittedProgram> emit(llvm::ArrayRef<const KernelRecipe *> records, const Program &device) const;
  void stale(const KernelRecipe &r, const std::string &why);

  const OwnFlags &flags;
  const std::vector<std::string> &arguments;
  const Toolchain &toolchain;
  const CompileOptions options;
  std::string text;
  bool isStale = false;
};

} // namespace

int Application::compileAsGiven() const {
  auto code = compileOriginal(toolchain, arguments);
  if (code)
    return *code;
  llvm::errs() << "optiml-clang: error: " << llvm::toString(code.takeError()) << "\n";
  return 1;
}

void Application::stale(const KernelRecipe &r, const std::string &why) {
  isStale = true;
  llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning") << ": " << options.inputs.front()
               << ": kernel " << r.kernel << " is compiled as it is: " << why << "\n";
}

llvm::Expected<std::vector<const KernelRecipe *>> Application::applicable(const RecipeFile &file,
                                                                          const Program &device) {
  std::vector<const KernelRecipe *> result;
  for (const KernelRecipe *r : file.of(device.path())) {
    if (r->arch != options.arch || r->fp != flags.fp.str())
      continue; // of another GPU, or another mode
    if (!device.findKernel(r->symbol)) {
      stale(*r, "it is no longer in this file");
      continue;
    }
    if (r->flags != deviceFlags(options)) {
      stale(*r, llvm::formatv("its recipe was found with the flags '{0}', and they are '{1}' now", r->flags,
                              deviceFlags(options)));
      continue;
    }
    auto variant = replay(device, options, r);
    if (!variant) {
      stale(*r, "its recipe no longer applies: " + llvm::toString(variant.takeError()));
      continue;
    }
    if ((*variant)->key() != r->outcome) {
      stale(*r, "it has changed since its recipe was found");
      continue;
    }
    result.push_back(r);
  }
  return result;
}

llvm::Expected<EmittedProgram> Application::emit(llvm::ArrayRef<const KernelRecipe *> records,
                                                 const Program &device) const {
  auto variant = replay(device, options, records);
  if (!variant)
    return variant.takeError();
  auto host = Program::parse(device.path(), text, options, toolchain, View::Host);
  if (!host)
    return host.takeError();
  std::map<std::string, uint64_t> least;
  std::map<std::string, std::string> summaries;
  for (const KernelRecipe *r : records) {
    least[r->symbol] = r->leastThreads;
    summaries[r->kernel] = llvm::formatv("program's kernels {0:f2} times faster, {1} {2}", r->speedup,
                                         r->isMeasured ? "measured on" : "predicted for", r->gpu);
  }
  return emitProgram(limitedTo(**variant, least), **host, options.inputs.front(), summaries, {});
}

int Application::run() {
  auto warn = [&](llvm::Error why) {
    llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning")
                 << ": no recipe is applied: " << llvm::toString(std::move(why)) << "\n";
    return flags.strictRecipes ? 1 : compileAsGiven();
  };
  if (!llvm::sys::fs::exists(flags.recipes))
    return warn(makeError("there is no file '{0}'", flags.recipes));
  auto file = RecipeFile::read(flags.recipes);
  if (!file)
    return warn(file.takeError());
  if (!options.tooHard.empty() || options.inputs.size() != 1 || file->of(options.inputs.front()).empty())
    return compileAsGiven();
  const std::string &path = options.inputs.front();
  if (llvm::Error e = readFile(path).moveInto(text)) {
    llvm::consumeError(std::move(e));
    return compileAsGiven(); // nvcc says what is wrong
  }
  llvm::SmallString<256> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  auto device = Program::parse(absolute.str().str(), text, options, toolchain, View::Device);
  if (!device)
    return warn(device.takeError());
  auto records = applicable(*file, **device);
  if (!records)
    return warn(records.takeError());
  if (isStale && flags.strictRecipes)
    return 1;
  if (records->empty())
    return compileAsGiven();
  auto emitted = emit(*records, **device);
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
