// A class with arrays that is copied as a whole stays one: no array is a value.
// RUN: %opt --passes='unroll[rows/r]{factor=2}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='unroll[rows/r]{factor=2}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
// CHECK: Row below{{[_a-z0-9]*}};
// CHECK: above = below{{[_a-z0-9]*}};
// REQUIRES: optiml-run
#include <cstdio>
#include <vector>

struct Row {
  float best[2], sum[2];
  __device__ void load(const float *p) {
    for (int i = 0; i < 2; ++i) {
      best[i] = fmaxf(p[i], p[i + 1]);
      sum[i] = p[i] + p[i + 1];
    }
  }
};

__global__ void rows(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Row above;
  above.load(in + i);
  for (int r = 0; r < 4; ++r) {
    Row below;
    below.load(in + i + r + 1);
    out[4 * i + r] = above.best[r % 2] + below.sum[(r + 1) % 2];
    above = below;
  }
}

int main() {
  const int n = 500;
  std::vector<float> in(n + 8), out(4 * n);
  for (int i = 0; i < n + 8; ++i)
    in[i] = float(i * 37 % 101) / 16;
  float *a, *b;
  cudaMalloc(&a, in.size() * sizeof(float));
  cudaMalloc(&b, out.size() * sizeof(float));
  cudaMemcpy(a, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  rows<<<(n + 127) / 128, 128>>>(a, b, n);
  cudaMemcpy(out.data(), b, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g %g\n", out[0], out[4 * n - 1]);
}
