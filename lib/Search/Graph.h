//===- Graph.h - the variants a search has reached --------------*- C++ -*-===//
#ifndef OPTIML_LIB_SEARCH_GRAPH_H
#define OPTIML_LIB_SEARCH_GRAPH_H

#include "optiml/Core/Interfaces.h"
#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

namespace optiml::search {

struct Node;

/// One parameter choice at a site.
struct ValueEdge {
  Params params;
  Node *child = nullptr;
  bool dead = false;    ///< did not apply, failed, or leads back to where it came from
  bool pending = false; ///< being tried in this batch
  unsigned visits = 0;
};

/// A transform at a site: the first level of a choice.
struct SiteEdge {
  std::string transform, site;
  double prior = 0; ///< normalized over the node
  std::string reason;
  std::vector<std::unique_ptr<ValueEdge>> values; ///< best guess first; addresses are stable
  bool screened = false;                          ///< values were ranked by the model
  unsigned visits = 0;
  Action action(unsigned value) const { return {transform, site, values[value]->params}; }
};

/// std::stable_sort for the short lists here (libstdc++'s uses what C++20 deprecates).
template <typename List, typename Less> void stableSort(List &list, Less less) {
  for (auto it = list.begin(); it != list.end(); ++it)
    std::rotate(std::upper_bound(list.begin(), it, *it, less), it, std::next(it));
}

/// A variant. Owned by the Graph; addresses are stable.
struct Node {
  SearchState state;
  Recipe recipe; ///< the first that led here
  std::optional<Measurement> measured, modelled;
  bool failed = false;    ///< measured or modelled, and not usable: nothing is built on it
  bool expanded = false;  ///< all sites are filled in
  bool exhausted = false; ///< nothing below is left to try
  bool pending = false;   ///< to be evaluated in this batch
  unsigned visits = 0;
  std::optional<double> best; ///< best reward here or below
  std::list<SiteEdge> sites;  ///< by falling prior; their addresses are stable

  /// Verified, and no guardrail is broken.
  bool isConfirmed() const { return measured && !failed && measured->correct() && measured->guardrails.empty(); }
};

class Graph {
public:
  /// The node of `state`, new or known; `known` tells which.
  Node *intern(SearchState state, Recipe recipe, bool &known);
  /// By SearchState::key, or null.
  Node *find(const std::string &key) const {
    auto entry = byKey.find(key);
    return entry == byKey.end() ? nullptr : entry->second;
  }
  size_t size() const { return nodes.size(); }
  std::deque<Node> &all() { return nodes; }

  /// Fills in node.sites from the legal actions and the proposals. Every legal action gets a share of the prior, so
  /// that a proposer that is wrong delays a search and does not blind it.
  static void expand(Node &node, const std::vector<Proposal> &proposals);
  /// Weighs the sites of an expanded node anew; what was tried stays known.
  static void setPriors(Node &node, const std::vector<Proposal> &proposals);

  /// The edge of `action`, or null when the node does not list it.
  static ValueEdge *find(Node &node, const Action &action, SiteEdge **site = nullptr);
  /// The edge of `action`, made where the node does not list it: before the others, with an even share of the prior.
  static ValueEdge *findOrAdd(Node &node, const Action &action, SiteEdge *&site);

private:
  std::deque<Node> nodes;
  std::unordered_map<std::string, Node *> byKey;
};

} // namespace optiml::search

#endif
