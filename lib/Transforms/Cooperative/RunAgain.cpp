//===- RunAgain.cpp - loops that run again as they were -------------------===//
#include "RunAgain.h"
#include "OwnState.h"
#include "Reduction.h"
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

static std::vector<Reduction> unorderedIn(Stmt &loop) {
  auto found = findReductions(loop, /*strictFloat=*/false, {}, /*runsAgain=*/true);
  if (!found) {
    llvm::consumeError(found.takeError());
    return {};
  }
  llvm::erase_if(*found, [](const Reduction &r) { return !r.unordered; });
  return std::move(*found);
}

/// Where the body's own statements have computed what the extreme's update compares.
static std::optional<size_t> afterUpdate(Stmt &loop, const Reduction &r) {
  std::set<std::string> names = {r.variable};
  for (const auto &[name, type] : r.kept)
    names.insert(name);
  auto statements = updateStatements(loop, names);
  if (!statements)
    return std::nullopt;
  const std::vector<StmtRef> &body = loop.body[0]->body;
  std::set<std::string> visible = namesDeclaredIn(loop);
  for (const StmtRef &s : body)
    if (s->kind != StmtKind::Decl)
      for (const std::string &name : namesDeclaredIn(*s))
        visible.erase(name);
  for (const std::string &name : namesIn(r.unordered))
    if (namesDeclaredIn(*loop.body[0]).count(name) && !visible.count(name))
      return std::nullopt;
  for (size_t i = 0; i < body.size(); ++i)
    if (body[i].get() == statements->back())
      return i + 1;
  return std::nullopt;
}

static void runAgain(std::vector<StmtRef> &list, size_t at, std::set<std::string> &taken, RunsAgain &result) {
  Stmt &loop = *list[at];
  if (!asCountedLoop(loop) || loop.body[0]->kind != StmtKind::Block || leavesEarly(*loop.body[0]) ||
      holdsKind(loop, {StmtKind::Opaque, StmtKind::Barrier}))
    return;
  std::vector<Reduction> unordered = unorderedIn(loop);
  if (unordered.empty() ||
      anyExpr(loop, [](const ExprRef &e) { return !e->pure || (mayChange(e) && e->args[0]->kind != ExprKind::Var); }))
    return;
  StmtRef again = clone(list[at]);
  ExprRef odd = var(freshName(taken, "unordered"), Type::makeInt());
  auto isOdd = [&](const ExprRef &x) { return binary("!=", x, x, Type::makeBool()); };
  ExprRef before;
  for (const Reduction &r : unordered) {
    auto place = afterUpdate(loop, r);
    if (!place)
      return;
    std::vector<StmtRef> &body = loop.body[0]->body;
    body.insert(body.begin() + long(*place),
                exprStmt(assign("|=", odd, conditional(isOdd(r.unordered), intLit(1), intLit(0)))));
    if (r.flag.empty()) {
      ExprRef start = isOdd(var(r.variable, r.type));
      before = before ? binary("||", before, start, Type::makeBool()) : start;
    }
  }
  std::vector<StmtRef> made = {
      declStmt(odd->text, odd->type, before ? conditional(before, intLit(1), intLit(0)) : intLit(0))};
  StmtRef rerun = block({}, "A value is no number: as it was.");
  for (const auto &[name, type] : assignedOutside(*again)) {
    ExprRef old = var(freshName(taken, name + "_before"), type.unqualified()), now = var(name, type);
    made.push_back(declStmt(old->text, old->type.withConst(true), now));
    rerun->body.push_back(exprStmt(assign("=", now, old)));
  }
  rerun->body.push_back(again);
  renameDeclarations(*again, taken);
  result.loops.insert(&loop);
  result.asTheyWere.insert(again.get());
  list.insert(list.begin() + long(at) + 1, ifStmt(binary("!=", odd, intLit(0), Type::makeBool()), rerun));
  list.insert(list.begin() + long(at), made.begin(), made.end());
}

RunsAgain optiml::runAgainWhereUnordered(Kernel &kernel) {
  RunsAgain result;
  std::set<std::string> taken = allNames(kernel);
  std::vector<std::vector<StmtRef> *> lists;
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) { lists.push_back(&list); });
  for (std::vector<StmtRef> *list : lists)
    for (size_t i = list->size(); i-- > 0;)
      if ((*list)[i]->kind == StmtKind::For)
        runAgain(*list, i, taken, result);
  return result;
}
