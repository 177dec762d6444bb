// A bound that wraps around below zero, or is compared as unsigned, is no bound: the new kernels, which have more
// threads than the launch, leave such launches to the original.
// RUN: %plan --passes='block-shape[apart]{x=512};block-shape[mixed]{x=512}' %s | FileCheck %s
// CHECK-DAG: n - off >= 0
// CHECK-DAG: count >= 0
// RUN: optiml-opt --reread --emit --passes='block-shape[apart]{x=128};coarsen[apart]{x=4};block-shape[mixed]{x=512}' %s > %t.cu
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 1000 3 5 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 1000 4294967290 5 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- -6 3 5 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 3 1000 5 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void apart(const float *in, float *out, unsigned n, unsigned off) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + off < n)
    out[i] = in[i] + 1;
}

__global__ void mixed(const float *in, float *out, int count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    out[i] += in[i] + 2;
}

int main(int argc, char **argv) {
  long n = atol(argv[1]), off = atol(argv[2]), blocks = atol(argv[3]);
  std::vector<float> h(blocks * 256);
  float *in, *out;
  cudaMalloc(&in, h.size() * sizeof(float));
  cudaMalloc(&out, h.size() * sizeof(float));
  cudaMemset(in, 0, h.size() * sizeof(float));
  cudaMemset(out, 0, h.size() * sizeof(float));
  apart<<<blocks, 256>>>(in, out, unsigned(n), unsigned(off));
  mixed<<<blocks, 256>>>(in, out, int(n));
  cudaMemcpy(h.data(), out, h.size() * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : h)
    sum += v;
  printf("%.3f\n", sum);
}
