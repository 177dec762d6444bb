//===- SharedNest.cpp - which loop of a nest a group shares out -----------===//
#include "SharedNest.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// A shorter loop keeps no warp busy.
static constexpr int64_t fewestTrips = 32;

/// The only statement of a loop's body but for declarations before it that it does not change, where it is a counted
/// loop.
static std::optional<CountedLoop> innerLoop(const CountedLoop &outer) {
  std::vector<StmtRef> &list = outer.stmt->body[0]->body;
  auto inner = list.empty() ? std::nullopt : asCountedLoop(*list.back());
  if (!inner)
    return std::nullopt;
  const std::map<std::string, unsigned> changes = countChanges(*inner->stmt);
  for (const StmtRef &s : llvm::ArrayRef(list).drop_back())
    if (s->kind != StmtKind::Decl || s->isShared || !s->dims.empty() || !s->expr || hasEffects(s->expr) ||
        changes.count(s->text))
      return std::nullopt;
  if (hasEffects(inner->lower) || hasEffects(inner->upper))
    return std::nullopt;
  return inner;
}

/// How often it runs, as far as constants or a captured launch tell.
static std::optional<int64_t> tripsOf(const KernelModel &model, const KernelState &state, const CountedLoop &loop) {
  if (auto trips = loop.tripCount())
    return trips;
  const auto text = planText(model, model.poly(loop.upper) - model.poly(loop.lower));
  const auto length = text ? state.hints.evaluate(IntExpr::of(*text)) : std::nullopt;
  return length ? std::optional((std::max<int64_t>(0, *length) + loop.step - 1) / loop.step) : std::nullopt;
}

std::vector<SharedLoop> optiml::loopsOfNeighbours(const KernelModel &model, const KernelState &state,
                                                  const CountedLoop &outermost, int64_t threads) {
  std::vector<CountedLoop> nest = {outermost};
  while (auto inner = innerLoop(nest.back()))
    nest.push_back(*inner);
  size_t chosen = 0, most = 0;
  for (size_t depth = 0; depth < nest.size(); ++depth) {
    const size_t neighbours = llvm::count_if(model.accesses(), [&](const Access &access) {
      return insideOf(access, nest.back().stmt) && accessesNeighbours(access, nest[depth].var);
    });
    const auto trips = tripsOf(model, state, nest[depth]);
    if (neighbours > most && (depth == 0 || !trips || *trips >= fewestTrips))
      chosen = depth, most = neighbours;
  }
  if (chosen == 0)
    return {};
  const auto trips = tripsOf(model, state, nest[chosen]);
  if (threads <= 32 || (trips && *trips >= threads))
    return {{nest[chosen], threads}};
  return {{nest[chosen], 32}, {nest[chosen - 1], threads / 32, true}};
}

bool optiml::isUnordered(const Reduction &r) {
  return r.kept.empty() && r.flag.empty() && !r.startsUnset && !r.isMean && r.exponential.empty() && !r.unordered;
}
