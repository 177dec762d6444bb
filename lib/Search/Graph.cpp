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

/// Values that were proposed come before those that are merely feasible.
static void addProposals(SiteEdge &edge, const ActionTemplate &legal, const std::vector<Proposal> &proposals) {
  auto addValue = [&](const Params &params) {
    for (const auto &known : edge.values)
      if (known->params == params)
        return;
    edge.values.emplace_back(std::make_unique<ValueEdge>())->params = params;
  };
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
}

/// Every site gets its share of the even part; the sites stand in falling order.
static void normalizePriors(Node &node) {
  double sum = 0;
  for (const SiteEdge &edge : node.sites)
    sum += edge.prior;
  for (SiteEdge &edge : node.sites) {
    double even = 1.0 / node.sites.size();
    edge.prior = sum > 0 ? (1 - evenShare) * edge.prior / sum + evenShare * even : even;
  }
  node.sites.sort([](const SiteEdge &a, const SiteEdge &b) { return a.prior > b.prior; });
}

static std::list<SiteEdge>::iterator siteOf(Node &node, const std::string &transform, const std::string &site) {
  return std::find_if(node.sites.begin(), node.sites.end(),
                      [&](const SiteEdge &edge) { return edge.transform == transform && edge.site == site; });
}

void Graph::expand(Node &node, const std::vector<Proposal> &proposals) {
  if (node.expanded)
    return;
  node.expanded = true;
  for (const ActionTemplate &legal : node.state.legal) {
    if (legal.values.empty())
      continue;
    // A line of play may have gone through it already.
    auto known = siteOf(node, legal.transform, legal.site);
    SiteEdge &edge = known == node.sites.end() ? node.sites.emplace_back() : *known;
    edge.transform = legal.transform;
    edge.site = legal.site;
    edge.prior = 0;
    edge.screened = false;
    addProposals(edge, legal, proposals);
  }
  normalizePriors(node);
}

void Graph::setPriors(Node &node, const std::vector<Proposal> &proposals) {
  for (SiteEdge &edge : node.sites) {
    edge.prior = 0;
    std::vector<const ValueEdge *> wanted;
    for (const Proposal &proposal : proposals) {
      if (proposal.action.transform != edge.transform || proposal.action.site != edge.site)
        continue;
      if (std::isfinite(proposal.prior) && proposal.prior > edge.prior) {
        edge.prior = proposal.prior;
        edge.reason = proposal.reason;
      }
      for (const auto &value : edge.values)
        if (value->params == proposal.action.params)
          wanted.push_back(value.get());
    }
    auto rank = [&](const std::unique_ptr<ValueEdge> &value) {
      return std::find(wanted.begin(), wanted.end(), value.get()) - wanted.begin();
    };
    stableSort(edge.values, [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
  }
  normalizePriors(node);
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

ValueEdge *Graph::findOrAdd(Node &node, const Action &action, SiteEdge *&site) {
  if (ValueEdge *known = find(node, action, &site))
    return known;
  auto at = siteOf(node, action.transform, action.site);
  if (at == node.sites.end()) {
    SiteEdge &edge = node.sites.emplace_front();
    edge.transform = action.transform;
    edge.site = action.site;
    edge.prior = 1.0 / double(node.sites.size());
    edge.screened = true;
    at = node.sites.begin();
  }
  site = &*at;
  auto value = std::make_unique<ValueEdge>();
  value->params = action.params;
  return site->values.insert(site->values.begin(), std::move(value))->get();
}
