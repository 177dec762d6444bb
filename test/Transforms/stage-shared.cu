// RUN: optiml-opt --reread --kernels-only --print-plan --passes='block-shape[gemv]{x=64,y=1};stage-shared[gemv/k:x]{tile=32}' %s | FileCheck %s
// RUN: not optiml-opt --passes='stage-shared[gemv/k:x]{tile=32}' %s 2>&1 | FileCheck --check-prefix=SHAPE %s
// RUN: not optiml-opt --passes='block-shape[gather]{x=64,y=1};stage-shared[gather/k:x]{tile=32}' %s 2>&1 | FileCheck --check-prefix=GATHER %s
// RUN: not optiml-opt --passes='block-shape[inplace]{x=64,y=1};stage-shared[inplace/k:x]{tile=32}' %s 2>&1 | FileCheck --check-prefix=INPLACE %s
// RUN: not optiml-opt --passes='block-shape[triangle]{x=64,y=1};stage-shared[triangle/k:x]{tile=32}' %s 2>&1 | FileCheck --check-prefix=TRIANGLE %s
// RUN: not optiml-opt --passes='block-shape[masked]{x=64,y=1};stage-shared[masked/k:x]{tile=32}' %s 2>&1 | FileCheck --check-prefix=MASKED %s
// RUN: not optiml-opt --passes='block-shape[gemv]{x=64,y=1};stage-shared[gemv/k:a+x]{tile=256}' %s 2>&1 | FileCheck --check-prefix=LARGE %s

// The vector is shared by the block. `a` is still read directly, so its reads keep both guards.
// CHECK: when disjoint(x, 4 * m, y, 4 * n)
// CHECK: __shared__ __align__(16) float x_tile[32];
// CHECK: for (int k0 = 0; k0 < m; k0 += 32) {
// CHECK: x_tile[{{.*}}] = {{.*}} < m {{.*}}? x[{{.*}}] : 0.0f;
// CHECK: __syncthreads();
// CHECK: if (k0 + k < m) {
// CHECK-NEXT: if (r < n) {
// CHECK-NEXT: s += a[r * m + (k0 + k)] * x_tile[k];
// CHECK: __syncthreads();
// SHAPE: the block shape is not fixed yet
// LARGE: bytes of shared memory are too many
__global__ void gemv(const float *a, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += a[r * m + k] * x[k];
  y[r] = s;
}

// GATHER: the index of x uses a variable that changes
__global__ void gather(const int *index, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += x[index[k]];
  y[r] = s;
}

// INPLACE: x is written
__global__ void inplace(float *x, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += x[k];
  x[r] = s;
}

// TRIANGLE: does not run the same for all threads of a block
__global__ void triangle(const float *x, float *y, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < r; ++k)
    s += x[k];
  y[r] = s;
}

// Which elements are read depends on data: loading the others might be out of bounds.
// MASKED: the condition around x is not affine
__global__ void masked(const int *use, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    if (use[k])
      s += x[k];
  y[r] = s;
}
