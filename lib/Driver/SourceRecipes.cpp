//===- SourceRecipes.cpp - recipes, applied to a source -------------------===//
#include "SourceRecipes.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Driver/Recipes.h"
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

ThreadRange optiml::limitsOf(uint64_t leastThreads, ThreadRange launchClass) {
  if (leastThreads >= 2)
    launchClass.least = std::max(launchClass.least, leastThreads / 2);
  return launchClass;
}

Variant optiml::limitedTo(Variant variant, const std::map<std::string, ThreadRange> &limits) {
  const std::string threads = "grid.x * grid.y * grid.z * block.x * block.y * block.z";
  for (KernelRewrite &rewrite : variant.rewrites) {
    auto limit = limits.find(rewrite.originalSymbol);
    if (limit == limits.end())
      continue;
    const auto &[least, most] = limit->second;
    if (most != ThreadRange::unlimited)
      rewrite.conditions.insert(rewrite.conditions.begin(), {IntExpr::of(threads + " <= " + std::to_string(most)),
                                                             "larger launches are of another class"});
    if (least)
      rewrite.conditions.insert(rewrite.conditions.begin(), {IntExpr::of(threads + " >= " + std::to_string(least)),
                                                             "smaller launches were not looked at"});
  }
  return variant;
}

llvm::Expected<std::unique_ptr<KernelSpace>> optiml::spaceOf(const Program &device, const CompileOptions &options,
                                                             const Toolchain &toolchain, const FloatRule &floats,
                                                             llvm::ArrayRef<const KernelRecipe *> records) {
  std::map<std::string, LaunchHints> hints;
  auto texts = std::make_shared<KernelTexts>();
  for (const KernelRecipe *r : records) {
    setRules(hints[r->symbol] = r->hints, floats, options);
    if (!r->texts.empty())
      if (llvm::Error e = texts->addAll(r->texts))
        return std::move(e);
  }
  auto space = KernelSpace::create(
      device, [&](const KernelDecl &decl) { return hints.count(decl.symbol); },
      [&](const KernelDecl &decl) { return hints.at(decl.symbol); });
  if (!space)
    return space;
  // The search has judged what may stand in a text; a change would show in the record's outcome.
  (*space)->acceptTexts({std::move(texts),
                         [path = device.path(), options, toolchain](const std::string &text) {
                           return Program::parse(path, text, options, toolchain, View::Device);
                         },
                         /*allowAssembly=*/true});
  for (const KernelRecipe *r : records)
    if (!r->texts.empty())
      (*space)->setExercised(r->kernel, r->exercised);
  return space;
}

llvm::Expected<std::shared_ptr<const Variant>> optiml::replay(KernelSpace &space,
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

void optiml::setRules(LaunchHints &hints, const FloatRule &floats, const CompileOptions &options) {
  hints.strictFloat = floats.isStrict();
  hints.approximate = floats.isFast();
  hints.tensorFloat = floats.allowsTensorCores();
  hints.arch = options.leastArch;
  hints.multiprocessors = GpuSpec::forArch(options.arch).sms;
}

std::string optiml::gainText(double speedup, bool isMeasured, const std::string &gpu, bool testedOnly) {
  return llvm::formatv("program's kernels {0:f2} times faster, {1} {2}{3}", speedup,
                       isMeasured ? "measured on" : "predicted for", gpu,
                       testedOnly ? "; a language model's text, tested and not proven" : "");
}

void SourceRecipes::tell(const KernelRecipe &r, const std::string &why) {
  complaints.push_back(path + ": kernel " + r.kernel + " is compiled as it is: " + why);
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
    if (r->arch != arch || r->fp != floats.str())
      continue;
    ++number;
    if (!device.findKernel(r->symbol))
      tell(*r, "it is no longer in this file");
    else if (r->flags != now)
      tell(*r, llvm::formatv("its recipe was found with the flags '{0}', and they are '{1}' now", r->flags, now));
    else
      result.push_back(r);
  }
  std::set<std::string> measuredWith;
  for (const KernelRecipe *r : result)
    if (r->isMeasured && !r->toolkit.empty())
      measuredWith.insert(r->toolkit);
  if (measuredWith.empty())
    return result;
  const std::string toolkit = toolchain.cudaVersion();
  for (const std::string &other : measuredWith)
    if (other != toolkit)
      remark(path + ": its recipes were measured with CUDA " + other + ", and this is CUDA " + toolkit +
             "; optiml tune --check measures them again");
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
  watch.lap("prove");
  auto host = Program::parse(absolutePath(path), text, only, toolchain, View::Host);
  watch.lap("parse");
  if (!host)
    return host.takeError();
  std::map<std::string, ThreadRange> limits;
  std::map<std::string, std::string> summaries;
  std::set<std::string> launchedElsewhere;
  for (const KernelRecipe *r : records) {
    if (!r->launchedIn.empty())
      launchedElsewhere.insert(r->symbol);
    limits[r->symbol] = limitsOf(r->leastThreads, r->threads);
    summaries[r->kernel] = gainText(r->speedup, r->isMeasured, r->gpu, !r->texts.empty());
  }
  Variant limited = limitedTo(**variant, limits);
  if (style == EmitStyle::Guarded && (!options.archs.empty() || options.everyArch || options.nativeArch))
    for (KernelRewrite &rewrite : limited.rewrites)
      rewrite.arch = only.arch; // code that is made of PTX for another GPU is the original's
  used.insert(records.begin(), records.end());
  auto emitted = emitProgram(limited, **host, path, summaries, {}, launchedElsewhere, style);
  watch.lap("print");
  return take(std::move(emitted));
}

void SourceRecipes::remark(const std::string &line) {
  if (!llvm::is_contained(told, line))
    told.push_back(line);
}

llvm::Error SourceRecipes::take(llvm::Expected<EmittedProgram> emitted) {
  if (!emitted)
    return emitted.takeError();
  for (const std::string &line : emitted->remarks)
    remark(line);
  if (emitted->dispatched || emitted->entries) {
    text = std::move(emitted->text);
    isChanged = true;
  }
  return llvm::Error::success();
}

llvm::Error SourceRecipes::redirect(const std::set<std::string> &symbols) {
  auto host = Program::parseWithLaunches(absolutePath(path), path, text, options, toolchain, View::Host);
  if (!host)
    return host.takeError();
  return take(emitFarLaunches(**host, path, symbols));
}

llvm::Error SourceRecipes::apply(unsigned arch, unsigned from) {
  const CompileOptions only = options.only(arch);
  auto device = Program::parseWithLaunches(absolutePath(path), path, original, only, toolchain, View::Device);
  watch.lap("parse");
  if (!device)
    return device.takeError();
  for (const std::string &wrong : (*device)->wrongDirectives())
    remark(wrong);
  // Of the classes of a kernel's launches that with the most threads comes first: others fall through to the next.
  std::vector<const KernelRecipe *> records = wanted(from, **device);
  llvm::stable_sort(records, [](const KernelRecipe *a, const KernelRecipe *b) { return a->threads > b->threads; });
  while (!records.empty()) {
    std::set<std::string> symbols;
    auto next = std::stable_partition(records.begin(), records.end(),
                                      [&](const KernelRecipe *r) { return symbols.insert(r->symbol).second; });
    if (llvm::Error e = apply(**device, only, options.only(from), {records.begin(), next}))
      return e;
    records.erase(records.begin(), next);
  }
  return llvm::Error::success();
}

llvm::Error SourceRecipes::apply(const Program &device, const CompileOptions &only, const CompileOptions &rules,
                                 std::vector<const KernelRecipe *> records) {
  auto space = spaceOf(device, rules, toolchain, floats, records);
  if (!space)
    return space.takeError();
  records = applicable(**space, records);
  if (records.empty())
    return llvm::Error::success();
  if (!isChanged) {
    text = device.text();
    return emit(**space, records, only);
  }
  // What an architecture or a class has in place of launches falls back to launches of the original: these are
  // replaced.
  auto again = Program::parse(absolutePath(path), text, only, toolchain, View::Device);
  watch.lap("parse");
  if (!again)
    return again.takeError();
  auto further = spaceOf(**again, rules, toolchain, floats, records);
  if (!further)
    return further.takeError();
  return emit(**further, records, only);
}

std::map<unsigned, unsigned> SourceRecipes::architectures() const {
  std::set<unsigned> known;
  std::map<unsigned, unsigned> result;
  for (const KernelRecipe *r : file.of(absolutePath(path))) {
    known.insert(r->arch);
    if (isIn(r->arch))
      result[r->arch] = r->arch;
  }
  if (!nearest)
    return result;
  for (unsigned arch : options.archs.empty() ? std::vector<unsigned>{options.arch} : options.archs)
    if (auto above = known.upper_bound(arch); above != known.begin()) // what a lower one can, a higher one can
      result.try_emplace(arch, *std::prev(above));
  return result;
}

llvm::Expected<std::optional<std::string>> SourceRecipes::run() {
  if (llvm::Error e = readFile(path).moveInto(original)) {
    llvm::consumeError(std::move(e));
    return std::nullopt; // nvcc says what is wrong
  }
  text = original;
  for (const auto &[arch, from] : architectures())
    if (llvm::Error e = apply(arch, from)) {
      if (!isChanged)
        return std::move(e);
      complaints.push_back(path + ": recipes for compute capability " + std::to_string(arch) +
                           " are left out: " + llvm::toString(std::move(e)));
    }
  if (std::set<std::string> symbols = file.launchedBy(absolutePath(path)); !symbols.empty())
    if (llvm::Error e = redirect(symbols)) {
      if (!isChanged)
        return std::move(e);
      complaints.push_back(path +
                           ": launches of other files' kernels are left as they are: " + llvm::toString(std::move(e)));
    }
  if (!isChanged)
    return std::nullopt;
  return text;
}

llvm::Expected<std::map<std::string, std::string>>
optiml::textsByRecipes(const CompileOptions &options, const Toolchain &toolchain,
                       llvm::function_ref<void(const std::string &)> warn) {
  std::map<std::string, std::string> texts;
  OwnFlags flags;
  std::vector<std::string> none;
  std::string wrong;
  if (!getenv("OPTIML_RECIPES"))
    return texts;
  if (!parseOwnFlags({}, processEnvironment(), flags, none, wrong))
    return makeError("{0}", wrong);
  if (flags.recipes.empty())
    return texts;
  auto file = RecipeFile::read(flags.recipes);
  if (!file)
    return file.takeError();
  for (const std::string &path : options.inputs) {
    if (!file->concerns(path))
      continue;
    SourceRecipes source(*file, options, toolchain, flags.fp, path, flags.nearestRecipes);
    auto text = source.run();
    if (!text)
      return text.takeError();
    for (const std::vector<std::string> *lines : {&source.stale(), &source.remarks()})
      for (const std::string &line : *lines)
        warn(line);
    if (*text)
      texts[path] = std::move(**text);
  }
  return texts;
}
