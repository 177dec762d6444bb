//===- Pointees.cpp - pointers that only name a local variable ------------===//
#include "Pointees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// p->n, *p, p[0]
static bool follows(const ExprRef &e, const std::string &pointer) {
  if (e->args.empty() || !isVar(e->args[0], pointer))
    return false;
  return e->kind == ExprKind::Member || isUnary(e, "*") ||
         (e->kind == ExprKind::Subscript && constantValue(e->args[1]) == 0);
}

static bool namePointee(Kernel &kernel, const Stmt &declaration) {
  const std::string &pointer = declaration.text;
  const ExprRef object = declaration.expr->args[0];
  unsigned mentions = 0, followed = 0;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    mentions += isVar(e, pointer);
    followed += follows(e, pointer);
  });
  if (mentions != followed || countChanges(*kernel.body)[pointer] || opaqueMentions(*kernel.body, {pointer}))
    return false;
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (!follows(e, pointer))
      return nullptr;
    if (e->kind != ExprKind::Member)
      return object;
    auto member = std::make_shared<Expr>(*e);
    member->args[0] = object;
    return member;
  });
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    std::erase_if(list, [&](const StmtRef &s) { return s.get() == &declaration; });
  });
  return true;
}

/// &x or &x.y, of a local variable.
static bool pointsToLocal(const Kernel &kernel, const Stmt &s) {
  if (s.kind != StmtKind::Decl || !s.type.isPointer() || !s.expr || !isUnary(s.expr, "&") || !s.dims.empty())
    return false;
  const ExprRef &object = s.expr->args[0];
  ExprRef whole = object;
  while (whole->kind == ExprKind::Member && !whole->args[0]->type.isPointer())
    whole = whole->args[0];
  const Stmt *local = whole->kind == ExprKind::Var ? findDeclaration(*kernel.body, whole->text) : nullptr;
  return local && s.type.pointee && object->type.unqualified().text == s.type.pointee->unqualified().text &&
         local->dims.empty() && !local->isShared && !local->type.isVolatile;
}

void optiml::namePointees(Kernel &kernel) {
  // What one pointer leads to may be named by another one.
  std::set<const Stmt *> tried;
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<StmtRef> found;
    forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
      llvm::copy_if(list, std::back_inserter(found),
                    [&](const StmtRef &s) { return pointsToLocal(kernel, *s) && tried.insert(s.get()).second; });
    });
    for (const StmtRef &s : found)
      changed |= namePointee(kernel, *s);
  }
}
