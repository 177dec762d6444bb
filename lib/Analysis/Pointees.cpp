//===- Pointees.cpp - pointers that only name a place ---------------------===//
#include "optiml/Analysis/Pointees.h"
#include "Inlining.h"
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

namespace {
/// array + index
struct RowPointer {
  ExprRef array, index;
};
} // namespace

/// The array and the index that a declared pointer starts with.
static std::optional<RowPointer> rowAtFirst(const Stmt &s) {
  if (s.kind != StmtKind::Decl || !s.type.isPointer() || !s.expr || !s.dims.empty() || s.isShared || !s.type.pointee)
    return std::nullopt;
  const auto [array, index] = splitPointer(s.expr);
  if (array->kind != ExprKind::Var || !index || !index->type.isInt() || !array->type.pointee ||
      array->type.pointee->unqualified().text != s.type.pointee->unqualified().text || s.type.pointee->isVolatile)
    return std::nullopt;
  return RowPointer{array, index};
}

/// Whether the pointer always stands for its row, and that can be said in its place.
static bool staysThere(Kernel &kernel, const std::string &pointer, const RowPointer &row) {
  const std::map<std::string, unsigned> changes = countChanges(*kernel.body);
  const std::set<std::string> names = {pointer, row.array->text};
  const bool isMoved = llvm::any_of(names, [&](const std::string &name) { return changes.count(name) != 0; }) ||
                       anyExpr(*kernel.body, [&](const ExprRef &e) {
                         return isUnary(e, "&") && e->args[0]->kind == ExprKind::Var && names.count(e->args[0]->text);
                       });
  return !isMoved && !opaqueMentions(*kernel.body, {pointer});
}

/// Says `array[first + i]` for `pointer[i]`, and so on.
static void nameRow(Kernel &kernel, Stmt &declaration, const RowPointer &row, std::set<std::string> &taken) {
  const std::string pointer = declaration.text;
  const bool isAlwaysFirst = !anyExpr(*kernel.body, [&](const ExprRef &e) {
    return llvm::any_of(e->args, [&](const ExprRef &arg) { return isVar(arg, pointer) && !follows(e, pointer); });
  });
  // The sum of two indices, as pointers have it.
  const Type type = isAlwaysFirst || row.index->type.bytes == 8 ? row.index->type.unqualified() : Type::makeLong();
  declaration.text = freshName(taken, pointer + "_first");
  declaration.type = type;
  declaration.expr = row.index;
  const ExprRef first = var(declaration.text, type), whole = binary("+", row.array, first, row.array->type);
  const Type &element = *row.array->type.pointee;
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (isVar(e, pointer))
      return whole;
    if (e->args.empty() || e->args[0] != whole) // operands come first
      return nullptr;
    if (isUnary(e, "*"))
      return subscript(row.array, first, e->type);
    if (e->kind == ExprKind::Subscript)
      return subscript(row.array, add(first, e->args[1]), e->type);
    if (e->kind != ExprKind::Member)
      return nullptr;
    auto member = std::make_shared<Expr>(*e);
    member->args[0] = subscript(row.array, first, element);
    return member;
  });
}

void optiml::nameRows(Kernel &kernel, std::set<std::string> &taken,
                      const std::function<bool(const std::string &array, const ExprRef &index)> &isWanted) {
  for (bool changed = true; changed;) {
    changed = false;
    walk(*kernel.body, [&](Stmt &s) {
      auto row = changed ? std::nullopt : rowAtFirst(s);
      if (!row || !isWanted(row->array->text, row->index) || !staysThere(kernel, s.text, *row))
        return;
      nameRow(kernel, s, *row, taken);
      changed = true;
    });
  }
}
