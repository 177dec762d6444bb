//===- FieldNumber.cpp - numbers of two finite fields ---------------------===//
#include "optiml/Analysis/IterationCases.h"

using namespace optiml;

/// q is prime, p = 1073741790 q + 1 too, and `base` is of order q modulo p.
constexpr uint64_t theP = 2305842935125508131u, theQ = 2147483647u, base = 344357119268387738u;

static uint64_t times(uint64_t a, uint64_t b, uint64_t m) {
  return uint64_t(static_cast<unsigned __int128>(a) * b % m);
}

static uint64_t power(uint64_t a, uint64_t n, uint64_t m) {
  uint64_t result = 1;
  for (; n; n >>= 1, a = times(a, a, m))
    if (n & 1)
      result = times(result, a, m);
  return result;
}

FieldNumber FieldNumber::of(int64_t n) {
  FieldNumber a{uint64_t(n < 0 ? -n : n) % theP, uint64_t(n < 0 ? -n : n) % theQ};
  return n < 0 ? FieldNumber{} - a : a;
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
static uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

FieldNumber FieldNumber::random(uint64_t seed) {
  return {mixed(seed) % (theP - 1) + 1, mixed(seed + 0x5851f42d4c957f2du) % (theQ - 1) + 1};
}

namespace optiml {
FieldNumber operator+(const FieldNumber &a, const FieldNumber &b) {
  return {(a.p + b.p) % theP, (a.q + b.q) % theQ, a.hasQ && b.hasQ};
}
FieldNumber operator-(const FieldNumber &a, const FieldNumber &b) {
  return {(a.p + theP - b.p) % theP, (a.q + theQ - b.q) % theQ, a.hasQ && b.hasQ};
}
FieldNumber operator*(const FieldNumber &a, const FieldNumber &b) {
  return {times(a.p, b.p, theP), times(a.q, b.q, theQ), a.hasQ && b.hasQ};
}
} // namespace optiml

std::optional<FieldNumber> FieldNumber::inverse() const {
  if (!p || (hasQ && !q))
    return std::nullopt;
  return FieldNumber{power(p, theP - 2, theP), hasQ ? power(q, theQ - 2, theQ) : 0, hasQ};
}

std::optional<FieldNumber> FieldNumber::exponential() const {
  if (!hasQ)
    return std::nullopt;
  return FieldNumber{power(base, q, theP), 0, false};
}
