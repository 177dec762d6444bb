// Variables of namespaces: what stands for one in the new kernel has a plain name.
// RUN: optiml-opt --emit --reread --passes='block-shape[lattice::flip]{x=64,y=1};stage-constants[lattice::flip]' %s > %t.cu
// RUN: %check=TEXT --input-file=%t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RUN: %if verify %{ %verify=%t.cu %s | %check=SAME %}
// TEXT: __shared__ float threshold_of_block[2][5];
// TEXT: threshold_of_block[{{.*}}][{{.*}}]
// RAN: lattice::flip: 1 optimized
// SAME: the same results
#include <cstdio>
#include <cuda_runtime.h>

namespace lattice {
__constant__ float threshold[2][5];

__global__ void flip(signed char *spin, const unsigned char *neighbours, const float *draw, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int up = spin[i] > 0;
  if (draw[i] < threshold[up][neighbours[i] % 5])
    spin[i] = -spin[i];
}
} // namespace lattice

int main() {
  const int n = 1000;
  static signed char spin[n];
  static unsigned char neighbours[n];
  static float draw[n];
  unsigned state = 7;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    spin[i] = state >> 31 ? 1 : -1;
    neighbours[i] = (state >> 20) % 5;
    draw[i] = float(state >> 8) / 16777216.0f;
  }
  const float table[2][5] = {{1, 1, 0.9f, 0.5f, 0.2f}, {0.1f, 0.3f, 0.6f, 1, 1}};
  cudaMemcpyToSymbol(lattice::threshold, table, sizeof table);
  signed char *s;
  unsigned char *b;
  float *d;
  cudaMalloc(&s, n);
  cudaMalloc(&b, n);
  cudaMalloc(&d, n * sizeof(float));
  cudaMemcpy(s, spin, n, cudaMemcpyHostToDevice);
  cudaMemcpy(b, neighbours, n, cudaMemcpyHostToDevice);
  cudaMemcpy(d, draw, n * sizeof(float), cudaMemcpyHostToDevice);
  lattice::flip<<<(n + 63) / 64, 64>>>(s, b, d, n);
  cudaMemcpy(spin, s, n, cudaMemcpyDeviceToHost);
  long sum = 0;
  for (int i = 0; i < n; ++i)
    sum += spin[i] * (1 + i % 7);
  printf("%ld\n", sum);
}
