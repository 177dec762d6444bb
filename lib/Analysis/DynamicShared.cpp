//===- DynamicShared.cpp - the type of dynamic shared memory --------------===//
#include "optiml/Analysis/Tree.h"
#include <algorithm>
#include <cctype>

using namespace optiml;

/// The statement's variable is a pointer that holds the array's address, as one to its own elements, and never another.
static bool isView(const Stmt &s, const std::string &array) {
  if (s.kind != StmtKind::Decl || !s.type.isPointer() || !s.type.pointee || s.type.isVolatile ||
      s.type.pointee->isVolatile || s.type.pointee->isConst || !s.dims.empty() || !s.expr)
    return false;
  ExprRef from = s.expr;
  while (from->kind == ExprKind::Cast)
    from = from->args[0];
  if (isUnary(from, "&") && from->args[0]->kind == ExprKind::Subscript && constantValue(from->args[0]->args[1]) == 0)
    from = from->args[0]->args[0]; // &raw[0]
  const Type &element = *s.type.pointee;
  return isVar(from, array) && (element.isInt() || element.isFloat());
}

void optiml::typeDynamicShared(Kernel &kernel) {
  std::vector<Stmt *> arrays;
  unsigned others = 0;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && s.isExtern)
      arrays.push_back(&s);
    others += s.kind == StmtKind::Opaque;
  });
  if (arrays.size() != 1 || others)
    return;
  Stmt &array = *arrays.front();
  unsigned uses = 0;
  StmtRef view;
  Stmt *list = nullptr;
  walk(*kernel.body, [&](Stmt &s) {
    for (const StmtRef &child : s.body)
      if (isView(*child, array.text)) {
        view = child;
        list = &s;
      }
  });
  walkExprs(*kernel.body,
            [&](const ExprRef &e) { uses += isVar(e, array.text) + 2 * unsigned(e->names.count(array.text)); });
  if (!view || uses != 1)
    return;
  // Nothing changes the pointer itself, and nobody learns its address.
  if (anyExpr(*kernel.body, [&](const ExprRef &e) {
        return (mayChange(e) && isVar(e->args[0], view->text)) || e->names.count(view->text) != 0;
      }))
    return;
  // In one file, dynamic shared memory under one name is of one type in all kernels, of all instances too.
  std::string type = view->type.pointee->text;
  for (char &c : type)
    if (!isalnum(static_cast<unsigned char>(c)))
      c = '_';
  if (array.align)
    type += "_" + std::to_string(array.align);
  array.text = freshName(kernel, view->text + "_" + type);
  array.type = *view->type.pointee;
  list->body.erase(std::find(list->body.begin(), list->body.end(), view));
  substitute(*kernel.body, {{view->text, var(array.text, view->type)}});
}
