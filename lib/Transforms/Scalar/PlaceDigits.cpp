//===- PlaceDigits.cpp - private arrays of several dimensions -------------===//
#include "PlaceDigits.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/PolyTrees.h"
#include <numeric>

using namespace optiml;

namespace {

/// A place by its digits: high * size + low, where low is made of counters.
class Digits {
public:
  Digits(const KernelModel &model, const ExprRef &index) {
    const Poly place = model.poly(index);
    auto isLow = [&](const Poly::Monomial &monomial) {
      return monomial.empty() || (monomial.size() == 1 && rangeOf(model, monomial.front()));
    };
    low = place.filter(isLow);
    high = place - low;
    for (const auto &[monomial, factor] : high.terms)
      size = std::gcd(size, factor);
    // The constant may be more than a low digit.
    const int64_t offset = low.constantTerm();
    if (size > 1 && offset >= size) {
      const Poly whole = Poly(offset / size * size);
      high = high + whole;
      low = low - whole;
    }
    for (const auto &[monomial, factor] : low.terms) {
      auto range =
          monomial.empty() ? std::optional(std::pair<int64_t, int64_t>(1, 1)) : rangeOf(model, monomial.front());
      least += std::min(factor * range->first, factor * range->second);
      most += std::max(factor * range->first, factor * range->second);
    }
  }
  Poly high, low;
  int64_t size = 0; ///< what all terms of `high` are multiples of; 0: there is none
  int64_t least = 0, most = 0;

private:
  /// The first and last value of a loop's counter, where they are constants.
  static std::optional<std::pair<int64_t, int64_t>> rangeOf(const KernelModel &model, const std::string &atom) {
    auto loop = model.loopOf(atom);
    auto lower = loop ? constantValue(loop->lower) : std::nullopt, upper = loop ? constantValue(loop->upper) : lower;
    if (!lower || !upper || *upper <= *lower)
      return std::nullopt;
    return std::pair(*lower, *upper - 1);
  }
};

} // namespace

void optiml::splitPlaces(Kernel &kernel, Stmt &declaration) {
  auto extent = declaration.dims.size() == 1 ? constantValue(declaration.dims[0]) : std::nullopt;
  if (!extent || declaration.expr)
    return;
  const KernelModel model(kernel);
  auto isElement = [&](const ExprRef &e) {
    return e->kind == ExprKind::Subscript && isVar(e->args[0], declaration.text);
  };
  int64_t size = 0;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (isElement(e))
      size = std::gcd(size, Digits(model, e->args[1]).size);
  });
  if (size < 2 || *extent % size != 0 || *extent == size)
    return;
  std::map<const Expr *, std::pair<ExprRef, ExprRef>> digits; // by index
  bool good = true;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (!isElement(e))
      return;
    const ExprRef &index = e->args[1];
    const Digits own(model, index);
    if (own.size == 0) { // counters alone, which become constants
      digits[index.get()] = {binary("/", index, intLit(size), index->type),
                             binary("%", index, intLit(size), index->type)};
      return;
    }
    auto high = quotientOf(own.high, Poly(size));
    const ExprRef first = high ? polyExpr(model, *high) : nullptr, second = polyExpr(model, own.low);
    good &= first && second && own.least >= 0 && own.most < size;
    digits[index.get()] = {first, second};
  });
  if (!good)
    return;
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    auto found = isElement(e) ? digits.find(e->args[1].get()) : digits.end();
    if (found == digits.end())
      return nullptr;
    return subscript(subscript(e->args[0], found->second.first, e->type), found->second.second, e->type);
  });
  declaration.dims = {intLit(*extent / size), intLit(size)};
}
