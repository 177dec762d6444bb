//===- Kernels.cu - what a worker itself runs on the GPU --------*- CUDA -*-===//
//
// Compiled to PTX when OptiML is built and embedded into the worker; the driver translates it for its GPU.
//
//===----------------------------------------------------------------------===//
#include "Places.h"
#include "optiml/Workload/Float16.h"
#include <cfloat>
#include <cstdint>

using optiml::gpu::Place;

static __device__ uint64_t firstItem() { return blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; }
static __device__ uint64_t step() { return gridDim.x * uint64_t(blockDim.x); }

extern "C" {

/// Bytes that differ; the place is a byte offset.
__global__ void optimlCompareBits(const unsigned char *actual, const unsigned char *expected, uint64_t bytes,
                                  Place *place) {
  uint64_t words = ((uint64_t(actual) | uint64_t(expected)) & 3) ? 0 : bytes / 4;
  const uint32_t *a = reinterpret_cast<const uint32_t *>(actual), *e = reinterpret_cast<const uint32_t *>(expected);
  for (uint64_t i = firstItem(); i < words; i += step())
    if (a[i] != e[i])
      atomicMin(place, Place(4 * i));
  for (uint64_t i = 4 * words + firstItem(); i < bytes; i += step())
    if (actual[i] != expected[i])
      atomicMin(place, Place(i));
}

/// Bytes that are not `value`.
__global__ void optimlCheckPattern(const unsigned char *data, uint64_t bytes, unsigned value, Place *place) {
  for (uint64_t i = firstItem(); i < bytes; i += step())
    if (data[i] != value)
      atomicMin(place, Place(i));
}
}

template <typename T> static __device__ bool within(T actual, T expected, double tolerance) {
  if (isnan(expected))
    return isnan(actual);
  if (isinf(expected))
    return actual == expected;
  return fabs(double(actual) - double(expected)) <= tolerance; // written so that NaN fails
}

/// A cell is off by more than its limit, though by less than a stray may be: whether `n` cells may have one more.
static __device__ bool mayStray(Place *place, uint64_t n) {
  return atomicAdd(place + optiml::gpu::places, Place(1)) + 1 < n / optiml::gpu::cellsForStray;
}

/// Near enough, of `n` cells.
template <typename T>
static __device__ bool isNear(T actual, T expected, double limit, double smallest, uint64_t n, Place *place) {
  return actual == expected || within(actual, expected, limit + smallest) ||
         (within(actual, expected, optiml::gpu::strayDistance * limit + smallest) && mayStray(place, n));
}

template <optiml::Format16 format>
static __device__ void compareFloats16(const uint16_t *actual, const uint16_t *expected, uint64_t n, double relative,
                                       double typical, Place *place) {
  for (uint64_t i = firstItem(); i < n; i += step()) {
    double magnitude = fmax(fabs(double(optiml::valueOf16(expected[i], format))), typical);
    if (!optiml::isNear16(actual[i], expected[i], format, relative * magnitude))
      atomicMin(place, Place(2 * i));
  }
}

template <typename T>
static __device__ void compareFloats(const T *actual, const T *expected, uint64_t n, double relative, double typical,
                                     double smallest, Place *place) {
  for (uint64_t i = firstItem(); i < n; i += step()) {
    T e = expected[i];
    if (!isNear(actual[i], e, relative * fmax(fabs(double(e)), typical), smallest, n, place))
      atomicMin(place, Place(i * sizeof(T)));
  }
}

extern "C" {

__global__ void optimlCompareFloats(const float *actual, const float *expected, uint64_t n, double relative,
                                    double typical, Place *place) {
  compareFloats(actual, expected, n, relative, typical, FLT_MIN, place);
}

__global__ void optimlCompareDoubles(const double *actual, const double *expected, uint64_t n, double relative,
                                     double typical, Place *place) {
  compareFloats(actual, expected, n, relative, typical, DBL_MIN, place);
}

/// Structures of `inRecord` words, of which `kinds` tells what they are (Cases.h, WordKind).
__global__ void optimlCompareRecords(const uint32_t *actual, const uint32_t *expected, uint64_t words,
                                     const unsigned char *kinds, uint64_t inRecord, double relative, double typical,
                                     Place *place) {
  for (uint64_t i = firstItem(); i < words; i += step()) {
    const unsigned kind = kinds[i % inRecord];
    bool good = actual[i] == expected[i] || kind == 3;
    if (kind == 1 && !good) {
      const float a = __uint_as_float(actual[i]), e = __uint_as_float(expected[i]);
      good = isNear(a, e, relative * fmax(fabs(double(e)), typical), FLT_MIN, words, place);
    } else if (kind == 2 && i + 1 < words) {
      const double a = __hiloint2double(int(actual[i + 1]), int(actual[i])),
                   e = __hiloint2double(int(expected[i + 1]), int(expected[i]));
      good = isNear(a, e, relative * fmax(fabs(e), typical), DBL_MIN, words, place);
    }
    if (!good)
      atomicMin(place, Place(4 * i));
  }
}

__global__ void optimlCompareHalves(const uint16_t *actual, const uint16_t *expected, uint64_t n, double relative,
                                    double typical, Place *place) {
  compareFloats16<optiml::Format16::Half>(actual, expected, n, relative, typical, place);
}

__global__ void optimlCompareBFloats(const uint16_t *actual, const uint16_t *expected, uint64_t n, double relative,
                                     double typical, Place *place) {
  compareFloats16<optiml::Format16::Brain>(actual, expected, n, relative, typical, place);
}

struct CheckedCell {
  uint64_t offset;
  uint32_t bytes, unused;
  double value, tolerance;
};

/// Cells that were recomputed in double precision.
__global__ void optimlCheckCells(const unsigned char *actual, const unsigned char *expected, const CheckedCell *cells,
                                 uint64_t n, Place *place) {
  for (uint64_t i = firstItem(); i < n; i += step()) {
    CheckedCell c = cells[i];
    double a, e;
    if (c.bytes == 4) {
      a = *reinterpret_cast<const float *>(actual + c.offset);
      e = *reinterpret_cast<const float *>(expected + c.offset);
    } else {
      a = *reinterpret_cast<const double *>(actual + c.offset);
      e = *reinterpret_cast<const double *>(expected + c.offset);
    }
    if (!(fabs(a - c.value) <= c.tolerance) && !isNear(a, e, c.tolerance, 0.0, n, place))
      atomicMin(place, Place(c.offset));
  }
}

/// Other contents for an output buffer. Numbers of floating point become NaN; anything else stays a plausible index:
/// the 4-byte words of the buffer are mirrored in the range [low, high] that they had.
__global__ void optimlPoison(unsigned char *data, uint64_t bytes, int floating, int low, int high) {
  uint32_t *words = reinterpret_cast<uint32_t *>(data);
  for (uint64_t i = firstItem(); i < bytes / 4; i += step())
    words[i] = floating      ? 0xffffffffu
               : low == high ? uint32_t(low == 0 ? 1 : 0)
                             : uint32_t(low) + (uint32_t(high) - words[i]);
  for (uint64_t i = bytes / 4 * 4 + firstItem(); i < bytes; i += step())
    data[i] = floating ? 0xff : data[i];
}

/// After a run on poisoned contents: every 4-byte word must be what was there, or what the run on the true contents
/// gave. `written` counts those that are not what was there.
__global__ void optimlCheckWritten(const uint32_t *result, const uint32_t *poisoned, const uint32_t *expected,
                                   uint64_t words, Place *place, Place *written) {
  Place mine = 0;
  for (uint64_t i = firstItem(); i < words; i += step()) {
    bool changed = result[i] != poisoned[i];
    mine += changed;
    if (changed && result[i] != expected[i])
      atomicMin(place, Place(4 * i));
  }
  if (mine)
    atomicAdd(written, mine);
}

/// Keeps the GPU busy for so many nanoseconds, so that what is queued behind it starts without waiting for the host.
__global__ void optimlSpin(unsigned nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(200);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}
}
