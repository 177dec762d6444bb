//===- BufferCompare.cpp - comparing buffers with a reference -------------===//
#include "BufferCompare.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

using namespace optiml;
using llvm::StringRef;

double optiml::cellValue(StringRef bytes, uint64_t offset, uint32_t size) {
  if (size == 8) {
    double v;
    memcpy(&v, bytes.data() + offset, 8);
    return v;
  }
  float v;
  memcpy(&v, bytes.data() + offset, 4);
  return v;
}

static uint16_t word16(StringRef bytes, uint64_t offset) {
  uint16_t v;
  memcpy(&v, bytes.data() + offset, 2);
  return v;
}

// An error beyond these is no rounding: the computation jumps there (a comparison went the other way, say), and one
// such cell must not loosen the bound of all others.
static constexpr double mostOwnError4 = 1e-3, mostOwnError8 = 1e-9;

void BufferReference::setCells(StringRef file) {
  cells.resize(file.size() / sizeof(ShadowRecord));
  memcpy(cells.data(), file.data(), cells.size() * sizeof(ShadowRecord));
  std::erase_if(cells, [&](const ShadowRecord &c) {
    return (c.bytes != 2 && c.bytes != 4 && c.bytes != 8) || c.bytes > bytes.size() ||
           c.offset > bytes.size() - c.bytes;
  });
  std::sort(cells.begin(), cells.end(), [](auto &a, auto &b) { return a.offset < b.offset; });
  uint64_t end = 0; // a cell that overlaps the one before is stale
  std::erase_if(cells, [&](const ShadowRecord &c) {
    if (c.offset < end)
      return true;
    end = c.offset + c.bytes;
    return false;
  });
  setErrors({this});
}

/// The number in the cell of a buffer like the reference; NaN where nobody knows its format.
static double numberIn(StringRef bytes, const BufferReference &r, const ShadowRecord &c) {
  if (c.bytes == 2)
    return r.element.isFloat16() ? valueOf16(word16(bytes, c.offset), r.element.format16()) : NAN;
  return cellValue(bytes, c.offset, c.bytes);
}

/// The unit in the last place of 16-bit numbers in the binade of 1.
static double unit16(const BufferReference &r) { return r.element.format16() == Format16::Half ? 0x1p-10 : 0x1p-7; }

/// The original's error in the cell, relative to its magnitude; in 16 bits, what is left of it beyond the last
/// rounding. Nothing where there is no such thing.
static std::optional<double> ownError(const BufferReference &r, const ShadowRecord &c) {
  double own = numberIn(r.bytes, r, c);
  if (!std::isfinite(own) || !std::isfinite(c.value) || !std::isfinite(c.magnitude) || !(c.magnitude > 0))
    return std::nullopt;
  double rounding = c.bytes == 2 ? 0.5 * unit16(r) * std::fabs(own) : 0;
  return std::max(0.0, std::fabs(own - c.value) - rounding) / c.magnitude;
}

static bool isJump(double error, uint32_t bytes) { return error > (bytes == 8 ? mostOwnError8 : mostOwnError4); }

void optiml::setErrors(llvm::ArrayRef<BufferReference *> buffers) {
  std::vector<double> errors[2];
  for (const BufferReference *r : buffers)
    for (const ShadowRecord &c : r->cells)
      if (std::optional<double> error = ownError(*r, c); error && !isJump(*error, c.bytes) && c.bytes != 2)
        errors[c.bytes == 8].push_back(*error);
  double median[2] = {0, 0};
  for (bool isDouble : {false, true})
    if (std::vector<double> &all = errors[isDouble]; !all.empty()) {
      auto middle = all.begin() + ptrdiff_t(all.size() / 2);
      std::nth_element(all.begin(), middle, all.end());
      median[isDouble] = *middle;
    }
  for (BufferReference *r : buffers) {
    r->error4 = median[0];
    r->error8 = median[1];
  }
}

bool BufferReference::differBesideCells(StringRef a, StringRef b) const {
  auto differ = [&](uint64_t begin, uint64_t end) {
    return begin < end && memcmp(a.data() + begin, b.data() + begin, end - begin) != 0;
  };
  if (a.size() != b.size() || a.size() != bytes.size())
    return true;
  uint64_t position = 0;
  for (const ShadowRecord &c : cells) {
    if (differ(position, c.offset))
      return true;
    position = c.offset + c.bytes;
  }
  return differ(position, bytes.size());
}

bool BufferReference::setSampledCells(StringRef file, StringRef input, StringRef sampleRun) {
  setCells(file);
  bool whole = sampleRun.size() == bytes.size() && llvm::all_of(cells, [&](const ShadowRecord &c) {
                 return memcmp(bytes.data() + c.offset, sampleRun.data() + c.offset, c.bytes) == 0;
               });
  if (!whole) {
    cells.clear();
    error4 = error8 = 0;
    return false;
  }
  sampled = true;
  // Where the kernel keeps other things in it too, nobody knows which of the other words are numbers.
  bool onlyNumbers = llvm::all_of(cells, [&](const ShadowRecord &c) { return c.bytes == element.bytes; }) &&
                     !differBesideCells(input, sampleRun);
  std::vector<double> magnitudes, ratios;
  for (const ShadowRecord &c : cells)
    if (double own = std::fabs(numberIn(bytes, *this, c));
        onlyNumbers && std::isfinite(c.magnitude) && std::isfinite(own)) {
      magnitudes.push_back(c.magnitude);
      if (own > 0)
        ratios.push_back(std::max(1.0, c.magnitude / own));
    }
  if (magnitudes.empty())
    return true;
  std::sort(magnitudes.begin(), magnitudes.end());
  std::sort(ratios.begin(), ratios.end());
  typical = magnitudes[magnitudes.size() / 10];
  typicalRatio = ratios.empty() ? 1 : ratios[ratios.size() / 2];
  return true;
}

void BufferReference::markUnstable(StringRef other) {
  if (element.isFloat16())
    return; // which are compared with a tolerance anyway
  size_t cell = 0;
  for (uint64_t i = 0; i < bytes.size() && i < other.size(); ++i) {
    while (cell < cells.size() && cells[cell].offset + cells[cell].bytes <= i)
      ++cell;
    bool isFloat = cell < cells.size() && cells[cell].offset <= i;
    if (isFloat || bytes[i] == other[i])
      continue;
    uint64_t begin = i / 4 * 4; // whole words: neighbouring bytes may agree by chance
    if (!unstable.empty() && unstable.back().second >= begin)
      unstable.back().second = begin + 4;
    else
      unstable.push_back({begin, begin + 4});
  }
}

static std::string floatText(double v, uint32_t bytes) {
  char text[40];
  snprintf(text, sizeof text, bytes == 4 ? "%.9g" : "%.17g", v);
  return text;
}

static std::string wordText(StringRef bytes, uint64_t offset, const ElementType &e) {
  std::string text = elementText(bytes.data() + offset, e, bytes.size() - offset);
  if (e.kind != ElementKind::Unknown)
    return text;
  return text + llvm::formatv(" ({0:x8} as bits)",
                              [&] {
                                uint32_t v = 0;
                                memcpy(&v, bytes.data() + offset, std::min<uint64_t>(4, bytes.size() - offset));
                                return v;
                              }())
                    .str();
}

static Difference exactDifference(const BufferReference &r, StringRef actual, uint64_t offset) {
  uint64_t unit = r.element.bytes;
  uint64_t begin = offset / unit * unit;
  if (begin + unit > r.bytes.size())
    begin = r.bytes.size() - std::min<uint64_t>(unit, r.bytes.size());
  Difference d;
  d.buffer = r.name;
  d.index = begin / unit;
  d.expected = wordText(r.bytes, begin, r.element);
  d.actual = wordText(actual, begin, r.element);
  return d;
}

// Rounding otherwise changes a number by less than this share of its magnitude.
static constexpr double leastJump = 1e-3;

void BufferReference::markIfRoundingDecides(StringRef other) {
  if (bytes.size() != other.size())
    return;
  roundingDecides |= !element.isFloat16() && differBesideCells(bytes, other);
  for (const ShadowRecord &c : cells) {
    if (c.bytes < 4)
      continue;
    const double now = cellValue(bytes, c.offset, c.bytes), then = cellValue(other, c.offset, c.bytes);
    roundingDecides |= std::fabs(now - then) > leastJump * c.magnitude;
  }
}

void BufferReference::markJumps(StringRef other) {
  if (!synthetic || bytes.size() != other.size())
    return;
  for (const ShadowRecord &c : cells) {
    if (c.bytes < 4)
      continue;
    const double now = cellValue(bytes, c.offset, c.bytes), then = cellValue(other, c.offset, c.bytes);
    if (std::isfinite(now) != std::isfinite(then) || std::fabs(now - then) > leastJump * c.magnitude)
      jumps.insert(c.offset);
  }
}

/// Offset of the first byte in [begin, end) that differs and is not unstable, or end.
static uint64_t firstByte(const BufferReference &r, StringRef actual, uint64_t begin, uint64_t end) {
  if (begin >= end || memcmp(r.bytes.data() + begin, actual.data() + begin, end - begin) == 0)
    return end;
  for (uint64_t i = begin; i < end; ++i) {
    if (r.bytes[i] == actual[i])
      continue;
    auto it =
        std::upper_bound(r.unstable.begin(), r.unstable.end(), i, [](uint64_t v, auto &p) { return v < p.first; });
    if (it == r.unstable.begin() || std::prev(it)->second <= i)
      return i;
  }
  return end;
}

// A few roundings, whatever the numbers: a double has no reference that is more precise, so that it gets more.
static constexpr double fewRoundings4 = 8, fewRoundings8 = 4096;
// Of errors that are distributed like roundings, the largest one in a million is some 7 times that of one half.
static constexpr double worstOfTypical = 16;

double optiml::relativeTolerance(const BufferReference &r, uint32_t bytes, const FloatRule &rule) {
  double least = rule.isFast() ? rule.error
                 : bytes == 8  ? fewRoundings8 * DBL_EPSILON
                               : fewRoundings4 * double(FLT_EPSILON);
  return std::max(worstOfTypical * (bytes == 8 ? r.error8 : r.error4), least);
}

// Atomic additions come in any order, and sums of n terms in two orders differ by about sqrt(n) roundings (Higham,
// Accuracy and Stability of Numerical Algorithms, 4.2), however lucky the original's order was.
double optiml::relativeTolerance(const BufferReference &r, const ShadowRecord &c, const FloatRule &rule) {
  double eps = c.bytes == 8 ? DBL_EPSILON : double(FLT_EPSILON);
  std::optional<double> own = ownError(r, c);
  double ofCell = own && !isJump(*own, c.bytes) ? 4 * *own : 0;
  return r.slack * std::max({relativeTolerance(r, c.bytes, rule), ofCell, std::sqrt(double(c.additions)) * eps});
}

bool optiml::isUndefined(const BufferReference &r, const ShadowRecord &c) {
  // Sums of 16 bits are far away by rounding alone.
  if (c.bytes == 2 || !r.synthetic || !std::isfinite(numberIn(r.bytes, r, c)))
    return false;
  std::optional<double> own = ownError(r, c);
  return own ? isJump(*own, c.bytes) : !std::isfinite(c.value) || !std::isfinite(c.magnitude);
}

/// Whether a cell of which the double-precision value is not known is as near to the original's as those that are known
/// must be.
static bool isNear(double own, double v, uint32_t bytes, const BufferReference &r, const FloatRule &rule) {
  if (std::isnan(own))
    return std::isnan(v) || r.synthetic || r.looseNaN;
  if (std::isinf(own))
    return v == own;
  double smallest = bytes == 4 ? double(FLT_MIN) : DBL_MIN;
  double tolerance =
      relativeTolerance(r, bytes, rule) * std::max(r.typical, r.typicalRatio * std::fabs(own)) + smallest;
  if (r.extreme)
    tolerance = std::max(tolerance, std::fabs(own));
  return std::fabs(v - own) <= tolerance; // NaN fails
}

/// The largest finite number of a buffer of 16-bit ones.
static double largest16(const BufferReference &r) {
  double largest = 0;
  for (uint64_t i = 0; i + 2 <= r.bytes.size(); i += 2)
    if (uint16_t bits = word16(r.bytes, i); isFinite16(bits, r.element.format16()))
      largest = std::max(largest, std::fabs(double(valueOf16(bits, r.element.format16()))));
  return largest;
}

/// As firstByte, but numbers in a sampled buffer, and those of 16 bits, may be near each other.
static uint64_t firstWrong(const BufferReference &r, StringRef actual, uint64_t begin, uint64_t end,
                           const FloatRule &rule) {
  uint32_t unit = r.element.bytes;
  uint64_t bad = firstByte(r, actual, begin, end);
  bool is16 = r.element.isFloat16();
  if (bad == end || !(is16 || (r.sampled && r.element.isFloating() && r.typical > 0)))
    return bad;
  double distance = is16 ? std::max(distance16, rule.isFast() ? rule.error : 0) * largest16(r) : 0;
  auto near = [&](uint64_t offset) {
    if (!is16)
      return isNear(cellValue(r.bytes, offset, unit), cellValue(actual, offset, unit), unit, r, rule);
    if (isNan16(word16(r.bytes, offset), r.element.format16()) && (r.synthetic || r.looseNaN))
      return true;
    constexpr int usual = 2, onSynthetic = 16; // units: what cancels has no twins that would tell
    return isNear16(word16(actual, offset), word16(r.bytes, offset), r.element.format16(), distance,
                    r.synthetic ? onSynthetic : usual);
  };
  while (bad < end) {
    uint64_t offset = bad / unit * unit;
    if (offset < begin || offset + unit > end || !near(offset))
      return bad;
    bad = firstByte(r, actual, offset + unit, end);
  }
  return bad;
}

static bool withinTolerance(const ShadowRecord &c, double own, double v, const BufferReference &r,
                            const FloatRule &rule, double &tolerance, double *error) {
  double relative = relativeTolerance(r, c, rule);
  double smallest = c.bytes == 8 ? DBL_MIN : double(FLT_MIN); // results this small have no relative accuracy
  double magnitude = std::isfinite(c.magnitude) ? std::max(c.magnitude, std::fabs(own)) : std::fabs(own);
  tolerance = relative * magnitude + smallest;
  if (r.extreme)
    tolerance = std::max(tolerance, std::fabs(own));
  if (c.bytes == 2)
    tolerance += 2 * unit16(r) * std::max(std::fabs(own), std::fabs(v));
  double distance = std::min(std::fabs(v - c.value), std::fabs(v - own));
  if (!(distance <= tolerance)) // NaN fails
    return false;
  if (error && magnitude > smallest)
    *error = std::max(*error, distance / magnitude);
  return true;
}

std::optional<Difference> optiml::compareBuffer(const BufferReference &r, StringRef actual, const FloatRule &rule,
                                                double *error) {
  if (actual.size() != r.bytes.size()) {
    Difference d;
    d.buffer = r.name;
    d.expected = std::to_string(r.bytes.size()) + " bytes";
    d.actual = std::to_string(actual.size()) + " bytes";
    return d;
  }
  if (r.roundingDecides || memcmp(actual.data(), r.bytes.data(), actual.size()) == 0)
    return std::nullopt;
  uint64_t position = 0;
  if (!rule.isStrict())
    for (const ShadowRecord &c : r.cells) {
      if (c.bytes == 2 && !r.element.isFloat16())
        continue; // which of the two formats it has is not known
      uint64_t bad = firstWrong(r, actual, position, c.offset, rule);
      if (bad < c.offset)
        return exactDifference(r, actual, bad);
      position = c.offset + c.bytes;
      if (memcmp(r.bytes.data() + c.offset, actual.data() + c.offset, c.bytes) == 0)
        continue;
      if (c.bytes == 2 && firstWrong(r, actual, c.offset, position, rule) == position)
        continue;
      double own = numberIn(r.bytes, r, c), v = numberIn(actual, r, c), tolerance = 0;
      bool good = r.jumps.count(c.offset) ? true
                  : std::isnan(own)       ? std::isnan(v) || r.synthetic || r.looseNaN
                  : std::isinf(own)       ? v == own || (c.bytes != 2 && r.synthetic &&
                                                         (c.bytes == 8 || !std::isfinite(v) || std::isfinite(c.value)))
                  : isUndefined(r, c)     ? true
                  : (std::isnan(v) || (r.masked && std::isinf(v))) && r.sameTwins.count(c.offset)
                      ? true
                      : withinTolerance(c, own, v, r, rule, tolerance, error);
      if (good)
        continue;
      Difference d;
      d.buffer = r.name;
      d.index = c.offset / c.bytes;
      d.expected = floatText(own, c.bytes);
      d.actual = floatText(v, c.bytes);
      if (std::isfinite(own))
        d.tolerance = "in double precision " + floatText(c.value, 8) + ", allowed distance " + floatText(tolerance, 4);
      return d;
    }
  uint64_t bad = rule.isStrict() ? firstByte(r, actual, position, r.bytes.size())
                                 : firstWrong(r, actual, position, r.bytes.size(), rule);
  if (bad < r.bytes.size())
    return exactDifference(r, actual, bad);
  return std::nullopt;
}

std::string Difference::str() const {
  std::string s =
      "kernel " + kernel + ", " + buffer + "[" + std::to_string(index) + "]: " + actual + " instead of " + expected;
  if (!tolerance.empty())
    s += " (" + tolerance + ")";
  return input.empty() ? s : s + ", on " + input;
}
