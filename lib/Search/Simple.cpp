//===- Simple.cpp - random, greedy and beam search, to compare with -------===//
#include "Session.h"
#include <algorithm>
#include <set>

using namespace optiml;
using namespace optiml::search;

namespace {

/// Independent walks of one to six uniformly chosen legal actions from the original.
class Random : public Searcher {
public:
  explicit Random(Session &session) : session(session) {}

  bool step(unsigned limit) override {
    std::vector<Walk> walks;
    for (unsigned i = 0; i < limit; ++i) {
      auto state =
          std::make_shared<std::tuple<std::mt19937_64, unsigned, unsigned>>(session.pick(~0u), 1 + session.pick(6), 6);
      walks.push_back({session.root,
                       [state](const SearchState &at, bool refused) -> std::optional<Action> {
                         auto &[random, stepsLeft, refusalsLeft] = *state;
                         if (at.legal.empty() || (refused ? refusalsLeft-- == 0 : stepsLeft-- == 0))
                           return std::nullopt;
                         const ActionTemplate &legal = at.legal[random() % at.legal.size()];
                         if (legal.values.empty())
                           return std::nullopt;
                         return Action{legal.transform, legal.site, legal.values[random() % legal.values.size()]};
                       },
                       {}});
    }
    session.walkAll(walks);
    std::vector<Node *> ends;
    std::vector<Path> paths;
    for (const Walk &walk : walks)
      paths.push_back(session.enter(walk, ends.emplace_back()));
    unsigned before = session.statistics.evaluations;
    session.evaluate(ends);
    for (size_t i = 0; i < walks.size(); ++i)
      session.backUp(paths[i], ends[i]);
    // Chance cannot know that everything was seen; a long run of nothing new is taken for it.
    fruitless = session.statistics.evaluations > before ? 0 : fruitless + 1;
    return fruitless < 50;
  }

private:
  Session &session;
  unsigned fruitless = 0;
};

/// Evaluates every neighbour (the first few values at every site) and moves to the best, until none is better.
class Greedy : public Searcher {
public:
  explicit Greedy(Session &session) : session(session), current(session.best) {}

  bool step(unsigned limit) override {
    if (!listed)
      list();
    if (next == neighbours.size())
      return move();
    std::vector<Application> batch;
    for (; batch.size() < limit && next < neighbours.size(); ++next)
      batch.push_back({current, neighbours[next]});
    session.applyAll(batch);
    std::vector<Node *> nodes;
    for (const Application &application : batch)
      if (application.to)
        nodes.push_back(application.to);
    session.evaluate(nodes);
    for (Node *node : nodes) {
      bool clean = node->measured && !node->failed && node->measured->guardrails.empty();
      if (clean && node->measured->reward > (better ? better : current)->measured->reward)
        better = node;
    }
    return true;
  }

private:
  void list() {
    listed = true;
    neighbours.clear();
    next = 0;
    if (current->recipe.size() >= session.mostActions)
      return;
    session.expand(*current);
    for (const SiteEdge &site : current->sites)
      for (unsigned v = 0; v < std::min<size_t>(site.values.size(), std::max(1u, session.settings.screen)); ++v)
        neighbours.push_back(site.action(v));
  }

  bool move() {
    if (!better)
      return false;
    current = better;
    better = nullptr;
    listed = false;
    return true;
  }

  Session &session;
  Node *current, *better = nullptr;
  bool listed = false;
  std::vector<Action> neighbours;
  size_t next = 0;
};

/// Depth by depth: evaluates the neighbours that the proposer likes best of each variant kept, and keeps the best of
/// them.
class Beam : public Searcher {
public:
  explicit Beam(Session &session) : session(session), kept({session.root}) {
    if (session.best != session.root)
      kept.push_back(session.best); // the opening's
    list();
  }

  bool step(unsigned limit) override {
    if (next == neighbours.size() && !descend())
      return false;
    std::vector<Application> batch;
    for (; batch.size() < limit && next < neighbours.size(); ++next)
      batch.push_back(neighbours[next]);
    session.applyAll(batch);
    std::vector<Node *> nodes;
    for (const Application &application : batch)
      if (application.to && std::find(reached.begin(), reached.end(), application.to) == reached.end()) {
        nodes.push_back(application.to);
        reached.push_back(application.to);
      }
    session.evaluate(nodes);
    return true;
  }

private:
  /// In turns, so that a budget that ends within a depth has seen the best choices of every variant.
  void list() {
    neighbours.clear();
    next = 0;
    unsigned width = std::max(1u, session.settings.beamWidth);
    std::vector<std::vector<Action>> choices;
    for (Node *node : kept) {
      std::vector<Action> &own = choices.emplace_back();
      if (node->recipe.size() >= session.mostActions)
        continue;
      session.expand(*node);
      unsigned values = std::max(1u, session.settings.screen);
      for (unsigned v = 0; v < values; ++v)
        for (const SiteEdge &site : node->sites)
          if (v < site.values.size() && own.size() < 4 * width)
            own.push_back(site.action(v));
    }
    for (size_t i = 0; i < 4 * width; ++i)
      for (size_t k = 0; k < kept.size(); ++k)
        if (i < choices[k].size())
          neighbours.push_back({kept[k], choices[k][i]});
  }

  bool descend() {
    std::vector<Node *> alive;
    for (Node *node : reached)
      if (node->measured && !node->failed && node->measured->guardrails.empty() && !visited.count(node))
        alive.push_back(node);
    stableSort(alive, [](const Node *a, const Node *b) { return a->measured->reward > b->measured->reward; });
    alive.resize(std::min<size_t>(alive.size(), std::max(1u, session.settings.beamWidth)));
    visited.insert(alive.begin(), alive.end());
    kept = std::move(alive);
    reached.clear();
    list();
    return !neighbours.empty();
  }

  Session &session;
  std::vector<Node *> kept, reached;
  std::set<const Node *> visited;
  std::vector<Application> neighbours;
  size_t next = 0;
};

} // namespace

std::unique_ptr<Searcher> optiml::search::makeBeam(Session &session) { return std::make_unique<Beam>(session); }
std::unique_ptr<Searcher> optiml::search::makeRandom(Session &session) { return std::make_unique<Random>(session); }
std::unique_ptr<Searcher> optiml::search::makeGreedy(Session &session) { return std::make_unique<Greedy>(session); }
