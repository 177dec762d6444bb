// Loops whose bounds are read from memory beside what they write: the two do not overlap where the group takes over.
// RUN: optiml-opt --emit --reread --passes='distribute-loop[spread]{rows=32,threads=8};distribute-loop[others]{rows=32,threads=8}' %s > %t.cu
// RUN: %check=TEXT --input-file=%t.cu
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RUN: %if verify %{ %verify=%t.cu %s | %check=SAME %}
// RUN: %refused --passes='distribute-loop[moving]{rows=32,threads=8}' %s 2>&1 | %check=MOVES
// TEXT: for (int e = first[r] + int(threadIdx.x); e < first[r + 1]; e += 8)
// TEXT: spread_optiml_launch
// RAN-DAG: spread: 1 optimized
// RAN-DAG: others: 1 optimized
// SAME: the same results
// MOVES: the loop's bounds may change in it
#include <cstdio>
#include <cuda_runtime.h>

__global__ void spread(int *out, const int *first, const int *weight, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  for (int e = first[r]; e < first[r + 1]; e++)
    out[e] = weight[r] * (e - first[r]);
}

// The least of all others of a row, for each: minima without an element.
__global__ void others(int *out, const int *in, const int *first, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  for (int e = first[r]; e < first[r + 1]; e++) {
    int least = 1000;
    for (int k = first[r]; k < first[r + 1]; k++)
      if (k != e) {
        int m = in[k];
        if (m < 0)
          m = -m;
        if (m < least)
          least = m;
      }
    out[e] = least;
  }
}

__global__ void moving(int *first, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  for (int e = first[r]; e < first[r + 1]; e++)
    first[e] = e + 1;
}

int main() {
  const int rows = 200;
  static int first[rows + 1], weight[rows], in[rows * 7], out[rows * 7];
  for (int r = 0; r < rows; ++r) {
    first[r + 1] = first[r] + 1 + r * 5 % 7;
    weight[r] = r % 11 - 5;
  }
  for (int k = 0; k < first[rows]; ++k)
    in[k] = k * 37 % 101 - 50;
  int *f, *w, *i, *a, *b;
  cudaMalloc(&f, sizeof first);
  cudaMalloc(&w, sizeof weight);
  cudaMalloc(&i, sizeof in);
  cudaMalloc(&a, sizeof in);
  cudaMalloc(&b, sizeof in);
  cudaMemset(a, 0, sizeof in);
  cudaMemset(b, 0, sizeof in);
  cudaMemcpy(f, first, sizeof first, cudaMemcpyHostToDevice);
  cudaMemcpy(w, weight, sizeof weight, cudaMemcpyHostToDevice);
  cudaMemcpy(i, in, sizeof in, cudaMemcpyHostToDevice);
  spread<<<(rows + 63) / 64, 64>>>(a, f, w, rows);
  others<<<(rows + 63) / 64, 64>>>(b, i, f, rows);
  long sum = 0;
  cudaMemcpy(out, a, sizeof out, cudaMemcpyDeviceToHost);
  for (int k = 0; k < first[rows]; ++k)
    sum += long(out[k]) * (1 + k % 5);
  cudaMemcpy(out, b, sizeof out, cudaMemcpyDeviceToHost);
  for (int k = 0; k < first[rows]; ++k)
    sum += long(out[k]) * (1 + k % 3) * 1000;
  printf("%ld\n", sum);
  moving<<<1, 32>>>(f, 0);
  cudaDeviceSynchronize();
}
