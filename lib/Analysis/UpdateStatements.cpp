//===- UpdateStatements.cpp - the statements that make an accumulator -----===//
#include "optiml/Analysis/IterationCases.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace optiml;

std::optional<double> optiml::numberOf(const ExprRef &e) {
  if (e->kind == ExprKind::FloatLit)
    return std::strtod(e->text.c_str(), nullptr);
  if (auto value = constantValue(e))
    return double(*value);
  if (e->kind == ExprKind::Unary && e->text == "-")
    if (auto value = numberOf(e->args[0]))
      return -*value;
  if (e->kind == ExprKind::Call && e->args.empty() && llvm::StringRef(e->text).starts_with("__builtin_inf"))
    return HUGE_VAL;
  return std::nullopt;
}

static bool mentionedIn(Stmt &s, const std::set<std::string> &names) {
  return opaqueMentions(s, names) ||
         anyExpr(s, [&](const ExprRef &e) { return e->kind == ExprKind::Var && names.count(e->text); });
}

/// Between the statements, nothing else of the body changes what they read.
static bool keepOutsideValues(Stmt &loop, const std::vector<Stmt *> &statements, const std::set<std::string> &names) {
  std::set<std::string> read;
  bool loads = false;
  for (Stmt *s : statements)
    walkExprs(*s, [&](const ExprRef &e) {
      loads |= isLoad(e);
      if (e->kind == ExprKind::Var && !names.count(e->text))
        read.insert(e->text);
    });
  bool between = false, good = true;
  for (const StmtRef &s : loop.body[0]->body) {
    if (s.get() == statements.back())
      break;
    if (llvm::is_contained(statements, s.get())) {
      between = true;
      continue;
    }
    if (!between)
      continue;
    good &= !holdsKind(*s, {StmtKind::Opaque, StmtKind::Barrier, StmtKind::Return});
    walkExprs(*s, [&](const ExprRef &e) {
      bool changes = mayChange(e);
      good &= e->pure && !(changes && e->args[0]->kind == ExprKind::Var && read.count(e->args[0]->text)) &&
              !(changes && e->args[0]->kind != ExprKind::Var && loads);
    });
  }
  return good;
}

std::optional<std::vector<Stmt *>> optiml::updateStatements(Stmt &loop, std::set<std::string> &names) {
  std::vector<Stmt *> result;
  std::set<std::string> inside = namesDeclaredIn(*loop.body[0]);
  for (size_t known = 0; known != names.size();) { // what they change and an iteration declares belongs to it
    known = names.size();
    result.clear();
    for (const StmtRef &s : loop.body[0]->body) {
      bool declares = s->kind == StmtKind::Decl && names.count(s->text);
      if (!declares && !mentionedIn(*s, names))
        continue;
      result.push_back(s.get());
      walk(*s, [&](Stmt &t) {
        if (t.kind == StmtKind::Decl)
          names.insert(t.text);
      });
      walkExprs(*s, [&](const ExprRef &e) {
        if (isChange(e) && e->args[0]->kind == ExprKind::Var && inside.count(e->args[0]->text))
          names.insert(e->args[0]->text);
      });
    }
  }
  bool good = !result.empty();
  for (Stmt *s : result)
    walkExprs(*s, [&](const ExprRef &e) {
      bool changes = mayChange(e);
      if (changes)
        good &= e->kind != ExprKind::Unary && e->args[0]->kind == ExprKind::Var && names.count(e->args[0]->text);
      good &= e->pure && e->kind != ExprKind::Opaque;
    });
  return good && keepOutsideValues(loop, result, names) ? std::optional(result) : std::nullopt;
}
