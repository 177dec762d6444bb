// RUN: %opt --passes='unroll[sum/k]{factor=4}' %s | FileCheck %s
// RUN: %opt --passes='unroll[fixed/k]{factor=full}' %s | %check=FULL
// RUN: %opt --passes='unroll[fixed/k]{factor=4}' %s | %check=EXACT
// RUN: %refused --passes='unroll[leaves/k]{factor=4}' %s 2>&1 | %check=LEAVES
// RUN: %refused --passes='unroll[sum/k]{factor=full}' %s 2>&1 | %check=UNKNOWN
// RUN: %refused --passes='unroll[sum/k]{factor=1}' %s 2>&1 | %check=FACTOR

// CHECK: int k = 0;
// CHECK: for (; n - k >= 4; k += 4) {
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int u = 0; u < 4; ++u) {
// CHECK-NEXT: s += a[k + u];
// CHECK: for (; k < n; ++k) {
// CHECK-NEXT: s += a[k];
// UNKNOWN: its trip count is not known at compile time
// FACTOR: the factor must be 'full' or 2 to 1024
__global__ void sum(const float *a, float *c, int n) {
  float s = 0;
  for (int k = 0; k < n; ++k)
    s += a[k];
  c[threadIdx.x] = s;
}

// FULL: #pragma unroll
// FULL-NEXT: for (int k = 0; k < 8; ++k) {
// EXACT: for (int k = 0; k < 8; k += 4) {
// EXACT-NOT: for (; k
__global__ void fixed(const float *a, float *c) {
  float s = 0;
  for (int k = 0; k < 8; ++k)
    s += a[k];
  c[threadIdx.x] = s;
}

// LEAVES: the loop may be left early
__global__ void leaves(const float *a, float *c, int n) {
  float s = 0;
  for (int k = 0; k < n; ++k) {
    if (a[k] < 0)
      break;
    s += a[k];
  }
  c[threadIdx.x] = s;
}
