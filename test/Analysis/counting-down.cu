// Loops that count down are counted loops, from the first of their values on.
// RUN: %opt --passes='unroll[fir/k]{factor=4}' %s | FileCheck %s
// RUN: %opt --passes='unroll[plain/k]{factor=4}' %s | %check=PLAIN
// RUN: %opt --passes='unroll[last/k]{factor=4}' %s | %check=LAST
// RUN: %opt --passes='unroll[before/k]{factor=4}' %s | %check=BEFORE
// RUN: %opt --passes='unroll[bare/k]{factor=4}' %s | %check=BARE
// RUN: %refused --passes='unroll[wraps/k]{factor=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unroll[leaves/k]{factor=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unroll[used/k]{factor=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unroll[moves/k]{factor=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unroll[others/k]{factor=4}' %s 2>&1 | %check=NONE
// NONE: there is no counted loop '/k'

// CHECK: int k = 0;
// CHECK: for (; taps - k >= 4; k += 4) {
// CHECK: s += a[taps - 1 - (k + u)];
__global__ void fir(const float *a, float *c, int taps) {
  float s = 0;
  int k = taps;
  while (k-- > 0)
    s += a[k];
  c[threadIdx.x] = s;
}

// PLAIN: for (; n - k >= 4; k += 4) {
// PLAIN: s += a[n - (k + u)];
__global__ void plain(const float *a, float *c, int n) {
  float s = 0;
  for (int k = n; k > 0; --k)
    s += a[k];
  c[threadIdx.x] = s;
}

// LAST: for (; n - k >= 4; k += 4) {
// LAST: s += a[n - 1 - (k + u)];
__global__ void last(const float *a, float *c, int n) {
  float s = 0;
  for (int k = n - 1; k >= 0; k -= 1)
    s += a[k];
  c[threadIdx.x] = s;
}

// BEFORE: for (; n - 1 - k >= 4; k += 4) {
// BEFORE: s += a[n - 1 - (k + u)];
__global__ void before(const float *a, float *c, int n) {
  float s = 0;
  int k = n;
  while (--k > 0)
    s += a[k];
  c[threadIdx.x] = s;
}

// BARE: for (; k < n && n - k >= 4; k += 4) {
// BARE: s += a[n - 1 - (k + u)];
__global__ void bare(const float *a, float *c, unsigned n) {
  float s = 0;
  for (unsigned k = n; k--;)
    s += a[k];
  c[threadIdx.x] = s;
}

// From 0 it is at the largest number next.
__global__ void wraps(const float *a, float *c, unsigned n) {
  float s = 0;
  unsigned k = n;
  while (--k > 0)
    s += a[k & 255];
  c[threadIdx.x] = s;
}

// It may begin below 0, and end by the break.
__global__ void leaves(const float *a, float *c, int n) {
  float s = 0;
  for (int k = n; k != 0; --k) {
    if (a[k & 255] < 0)
      break;
    s += a[k & 255];
  }
  c[threadIdx.x] = s;
}

__global__ void used(const float *a, float *c, int n) {
  float s = 0;
  int k = n;
  while (k-- > 0)
    s += a[k];
  c[threadIdx.x] = s + k;
}

__global__ void moves(const float *a, float *c, int n) {
  float s = 0;
  for (int k = n; k > 0; --k) {
    s += a[k];
    if (a[k] == 0)
      n -= 2;
  }
  c[threadIdx.x] = s;
}

// What the loop begins with may change while it runs.
__global__ void others(const float *a, float *c) {
  __shared__ int n;
  if (threadIdx.x == 0)
    n = 100;
  __syncthreads();
  float s = 0;
  for (int k = n; k > 0; --k)
    s += a[k];
  c[threadIdx.x] = s;
}
