// Loads and stores that say how caches are to be used are loads and stores.
// RUN: %opt --passes='block-shape[scale]{x=256,y=1};vectorize-access[scale]{width=4}' %s | %check=SCALE
// RUN: %opt --passes='thread-per-iteration[stream];block-shape[stream]{x=128,y=1};vectorize-access[stream]{width=2}' %s | %check=STREAM
// RUN: %opt --passes='distribute-loop[rowSums<int>/k]{threads=32,rows=4}' %s | %check=SUMS
// RUN: %opt --passes='block-shape[gather]{x=256,y=1};coarsen[gather]{x=2,y=1}' %s | %check=GATHER
// RUN: %refused --passes='grid-stride[fresh]{x=256,blocks=8}' %s 2>&1 | %check=FRESH
// RUN: optiml-opt --reread --emit --passes='block-shape[scale]{x=256,y=1};vectorize-access[scale]{width=4};thread-per-iteration[stream];block-shape[stream]{x=128,y=1};vectorize-access[stream]{width=2};distribute-loop[rowSums<int>/k]{threads=32,rows=4};block-shape[gather]{x=256,y=1};coarsen[gather]{x=2,y=1}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 96 40 | %check=SAME
// RUN: %verify=%t.cu %s -- 5 77 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

// SCALE: const float4 x_vector = *(const float4 *)&x[i];
// SCALE: y_lanes[lane] = a * x_lanes[lane];
__global__ void scale(const float *__restrict__ x, float *__restrict__ y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * __ldg(&x[i]);
}

// A vector at a time, around the caches.
// STREAM: from_lanes
__global__ void stream(const float2 *from, float2 *to, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    float2 v = __ldcs(from + i);
    v.x += 1.0f;
    __stcs(to + i, v);
  }
}

// SUMS: s += mine[k] * x[k];
// SUMS: __shfl_
template <typename I> __global__ void rowSums(const float *a, const float *x, float *sum, I rows, I columns) {
  I row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  const float *mine = a + row * columns;
  float s = 0;
  for (I k = 0; k < columns; k++)
    s += __ldcg(mine + k) * __ldg(x + k);
  __stcg(&sum[row], s);
}

// An index that is loaded so, too.
// GATHER: out[{{.*}}] = x[index[{{.*}}]]
__global__ void gather(const float *x, const int *index, float *out, int n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n)
    __stwt(out + i, __ldg(x + __ldg(index + i)));
}

// This one looks at memory anew each time, as threads do that wait for others.
// FRESH: a call of '__ldcv'
__global__ void fresh(const int *flag, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = __ldcv(flag + i);
}

int main(int argc, char **argv) {
  const int rows = atoi(argv[1]), columns = atoi(argv[2]), n = rows * columns;
  std::vector<float> h(2 * n);
  std::vector<int> p(n);
  for (int i = 0; i < 2 * n; ++i)
    h[i] = float(i * 7 % 31) / 4;
  for (int i = 0; i < n; ++i)
    p[i] = (i * 5 + 3) % n;
  float *a, *b, *c, *sums;
  int *index, *copy;
  cudaMalloc(&a, 2 * n * sizeof(float));
  cudaMalloc(&b, 2 * n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  cudaMalloc(&sums, rows * sizeof(float));
  cudaMalloc(&index, n * sizeof(int));
  cudaMalloc(&copy, n * sizeof(int));
  cudaMemcpy(a, h.data(), 2 * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(b, 0, 2 * n * sizeof(float));
  cudaMemcpy(index, p.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  scale<<<(2 * n + 255) / 256, 256>>>(a, b, 1.5f, 2 * n);
  stream<<<4, 64>>>((const float2 *)b, (float2 *)a, n);
  rowSums<int><<<(rows + 63) / 64, 64>>>(a, b, sums, rows, columns);
  gather<<<(n + 255) / 256, 256>>>(a, index, c, n);
  fresh<<<(n + 255) / 256, 256>>>(index, copy, n);
  cudaMemcpy(h.data(), a, 2 * n * sizeof(float), cudaMemcpyDeviceToHost);
  std::vector<float> g(n), s(rows);
  cudaMemcpy(g.data(), c, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(s.data(), sums, rows * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(p.data(), copy, n * sizeof(int), cudaMemcpyDeviceToHost);
  double total = 0;
  for (int i = 0; i < n; ++i)
    total += h[2 * i] * (1 + i % 3) + h[2 * i + 1] + g[i] * (1 + i % 5) + p[i] % 7;
  for (int r = 0; r < rows; ++r)
    total += s[r] * (1 + r % 4);
  printf("%.4f\n", total);
  return 0;
}
