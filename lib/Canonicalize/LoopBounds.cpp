//===- LoopBounds.cpp - loops that count from bound to bound --------------===//
#include "optiml/Canonicalize/LoopBounds.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

//===----------------------------------------------------------------------===//
// Steps that are no constants
//===----------------------------------------------------------------------===//

static bool countStrided(KernelState &state, const KernelModel &model, std::vector<StmtRef> &list, size_t at,
                         std::set<std::string> &taken) {
  Stmt &s = *list[at];
  if (s.kind != StmtKind::For || asCountedLoop(s) || holdsKind(s, {StmtKind::Continue, StmtKind::Opaque}))
    return false;
  auto loop = asStridedLoop(s);
  if (!loop || loop->type.cls != Type::Class::Int || !loop->type.isSigned || hasEffects(loop->lower) ||
      hasEffects(loop->upper) || !model.stable(loop->lower) || !model.stable(loop->upper) || !loop->upper->type.isInt())
    return false;
  auto step = planText(model, model.poly(loop->step));
  if (!step)
    return false;
  state.require(*step + " >= 1", "the loop steps forward");
  Type wide = Type::makeLong();
  auto named = [&](const char *wish, const ExprRef &value) {
    std::string name = freshName(taken, loop->var + wish);
    list.insert(list.begin() + long(at++), declStmt(name, wide.withConst(true), value));
    return var(name, wide);
  };
  ExprRef start = named("_start", castTo(wide, loop->lower)), stride = castTo(wide, loop->step);
  ExprRef distance = sub(castTo(wide, loop->upper), start);
  ExprRef most = callOf("max", {distance, intLit(0, wide)}, wide, true);
  ExprRef trips = named("_trips", binary("/", sub(add(most, stride), intLit(1, wide)), stride, wide));
  std::string k = freshName(taken, loop->var + "_step");
  ExprRef place = castTo(loop->type.unqualified(), add(start, mul(var(k, wide), stride)));
  StmtRef body = s.body[0]->kind == StmtKind::Block ? s.body[0] : block({s.body[0]});
  body->body.insert(body->body.begin(), declStmt(loop->var, loop->type.unqualified().withConst(true), place));
  list[at] = atLine(s.line, countedFor(k, wide, intLit(0, wide), trips, 1, body, NoUnroll));
  return true;
}

void optiml::countStridedLoops(KernelState &state, Kernel &kernel) {
  bool any = false; // a model takes longer than to look
  walk(*kernel.body, [&](Stmt &s) { any |= s.kind == StmtKind::For && !asCountedLoop(s); });
  if (!any)
    return;
  KernelModel model(kernel, {0, 0, 0});
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;)
      countStrided(state, model, list, i, taken);
  });
}

//===----------------------------------------------------------------------===//
// Breaks that the counter decides
//===----------------------------------------------------------------------===//

namespace {
/// Iterations from `end` on do not take place; `exactly`: where it is between the bounds.
struct HeadBreak {
  size_t index = 0; ///< of the branch in the body
  Poly end;
  bool exactly = false;
};
} // namespace

static std::optional<HeadBreak> headBreak(const KernelModel &model, const CountedLoop &loop) {
  const std::vector<StmtRef> &body = loop.stmt->body[0]->body;
  HeadBreak result;
  for (; result.index < body.size(); ++result.index) {
    const Stmt &s = *body[result.index];
    if (s.kind == StmtKind::If)
      break;
    if (s.kind != StmtKind::Decl || (s.expr && (hasEffects(s.expr) || anyNode(s.expr, isLoad))))
      return std::nullopt;
  }
  if (result.index == body.size())
    return std::nullopt;
  const Stmt &branch = *body[result.index];
  if (branch.body.size() != 1 || branch.body[0]->body.size() != 1 || branch.body[0]->body[0]->kind != StmtKind::Break ||
      branch.expr->kind != ExprKind::Binary || !branch.expr->args[0]->type.isInt() ||
      !branch.expr->args[1]->type.isInt() || hasEffects(branch.expr))
    return std::nullopt;
  const std::string &op = branch.expr->text;
  Poly difference = model.poly(branch.expr->args[0]) - model.poly(branch.expr->args[1]); // op 0
  auto factor = difference.coefficient(loop.var);
  auto sign = factor ? factor->constant() : std::nullopt;
  if (!sign || (*sign != 1 && *sign != -1))
    return std::nullopt;
  Poly rest = difference - *factor * Poly::atom(loop.var); // counter * sign + rest op 0
  Poly zero = *sign == 1 ? Poly(0) - rest : rest;
  const char *notLess = *sign == 1 ? ">=" : "<=", *greater = *sign == 1 ? ">" : "<";
  if (op == notLess)
    result.end = zero;
  else if (op == greater)
    result.end = zero + Poly(1);
  else if (op == "==" && loop.step == 1)
    result.end = zero, result.exactly = true;
  else
    return std::nullopt;
  std::set<std::string> inside = namesDeclaredIn(*loop.stmt);
  inside.insert(loop.var);
  bool stores = anyExpr(*loop.stmt, [](const ExprRef &e) { return !e->pure || (mayChange(e) && isLoad(e->args[0])); });
  ExprRef end = polyExpr(model, result.end);
  bool loads = anyNode(end, isLoad), changes = false;
  for (const auto &[name, count] : countChanges(*loop.stmt))
    changes |= count && mentions(end, name);
  if (changes || model.dependsOn(result.end, inside) || (loads ? stores : !model.stable(result.end)))
    return std::nullopt;
  return result;
}

static void boundBreaking(const KernelModel &model, std::vector<StmtRef> &list, size_t at,
                          std::set<std::string> &taken) {
  auto loop = asCountedLoop(*list[at]);
  if (!loop || list[at]->body[0]->kind != StmtKind::Block || hasEffects(loop->upper) || hasEffects(loop->lower))
    return;
  auto found = headBreak(model, *loop);
  if (!found)
    return;
  Type wide = Type::makeLong();
  ExprRef upper = castTo(wide, loop->upper), end = wideExpr(polyExpr(model, found->end));
  ExprRef lower = castTo(wide, loop->lower), runs = lessThan(lower, upper);
  ExprRef isSooner = lessThan(end, upper);
  if (found->exactly)
    isSooner = logicalAnd(binary("<=", lower, end, Type::makeBool()), isSooner);
  std::string bound = freshName(taken, loop->var + "_end");
  StmtRef made = declStmt(bound, wide.withConst(true), conditional(logicalAnd(runs, isSooner), end, upper));
  std::vector<StmtRef> &body = list[at]->body[0]->body;
  body.erase(body.begin() + long(found->index));
  list[at]->expr = lessThan(var(loop->var, loop->type.unqualified()), var(bound, wide));
  list.insert(list.begin() + long(at), made);
}

void optiml::boundBreakingLoops(Kernel &kernel) {
  if (!holdsKind(*kernel.body, {StmtKind::Break}))
    return;
  KernelModel model(kernel, {0, 0, 0});
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;)
      if (list[i]->kind == StmtKind::For)
        boundBreaking(model, list, i, taken);
  });
}

void optiml::countFromZero(Kernel &kernel) {
  constexpr int64_t mostTrips = 64;
  walk(*kernel.body, [&](Stmt &s) {
    auto counted = s.kind == StmtKind::For ? asCountedLoop(s) : std::nullopt;
    auto lower = counted ? constantValue(counted->lower) : std::nullopt;
    auto trips = counted ? counted->tripCount() : std::nullopt;
    if (!lower || *lower == 0 || !trips || *trips > mostTrips || counted->step != 1 || !counted->type.isSigned ||
        counted->type.bytes < 4 || holdsKind(s, {StmtKind::Opaque}))
      return;
    const ExprRef v = var(counted->var, counted->type);
    substitute(*s.body[0], {{counted->var, *lower < 0 ? sub(v, intLit(-*lower)) : add(v, intLit(*lower))}});
    s.init->expr = intLit(0, s.init->type);
    s.expr = lessThan(v, intLit(*trips));
  });
}
