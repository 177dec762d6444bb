//===- SymbolicIteration.cpp - what one iteration makes of variables ------===//
#include "optiml/Analysis/SymbolicIteration.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

std::optional<double> optiml::numberOf(const ExprRef &e) {
  if (e->kind == ExprKind::FloatLit)
    return std::strtod(e->text.c_str(), nullptr);
  if (auto value = constantValue(e))
    return double(*value);
  if (e->kind == ExprKind::Unary && e->text == "-")
    if (auto value = numberOf(e->args[0]))
      return -*value;
  return std::nullopt;
}

static bool mentionedIn(Stmt &s, const std::set<std::string> &names) {
  return opaqueMentions(s, names) ||
         anyExpr(s, [&](const ExprRef &e) { return e->kind == ExprKind::Var && names.count(e->text); });
}

std::optional<std::vector<Stmt *>> optiml::updateStatements(Stmt &loop, std::set<std::string> &names) {
  std::vector<Stmt *> result;
  for (const StmtRef &s : loop.body[0]->body) {
    if (!mentionedIn(*s, names))
      continue;
    result.push_back(s.get());
    if (s->kind == StmtKind::Decl)
      names.insert(s->text);
  }
  bool good = !result.empty();
  for (Stmt *s : result)
    walkExprs(*s, [&](const ExprRef &e) {
      bool changes = mayChange(e);
      if (changes)
        good &= e->kind != ExprKind::Unary && e->args[0]->kind == ExprKind::Var && names.count(e->args[0]->text);
      good &= e->pure && e->kind != ExprKind::Opaque;
    });
  return good ? std::optional(result) : std::nullopt;
}

std::map<std::string, Type> optiml::assignedNumbers(Stmt &loop) {
  std::set<std::string> inside = namesDeclaredIn(loop);
  std::map<std::string, Type> result;
  walkExprs(loop, [&](const ExprRef &e) {
    if (e->kind != ExprKind::Assign || e->args[0]->kind != ExprKind::Var)
      return;
    const Type &type = e->args[0]->type;
    if (!inside.count(e->args[0]->text) && type.isFloat() && !type.isVolatile)
      result[e->args[0]->text] = type;
  });
  return result;
}

bool SymbolicIteration::run(const std::vector<Stmt *> &statements) {
  return llvm::all_of(statements, [&](Stmt *s) { return run(*s); });
}

ExprRef SymbolicIteration::value(const std::string &name, const Type &type) const {
  auto it = values.find(name);
  return it == values.end() ? var(name, type) : it->second;
}

bool SymbolicIteration::run(Stmt &s) {
  switch (s.kind) {
  case StmtKind::Block: return llvm::all_of(s.body, [&](const StmtRef &child) { return run(*child); });
  case StmtKind::Decl:
    if (!s.expr || !s.dims.empty() || s.isShared)
      return false;
    values[s.text] = evaluate(s.expr);
    return true;
  case StmtKind::Expr: {
    bool counts = s.expr->kind == ExprKind::IncDec && s.expr->text.find('+') != std::string::npos;
    if ((s.expr->kind != ExprKind::Assign && !counts) || s.expr->args[0]->kind != ExprKind::Var)
      return false;
    const ExprRef &target = s.expr->args[0];
    ExprRef value = counts ? intLit(1) : evaluate(s.expr->args[1]);
    if (counts || s.expr->text != "=") {
      std::string op = counts ? "+" : s.expr->text.substr(0, 1);
      if (op != "+" && op != "*" && op != "-" && op != "/")
        return false;
      value = simplify(binary(op, evaluate(target), value, target->type));
    }
    values[target->text] = value;
    return true;
  }
  case StmtKind::If: {
    auto taken = decide(evaluate(s.expr));
    if (!taken)
      return false;
    return *taken ? run(*s.body[0]) : s.body.size() < 2 || run(*s.body[1]);
  }
  default: return false;
  }
}

ExprRef SymbolicIteration::evaluate(const ExprRef &e) const {
  return rewrite(e, [&](const ExprRef &n) -> ExprRef {
    if (n->kind == ExprKind::Var) {
      auto it = values.find(n->text);
      return it == values.end() ? nullptr : it->second;
    }
    ExprRef simple = simplify(n);
    return simple == n ? nullptr : simple;
  });
}
