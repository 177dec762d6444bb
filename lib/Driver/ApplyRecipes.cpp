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
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

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
  auto space = spaceOf(device, task.options.only(task.options.arch), task.flags.fp, all);
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

/// One source of the command line.
class SourceRecipes {
public:
  SourceRecipes(const OwnFlags &flags, const CompileOptions &options, const Toolchain &toolchain,
                const RecipeFile &file, const std::string &path)
      : flags(flags), options(options), toolchain(toolchain), file(file), path(path) {}
  /// The rewritten text; nothing where no recipe applies. What no longer does is told.
  llvm::Expected<std::optional<std::string>> run();
  bool isStale() const { return stale; }

private:
  /// Applies the records of one architecture to `text`.
  llvm::Error apply(unsigned arch);
  bool isIn(unsigned arch) const;
  /// The records of this architecture and mode whose kernels are still there and compiled alike.
  std::vector<const KernelRecipe *> wanted(unsigned arch, const Program &device);
  /// Those of them that still make what they made.
  std::vector<const KernelRecipe *> applicable(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records);
  llvm::Error emit(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records, const CompileOptions &only);
  void tell(const KernelRecipe &r, const std::string &why);

  const OwnFlags &flags;
  const CompileOptions &options;
  const Toolchain &toolchain;
  const RecipeFile &file;
  const std::string &path; ///< as on the command line
  std::string original, text;
  std::set<std::string> remarks;
  bool stale = false;
};

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
  /// The sources that the file names and that can be replaced.
  std::vector<std::string> sources(const RecipeFile &file) const;

  const OwnFlags &flags;
  const std::vector<std::string> &arguments;
  const Toolchain &toolchain;
  const CompileOptions options;
};

} // namespace

void SourceRecipes::tell(const KernelRecipe &r, const std::string &why) {
  stale = true;
  llvm::errs() << "optiml-clang: " << (flags.strictRecipes ? "error" : "warning") << ": " << path << ": kernel "
               << r.kernel << " is compiled as it is: " << why << "\n";
}

/// Whether the object may hold code for it.
bool SourceRecipes::isIn(unsigned arch) const {
  return options.everyArch || options.nativeArch ||
         (options.archs.empty() ? arch == options.arch : llvm::is_contained(options.archs, arch));
}

std::vector<const KernelRecipe *> SourceRecipes::wanted(unsigned arch, const Program &device) {
  std::vector<const KernelRecipe *> result;
  const std::string now = deviceFlags(options);
  for (const KernelRecipe *r : file.of(device.path())) {
    if (r->arch != arch || r->fp != flags.fp.str())
      continue;
    if (!device.findKernel(r->symbol))
      tell(*r, "it is no longer in this file");
    else if (r->flags != now)
      tell(*r, llvm::formatv("its recipe was found with the flags '{0}', and they are '{1}' now", r->flags, now));
    else
      result.push_back(r);
  }
  return result;
}

std::vector<const KernelRecipe *> SourceRecipes::applicable(KernelSpace &space,
                                                            llvm::ArrayRef<const KernelRecipe *> records) {
  std::vector<const KernelRecipe *> result;
  for (const KernelRecipe *r : records) {
    auto variant = replay(space, r);
    if (!variant)
      tell(*r, "its recipe no longer applies: " + llvm::toString(variant.takeError()));
    else if ((*variant)->key() != r->outcome)
      tell(*r, "it has changed since its recipe was found");
    else
      result.push_back(r);
  }
  return result;
}

llvm::Error SourceRecipes::emit(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records,
                                const CompileOptions &only) {
  auto variant = replay(space, records);
  if (!variant)
    return variant.takeError();
  auto host = Program::parse(absolutePath(path), text, only, toolchain, View::Host);
  if (!host)
    return host.takeError();
  std::map<std::string, uint64_t> least;
  std::map<std::string, std::string> summaries;
  for (const KernelRecipe *r : records) {
    least[r->symbol] = r->leastThreads;
    summaries[r->kernel] = gainText(r->speedup, r->isMeasured, r->gpu);
  }
  Variant limited = limitedTo(**variant, least);
  if (!options.archs.empty() || options.everyArch || options.nativeArch)
    for (KernelRewrite &rewrite : limited.rewrites)
      rewrite.arch = only.arch; // code that is made of PTX for another GPU is the original's
  auto emitted = emitProgram(limited, **host, path, summaries, {});
  if (!emitted)
    return emitted.takeError();
  for (const std::string &remark : emitted->remarks)
    if (remarks.insert(remark).second)
      llvm::errs() << remark << "\n";
  if (emitted->dispatched)
    text = std::move(emitted->text);
  return llvm::Error::success();
}

llvm::Error SourceRecipes::apply(unsigned arch) {
  const CompileOptions only = options.only(arch);
  auto device = Program::parse(absolutePath(path), original, only, toolchain, View::Device);
  if (!device)
    return device.takeError();
  std::vector<const KernelRecipe *> records = wanted(arch, **device);
  auto space = spaceOf(**device, only, flags.fp, records);
  if (!space)
    return space.takeError();
  records = applicable(**space, records);
  if (records.empty())
    return llvm::Error::success();
  if (text == original)
    return emit(**space, records, only);
  // What another architecture has in place of its launches falls back to launches of the original: these are replaced.
  auto again = Program::parse(absolutePath(path), text, only, toolchain, View::Device);
  if (!again)
    return again.takeError();
  auto further = spaceOf(**again, only, flags.fp, records);
  if (!further)
    return further.takeError();
  return emit(**further, records, only);
}

llvm::Expected<std::optional<std::string>> SourceRecipes::run() {
  if (llvm::Error e = readFile(path).moveInto(original)) {
    llvm::consumeError(std::move(e));
    return std::nullopt; // nvcc says what is wrong
  }
  text = original;
  std::set<unsigned> archs;
  for (const KernelRecipe *r : file.of(absolutePath(path)))
    if (isIn(r->arch))
      archs.insert(r->arch);
  for (unsigned arch : archs)
    if (llvm::Error e = apply(arch))
      return std::move(e);
  if (text == original)
    return std::nullopt;
  return text;
}

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
    if (file.of(input).empty() || !llvm::is_contained(arguments, input)) // named in a file of options
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

int Application::run() {
  if (!llvm::sys::fs::exists(flags.recipes))
    return asGiven(makeError("there is no file '{0}'", flags.recipes));
  auto file = RecipeFile::read(flags.recipes);
  if (!file)
    return asGiven(file.takeError());
  if (!options.tooHard.empty() || options.deviceDebug)
    return compileAsGiven(toolchain, arguments);
  std::vector<Replacement> replacements;
  bool isStale = false;
  for (const std::string &path : sources(*file)) {
    SourceRecipes source(flags, options, toolchain, *file, path);
    auto text = source.run();
    if (!text)
      return asGiven(text.takeError());
    isStale |= source.isStale();
    if (*text)
      replacements.push_back({path, std::move(**text)});
  }
  if (isStale && flags.strictRecipes)
    return 1;
  if (replacements.empty())
    return compileAsGiven(toolchain, arguments);
  if (!flags.emit.empty())
    if (llvm::Error e = writeFileAtomically(flags.emit, withoutLineDirectives(replacements.front().text)))
      return asGiven(std::move(e));
  NvccOutput output;
  auto code = compileReplaced(toolchain, arguments, replacements, &output, nullptr, flags.recipes);
  if (!code)
    return asGiven(code.takeError());
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
