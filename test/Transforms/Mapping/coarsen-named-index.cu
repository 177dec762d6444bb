// A name for an index that is made of another value of the copy has the copy's offset once: here the row's start is
// computed anew in every round, because unrolling has given the loops a counter from outside.
// RUN: %opt --passes='unroll[rows/r]{factor=2};block-shape[rows]{x=128};coarsen[rows]{x=2}' %s | FileCheck %s
// RUN: optiml-opt --reread --emit --passes='unroll[rows/r]{factor=2};block-shape[rows]{x=128};coarsen[rows]{x=2}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 1000 5 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <vector>

// CHECK: at1[ix] = (r + u) * n + (x + ix);
// CHECK: next1[ix] = at1[ix] + d;
// CHECK: out[at1[ix]] += in[next1[ix]];
__global__ void rows(const float *in, float *out, int n, int m) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < m; ++r) {
    int at = r * n + x;
    for (int d = 0; d < 3; ++d) {
      int next = at + d;
      if (x + d < n && x < n)
        out[at] += in[next];
    }
  }
}

int main(int, char **argv) {
  int n = atoi(argv[1]), m = atoi(argv[2]);
  std::vector<float> h(n * m);
  for (int i = 0; i < n * m; ++i)
    h[i] = float(i % 17);
  float *in, *out;
  cudaMalloc(&in, n * m * sizeof(float));
  cudaMalloc(&out, n * m * sizeof(float));
  cudaMemcpy(in, h.data(), n * m * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(out, 0, n * m * sizeof(float));
  rows<<<(n + 255) / 256, 256>>>(in, out, n, m);
  cudaMemcpy(h.data(), out, n * m * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : h)
    sum += v;
  printf("%.3f\n", sum);
}
