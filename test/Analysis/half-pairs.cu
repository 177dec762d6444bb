// Pairs of 16-bit numbers are copied and stored as the values that they are.
// RUN: %opt --passes='block-shape[square]{x=128,y=1};coarsen[square]{x=2,y=1}' %s | %check=SQUARE
// RUN: %opt --passes='thread-per-iteration[gate]' %s | %check=GATE
// RUN: %opt --passes='grid-stride[mix]{x=128,blocks=4}' %s | %check=MIX
// RUN: optiml-opt --reread --emit --passes='block-shape[square]{x=128,y=1};coarsen[square]{x=2,y=1};thread-per-iteration[gate];grid-stride[mix]{x=128,blocks=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// RUN: %verify=%t.cu %s -- 77 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

// SQUARE: v[ix] = ((const half2 *)x)[i + ix];
// SQUARE: ((half2 *)y)[i + ix] = w[ix];
__global__ void square(const half *x, half *y, int pairs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) {
    half2 v = reinterpret_cast<const half2 *>(x)[i];
    half2 w = __hmul2(v, v);
    reinterpret_cast<half2 *>(y)[i] = w;
  }
}

// GATE: if (i >= pairs) {
// GATE: __hgt2(f, zero)
__global__ void gate(const half *__restrict__ grad, const half *__restrict__ value, half *__restrict__ out, int pairs) {
  const int all = gridDim.x * blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  while (i < pairs) {
    half2 g = reinterpret_cast<const half2 *>(grad)[i];
    half2 f = reinterpret_cast<const half2 *>(value)[i];
    half2 *to = reinterpret_cast<half2 *>(out) + i;
    const half2 zero = __float2half2_rn(0.f);
    half2 mask = __hgt2(f, zero);
    *to = __hmul2(mask, g);
    i += all;
  }
}

// MIX: for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 512) {
__global__ void mix(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __nv_bfloat162 sum = a[i];
  for (int k = 0; k < 3; ++k)
    sum = __hfma2(b[i], __float2bfloat162_rn(0.5f), sum);
  const __nv_bfloat162 turned = __halves2bfloat162(__high2bfloat16(sum), __low2bfloat16(sum));
  c[i] = turned;
}

int main(int argc, char **argv) {
  const int n = atoi(argv[1]);
  std::vector<half> h(2 * n);
  std::vector<__nv_bfloat162> p(n);
  for (int i = 0; i < 2 * n; ++i)
    h[i] = __float2half(float(i % 23 - 11) / 4);
  for (int i = 0; i < n; ++i)
    p[i] = __floats2bfloat162_rn(float(i % 9) / 2, float(i % 5) - 2);
  half *x, *y, *z;
  __nv_bfloat162 *a, *b, *c;
  cudaMalloc(&x, 4 * n);
  cudaMalloc(&y, 4 * n);
  cudaMalloc(&z, 4 * n);
  cudaMalloc(&a, 4 * n);
  cudaMalloc(&b, 4 * n);
  cudaMalloc(&c, 4 * n);
  cudaMemcpy(x, h.data(), 4 * n, cudaMemcpyHostToDevice);
  cudaMemcpy(a, p.data(), 4 * n, cudaMemcpyHostToDevice);
  cudaMemcpy(b, p.data(), 4 * n, cudaMemcpyHostToDevice);
  square<<<(n + 127) / 128, 128>>>(x, y, n);
  gate<<<2, 64>>>(y, x, z, n);
  mix<<<(n + 127) / 128, 128>>>(a, b, c, n);
  cudaMemcpy(h.data(), z, 4 * n, cudaMemcpyDeviceToHost);
  cudaMemcpy(p.data(), c, 4 * n, cudaMemcpyDeviceToHost);
  double total = 0;
  for (int i = 0; i < 2 * n; ++i)
    total += __half2float(h[i]) * (1 + i % 7);
  for (int i = 0; i < n; ++i)
    total += __bfloat162float(p[i].x) * (1 + i % 3) + __bfloat162float(p[i].y);
  printf("%.3f\n", total);
  return 0;
}
