//===- TuneCheck.cpp - whether a project's recipes still hold -------------===//
#include "BuildCommands.h"
#include "SearchSummary.h"
#include "SourceRecipes.h"
#include "Tuning.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Interrupt.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

namespace {

class Check {
public:
  Check(const std::string &program, const Toolchain &toolchain, const TuneOptions &options, RecipeFile recipes)
      : program(program), toolchain(toolchain), options(options), recipes(std::move(recipes)) {}
  llvm::Error run();

private:
  /// Records of one source and class of launches that apply to it.
  struct Group {
    TunedUnit unit;
    ThreadRange threads;
    std::vector<KernelRecipe> records;
  };
  llvm::Error findGroups(const FloatRule &floats);
  llvm::Error evaluate(const Group &group, double seconds);

  const std::string &program;
  const Toolchain &toolchain;
  const TuneOptions &options;
  RecipeFile recipes;
  std::vector<Group> groups;
  unsigned considered = 0, applied = 0, lost = 0;
};

} // namespace

llvm::Error Check::findGroups(const FloatRule &floats) {
  auto commands = commandsOf(options.buildFolder);
  if (!commands)
    return commands.takeError();
  std::set<std::string> compiled;
  std::set<const KernelRecipe *> grouped; // an instantiation is evaluated with one of its sources
  for (const clang::tooling::CompileCommand &command : *commands) {
    TunedUnit unit = unitOf(command);
    if (!recipes.concerns(unit.path))
      continue;
    compiled.insert(recipes.nameOf(unit.path));
    if (std::error_code e = llvm::sys::fs::set_current_path(command.Directory))
      return makeError("{0}: {1}", command.Directory, e.message());
    const CompileOptions compile = CompileOptions::parse(unit.arguments);
    SourceRecipes source(recipes, compile, toolchain, floats, unit.path);
    auto text = source.run();
    for (const std::vector<std::string> *lines : {&source.stale(), &source.remarks()})
      for (const std::string &line : *lines)
        llvm::outs() << line << "\n";
    if (!text)
      llvm::outs() << unit.path << ": " << llvm::toString(text.takeError()) << "\n";
    considered += source.considered();
    applied += unsigned(source.applied().size());
    std::map<ThreadRange, std::vector<KernelRecipe>> classes;
    for (const KernelRecipe *r : source.applied())
      if (!r->texts.empty() && !options.recordings.empty())
        llvm::outs() << r->file << ": " << r->kernel << ": a language model's text, which is not evaluated again\n";
      else if (r->arch == compile.arch && grouped.insert(r).second)
        classes[r->threads].push_back(*r);
    for (auto &[threads, records] : classes)
      groups.push_back({unit, threads, std::move(records)});
  }
  for (const KernelRecipe &r : recipes.all())
    if (!compiled.count(r.file)) {
      llvm::outs() << r.file << ": " << r.kernel << ": no command of the build compiles this file\n";
      ++considered;
    }
  return llvm::Error::success();
}

llvm::Error Check::evaluate(const Group &group, double seconds) {
  auto scratch = TempDir::create("optiml-check");
  if (!scratch)
    return scratch.takeError();
  TuneSearch search{&group.unit, {}, group.threads, 0, "", {}};
  Recipe whole;
  for (const KernelRecipe &r : group.records) {
    search.kernels[r.symbol] = r.kernel;
    llvm::append_range(whole, r.recipe);
  }
  // Beside the user's file, which names sources relative to itself.
  llvm::SmallString<256> fresh;
  if (std::error_code e = llvm::sys::fs::createUniqueFile(options.recipesFile + ".check-%%%%%%", fresh))
    return makeError("{0}: {1}", options.recipesFile, e.message());
  llvm::sys::fs::remove(fresh);
  auto cleanup = llvm::scope_exit([&] { llvm::sys::fs::remove(fresh); });
  llvm::outs().flush(); // the search writes, too
  // A prediction does not take the place of what was measured.
  const bool measured = llvm::any_of(group.records, [](const KernelRecipe &r) { return r.isMeasured; });
  const bool predicts = llvm::is_contained(options.ownFlags, "--optiml-backend=cpu");
  TuneOptions how = options;
  if (measured && !predicts)
    how.ownFlags.push_back("--optiml-backend=gpu");
  std::string failure = runSearch(program, how, search, seconds, fresh.str().str(), recipeText(whole));
  if (interrupted())
    failure = "interrupted";
  auto found = RecipeFile::read(fresh.str().str());
  if (!found)
    return found.takeError();
  for (const KernelRecipe &old : group.records) {
    auto now = llvm::find_if(found->all(), [&](const KernelRecipe &r) { return sameFunction(r.symbol, old.symbol); });
    llvm::outs() << old.file << ": " << old.kernel << ": ";
    if (!failure.empty()) {
      llvm::outs() << failure << "; its recipe stays\n";
    } else if (now == found->all().end() && old.isMeasured && predicts) {
      llvm::outs() << "predicted to be no faster, or not proven; what was measured stays\n";
    } else if (now == found->all().end()) {
      llvm::outs() << "not confirmed as faster and right; its recipe stays, and is yours to remove\n";
      ++lost;
    } else {
      const bool refresh = now->isMeasured || !old.isMeasured;
      llvm::outs() << llvm::formatv("{0} -> {1}, {2} {3}{4}\n", timeText(now->before), timeText(now->after),
                                    now->isMeasured ? "measured on" : "predicted for", now->gpu,
                                    refresh ? "" : "; the record keeps what was measured");
      now->file = old.file; // another source that instantiates it may have been compiled
      if (refresh)
        recipes.add(*now);
    }
  }
  return llvm::Error::success();
}

llvm::Error Check::run() {
  OwnFlags flags;
  std::vector<std::string> rest;
  std::string wrong;
  if (!parseOwnFlags(options.ownFlags, processEnvironment(), flags, rest, wrong))
    return makeError("{0}", wrong);
  if (llvm::Error e = findGroups(flags.fp))
    return e;
  llvm::outs() << llvm::formatv("{0} of {1} recipes apply\n", applied, considered);
  if (!options.recordings.empty() && !groups.empty()) {
    for (const Group &group : groups)
      if (!interrupted())
        if (llvm::Error e = evaluate(group, options.seconds / double(groups.size())))
          return e;
    if (llvm::Error e = recipes.write())
      return e;
  }
  llvm::outs().flush();
  if (applied < considered || lost)
    return makeError("{0} of {1} recipes do not hold", considered - applied + lost, considered);
  return llvm::Error::success();
}

llvm::Error optiml::checkRecipes(const std::string &program, const Toolchain &toolchain, const TuneOptions &options) {
  auto recipes = RecipeFile::read(options.recipesFile);
  if (!recipes)
    return recipes.takeError();
  return Check(program, toolchain, options, std::move(*recipes)).run();
}
