//===- RecordParts.cpp - the variables that records became ----------------===//
#include "Inlining.h"
#include "SplitRecords.h"

using namespace optiml;

bool optiml::loadsMemory(const ExprRef &e) {
  return anyNode(e, [&](const ExprRef &n) { return isLoad(n); });
}

std::string optiml::placeOf(ExprRef e) {
  while (e->kind == ExprKind::Subscript || e->kind == ExprKind::Member)
    e = e->args[0];
  return e->kind == ExprKind::Var ? e->text : "";
}

/// (p + i)[j] as p[i + j], which the printed text is read as.
static ExprRef withPlainPlaces(const ExprRef &e) {
  ExprRef plain = mapOperands(e, withPlainPlaces);
  if (plain->kind != ExprKind::Subscript)
    return plain;
  auto [base, offset] = splitPointer(plain->args[0]);
  if (!offset)
    return plain;
  auto result = std::make_shared<Expr>(*plain);
  result->args = {base, joinOffsets(offset, plain->args[1])};
  return result;
}

namespace {

class Tidying {
public:
  Tidying(Kernel &kernel, const std::set<std::string> &made) : kernel(kernel), made(made) {}
  void run() {
    dropUnused();
    normalize(kernel);
    forward();
    coalesce();
  }

private:
  Kernel &kernel;
  const std::set<std::string> &made;

  void dropUnused() {
    for (bool changed = true; changed;) {
      changed = false;
      std::set<std::string> mentioned;
      walkExprs(*kernel.body, [&](const ExprRef &e) {
        if (e->kind == ExprKind::Var)
          mentioned.insert(e->text);
      });
      walk(*kernel.body, [&](Stmt &block) {
        if (block.kind == StmtKind::Block)
          changed |= std::erase_if(block.body, [&](const StmtRef &s) {
                       return s->kind == StmtKind::Decl && made.count(s->text) && !mentioned.count(s->text);
                     }) > 0;
      });
    }
  }

  /// "const float r_re = a + b; sum_re += r_re;" is "sum_re += a + b;", where nothing between changes a or b.
  void forward() {
    std::map<std::string, unsigned> mentioned = countMentions(*kernel.body);
    walk(*kernel.body, [&](Stmt &block) {
      if (block.kind != StmtKind::Block)
        return;
      for (size_t i = 0; i < block.body.size();)
        i += !(mentioned[block.body[i]->text] == 1 && forward(block.body, i));
    });
  }
  bool forward(std::vector<StmtRef> &list, size_t at) {
    const Stmt &decl = *list[at];
    if (decl.kind != StmtKind::Decl || !made.count(decl.text) || !decl.expr || !decl.dims.empty() ||
        hasEffects(decl.expr))
      return false;
    bool fromMemory = loadsMemory(decl.expr);
    std::set<std::string> names = namesIn(decl.expr);
    for (size_t i = at + 1; i < list.size(); ++i) {
      Stmt &s = *list[i];
      bool assigns = s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign;
      ExprRef *value = s.kind == StmtKind::Decl ? &s.expr : nullptr;
      ExprRef stored;
      if (assigns)
        value = &(stored = s.expr->args[1]);
      if (!value || (*value && hasEffects(*value)) || !s.dims.empty())
        return false;
      const Type &type = assigns ? s.expr->args[0]->type : s.type;
      if (*value && mentions(*value, decl.text)) {
        // What the variable rounds or cuts off must be the same without it.
        bool whole =
            (*value)->kind == ExprKind::Var && type.text == decl.type.text && (!assigns || s.expr->text == "=");
        if (!whole && (decl.expr->type.text != decl.type.text || (assigns && mentions(s.expr->args[0], decl.text))))
          return false;
        ExprRef moved = withPlainPlaces(substitute(*value, {{decl.text, decl.expr}}));
        s.expr = assigns ? assign(s.expr->text, s.expr->args[0], moved) : moved;
        list.erase(list.begin() + long(at));
        return true;
      }
      if (assigns && (s.expr->args[0]->kind == ExprKind::Var
                          ? names.count(s.expr->args[0]->text) != 0
                          : fromMemory || hasEffects(s.expr->args[0]) || names.count(placeOf(s.expr->args[0]))))
        return false;
      if (assigns ? mentions(s.expr, decl.text) : s.expr && mentions(s.expr, decl.text))
        return false;
    }
    return false;
  }

  /// "float r = sum; r += x; sum = r;" is "sum += x;": a function's own copy of what its result replaces.
  void coalesce() {
    walk(*kernel.body, [&](Stmt &block) {
      if (block.kind != StmtKind::Block)
        return;
      for (size_t i = 0; i < block.body.size();)
        i += !coalesce(block.body, i);
    });
  }
  bool coalesce(std::vector<StmtRef> &list, size_t at) {
    const Stmt &decl = *list[at];
    if (decl.kind != StmtKind::Decl || !made.count(decl.text) || !decl.expr || decl.expr->kind != ExprKind::Var ||
        !made.count(decl.expr->text) || decl.type.isConst || decl.expr->type.text != decl.type.text)
      return false;
    const std::string copy = decl.text, original = decl.expr->text;
    auto mentionedIn = [](Stmt &s, const std::string &name) {
      return anyExpr(s, [&](const ExprRef &e) { return isVar(e, name); });
    };
    size_t end = at + 1;
    for (; end < list.size(); ++end) {
      const Stmt &s = *list[end];
      if (isAssignStmt(s) && isVar(s.expr->args[0], original) && isVar(s.expr->args[1], copy))
        break;
      if (mentionedIn(*list[end], original))
        return false;
      if (holdsKind(*list[end], {StmtKind::Break, StmtKind::Continue, StmtKind::Return, StmtKind::Opaque}))
        return false;
    }
    if (end == list.size())
      return false;
    for (size_t i = end + 1; i < list.size(); ++i)
      if (mentionedIn(*list[i], copy))
        return false;
    for (size_t i = at + 1; i < end; ++i)
      substitute(*list[i], {{copy, decl.expr}});
    list.erase(list.begin() + long(end));
    list.erase(list.begin() + long(at));
    return true;
  }
};

} // namespace

void optiml::tidyParts(Kernel &kernel, const std::set<std::string> &made) { Tidying(kernel, made).run(); }
