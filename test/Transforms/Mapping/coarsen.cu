// RUN: %plan --passes='block-shape[axpy]{x=128,y=1};coarsen[axpy]{x=4,style=strided}' %s | FileCheck %s
// RUN: %opt --passes='block-shape[axpy]{x=128,y=1};coarsen[axpy]{x=4,style=blocked}' %s | %check=BLOCKED
// RUN: %opt --passes='block-shape[rows]{x=64,y=1};coarsen[rows]{x=2,style=strided}' %s | %check=ROWS
// RUN: %refused --passes='coarsen[axpy]{x=4}' %s 2>&1 | %check=FIRST
// RUN: %refused --passes='block-shape[axpy]{x=128,y=1};coarsen[axpy]{y=4}' %s 2>&1 | %check=AXIS

// An early return becomes a guard of every copy.
// CHECK: ceildiv(grid.x * block.x, 512)
// CHECK: int i = blockIdx.x * 512 + threadIdx.x;
// CHECK: for (int ix = 0; ix < 4; ++ix) {
// CHECK-NEXT: if (i + ix * 128 < n) {
// CHECK-NEXT: y[i + ix * 128] = a * x[i + ix * 128] + y[i + ix * 128];
// BLOCKED: int i = blockIdx.x * 512 + threadIdx.x * 4;
// BLOCKED: y[i + ix] = a * x[i + ix] + y[i + ix];
// FIRST: the block shape is not fixed yet
// AXIS: axis y is not used
__global__ void axpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[i] = a * x[i] + y[i];
}

// A loop that all copies share is shared; one whose length differs between them is kept whole.
// ROWS: float s[2];
// ROWS: for (int k = 0; k < m; ++k) {
// ROWS-NEXT: #pragma unroll
// ROWS-NEXT: for (int ix = 0; ix < 2; ++ix) {
// ROWS-NEXT: if (r + ix * 64 < n) {
// ROWS-NEXT: s[ix] += a[(r + ix * 64) * m + k];
// ROWS: for (int ix = 0; ix < 2; ++ix) {
// ROWS-NEXT: if (r + ix * 64 < n) {
// ROWS-NEXT: for (int k = 0; k < r + ix * 64; ++k) {
// ROWS-NEXT: s[ix] -= a[k];
__global__ void rows(const float *a, float *c, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n) {
    float s = 0.0f;
    for (int k = 0; k < m; ++k)
      s += a[r * m + k];
    for (int k = 0; k < r; ++k)
      s -= a[k];
    c[r] = s;
  }
}
