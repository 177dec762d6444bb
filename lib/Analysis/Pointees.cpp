//===- Pointees.cpp - pointers that only name a local variable ------------===//
#include "Pointees.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

/// p->n, *p, p[0]
static bool follows(const ExprRef &e, const std::string &pointer) {
  if (e->args.empty() || !isVar(e->args[0], pointer))
    return false;
  return e->kind == ExprKind::Member || isUnary(e, "*") ||
         (e->kind == ExprKind::Subscript && constantValue(e->args[1]) == 0);
}

static void namePointee(Kernel &kernel, const Stmt &declaration) {
  const std::string &pointer = declaration.text;
  const ExprRef object = declaration.expr->args[0];
  unsigned mentions = 0, followed = 0;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    mentions += isVar(e, pointer);
    followed += follows(e, pointer);
  });
  if (mentions != followed || countChanges(*kernel.body)[pointer] || opaqueMentions(*kernel.body, {pointer}))
    return;
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
}

void optiml::namePointees(Kernel &kernel) {
  std::vector<StmtRef> found;
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (const StmtRef &s : list) {
      if (s->kind != StmtKind::Decl || !s->type.isPointer() || !s->expr || !isUnary(s->expr, "&") || !s->dims.empty())
        continue;
      const ExprRef &object = s->expr->args[0];
      const Stmt *local = object->kind == ExprKind::Var ? findDeclaration(*kernel.body, object->text) : nullptr;
      bool same = local && s->type.pointee && object->type.unqualified().text == s->type.pointee->unqualified().text;
      if (same && local->dims.empty() && !local->isShared && !local->type.isVolatile)
        found.push_back(s);
    }
  });
  for (const StmtRef &s : found)
    namePointee(kernel, *s);
}
