//===- VerifyInputs.cpp - fresh inputs for captured launches --------------===//
#include "VerifyInputs.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Blob.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace optiml;

static double uniform(std::mt19937_64 &random) { return double(random() >> 11) * 0x1p-53; }

/// The pattern of memory that nothing has written (lib/Emulator/Runtime/Memory.h).
template <typename T> static bool poisoned(T v) {
  unsigned char bytes[sizeof(T)];
  memcpy(bytes, &v, sizeof v);
  for (unsigned char b : bytes)
    if (b != 0xCC)
      return false;
  return true;
}

template <typename T> static bool randomize(std::string &bytes, std::mt19937_64 &random) {
  std::vector<T> v(bytes.size() / sizeof(T));
  memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
  double lo = INFINITY, hi = -INFINITY;
  bool whole = true;
  for (T x : v) {
    if (!std::isfinite(x) || poisoned(x))
      continue;
    lo = std::min<double>(lo, x);
    hi = std::max<double>(hi, x);
    whole = whole && x == std::floor(x);
  }
  if (!(lo <= hi))
    return false;
  if (lo == hi) {
    // One value everywhere hides swapped operands: spread it, keeping its sign.
    whole = false;
    lo = lo == 0 ? -1 : lo / 2;
    hi = hi == 0 ? 1 : hi * 1.5;
    if (lo > hi)
      std::swap(lo, hi);
  }
  for (T &x : v) {
    if (!std::isfinite(x) || poisoned(x))
      continue;
    double u = uniform(random);
    double y = lo + (hi - lo) * (0.25 * u + 0.75 * u * u); // more small than large ones
    x = T(whole ? std::round(y) : y);
  }
  memcpy(bytes.data(), v.data(), v.size() * sizeof(T));
  return true;
}

static bool shuffle(std::string &bytes, unsigned unit, std::mt19937_64 &random) {
  size_t n = bytes.size() / unit;
  bool changed = false;
  for (size_t i = n; i > 1; --i) {
    size_t j = random() % i;
    char *a = bytes.data() + (i - 1) * unit, *b = bytes.data() + j * unit;
    if (memcmp(a, b, unit) == 0)
      continue;
    changed = true;
    std::swap_ranges(a, a + unit, b);
  }
  return changed;
}

llvm::Expected<std::map<unsigned, std::string>> optiml::freshInputs(const Workload &workload, const LaunchImage &launch,
                                                                    uint64_t seed, bool keepIntegers,
                                                                    const std::string &directory) {
  std::map<unsigned, std::string> result;
  std::vector<ElementType> types = bufferTypes(launch);
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    const BufferImage &b = launch.buffers[i];
    const ElementType &t = types[i];
    if (t.kind == ElementKind::Unknown || !b.symbol.empty() || (t.kind == ElementKind::Integer && keepIntegers))
      continue;
    std::string bytes(b.bytes, '\0'), error;
    if (!readBlob(workload.directory, b.before, bytes.data(), b.bytes, error))
      return makeError(error);
    std::mt19937_64 random(seed * 1000003 + i);
    bool changed = t.kind == ElementKind::Float    ? randomize<float>(bytes, random)
                   : t.kind == ElementKind::Double ? randomize<double>(bytes, random)
                                                   : shuffle(bytes, t.bytes, random);
    if (!changed)
      continue;
    std::string name = "input" + std::to_string(seed) + (keepIntegers ? "k" : "") + "-" + std::to_string(i) + ".bin";
    if (!writeBlob(directory, name, bytes.data(), bytes.size(), error))
      return makeError(error);
    result[i] = directory + "/" + name;
  }
  return result;
}
