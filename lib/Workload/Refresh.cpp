//===- Refresh.cpp - fresh contents of buffers ----------------------------===//
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

using namespace optiml;

static double uniform(std::mt19937_64 &random) { return double(random() >> 11) * 0x1p-53; }

/// A number as it lies in a buffer.
template <Format16 format> struct Float16 {
  uint16_t bits;
  Float16() = default;
  explicit Float16(double v)
      : bits(std::isnan(v)   ? infinity16(format) + 1
             : std::isinf(v) ? infinity16(format) | (v < 0 ? 0x8000 : 0)
                             : bitsOf16(float(v), format)) {}
  operator double() const { return double(valueOf16(bits, format)); }
};

/// Whether memory looks as if nothing has written it (poisonByte and otherByte in lib/Emulator/Runtime/Memory.h). The
/// second one is an integer that programs use where there are only one or two bytes of it.
static bool isUnwritten(const char *data, size_t bytes, bool isFloating) {
  auto all = [&](unsigned char fill) {
    return std::all_of(data, data + bytes, [&](char b) { return static_cast<unsigned char>(b) == fill; });
  };
  return all(0xCC) || ((isFloating || bytes >= 4) && all(0x7F));
}
template <typename T> static bool poisoned(const T &v) {
  return isUnwritten(reinterpret_cast<const char *>(&v), sizeof v, /*isFloating=*/true);
}

/// The next power of two away from zero, so that results which differ by rounding give the same range.
static double envelope(double v) {
  return v == 0 ? 0 : std::copysign(std::exp2(std::ceil(std::log2(std::fabs(v)) - 0.01)), v);
}

/// Exponents of the smallest number, and of one whose square is finite.
template <typename T> constexpr std::pair<int, int> exponents = {-149, 60};
template <> constexpr std::pair<int, int> exponents<double> = {-1074, 500};
template <> constexpr std::pair<int, int> exponents<Float16<Format16::Half>> = {-24, 7};
template <> constexpr std::pair<int, int> exponents<Float16<Format16::Brain>> = {-133, 60};

namespace {
/// Numbers for one buffer, in the order of its elements.
template <typename T> class Floats {
public:
  /// `lone`: where FloatRange::LoneNaN has it.
  Floats(double lo, double hi, size_t number, FloatRange range, size_t lone, std::mt19937_64 &random)
      : lo(lo), hi(hi), number(number), lone(lone), range(range), random(random) {
    double far = 16 * std::max(std::fabs(lo), std::fabs(hi));
    if (range == FloatRange::Wide) {
      this->lo = -far;
      this->hi = far;
    } else if (range == FloatRange::Negative) {
      this->lo = -far;
      this->hi = -far / 2;
    }
  }

  double at(size_t i) {
    switch (range) {
    case FloatRange::Masked:
    case FloatRange::Extreme:
      if (!run--) { // lengths of every magnitude
        run = size_t(std::exp2(uniform(random) * std::log2(double(number))));
        kind = unsigned(random() % 4);
        sign = random() & 1;
        value = between(uniform(random));
      }
      return range == FloatRange::Masked ? masked(i) : extreme();
    case FloatRange::Few: return between(double(random() % 3) / 2);
    case FloatRange::LoneNaN:
      if (i == lone)
        return NAN;
      [[fallthrough]];
    default: {
      double u = uniform(random);
      return between(0.25 * u + 0.75 * u * u); // more small than large ones
    }
    }
  }

private:
  double between(double share) const { return lo + (hi - lo) * share; }
  double masked(size_t i) {
    switch (kind) {
    case 0: return -INFINITY;
    case 1: return value;
    case 2: return between(double(random() % 3) / 2);
    default: return between(double(sign ? number - 1 - i : i) / double(number));
    }
  }
  double extreme() {
    constexpr double smallest = exponents<T>.first, largest = exponents<T>.second;
    const double u = uniform(random);
    double v = kind == 0   ? std::exp2(u * largest)
               : kind == 1 ? std::exp2(smallest / 2 * (1 + u))
               : kind == 2 ? 0
                           : std::fabs(between(u));
    return random() & 1 ? -v : v;
  }

  double lo, hi;
  size_t number, lone, run = 0;
  FloatRange range;
  std::mt19937_64 &random;
  unsigned kind = 0; ///< of the run
  bool sign = false;
  double value = 0;
};
} // namespace

// Elements that one generator makes; threads share the chunks of large buffers.
static constexpr size_t chunk = 1 << 20;

/// Calls `body(begin, end)` for the chunks of so many elements, in any order.
template <typename Body> static void forEachChunk(size_t number, const Body &body) {
  const size_t chunks = (number + chunk - 1) / chunk;
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < chunks; i = next++)
      body(i * chunk, std::min(number, (i + 1) * chunk));
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(chunks, std::thread::hardware_concurrency()); ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}

template <typename T> static T elementAt(const char *data, size_t i) {
  T value;
  memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T> static bool randomize(char *data, size_t bytes, std::mt19937_64 &random, FloatRange range) {
  const size_t number = bytes / sizeof(T);
  double lo = INFINITY, hi = -INFINITY;
  std::mutex mutex;
  forEachChunk(number, [&](size_t begin, size_t end) {
    double least = INFINITY, most = -INFINITY;
    for (size_t i = begin; i < end; ++i) {
      const T x = elementAt<T>(data, i);
      if (!std::isfinite(x) || poisoned(x))
        continue;
      least = std::min<double>(least, x);
      most = std::max<double>(most, x);
    }
    std::lock_guard lock(mutex);
    lo = std::min(lo, least);
    hi = std::max(hi, most);
  });
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
  const size_t lone = range == FloatRange::LoneNaN ? random() % number : 0;
  const uint64_t seed = random();
  forEachChunk(number, [&](size_t begin, size_t end) {
    std::mt19937_64 own(seed + begin);
    Floats<T> floats(lo, hi, number, range, lone, own);
    for (size_t i = begin; i < end; ++i)
      if (const T old = elementAt<T>(data, i); std::isfinite(old) && !poisoned(old)) {
        const T fresh = T(floats.at(i));
        memcpy(data + i * sizeof(T), &fresh, sizeof(T));
      }
  });
  return true;
}

static constexpr std::string_view rangeNames[] = {"same", "wide", "negative", "masked", "few", "extreme", "lone-nan"};

std::string_view optiml::nameOf(FloatRange range) { return rangeNames[size_t(range)]; }

std::optional<FloatRange> optiml::floatRangeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(rangeNames); ++i)
    if (rangeNames[i] == name)
      return FloatRange(i);
  return std::nullopt;
}

static constexpr std::string_view integerNames[] = {"random", "shuffle",  "keep",  "drawn",
                                                    "sorted", "reversed", "equal", "extreme"};

std::string_view optiml::nameOf(FreshIntegers integers) { return integerNames[size_t(integers)]; }

std::optional<FreshIntegers> optiml::freshIntegersNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(integerNames); ++i)
    if (integerNames[i] == name)
      return FreshIntegers(i);
  return std::nullopt;
}

static bool shuffleAll(char *data, size_t number, unsigned unit, std::mt19937_64 &random) {
  bool changed = false;
  for (size_t i = number; i > 1; --i) {
    char *a = data + (i - 1) * unit, *b = data + random() % i * unit;
    if (memcmp(a, b, unit) == 0)
      continue;
    changed = true;
    std::swap_ranges(a, a + unit, b);
  }
  return changed;
}

/// Large buffers chunk by chunk, and then the chunks: anywhere in memory, a step would take as long as a cache miss.
static bool shuffle(char *data, size_t bytes, unsigned unit, std::mt19937_64 &random) {
  const size_t number = bytes / unit;
  if (number <= chunk)
    return shuffleAll(data, number, unit, random);
  const uint64_t seed = random();
  std::atomic<bool> changed{false};
  forEachChunk(number, [&](size_t begin, size_t end) {
    std::mt19937_64 own(seed + begin);
    if (shuffleAll(data + begin * unit, end - begin, unit, own))
      changed = true;
  });
  return shuffleAll(data, number / chunk, unsigned(chunk * unit), random) || changed;
}

/// Another arrangement that keeps what a program may rely on, as far as the present integers tell: an order (of the
/// offsets of rows, say) with its ends, and that no two are equal (of a permutation).
static bool arrange(char *data, size_t bytes, unsigned unit, std::mt19937_64 &random, FreshIntegers how) {
  std::vector<uint64_t> v;
  std::vector<char *> places;
  for (char *at = data; at + unit <= data + bytes; at += unit) {
    uint64_t value = 0;
    memcpy(&value, at, unit); // these machines are little-endian
    if (isUnwritten(at, unit, /*isFloating=*/false))
      continue;
    v.push_back(value);
    places.push_back(at);
  }
  if (v.size() < 3)
    return false;
  const std::vector<uint64_t> before = v;
  std::vector<uint64_t> sorted = v;
  std::sort(sorted.begin(), sorted.end());
  const bool rises = sorted == before, distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  const uint64_t first = v.front(), last = v.back();
  if (rises && distinct && last - first + 1 == v.size())
    return false; // 0, 1, 2, …: numbers of something
  if (rises) {
    auto other = [&](size_t i) {
      return how == FreshIntegers::Equal      ? first
             : how == FreshIntegers::Reversed ? last
             : how == FreshIntegers::Drawn    ? sorted[random() % sorted.size()]
                                              : sorted[i];
    };
    for (size_t i = 1; i + 1 < v.size(); ++i)
      v[i] = other(i);
    std::sort(v.begin() + 1, v.end() - 1);
  } else if (how == FreshIntegers::Drawn) {
    std::shuffle(v.begin(), v.end(), random);
  } else if (how == FreshIntegers::Equal) {
    if (!distinct)
      std::fill(v.begin(), v.end(), v[random() % v.size()]);
  } else {
    v = sorted;
    if (how == FreshIntegers::Reversed)
      std::reverse(v.begin(), v.end());
  }
  for (size_t i = 0; i < v.size(); ++i)
    memcpy(places[i], &v[i], unit);
  return v != before;
}

/// Random ones, or FreshIntegers::Extreme.
static bool randomizeIntegers(char *data, size_t bytes, const ElementType &type, std::mt19937_64 &random,
                              bool extreme) {
  bool changed = false;
  const unsigned unit = type.bytes;
  size_t run = 0;
  unsigned kind = 0;
  uint64_t value = 0;
  for (size_t i = 0; i + unit <= bytes; i += unit) {
    uint64_t v = random();
    if (extreme && !run--) {
      run = size_t(std::exp2(uniform(random) * std::log2(double(bytes / unit)) / 1.5));
      kind = unsigned(random() % 4);
      memcpy(&value, data + random() % (bytes / unit) * unit, unit);
      const uint64_t half = uint64_t(1) << (8 * unit - 1);
      if (kind < 2)
        value = type.isUnsigned ? kind * ~uint64_t(0) : half - kind;
    }
    if (extreme && kind < 3)
      v = value;
    if (isUnwritten(data + i, unit, /*isFloating=*/false))
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
    switch (integers) {
    case FreshIntegers::Keep: return false;
    case FreshIntegers::Random:
      if (!type.isBool)
        return randomizeIntegers(data, bytes, type, random, false);
      [[fallthrough]];
    case FreshIntegers::Shuffle: return shuffle(data, bytes, type.bytes, random);
    case FreshIntegers::Extreme: return !type.isBool && randomizeIntegers(data, bytes, type, random, true);
    default: return arrange(data, bytes, type.bytes, random, integers);
    }
  case ElementKind::Unknown: return false;
  }
  return false;
}

bool optiml::refreshRecords(char *data, size_t bytes, const RecordLayout &layout, uint64_t seed, FloatRange range) {
  std::vector<RecordField> floats;
  for (const RecordField &f : layout.fields)
    if (f.type.isFloating())
      floats.push_back(f);
  const size_t number = bytes / layout.bytes;
  if (floats.empty() || !number)
    return false;
  // Where all fields are extreme, results are mostly no numbers, which tell little.
  std::mt19937_64 random(seed);
  const size_t always = random() % floats.size();
  bool changed = false;
  for (size_t k = 0; k < floats.size(); ++k) {
    const bool only = range == FloatRange::LoneNaN; // in one field
    const FloatRange own = k == always || (!only && random() % 2) ? range : FloatRange::Same;
    const unsigned unit = floats[k].type.bytes;
    std::string column(number * unit, '\0');
    for (size_t i = 0; i < number; ++i)
      memcpy(&column[i * unit], data + i * layout.bytes + floats[k].offset, unit);
    if (!refreshElements(column.data(), column.size(), floats[k].type, random(), FreshIntegers::Keep, own))
      continue;
    changed = true;
    for (size_t i = 0; i < number; ++i)
      memcpy(data + i * layout.bytes + floats[k].offset, &column[i * unit], unit);
  }
  return changed;
}

bool optiml::refreshBuffer(char *data, size_t bytes, std::string_view element, uint64_t seed, FreshIntegers integers,
                           FloatRange range) {
  if (std::optional<RecordLayout> layout = recordLayout(element))
    return refreshRecords(data, bytes, *layout, seed, range);
  return refreshElements(data, bytes, elementType(element), seed, integers, range);
}
