// Parameters that a kernel moves on, once for all that follows, are variables from there on.
// RUN: %opt --passes='distribute-loop[rows]{threads=32}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='distribute-loop[rows]{threads=32};block-shape[tail]{x=64,y=1};distribute-loop[within]{threads=32}' %s > %t.cu
// RUN: %opt --passes='distribute-loop[within]{threads=32}' %s | %check=WITHIN
// RUN: %refused --passes='grid-stride[afterwards]' %s 2>&1 | %check=AFTERWARDS
// RUN: %verify=%t.cu %s -- 100 37 | %check=SAME
// RUN: %opt --passes='grid-stride[tail]' %s | %check=TAIL
// RUN: %refused --passes='grid-stride[walks]' %s 2>&1 | %check=WALKS
// SAME: the same results
#include <cstdio>
#include <cstdlib>

__global__ void rows(const float *in, float *out, int n, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n)
    return;
  in += (size_t)row * columns;
  out = out + row;
  float s = 0;
  for (int c = 0; c < columns; ++c)
    s += in[c];
  *out = s;
}
// CHECK: const float *in1 = in + (size_t)row * columns;
// CHECK: float *out1 = out + row;
// CHECK: s += in1[c];
// CHECK: out1[0] = s;

__global__ void tail(const float *in, float *out, int n, int skip) {
  n -= skip;
  ++in;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * 2;
}
// TAIL: int n1 = n - skip;
// TAIL: const float *in1 = in + 1;
// TAIL: i < n1

// Under a condition, where nothing follows.
__global__ void within(const float *in, float *out, int n, int columns, int mode) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    if (mode == 1) {
      in += row * columns;
      float s = 0;
      for (int c = 0; c < columns; ++c)
        s += in[c];
      out[row] = s;
    } else {
      out[row] = 0;
    }
  }
}
// WITHIN: const float *in1 = in + row * columns;
// WITHIN: s += in1[c];

__global__ void afterwards(const float *in, float *out, int n, int skip) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (skip > 3)
    in += skip;
  if (i < n)
    out[i] = in[i];
}
// AFTERWARDS: the kernel changes its parameter 'in'

// What a loop changes, or a condition, is no value of all that follows.
__global__ void walks(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int k = 0; k < 3; ++k) {
    s += *in;
    in += 1;
  }
  out[i] = s;
}
// WALKS: the kernel changes its parameter 'in'

int main(int argc, char **argv) {
  int n = atoi(argv[1]), columns = atoi(argv[2]);
  float *a = nullptr, *out = nullptr; // where n is 0, CUDA sets neither
  cudaMallocManaged(&a, n * columns * sizeof(float));
  cudaMallocManaged(&out, 4 * n * sizeof(float));
  for (int i = 0; i < n * columns; ++i)
    a[i] = i * 37 % 101;
  rows<<<(n + 63) / 64, 64>>>(a, out, n, columns);
  tail<<<(n + 63) / 64, 64>>>(a, out + n, n, 5);
  within<<<(n + 63) / 64, 64>>>(a, out + 2 * n, n, columns, 1);
  within<<<(n + 63) / 64, 64>>>(a, out + 3 * n, n, columns, 0);
  cudaDeviceSynchronize();
  printf("%g %g\n", out[3], out[n + 5]);
}
