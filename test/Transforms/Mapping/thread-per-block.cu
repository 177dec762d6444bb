// thread-per-block: what a block's threads do together becomes the work of one thread, which others share out anew.
// RUN: optiml-opt --kernels-only --print-plan --block=64x1x1 --passes='thread-per-block[rows]' %s | %check=ROWS
// RUN: optiml-opt --kernels-only --print-plan --block=64x1x1 --passes='thread-per-block[sums<float>]' %s | %check=SUMS
// RUN: optiml-opt --kernels-only --print-plan --block=64x1x1 --passes='thread-per-block[scale]' %s | %check=SCALE
// RUN: optiml-opt --emit --block=64x1x1 --passes='thread-per-block[rows];distribute-loop[rows]{threads=32,rows=4};unroll[rows/j]{factor=4};thread-per-block[sums<float>];distribute-loop[sums<float>]{threads=32,rows=2};unroll[sums<float>/thread]{factor=2};thread-per-block[scale];loop-to-grid[scale/k];block-shape[scale]{x=128};vectorize-access[scale]{width=4};thread-per-block[norm];split-reduction[norm]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RAN-COUNT-4: 1 optimized, 0 original launches
// RUN: optiml-run %t.cu > %t.out && optiml-run %s | diff - %t.out
// REQUIRES: optiml-run
// RUN: optiml-opt --kernels-only --block=64x1x1 --passes='thread-per-block[updates]' %s | %check=UPDATES
// RUN: optiml-opt --kernels-only --print-plan --block=64x1x1 --passes='thread-per-block[shiftedTo]' %s | %check=SHIFTED_TO
#include <cstdio>
#include <vector>

// A row a block, as often written.
__global__ void rows(const float *a, float *out, int n) {
  __shared__ float part[64], mean;
  const float *row = a + (size_t)blockIdx.x * n;
  float s = 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x)
    s += row[j];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int h = blockDim.x / 2; h > 0; h >>= 1) {
    if (threadIdx.x < h)
      part[threadIdx.x] += part[threadIdx.x + h];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    mean = part[0] / n;
  __syncthreads();
  for (int j = threadIdx.x; j < n; j += blockDim.x)
    out[(size_t)blockIdx.x * n + j] = row[j] - mean;
}
// ROWS: plan rows: {{.*}}<<<(grid.x, grid.y, grid.z), (min(1, block.x), min(1, block.y), min(1, block.z)), shared>>>
// ROWS-NEXT: when block.x == 64
// ROWS-NOT: grid
// ROWS: float s = 0;
// ROWS-NEXT: for (int j = 0; j < n; ++j) {
// ROWS-NEXT: s += a[(size_t)(blockIdx.x * blockDim.x + threadIdx.x) * n + j];
// ROWS-NEXT: }
// ROWS-NEXT: {{.*}}part_of_block = s;
// ROWS-NEXT: {{.*}}mean = part_of_block / n;
// ROWS-NEXT: for (int j = 0; j < n; ++j) {
// ROWS-NEXT: out[(size_t)(blockIdx.x * blockDim.x + threadIdx.x) * n + j] = {{.*}} - mean;

// An element a thread, of a type that is a parameter.
template <typename T> __global__ void sums(const T *in, T *out, unsigned n) {
  extern __shared__ T data[];
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  data[tid] = 0;
  if (i < n)
    data[tid] = in[i];
  __syncthreads();
  for (unsigned s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0)
      data[tid] += data[tid + s];
    __syncthreads();
  }
  if (!tid)
    out[blockIdx.x] = data[0];
}
// SUMS: float data_of_block = 0.0f;
// SUMS-NEXT: for (int thread = 0; thread < 64; ++thread) {
// SUMS: if ({{.*}} < n) {
// SUMS: data_of_block += data_of_thread;
// SUMS: out[blockIdx.x * blockDim.x + threadIdx.x] = data_of_block;

// One block for everything.
__global__ void scale(float *x, float f, int n) {
  int k = threadIdx.x;
  while (k < n) {
    x[k] *= f;
    k += blockDim.x;
  }
}
// SCALE: when grid.x * grid.y * grid.z == 1  (the kernel is written for one block)
// SCALE: for (int k = 0; k < n; ++k) {
// SCALE-NEXT: x[k] *= f;

__global__ void norm(const float *x, float *out, int n) {
  __shared__ float a[64];
  float most = x[0];
  for (int i = threadIdx.x; i < n; i += 64)
    most = fmaxf(most, x[i]);
  a[threadIdx.x] = most;
  __syncthreads();
  for (int h = 32; h; h /= 2) {
    if (threadIdx.x < h)
      a[threadIdx.x] = fmaxf(a[threadIdx.x], a[threadIdx.x + h]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    *out = a[0];
}

int main() {
  const int rowCount = 12, n = 192, all = rowCount * n;
  std::vector<float> h(all);
  for (int i = 0; i < all; ++i)
    h[i] = (i * 7 % 64) * 0.25f;
  float *x, *y, *s, *t;
  cudaMalloc(&x, all * 4);
  cudaMalloc(&y, all * 4);
  cudaMalloc(&s, 40 * 4);
  cudaMalloc(&t, 4);
  cudaMemcpy(x, h.data(), all * 4, cudaMemcpyHostToDevice);
  rows<<<rowCount, 64>>>(x, y, n);
  sums<float><<<all / 64, 64, 64 * 4>>>(x, s, all - 5);
  scale<<<1, 64>>>(y, 2, all);
  norm<<<1, 64>>>(y, t, all);
  float most, sum[36];
  cudaMemcpy(h.data(), y, all * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(sum, s, sizeof(sum), cudaMemcpyDeviceToHost);
  cudaMemcpy(&most, t, 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < all; i += 97)
    printf("%g ", h[i]);
  for (float v : sum)
    printf("%g ", v);
  printf("%g\n", most);
}

// An update that does not look at the thread is made by every thread.
__global__ void updates(int *count, float *x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    x[i] = 0;
  atomicAdd(&count[blockIdx.x], 2);
}
// UPDATES: for (int i = 0; i < n; ++i) {
// UPDATES: for (int thread = 0; thread < 64; ++thread) {
// UPDATES-NEXT: atomicAdd(

// What a thread loads before others store it loads from memory that they do not store to.
__global__ void shiftedTo(const float *x, float *y, int n) {
  float v = x[(threadIdx.x + 63) % 64];
  __syncthreads();
  y[threadIdx.x] = v;
}
// SHIFTED_TO: when disjoint(x, 4 * 64, y, 4 * 64)
