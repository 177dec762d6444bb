// Numbers of 16 bits, four at a time.
// RUN: %opt --passes='block-shape[silu]{x=256,y=1};vectorize-access[silu]{width=4}' %s | %check=SILU
// RUN: %opt --passes='block-shape[blend<__nv_bfloat16>]{x=128,y=1};vectorize-access[blend<__nv_bfloat16>]{width=2}' %s | %check=BLEND
// RUN: optiml-opt --reread --emit --passes='block-shape[silu]{x=256,y=1};vectorize-access[silu]{width=4};block-shape[blend<__nv_bfloat16>]{x=128,y=1};vectorize-access[blend<__nv_bfloat16>]{width=2}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1024 | %check=SAME
// RUN: %verify=%t.cu %s -- 1021 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

// SILU: const ushort4 x_vector = *(const ushort4 *)&x[i];
// SILU: x_lanes[4] = {__ushort_as_half(x_vector.x), __ushort_as_half(x_vector.y),
// SILU: *(ushort4 *)&y[i] = make_ushort4(__half_as_ushort(y_lanes[0]), __half_as_ushort(y_lanes[1]),
__global__ void silu(const half *x, half *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = __half2float(x[i]);
  y[i] = __float2half(v / (1.0f + expf(-v)));
}

// BLEND: const ushort2 a_vector = *(const ushort2 *)&a[i];
// BLEND: __ushort_as_bfloat16(a_vector.y)
// BLEND: *(ushort2 *)&out[i] = make_ushort2(__bfloat16_as_ushort(out_lanes[0]), __bfloat16_as_ushort(out_lanes[1]));
template <typename T> __global__ void blend(const T *a, const T *b, T *out, float share, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = T(share * float(a[i]) + (1 - share) * float(b[i]));
}

int main(int argc, char **argv) {
  const int n = atoi(argv[1]);
  std::vector<half> h(n);
  std::vector<__nv_bfloat16> p(n), q(n);
  for (int i = 0; i < n; ++i) {
    h[i] = __float2half(float(i % 61 - 30) / 8);
    p[i] = __float2bfloat16(float(i % 29) / 4);
    q[i] = __float2bfloat16(float(i % 31) / 2);
  }
  half *x, *y;
  __nv_bfloat16 *a, *b, *out;
  cudaMalloc(&x, n * 2);
  cudaMalloc(&y, n * 2);
  cudaMalloc(&a, n * 2);
  cudaMalloc(&b, n * 2);
  cudaMalloc(&out, n * 2);
  cudaMemcpy(x, h.data(), n * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(a, p.data(), n * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(b, q.data(), n * 2, cudaMemcpyHostToDevice);
  silu<<<(n + 255) / 256, 256>>>(x, y, n);
  blend<__nv_bfloat16><<<(n + 127) / 128, 128>>>(a, b, out, 0.25f, n);
  cudaMemcpy(h.data(), y, n * 2, cudaMemcpyDeviceToHost);
  cudaMemcpy(p.data(), out, n * 2, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += __half2float(h[i]) * (1 + i % 7) + __bfloat162float(p[i]) * (1 + i % 5);
  printf("%g\n", sum);
  return 0;
}
