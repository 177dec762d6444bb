//===- LinePlayer.cpp - following a line of the opening book --------------===//
#include "LinePlayer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"
#include <algorithm>

using namespace optiml;
using namespace optiml::search;
using llvm::StringRef;

/// A kernel with more sites for a step than this has them from what transforms wrote out: each costs a step to apply.
static constexpr size_t mostSites = 8;

std::optional<Action> LinePlayer::operator()(const SearchState &at, bool refused) {
  if (!refused)
    noteTaken();
  for (; step < line.steps.size(); nextStep()) {
    const OpeningStep &wanted = line.steps[step];
    if (taken && (!wanted.everySite || doneSites.size() >= mostSites))
      continue;
    if (wanted.inexact && !wanted.required && *exactly)
      continue;
    if (std::optional<Action> action = resolve(wanted, at)) {
      tried.insert(action->str());
      last = action;
      return action;
    }
    if (wanted.required && !taken) {
      *dropped = true;
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void LinePlayer::noteTaken() {
  if (!last)
    return;
  taken = true;
  doneSites.insert(last->site);
  last.reset();
}

void LinePlayer::nextStep() {
  ++step;
  taken = false;
  doneSites.clear();
  last.reset();
}

static bool agrees(const Params &value, const Params &wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto &entry) {
    auto it = value.find(entry.first);
    return it != value.end() && it->second == entry.second;
  });
}

/// "/k:a+b" has two parts after the loop, which "*" alone matches, too.
static bool sameShape(StringRef a, StringRef b) {
  return llvm::all_of(StringRef("/:+"), [&](char c) { return a.count(c) == b.count(c); });
}

/// The first matching action that was not tried in this step: preferred values first, then the site's own order.
/// Where the step describes its site, one of the same shape goes before all others.
std::optional<Action> LinePlayer::resolve(const OpeningStep &wanted, const SearchState &at) const {
  if (wanted.siteGlob != "*")
    if (std::optional<Action> action = resolve(wanted, at, /*anyShape=*/false))
      return action;
  return resolve(wanted, at, /*anyShape=*/true);
}

std::optional<Action> LinePlayer::resolve(const OpeningStep &wanted, const SearchState &at, bool anyShape) const {
  auto glob = llvm::GlobPattern::create(wanted.siteGlob);
  if (!glob) {
    llvm::consumeError(glob.takeError());
    return std::nullopt;
  }
  for (const ActionTemplate &legal : at.legal.of(wanted.transform)) {
    StringRef owner = siteKernel(legal.site);
    if (owner != kernel || doneSites.count(legal.site) ||
        !glob->match(StringRef(legal.site).drop_front(owner.size())) ||
        !(anyShape || sameShape(wanted.siteGlob, StringRef(legal.site).drop_front(owner.size()))))
      continue;
    unsigned attempts = 0;
    auto untried = [&](const Params &params) -> std::optional<Action> {
      Action action{legal.transform, legal.site, params};
      attempts += tried.count(action.str());
      return tried.count(action.str()) ? std::nullopt : std::optional(action);
    };
    for (const Params &preferred : wanted.preferences)
      for (const Params &value : legal.values)
        if (agrees(value, preferred))
          if (std::optional<Action> action = untried(value))
            return action;
    if (wanted.onlyPreferred)
      continue;
    for (const Params &value : legal.values)
      if (attempts < 4) // a site that refused its best values is left
        if (std::optional<Action> action = untried(value))
          return action;
  }
  return std::nullopt;
}

Walk optiml::search::replayOf(Session &session, Recipe recipe) {
  auto next = [recipe = std::move(recipe), at = size_t(0)](const SearchState &, bool) mutable -> std::optional<Action> {
    return at < recipe.size() ? std::optional(recipe[at++]) : std::nullopt;
  };
  return {session.root, std::move(next), {}};
}
