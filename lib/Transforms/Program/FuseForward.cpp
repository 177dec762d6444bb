//===- FuseForward.cpp - stored values that are loaded again --------------===//
//
// y[i] = f(x[i]); z[i] = g(y[i]);  becomes  float y_value = f(x[i]); y[i] = y_value; z[i] = g(y_value);
//
// A store's value is followed through the rest of its block, up to the first statement that may write the same element.
// When that statement is a store to just this element, and nothing that may read it stands between, the first store
// goes.
//
// Where nothing looks at the array after the launch, the last store goes, too.
//
//===----------------------------------------------------------------------===//
#include "FuseKernels.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class Forwarder {
public:
  Forwarder(Kernel &kernel, const ArrayPairs &disjoint) : kernel(kernel), disjoint(disjoint), taken(allNames(kernel)) {}
  void run() {
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind != StmtKind::Block)
        return;
      for (size_t i = 0; i < s.body.size(); ++i)
        forward(s.body, i);
    });
  }

private:
  Kernel &kernel;
  const ArrayPairs &disjoint;
  std::set<std::string> taken;

  /// array[index] op= value as a statement, the array being a parameter.
  const Expr *storeIn(const Stmt &s) const {
    if (s.kind != StmtKind::Expr || s.expr->kind != ExprKind::Assign)
      return nullptr;
    const ExprRef &target = s.expr->args[0];
    if (target->kind != ExprKind::Subscript || target->args[0]->kind != ExprKind::Var || target->type.isVolatile)
      return nullptr;
    bool isArray = llvm::any_of(kernel.params,
                                [&](const Param &p) { return p.name == target->args[0]->text && p.type.isPointer(); });
    return isArray && (target->type.isInt() || target->type.isFloat()) ? s.expr.get() : nullptr;
  }
  bool apart(const std::string &a, const std::string &b) const { return disjoint.count(std::minmax(a, b)) != 0; }
  /// Something in `s` may read (write) `place` other than by that very expression.
  struct Touch {
    bool reads = false, writes = false;
  };
  Touch touches(Stmt &s, const ExprRef &place) const;
  void forward(std::vector<StmtRef> &list, size_t at);
};

} // namespace

Forwarder::Touch Forwarder::touches(Stmt &s, const ExprRef &place) const {
  Touch result;
  const std::string &array = place->args[0]->text;
  std::set<const Expr *> targets;
  walkExprs(s, [&](const ExprRef &e) {
    if (isChange(e) || (e->kind == ExprKind::Call && !e->pure) || isUnary(e, "&")) {
      bool known = false;
      walk(e->args.empty() ? e : e->args[0], [&](const ExprRef &part) {
        if (part->kind == ExprKind::Var && part->type.isPointer())
          result.writes |= part->text == array ? true : !apart(part->text, array);
        known = true;
      });
      result.writes |= !known || (e->kind == ExprKind::Call && !e->isAtomic);
    }
    if (e->kind == ExprKind::Subscript && !equal(e, place)) {
      const ExprRef &base = e->args[0];
      bool other = base->kind == ExprKind::Var && base->text != array && apart(base->text, array);
      result.reads |= base->type.isPointer() && !other;
    }
    result.reads |= e->kind == ExprKind::Opaque && !e->pure;
  });
  walk(s, [&](Stmt &t) { result.reads |= t.kind == StmtKind::Opaque; });
  return result;
}

void Forwarder::forward(std::vector<StmtRef> &list, size_t at) {
  const Expr *store = storeIn(*list[at]);
  if (!store)
    return;
  ExprRef place = store->args[0];
  {
    KernelModel model(kernel);
    if (!model.stable(place->args[1]))
      return;
  }
  auto reads = [&](Stmt &s) { return anyExpr(s, [&](const ExprRef &e) { return equal(e, place); }); };
  // How far the value lasts; `over`: the statement that overwrites it.
  size_t end = at + 1, over = 0;
  bool used = false, seen = false;
  for (; end < list.size(); ++end) {
    Stmt &s = *list[end];
    const Expr *next = storeIn(s);
    if (next && equal(next->args[0], place)) {
      bool inValue = next->text != "=" || anyNode(next->args[1], [&](const ExprRef &e) { return equal(e, place); });
      Stmt value = s;
      value.expr = next->args[1];
      if (touches(value, place).writes)
        break;
      seen |= touches(value, place).reads;
      used |= inValue;
      over = end;
      break;
    }
    Touch touch = touches(s, place);
    if (touch.writes || holdsKind(s, {StmtKind::Barrier})) // another thread of its kernel may have written it by then
      break;
    seen |= touch.reads;
    // What overwrites it may not be reached.
    seen |= holdsKind(s, {StmtKind::Break, StmtKind::Continue, StmtKind::Return});
    used |= reads(s);
  }
  bool dead = over && !seen;
  if (!used && !dead)
    return;
  auto valueOf = [](const Expr &assignment) {
    return assignment.text == "="
               ? assignment.args[1]
               : binary(assignment.text.substr(0, assignment.text.size() - 1), assignment.args[0], assignment.args[1]);
  };
  Type type = place->type.withConst(false);
  if (!used) { // overwritten and never looked at
    if (!hasEffects(store->args[1]))
      list.erase(list.begin() + long(at));
    return;
  }
  std::string name = freshName(taken, place->args[0]->text + "_value");
  ExprRef value = var(name, type);
  auto use = [&](const ExprRef &e) -> ExprRef { return equal(e, place) ? value : nullptr; };
  for (size_t i = at + 1; i < end; ++i)
    rewriteExprs(*list[i], use);
  if (over) {
    const Expr *next = storeIn(*list[over]);
    list[over]->expr = assign("=", place, rewrite(valueOf(*next), use));
  }
  StmtRef kept = list[at];
  list[at] = atLine(kept->line, declStmt(name, type, valueOf(*store)));
  kept->expr = assign("=", place, value);
  if (!dead)
    list.insert(list.begin() + long(at) + 1, kept);
}

void optiml::forwardStores(Kernel &kernel, const ArrayPairs &disjoint) { Forwarder(kernel, disjoint).run(); }

namespace {

/// `array[index] = value` as a statement, with nothing else to it.
bool isPlainStore(const Stmt &s, const std::string &array) {
  if (s.kind != StmtKind::Expr || s.expr->kind != ExprKind::Assign || s.expr->text != "=")
    return false;
  const ExprRef &target = s.expr->args[0];
  return target->kind == ExprKind::Subscript && isVar(target->args[0], array) && !target->type.isVolatile &&
         !hasEffects(target->args[1]) && !hasEffects(s.expr->args[1]);
}

/// Every mention of the array but plain stores to it comes before these, and none is in a loop, which could come back.
bool isStoredLast(const Kernel &kernel, const std::string &array) {
  bool stored = false, good = true;
  std::function<void(Stmt &, bool)> visit = [&](Stmt &s, bool inLoop) {
    auto mentioned = [&](const ExprRef &e) { return e && mentions(e, array); };
    bool mentionsIt = llvm::is_contained(s.names, array);
    if (isPlainStore(s, array)) {
      mentionsIt |= mentioned(s.expr->args[0]->args[1]) || mentioned(s.expr->args[1]);
      good &= !mentionsIt || (!stored && !inLoop);
      stored = true;
    } else {
      ownExprs(s, [&](ExprRef &e) { mentionsIt |= mentioned(e); });
      good &= !mentionsIt || (!stored && !inLoop);
    }
    if (s.init)
      visit(*s.init, inLoop || isLoop(s));
    for (const StmtRef &child : s.body)
      visit(*child, inLoop || isLoop(s));
  };
  visit(*kernel.body, false);
  return stored && good;
}

} // namespace

std::vector<std::string> optiml::dropDeadStores(Kernel &kernel, const std::set<std::string> &dead) {
  std::vector<std::string> dropped;
  for (const Param &param : kernel.params)
    if (dead.count(param.name) && isStoredLast(kernel, param.name)) {
      forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
        std::erase_if(list, [&](const StmtRef &s) { return isPlainStore(*s, param.name); });
      });
      dropped.push_back(param.name);
    }
  return dropped;
}
