//===- MemoryPolicy.cpp - proposals weighed by memory ---------------------===//
#include "optiml/Propose/MemoryPolicy.h"
#include "DetailCosts.h"
#include "Forecast.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <numbers>

using namespace optiml;
using Steps = std::vector<LearntTrial::Step>;

/// From here on a kernel counts as one that comes back: in another style, with other sizes. Of one that is only alike
/// fewer recipes are tried, for it is more often the book that has the right one.
static constexpr double sameSimilarity = 0.8;
static constexpr unsigned mostAlike = 2;

/// Of a recipe of the book: how much slower than the best it is, in log2, where nothing is known of it, and how far
/// from that it may be; those that come later are a little less likely to be good. So much is that worth in trials of
/// the same recipe on the same kernel.
static constexpr double firstPrior = 1, laterPrior = 0.03, deviation = 0.8, priorTrials = 0.2;
/// What was seen in this search counts more than what was seen on a kernel that is as like as can be (1).
static constexpr double sameKernel = 1.5;
/// What is this much worse than the best is bad, and no more is learnt from how bad.
static constexpr double mostLoss = 3;
/// How far the best that a search has seen is taken to be from what it will find, as a log2: half of it is left after
/// so many trials.
static constexpr double firstHeadroom = 1, halvingTrials = 4;
/// What should gain less, as a log2, is not worth an evaluation.
static constexpr double leastGain = 0.02;
/// Trials of a kernel that is like this one in nothing still count so much where details are compared.
static constexpr double leastShare = 0.25;
/// Details are tuned as long as each is worth so much, as a log2, and at most so many.
static constexpr double worthTuning = 0.03;
/// What should cost more than this is no variation to try.
static constexpr double worthVarying = -0.02;
static constexpr unsigned mostTunings = 6, mostVariations = 8;

/// The kernel that taught the line may have needed no preparation that this one needs: first whatever of it applies.
static void prepare(OpeningLine &line) {
  std::vector<OpeningStep> first;
  for (llvm::StringRef transform : preparations)
    if (llvm::none_of(line.steps, [&](const OpeningStep &step) { return step.transform == transform; }))
      first.push_back({transform.str()});
  line.steps.insert(line.steps.begin(), first.begin(), first.end());
}

/// "; 1.8 times faster on similar kernels".
static std::string experience(const LearntMemory::Expectation &e) {
  double factor = std::exp2(std::abs(e.gain));
  if (factor < 1.02)
    return "; little effect on similar kernels";
  return llvm::formatv("; {0:f2} times {1} on similar kernels", factor, e.gain > 0 ? "faster" : "slower").str();
}

llvm::Expected<std::vector<Proposal>> MemoryPolicy::propose(const SearchState &state, unsigned count) {
  auto proposals = inner.propose(state, count);
  if (!proposals)
    return proposals;
  std::string bottleneck = state.measurement ? state.measurement->bottleneck : "";
  for (Proposal &proposal : *proposals) {
    LearntMemory::Expectation expected = memory.expect(proposal.action, bottleneck);
    if (expected.weight > 0) {
      proposal.prior *= std::exp2(expected.gain);
      proposal.reason += experience(expected);
    }
  }
  // Equal priors keep the other proposer's order.
  llvm::stable_sort(*proposals, [](const Proposal &a, const Proposal &b) { return a.prior > b.prior; });
  return proposals;
}

std::vector<OpeningLine> MemoryPolicy::openingBook(const SearchState &root) {
  std::vector<OpeningLine> rest = inner.openingBook(root), book;
  std::vector<LearntMemory::Line> lines = memory.lines();
  // A kernel that comes back: its recipes by turns with the book's, which is often as good. Of one that is only alike,
  // after it.
  size_t played = 0;
  for (unsigned rank = 0; rank < lines.size(); ++rank) {
    size_t before = book.size();
    for (const LearntMemory::Line &line : lines)
      if (line.rank == rank && line.similarity >= sameSimilarity)
        book.push_back(line.line);
    if (book.size() > before && played < rest.size())
      book.push_back(rest[played++]);
  }
  book.insert(book.end(), rest.begin() + long(played), rest.end());
  for (const LearntMemory::Line &line : lines)
    if (line.similarity < sameSimilarity && line.rank < mostAlike)
      book.push_back(line.line);
  for (OpeningLine &line : memory.nearlyBest())
    if (llvm::none_of(book,
                      [&](const OpeningLine &other) { return line.kernel == other.kernel && sameSteps(line, other); }))
      book.push_back(std::move(line));
  for (OpeningLine &line : book)
    if (!line.kernel.empty())
      prepare(line);
  return book;
}

//===----------------------------------------------------------------------===//
// Outlook
//===----------------------------------------------------------------------===//

class MemoryPolicy::Experience {
public:
  Experience(const LearntMemory &memory, std::string kernel, double original);

  void add(const Recipe &recipe, double time, bool proven);
  Steps generalForm(const Recipe &recipe) const { return memory.generalForm(recipe, kernel); }
  const TriedParameters &tried() const { return parameters; }
  double costOf(const Recipe &recipe) const;
  bool knowsAlike() const { return memory.knowsTrials(kernel); }
  /// Of what is like it, on kernels like this one.
  Forecast forecast(const Prospect &prospect) const;
  double leastSeconds() const { return std::exp2(best); }
  /// How much worse than what will be found the best is that was seen, as a log2.
  double headroom() const { return firstHeadroom / (1 + double(own.size()) / halvingTrials); }

private:
  void learn() const;

  const LearntMemory &memory;
  std::string kernel;
  TriedParameters parameters;
  std::vector<LearntTrial> own; ///< losses are log2 of seconds, as the best is still to come
  double best;
  DetailCosts fromOthers;
  mutable std::optional<DetailCosts> costs; ///< with what this search tried; none: to be made
  /// A trial without what its details cost it.
  struct Residual {
    const Steps *steps;
    double loss, similarity;
  };
  mutable std::vector<Residual> residuals;
};

MemoryPolicy::Experience::Experience(const LearntMemory &memory, std::string name, double original)
    : memory(memory), kernel(std::move(name)), best(original) {
  if (!knowsAlike())
    return; // details are no matter then
  for (const LearntMemory::Match &match : memory.mostAlike(kernel)) {
    fromOthers.add(match.memory->trials, leastShare + (1 - leastShare) * match.similarity);
    for (const LearntTrial &trial : match.memory->trials)
      addParameters(parameters, trial);
  }
}

void MemoryPolicy::Experience::add(const Recipe &recipe, double time, bool proven) {
  own.push_back({generalForm(recipe), time});
  if (proven)
    best = std::min(best, time);
  costs.reset();
}

void MemoryPolicy::Experience::learn() const {
  if (costs)
    return;
  costs = fromOthers;
  costs->add(own, 1);
  costs->solve();
  residuals.clear();
  auto add = [&](const LearntTrial &trial, double loss, double similarity) {
    residuals.push_back({&trial.steps, std::clamp(loss, 0.0, mostLoss) - costs->of(trial.steps), similarity});
  };
  for (const LearntMemory::Match &match : memory.similar(kernel))
    for (const LearntTrial &trial : match.memory->trials)
      add(trial, trial.loss, match.similarity);
  for (const LearntTrial &trial : own)
    add(trial, trial.loss - best + headroom(), sameKernel);
}

double MemoryPolicy::Experience::costOf(const Recipe &recipe) const {
  learn();
  return costs->of(generalForm(recipe));
}

Forecast MemoryPolicy::Experience::forecast(const Prospect &prospect) const {
  double prior = firstPrior + laterPrior * prospect.rank;
  if (!knowsAlike()) // in the order of the book
    return Forecast(prior, priorTrials);
  learn();
  Steps steps = generalForm(prospect.recipe);
  double cost = costs->of(steps);
  Forecast result(prior + cost - costOf(prospect.basis), priorTrials);
  for (const Residual &residual : residuals)
    result.add(residual.loss + cost, recipeDistance(steps, *residual.steps), residual.similarity);
  return result;
}

MemoryPolicy::MemoryPolicy(Proposer &inner, const LearntMemory &memory) : inner(inner), memory(memory) {}
MemoryPolicy::~MemoryPolicy() = default;

/// The kernel that all of the recipe is about; empty where there are several, or none.
static std::string kernelOf(const Recipe &recipe) {
  std::string kernel = recipe.empty() ? "" : siteKernel(recipe.front().site).str();
  bool one = llvm::all_of(recipe, [&](const Action &action) { return siteKernel(action.site) == kernel; });
  return one ? kernel : "";
}

const MemoryPolicy::Experience *MemoryPolicy::experienceWith(const Recipe &recipe) const {
  std::string kernel = kernelOf(recipe);
  auto it = experiences.find(kernel);
  return kernel.empty() || it == experiences.end() ? nullptr : it->second.get();
}

void MemoryPolicy::observe(const SearchState &state, const Measurement &measurement) {
  inner.observe(state, measurement);
  bool usable = (measurement.correct() || measurement.verdict == Verdict::Predicted) && measurement.time.seconds > 0 &&
                std::isfinite(measurement.time.seconds);
  if (!usable)
    return;
  const Recipe &recipe = state.variant->recipe;
  for (const auto &[kernel, identity] : memory.identities()) {
    double time = std::log2(kernelSeconds(identity, measurement.time));
    if (recipe.empty()) { // comes first
      experiences[kernel] = std::make_unique<Experience>(memory, kernel, time);
      continue;
    }
    Recipe part;
    llvm::copy_if(recipe, std::back_inserter(part), [&](const Action &a) { return siteKernel(a.site) == kernel; });
    auto experience = experiences.find(kernel);
    if (experience == experiences.end() || part.empty() || (part.size() < recipe.size() && identity.launches.empty()))
      continue;
    experience->second->add(part, time, measurement.correct() && measurement.guardrails.empty());
  }
}

/// The kernel's share of the time, were each as fast as it was seen to be.
double MemoryPolicy::shareOf(const Experience &experience) const {
  auto seconds = [](const auto &other) { return other->leastSeconds(); };
  double sum = llvm::sum_of(llvm::map_range(llvm::make_second_range(experiences), seconds), 0.0);
  return memory.launchesAreKnown() ? experience.leastSeconds() / sum : 1;
}

/// What is to be gained of something that is `ahead` by expectation, give or take `sigma` (Mockus 1978, expected
/// improvement).
static double expectedImprovement(double ahead, double sigma) {
  double z = ahead / sigma;
  double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return ahead * std::erfc(-z / std::numbers::sqrt2) / 2 + sigma * density;
}

bool MemoryPolicy::knowsAnything() const {
  return llvm::any_of(memory.identities(), [&](const auto &kernel) { return memory.knowsTrials(kernel.first); });
}

std::vector<size_t> MemoryPolicy::choose(const std::vector<Prospect> &prospects, size_t most) const {
  struct Item {
    const Experience *experience;
    Steps steps;
    Forecast forecast;
    double share;
  };
  std::vector<Item> items;
  for (const Prospect &prospect : prospects) {
    const Experience *experience = experienceWith(prospect.recipe);
    items.push_back(
        {experience, experience ? experience->generalForm(prospect.recipe) : Steps(),
         experience ? experience->forecast(prospect) : Forecast(firstPrior + laterPrior * prospect.rank, priorTrials),
         experience ? shareOf(*experience) : 1});
  }
  std::vector<size_t> chosen;
  while (chosen.size() < most) {
    size_t first = items.size();
    double gain = leastGain;
    for (size_t i = 0; i < items.size(); ++i) {
      if (llvm::is_contained(chosen, i))
        continue;
      const Item &item = items[i];
      double headroom = item.experience ? item.experience->headroom() : firstHeadroom;
      double own = item.share * expectedImprovement(headroom - item.forecast.loss(), deviation * item.forecast.doubt());
      if (own > gain) {
        gain = own;
        first = i;
      }
    }
    if (first == items.size())
      break;
    chosen.push_back(first);
    // What is evaluated beside it should tell something else: as if it were known already.
    double loss = items[first].forecast.loss();
    for (Item &item : items)
      if (item.experience && item.experience == items[first].experience && item.experience->knowsAlike())
        item.forecast.add(loss, recipeDistance(item.steps, items[first].steps), 1);
  }
  return chosen;
}

Recipe MemoryPolicy::tuned(const SearchState &end) const {
  const Experience *experience = experienceWith(end.variant->recipe);
  Recipe best = end.variant->recipe;
  if (!experience || !experience->knowsAlike())
    return best;
  for (unsigned i = 0; i < mostTunings; ++i) {
    Recipe better = best;
    double cost = experience->costOf(best) - worthTuning;
    for (Recipe &other : variationsOf(best, experience->tried()))
      if (double own = experience->costOf(other); own < cost) {
        cost = own;
        better = std::move(other);
      }
    if (better == best)
      break;
    best = std::move(better);
  }
  return best;
}

std::vector<Recipe> MemoryPolicy::variations(const SearchState &end) const {
  const Experience *experience = experienceWith(end.variant->recipe);
  if (!experience || !experience->knowsAlike())
    return {};
  double most = experience->costOf(end.variant->recipe) + worthVarying;
  std::vector<std::pair<double, Recipe>> ranked;
  for (Recipe &other : variationsOf(end.variant->recipe, experience->tried()))
    if (double cost = experience->costOf(other); cost <= most)
      ranked.emplace_back(cost, std::move(other));
  llvm::stable_sort(ranked, llvm::less_first());
  ranked.resize(std::min<size_t>(ranked.size(), mostVariations));
  std::vector<Recipe> result;
  for (auto &[cost, recipe] : ranked)
    result.push_back(std::move(recipe));
  return result;
}
