//===- main.cpp - ways to search, compared on recorded variants -----------===//
//
// Reads what searches evaluated from a store, and runs every way to search over it, with several seeds. Prints a table
// in Markdown: the best speed-up found, in percent of the best that is recorded, geometric mean over the seeds.
//
//===----------------------------------------------------------------------===//
#include "optiml/Propose/ExpertPolicy.h"
#include "optiml/Search/Recorded.h"
#include "optiml/Search/Search.h"
#include "optiml/Store/Store.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>

using namespace optiml;
namespace cl = llvm::cl;

static cl::OptionCategory category("optiml-search-bench options");
static cl::opt<std::string> storeFolder(cl::Positional, cl::Required, cl::desc("FOLDER"), cl::cat(category));
static cl::list<unsigned> budgets("budget", cl::desc("evaluations of a search (default: 50, 200)"), cl::CommaSeparated,
                                  cl::cat(category));
static cl::opt<unsigned> seeds("seeds", cl::desc("searches of each kind"), cl::init(5), cl::cat(category));
static cl::opt<unsigned> least("least", cl::desc("leave out programs with fewer recorded variants"), cl::init(20),
                               cl::cat(category));
static cl::opt<bool> noBook("no-opening-book", cl::desc("search without the opening book"), cl::cat(category));

/// "gemv": the kernels that the recipes are about.
static std::string kernelsOf(const std::vector<RecordedVariant> &variants) {
  std::set<std::string> names;
  for (const RecordedVariant &variant : variants)
    for (const Action &action : variant.recipe)
      names.insert(siteKernel(action.site).str());
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

static llvm::Expected<double> share(RecordedSpace &space, Strategy strategy, unsigned budget) {
  double sum = 0;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    ExpertPolicy policy;
    SearchSettings settings;
    settings.strategy = strategy;
    settings.evaluations = budget;
    settings.seconds = 0;
    settings.seed = seed;
    settings.openingBook = !noBook;
    settings.verifyWithin = 1; // as without a GPU
    settings.roofline = 0;
    auto result = runSearch(space, policy, space, settings);
    if (!result)
      return result.takeError();
    sum += std::log(std::max(1.0, result->best.speedup()) / space.bestSpeedup());
  }
  return std::exp(sum / seeds);
}

static llvm::Error compare() {
  auto store = Store::open(storeFolder + "/store.db");
  if (!store)
    return store.takeError();
  auto contexts = (*store)->contexts();
  if (!contexts)
    return contexts.takeError();
  const Strategy strategies[] = {Strategy::Mcts, Strategy::Beam, Strategy::Greedy, Strategy::Random};
  std::vector<std::pair<Strategy, unsigned>> columns;
  for (unsigned budget :
       budgets.empty() ? std::vector<unsigned>{50, 200} : std::vector<unsigned>(budgets.begin(), budgets.end()))
    for (Strategy strategy : strategies)
      columns.push_back({strategy, budget});
  llvm::outs() << "| kernels | variants | best recorded |";
  for (const auto &[strategy, budget] : columns)
    llvm::outs() << " " << strategyName(strategy) << " " << budget << " |";
  llvm::outs() << "\n|---|---|---|";
  for (size_t i = 0; i < columns.size(); ++i)
    llvm::outs() << "---|";
  llvm::outs() << "\n";
  std::vector<double> sums(columns.size());
  unsigned rows = 0;
  for (const std::string &context : *contexts) {
    auto evaluations = (*store)->evaluations(context);
    if (!evaluations)
      return evaluations.takeError();
    std::vector<RecordedVariant> variants;
    for (const StoredEvaluation &e : *evaluations)
      variants.push_back({e.variantKey, e.recipe, e.measurement, e.fidelity == Fidelity::Verified});
    auto space = RecordedSpace::create(variants);
    if (!space) { // a search that was stopped at once
      llvm::consumeError(space.takeError());
      continue;
    }
    if ((*space)->size() < least)
      continue;
    ++rows;
    llvm::outs() << llvm::formatv("| {0} | {1} | {2:f2} |", kernelsOf(variants), (*space)->size(),
                                  (*space)->bestSpeedup());
    for (size_t i = 0; i < columns.size(); ++i) {
      auto found = share(**space, columns[i].first, columns[i].second);
      if (!found)
        return found.takeError();
      sums[i] += std::log(*found);
      llvm::outs() << llvm::formatv(" {0:f1} |", 100 * *found);
      llvm::outs().flush();
    }
    llvm::outs() << "\n";
  }
  llvm::outs() << "| geometric mean | | |";
  for (double sum : sums)
    llvm::outs() << llvm::formatv(" {0:f1} |", rows ? 100 * std::exp(sum / rows) : 0.0);
  llvm::outs() << "\n";
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "optiml-search-bench: ways to search, compared on the variants that a store holds\n");
  if (llvm::Error error = compare()) {
    llvm::errs() << "optiml-search-bench: error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
