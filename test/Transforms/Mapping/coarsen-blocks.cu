// coarsen-blocks: the work of several blocks in one, barriers and shared arrays included.
// RUN: %opt --passes='coarsen-blocks[product]{y=2};coarsen-blocks[rows]{x=4};coarsen-blocks[last]{x=2};coarsen-blocks[scan]{x=2};coarsen-blocks[counts]{x=2};coarsen-blocks[lattice]{x=2}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='coarsen-blocks[product]{y=2};coarsen-blocks[product]{x=2};coarsen-blocks[rows]{x=4};coarsen-blocks[last]{x=2};coarsen-blocks[scan]{x=2};coarsen-blocks[counts]{x=2};coarsen-blocks[steps]{x=2};coarsen-blocks[ragged]{x=2};coarsen-blocks[dynamic]{x=4};coarsen-blocks[notes]{x=2};coarsen-blocks[lattice]{x=2}' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --passes='coarsen-blocks[early]{x=2}' %s 2>&1 | %check=EARLY
// RUN: %refused --passes='coarsen-blocks[alone]{x=2}' %s 2>&1 | %check=ALONE
// RUN: %refused --passes='coarsen-blocks[places]{x=2}' %s 2>&1 | %check=PLACES
// RUN: %refused --passes='coarsen-blocks[waits]{x=2}' %s 2>&1 | %check=WAITS
// RUN: %refused --passes='coarsen-blocks[halves]{x=2}' %s 2>&1 | %check=DYNAMIC
// RUN: %refused --passes='coarsen-blocks[product]{z=2}' %s 2>&1 | %check=AXIS
// RUN: %refused --passes='coarsen-blocks[rows]{x=16};coarsen-blocks[rows]{x=16}' %s 2>&1 | %check=LARGE
// RAN-NOT: 0 optimized
// RAN-NOT: {{[1-9]}} original launches
// SAME: the same results
// EARLY: some threads return before a barrier
// ALONE: the blocks have no barrier in common
// PLACES: a call may ask for its block
// WAITS: the loop may wait for another block
// DYNAMIC: 'own' has dynamic size, differs between copies, and is used for more than its elements
// AXIS: the kernel does not use blocks along z
// LARGE: more shared memory than a block can have
#include <cstdio>

// A tile of b serves both blocks.
__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float as[8][8], bs[8][8];
  int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 8 + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; k += 8) {
    as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
    __syncthreads();
    for (int j = 0; j < 8; ++j)
      s += as[threadIdx.y][j] * bs[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = s;
}
// CHECK: product_optiml
// CHECK: float as[2][8][8];
// CHECK: float bs[8][8];
// CHECK: for (int k = 0; k < n; k += 8)
// CHECK: as[iy][threadIdx.y][threadIdx.x] = a[
// CHECK-NEXT: }
// CHECK-NEXT: bs[threadIdx.y][threadIdx.x] = b[
// CHECK-NEXT: __syncthreads();
// CHECK: s[iy] += as[iy][threadIdx.y][j] * bs[j][threadIdx.x];

// A row for each block; shuffles, a loop that is not counted, and a variable in shared memory.
__global__ void rows(const float *x, const float *w, float *y, int columns) {
  __shared__ float weight[64], part[64], scale;
  const int t = threadIdx.x;
  float s = 0;
  weight[t] = w[t] * 2;
  for (int i = t; i < columns; i += blockDim.x)
    s += x[blockIdx.x * columns + i] * weight[i % 64];
  for (int d = 16; d; d /= 2)
    s += __shfl_down_sync(0xffffffff, s, d);
  part[t] = s;
  __syncthreads();
  if (t == 0)
    scale = 1 / (1 + part[0] * part[0] + part[32] * part[32]);
  __syncthreads();
  for (int i = t; i < columns; i += blockDim.x)
    y[blockIdx.x * columns + i] = x[blockIdx.x * columns + i] * scale;
}
// CHECK: rows_optiml
// CHECK: float weight[64];
// CHECK-DAG: float part[4][64];
// CHECK-DAG: float scale[4];
// CHECK: for (int i = t; i < columns; i += blockDim.x) {
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int ix = 0; ix < 4; ++ix)
// CHECK: s[ix] += __shfl_down_sync(

// The last block sums up what all have found.
__global__ void last(const float *x, float *parts, float *sum, unsigned *ticket, int n) {
  __shared__ float part[64];
  __shared__ bool isLast;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = 32; d > 0; d >>= 1) {
    if (t < d)
      part[t] += part[t + d];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = part[0];
    __threadfence();
    isLast = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (isLast && t == 0) {
    float s = 0;
    for (int b = 0; b < gridDim.x; ++b)
      s += ((volatile float *)parts)[b];
    *sum = s;
  }
}
// CHECK: last_optiml
// CHECK: gridDim.x * 2 - 1

// Hillis and Steele, in place, with a barrier in a loop of its own.
__global__ void scan(int *x, int *totals) {
  __shared__ int a[64];
  int t = threadIdx.x;
  a[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    int v = t >= d ? a[t - d] : 0;
    __syncthreads();
    a[t] += v;
    __syncthreads();
  }
  x[blockIdx.x * 64 + t] = a[t];
  if (t == 63)
    totals[blockIdx.x] = a[t];
}
// CHECK: scan_optiml
// CHECK: int v[2];
// CHECK: a[ix][t] += v[ix];

// What both blocks count is the same, but each adds it; and it is changed in place.
__global__ void counts(const int *keys, unsigned *bins, unsigned *sums, int n) {
  __shared__ unsigned own[16];
  __shared__ unsigned same[64];
  int t = threadIdx.x;
  if (t < 16)
    own[t] = 0;
  same[t] = t;
  same[t] += keys[t];
  __syncthreads();
  atomicAdd(&own[keys[(blockIdx.x * 64 + t) % n] & 15], 1u);
  same[t] *= 3;
  __syncthreads();
  if (t < 16)
    atomicAdd(&bins[t], own[t]);
  atomicAdd(&sums[t], same[t]);
}
// CHECK: counts_optiml
// CHECK: unsigned int own[2][16];
// CHECK: unsigned int same[64];

// A loop that is not counted.
__global__ void steps(const float *x, float *y, int rows) {
  __shared__ float line[64];
  int row = blockIdx.x, t = threadIdx.x;
  float s = 0;
  int left = 3;
  while (left > 0) {
    line[t] = x[row * 64 + t] * left;
    __syncthreads();
    s += line[63 - t];
    __syncthreads();
    --left;
  }
  y[row * 64 + t] = s;
}

// What is called knows its thread, not its block.
__device__ __noinline__ void note(unsigned *bins, int key) {
  if (threadIdx.x % 3 != 2)
    atomicAdd(bins + (key & 15), 1u);
}
__device__ __noinline__ int place() { return blockIdx.x * 64 + threadIdx.x; }

__global__ void notes(const int *keys, unsigned *bins) {
  __shared__ int line[64];
  line[threadIdx.x] = keys[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  if (line[63 - threadIdx.x] < -1000)
    printf("small\n");
  note(bins, line[63 - threadIdx.x]);
}

__global__ void places(const int *keys, unsigned *bins) {
  __shared__ int line[64];
  line[threadIdx.x] = keys[place()];
  __syncthreads();
  note(bins, line[63 - threadIdx.x] + blockIdx.x);
}

__global__ void early(const float *x, float *y, int n) {
  __shared__ float part[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  part[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = part[0];
}

// Barriers of some blocks only: there the threads come to them one block after the other.
__global__ void ragged(const float *x, float *y, const int *lengths, int skipped) {
  __shared__ float part[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  part[t] = x[i];
  __syncthreads();
  y[i] = part[t ^ 1];
  if (blockIdx.x >= skipped) {
    __syncthreads();
    part[t] += 1;
    __syncthreads();
    y[i] = part[63 - t];
    if (lengths[blockIdx.x] % 2 == 0) {
      __syncthreads();
      part[t] = y[i] + x[i];
      __syncthreads();
      y[i] += part[63 - t];
    }
  }
}

__global__ void alone(const float *x, float *y, int blocks) {
  __shared__ float part[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (blockIdx.x >= blocks)
    return;
  part[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = part[63 - threadIdx.x];
}

__global__ void waits(unsigned *flags, float *x) {
  __shared__ float part[64];
  if (threadIdx.x == 0)
    while (atomicAdd(&flags[blockIdx.x], 0u) == 0)
      ;
  part[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 64 + threadIdx.x] = part[63 - threadIdx.x];
}

// Memory of dynamic size: the copies' elements follow one another.
__global__ void dynamic(float *x) {
  extern __shared__ float own[];
  own[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 64 + threadIdx.x] += own[63 - threadIdx.x];
}

__global__ void halves(float *x) {
  extern __shared__ float own[];
  float *second = own + 32;
  (threadIdx.x < 32 ? own : second)[threadIdx.x % 32] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 64 + threadIdx.x] = own[63 - threadIdx.x];
}

// The index is an int: 2 * j - step may be negative.
__global__ void lattice(const float *next, float *cur, int step) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, option = blockIdx.y;
  if (j > step)
    return;
  float exponent = 2 * j - step;
  cur[option * (step + 1) + j] = next[option * (step + 2) + j] + exponent;
}
// CHECK: lattice_optiml{{2?}}(
// CHECK: exponent[ix] = 2 * (int)((blockIdx.x * 2 + ix) * blockDim.x + threadIdx.x) - step;

int main() {
  const int n = 64, blocks = 8;
  float *a, *b, *c, *d, *parts, *sum, *e;
  unsigned *ticket, *bins, *sums;
  int *x, *totals;
  for (float **p : {&a, &b, &c, &d, &e})
    cudaMallocManaged(p, n * n * sizeof(float));
  cudaMallocManaged(&parts, blocks * sizeof(float));
  cudaMallocManaged(&sum, sizeof(float));
  cudaMallocManaged(&ticket, sizeof(unsigned));
  cudaMallocManaged(&bins, 16 * sizeof(unsigned));
  cudaMallocManaged(&sums, 64 * sizeof(unsigned));
  cudaMallocManaged(&x, n * blocks * sizeof(int));
  cudaMallocManaged(&totals, blocks * sizeof(int));
  cudaMemset(ticket, 0, sizeof(unsigned));
  cudaMemset(bins, 0, 16 * sizeof(unsigned));
  cudaMemset(sums, 0, 64 * sizeof(unsigned));
  for (int i = 0; i < n * n; ++i) {
    a[i] = i % 13 - 6;
    b[i] = i % 7 * 0.5f;
  }
  for (int i = 0; i < n * blocks; ++i)
    x[i] = i * 37 % 101;
  product<<<dim3(n / 8, n / 8), dim3(8, 8)>>>(a, b, c, n);
  rows<<<n, 64>>>(c, b, d, n);
  last<<<blocks, 64>>>(d, parts, sum, ticket, n * blocks - 5);
  counts<<<blocks, 64>>>(x, bins, sums, n * blocks);
  notes<<<blocks, 64>>>(x, bins);
  scan<<<blocks, 64>>>(x, totals);
  steps<<<n, 64>>>(d, e, n);
  ragged<<<blocks, 64>>>(e, b, totals, 3);
  dynamic<<<blocks, 64, 64 * sizeof(float)>>>(b);
  lattice<<<dim3(2, 20), 64>>>(a, e, 100);
  cudaDeviceSynchronize();
  printf("%g %g %g %g %u %u %d %d %g\n", b[300], c[77], d[99], *sum, bins[3], sums[5], x[130], totals[3], e[70]);
}
