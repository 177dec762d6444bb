// Kernels that one thread runs alone: its loops are shared out among the threads of a block, or of many.
// RUN: %plan --passes='distribute-loop[alone]{threads=128}' %s | %check=ALONE
// RUN: %opt --passes='distribute-loop[first]{threads=128}' %s | %check=FIRST
// RUN: optiml-opt --emit --passes='distribute-loop[alone]{threads=128};split-reduction[first]{x=32,parts=4};split-reduction[early]{x=32,parts=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1003 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 1003 2>&1 | %check=RAN
// RAN-DAG: alone: 1 optimized, 1 original launches
// RAN-DAG: first: 1 optimized, 0 original launches
// RAN-DAG: early: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

__global__ void alone(const float *in, float *out, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i)
    sum += in[i];
  *out += sum;
}
// ALONE: when grid.x * block.x == 1
// ALONE: for (int i = threadIdx.x; i < n; i += 128)

__global__ void first(const float *in, float *out, int n) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    float sum = 0;
    int i = 0;
    while (i < n) {
      const float &x = in[i];
      sum += x * x;
      i++;
    }
    out[0] = sum;
  }
}
// FIRST: if (blockIdx.x == 0) {
// FIRST: for (int i = threadIdx.x; i < n; i += 128) {
// FIRST: const float x = in[i];

__global__ void early(const float *in, float *out, int n) {
  if (blockIdx.x != 0 || threadIdx.x != 0)
    return;
  float most = in[0];
  for (int i = 1; i < n; ++i)
    most = fmaxf(most, in[i]);
  out[0] = most;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  if (n < 1) // there is no first element
    return 1;
  float *in, *out;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMallocManaged(&out, 4 * sizeof(float));
  for (int i = 0; i < n; ++i)
    in[i] = float(i % 16);
  for (int i = 0; i < 4; ++i)
    out[i] = 0;
  alone<<<1, 1>>>(in, out, n);
  alone<<<2, 1>>>(in, out + 3, 0);
  first<<<2, 32>>>(in, out + 1, n);
  early<<<1, 32>>>(in, out + 2, n);
  cudaDeviceSynchronize();
  printf("%g %g %g\n", out[0], out[1], out[2]);
}
