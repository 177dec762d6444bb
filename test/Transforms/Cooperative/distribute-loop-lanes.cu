// distribute-loop with several groups in a warp: they part ways,
// so that each meets in shuffles and barriers for itself.
// REQUIRES: optiml-run
// RUN: optiml-opt --reread --emit --passes='distribute-loop[sparse]{threads=8,rows=32};distribute-loop[moments]{threads=4,rows=64};distribute-loop[best]{threads=16,rows=16};distribute-loop[few]{threads=8,rows=4}' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 203 | %check=SAME
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 203 2>&1 | %check=PATHS
// SAME: the same results
// PATHS-NOT: 0 optimized
// PATHS-NOT: 1 original
// RUN: %refused --passes='distribute-loop[sparse]{threads=8,rows=2}' %s 2>&1 | %check=SIZE
// RUN: %refused --passes='distribute-loop[sparse]{threads=12,rows=8}' %s 2>&1 | %check=SIZE
// RUN: %refused --passes='distribute-loop[sparse]{threads=64,rows=4}' %s 2>&1 | %check=WIDE
// RUN: %refused --passes='distribute-loop[largest]{threads=8,rows=32}' %s 2>&1 | %check=SORTED
// SIZE: groups of {{8|12}} threads cannot be launched
// WIDE: only groups within warps can share a block
// SORTED: sorted arrays are combined by whole warps
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void sparse(const int *first, const int *column, const float *value, const float *x, float *y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || first[row] == first[row + 1])
    return;
  float sum = 0.0f;
  for (int i = first[row]; i < first[row + 1]; i++)
    sum += value[i] * x[column[i]];
  y[row] = sum;
}
// CHECK-LABEL: void {{.*}} sparse_optiml
// CHECK: int row = blockIdx.x * 32 + threadIdx.y;
// CHECK: i += 8
// CHECK: for (int offset = 4; offset > 0; offset /= 2) {
// CHECK-NEXT: sum += __shfl_xor_sync(255u << threadIdx.y % 4 * 8, sum, offset);

// Its lanes go on with one lane's rounding.
__global__ void moments(const float *in, float *spread, float *shifted, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float mean = 0.0f, m2 = 0.0f;
    int count = 0;
    for (int j = 0; j < n - row % 7; j++) {
      count++;
      float d = in[row * n + j] - mean;
      mean += d / count;
      m2 += d * (in[row * n + j] - mean);
    }
    spread[row] = m2 / count;
    for (int k = 0; k < n; k++)
      shifted[row * n + k] = in[row * n + k] - mean;
  }
}
// CHECK-LABEL: void {{.*}} moments_optiml
// CHECK: __shfl_xor_sync(15u << threadIdx.y % 8 * 4, mean, offset)
// CHECK: mean = __shfl_sync(15u << threadIdx.y % 8 * 4, mean, 0, 4);

__global__ void best(const float *in, int *where, float *by, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float m = in[row * n];
  int at = 0;
  for (int j = 1; j < n; j++)
    if (in[row * n + j] > m) {
      m = in[row * n + j];
      at = j;
    }
  where[row] = at;
  by[row] = m - in[row * n + (at + 1) % n];
}
// CHECK-LABEL: void {{.*}} best_optiml
// CHECK: float other_m = __shfl_xor_sync(65535u << threadIdx.y % 2 * 16, m, offset);

// What a lane writes others read.
__global__ void few(const float *in, float *scratch, float *out, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    for (int j = 0; j < 10; j++)
      scratch[row * 10 + j] = in[row * 10 + j] * 2.0f;
    for (int k = 0; k < row % 3; k++)
      for (int j = 0; j < 10; j++)
        out[row * 10 + j] += scratch[row * 10 + 9 - j];
  }
}
// CHECK-LABEL: void {{.*}} few_optiml
// CHECK: __syncwarp(255u << threadIdx.y % 4 * 8);

__global__ void largest(const float *in, float *out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float best[4];
  for (int i = 0; i < 4; i++)
    best[i] = -INFINITY;
  for (int j = 0; j < n; j++) {
    float v = in[row * n + j];
    if (v > best[3]) {
      int place = 3;
      while (place > 0 && best[place - 1] < v) {
        best[place] = best[place - 1];
        place--;
      }
      best[place] = v;
    }
  }
  for (int i = 0; i < 4; i++)
    out[row * 4 + i] = best[i];
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 100, n = 45;
  std::vector<int> first(rows + 1), column;
  std::vector<float> value, x(rows), dense(size_t(rows) * n);
  unsigned state = 7;
  auto random = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
  for (int r = 0; r < rows; r++) {
    for (int k = r % 5 ? int(random() % 40) : 0; k > 0; k--) {
      column.push_back(int(random() % rows));
      value.push_back(random() % 1000 * 0.001f);
    }
    first[r + 1] = int(column.size());
    x[r] = random() % 1000 * 0.001f;
  }
  for (float &v : dense)
    v = random() % 100 * 0.01f;
  int *dFirst, *dColumn, *dWhere;
  float *dValue, *dX, *dY, *dDense, *dA, *dB, *dScratch, *dOut;
  auto upload = [](auto **p, const auto &v) {
    cudaMalloc(p, v.size() * sizeof(v[0]));
    cudaMemcpy(*p, v.data(), v.size() * sizeof(v[0]), cudaMemcpyHostToDevice);
  };
  upload(&dFirst, first);
  upload(&dColumn, column);
  upload(&dValue, value);
  upload(&dX, x);
  upload(&dDense, dense);
  std::vector<float> zeros(dense.size());
  for (float **p : {&dY, &dA, &dB, &dScratch, &dOut})
    upload(p, zeros);
  upload(&dWhere, std::vector<int>(rows));
  int blocks = (rows + 63) / 64;
  double sum = 0;
  auto add = [&](auto *p, size_t count) {
    auto host = std::vector<std::remove_reference_t<decltype(*p)>>(count);
    cudaMemcpy(host.data(), p, count * sizeof(*p), cudaMemcpyDeviceToHost);
    for (auto v : host)
      sum += v;
  };
  sparse<<<blocks, 64>>>(dFirst, dColumn, dValue, dX, dY, rows);
  add(dY, rows);
  moments<<<blocks, 64>>>(dDense, dA, dB, rows, n);
  add(dA, rows);
  add(dB, dense.size());
  best<<<blocks, 64>>>(dDense, dWhere, dA, rows, n);
  add(dWhere, rows);
  add(dA, rows);
  few<<<blocks, 64>>>(dDense, dScratch, dOut, rows);
  add(dOut, size_t(rows) * 10);
  largest<<<blocks, 64>>>(dDense, dA, rows, n);
  add(dA, size_t(rows) * 4);
  printf("%.3f\n", sum);
}
