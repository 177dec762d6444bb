//===- PlaceDigits.cpp - private arrays of several dimensions -------------===//
#include "PlaceDigits.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/PolyTrees.h"
#include <numeric>

using namespace optiml;

namespace {

/// The first and last values of counters, over all loops of one name; none where one is not a constant.
using Ranges = std::map<std::string, std::pair<int64_t, int64_t>>;

Ranges rangesOfCounters(const Kernel &kernel) {
  Ranges ranges;
  std::set<std::string> open;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::For || !s.init)
      return;
    auto loop = asCountedLoop(s);
    auto lower = loop ? constantValue(loop->lower) : std::nullopt, upper = loop ? constantValue(loop->upper) : lower;
    if (!lower || !upper || *upper <= *lower) {
      open.insert(s.init->text);
      return;
    }
    auto [known, isNew] = ranges.try_emplace(loop->var, *lower, *upper - 1);
    known->second = {std::min(known->second.first, *lower), std::max(known->second.second, *upper - 1)};
  });
  std::erase_if(ranges, [&](const auto &range) { return open.count(range.first) != 0; });
  return ranges;
}

/// A place by its digits: high * size + low, where low is made of counters.
struct Digits {
  Digits(const KernelModel &model, const Ranges &ranges, const ExprRef &index) {
    const Poly place = model.poly(index);
    low = place.filter([&](const Poly::Monomial &monomial) {
      return monomial.empty() || (monomial.size() == 1 && ranges.count(monomial.front()));
    });
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
      const auto range = monomial.empty() ? std::pair<int64_t, int64_t>(1, 1) : ranges.at(monomial.front());
      least += std::min(factor * range.first, factor * range.second);
      most += std::max(factor * range.first, factor * range.second);
    }
  }
  Poly high, low;
  int64_t size = 0;            ///< what all terms of `high` are multiples of; 0: there is none
  int64_t least = 0, most = 0; ///< of low
};

} // namespace

void optiml::splitPlaces(Kernel &kernel, Stmt &declaration) {
  auto extent = declaration.dims.size() == 1 ? constantValue(declaration.dims[0]) : std::nullopt;
  if (!extent || declaration.expr)
    return;
  const KernelModel model(kernel);
  const Ranges ranges = rangesOfCounters(kernel);
  auto isElement = [&](const ExprRef &e) {
    return e->kind == ExprKind::Subscript && isVar(e->args[0], declaration.text);
  };
  int64_t size = 0;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (isElement(e))
      size = std::gcd(size, Digits(model, ranges, e->args[1]).size);
  });
  if (size < 2 || *extent % size != 0 || *extent == size)
    return;
  std::map<const Expr *, std::pair<ExprRef, ExprRef>> digits; // by index
  bool good = true;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (!isElement(e))
      return;
    const ExprRef &index = e->args[1];
    const Digits own(model, ranges, index);
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
