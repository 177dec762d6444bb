//===- ApplyRecipes.cpp - saved recipes, written and applied --------------===//
#include "ApplyRecipes.h"
#include "FinalCompile.h"
#include "SearchRun.h"
#include "SourceRecipes.h"
#include "optiml/Driver/Launcher.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>

using namespace optiml;

static std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%F", std::gmtime(&now));
  return text;
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
  r.threads = task.flags.threads;
  r.flags = deviceFlags(task.options);
  r.gpu = backend.gpuName();
  r.isMeasured = backend.measures();
  r.version = searchVersion;
  r.toolkit = task.toolchain.cudaVersion();
  r.date = today();
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
    KernelRecipe r = recordOf(rewrite, task, backend, result.best.recipe, hints[rewrite.originalSymbol]);
    if (rewrite.testedOnly) {
      for (const Condition &condition : rewrite.conditions)
        if (condition.why == onlyTested)
          r.exercised = condition.expression.str();
      for (const Action &action : r.recipe)
        if (auto name = action.params.find("text"); action.transform == replaceBody && name != action.params.end())
          r.texts[name->second] =
              summary.value("texts", nlohmann::json::object()).value(name->second, nlohmann::json());
    }
    r.file = file->nameOf(task.path);
    r.speedup = summary.value("speedup", result.best.speedup());
    r.before = summary.value("baselineSeconds", 0.0);
    r.after = summary.value("bestSeconds", 0.0);
    r.low = summary.value("speedupLow", 0.0);
    r.high = summary.value("speedupHigh", 0.0);
    if (auto least = leastThreads.find(r.symbol); least != leastThreads.end())
      r.leastThreads = least->second;
    records.emplace_back(std::move(r), &rewrite);
  }
  std::vector<const KernelRecipe *> all;
  for (const auto &[r, rewrite] : records)
    all.push_back(&r);
  auto space = spaceOf(device, task.options.only(task.options.arch), task.toolchain, task.flags.fp, all);
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

/// The command line.
class Application {
public:
  Application(const OwnFlags &flags, const std::vector<std::string> &arguments, const Toolchain &toolchain)
      : flags(flags), arguments(arguments), toolchain(toolchain), options(CompileOptions::parse(arguments)) {}
  int run();

private:
  /// Tells that no recipe is applied; 1 where that is an error.
  int failed(const std::string &why) const;
  int asGiven(llvm::Error why) const;
  /// nvcc's preprocessed text behind a mark that depends on the recipes, and names their file as what it was made of.
  int preprocess(const RecipeFile &file) const;
  /// Whether the output, which is there, is larger than what the user's own text gives by more than the flags allow;
  /// says so.
  llvm::Expected<bool> isTooLarge() const;
  /// The sources that the file names and that can be replaced.
  std::vector<std::string> sources(const RecipeFile &file) const;

  const OwnFlags &flags;
  const std::vector<std::string> &arguments;
  const Toolchain &toolchain;
  const CompileOptions options;
};

} // namespace

int Application::failed(const std::string &why) const {
  llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning") << ": no recipe is applied: " << why
               << "\n";
  return flags.strictRecipes;
}

int Application::asGiven(llvm::Error why) const {
  const int code = failed(llvm::toString(std::move(why)));
  return code ? code : compileAsGiven(toolchain, arguments);
}

std::vector<std::string> Application::sources(const RecipeFile &file) const {
  std::vector<std::string> result;
  std::string folder;
  for (const std::string &input : options.inputs) {
    if (!file.concerns(input) || !llvm::is_contained(arguments, input)) // named in a file of options
      continue;
    std::string own = llvm::sys::path::parent_path(absolutePath(input)).str();
    if (result.empty())
      folder = own;
    if (own == folder)
      result.push_back(input);
    else
      llvm::errs() << "optiml-clang: warning: " << input << " is compiled as it is: it lies in another folder than "
                   << result.front() << "; compile them one by one\n";
  }
  return result;
}

int Application::preprocess(const RecipeFile &file) const {
  if (!options.output.empty() && !canBeReplaced(options.output))
    return compileAsGiven(toolchain, arguments);
  NvccOutput output;
  auto code = compileOriginal(toolchain, arguments, &output);
  if (!code)
    return asGiven(code.takeError());
  std::string mark;
  for (const std::string &input : options.inputs)
    mark += "# 1 \"" + absolutePath(flags.recipes) + "\"\n/* OptiML: recipes " + file.fingerprintOf(input) +
            ", version " + searchVersion + " */\n";
  llvm::errs() << output.err;
  if (*code || options.output.empty()) {
    llvm::outs() << (*code ? "" : mark) << output.out;
    return *code;
  }
  auto text = readFile(options.output);
  if (!text)
    return asGiven(text.takeError());
  if (llvm::Error e = writeFileAtomically(options.output, mark + *text))
    return asGiven(std::move(e));
  return 0;
}

llvm::Expected<bool> Application::isTooLarge() const {
  auto scratch = TempDir::create("optiml-growth");
  if (!scratch)
    return scratch.takeError();
  const std::string own = scratch->file("output");
  std::vector<std::string> plain = withoutOutputs(arguments);
  plain.insert(plain.end(), {"-o", own});
  NvccOutput output; // the same as before
  auto code = compileOriginal(toolchain, plain, &output);
  if (!code)
    return code.takeError();
  uint64_t before = 0, after = 0;
  if (*code || llvm::sys::fs::file_size(own, before) || llvm::sys::fs::file_size(options.output, after))
    return false; // there is nothing to compare
  if (double(after) <= double(before) * (1 + flags.growth / 100))
    return false;
  llvm::errs() << llvm::formatv(
      "optiml-clang: warning: no recipe is applied: {0} would have {1} bytes in place of {2}, "
      "and --optiml-growth allows {3:f0} % more\n",
      options.output, after, before, flags.growth);
  return true;
}

int Application::run() {
  if (!llvm::sys::fs::exists(flags.recipes))
    return asGiven(makeError("there is no file '{0}'", flags.recipes));
  auto file = RecipeFile::read(flags.recipes);
  if (!file)
    return asGiven(file.takeError());
  if (onlyPreprocesses(arguments))
    return preprocess(*file);
  if (!options.tooHard.empty() || options.deviceDebug)
    return compileAsGiven(toolchain, arguments);
  std::vector<Replacement> replacements;
  bool isStale = false;
  for (const std::string &path : sources(*file)) {
    SourceRecipes source(*file, options, toolchain, flags.fp, path, flags.nearestRecipes);
    auto text = source.run();
    for (const std::string &why : source.stale())
      llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning") << ": " << why << "\n";
    if (!text)
      return asGiven(text.takeError());
    if (flags.verbose) {
      llvm::errs() << "OptiML: " << path << ": " << source.applied().size() << " of " << source.considered()
                   << " recipes applied;";
      for (const auto &[step, seconds] : source.times().steps)
        llvm::errs() << llvm::formatv(" {0} {1:f3} s", step, seconds);
      llvm::errs() << "\n";
    }
    for (const std::string &remark : source.remarks())
      llvm::errs() << remark << "\n";
    isStale |= !source.stale().empty();
    if (*text)
      replacements.push_back({path, std::move(**text)});
  }
  if (isStale && flags.strictRecipes)
    return 1;
  if (replacements.empty())
    return compileAsGiven(toolchain, arguments);
  if (!flags.emit.empty())
    if (llvm::Error e = writeFileAtomically(flags.emit, withoutLineMarks(replacements.front().text)))
      return asGiven(std::move(e));
  removeAbandonedTempDirs();
  NvccOutput output;
  auto code = compileReplaced(toolchain, arguments, replacements, &output, nullptr, flags.recipes);
  if (!code)
    return asGiven(code.takeError());
  if (*code == 0 && flags.growth > 0) {
    auto large = isTooLarge();
    if (!large)
      return asGiven(large.takeError());
    if (*large)
      return compileAsGiven(toolchain, arguments);
  }
  if (*code == 0) {
    llvm::outs() << output.out;
    llvm::errs() << output.err;
    return 0;
  }
  // Perhaps it does not accept the user's either: then its messages are about that.
  int own = compileAsGiven(toolchain, arguments);
  return own ? own : failed("nvcc did not accept the rewritten program");
}

int optiml::applyRecipes(const OwnFlags &flags, const std::vector<std::string> &arguments, const Toolchain &toolchain) {
  return Application(flags, arguments, toolchain).run();
}
