//===- FlatIndex.cpp - one index for the cells of a grid ------------------===//
#include "optiml/Canonicalize/FlatIndex.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/GridLayout.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// A global index as an integer of this type.
static ExprRef indexAs(unsigned axis, const Type &type) {
  return castTo(type.withConst(false), axisBuiltin("globalIdx", axis));
}

/// Arithmetic on parameters and constants.
static bool onlyParameters(const KernelModel &model, const ExprRef &e) {
  return !anyNode(e, [&](const ExprRef &n) {
    const bool computes = n->kind == ExprKind::Binary || n->kind == ExprKind::Cast || n->kind == ExprKind::IntLit;
    return !n->type.isInt() || !(computes || (n->kind == ExprKind::Var && isParameter(model, n->text)));
  });
}

std::optional<FlatIndex> optiml::takeApartFlatIndex(Kernel &kernel, unsigned axis, bool anyEnd) {
  const KernelModel model(kernel);
  const std::string name = axisBuiltin("globalIdx", axis)->text;
  const Poly index = Poly::atom(name);
  std::vector<ExprRef> divisors;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (isIntDivision(e) && model.poly(e->args[0]) == index)
      divisors.push_back(e->args[1]);
  });
  auto least = llvm::find_if(divisors, [&](const ExprRef &candidate) {
    return llvm::all_of(
        divisors, [&](const ExprRef &other) { return quotient(model.poly(other), model.poly(candidate)).has_value(); });
  });
  if (least == divisors.end())
    return std::nullopt;
  const ExprRef width = *least;
  FlatIndex flat{model.poly(width), Poly(), nullptr};
  if (!isUniform(model, flat.width) || flat.width.terms.empty())
    return std::nullopt;
  std::function<ExprRef(const ExprRef &)> visit = [&](const ExprRef &e) -> ExprRef {
    if (isBuiltin(e, name)) {
      Type type = e->type.bytes == 8 ? e->type : Type::makeInt();
      auto in = [&](const ExprRef &x) { return x->type.text == type.text ? x : castTo(type, x); };
      ExprRef whole = add(mul(in(indexAs(axis + 1, type)), in(width)), in(indexAs(axis, type)));
      return e->type.text == type.text ? whole : castTo(e->type, whole);
    }
    if (e->kind == ExprKind::Binary && (e->text == "/" || e->text == "%") && model.poly(e->args[0]) == index) {
      Poly rows = *quotient(model.poly(e->args[1]), flat.width);
      if (rows == Poly(1))
        return indexAs(e->text == "/" ? axis + 1 : axis, e->type);
      ExprRef row = binary(e->text, indexAs(axis + 1, e->type), polyExpr(model, rows), e->type);
      return e->text == "/" ? row : add(mul(row, width), indexAs(axis, e->type));
    }
    static const std::set<std::string> comparisons = {"<", ">="};
    static const std::map<std::string, std::string> mirrored = {{">", "<"}, {"<=", ">="}};
    bool turned = e->kind == ExprKind::Binary && mirrored.count(e->text) && model.poly(e->args[1]) == index;
    bool compares = e->kind == ExprKind::Binary && comparisons.count(e->text) && model.poly(e->args[0]) == index;
    if (compares || turned) { // y * width + x < height * width says y < height
      const ExprRef &end = e->args[turned ? 0 : 1];
      auto height = quotient(model.poly(end), flat.width);
      const Type type = end->type.bytes == 8 ? Type::makeLong() : Type::makeInt();
      ExprRef rows;
      if (height && isUniform(model, *height)) {
        flat.height = *height;
        rows = polyExpr(model, *height);
      } else if (anyEnd && (!flat.end || equal(flat.end, end)) && onlyParameters(model, end)) {
        flat.end = end;
        rows = binary("/", end, width, end->type);
      }
      if (rows)
        return binary(turned ? mirrored.at(e->text) : e->text, indexAs(axis + 1, type), rows, Type::makeBool());
    }
    auto copy = std::make_shared<Expr>(*e);
    for (ExprRef &arg : copy->args)
      arg = visit(arg);
    return copy;
  };
  std::vector<std::pair<ExprRef *, ExprRef>> changes; // the model reads the tree as it is
  walk(*kernel.body, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { changes.emplace_back(&e, visit(e)); }); });
  if (flat.height.terms.empty() == !flat.end) // none, or both
    return std::nullopt;
  for (auto &[place, changed] : changes)
    *place = changed;
  return flat;
}
