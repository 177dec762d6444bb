//===- TuneReport.cpp - what tuning a project came to ---------------------===//
#include "SearchSummary.h"
#include "Tuning.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace optiml;

std::string optiml::whyLeft(const RecordedKernel &kernel) {
  return kernel.isDefined ? "no source of this build launches it where that can be redirected"
                          : "no source of this build defines it";
}

/// Whether the file has a recipe for these launches.
static bool hasRecipe(const RecipeFile &recipes, const TuneSearch &search, const std::string &symbol) {
  return llvm::any_of(recipes.of(search.unit->path), [&](const KernelRecipe *r) {
    return r->threads == search.threads && sameFunction(r->symbol, symbol);
  });
}

static std::string gainOf(const KernelRecipe &r, bool together) {
  std::string interval = r.high > 0 ? llvm::formatv(", {0:f2} to {1:f2}", r.low, r.high).str() : "";
  return llvm::formatv("{0} -> {1} ({2:f2} times faster{3}{4}), {5} {6}: {7}", timeText(r.before), timeText(r.after),
                       r.speedup, together ? " with this file's others" : "", interval,
                       r.isMeasured ? "measured on" : "predicted for", r.gpu, recipeText(r.recipe));
}

namespace {
struct Row {
  std::string kernel, launches, share, outcome;
};
} // namespace

static void printRows(const std::vector<Row> &rows) {
  for (const Row &row : rows)
    llvm::outs() << llvm::formatv("{0,-36} {1,9} {2,7}  {3}\n", llvm::StringRef(row.kernel).take_front(36),
                                  row.launches, row.share, row.outcome);
}

/// What the recipes mean for all kernels of a run, by Amdahl's law.
static void printWhole(const Tuning &tuning, const std::map<const TuneSearch *, double> &factors) {
  double before = tuning.times.kernelSeconds, after = before;
  for (const auto &[search, factor] : factors)
    after -= search->work * (1 - factor);
  if (before > 0 && after > 0 && after < before)
    llvm::outs() << llvm::formatv("all kernels of a run: {0} -> {1}, {2:f2} times faster, where the others stay as "
                                  "they are\n",
                                  timeText(before), timeText(after), before / after);
}

void optiml::printTuning(const Tuning &tuning, const RecipeFile &recipes, const TuneOptions &options) {
  std::vector<Row> rows = {{"kernel", "launches", "share", "outcome"}};
  std::set<std::string> left, changed, applied; // symbols
  for (const auto &[symbol, kernel] : tuning.kernels)
    left.insert(symbol);
  auto share = [&](const RecordedKernel &kernel, const ThreadRange &threads) -> std::string {
    if (!(tuning.times.kernelSeconds > 0))
      return "-";
    return llvm::formatv("{0:f1} %", 100 * kernel.work * kernel.shareOf(threads) / tuning.times.kernelSeconds);
  };
  std::map<const TuneSearch *, double> factors;
  for (const TuneSearch &search : tuning.searches)
    for (const auto &[symbol, name] : search.kernels) {
      const RecordedKernel &kernel = tuning.kernels.at(symbol);
      const bool isApplied = hasRecipe(recipes, search, symbol);
      if (isApplied)
        applied.insert(symbol);
      std::string outcome = !search.failure.empty() ? search.failure
                            : isApplied             ? "the earlier recipe stays"
                                                    : "the original stays";
      if (auto r = search.found.find(symbol); r != search.found.end()) {
        outcome = gainOf(r->second, search.kernels.size() > 1);
        changed.insert(symbol);
        if (r->second.speedup > 0)
          factors[&search] = 1 / r->second.speedup;
      }
      std::string threads = search.threads.isAll() ? "" : ", " + search.threads.str() + " threads";
      rows.push_back({titleOf(kernel.name).str() + threads,
                      std::to_string(std::lround(kernel.launchesWith(search.threads))), share(kernel, search.threads),
                      recipes.nameOf(search.unit->path) + ": " + outcome});
      left.erase(symbol);
    }
  for (const std::string &symbol : left) {
    const RecordedKernel &kernel = tuning.kernels.at(symbol);
    rows.push_back(
        {titleOf(kernel.name).str(), std::to_string(std::lround(kernel.launches)), share(kernel, {}), whyLeft(kernel)});
  }
  printRows(rows);
  printWhole(tuning, factors);
  auto concerns = [](const TunedUnit &unit, const std::set<std::string> &symbols) {
    auto isOne = [&](const std::string &symbol) { return symbols.count(symbol); };
    return llvm::any_of(llvm::make_first_range(unit.kernels), isOne) || llvm::any_of(unit.again, isOne) ||
           llvm::any_of(unit.instantiates, isOne) || llvm::any_of(unit.launches, isOne);
  };
  llvm::sys::fs::file_status file, object;
  llvm::sys::fs::status(options.recipesFile, file);
  std::set<std::string> objects;
  for (const TunedUnit &unit : tuning.units)
    if (!unit.output.empty() &&
        (concerns(unit, changed) || (concerns(unit, applied) && !llvm::sys::fs::status(unit.output, object) &&
                                     object.getLastModificationTime() < file.getLastModificationTime())))
      objects.insert(unit.output);
  for (const std::string &name : objects)
    llvm::outs() << (options.rebuild && !llvm::sys::fs::remove(name) ? "removed: " : "to be made again: ") << name
                 << "\n";
}
