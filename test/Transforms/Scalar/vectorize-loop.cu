// Several iterations of a loop read their elements together, in their order.
// RUN: %plan --passes='vectorize-loop[dots/k]{width=4}' %s | %check=DOTS
// RUN: %opt --passes='vectorize-loop[means/k]{width=8};distribute-loop[means]{threads=64}' %s | %check=MEANS
// RUN: %opt --passes='vectorize-loop[bytes<unsigned char>/k]{width=16}' %s | %check=BYTES
// RUN: %refused --passes='vectorize-loop[dots/k]{width=8}' %s 2>&1 | %check=ENOUGH
// RUN: %refused --passes='vectorize-loop[shifted/k]{width=4}' %s 2>&1 | %check=SHIFTED
// RUN: %refused --passes='vectorize-loop[inplace/k]{width=4}' %s 2>&1 | %check=INPLACE
// RUN: %refused --passes='vectorize-loop[until/k]{width=4}' %s 2>&1 | %check=UNTIL
// RUN: %refused --passes='vectorize-loop[perhaps/k]{width=4}' %s 2>&1 | %check=PERHAPS
// RUN: %refused --passes='vectorize-loop[lists/k]{width=4}' %s 2>&1 | %check=LISTS
// RUN: %refused --passes='vectorize-loop[between/k]{width=4}' %s 2>&1 | %check=BETWEEN
// RUN: optiml-opt --reread --emit --passes='vectorize-loop[dots/k]{width=4};vectorize-loop[means/k]{width=8};distribute-loop[means]{threads=64};vectorize-loop[bytes<unsigned char>/k]{width=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 96 | %check=SAME
// RUN: %verify=%t.cu %s -- 98 | %check=SAME
// SAME: the same results
// ENOUGH: half as many elements are read by vectors of the same size
// SHIFTED: vectors of x do not begin at multiples of their size
// INPLACE: the loop writes x as well
// UNTIL: the loop may be left early
// PERHAPS: not every iteration reads x
// LISTS: it is not known before the launch whether the loop runs a multiple of 4 times
// BETWEEN: the loop does not begin at 0
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <vector>

// DOTS: when m % 4 == 0 (the loop takes whole vectors)
// DOTS: when aligned(a, 16)
// DOTS: when aligned(x, 16)
// DOTS: for (int piece = 0; piece < m / 4; ++piece) {
// DOTS-NEXT: const int first = piece * 4;
// DOTS-NEXT: const float4 a_vector = *(const float4 *)&a[r * m + first];
// DOTS: const float4 x_vector = *(const float4 *)&x[first];
// DOTS: for (int lane = 0; lane < 4; ++lane) {
// DOTS-NEXT: s += a_lanes[lane] * x_lanes[lane];
__global__ void dots(const float *a, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += a[r * m + k] * x[k];
  y[r] = s;
}

// MEANS: for (int piece = threadIdx.x; piece < 40; piece += 64) {
// MEANS: const uint4 p_vector = *(const uint4 *)&p[
// MEANS: __ushort_as_half((unsigned short)(p_vector.x >> 16))
// MEANS: const int k = first + lane;
// MEANS-NEXT: s += __half2float(p_lanes[lane]) * k;
// MEANS: __shfl_xor_sync
__global__ void means(const __half *p, float *y, int n) {
  const unsigned row = threadIdx.x + blockIdx.x * blockDim.x;
  if (row < n) {
    float s = 0;
    for (int k = 0; k != 320; k++)
      s += __half2float(p[row * 320u + k]) * k;
    y[row] = s / 320;
  }
}

// BYTES: const uint4 b_vector = *(const uint4 *)&b[
// BYTES: hits += (b_lanes[lane] & 3) == 1;
template <class T> __global__ void bytes(const T *b, int *y, size_t n, size_t m) {
  size_t r = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  int hits = 0;
  for (size_t k = 0; k < m; ++k)
    hits += (b[r * m + k] & 3) == 1;
  y[r] = hits;
}

__global__ void shifted(const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n) {
    float s = 0;
    for (int k = 0; k < m; ++k)
      s += x[k + 1];
    y[r] = s;
  }
}
__global__ void inplace(float *x, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n)
    for (int k = 0; k < m; ++k)
      x[r * m + k] = 0.5f * x[r * m + k];
}
__global__ void until(const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n)
    for (int k = 0; k < m; ++k) {
      if (x[r * m + k] < 0)
        break;
      y[r] = k;
    }
}
__global__ void perhaps(const float *x, const int *use, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n)
    for (int k = 0; k < m; ++k)
      if (use[0])
        y[r] += x[r * m + k];
}
__global__ void lists(const float *x, const int *begin, float *y, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n)
    for (int k = 0; k < begin[r]; ++k)
      y[r] += x[k];
}
// With 8 and 4 there is no iteration.
__global__ void between(const float *x, float *y, int n, unsigned first, unsigned end) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n)
    for (unsigned k = first; k < end; ++k)
      y[r] += x[k];
}

int main(int, char **argv) {
  const int n = 70, m = atoi(argv[1]);
  float *a, *x, *y, *z;
  __half *p;
  int *h;
  std::vector<float> f(n * m);
  std::vector<__half> q(n * 320);
  for (int i = 0; i < n * m; ++i)
    f[i] = float(i * 37 % 101) / 64;
  for (int i = 0; i < n * 320; ++i)
    q[i] = __float2half(float(i * 53 % 113) / 32);
  cudaMalloc(&a, n * m * 4);
  cudaMalloc(&x, m * 4);
  cudaMalloc(&y, n * 4);
  cudaMalloc(&z, n * 4);
  cudaMalloc(&h, n * 4);
  cudaMalloc(&p, n * 320 * 2);
  cudaMemcpy(a, f.data(), n * m * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(x, f.data(), m * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(p, q.data(), n * 320 * 2, cudaMemcpyHostToDevice);
  dots<<<(n + 31) / 32, 32>>>(a, x, y, n, m);
  means<<<(n + 31) / 32, 32>>>(p, z, n);
  bytes<<<(n + 31) / 32, 32>>>((const unsigned char *)a, h, size_t(n), size_t(4 * m));
  std::vector<float> u(n), v(n);
  std::vector<int> w(n);
  cudaMemcpy(u.data(), y, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(v.data(), z, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(w.data(), h, n * 4, cudaMemcpyDeviceToHost);
  double total = 0;
  for (int i = 0; i < n; ++i)
    total += u[i] * (1 + i % 7) + v[i] * (1 + i % 3) + w[i] * (1 + i % 5);
  printf("%.3f\n", total);
}
