// RUN: %plan --passes='block-shape[guarded]{x=128,y=1}' %s | FileCheck %s
// RUN: %plan --passes='block-shape[exact]{x=128,y=1}' %s | %check=EXACT
// RUN: %plan --block 64 --passes='block-shape[tile]{x=64,y=1}' %s | %check=OWN
// RUN: %refused --block 64 --passes='block-shape[tile]{x=128,y=1}' %s 2>&1 | %check=SHARED
// RUN: %refused --passes='block-shape[lane]{x=128,y=1}' %s 2>&1 | %check=LANE
// RUN: %refused --passes='block-shape[guarded]{x=2048,y=1}' %s 2>&1 | %check=LIMIT

// CHECK: guarded_optiml{{[0-9]*}}<<<(ceildiv(grid.x * block.x, 128), 1, 1), (128, 1, 1), shared>>>
// CHECK: when n <= grid.x * block.x
// CHECK: when grid.y * block.y == 1
// CHECK: int i = blockIdx.x * 128 + threadIdx.x;
// LIMIT: a block of 2048x1x1 threads cannot be launched
__global__ void guarded(const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i];
}

// Without a guard the new blocks must hold exactly the launch's threads.
// EXACT: when grid.x * block.x % 128 == 0
__global__ void exact(const float *a, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i];
}

// The launch's own shape is always right, and makes blockDim a constant.
// OWN: when block.x == 64
// OWN: c[blockIdx.x * 64 + threadIdx.x] = s[64 - 1 - threadIdx.x];
// SHARED: the kernel's threads work together, or wait for each other: __syncthreads (line
__global__ void tile(const float *a, float *c) {
  __shared__ float s[64];
  s[threadIdx.x] = a[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  c[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

// LANE: axis x is used other than through the global index (line [[@LINE+3]])
__global__ void lane(const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 == 0 && i < n)
    c[i] = a[i];
}
