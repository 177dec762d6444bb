// keep-row: elements that several loops over a row share stay in registers.
// DEFINE: %{rows} = distribute-loop[softmax]{rows=8,threads=32};keep-row[softmax/c]{items=8}
// DEFINE: %{blocks} = keep-row[norm/i]{items=5};keep-row[inPlace/i]{items=3}
// RUN: %opt --passes='%{rows};%{blocks}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='%{rows};%{blocks}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 20 200 | %check=SAME
// RUN: %refused --passes='keep-row[meets/i]{items=4}' %s 2>&1 | %check=MEETS
// RUN: %refused --passes='keep-row[once/i]{items=4}' %s 2>&1 | %check=ONCE
// RUN: %refused --passes='keep-row[norm/i]{items=64}' %s 2>&1 | %check=MANY
// SAME: the same results
// MEETS: 'x' is accessed at several elements
// ONCE: no element is accessed by two of the loops
// MANY: its elements need 128 registers
#include <cstdio>
#include <cstdlib>

// The maximum begins with the first element, and what is stored first is overwritten.
__global__ void softmax(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  const float *x = in + row * columns;
  float *y = out + row * columns;
  float most = x[0];
  for (int c = 1; c < columns; ++c)
    if (x[c] > most)
      most = x[c];
  float sum = 0;
  for (int c = 0; c < columns; ++c) {
    y[c] = expf(x[c] - most);
    sum += y[c];
  }
  for (int c = 0; c < columns; ++c)
    y[c] /= sum;
}
// CHECK: softmax_optiml{{2?}}(
// CHECK: float in_kept[8];
// CHECK: float out_kept[8];
// CHECK: for (int k = 0; k < 8; ++k) {
// CHECK-NEXT: int [[C:.*]] = threadIdx.x + k * 32;
// CHECK-NEXT: if ([[C]] < columns) {
// CHECK-NEXT: in_kept[k] = x{{\[}}[[C]]{{\]}};
// CHECK-NEXT: if (in_kept[k] > most) {
// CHECK: out_kept[k] = expf(in_kept[k] - most);
// CHECK-NEXT: sum += out_kept[k];
// CHECK: if (c < columns) {
// CHECK-NEXT: y[c] = out_kept[k] / sum;

// A block for each row, as its author has mapped it.
__global__ void norm(const double *x, const double *weight, double *y, int n) {
  __shared__ double part[64];
  const double *row = x + (size_t)blockIdx.x * n;
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 64)
    sum += row[i] * row[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half)
      part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  const double scale = rsqrt(part[0] / n + 1e-5);
  for (int i = threadIdx.x; i < n; i += 64)
    y[(size_t)blockIdx.x * n + i] = row[i] * scale * weight[i];
}
// CHECK: norm_optiml{{2?}}(
// CHECK: double x_kept[5];
// CHECK: x_kept[k] = row[{{.*}}];
// CHECK-NEXT: sum += x_kept[k] * x_kept[k];
// CHECK: = x_kept[k] * scale * weight[{{.*}}];

// Read, written, and read once more.
__global__ void inPlace(int *x, const int *add, int *most, int n) {
  int *row = x + blockIdx.x * n, best = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    row[i] += add[i];
  for (int i = threadIdx.x; i < n; i += 32) {
    best = max(best, row[i]);
    if (add[i] > 2)
      row[i] -= 7;
  }
  for (int i = threadIdx.x; i < n; i += 32)
    best += row[i] & 1;
  atomicMax(most, best);
}
// CHECK: inPlace_optiml{{2?}}(
// CHECK: int x_kept[3];
// CHECK: x_kept[k] = row[{{.*}}];
// CHECK-NEXT: x_kept[k] = x_kept[k] + add_kept[k];
// CHECK-NEXT: row[{{.*}}] = x_kept[k];
// CHECK: best = max(best, x_kept[k]);
// CHECK: x_kept[k] = x_kept[k] - 7;
// CHECK-NEXT: row[{{.*}}] = x_kept[k];
// CHECK: best += x_kept[k] & 1;

__global__ void meets(float *x, int n) {
  for (int i = threadIdx.x; i < n; i += 64)
    x[i] *= 2;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 64)
    x[i + n] = x[n - 1 - i];
}

__global__ void once(const float *x, float *y, int n) {
  for (int i = threadIdx.x; i < n; i += 64)
    y[i] = x[i];
  for (int i = threadIdx.x; i < n; i += 64)
    y[n + i] = x[n + i];
}

int main(int, char **argv) {
  const int rows = atoi(argv[1]), columns = atoi(argv[2]), few = 90;
  float *in, *out;
  double *x, *weight, *y;
  int *values, *add, *most;
  cudaMallocManaged(&in, 2 * rows * columns * sizeof(float));
  cudaMallocManaged(&out, 2 * rows * columns * sizeof(float));
  cudaMallocManaged(&x, rows * columns * sizeof(double));
  cudaMallocManaged(&weight, columns * sizeof(double));
  cudaMallocManaged(&y, rows * columns * sizeof(double));
  cudaMallocManaged(&values, rows * few * sizeof(int));
  cudaMallocManaged(&add, few * sizeof(int));
  cudaMallocManaged(&most, sizeof(int));
  for (int i = 0; i < rows * columns; ++i) {
    in[i] = in[i + rows * columns] = (i * 37 % 101) / 50.0f;
    x[i] = (i * 11 % 29) - 14;
  }
  for (int i = 0; i < columns; ++i)
    weight[i] = 1 + i % 3;
  for (int i = 0; i < rows * few; ++i)
    values[i] = i * 13 % 50;
  for (int i = 0; i < few; ++i)
    add[i] = i % 5;
  *most = 0;
  softmax<<<(rows + 63) / 64, 64>>>(in, out, rows, columns);
  norm<<<rows, 64>>>(x, weight, y, columns);
  inPlace<<<rows, 32>>>(values, add, most, few);
  cudaDeviceSynchronize();
  printf("%g %g %d %d\n", out[7], y[9], *most, values[5]);
  meets<<<1, 64>>>(in, columns);
  once<<<1, 64>>>(in, out, columns);
  cudaDeviceSynchronize();
}
