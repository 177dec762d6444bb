//===- ReadCounting.cpp - a[n++] = x as two statements --------------------===//
//
// A local variable that a statement counts on besides is counted on after it: the statement is then one that analyses
// know, and calls in it are read where they stand.
//
//===----------------------------------------------------------------------===//
#include "KernelReader.h"

using namespace optiml;

namespace {

/// The increments of an expression, what is evaluated only perhaps, all that it mentions, and whether it may read a
/// variable by another name.
struct Steps : cl::DynamicRecursiveASTVisitor {
  std::vector<const cl::UnaryOperator *> found;
  std::vector<const cl::ValueDecl *> mentioned;
  bool perhaps = false, indirect = false;
  bool VisitUnaryOperator(cl::UnaryOperator *x) override {
    if (x->isIncrementDecrementOp())
      found.push_back(x);
    indirect |= x->getOpcode() == cl::UO_Deref;
    return true;
  }
  bool VisitBinaryOperator(cl::BinaryOperator *x) override { return !(perhaps |= x->isLogicalOp() || x->isCommaOp()); }
  bool VisitConditionalOperator(cl::ConditionalOperator *) override { return !(perhaps = true); }
  bool VisitLambdaExpr(cl::LambdaExpr *) override { return !(perhaps = true); }
  bool VisitArraySubscriptExpr(cl::ArraySubscriptExpr *) override { return indirect = true; }
  bool VisitMemberExpr(cl::MemberExpr *) override { return indirect = true; }
  bool VisitCallExpr(cl::CallExpr *) override { return indirect = true; }
  bool VisitDeclRefExpr(cl::DeclRefExpr *x) override {
    mentioned.push_back(x->getDecl());
    indirect |= x->getDecl()->getType()->isReferenceType();
    return true;
  }
};

Steps stepsOf(const cl::Expr *e) {
  Steps result;
  result.TraverseStmt(const_cast<cl::Expr *>(e));
  return result;
}

} // namespace

const cl::UnaryOperator *KernelReader::countingOf(const cl::Expr *source) {
  const cl::Expr *e = strip(source);
  auto *store = llvm::dyn_cast<cl::BinaryOperator>(e);
  if (store && !store->isAssignmentOp())
    store = nullptr;
  const Steps all = stepsOf(e), place = store ? stepsOf(store->getLHS()) : Steps();
  if (all.perhaps || all.found.size() != 1 || !all.found[0]->isPostfix() || all.found[0] == e)
    return nullptr;
  auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(strip(all.found[0]->getSubExpr()));
  auto *counter = ref ? llvm::dyn_cast<cl::VarDecl>(ref->getDecl()) : nullptr;
  if (!counter || !counter->hasLocalStorage() || counter->getType()->isReferenceType() ||
      counter->getType().isVolatileQualified() || !counter->getType()->isScalarType())
    return nullptr;
  // What is stored is computed before its place ([expr.assign]): the place must not see a counter that has been
  // stepped.
  if (store && place.found.empty()) {
    auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(strip(store->getLHS()));
    if (element ? stepsOf(element->getIdx()).indirect || stepsOf(element->getBase()).indirect : place.indirect)
      return nullptr;
  }
  // It sees the counter as it was.
  const Steps &whereAlone = place.found.empty() ? all : place;
  return llvm::count(whereAlone.mentioned, counter) == 1 ? all.found[0] : nullptr;
}

bool KernelReader::readCounting(Stmt &s, const cl::Expr *source, std::vector<StmtRef> &out) {
  const cl::UnaryOperator *outer = std::exchange(counting, countingOf(source));
  s.expr = hoisted(source, out);
  return std::exchange(counting, outer) != nullptr;
}

void KernelReader::countAfter(const StmtRef &s, std::vector<StmtRef> &out) {
  unsigned found = 0;
  ExprRef step;
  auto take = [&](const ExprRef &e) -> ExprRef {
    if (e->kind != ExprKind::IncDec || (e->text != "x++" && e->text != "x--") || e->args[0]->kind != ExprKind::Var)
      return nullptr;
    ++found;
    step = e;
    return e->args[0];
  };
  ExprRef alone = s->expr ? rewrite(s->expr, take) : nullptr;
  if (found != 1)
    return;
  s->expr = alone;
  StmtRef counts = exprStmt(step);
  counts->line = s->line;
  out.push_back(counts);
}
