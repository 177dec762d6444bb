// How many iterations are left is computed without overflow, also where the bound is the least number.
// RUN: %opt --passes='unroll[sums/k]{factor=4}' %s | FileCheck %s
// RUN: optiml-opt --reread --emit --passes='unroll[sums/k]{factor=4}' %s > %t.cu
// RUN: optiml-run --coverage=off --time=20 --verify=%t.cu %s -- 3 40 | %check=SAME
// RUN: optiml-run --coverage=off --time=20 --verify=%t.cu %s -- 3 -2147483648 | %check=SAME
// RUN: optiml-run --coverage=off --time=20 --verify=%t.cu %s -- -5 -2147483647 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <vector>

// CHECK: for (; k < hi && (unsigned int)hi - (unsigned int)k >= 4; k += 4) {
__global__ void sums(const float *in, float *out, int n, int lo, int hi) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int k = lo; k < hi; ++k)
    s += in[k & 63];
  out[i] = s;
}

int main(int, char **argv) {
  int n = 100, lo = atol(argv[1]), hi = atol(argv[2]);
  std::vector<float> h(n, 2.0f);
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  sums<<<1, 128>>>(in, out, n, lo, hi);
  cudaMemcpy(h.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : h)
    sum += v;
  printf("%.3f\n", sum);
}
