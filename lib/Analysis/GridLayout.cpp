//===- GridLayout.cpp - where the cells of a grid lie ---------------------===//
#include "optiml/Analysis/GridLayout.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

struct Quotient {
  Poly quotient, rest;
};

bool before(const Poly::Monomial &a, const Poly::Monomial &b) {
  return std::pair(a.size(), a) < std::pair(b.size(), b);
}

std::pair<Poly::Monomial, int64_t> leading(const Poly &p) {
  auto it = std::max_element(p.terms.begin(), p.terms.end(),
                             [](const auto &a, const auto &b) { return before(a.first, b.first); });
  return *it;
}

Poly term(const Poly::Monomial &monomial, int64_t factor) {
  Poly result(factor);
  for (const std::string &atom : monomial)
    result = result * Poly::atom(atom);
  return result;
}

/// a without the factors of b; nothing when it lacks one.
std::optional<Poly::Monomial> without(Poly::Monomial a, const Poly::Monomial &b) {
  for (const std::string &atom : b) {
    auto it = std::find(a.begin(), a.end(), atom);
    if (it == a.end())
      return std::nullopt;
    a.erase(it);
  }
  return a;
}

int64_t nearest(int64_t a, int64_t b) { return (a >= 0 ? a + b / 2 : a - b / 2) / b; }

/// By a number to the nearest multiple, else by the leading terms, so that what is left is small.
Quotient divided(Poly p, const Poly &by) {
  Quotient result;
  auto [head, factor] = leading(by);
  while (!p.terms.empty()) {
    auto [monomial, c] = leading(p);
    auto rest = without(monomial, head);
    int64_t times = !rest ? 0 : head.empty() ? nearest(c, factor) : c % factor == 0 ? c / factor : 0;
    if (times != 0) {
      Poly part = term(*rest, times);
      result.quotient = result.quotient + part;
      p = p - part * by;
      if (!head.empty())
        continue;
    }
    auto left = p.terms.find(monomial);
    if (left == p.terms.end())
      continue;
    Poly remains = term(monomial, left->second);
    result.rest = result.rest + remains;
    p = p - remains;
  }
  return result;
}

} // namespace

bool optiml::isUniform(const KernelModel &model, const Poly &p) {
  std::set<std::string> atoms = p.atoms();
  return llvm::all_of(atoms, [&](const std::string &a) { return isParameter(model, a); });
}

std::optional<Poly> optiml::quotient(const Poly &a, const Poly &b) {
  Quotient q = divided(a, b);
  return q.rest.terms.empty() ? std::optional(q.quotient) : std::nullopt;
}

std::vector<Poly> GridLayout::along(Poly distance) const {
  std::vector<Poly> result(dims.size());
  for (size_t d = dims.size(); d-- > 1;) {
    Quotient q = divided(distance, dims[d].stride);
    result[d] = q.quotient;
    distance = q.rest;
  }
  result[0] = distance;
  return result;
}

llvm::Expected<GridLayout> optiml::gridLayout(const KernelModel &model, const Poly &own) {
  GridLayout layout;
  Poly rest = own;
  for (unsigned axis = 0; axis < 3; ++axis) {
    GridLayout::Dimension dim;
    dim.axis = axis;
    std::string suffix(1, char('x' + axis));
    dim.extent = Poly::atom("gridDim." + suffix) * Poly::atom("blockDim." + suffix);
    std::string name = *dim.index().atoms().begin();
    if (!own.mentions(name))
      continue;
    auto stride = own.coefficient(name);
    if (!stride || stride->terms.empty() || !isUniform(model, *stride))
      return notApplicable("the element that a thread writes is no cell of a grid");
    dim.stride = *stride;
    rest = rest - *stride * dim.index();
    layout.dims.push_back(std::move(dim));
  }
  if (layout.dims.empty() || !isUniform(model, rest))
    return notApplicable("the element that a thread writes is no cell of a grid");
  llvm::sort(layout.dims, [](const auto &a, const auto &b) {
    auto [ma, ca] = leading(a.stride);
    auto [mb, cb] = leading(b.stride);
    return ma == mb ? ca < cb : before(ma, mb);
  });
  if (!(layout.dims[0].stride == Poly(1)))
    return notApplicable("cells that lie side by side belong to no axis of the launch");
  for (size_t d = 0; d + 1 < layout.dims.size(); ++d) {
    layout.dims[d].length = quotient(layout.dims[d + 1].stride, layout.dims[d].stride);
    if (!layout.dims[d].length)
      return notApplicable("the strides of the grid's dimensions are no multiples of each other");
  }
  std::vector<Poly> shifts = layout.along(rest);
  for (size_t d = 0; d < shifts.size(); ++d)
    layout.dims[d].shift = shifts[d];
  return layout;
}
