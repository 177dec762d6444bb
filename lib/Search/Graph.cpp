//===- Graph.cpp - the variants a search has reached ----------------------===//
#include "Graph.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using namespace optiml::search;

/// Of the prior mass, what is spread evenly over all sites whatever the proposer says.
static constexpr double evenShare = 0.15;

Node *Graph::intern(SearchState state, Recipe recipe, bool &known) {
  auto [entry, isNew] = byKey.try_emplace(state.key, nullptr);
  known = !isNew;
  if (isNew) {
    entry->second = &nodes.emplace_back();
    entry->second->state = std::move(state);
    entry->second->recipe = std::move(recipe);
  }
  return entry->second;
}

void Graph::expand(Node &node, const std::vector<Proposal> &proposals) {
  if (node.expanded)
    return;
  node.expanded = true;
  for (const ActionTemplate &legal : node.state.legal) {
    SiteEdge edge;
    edge.transform = legal.transform;
    edge.site = legal.site;
    auto addValue = [&](const Params &params) {
      for (const auto &known : edge.values)
        if (known->params == params)
          return;
      edge.values.emplace_back(std::make_unique<ValueEdge>())->params = params;
    };
    // Values that were proposed come before those that are merely feasible.
    for (const Proposal &proposal : proposals) {
      bool fits = proposal.action.transform == legal.transform && proposal.action.site == legal.site &&
                  std::find(legal.values.begin(), legal.values.end(), proposal.action.params) != legal.values.end();
      if (!fits)
        continue;
      addValue(proposal.action.params);
      if (double prior = std::isfinite(proposal.prior) ? proposal.prior : 0; prior > edge.prior) {
        edge.prior = prior;
        edge.reason = proposal.reason;
      }
    }
    for (const Params &params : legal.values)
      addValue(params);
    if (!edge.values.empty())
      node.sites.push_back(std::move(edge));
  }
  double sum = 0;
  for (const SiteEdge &edge : node.sites)
    sum += edge.prior;
  for (SiteEdge &edge : node.sites) {
    double even = 1.0 / node.sites.size();
    edge.prior = sum > 0 ? (1 - evenShare) * edge.prior / sum + evenShare * even : even;
  }
  stableSort(node.sites, [](const SiteEdge &a, const SiteEdge &b) { return a.prior > b.prior; });
}

ValueEdge *Graph::find(Node &node, const Action &action, SiteEdge **site) {
  for (SiteEdge &edge : node.sites) {
    if (edge.transform != action.transform || edge.site != action.site)
      continue;
    for (const auto &value : edge.values)
      if (value->params == action.params) {
        if (site)
          *site = &edge;
        return value.get();
      }
  }
  return nullptr;
}
