//===- DoLoops.cpp - loops that test at their end -------------------------===//
#include "optiml/Canonicalize/DoLoops.h"
#include "optiml/Analysis/Advances.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KernelModel.h"

using namespace optiml;

namespace {
/// A test of a variable that an iteration changes by one: "variable op end".
struct EndTest {
  std::string name;
  std::string op;
  ExprRef end;
  StmtRef advance; ///< null where a statement of the body does it
  bool up = true;
};
} // namespace

static std::optional<EndTest> endTestOf(const Stmt &loop) {
  auto stepped = [](const ExprRef &e, EndTest &test) { // ++j, --j
    if (e->kind != ExprKind::IncDec || e->text[0] == 'x' || e->args[0]->kind != ExprKind::Var)
      return false;
    test.name = e->args[0]->text;
    test.up = e->text[0] == '+';
    test.advance = exprStmt(e);
    return true;
  };
  EndTest test;
  if (stepped(loop.expr, test)) { // while (--left)
    test.op = "!=";
    test.end = intLit(0);
    return test;
  }
  if (loop.expr->kind != ExprKind::Binary || !loop.expr->args[0]->type.isInt() || !loop.expr->args[1]->type.isInt())
    return std::nullopt;
  const ExprRef &v = loop.expr->args[0];
  test.op = loop.expr->text;
  test.end = loop.expr->args[1];
  if (stepped(v, test))
    return test;
  if (v->kind != ExprKind::Var)
    return std::nullopt;
  for (const StmtRef &s : loop.body[0]->body)
    if (s->kind == StmtKind::Expr && s->expr->kind == ExprKind::IncDec && isVar(s->expr->args[0], v->text)) {
      test.name = v->text;
      test.up = s->expr->text.find('+') != std::string::npos;
      return test;
    }
  return std::nullopt;
}

/// The declaration of the variable before the loop, if nothing but the loop changes it, and there once.
static const Stmt *startOf(Kernel &kernel, const Stmt &list, size_t at, const EndTest &test) {
  auto total = countChanges(*kernel.body), inside = countChanges(*list.body[at]);
  if (total[test.name] != 1 || inside[test.name] != 1 || opaqueMentions(*kernel.body, {test.name}))
    return nullptr;
  for (size_t i = 0; i < at; ++i)
    if (const Stmt &s = *list.body[i]; s.kind == StmtKind::Decl && s.text == test.name && s.expr && s.type.isInt())
      return &s;
  return nullptr;
}

static bool testsFirst(KernelState &state, Kernel &kernel, const KernelModel &model, Stmt &list, size_t at) {
  Stmt &loop = *list.body[at];
  if (loop.kind != StmtKind::Do || leavesIteration(*loop.body[0], {StmtKind::Continue}))
    return false;
  auto test = endTestOf(loop);
  const Stmt *start = test ? startOf(kernel, list, at, *test) : nullptr;
  if (!start || (test->op != "!=" && test->op != (test->up ? "<" : ">")) || !model.stable(test->end))
    return false;
  Poly from = model.poly(start->expr), to = model.poly(test->end), trips = test->up ? to - from : from - to;
  if (auto constant = trips.constant()) {
    if (*constant < 1)
      return false;
  } else {
    auto text = planText(model, trips);
    if (!text)
      return false;
    state.require(*text + " >= 1", "the loop runs at least once");
  }
  if (test->advance)
    loop.body[0]->body.push_back(atLine(loop.line, test->advance));
  ExprRef v = var(test->name, start->type.unqualified());
  loop.kind = StmtKind::While;
  loop.expr = binary(test->op, v, test->end, Type::makeBool());
  return true;
}

/// "if (c) do { … } while (c);" is "while (c) { … }".
static bool testsBefore(Stmt &branch) {
  if (branch.kind != StmtKind::If || branch.body.size() != 1 || branch.body[0]->body.size() != 1)
    return false;
  Stmt &loop = *branch.body[0]->body[0];
  if (loop.kind != StmtKind::Do || !equal(loop.expr, branch.expr) || hasEffects(loop.expr))
    return false;
  loop.kind = StmtKind::While;
  branch = Stmt(loop);
  return true;
}

void optiml::countDoLoops(KernelState &state, Kernel &kernel) {
  if (!holdsKind(*kernel.body, {StmtKind::Do}))
    return;
  KernelModel model(kernel, {0, 0, 0});
  bool changed = false;
  walk(*kernel.body, [&](Stmt &s) {
    changed |= testsBefore(s);
    if (s.kind == StmtKind::Block)
      for (size_t i = 0; i < s.body.size(); ++i)
        changed |= testsFirst(state, kernel, model, s, i);
  });
  if (!changed)
    return;
  std::set<std::string> taken = allNames(kernel);
  useOneCounter(kernel, taken);
  normalize(kernel);
}
