//===- Neighbours.cpp - the best with one detail changed ------------------===//
#include "Neighbours.h"
#include "LinePlayer.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;
using namespace optiml::search;

/// Of each action, so many other values.
static constexpr size_t mostValues = 6;

/// The action's other values where it was taken, the nearest in the site's own order first.
static std::vector<Params> othersOf(const Node &before, const Action &action) {
  for (const ActionTemplate &legal : before.state.legal.of(action.transform)) {
    auto own = llvm::find(legal.values, action.params);
    if (legal.site != action.site || own == legal.values.end())
      continue;
    std::vector<Params> others;
    for (auto low = own, high = own + 1; others.size() < mostValues;) {
      const bool hasLow = low != legal.values.begin(), hasHigh = high != legal.values.end();
      if (!hasLow && !hasHigh)
        break;
      if (hasHigh)
        others.push_back(*high++);
      if (hasLow)
        others.push_back(*--low);
    }
    return others;
  }
  return {};
}

void Neighbours::lookAround(Node &best) {
  around = &best;
  waiting.clear();
  std::vector<std::vector<Params>> others;
  Node *node = session.root;
  for (const Action &action : best.recipe) {
    others.push_back(othersOf(*node, action));
    ValueEdge *edge = Graph::find(*node, action);
    if (!edge || !edge->child)
      break;
    node = edge->child;
  }
  for (size_t rank = 0; rank <= mostValues; ++rank)
    for (size_t i = 0; i < others.size(); ++i)
      if (rank < others[i].size()) {
        waiting.push_back(best.recipe);
        waiting.back()[i].params = others[i][rank];
      }
}

std::vector<Job> Neighbours::next(size_t most) {
  if (session.best != around)
    lookAround(*session.best);
  std::vector<Job> jobs;
  while (!waiting.empty() && jobs.size() < most) {
    if (known.insert(recipeText(waiting.front())).second)
      jobs.push_back({replayOf(session, std::move(waiting.front()))});
    waiting.pop_front();
  }
  return jobs;
}
