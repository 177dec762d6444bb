// Reads beside a lane's own element, and vectors of what ends in atomics: the blocks then take turns.
// RUN: %opt --passes='block-shape[smooth]{x=256,y=1};vectorize-access[smooth]{width=4}' %s | %check=SMOOTH
// RUN: %opt --passes='block-shape[shifted]{x=256,y=1};vectorize-access[shifted]{width=4}' %s | %check=SHIFTED
// RUN: %plan --passes='block-shape[words]{x=256,y=1};vectorize-access[words]{width=16};grid-stride[words]{x=256,blocks=8};privatize-atomic[words:count]' %s | %check=WORDS
// RUN: %opt --passes='block-shape[tally]{x=128,y=1};vectorize-access[tally]{width=8};grid-stride[tally]{x=128,blocks=4};privatize-atomic[tally:bins]{bins=64}' %s | %check=TALLY
// RUN: %refused --passes='block-shape[smooth]{x=256,y=1};vectorize-access[smooth]{width=4};grid-stride[smooth]{x=128,blocks=4}' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[inplace]{x=128,y=1};vectorize-access[inplace]{width=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[lock]{x=128,y=1}' %s 2>&1 | %check=WAITS
// RUN: optiml-opt --reread --emit --passes='block-shape[smooth]{x=256,y=1};vectorize-access[smooth]{width=4};block-shape[shifted]{x=256,y=1};vectorize-access[shifted]{width=4};block-shape[words]{x=256,y=1};vectorize-access[words]{width=16};grid-stride[words]{x=256,blocks=8};privatize-atomic[words:count];block-shape[tally]{x=128,y=1};vectorize-access[tally]{width=8};grid-stride[tally]{x=128,blocks=4};privatize-atomic[tally:bins]{bins=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 4096 | %check=SAME
// RUN: %verify=%t.cu %s -- 9001 | %check=SAME
// SAME: the same results
// SHAPE: the block shape is fixed already, and it is not 128 threads along x
// NONE: no array is accessed at neighbouring elements by neighbouring threads
// WAITS: the kernel's threads work together, or wait for each other
#include <cstdio>
#include <cstdlib>
#include <vector>

// SMOOTH: if (i >= 1 && i + 3 < n - 1) {
// SMOOTH-NEXT: const float4 x_vector = *(const float4 *)&x[i];
// SMOOTH: y_lanes[lane] = 0.25f * (lane >= 1 ? x_lanes[lane - 1] : x[i + lane - 1]) + 0.5f * x_lanes[lane] + 0.25f * (lane < 3 ? x_lanes[lane + 1] : x[i + lane + 1]);
__global__ void smooth(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1 && i < n - 1)
    y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

// How far is not known: only a lane's own element comes with the vector.
// SHIFTED: y_lanes[lane] = x_lanes[lane] - x[i + lane + by];
__global__ void shifted(const float *x, float *y, int by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] - x[i + by];
}

// WORDS: plan words: words_optiml{{.*}}<<<(min(8, ceildiv(grid.x * block.x, 256)), 1, 1), (256, 1, 1), shared>>>
// WORDS: when ceildiv(n, 16) <= grid.x * block.x
// WORDS: for (unsigned int index = blockIdx.x * 256 + threadIdx.x; index < (n + 15) / 16; index += 2048) {
// WORDS-NEXT: const int i = index * 16;
// WORDS-NEXT: if (i + 15 < n) {
// WORDS: bool letter = text_lanes[lane] != 32;
// WORDS-NEXT: if (letter && (i + lane == 0 || (lane >= 1 ? text_lanes[lane - 1] : text[i + lane - 1]) == 32)) {
// WORDS-NEXT: count_of_thread += 1;
__global__ void words(const char *text, int n, int *count) {
  const int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i >= n)
    return;
  bool letter = text[i] != ' ';
  if (letter && (i == 0 || text[i - 1] == ' '))
    atomicAdd(count, 1);
}

// TALLY: __shared__ unsigned int bins_of_block[
// TALLY: index < (n + 7) / 8; index += 512) {
// TALLY: data_lanes[8]
// TALLY: atomicAdd(&bins_of_block[
__global__ void tally(const unsigned char *data, unsigned *bins, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[data[i] >> 2], 1u);
}

__global__ void inplace(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 2)
    x[i] = x[i] + x[i + n / 2];
}

__global__ void lock(const float *x, int *mutex, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    while (atomicCAS(mutex, 0, 1) != 0)
      ;
    *sum += x[i];
    atomicExch(mutex, 0);
  }
}

int main(int, char **argv) {
  const int n = atoi(argv[1]), by = 3;
  float *x, *y, *z;
  char *text;
  int *count;
  unsigned *bins;
  std::vector<float> f(n + by);
  std::vector<char> t(n);
  for (int i = 0; i < n + by; ++i)
    f[i] = float(i * 37 % 101);
  for (int i = 0; i < n; ++i)
    t[i] = (i * 7919 >> 3) % 5 ? char('a' + i % 26) : ' ';
  cudaMalloc(&x, (n + by) * 4);
  cudaMalloc(&y, n * 4);
  cudaMalloc(&z, n * 4);
  cudaMalloc(&text, n);
  cudaMalloc(&count, 4);
  cudaMalloc(&bins, 64 * 4);
  cudaMemcpy(x, f.data(), (n + by) * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(text, t.data(), n, cudaMemcpyHostToDevice);
  cudaMemset(y, 0, n * 4);
  cudaMemset(count, 0, 4);
  cudaMemset(bins, 0, 64 * 4);
  const int blocks = (n + 255) / 256;
  smooth<<<blocks, 256>>>(x, y, n);
  shifted<<<blocks, 256>>>(x, z, by, n);
  words<<<blocks, 256>>>(text, n, count);
  tally<<<blocks, 256>>>((unsigned char *)text, bins, n);
  std::vector<float> u(n), v(n);
  std::vector<unsigned> b(64);
  int c;
  cudaMemcpy(u.data(), y, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(v.data(), z, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(&c, count, 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(b.data(), bins, 64 * 4, cudaMemcpyDeviceToHost);
  double total = c;
  for (int i = 0; i < n; ++i)
    total += u[i] * (1 + i % 7) + v[i] * (1 + i % 3);
  for (int i = 0; i < 64; ++i)
    total += b[i] * double(i);
  printf("%.3f\n", total);
}
