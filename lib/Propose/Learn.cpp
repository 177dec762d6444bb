//===- Learn.cpp - from a finished search to what it teaches --------------===//
#include "optiml/Propose/Learn.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cmath>
#include <ctime>
#include <tuple>

using namespace optiml;

/// A recipe is remembered as a line when it is this much faster than the original, and than the best.
static constexpr double worthALine = 1.05, nearTheBest = 0.7;
static constexpr size_t mostLines = 3;
/// Of one kernel; those that were evaluated first, which is where the next search begins, too.
static constexpr size_t mostTrials = 200;
/// How much worse than to leave the kernel alone it is to evaluate what is rejected, as a log2.
static constexpr double rejection = 1;

double optiml::kernelSeconds(const KernelIdentity &kernel, const Timing &time) {
  const double seconds = launchSeconds(time, kernel.launches).value_or(0);
  return seconds > 0 ? seconds : time.seconds;
}

static bool ran(const Measurement &m) {
  return (m.verdict == Verdict::Correct || m.verdict == Verdict::Predicted) && m.time.seconds > 0 &&
         std::isfinite(m.time.seconds);
}

namespace {

/// Sums up the evidence for one lesson.
struct Evidence {
  double weight = 0, ranWeight = 0, gainSum = 0, rejected = 0;
  std::map<std::string, double> reasons;
};

class Learner {
public:
  Learner(const KernelIdentities &kernels, const std::vector<TriedRecipe> &tried) : kernels(kernels) {
    for (const TriedRecipe &t : tried)
      if (ran(t.measurement))
        known.emplace(recipeText(t.recipe), &t.measurement);
    for (const TriedRecipe &t : tried)
      if (!t.recipe.empty())
        addRecipe(t);
  }

  std::vector<Lesson> lessonsOf(const std::string &kernel) const;
  std::optional<LearntLine> lineOf(const std::string &kernel, const TriedRecipe &winner) const;
  std::vector<LearntTrial> trialsOf(const std::string &kernel, const std::vector<TriedRecipe> &tried) const;

private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, Params>; // kernel, bottleneck, …
  void addRecipe(const TriedRecipe &tried);
  std::string roleOf(const Action &action, const std::string &kernel) const {
    return siteRole(action.site, kernel, kernels.at(kernel).names);
  }
  double gainOf(const std::string &kernel, const std::string &transform) const;

  const KernelIdentities &kernels;
  std::map<std::string, const Measurement *> known;
  std::map<Key, Evidence> evidence;
};

void Learner::addRecipe(const TriedRecipe &tried) {
  if (tried.measurement.verdict == Verdict::Timeout)
    return; // says more about the load of the machine than about the recipe
  const Measurement *before = nullptr;
  size_t kept = tried.recipe.size();
  while (!before && kept-- > 0) {
    auto it = known.find(recipeText(Recipe(tried.recipe.begin(), tried.recipe.begin() + kept)));
    before = it == known.end() ? nullptr : it->second;
  }
  if (!before)
    return;
  const Measurement &after = tried.measurement;
  double share = 1.0 / double(tried.recipe.size() - kept), gain = 0;
  double weight = share;
  if (ran(after)) {
    gain = std::log2(before->time.seconds / after.time.seconds);
    if (!after.guardrails.empty())
      gain = std::min(gain, 0.0);
    // Faster, but nobody has looked whether it is right.
    if (gain > 0 && after.verdict == Verdict::Predicted)
      weight /= 2;
  }
  for (size_t i = kept; i < tried.recipe.size(); ++i) {
    const Action &action = tried.recipe[i];
    std::string kernel = siteKernel(action.site).str();
    if (!kernels.count(kernel))
      continue;
    Evidence &e = evidence[{kernel, before->bottleneck, action.transform, roleOf(action, kernel), action.params}];
    e.weight += weight;
    if (ran(after)) {
      e.ranWeight += weight;
      e.gainSum += weight * share * gain;
    } else {
      e.rejected += weight;
      e.reasons[verdictName(after.verdict)] += weight;
    }
  }
}

std::vector<Lesson> Learner::lessonsOf(const std::string &kernel) const {
  std::vector<Lesson> lessons;
  for (const auto &[key, e] : evidence) {
    const auto &[owner, bottleneck, transform, role, params] = key;
    if (owner != kernel)
      continue;
    double gain = e.ranWeight > 0 ? e.gainSum / e.ranWeight : 0;
    lessons.push_back({bottleneck, transform, role, params, e.weight, gain, std::min(e.rejected, e.weight), e.reasons});
  }
  return lessons;
}

/// The mean gain of a transform on a kernel, whatever its parameters and place.
double Learner::gainOf(const std::string &kernel, const std::string &transform) const {
  double sum = 0, weight = 0;
  for (const auto &[key, e] : evidence)
    if (std::get<0>(key) == kernel && std::get<2>(key) == transform) {
      sum += e.gainSum;
      weight += e.ranWeight;
    }
  return weight > 0 ? sum / weight : 0;
}

/// The winner's steps on `kernel`. The one that gained most is what the line is about: without it, it is not played.
std::optional<LearntLine> Learner::lineOf(const std::string &kernel, const TriedRecipe &winner) const {
  LearntLine result;
  result.line.name = "from memory";
  const Timing &time = winner.measurement.time;
  result.speedup = time.baseline / time.seconds;
  size_t main = 0;
  double most = -HUGE_VAL;
  for (const Action &action : winner.recipe) {
    if (siteKernel(action.site) != kernel)
      continue;
    OpeningStep step;
    step.transform = action.transform;
    step.siteGlob = roleOf(action, kernel);
    if (!action.params.empty())
      step.preferences.push_back(action.params);
    if (double gain = gainOf(kernel, action.transform); gain > most) {
      most = gain;
      main = result.line.steps.size();
    }
    result.line.steps.push_back(std::move(step));
  }
  if (result.line.steps.empty())
    return std::nullopt;
  result.line.steps[main].required = true;
  return result;
}

/// Of the recipes that are about `kernel`, what its part of them lost against the best. What is wrong with one that is
/// also about other kernels may be wrong with those.
std::vector<LearntTrial> Learner::trialsOf(const std::string &kernel, const std::vector<TriedRecipe> &tried) const {
  const KernelIdentity &identity = kernels.at(kernel);
  std::vector<std::pair<LearntTrial, double>> own; // and log2 of its seconds; infinite: it is no good
  double original = 0, best = HUGE_VAL;
  for (const TriedRecipe &t : tried) {
    LearntTrial trial;
    for (const Action &action : t.recipe)
      if (siteKernel(action.site) == kernel)
        trial.steps.push_back({action.transform, roleOf(action, kernel), action.params});
    bool alone = trial.steps.size() == t.recipe.size();
    bool good = ran(t.measurement) && t.measurement.guardrails.empty();
    if (t.measurement.verdict == Verdict::Timeout || own.size() == mostTrials ||
        (!alone && (trial.steps.empty() || identity.launches.empty() || !good)))
      continue;
    double time = ran(t.measurement) ? std::log2(kernelSeconds(identity, t.measurement.time)) : HUGE_VAL;
    if (t.recipe.empty())
      original = time;
    if ((t.measurement.correct() && good) || t.recipe.empty())
      best = std::min(best, time);
    own.emplace_back(std::move(trial), good ? time : HUGE_VAL);
  }
  std::vector<LearntTrial> trials;
  for (auto &[trial, time] : own) {
    trial.loss = (std::isfinite(time) ? time : original + rejection) - best;
    trials.push_back(std::move(trial));
  }
  return trials;
}

/// The same transforms on the same kinds of places, with other parameters at most.
bool sameShape(const OpeningLine &a, const OpeningLine &b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const OpeningStep &x, const OpeningStep &y) {
                      return x.transform == y.transform && x.siteGlob == y.siteGlob;
                    });
}

} // namespace

std::vector<KernelMemory> optiml::learn(const KernelIdentities &kernels, const MemoryOrigin &origin,
                                        const std::vector<TriedRecipe> &tried,
                                        const std::vector<TriedRecipe> &winners) {
  auto original = std::find_if(tried.begin(), tried.end(), [](const TriedRecipe &t) { return t.recipe.empty(); });
  if (original == tried.end() || !ran(original->measurement))
    return {};
  Learner learner(kernels, tried);
  std::vector<KernelMemory> memories;
  for (const auto &[name, identity] : kernels) {
    KernelMemory memory;
    memory.source = origin.source;
    memory.gpu = origin.gpu;
    memory.backend = origin.backend;
    memory.bottleneck = original->measurement.bottleneck;
    memory.features = identity.features;
    memory.time = std::time(nullptr);
    memory.lessons = learner.lessonsOf(name);
    memory.trials = learner.trialsOf(name, tried);
    double best = 0;
    for (const TriedRecipe &winner : winners) {
      if (!winner.measurement.correct() || !ran(winner.measurement) || !winner.measurement.guardrails.empty())
        continue;
      auto line = learner.lineOf(name, winner);
      if (!line || line->speedup < worthALine || memory.lines.size() == mostLines)
        continue;
      best = std::max(best, line->speedup);
      bool isNew = std::none_of(memory.lines.begin(), memory.lines.end(),
                                [&](const LearntLine &l) { return sameShape(l.line, line->line); });
      if (isNew && line->speedup >= nearTheBest * best)
        memory.lines.push_back(std::move(*line));
    }
    if (!memory.lessons.empty())
      memories.push_back(std::move(memory));
  }
  return memories;
}
