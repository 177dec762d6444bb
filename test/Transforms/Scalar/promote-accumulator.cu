// A global read-modify-write in a loop becomes a register.
//
// RUN: %plan --passes='promote-accumulator[dot/k:c]' %s | FileCheck %s
// RUN: %opt --passes='promote-accumulator[scaled/k:c]' %s | %check=TOUCHED
// RUN: %opt --passes='promote-accumulator[begun/k:c]' %s | %check=BEGUN
// RUN: %refused --passes='promote-accumulator[moving/k:c]' %s 2>&1 | %check=MOVING
// RUN: %refused --passes='promote-accumulator[sometimes/k:c]' %s 2>&1 | %check=SOMETIMES
// RUN: %plan --passes='promote-accumulator[unbounded/k:c]' %s | %check=UNBOUNDED

// The loop may not run at all: then the element must not be touched.
// CHECK: // when disjoint(a, 4 * (k_ * n), c, 4 * n)
// CHECK: if (0 < k_) {
// CHECK-NEXT: float acc = c[i];
// CHECK-NEXT: for (int k = 0; k < k_; ++k) {
// CHECK-NEXT: acc += a[i * k_ + k];
// CHECK-NEXT: }
// CHECK-NEXT: c[i] = acc;
__global__ void dot(const float *a, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      c[i] += a[i * k_ + k];
}

// Written before the loop: no test is needed.
// TOUCHED: c[i] *= 0.5f;
// TOUCHED-NEXT: float acc = c[i];
// TOUCHED-NEXT: for
__global__ void scaled(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] *= 0.5f;
    for (int k = 0; k < k_; ++k)
      c[i] = c[i] + a[i * k_ + k];
  }
}

// What was written before may be written again, though no iteration did.
// BEGUN: c[i] = 0.0f;
// BEGUN-NEXT: float acc = c[i];
// BEGUN-NEXT: for
// BEGUN-NEXT: if (a[k] > 0) {
// BEGUN-NEXT: acc += a[k];
// BEGUN: c[i] = acc;
__global__ void begun(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  c[i] = 0.0f;
  for (int k = 0; k < k_; ++k)
    if (a[k] > 0)
      c[i] += a[k];
}

// MOVING: the index of 'c' changes within the loop
__global__ void moving(const float *a, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      c[i + k] += a[k];
}

// SOMETIMES: 'c' is not accessed in every iteration, nor written before the loop
__global__ void sometimes(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      if (a[k] > 0)
        c[i] += a[k];
}

// UNBOUNDED: when apart(a, c)
// UNBOUNDED: when disjoint(c, 4 * n, index, 4 * k_)
// UNBOUNDED: acc += a[index[k]];
__global__ void unbounded(const float *a, const int *index, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      c[i] += a[index[k]];
}
