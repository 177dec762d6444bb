// Loops that run until their counter equals a bound are counted loops, where a counter beyond it would have to
// overflow.
// RUN: %opt --passes='unroll[sum/k]{factor=4}' %s | FileCheck %s
// RUN: %opt --passes='unroll[from/k]{factor=4}' %s | %check=FROM
// RUN: %refused --passes='unroll[leaves/k]{factor=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unroll[wraps/k]{factor=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unroll[moves/k]{factor=4}' %s 2>&1 | %check=NONE
// NONE: there is no counted loop '/k'

// CHECK: size_t k = 0;
// CHECK: for (; k < n && n - k >= 4; k += 4) {
// CHECK: for (; k < n; ++k) {
__global__ void sum(const float *a, float *c, size_t n) {
  float s = 0;
  for (size_t k = 0; k != n; ++k)
    s += a[k];
  c[threadIdx.x] = s;
}

struct Range {
  int first, last;
};

// FROM: for (; k < r.last && (unsigned int)r.last - (unsigned int)k >= 4; k += 4) {
__global__ void from(const float *a, float *c, Range r) {
  float s = 0;
  for (int k = r.first; r.last != k; k += 1)
    s += a[k];
  c[threadIdx.x] = s;
}

// It may begin beyond n, and end by the break.
__global__ void leaves(const float *a, float *c, int n) {
  float s = 0;
  for (int k = 0; k != n; ++k) {
    if (a[k] < 0)
      break;
    s += a[k];
  }
  c[threadIdx.x] = s;
}

// An unsigned counter may wrap around to its end.
__global__ void wraps(const float *a, float *c, unsigned first, unsigned n) {
  float s = 0;
  for (unsigned k = first; k != n; ++k)
    s += a[k & 255];
  c[threadIdx.x] = s;
}

__global__ void moves(const float *a, float *c, int n) {
  float s = 0;
  for (int k = 0; k != n; ++k) {
    s += a[k];
    if (a[k] == 0)
      n -= 2;
  }
  c[threadIdx.x] = s;
}
