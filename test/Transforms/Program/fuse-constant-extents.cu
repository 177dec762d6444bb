// Rows of a constant length, and several numbers a cell: one element is of one thread.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s | %check=SAME
// SAME: the same results
// RUN: optiml-opt --fuse-launches --emit %s -- -DWIDER 2>&1 | %check=NONE
// NONE: one thread may need what another did to 'parts'
// REQUIRES: optiml-run
#include <cstdio>
#include <cuda_runtime.h>

const int W = 40, H = 24, Q = 3;
#ifdef WIDER
const int ROW = W - 1; // the last of a row is the first of the next
#else
const int ROW = W;
#endif

// CHECK: __global__ void {{.*}}spread_sums_fused{{[0-9]*}}(const float *in
__global__ void spread(const float *in, float *parts) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= W || y >= H)
    return;
  for (int q = 0; q < Q; ++q)
    parts[(y * ROW + x) * Q + q] = in[y * W + x] * (q + 1);
}

__global__ void sums(const float *parts, float *out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= W || y >= H)
    return;
  float sum = 0;
  for (int q = 0; q < Q; ++q)
    sum += parts[(y * ROW + x) * Q + q];
  out[y * W + x] = sum;
}

int main() {
  float *in, *parts, *out, host[W * H];
  for (int i = 0; i < W * H; ++i)
    host[i] = i % 13 * 0.5f;
  cudaMalloc(&in, sizeof(host));
  cudaMalloc(&parts, Q * sizeof(host));
  cudaMalloc(&out, sizeof(host));
  cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice);
  dim3 block(16, 8), grid((W + 15) / 16, (H + 7) / 8);
  spread<<<grid, block>>>(in, parts);
  sums<<<grid, block>>>(parts, out);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : host)
    sum += v;
  printf("%.4e\n", sum);
  return cudaGetLastError() != cudaSuccess;
}
