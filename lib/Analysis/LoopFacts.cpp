//===- LoopFacts.cpp - what holds within loops and of indices -------------===//
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Core/KernelName.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// "p < q ? a : b" where it is the greater one of a and b (1), or the lesser one (-1); 0: neither.
static int whichOf(const KernelModel &model, const ExprRef &e) {
  const ExprRef &c = e->args[0];
  if (c->kind != ExprKind::Binary || inverseComparison(c->text).empty() || c->text == "==" || c->text == "!=")
    return 0;
  Poly distance = model.poly(c->args[0]) - model.poly(c->args[1]); // < 0 where "<" takes a
  Poly gap = model.poly(e->args[1]) - model.poly(e->args[2]);
  int sign = gap == distance ? -1 : gap == Poly(0) - distance ? 1 : 0;
  return c->text[0] == '<' ? sign : -sign;
}

std::optional<ExtremeOfTwo> optiml::asExtreme(const KernelModel &model, const ExprRef &e) {
  if (e->kind == ExprKind::Call && e->isLibrary && e->args.size() == 2) {
    llvm::StringRef name = unqualified(e->text);
    if (name == "max" || name == "min")
      return ExtremeOfTwo{name == "max", e->args[0], e->args[1]};
  }
  if (e->kind == ExprKind::Cond)
    if (int which = whichOf(model, e))
      return ExtremeOfTwo{which > 0, e->args[1], e->args[2]};
  return std::nullopt;
}

/// What `e` is not less than (not greater than), each of them.
std::vector<Poly> KernelModel::boundsOf(const ExprRef &e, bool fromBelow) const {
  auto extreme = asExtreme(*this, e);
  if (extreme && extreme->greatest == fromBelow) {
    std::vector<Poly> result = boundsOf(extreme->a, fromBelow);
    llvm::append_range(result, boundsOf(extreme->b, fromBelow));
    return result;
  }
  if (e->kind == ExprKind::Cast && e->type.isInt() && e->args[0]->type.isInt() &&
      e->type.bytes >= e->args[0]->type.bytes)
    return boundsOf(e->args[0], fromBelow);
  if (e->kind == ExprKind::Var)
    if (const Stmt *d = singleAssignment(e->text); d && d->expr && stable(d->expr))
      return boundsOf(d->expr, fromBelow);
  if (isBinary(e, "+") || isBinary(e, "-"))
    if (auto constant = constantValue(e->args[1])) {
      std::vector<Poly> result = boundsOf(e->args[0], fromBelow);
      for (Poly &p : result)
        p = isBinary(e, "+") ? p + Poly(*constant) : p - Poly(*constant);
      return result;
    }
  Poly whole = poly(e);
  return stable(whole) ? std::vector<Poly>{whole} : std::vector<Poly>{};
}

void KernelModel::addLoopFacts(const std::vector<Stmt *> &statements, std::vector<Poly> &into) const {
  for (Stmt *s : statements)
    if (auto loop = asCountedLoop(*s)) {
      Poly v = Poly::atom(loop->var);
      for (const Poly &lower : boundsOf(loop->lower, /*fromBelow=*/true))
        into.push_back(v - lower);
      for (const Poly &upper : boundsOf(loop->upper, /*fromBelow=*/false))
        into.push_back(upper - v - Poly(1));
    } else if (auto strided = asStridedLoop(*s); strided && turns.count(strided->var)) {
      if (Poly lower = poly(strided->lower); stable(lower)) // the end is the loop's condition
        into.push_back(Poly::atom(strided->var) - lower);
    }
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    into.push_back(Poly::atom("blockIdx." + suffix));
    if (!block[axis])
      into.push_back(Poly::atom("globalIdx." + suffix));
    into.push_back(Poly::atom("gridDim." + suffix) - Poly::atom("blockIdx." + suffix) - Poly(1));
    if (block[axis] == 1)
      continue;
    Poly t = Poly::atom("threadIdx." + suffix);
    into.push_back(t);
    into.push_back((block[axis] ? Poly(block[axis]) : Poly::atom("blockDim." + suffix)) - t - Poly(1));
  }
}

std::vector<Poly> KernelModel::facts(const Access &access) const {
  std::vector<Poly> result;
  for (const auto &[condition, taken] : access.guards)
    addFacts(condition, taken, result);
  addLoopFacts(access.path, result);
  return result;
}
