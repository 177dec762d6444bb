//===- Refresh.cpp - fresh contents of buffers ----------------------------===//
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace optiml;

static double uniform(std::mt19937_64 &random) { return double(random() >> 11) * 0x1p-53; }

/// A number as it lies in a buffer.
template <Format16 format> struct Float16 {
  uint16_t bits;
  Float16() = default;
  explicit Float16(double v) : bits(bitsOf16(float(v), format)) {}
  operator double() const { return double(valueOf16(bits, format)); }
};

/// The pattern of memory that nothing has written (lib/Emulator/Runtime/Memory.h).
template <typename T> static bool poisoned(const T &v) {
  unsigned char bytes[sizeof(T)];
  memcpy(bytes, &v, sizeof v);
  return std::all_of(bytes, bytes + sizeof(T), [](unsigned char b) { return b == 0xCC; });
}

/// The next power of two away from zero, so that results which differ by rounding give the same range.
static double envelope(double v) {
  return v == 0 ? 0 : std::copysign(std::exp2(std::ceil(std::log2(std::fabs(v)) - 0.01)), v);
}

template <typename T> static bool randomize(char *data, size_t bytes, std::mt19937_64 &random, FloatRange range) {
  std::vector<T> v(bytes / sizeof(T));
  memcpy(v.data(), data, v.size() * sizeof(T));
  double lo = INFINITY, hi = -INFINITY;
  for (T x : v) {
    if (!std::isfinite(x) || poisoned(x))
      continue;
    lo = std::min<double>(lo, x);
    hi = std::max<double>(hi, x);
  }
  if (!(lo <= hi))
    return false;
  lo = envelope(lo);
  hi = envelope(hi);
  if (lo > 0 && lo == hi)
    lo = hi / 4;
  if (lo < 0 && std::fabs(lo) < hi * 0x1p-10)
    lo = 0;
  if (lo == hi) {
    // One value everywhere hides swapped operands: spread it, keeping its sign.
    lo = lo == 0 ? -1 : lo / 2;
    hi = hi == 0 ? 1 : hi * 1.5;
    if (lo > hi)
      std::swap(lo, hi);
  }
  double far = 16 * std::max(std::fabs(lo), std::fabs(hi));
  if (range == FloatRange::Wide) {
    lo = -far;
    hi = far;
  } else if (range == FloatRange::Negative) {
    lo = -far;
    hi = -far / 2;
  }
  size_t run = 0;
  unsigned kind = 0;
  double value = 0;
  for (T &x : v) {
    if (!std::isfinite(x) || poisoned(x))
      continue;
    double u = uniform(random);
    if (range == FloatRange::Masked) {
      if (!run--) { // lengths of every magnitude
        run = size_t(std::exp2(uniform(random) * std::log2(double(v.size()))));
        kind = unsigned(random() % 4);
        value = lo + (hi - lo) * u;
      }
      x = T(kind == 0   ? -INFINITY
            : kind == 1 ? value
            : kind == 2 ? lo + (hi - lo) * double(random() % 3) / 2
                        : lo + (hi - lo) * double(&x - v.data()) / double(v.size()));
      continue;
    }
    x = T(lo + (hi - lo) * (0.25 * u + 0.75 * u * u)); // more small than large ones
  }
  memcpy(data, v.data(), v.size() * sizeof(T));
  return true;
}

static bool shuffle(char *data, size_t bytes, unsigned unit, std::mt19937_64 &random) {
  bool changed = false;
  for (size_t i = bytes / unit; i > 1; --i) {
    char *a = data + (i - 1) * unit, *b = data + random() % i * unit;
    if (memcmp(a, b, unit) == 0)
      continue;
    changed = true;
    std::swap_ranges(a, a + unit, b);
  }
  return changed;
}

static bool randomizeIntegers(char *data, size_t bytes, unsigned unit, std::mt19937_64 &random) {
  bool changed = false;
  for (size_t i = 0; i + unit <= bytes; i += unit) {
    uint64_t v = random();
    bool untouched = true; // memory that nothing has written
    for (unsigned k = 0; k < unit; ++k)
      untouched = untouched && static_cast<unsigned char>(data[i + k]) == 0xCC;
    if (untouched)
      continue;
    memcpy(data + i, &v, unit);
    changed = true;
  }
  return changed;
}

bool optiml::refreshElements(char *data, size_t bytes, const ElementType &type, uint64_t seed, FreshIntegers integers,
                             FloatRange range) {
  std::mt19937_64 random(seed);
  switch (type.kind) {
  case ElementKind::Float: return randomize<float>(data, bytes, random, range);
  case ElementKind::Double: return randomize<double>(data, bytes, random, range);
  case ElementKind::Half: return randomize<Float16<Format16::Half>>(data, bytes, random, range);
  case ElementKind::BFloat16: return randomize<Float16<Format16::Brain>>(data, bytes, random, range);
  case ElementKind::Integer:
    if (integers == FreshIntegers::Random && !type.isBool)
      return randomizeIntegers(data, bytes, type.bytes, random);
    return integers != FreshIntegers::Keep && shuffle(data, bytes, type.bytes, random);
  case ElementKind::Unknown: return false;
  }
  return false;
}
