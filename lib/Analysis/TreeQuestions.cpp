//===- TreeQuestions.cpp - what expressions and statements are ------------===//
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

namespace optiml {

bool anyNode(const ExprRef &e, const std::function<bool(const ExprRef &)> &f) {
  return f(e) || llvm::any_of(e->args, [&](const ExprRef &arg) { return anyNode(arg, f); });
}

static bool anyOwn(const Stmt &s, const std::function<bool(const ExprRef &)> &f) {
  return (s.expr && f(s.expr)) || (s.step && f(s.step)) ||
         llvm::any_of(s.dims, [&](const ExprRef &d) { return d && f(d); });
}

bool anyStmt(const Stmt &s, const std::function<bool(const Stmt &)> &f) {
  return f(s) || (s.init && anyStmt(*s.init, f)) ||
         llvm::any_of(s.body, [&](const StmtRef &child) { return anyStmt(*child, f); });
}

bool anyExpr(const Stmt &s, const std::function<bool(const ExprRef &)> &f) {
  return anyStmt(s, [&](const Stmt &t) { return anyOwn(t, [&](const ExprRef &e) { return anyNode(e, f); }); });
}

// Expressions

bool isVar(const ExprRef &e, std::string_view name) { return e->kind == ExprKind::Var && e->text == name; }
bool isBuiltin(const ExprRef &e, std::string_view name) { return e->kind == ExprKind::Builtin && e->text == name; }
bool isUnary(const ExprRef &e, std::string_view op) { return e->kind == ExprKind::Unary && e->text == op; }
bool isBinary(const ExprRef &e, std::string_view op) { return e->kind == ExprKind::Binary && e->text == op; }
bool isChange(const ExprRef &e) { return e->kind == ExprKind::Assign || e->kind == ExprKind::IncDec; }
ExprRef newValue(const ExprRef &change) {
  const ExprRef &target = change->args[0];
  if (change->kind == ExprKind::IncDec)
    return binary(change->text.find('+') != std::string::npos ? "+" : "-", target, intLit(1), target->type);
  std::string op = change->text.substr(0, change->text.size() - 1);
  return op.empty() ? change->args[1] : binary(op, target, change->args[1], target->type);
}
bool mayChange(const ExprRef &e) { return isChange(e) || isUnary(e, "&"); }
std::set<std::string> changedWithin(const Expr &e) {
  std::set<std::string> names = e.names;
  if (e.kind != ExprKind::Call || !e.isConfined)
    return names;
  for (const ExprRef &arg : e.args) {
    const Expr *at = arg.get();
    bool leads = isUnary(arg, "&") || at->type.isPointer();
    auto isStep = [](const Expr &x) {
      return x.kind == ExprKind::Subscript || x.kind == ExprKind::Member || x.kind == ExprKind::Cast ||
             x.kind == ExprKind::Unary;
    };
    while (isStep(*at) || (at->kind == ExprKind::Binary && at->type.isPointer()))
      at = at->kind == ExprKind::Binary && !at->args[0]->type.isPointer() ? at->args[1].get() : at->args[0].get();
    if (leads && at->kind == ExprKind::Var)
      names.insert(at->text);
  }
  return names;
}
bool isLoad(const ExprRef &e) {
  return e->kind == ExprKind::Subscript || (e->kind == ExprKind::Member && e->args[0]->type.isPointer());
}
bool isIntDivision(const ExprRef &e) { return (isBinary(e, "/") || isBinary(e, "%")) && e->type.isInt(); }

bool hasEffects(const ExprRef &e) {
  return anyNode(e, [](const ExprRef &n) { return !n->pure || isChange(n); });
}

ExprRef subscriptRoot(ExprRef e) {
  while (e->kind == ExprKind::Subscript)
    e = e->args[0];
  return e;
}

std::string rootName(const ExprRef &e) {
  ExprRef root = subscriptRoot(e);
  return root->kind == ExprKind::Var ? root->text : "";
}

std::vector<ExprRef> indicesOf(const ExprRef &e) {
  std::vector<ExprRef> result;
  for (ExprRef at = e; at->kind == ExprKind::Subscript; at = at->args[0])
    result.insert(result.begin(), at->args[1]);
  return result;
}

std::vector<ExprRef> operandsOf(const ExprRef &e, std::string_view op) {
  if (!isBinary(e, op))
    return {e};
  std::vector<ExprRef> result = operandsOf(e->args[0], op);
  llvm::append_range(result, operandsOf(e->args[1], op));
  return result;
}

// Statements

bool isLoop(const Stmt &s) { return s.kind == StmtKind::For || s.kind == StmtKind::While || s.kind == StmtKind::Do; }

bool isAssignStmt(const Stmt &s, std::string_view op) {
  return s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->text == op;
}

bool holdsKind(const Stmt &s, std::initializer_list<StmtKind> kinds) {
  return anyStmt(s, [&](const Stmt &t) { return llvm::is_contained(kinds, t.kind); });
}

bool holdsStmt(const Stmt &s, const Stmt *wanted) {
  return anyStmt(s, [&](const Stmt &t) { return &t == wanted; });
}

bool leavesIteration(const Stmt &s, std::initializer_list<StmtKind> kinds) {
  return llvm::is_contained(kinds, s.kind) ||
         (!isLoop(s) && llvm::any_of(s.body, [&](const StmtRef &child) { return leavesIteration(*child, kinds); }));
}

std::set<std::string> namesDeclaredIn(const Stmt &s) {
  std::set<std::string> names;
  walk(const_cast<Stmt &>(s), [&](Stmt &t) {
    if (t.kind == StmtKind::Decl)
      names.insert(t.text);
  });
  return names;
}

std::map<std::string, unsigned> countChanges(const Stmt &s) {
  std::map<std::string, unsigned> changes;
  walkExprs(const_cast<Stmt &>(s), [&](const ExprRef &e) {
    if (mayChange(e) && e->args[0]->kind == ExprKind::Var)
      ++changes[e->args[0]->text];
    else if (e->isConfined)
      for (const std::string &name : changedWithin(*e))
        ++changes[name];
  });
  return changes;
}

std::map<std::string, unsigned> countMentions(const Stmt &s) {
  std::map<std::string, unsigned> mentions;
  walkExprs(const_cast<Stmt &>(s), [&](const ExprRef &e) {
    if (e->kind == ExprKind::Var)
      ++mentions[e->text];
  });
  return mentions;
}

// Names

bool mentions(const ExprRef &e, const std::string &name) { return namesIn(e).count(name) != 0; }

bool opaqueMentions(Stmt &s, const std::set<std::string> &names) {
  auto mentioned = [&](const auto &part) {
    return llvm::any_of(part.names, [&](const std::string &name) { return names.count(name) != 0; });
  };
  return anyStmt(s, [&](const Stmt &t) { return t.kind == StmtKind::Opaque && mentioned(t); }) ||
         anyExpr(s, [&](const ExprRef &e) { return e->kind == ExprKind::Opaque && mentioned(*e); });
}

bool isAtomicUpdate(const Stmt &s) {
  return s.kind == StmtKind::Expr && s.expr && s.expr->kind == ExprKind::Call && s.expr->isAtomic &&
         s.expr->args.size() == 2 && !s.expr->folds.empty();
}

static bool mayWait(Stmt &s, bool unawareIsHarmless, llvm::function_ref<bool(const Expr &)> isHarmless) {
  auto impure = [&](const ExprRef &e) {
    bool isCall = e->kind == ExprKind::Call || e->kind == ExprKind::Opaque;
    return (isCall && !e->pure && !isHarmless(*e) && !(unawareIsHarmless && e->isUnaware)) ||
           (e->type.isVolatile && e->kind != ExprKind::Var); // how threads wait for each other
  };
  return anyStmt(s, [&](const Stmt &t) {
    auto isImpure = [&](const ExprRef &e) { return anyNode(e, impure); };
    return t.kind == StmtKind::Barrier ||
           (t.kind == StmtKind::Opaque && t.mayBarrier && !(unawareIsHarmless && t.isUnaware)) ||
           (isAtomicUpdate(t) ? llvm::any_of(t.expr->args, isImpure) : anyOwn(t, isImpure));
  });
}

bool hasBarrier(Stmt &s) {
  return mayWait(s, false, [](const Expr &) { return false; });
}

bool threadsMayMeet(Stmt &s, Kept kept) {
  bool waits = anyStmt(s, [](const Stmt &t) {
    return isLoop(t) && !asCountedLoop(const_cast<Stmt &>(t)) && !asStridedLoop(const_cast<Stmt &>(t)) &&
           anyExpr(t, [](const ExprRef &e) { return e->isAtomic; });
  });
  return mayWait(s, kept == Kept::Statements, [&](const Expr &e) {
    return e.isConfined || (kept != Kept::Nothing && !waits && e.kind == ExprKind::Call && e.isAtomic);
  });
}

// Comparing
//===----------------------------------------------------------------------===//

bool equal(const ExprRef &a, const ExprRef &b) {
  if (!a || !b)
    return a == b;
  if (a->kind != b->kind || a->text != b->text || (a->kind == ExprKind::IntLit && a->value != b->value) ||
      a->args.size() != b->args.size())
    return false;
  for (size_t i = 0; i < a->args.size(); ++i)
    if (!equal(a->args[i], b->args[i]))
      return false;
  return true;
}

bool equal(const Stmt &a, const Stmt &b) {
  if (a.kind != b.kind || a.unroll != b.unroll || a.isShared != b.isShared || a.isExtern != b.isExtern ||
      a.align != b.align || a.type.text != b.type.text || a.dims.size() != b.dims.size() ||
      a.body.size() != b.body.size() || !equal(a.expr, b.expr) || !equal(a.step, b.step) || !a.init != !b.init)
    return false;
  // A block's or loop's comment is not part of the program.
  bool named = a.kind == StmtKind::Decl || a.kind == StmtKind::Opaque;
  if (named && a.text != b.text)
    return false;
  if (a.init && !equal(*a.init, *b.init))
    return false;
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (!equal(a.dims[i], b.dims[i]))
      return false;
  for (size_t i = 0; i < a.body.size(); ++i)
    if (!equal(*a.body[i], *b.body[i]))
      return false;
  return true;
}

bool equal(const Kernel &a, const Kernel &b) {
  if (a.name != b.name || a.maxThreads != b.maxThreads || a.minBlocks != b.minBlocks ||
      a.params.size() != b.params.size())
    return false;
  for (size_t i = 0; i < a.params.size(); ++i)
    if (a.params[i].name != b.params[i].name || a.params[i].type.text != b.params[i].type.text ||
        a.params[i].type.isRestrict != b.params[i].type.isRestrict)
      return false;
  return equal(*a.body, *b.body);
}

} // namespace optiml
