//===- Float16.h - 16-bit floating-point numbers ----------------*- C++ -*-===//
//
// IEEE half and bfloat16 by their bits, for hosts and GPUs without such types. Constant expressions throughout, for
// device code calls them, too.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_WORKLOAD_FLOAT16_H
#define OPTIML_WORKLOAD_FLOAT16_H

#include <bit>
#include <cstdint>

namespace optiml {

/// Half: 5 bits of exponent; brain: bfloat16, 8 bits.
enum class Format16 { Half, Brain };

constexpr uint16_t infinity16(Format16 f) { return f == Format16::Half ? 0x7C00 : 0x7F80; }
constexpr bool isFinite16(uint16_t bits, Format16 f) { return (bits & 0x7FFF) < infinity16(f); }
constexpr bool isNan16(uint16_t bits, Format16 f) { return (bits & 0x7FFF) > infinity16(f); }

/// Exactly what the bits stand for.
constexpr float valueOf16(uint16_t bits, Format16 f) {
  if (f == Format16::Brain)
    return std::bit_cast<float>(uint32_t(bits) << 16);
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 0) {
    float v = float(fraction) * 0x1p-24f;
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

/// Rounded to nearest, ties to even; beyond the largest finite number that one.
constexpr uint16_t bitsOf16(float v, Format16 f) {
  uint32_t bits = std::bit_cast<uint32_t>(v), sign = bits >> 16 & 0x8000;
  bits &= 0x7FFFFFFF;
  uint32_t drop = f == Format16::Brain ? 16 : 13; // bits of the fraction
  if (f == Format16::Half) {
    if (bits < 0x38800000) { // below 2^-14: a multiple of 2^-24, which adding 1/2 leaves in the last bits
      uint32_t sum = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f);
      return uint16_t(sign | (sum & 0x7FF));
    }
    bits -= 112u << 23;
  }
  uint32_t rounded = (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
  uint32_t largest = infinity16(f) - 1u;
  return uint16_t(sign | (rounded < largest ? rounded : largest));
}

/// Whether a result may stand for another: no more than `most` units in the last place from it, or no further than
/// `distance`. NaN and infinities only stand for their like.
constexpr bool isNear16(uint16_t actual, uint16_t expected, Format16 f, double distance, int most = 2) {
  if (isNan16(expected, f))
    return isNan16(actual, f);
  if (!isFinite16(expected, f) || !isFinite16(actual, f))
    return actual == expected;
  int a = actual & 0x7FFF, e = expected & 0x7FFF;
  int units = (actual & 0x8000 ? -a : a) - (expected & 0x8000 ? -e : e);
  double apart = double(valueOf16(actual, f)) - double(valueOf16(expected, f));
  return (units <= most && units >= -most) || (apart <= distance && apart >= -distance);
}

/// How far results that were summed in 32 bits may be from each other, relative to the largest of their buffer: some
/// thousand terms in another order.
constexpr double distance16 = 0x1p-18;

} // namespace optiml

#endif
