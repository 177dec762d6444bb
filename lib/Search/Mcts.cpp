//===- Mcts.cpp - PUCT over the graph of variants -------------------------===//
//
// One batch: select leaves one after the other (each selection sees the ones before it as virtual visits), apply their
// actions, let the model rank parameter values where a choice is new, walk some of them further, evaluate, back up.
// Every other evaluation is of a neighbour of the best, while there are any.
//
//===----------------------------------------------------------------------===//
#include "Neighbours.h"
#include "Session.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace optiml;
using namespace optiml::search;

/// What is only a step on the way is walked on from.
static constexpr unsigned stepsFromSketch = 2;

namespace {

/// What one selection asks for.
struct Item {
  Path path;                       ///< from the root to `node`
  Node *node = nullptr;            ///< where the new edge leaves, or the leaf itself
  SiteEdge *site = nullptr;        ///< null: evaluate `node`
  std::vector<ValueEdge *> values; ///< one, or several to be ranked
  unsigned extraSteps = 0;         ///< to walk before the evaluation
  uint64_t walkSeed = 0;
  Node *leaf = nullptr; ///< found out: what to evaluate
};

class Mcts : public Searcher {
public:
  explicit Mcts(Session &session) : session(session), neighbours(session) {}
  bool step(unsigned limit) override;

private:
  bool select(Item &item);
  bool isAvailable(const ValueEdge &value, const std::set<const Node *> &onPath) const;
  SiteEdge *chooseSite(Node &node, const std::set<const Node *> &onPath);
  ValueEdge *chooseValue(Node &node, SiteEdge &site, const std::set<const Node *> &onPath);
  double normalized(double reward) const;
  double quality(const Node *child, double fallback) const;
  void closeOff(Node &node);
  void applyItems(std::vector<Item> &items);
  void rankValues(std::vector<Item> &items);
  Walk::Next walkFrom(const Item &item);

  Session &session;
  Neighbours neighbours;
  bool isNeighboursTurn = true;   ///< of one evaluation that is left over
  std::set<const Node *> blocked; ///< nothing below can be selected in this batch
};

} // namespace

double Mcts::normalized(double reward) const {
  // One disastrous variant must not make all others look alike: what is twice as slow as the original is bad enough.
  double low = std::max(session.lowest, session.root->measured->reward - 1), high = session.highest;
  return high > low ? std::clamp((reward - low) / (high - low), 0.0, 1.0) : 0.5;
}

double Mcts::quality(const Node *child, double fallback) const {
  return child && child->best ? normalized(*child->best) : fallback;
}

bool Mcts::isAvailable(const ValueEdge &value, const std::set<const Node *> &onPath) const {
  if (value.dead || value.pending)
    return false;
  const Node *child = value.child;
  if (!child)
    return true;
  bool done = child->failed || (child->exhausted && child->measured);
  return !done && !child->pending && !blocked.count(child) && !onPath.count(child);
}

SiteEdge *Mcts::chooseSite(Node &node, const std::set<const Node *> &onPath) {
  unsigned open = 2 + unsigned(std::sqrt(double(node.visits)));
  double own = normalized(node.measured ? node.measured->reward : session.root->measured->reward);
  SiteEdge *chosen = nullptr;
  double bestScore = 0;
  for (SiteEdge &site : node.sites) {
    bool available = false;
    // Optimistic: the best of the site's values, or the node's own reward where none was tried.
    double q = -1;
    for (const auto &value : site.values) {
      available |= isAvailable(*value, onPath);
      q = std::max(q, quality(value->child, -1));
    }
    if (!available)
      continue;
    double explore = session.settings.exploration * site.prior * std::sqrt(double(node.visits + 1)) / (1 + site.visits);
    double score = (q < 0 ? own : q) + explore;
    if (!chosen || score > bestScore) {
      chosen = &site;
      bestScore = score;
    }
    if (--open == 0)
      break;
  }
  return chosen;
}

ValueEdge *Mcts::chooseValue(Node &node, SiteEdge &site, const std::set<const Node *> &onPath) {
  unsigned open = 1 + unsigned(std::sqrt(double(site.visits)));
  double own = normalized(node.measured ? node.measured->reward : session.root->measured->reward);
  ValueEdge *chosen = nullptr;
  double bestScore = 0;
  for (size_t rank = 0; rank < site.values.size(); ++rank) {
    ValueEdge &value = *site.values[rank];
    if (!isAvailable(value, onPath))
      continue;
    double prior = 1.0 / (1 + double(rank));
    double score = quality(value.child, own) +
                   session.settings.exploration * prior * std::sqrt(double(site.visits + 1)) / (1 + value.visits);
    if (!chosen || score > bestScore) {
      chosen = &value;
      bestScore = score;
    }
    if (--open == 0)
      break;
  }
  return chosen;
}

/// Marks a node at which nothing could be chosen: for good when nothing is left, else for this batch.
void Mcts::closeOff(Node &node) {
  bool waiting = false;
  for (const SiteEdge &site : node.sites)
    for (const auto &value : site.values) {
      const Node *child = value->child;
      waiting |= !value->dead && (!child || !(child->failed || (child->exhausted && child->measured)));
    }
  if (waiting && node.recipe.size() < session.mostActions)
    blocked.insert(&node);
  else
    node.exhausted = true;
}

bool Mcts::select(Item &item) {
  while (true) {
    item.path.clear();
    std::set<const Node *> onPath;
    Node *node = session.root;
    while (true) {
      onPath.insert(node);
      SiteEdge *site = nullptr;
      if (node->recipe.size() < session.mostActions && item.path.size() < session.mostActions) {
        session.expand(*node);
        site = chooseSite(*node, onPath);
      }
      if (!site) {
        closeOff(*node);
        if (!node->measured && !node->pending) {
          item.node = node; // an end that was only passed through
          return true;
        }
        blocked.insert(node);
        break;
      }
      ValueEdge *value = chooseValue(*node, *site, onPath);
      Node *child = value->child;
      if (!child) {
        item.node = node;
        item.site = site;
        if (!site->screened && session.settings.screen >= 2) {
          for (const auto &candidate : site->values)
            if (isAvailable(*candidate, onPath) && item.values.size() < session.settings.screen)
              item.values.push_back(candidate.get());
          site->screened = true;
        } else {
          item.values.push_back(value);
        }
        return true;
      }
      item.path.push_back({node, site, value});
      // What was only passed through is evaluated itself once it has proven interesting.
      if (!child->measured && (child->visits == 0 || child->visits >= 3)) {
        item.node = child;
        return true;
      }
      node = child;
    }
    if (blocked.count(session.root))
      return false;
  }
}

static void countVirtual(const Item &item, int by) {
  for (const PathStep &step : item.path) {
    step.node->visits += by;
    step.site->visits += by;
    step.value->visits += by;
  }
  item.node->visits += by;
  if (item.site) {
    item.site->visits += by;
    for (ValueEdge *value : item.values)
      value->pending = by > 0;
  } else {
    item.node->pending = by > 0;
  }
}

void Mcts::applyItems(std::vector<Item> &items) {
  std::vector<Application> applications;
  std::vector<ValueEdge *> edges;
  for (Item &item : items)
    for (ValueEdge *value : item.values)
      if (!value->child) {
        applications.push_back({item.node, {item.site->transform, item.site->site, value->params}});
        edges.push_back(value);
      }
  session.applyAll(applications);
  for (size_t i = 0; i < applications.size(); ++i) {
    edges[i]->child = applications[i].to;
    edges[i]->dead = applications[i].refused || applications[i].to == applications[i].from;
  }
}

/// What is known of a value's time; what failed or was not tried comes last.
static double predicted(const ValueEdge &value) {
  const Node *child = value.child;
  if (!child || value.dead || child->failed)
    return HUGE_VAL;
  if (child->measured)
    return child->measured->time.seconds;
  return child->modelled ? child->modelled->time.seconds : HUGE_VAL;
}

/// Where several values of one choice are new, orders them by predicted time.
void Mcts::rankValues(std::vector<Item> &items) {
  std::vector<Node *> nodes;
  for (Item &item : items)
    if (item.values.size() > 1)
      for (ValueEdge *value : item.values)
        if (value->child && !value->dead)
          nodes.push_back(value->child);
  session.model(nodes);
  for (Item &item : items) {
    if (item.values.size() > 1) {
      stableSort(item.site->values, [](const auto &a, const auto &b) { return predicted(*a) < predicted(*b); });
      stableSort(item.values, [](const ValueEdge *a, const ValueEdge *b) { return predicted(*a) < predicted(*b); });
    }
    if (item.site) {
      ValueEdge *value = item.values[0];
      item.leaf = value->dead ? nullptr : value->child;
      if (item.leaf)
        item.path.push_back({item.node, item.site, value});
    } else {
      item.leaf = item.node;
    }
  }
}

/// Weighs a transform in a walk as the proposer weighed it where the walk began; it is not asked at every step.
static std::map<std::string, double> transformWeights(const Node &node) {
  std::map<std::string, double> weights;
  for (const SiteEdge &site : node.sites)
    weights[site.transform] = std::max(weights[site.transform], site.prior);
  return weights;
}

/// Further steps from the leaf, at random.
Walk::Next Mcts::walkFrom(const Item &item) {
  unsigned steps = item.extraSteps;
  if (item.leaf->state.isSketch)
    steps = std::max(steps, stepsFromSketch);
  if (item.leaf->failed || !steps)
    return nullptr;
  auto state = std::make_shared<std::tuple<std::mt19937_64, unsigned, unsigned>>(item.walkSeed, steps, 3);
  return [state, weights = transformWeights(*item.node)](const SearchState &at, bool refused) -> std::optional<Action> {
    auto &[random, stepsLeft, refusalsLeft] = *state;
    if (refused ? refusalsLeft-- == 0 : stepsLeft-- == 0)
      return std::nullopt;
    auto weightOf = [&](const ActionTemplate &legal) {
      auto it = weights.find(legal.transform);
      return legal.values.empty() ? 0.0 : it == weights.end() ? 0.05 : it->second;
    };
    double sum = 0;
    for (const ActionTemplate &legal : at.legal)
      sum += weightOf(legal);
    double target = double(random() >> 11) * 0x1p-53 * sum;
    for (const ActionTemplate &legal : at.legal) {
      if (double weight = weightOf(legal); weight > 0 && (target -= weight) < 0) {
        // The site's best guess half the time.
        size_t choice = random() % 2 ? 0 : random() % legal.values.size();
        return Action{legal.transform, legal.site, legal.values[choice]};
      }
    }
    return std::nullopt;
  };
}

bool Mcts::step(unsigned limit) {
  blocked.clear();
  std::vector<Job> jobs = neighbours.next((limit + isNeighboursTurn) / 2);
  isNeighboursTurn ^= limit % 2;
  limit -= unsigned(jobs.size());
  std::vector<Item> items;
  while (items.size() < limit) {
    Item item;
    if (!select(item))
      break;
    if (item.site && session.chance() < session.settings.rolloutChance)
      item.extraSteps = 1 + session.pick(5);
    item.walkSeed = session.pick(~0u);
    countVirtual(item, +1);
    items.push_back(std::move(item));
  }
  if (items.empty() && jobs.empty())
    return false;
  applyItems(items);
  rankValues(items);
  for (Item &item : items) {
    if (!item.leaf) {
      countVirtual(item, -1);
      session.backUp(item.path, item.node);
      continue;
    }
    Walk walk{item.leaf, walkFrom(item), {}};
    Path path = item.path;
    jobs.push_back(
        {std::move(walk), std::move(path), nullptr, [item = std::move(item)](Node *) { countVirtual(item, -1); }});
  }
  session.run(std::move(jobs));
  return true;
}

std::unique_ptr<Searcher> optiml::search::makeMcts(Session &session) { return std::make_unique<Mcts>(session); }
