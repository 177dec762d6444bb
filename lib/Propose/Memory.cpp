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
static constexpr double leastSimilarity = 0.62;
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
/// A log2, and how many for each kernel.
static constexpr double nearTheBest = 0.25;
static constexpr size_t mostNearlyBest = 8;

/// Kernels whose trials are compared among each other.
static constexpr size_t mostAlikeKernels = 32;

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
      found.push_back({&memories[i], similarity});
    }
    std::sort(found.begin(), found.end(), [](const Match &a, const Match &b) {
      return a.similarity != b.similarity ? a.similarity > b.similarity : a.memory < b.memory;
    });
    std::vector<Match> &others = alike[name];
    llvm::copy_if(found, std::back_inserter(others), [](const Match &m) { return !m.memory->trials.empty(); });
    others.resize(std::min(others.size(), mostAlikeKernels));
    llvm::erase_if(found, [](const Match &match) { return match.similarity < leastSimilarity; });
    found.resize(std::min(found.size(), mostMatches));
  }
}

static const std::vector<LearntMemory::Match> &
of(const std::map<std::string, std::vector<LearntMemory::Match>> &matches, const std::string &kernel) {
  static const std::vector<LearntMemory::Match> none;
  auto it = matches.find(kernel);
  return it == matches.end() ? none : it->second;
}

const std::vector<LearntMemory::Match> &LearntMemory::similar(const std::string &kernel) const {
  return of(matches, kernel);
}

const std::vector<LearntMemory::Match> &LearntMemory::mostAlike(const std::string &kernel) const {
  return of(alike, kernel);
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

bool LearntMemory::knowsTrials(const std::string &kernel) const {
  return llvm::any_of(similar(kernel), [](const Match &match) { return !match.memory->trials.empty(); });
}

bool LearntMemory::launchesAreKnown() const {
  return llvm::none_of(kernels, [](const auto &entry) { return entry.second.launches.empty(); });
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
        ranked.emplace_back(-match.similarity / double(1 + i), ranked.size(), &match.memory->lines[i],
                            match.similarity);
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
