//===- Memory.cpp - earlier searches guide this one -----------------------===//
#include "optiml/Propose/Memory.h"
#include "Forecast.h"
#include "Similarity.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

using namespace optiml;

/// Kernels that are less alike have nothing to say to each other.
static constexpr double leastSimilarity = 0.6;
static constexpr size_t mostMatches = 8;
/// What was learnt on another GPU, or from predictions where this search measures (or the other way round).
static constexpr double otherGpu = 0.9, otherBackend = 0.85;
/// Evaluations that speak for "no effect" before anything is known.
static constexpr double shrinkage = 2;
/// How much of a lesson holds against another bottleneck, at another kind of place, with other parameters.
static constexpr double otherBottleneck = 0.3, otherRole = 0.3, otherParams = 0.4;
/// Of a log2: a memory hurries or delays a search, it does not decide it.
static constexpr double mostGain = 3;
static constexpr size_t mostLines = 4;
/// From here on a kernel counts as one that comes back: in another style, with other sizes. Of one that is only alike fewer
/// recipes are tried, for it is more often the book that has the right one.
static constexpr double sameSimilarity = 0.8;
static constexpr unsigned mostAlike = 2;

/// Of a recipe of the book: how much slower than the best it is, in log2, where nothing is known of it; those that come
/// later are a little less likely to be good. So much is that worth in trials of the same recipe on the same kernel.
static constexpr double firstPrior = 1, laterPrior = 0.01, priorTrials = 0.2;

/// A log2, and how many for each kernel.
static constexpr double nearTheBest = 0.25;
static constexpr size_t mostNearlyBest = 8;

/// What differs little from a recipe that was tried will fare like it, and tells nothing new: so much later it comes,
/// in log2, and so soon that fades with their distance.
static constexpr double novelty = 0.5, variation = 1;
/// How far the best that a search has seen is taken to be from what it will find, as a log2.
static constexpr double headroom = 0.5;

LearntMemory::LearntMemory(std::vector<KernelMemory> given, KernelIdentities identities, const MemoryOrigin &here)
    : memories(std::move(given)), kernels(std::move(identities)) {
  std::sort(memories.begin(), memories.end(), [](const KernelMemory &a, const KernelMemory &b) {
    return std::pair(a.source, a.features.key()) < std::pair(b.source, b.features.key());
  });
  SimilarityIndex index(memories);
  for (const auto &[name, identity] : kernels) {
    std::vector<Match> &found = matches[name];
    for (size_t i = 0; i < memories.size(); ++i) {
      double similarity = index.similarity(identity.features, i);
      similarity *= memories[i].gpu == here.gpu ? 1 : otherGpu;
      similarity *= memories[i].backend == here.backend ? 1 : otherBackend;
      if (similarity >= leastSimilarity)
        found.push_back({&memories[i], similarity});
    }
    std::sort(found.begin(), found.end(), [](const Match &a, const Match &b) {
      return a.similarity != b.similarity ? a.similarity > b.similarity : a.memory < b.memory;
    });
    found.resize(std::min(found.size(), mostMatches));
  }
}

const std::vector<LearntMemory::Match> &LearntMemory::similar(const std::string &kernel) const {
  static const std::vector<Match> none;
  auto it = matches.find(kernel);
  return it == matches.end() ? none : it->second;
}

LearntMemory::Expectation LearntMemory::expect(const Action &action, const std::string &bottleneck) const {
  std::string kernel = siteKernel(action.site).str();
  auto identity = kernels.find(kernel);
  const std::vector<Match> &known = similar(kernel);
  if (identity == kernels.end() || known.empty())
    return {};
  std::string role = siteRole(action.site, kernel, identity->second.names);
  double weight = 0, sum = 0;
  for (const Match &match : known)
    for (const Lesson &lesson : match.memory->lessons) {
      if (lesson.transform != action.transform || !(lesson.weight > 0))
        continue;
      double share = std::pow(match.similarity, 3) * lesson.weight;
      share *= lesson.bottleneck == bottleneck ? 1 : otherBottleneck;
      share *= lesson.role == role ? 1 : otherRole;
      share *= lesson.params == action.params ? 1 : otherParams;
      // What was rejected cost an evaluation and gave nothing: as bad as twice the time.
      double lost = lesson.rejected / lesson.weight;
      weight += share;
      sum += share * ((1 - lost) * lesson.gain - lost);
    }
  return {std::clamp(sum / (weight + shrinkage), -mostGain, mostGain), weight};
}

double LearntMemory::expectedLoss(const std::string &kernel, const std::vector<LearntTrial::Step> &recipe,
                                  const std::vector<LearntTrial> &own, double prior) const {
  Forecast forecast(prior, priorTrials);
  for (const Match &match : similar(kernel))
    for (const LearntTrial &trial : match.memory->trials)
      forecast.add(recipe, trial, match.similarity);
  double known = 0;
  for (const LearntTrial &trial : own) {
    forecast.add(recipe, trial, 1);
    known = std::max(known, std::exp(-variation * recipeDistance(recipe, trial.steps)));
  }
  return forecast.loss() + novelty * known;
}

bool LearntMemory::knowsTrials() const {
  return llvm::any_of(matches, [](const auto &entry) {
    return llvm::any_of(entry.second, [](const Match &match) { return !match.memory->trials.empty(); });
  });
}

std::vector<LearntTrial::Step> LearntMemory::generalForm(const Recipe &recipe, const std::string &kernel) const {
  std::vector<LearntTrial::Step> steps;
  auto identity = kernels.find(kernel);
  for (const Action &action : recipe)
    steps.push_back({action.transform,
                     identity == kernels.end() ? "" : siteRole(action.site, kernel, identity->second.names),
                     action.params});
  return steps;
}

std::vector<LearntMemory::Line> LearntMemory::lines() const {
  std::vector<Line> result;
  for (const auto &[kernel, known] : matches) {
    // What the most similar kernel liked best, then what the next one liked best, and so on.
    std::vector<std::tuple<double, size_t, const LearntLine *, double>> ranked;
    for (const Match &match : known)
      for (size_t i = 0; i < match.memory->lines.size(); ++i)
        ranked.emplace_back(-match.similarity / double(1 + i), ranked.size(), &match.memory->lines[i], match.similarity);
    std::sort(ranked.begin(), ranked.end());
    ranked.resize(std::min(ranked.size(), mostLines));
    for (unsigned i = 0; i < ranked.size(); ++i) {
      result.push_back({std::get<2>(ranked[i])->line, std::get<3>(ranked[i]), i});
      result.back().line.kernel = kernel;
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const Line &a, const Line &b) { return a.rank < b.rank; });
  return result;
}

/// The kernel that taught the line may have needed no preparation that this one needs: first whatever of it applies.
static void prepare(OpeningLine &line) {
  std::vector<OpeningStep> first;
  for (llvm::StringRef transform : preparations)
    if (llvm::none_of(line.steps, [&](const OpeningStep &step) { return step.transform == transform; }))
      first.push_back({transform.str()});
  line.steps.insert(line.steps.begin(), first.begin(), first.end());
}

static OpeningLine lineOf(const std::vector<LearntTrial::Step> &steps, const std::string &kernel) {
  OpeningLine line{"from memory", {}, kernel};
  for (const LearntTrial::Step &step : steps) {
    line.steps.push_back({step.transform, step.role});
    if (!step.params.empty())
      line.steps.back().preferences.push_back(step.params);
    line.steps.back().required = isMajor(step.transform);
  }
  return line;
}

std::vector<OpeningLine> LearntMemory::nearlyBest() const {
  std::vector<OpeningLine> result;
  for (const auto &[kernel, known] : matches) {
    std::vector<std::tuple<double, size_t, const LearntTrial *>> ranked;
    for (const Match &match : known)
      for (const LearntTrial &trial : match.memory->trials)
        if (!trial.steps.empty() && trial.loss <= nearTheBest)
          ranked.emplace_back(trial.loss - std::log2(match.similarity), ranked.size(), &trial);
    std::sort(ranked.begin(), ranked.end());
    std::set<std::vector<LearntTrial::Step>> chosen;
    auto choose = [&](const std::vector<LearntTrial::Step> &steps) {
      if (!steps.empty() && chosen.size() < mostNearlyBest && chosen.insert(steps).second)
        result.push_back(lineOf(steps, kernel));
    };
    for (const auto &[rank, number, trial] : ranked) {
      choose(trial->steps);
      // How it is best trimmed differs from kernel to kernel more than what it rests on.
      std::vector<LearntTrial::Step> bare;
      llvm::copy_if(trial->steps, std::back_inserter(bare),
                    [](const LearntTrial::Step &s) { return isMajor(s.transform); });
      choose(bare);
    }
  }
  return result;
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
  std::vector<std::pair<double, size_t>> order; // falling priors; equal ones keep the other proposer's order
  for (Proposal &proposal : *proposals) {
    LearntMemory::Expectation expected = memory.expect(proposal.action, bottleneck);
    if (expected.weight > 0) {
      proposal.prior *= std::exp2(expected.gain);
      proposal.reason += experience(expected);
    }
    order.emplace_back(-proposal.prior, order.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<Proposal> result;
  for (const auto &[prior, number] : order)
    result.push_back(std::move((*proposals)[number]));
  return result;
}

/// On the same kernel.
static bool sameSteps(const OpeningLine &a, const OpeningLine &b) {
  return a.kernel == b.kernel && std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                                            [](const OpeningStep &x, const OpeningStep &y) {
                                              return x.transform == y.transform && x.siteGlob == y.siteGlob &&
                                                     x.preferences == y.preferences;
                                            });
}

std::vector<OpeningLine> MemoryPolicy::openingBook(const SearchState &root) {
  std::vector<OpeningLine> rest = inner.openingBook(root), book;
  std::vector<LearntMemory::Line> lines = memory.lines();
  // A kernel that comes back: its recipes by turns with the book's, which is often as good. Of one that is only alike, after it.
  size_t played = 0;
  for (unsigned rank = 0; rank < mostLines; ++rank) {
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
    if (llvm::none_of(book, [&](const OpeningLine &other) { return sameSteps(line, other); }))
      book.push_back(std::move(line));
  for (OpeningLine &line : book)
    if (!line.kernel.empty())
      prepare(line);
  return book;
}

std::string MemoryPolicy::kernelOf(const Recipe &recipe) {
  std::string kernel = recipe.empty() ? "" : siteKernel(recipe.front().site).str();
  bool one = llvm::all_of(recipe, [&](const Action &action) { return siteKernel(action.site) == kernel; });
  return one ? kernel : "";
}

std::vector<double> MemoryPolicy::expectedLosses(const std::vector<Recipe> &recipes) const {
  std::vector<double> losses;
  if (!memory.knowsTrials())
    return losses;
  double prior = firstPrior;
  for (const Recipe &recipe : recipes) {
    std::string kernel = kernelOf(recipe);
    std::vector<LearntTrial> own;
    if (auto tried = seen.find(kernel); tried != seen.end())
      for (LearntTrial trial : tried->second.trials) {
        trial.loss += headroom - tried->second.best;
        own.push_back(std::move(trial));
      }
    losses.push_back(memory.expectedLoss(kernel, memory.generalForm(recipe, kernel), own, prior));
    prior += laterPrior;
  }
  return losses;
}

void MemoryPolicy::observe(const SearchState &state, const Measurement &measurement) {
  inner.observe(state, measurement);
  bool usable = (measurement.correct() || measurement.verdict == Verdict::Predicted) && measurement.time.seconds > 0 &&
                std::isfinite(measurement.time.seconds);
  const Recipe &recipe = state.variant->recipe;
  std::string kernel = kernelOf(recipe);
  if (!usable || (kernel.empty() && !recipe.empty()))
    return;
  double time = std::log2(measurement.time.seconds);
  if (recipe.empty()) { // comes first
    original = time;
    return;
  }
  Seen &here = seen.try_emplace(kernel, Seen{{}, original}).first->second;
  if (measurement.correct() && measurement.guardrails.empty())
    here.best = std::min(here.best, time);
  here.trials.push_back({memory.generalForm(recipe, kernel), time});
}
