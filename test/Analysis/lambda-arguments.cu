// Lambdas that are written in the call of a helper.
// RUN: %opt --passes='distribute-loop[deviations]{threads=32,rows=8}' %s | FileCheck %s
// RUN: %opt --passes='distribute-loop[nested]{threads=32,rows=8}' %s | %check=NESTED
// RUN: %refused --passes='distribute-loop[later]{threads=32,rows=8}' %s 2>&1 | %check=LATER
// RUN: optiml-opt --emit --passes='distribute-loop[deviations]{threads=32,rows=8};distribute-loop[nested]{threads=32,rows=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 45 67 | %check=SAME
// SAME: the same results
// LATER: error: distribute-loop[later]
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

template <class F> __device__ float over(const float *values, int n, F f) {
  float total = 0;
  for (int i = 0; i < n; ++i)
    total += f(values[i]);
  return total;
}
template <class F> __device__ float twice(const float *values, int n, F f) { return 2 * over(values, n, f); }

/// Both lambdas call their argument v.
__global__ void deviations(const float *in, float *out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    const float *values = in + row * columns;
    const float mean = over(values, columns, [](float v) { return v; }) / columns;
    out[row] = over(values, columns, [mean](float v) { return (v - mean) * (v - mean); });
  }
}
// CHECK: for (int i = threadIdx.x; i < columns; i += 32) {
// CHECK-NEXT: total += values[i];
// CHECK: for (int i = threadIdx.x; i < columns; i += 32) {
// CHECK: (v - mean) * (v - mean);

__global__ void nested(const float *in, float *out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows)
    out[row] = twice(in + row * columns, columns, [&](float v) { return v * rows; });
}
// NESTED: for (int i = threadIdx.x; i < columns; i += 32) {
// NESTED-NEXT: total += in[{{.*}}row * columns{{.*}} + i] * rows;

/// The lambda's copy is not what the variable is when it is called.
__global__ void later(const float *in, float *out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float scale = 2;
    auto scaled = [scale](float v) { return v * scale; };
    scale = 3;
    out[row] = over(in + row * columns, columns, scaled) * scale;
  }
}

int main(int, char **argv) {
  int rows = atoi(argv[1]), columns = atoi(argv[2]);
  float *in, *out;
  cudaMallocManaged(&in, rows * columns * sizeof(float));
  cudaMallocManaged(&out, 3 * rows * sizeof(float));
  for (int i = 0; i < rows * columns; ++i)
    in[i] = float(i * 7 % 31) - 11;
  deviations<<<(rows + 63) / 64, 64>>>(in, out, rows, columns);
  nested<<<(rows + 63) / 64, 64>>>(in, out + rows, rows, columns);
  later<<<(rows + 63) / 64, 64>>>(in, out + 2 * rows, rows, columns);
  cudaDeviceSynchronize();
  double total = 0;
  for (int i = 0; i < 3 * rows; ++i)
    total += out[i];
  printf("%g\n", total);
}
