// Folds of shared memory, step by step, by shuffles: however the steps are written.
// RUN: %plan --block=256x1x1 --passes='tree-to-shuffle[halves]' %s | FileCheck %s
// RUN: %opt --block=64x1x1 --passes='tree-to-shuffle[neighbours]' %s | %check=MAX
// RUN: %opt --block=64x1x1 --passes='tree-to-shuffle[strides]' %s | %check=TWO
// RUN: %opt --block=128x1x1 --passes='tree-to-shuffle[unrolled<128U>]' %s | %check=TYPED
// RUN: %opt --block=128x1x1 --passes='tree-to-shuffle[byWhile]' %s | %check=WHILE
// RUN: %refused --block=96x1x1 --passes='tree-to-shuffle[halves]' %s 2>&1 | %check=NONE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[half]' %s 2>&1 | %check=NONE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[races]' %s 2>&1 | %check=NONE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[twice]' %s 2>&1 | %check=NONE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[own]' %s 2>&1 | %check=NONE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[hides]' %s 2>&1 | %check=HIDES
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[others]' %s 2>&1 | %check=OTHERS
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[stale]' %s 2>&1 | %check=STALE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[some]' %s 2>&1 | %check=STALE
// RUN: %refused --block=64x1x1 --passes='tree-to-shuffle[leaves]' %s 2>&1 | %check=PART
// RUN: %refused --block=32x4x1 --passes='tree-to-shuffle[halves]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='tree-to-shuffle[halves]' %s 2>&1 | %check=UNKNOWN
// NONE: no array in shared memory is folded by a block of {{[0-9]+}} threads
// SHAPE: the block is not a number of warps along x
// UNKNOWN: the number of threads of a block is not known

// RUN: optiml-opt --reread --emit --block=256x1x1 --passes='tree-to-shuffle[halves]' %s > %t.1.cu
// RUN: %verify=%t.1.cu %s
// RUN: optiml-opt --reread --emit --block=64x1x1 --passes='tree-to-shuffle[neighbours];tree-to-shuffle[strides]' %s > %t.2.cu
// RUN: %verify=%t.2.cu %s
// RUN: optiml-opt --reread --emit --block=128x1x1 --passes='tree-to-shuffle[unrolled<128U>];tree-to-shuffle[byWhile]' %s > %t.3.cu
// RUN: %verify=%t.3.cu %s
#include <cstdio>
#include <cuda_runtime.h>

// CHECK: when block.x == 256
// CHECK: when block.y * block.z == 1
// CHECK: when shared + {{[0-9]+}} <= 49152
// CHECK: part[threadIdx.x] = s;
// CHECK: float part_of_thread = part[threadIdx.x];
// CHECK-NEXT: __shared__ float part_of_warps[8];
// CHECK: part_of_thread += __shfl_xor_sync(0xffffffff, part_of_thread, offset);
// CHECK: if (threadIdx.x == 0) {
// CHECK-NEXT: part[0] = part_of_thread;
// CHECK-NEXT: }
// CHECK-NEXT: __syncthreads();
// CHECK-NOT: part[threadIdx.x +
__global__ void halves(const float *x, float *sums, int n) {
  __shared__ float part[256];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    s += x[i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
    if (threadIdx.x < stride)
      part[threadIdx.x] += part[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    sums[blockIdx.x] = part[0];
}

// Two folds of one array, one after the other, in a loop.
// MAX: float m_of_thread = m[threadIdx.x];
// MAX: m_of_thread = fmaxf(m_of_thread, other
// MAX: m[t] = expf(
// MAX: m_of_thread1 += __shfl_xor_sync
__global__ void neighbours(const float *x, float *out, int rows) {
  __shared__ float m[64];
  int t = threadIdx.x;
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    m[t] = x[r * 64 + t];
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
      if (t % (2 * s) == 0)
        m[t] = fmaxf(m[t], m[t + s]);
      __syncthreads();
    }
    float most = m[0];
    __syncthreads();
    m[t] = expf(x[r * 64 + t] - most);
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
      int i = 2 * s * t;
      if (i < blockDim.x)
        m[i] += m[i + s];
      __syncthreads();
    }
    out[r * 64 + t] = expf(x[r * 64 + t] - most) / m[0];
    __syncthreads();
  }
}

// TWO: int high_of_thread = high[threadIdx.x];
// TWO: if (other{{[0-9]*}} > high_of_thread) {
// TWO: int low_of_thread = low[threadIdx.x];
// TWO: if (other{{[0-9]*}} < low_of_thread) {
__global__ void strides(const int *x, int *out, int n) {
  __shared__ int low[64], high[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  low[t] = 1 << 30;
  if (i < n)
    low[t] = x[i];
  if (i < n)
    high[t] = x[i];
  else
    high[t] = -(1 << 30);
  for (int s = 32; s >= 1; s /= 2) {
    __syncthreads();
    if (t < s) {
      if (low[t + s] < low[t])
        low[t] = low[t + s];
      high[t] = high[t + s] > high[t] ? high[t + s] : high[t];
    }
  }
  if (t == 0) {
    out[2 * blockIdx.x] = low[0];
    out[2 * blockIdx.x + 1] = high[0];
  }
}

// Dynamic shared memory of no type, and steps one by one.
// TYPED: extern __shared__ double s_double[];
// TYPED: s_double[t] = i < n ? x[i] : 0;
// TYPED: double s_double_of_thread = s_double[threadIdx.x];
// TYPED: if (t == 0) {
// TYPED-NEXT: sums[blockIdx.x] = s_double[0];
template <unsigned Threads> __global__ void unrolled(const double *x, double *sums, unsigned n) {
  extern __shared__ unsigned char raw[];
  auto *s = reinterpret_cast<double *>(raw);
  unsigned t = threadIdx.x, i = blockIdx.x * Threads + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  if (Threads >= 256) { if (t < 128) s[t] += s[t + 128]; __syncthreads(); }
  if (Threads >= 128) { if (t < 64) s[t] += s[t + 64]; __syncthreads(); }
  if (t < 32) s[t] += s[t + 32];
  __syncthreads();
  for (int d = 16; d != 0; d /= 2) {
    if (t < d)
      s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0)
    sums[blockIdx.x] = s[0];
}

// WHILE: cache_of_thread += __shfl_xor_sync
__global__ void byWhile(const float *x, float *sum, int n) {
  __shared__ float cache[128];
  int own = threadIdx.x;
  float s = 0;
  for (int i = own + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
    s += x[i];
  cache[own] = s;
  __syncthreads();
  int i = blockDim.x / 2;
  while (i != 0) {
    if (own < i)
      cache[own] += cache[own + i];
    __syncthreads();
    i /= 2;
  }
  if (own == 0)
    atomicAdd(sum, cache[0]);
}

// Stops before the last step.
__global__ void half(const float *x, float *sums) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 1; s /= 2) {
    if (threadIdx.x < s)
      part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  sums[0] = part[0] + part[1];
}

// No barrier between the steps.
__global__ void races(const float *x, float *sums) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2)
    if (threadIdx.x < s)
      part[threadIdx.x] += part[threadIdx.x + s];
  __syncthreads();
  sums[0] = part[0];
}

// Adds some elements more than once.
__global__ void twice(const int *x, int *sums) {
  __shared__ int part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    int other = threadIdx.x < s ? threadIdx.x + s : threadIdx.x;
    if (threadIdx.x < 32)
      part[threadIdx.x] += part[other];
    __syncthreads();
  }
  sums[0] = part[0];
}

namespace soft {
__device__ float max(float a, float b) { return a > b ? a + 0.25f * b : b + 0.25f * a; }
} // namespace soft

__global__ void own(const float *x, float *sums) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (threadIdx.x < s)
      part[threadIdx.x] = soft::max(part[threadIdx.x], part[threadIdx.x + s]);
    __syncthreads();
  }
  sums[0] = part[0];
}

// HIDES: which elements of 'part' a NaN hides may not change
__global__ void hides(const float *x, float *sums) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (threadIdx.x < s)
      if (part[threadIdx.x + s] > part[threadIdx.x])
        part[threadIdx.x] = part[threadIdx.x + s];
    __syncthreads();
  }
  sums[0] = part[0];
}

// OTHERS: another element of 'part' than the first is used after it was folded
__global__ void others(const float *x, float *sums) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (threadIdx.x < s)
      part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  sums[threadIdx.x] = part[threadIdx.x];
}

// What the first sum left is added up again; and some threads store nothing.
// STALE: not every thread has just stored its own element of 'part'
__global__ void stale(const float *x, float *sums) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  for (int r = 0; r < 2; ++r) {
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
      if (threadIdx.x < s)
        part[threadIdx.x] += part[threadIdx.x + s];
      __syncthreads();
    }
    sums[r] = part[0];
  }
}

__global__ void some(const float *x, float *sums, int n) {
  __shared__ float part[64];
  if (threadIdx.x < n)
    part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (threadIdx.x < s)
      part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  sums[0] = part[0];
}

// Threads that have returned take no part in shuffles.
// PART: not all threads of a block go the same way
__global__ void leaves(const float *x, float *sums, int n) {
  __shared__ float part[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n)
    return;
  part[threadIdx.x] = x[i];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (threadIdx.x < s)
      part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    sums[blockIdx.x] = part[0];
}

int main() {
  const int n = 1000;
  float *x, *y;
  double *d, *sums;
  int *k, *extremes;
  cudaMallocManaged(&x, 4096 * 4);
  cudaMallocManaged(&y, 4096 * 4);
  cudaMallocManaged(&d, n * 8);
  cudaMallocManaged(&sums, 64 * 8);
  cudaMallocManaged(&k, n * 4);
  cudaMallocManaged(&extremes, 64 * 4);
  for (int i = 0; i < 4096; ++i)
    x[i] = i * 37 % 101 * 0.125f - 3;
  for (int i = 0; i < n; ++i) {
    d[i] = i % 17;
    k[i] = i * 7919 % 1009 - 500;
  }
  halves<<<3, 256>>>(x, y, n);
  neighbours<<<4, 64>>>(x, y + 64, 10);
  strides<<<(n + 63) / 64, 64>>>(k, extremes, n);
  unrolled<128><<<(n + 127) / 128, 128, 128 * 8>>>(d, sums, n);
  y[3000] = 0;
  byWhile<<<2, 128>>>(x, y + 3000, n);
  printf("%d\n", cudaDeviceSynchronize());
}
