//===- FuseLoops.cpp - loops of a fused kernel that become one ------------===//
//
// for (c…) y[r * n + c] = f(…);  for (c…) s += y[r * n + c];  becomes one loop, in which the second's load is the
// first's value, where an iteration of the second needs nothing of the first's other iterations.
//
//===----------------------------------------------------------------------===//
#include "FuseKernels.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// Names of variables that the statement assigns, without those that it declares within.
std::set<std::string> assignedIn(Stmt &s) {
  std::set<std::string> names;
  walkExprs(s, [&](const ExprRef &e) {
    if (!mayChange(e))
      return;
    ExprRef target = e->args[0];
    while (!target->args.empty())
      target = target->args[0];
    names.insert(target->text); // of an array its own name: arrays in registers are variables too
  });
  for (const std::string &name : namesDeclaredIn(s))
    names.erase(name);
  return names;
}

/// Variables (no parameters, which only give the place of memory) of `assigned` that the statement names.
bool namesAny(Stmt &s, const std::set<std::string> &assigned, const KernelModel &model) {
  auto named = [&](const std::string &name) { return assigned.count(name) && !model.param(name); };
  return anyExpr(s,
                 [&](const ExprRef &e) {
                   return (e->kind == ExprKind::Var && named(e->text)) || llvm::any_of(e->names, named);
                 }) ||
         anyStmt(s, [&](const Stmt &t) { return llvm::any_of(t.names, named); });
}

/// Leaves the loop or an iteration of it, or is not understood.
bool hasExits(Stmt &loop) {
  return holdsKind(*loop.body[0],
                   {StmtKind::Break, StmtKind::Continue, StmtKind::Return, StmtKind::Opaque, StmtKind::Barrier});
}

/// A declaration that may stand before a loop as well as after it.
bool movesBefore(Stmt &s, Stmt &loop, const KernelModel &model) {
  if (s.kind != StmtKind::Decl || !s.dims.empty() || s.isShared || !s.expr)
    return false;
  bool loads = anyNode(s.expr, [](const ExprRef &e) {
    return e->kind == ExprKind::Subscript || e->kind == ExprKind::Opaque || isChange(e) || e->kind == ExprKind::Call ||
           isUnary(e, "*") || e->kind == ExprKind::Member;
  });
  return !loads && !namesAny(s, assignedIn(loop), model);
}

class LoopMerger {
public:
  LoopMerger(Kernel &kernel, const StrideLoops &strides, const ArrayPairs &disjoint)
      : kernel(kernel), strides(strides), disjoint(disjoint) {}
  void run() {
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Block)
        for (size_t at = 0; at < s.body.size(); ++at)
          while (mergeNext(s, at)) {
          }
    });
  }

private:
  Kernel &kernel;
  const StrideLoops &strides;
  const ArrayPairs &disjoint;

  bool mergeNext(Stmt &list, size_t at);
  bool independent(const KernelModel &model, const Stmt &first, const Stmt &second) const;
};

} // namespace

/// What an iteration of the second loop accesses, only the same iteration of the first one writes, and the other way
/// round.
bool LoopMerger::independent(const KernelModel &model, const Stmt &first, const Stmt &second) const {
  for (const Access &a : model.accesses()) {
    if (!insideOf(a, &first))
      continue;
    for (const Access &b : model.accesses()) {
      if (!insideOf(b, &second) || !(a.write || b.write) || (a.space == Space::Local && b.space == Space::Local))
        continue;
      if (a.space != Space::Global || b.space != Space::Global)
        return false;
      if (a.array != b.array ? !disjoint.count(std::minmax(a.array, b.array))
                             : !meetInOneIteration(model, strides, a, first.init->text, b, second.init->text))
        return false;
    }
  }
  return true;
}

/// Merges the loop at `at` with the next one of the same iterations; false: there is none, or it has to come after.
bool LoopMerger::mergeNext(Stmt &list, size_t at) {
  Stmt &first = *list.body[at];
  auto counted = first.kind == StmtKind::For ? asCountedLoop(first) : std::nullopt;
  if (!counted || strides.count(counted->var))
    return false;
  const KernelModel model(kernel);
  if (model.unknownEffectLine() || hasExits(first) || !model.stable(counted->upper) || !model.stable(counted->lower))
    return false;
  size_t next = at + 1;
  while (next < list.body.size() && movesBefore(*list.body[next], first, model))
    ++next;
  if (next == list.body.size())
    return false;
  Stmt &second = *list.body[next];
  auto other = second.kind == StmtKind::For ? asCountedLoop(second) : std::nullopt;
  if (!other || strides.count(other->var) || other->step != counted->step || other->type.text != counted->type.text ||
      hasExits(second) || first.unroll != second.unroll || !(model.poly(counted->lower) == model.poly(other->lower)) ||
      !(model.poly(counted->upper) == model.poly(other->upper)) || !model.stable(other->upper))
    return false;
  if (namesAny(second, assignedIn(first), model) || namesAny(first, assignedIn(second), model) ||
      !independent(model, first, second))
    return false;
  substitute(*second.body[0], {{second.init->text, var(first.init->text, second.init->type)}});
  first.body[0]->body.insert(first.body[0]->body.end(), second.body[0]->body.begin(), second.body[0]->body.end());
  StmtRef loop = list.body[at];
  list.body.erase(list.body.begin() + long(next));
  list.body.erase(list.body.begin() + long(at));
  list.body.insert(list.body.begin() + long(next) - 1, loop);
  return next == at + 1; // with declarations before it, the loop has a new place, which comes later
}

void optiml::mergeLoops(Kernel &kernel, const StrideLoops &strides, const ArrayPairs &disjoint) {
  LoopMerger(kernel, strides, disjoint).run();
}
