//===- FitExtent.cpp - how many elements a buffer has, as a formula --------===//
#include "optiml/Evaluate/Harness/Harness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

namespace {

/// A product of powers of the parameters.
using Exponents = std::vector<unsigned>;

/// All with a degree of at most `most`, those of a lower degree first.
std::vector<Exponents> monomials(size_t variables, unsigned most) {
  std::vector<Exponents> result{Exponents(variables, 0)};
  std::vector<Exponents> last = result;
  for (unsigned degree = 1; degree <= most; ++degree) {
    std::vector<Exponents> next;
    for (const Exponents &e : last) {
      // Raise only at or behind the last raised one, so that each product comes once.
      size_t first = 0;
      for (size_t i = 0; i < variables; ++i)
        if (e[i])
          first = i;
      for (size_t i = first; i < variables; ++i)
        if (e[i] < 2) {
          next.push_back(e);
          ++next.back()[i];
        }
    }
    result.insert(result.end(), next.begin(), next.end());
    last = std::move(next);
  }
  return result;
}

int64_t valueOf(const Exponents &e, llvm::ArrayRef<int64_t> sizes) {
  int64_t value = 1;
  for (size_t i = 0; i < e.size(); ++i)
    for (unsigned k = 0; k < e[i]; ++k)
      value *= sizes[i];
  return value;
}

std::string textOf(const Exponents &e, const std::vector<std::string> &names, int64_t factor, int64_t plus) {
  std::vector<std::string> parts;
  if (factor != 1)
    parts.push_back(std::to_string(factor));
  for (size_t i = 0; i < e.size(); ++i)
    for (unsigned k = 0; k < e[i]; ++k)
      parts.push_back(names[i]);
  std::string text = "1LL";
  for (const std::string &part : parts)
    text += " * " + part;
  if (plus)
    text += (plus > 0 ? " + " : " - ") + std::to_string(std::abs(plus));
  return text;
}

} // namespace

std::optional<ExtentFormula> optiml::fitExtent(const std::vector<std::string> &names,
                                               const std::vector<std::vector<int64_t>> &sizes,
                                               const std::vector<uint64_t> &elements, llvm::ArrayRef<int64_t> blocks) {
  if (sizes.empty() || sizes.size() != elements.size())
    return std::nullopt;
  const size_t trials = sizes.size();
  if (llvm::all_of(elements, [&](uint64_t n) { return n == elements.front(); }))
    return ExtentFormula{std::to_string(std::max<uint64_t>(elements.front(), 1)), 2};
  constexpr unsigned mostDegree = 5;
  const std::vector<Exponents> all = monomials(names.size(), mostDegree);
  auto gives = [&](llvm::function_ref<int64_t(size_t)> value) {
    for (size_t t = 0; t < trials; ++t)
      if (value(t) != int64_t(elements[t]))
        return false;
    return true;
  };
  // A multiple of a product, give or take a constant.
  for (const Exponents &e : all)
    for (int64_t plus : {0, 1, -1, 2, -2, 3, 4}) {
      const int64_t first = valueOf(e, sizes.front()), wanted = int64_t(elements.front()) - plus;
      const int64_t factor = first > 0 && wanted > 0 && wanted % first == 0 ? wanted / first : 0;
      if (factor && gives([&](size_t t) { return factor * valueOf(e, sizes[t]) + plus; }))
        return ExtentFormula{textOf(e, names, factor, plus), 3};
    }
  // One for each block.
  for (int64_t block : blocks)
    for (const Exponents &e : all)
      if (gives([&](size_t t) { return (valueOf(e, sizes[t]) + block - 1) / block; }))
        return ExtentFormula{"(" + textOf(e, names, 1, block - 1) + ") / " + std::to_string(block), 3};
  // The least product that is never too small, and at most twice as large: a last row may be touched in part only.
  std::optional<std::pair<double, std::string>> best;
  for (const Exponents &e : all) {
    double worst = 0;
    bool fits = true;
    for (size_t t = 0; t < trials; ++t) {
      const double value = double(valueOf(e, sizes[t])), needed = double(elements[t]);
      fits &= value >= needed && value <= 2 * needed;
      worst = std::max(worst, value / needed);
    }
    if (fits && (!best || worst < best->first))
      best.emplace(worst, textOf(e, names, 1, 0));
  }
  return best ? std::optional(ExtentFormula{best->second, 1}) : std::nullopt;
}
