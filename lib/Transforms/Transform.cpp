//===- Transform.cpp - one rewrite of a kernel ----------------------------===//
#include "optiml/Transforms/Transform.h"

using namespace optiml;

Transform::~Transform() = default;

bool Transform::applies(const KernelState &state, llvm::StringRef site, const Params &params) const {
  auto applied = apply(state, site, params);
  if (applied)
    return true;
  if (state.refusals)
    state.refusals->push_back({name().str(), site.str(), llvm::toString(applied.takeError())});
  else
    llvm::consumeError(applied.takeError());
  return false;
}

bool Transform::offer(std::vector<ActionTemplate> &into, const KernelState &state, const std::string &site,
                      const std::vector<Params> &values, size_t telling) const {
  ActionTemplate made{name().str(), state.rewrite.original + site, {}};
  for (size_t i = 0; i < values.size() && (i < telling || !made.values.empty()); ++i)
    if (applies(state, site, values[i]))
      made.values.push_back(values[i]);
  if (made.values.empty())
    return false;
  into.push_back(std::move(made));
  return true;
}

std::vector<ActionTemplate> optiml::kernelSite(const Transform &transform, const KernelState &state,
                                               const std::vector<Params> &offers) {
  ActionTemplate site{transform.name().str(), state.rewrite.original, {}};
  for (const Params &params : offers)
    if (transform.applies(state, "", params))
      site.values.push_back(params);
    else if (site.values.empty())
      return {};
  return {site};
}
