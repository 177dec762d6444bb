//===- Combination.cpp - the best of every kernel together ----------------===//
#include "Combination.h"
#include "LinePlayer.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;
using namespace optiml::search;

/// A combination is played again when it should take so much less time than the last one; and a kernel whose line saves
/// less than that of the best so far is no part of it: beside what is left of the others, a small kernel may be most.
static constexpr double worthACombination = 0.95, worthAPart = 0.98;

/// What saves so much of what the best of a kernel saves may save more without the launches that it slows down.
static constexpr double nearlyAsGood = 0.8;

/// Of one kernel's launches, in which a part of a combination may not be slower than the original by more.
static constexpr double noSlower = 1.05;

Combination::Combination(Session &session, std::vector<std::string> names)
    : session(session), kernels(std::move(names)), ends(kernels.size()), variants(kernels.size()),
      tried(kernels.size()) {
  session.evaluated = [this](Node &node) {
    for (size_t k = 0; k < kernels.size(); ++k)
      if (this->session.settings.launches.count(kernels[k]) &&
          llvm::any_of(node.recipe, [&](const Action &action) { return isOn(k, action); }))
        variants[k].push_back(&node);
  };
}

void Combination::add(size_t kernel, Node *end) {
  tried[kernel] = true;
  ends[kernel].push_back(end);
}

static double timeOf(const Node &node) { return node.measured->time.seconds; }

double Combination::leastSaved() const { return (1 - worthAPart) * timeOf(*session.best); }

Node *Combination::bestOn(size_t kernel) const {
  Node *best = nullptr;
  for (Node *end : ends[kernel])
    if (end->measured && !end->failed && end->measured->guardrails.empty() &&
        timeOf(*end) < (best ? timeOf(*best) : timeOf(*session.root) - leastSaved()))
      best = end;
  return best;
}

double Combination::secondsOn(size_t kernel, const Node &node) const {
  const Timing &time = node.measured->time;
  auto own = session.settings.launches.find(kernels[kernel]);
  if (own == session.settings.launches.end())
    return time.seconds;
  return launchSeconds(time, own->second).value_or(time.seconds);
}

double Combination::savedOn(size_t kernel, const Node &node) const {
  return secondsOn(kernel, *session.root) - secondsOn(kernel, node);
}

bool Combination::slowsALaunchOf(size_t kernel, const Node &node) const {
  const std::vector<double> &before = session.root->measured->time.perLaunch, &after = node.measured->time.perLaunch;
  auto own = session.settings.launches.find(kernels[kernel]);
  if (own == session.settings.launches.end())
    return true; // of which kernel the launches are that became slower is not known
  return llvm::any_of(own->second, [&](const auto &launch) {
    return launch.first >= before.size() || launch.first >= after.size() ||
           after[launch.first] > noSlower * before[launch.first];
  });
}

std::vector<std::string> Combination::slowedBy(const Node &node) const {
  const Parts leaders = best(/*proven=*/false);
  std::vector<std::string> result;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const double most = leaders[k] ? savedOn(k, *leaders[k]) : leastSaved();
    if (session.settings.launches.count(kernels[k]) && slowsALaunchOf(k, node) &&
        savedOn(k, node) > nearlyAsGood * most)
      result.push_back(kernels[k]);
  }
  return result;
}

Recipe Combination::partOn(size_t kernel, const Node &node) const {
  Recipe part;
  llvm::copy_if(node.recipe, std::back_inserter(part), [&](const Action &action) { return isOn(kernel, action); });
  return part;
}

Combination::Parts Combination::best(bool proven) const {
  Parts result(kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) {
    double most = proven ? 0 : leastSaved();
    for (const std::vector<Node *> *nodes : {&ends[k], &variants[k]})
      for (const Node *node : *nodes) {
        const bool usable = proven ? node->isConfirmed()
                                   : node->measured && !node->failed &&
                                         (node->measured->guardrails.empty() || !slowsALaunchOf(k, *node));
        if (usable && savedOn(k, *node) > most) {
          most = savedOn(k, *node);
          result[k] = node;
        }
      }
  }
  return result;
}

void Combination::playIfBetter() {
  const bool hasFailed = end && end->failed;
  if (hasFailed)
    played = HUGE_VAL;
  const Parts parts = best(hasFailed);
  if (secondsOf(parts) < worthACombination * std::min(played, timeOf(*session.best)))
    play(parts, /*canWait=*/session.settings.firstTogether > 1);
}

std::optional<Job> Combination::take() {
  std::optional<Waiting> last = std::exchange(waiting, std::nullopt);
  if (!last)
    return std::nullopt;
  return Job{{last->end, nullptr, {}}, std::move(last->path)};
}

void Combination::evaluateWaiting() {
  if (std::optional<Job> last = take())
    session.run({std::move(*last)});
}

void Combination::finish() {
  if (session.isFlowing()) // the last lines may still be under way
    return playIfBetter();
  evaluateWaiting();
  const Parts parts = best(/*proven=*/false);
  if (secondsOf(parts) < played)
    play(parts, /*canWait=*/false);
  if (!end || !end->isConfirmed())
    play(best(/*proven=*/true), /*canWait=*/false);
}

double Combination::secondsOf(const Parts &parts) const {
  double seconds = timeOf(*session.root);
  for (size_t k = 0; k < parts.size(); ++k)
    if (parts[k])
      seconds -= savedOn(k, *parts[k]);
  return seconds;
}

void Combination::play(const Parts &parts, bool canWait) {
  Recipe together;
  unsigned count = 0;
  for (size_t k = 0; k < parts.size(); ++k)
    if (parts[k]) {
      const Recipe part = partOn(k, *parts[k]);
      together.insert(together.end(), part.begin(), part.end());
      ++count;
    }
  if (count < 2 || session.stopReason() || !known.insert(recipeText(together)).second)
    return;
  played = secondsOf(parts);
  std::vector<Walk> walks = {replayOf(session, together)};
  session.walkAll(walks);
  if (walks[0].steps.empty())
    return;
  evaluateWaiting();
  Path path = session.enter(walks[0], end);
  waiting = Waiting{end, std::move(path)};
  if (!canWait)
    evaluateWaiting();
}
