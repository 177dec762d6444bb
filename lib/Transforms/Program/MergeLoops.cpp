//===- MergeLoops.cpp - loops of a kernel that become one -----------------===//
//
// for (c…) y[r * n + c] = f(…);  for (c…) s += y[r * n + c];  becomes one loop where an iteration of the second needs
// nothing of the first's other iterations.
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

/// Leaves the loop or an iteration of it, lets threads meet, or is not understood.
bool hasExits(Stmt &loop) {
  return holdsKind(*loop.body[0], {StmtKind::Break, StmtKind::Continue, StmtKind::Return, StmtKind::Opaque}) ||
         hasBarrier(loop);
}

/// sqrtf(x), and what INFINITY stands for.
bool computesOnly(const Expr &call) {
  return call.pure && (call.isLibrary || call.text.starts_with("__builtin_")) &&
         llvm::none_of(call.args, [](const ExprRef &arg) { return arg->type.isPointer(); });
}

/// A scalar's declaration that needs no memory.
bool isPlainDeclaration(Stmt &s) {
  return s.kind == StmtKind::Decl && s.dims.empty() && !s.isShared && !s.type.isVolatile && s.expr &&
         !anyNode(s.expr, [&](const ExprRef &e) {
           return e->kind == ExprKind::Subscript || e->kind == ExprKind::Opaque || isChange(e) ||
                  (e->kind == ExprKind::Call && !computesOnly(*e)) || isUnary(e, "*") || isUnary(e, "&") ||
                  (e->kind == ExprKind::Member && e->args[0]->type.isPointer());
         });
}

/// May stand before the loop as well as after it and `others`.
bool movesBefore(Stmt &s, Stmt &loop, const std::vector<StmtRef> &others, const KernelModel &model) {
  std::set<std::string> needed = assignedIn(loop);
  for (const StmtRef &other : others)
    needed.insert(other->text);
  return isPlainDeclaration(s) && !namesAny(s, needed, model);
}

/// May stand after the loop as well as before it.
bool movesAfter(Stmt &s, Stmt &loop, const KernelModel &model) {
  return isPlainDeclaration(s) && !namesAny(loop, {s.text}, model) && !namesAny(s, assignedIn(loop), model);
}

class LoopMerger {
public:
  LoopMerger(Kernel &kernel, const StrideLoops &strides, AreApart apart)
      : kernel(kernel), strides(strides), apart(apart), taken(allNames(kernel)) {}
  unsigned run() {
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Block)
        for (size_t at = 0; at < s.body.size(); ++at)
          while (mergeNext(s, at)) {
          }
    });
    return merged;
  }

private:
  Kernel &kernel;
  const StrideLoops &strides;
  AreApart apart;
  std::set<std::string> taken;
  unsigned merged = 0;

  bool mergeNext(Stmt &list, size_t at);
  bool independent(const KernelModel &model, const Stmt &first, const Stmt &second) const;
};

} // namespace

/// What an iteration of the second loop accesses, only the same iteration of the first one writes, and the other way
/// round.
bool LoopMerger::independent(const KernelModel &model, const Stmt &first, const Stmt &second) const {
  std::vector<Access> ofFirst, ofSecond;
  for (const Access &access : model.accesses())
    if (insideOf(access, &first) || insideOf(access, &second))
      (insideOf(access, &first) ? ofFirst : ofSecond).push_back(model.ofWholeRecord(access));
  std::vector<std::pair<std::string, std::string>> others;
  for (const Access &a : ofFirst)
    for (const Access &b : ofSecond) {
      if (!(a.write || b.write) || (a.space == Space::Local && b.space == Space::Local))
        continue;
      if (a.space != Space::Global || b.space != Space::Global)
        return false;
      if (a.array != b.array)
        others.emplace_back(a.array, b.array);
      else if (!meetInOneIteration(model, strides, a, first.init->text, b, second.init->text))
        return false;
    }
  return llvm::all_of(others, [&](const auto &pair) { return apart(pair.first, pair.second); });
}

/// Merges the loop at `at` with the next one of the same iterations; false: there is none, or it has to come after.
bool LoopMerger::mergeNext(Stmt &list, size_t at) {
  StmtRef first = list.body[at];
  auto counted = first->kind == StmtKind::For ? asCountedLoop(*first) : std::nullopt;
  if (!counted || strides.count(counted->var))
    return false;
  const KernelModel model(kernel);
  if (model.unknownMemoryLine() || hasExits(*first) || !model.stable(counted->upper) || !model.stable(counted->lower))
    return false;
  size_t next = at + 1;
  std::vector<StmtRef> before, after;
  for (; next < list.body.size() && list.body[next]->kind == StmtKind::Decl; ++next)
    (movesBefore(*list.body[next], *first, after, model) ? before : after).push_back(list.body[next]);
  if (next == list.body.size())
    return false;
  StmtRef second = list.body[next];
  auto other = second->kind == StmtKind::For ? asCountedLoop(*second) : std::nullopt;
  if (!other || strides.count(other->var) || other->step != counted->step || other->type.text != counted->type.text ||
      hasExits(*second) || first->unroll != second->unroll ||
      !(model.poly(counted->lower) == model.poly(other->lower)) ||
      !(model.poly(counted->upper) == model.poly(other->upper)) || !model.stable(other->upper) ||
      !llvm::all_of(after, [&](const StmtRef &s) { return movesAfter(*s, *second, model); }))
    return false;
  if (namesAny(*second, assignedIn(*first), model) || namesAny(*first, assignedIn(*second), model) ||
      !independent(model, *first, *second))
    return false;
  // Each keeps its own names.
  const std::set<std::string> declared = namesDeclaredIn(*first->body[0]);
  auto isOfFirst = [&](const ExprRef &e) { return e->kind == ExprKind::Var && declared.count(e->text) != 0; };
  if (anyExpr(*second, isOfFirst) && !renameDeclarations(*first->body[0], taken))
    return false;
  if (!renameDeclarations(*second->body[0], taken))
    return false;
  substitute(*second->body[0], {{second->init->text, var(first->init->text, second->init->type)}});
  llvm::append_range(first->body[0]->body, second->body[0]->body);
  auto begin = list.body.erase(list.body.begin() + long(at), list.body.begin() + long(next) + 1);
  begin = list.body.insert(begin, after.begin(), after.end());
  begin = list.body.insert(begin, first);
  list.body.insert(begin, before.begin(), before.end());
  ++merged;
  return before.empty(); // with declarations before it, the loop has a new place, which comes later
}

unsigned optiml::mergeLoops(Kernel &kernel, const StrideLoops &strides, AreApart apart) {
  return LoopMerger(kernel, strides, apart).run();
}
