//===- Combination.cpp - the best of every kernel together ----------------===//
#include "Combination.h"
#include "LinePlayer.h"

using namespace optiml;
using namespace optiml::search;

/// A combination is played again when it should take so much less time than the last one; and a kernel whose line saves
/// less of the whole is no part of it.
static constexpr double worthACombination = 0.95, worthAPart = 0.98;

void Combination::add(size_t kernel, Node *end) {
  tried[kernel] = true;
  ends[kernel].push_back(end);
}

Node *Combination::bestOn(size_t kernel) const {
  Node *best = nullptr;
  for (Node *end : ends[kernel])
    if (end->measured && !end->failed && end->measured->guardrails.empty() &&
        secondsOf(end) < (best ? secondsOf(best) : worthAPart * secondsOf(nullptr)))
      best = end;
  return best;
}

/// By kernel; null: the original.
std::vector<Node *> Combination::best() const {
  std::vector<Node *> result;
  for (size_t kernel = 0; kernel < ends.size(); ++kernel)
    result.push_back(bestOn(kernel));
  return result;
}

std::vector<Node *> Combination::proven() const {
  std::vector<Node *> result;
  for (const std::vector<Node *> &own : ends) {
    Node *best = nullptr;
    for (Node *end : own)
      if (end->isConfirmed() && secondsOf(end) < secondsOf(best))
        best = end;
    result.push_back(best);
  }
  return result;
}

void Combination::playIfBetter() {
  if (end && end->failed)
    played = HUGE_VAL;
  const std::vector<Node *> lines = best();
  if (secondsOf(lines) < worthACombination * played)
    play(lines, /*canWait=*/session.settings.firstTogether > 1);
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
  const std::vector<Node *> lines = best();
  if (secondsOf(lines) < played)
    play(lines, /*canWait=*/false);
  if (!end || !end->isConfirmed())
    play(proven(), /*canWait=*/false);
}

double Combination::secondsOf(const std::vector<Node *> &lines) const {
  double seconds = secondsOf(nullptr);
  for (const Node *node : lines)
    seconds -= secondsOf(nullptr) - secondsOf(node);
  return seconds;
}

void Combination::play(const std::vector<Node *> &lines, bool canWait) {
  Recipe together;
  unsigned parts = 0;
  for (const Node *node : lines)
    if (node) {
      together.insert(together.end(), node->recipe.begin(), node->recipe.end());
      ++parts;
    }
  if (parts < 2 || together == recipe || session.stopReason())
    return;
  recipe = together;
  played = secondsOf(lines);
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
