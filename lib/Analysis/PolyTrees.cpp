//===- PolyTrees.cpp - polynomials as trees -------------------------------===//
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/Bounds.h"
#include <algorithm>

using namespace optiml;

// Trees of polynomials

/// Atoms in reading order: block indices, thread indices, other names, then local coordinates.
static int readingRank(const Poly::Monomial &monomial) {
  int rank = monomial.empty() ? 9 : 0;
  for (const std::string &atom : monomial)
    rank = std::max(rank, atom.starts_with("blockIdx")    ? 0
                          : atom[0] == '@'                ? 4
                          : atom.starts_with("threadIdx") ? 2
                                                          : 1);
  return rank;
}

static ExprRef atomTree(const KernelModel &model, const std::string &atom) {
  if (ExprRef e = model.atomExpr(atom))
    return e;
  auto [base, member] = llvm::StringRef(atom).split('.');
  if (base.ends_with("Idx") || base.ends_with("Dim"))
    return builtin(atom);
  if (const Param *param = model.param(base.str()); param && !member.empty())
    for (const Param::Field &field : param->fields)
      if (field.name == member)
        return memberExpr(var(param->name, param->type), field.name, field.type.withConst(false),
                          int64_t(field.offset));
  Type type = Type::makeInt();
  if (const Param *param = model.param(atom))
    type = param->type;
  else if (const Stmt *d = model.declaration(atom))
    type = d->type;
  type.isConst = false;
  return var(atom, type);
}

static ExprRef sumExpr(const KernelModel &model, const Poly &p) {
  std::vector<std::pair<Poly::Monomial, int64_t>> terms(p.terms.begin(), p.terms.end());
  std::stable_sort(terms.begin(), terms.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second < 0, readingRank(a.first)) < std::pair(b.second < 0, readingRank(b.first));
  });
  ExprRef sum;
  int64_t constant = p.constantTerm();
  for (const auto &[monomial, coefficient] : terms) {
    if (monomial.empty())
      continue;
    if (!sum && coefficient < 0 && constant > 0) { // 4 - k
      sum = intLit(constant);
      constant = 0;
    }
    int64_t magnitude = sum && coefficient < 0 ? -coefficient : coefficient;
    ExprRef product;
    for (const std::string &atom : monomial)
      product = product ? mul(product, atomTree(model, atom)) : atomTree(model, atom);
    product = mul(product, magnitude < 0 ? unary("-", intLit(-magnitude), Type::makeInt()) : intLit(magnitude));
    sum = !sum ? product : coefficient < 0 ? sub(sum, product) : add(sum, product);
  }
  return sum ? add(sum, intLit(constant)) : intLit(constant);
}

ExprRef optiml::wideExpr(const ExprRef &e) {
  if (e->type.bytes == 8)
    return e;
  bool sum = e->kind == ExprKind::Binary && (e->text == "+" || e->text == "-");
  auto isProduct = [](const ExprRef &x) {
    return anyNode(x, [&](const ExprRef &part) { return isBinary(part, "*"); });
  };
  if (sum) // one wide operand makes a sum wide; a product must be wide itself
    return binary(e->text, wideExpr(e->args[0]), isProduct(e->args[1]) ? wideExpr(e->args[1]) : e->args[1]);
  if (isBinary(e, "*"))
    return binary("*", wideExpr(e->args[0]), isProduct(e->args[1]) ? wideExpr(e->args[1]) : e->args[1]);
  return castTo(Type::makeLong(), e);
}

ExprRef optiml::polyExpr(const KernelModel &model, const Poly &p) {
  // (row + r) * stride + (column + c), as a person would write it.
  auto dims = delinearize(model, p);
  if (!dims || dims->size() < 2)
    return sumExpr(model, p);
  ExprRef sum;
  for (const Dimension &d : *dims) {
    ExprRef value = sumExpr(model, d.value);
    for (const std::string &atom : d.stride)
      value = mul(value, atomTree(model, atom));
    sum = sum ? add(sum, value) : value;
  }
  return sum;
}

ExprRef optiml::intExpr(const KernelModel &model, const Poly &p) {
  const bool isInt = llvm::all_of(p.atoms(), [&](const std::string &atom) {
    const Type *type = typeOfArgument(model.kernel(), atom);
    return type && type->sameNumber(Type::makeInt());
  });
  const ExprRef value = polyExpr(model, p);
  return isInt ? value : castTo(Type::makeInt(), value);
}

ExprRef optiml::elementExpr(const KernelModel &model, const Access &access, const Poly &index) {
  ExprRef place = polyExpr(model, index);
  return subscript(access.root, access.wideIndex ? wideExpr(place) : place, access.node->type);
}
