// What lies within a parameter of class type: members of members, elements of arrays, and methods that only read them
// although they are not const.
// RUN: %plan --passes='block-shape[product<float>]{x=16,y=8};coarsen[product<float>]{x=2,y=2};stage-shared[product<float>/k:a.data+b.data]{tile=8}' %s | FileCheck %s
// RUN: %plan --passes='block-shape[shift]{x=32,y=8};vectorize-access[shift]{width=4}' %s | %check=SHIFT
// RUN: %plan --scalar=a.strides[1]=1 --passes='specialize-scalar[product<float>:a.strides[1]]{value=1}' %s | %check=CONSTANT
// RUN: %opt --passes='block-shape[sums]{x=64};unroll[sums/i]{factor=4}' %s | %check=SUMS
// RUN: %refused --passes='block-shape[stepped]{x=64};unroll[stepped/i]{factor=4}' %s 2>&1 | %check=STEPPED
// RUN: %refused --passes='block-shape[chosen]{x=64};unroll[chosen/i]{factor=4}' %s 2>&1 | %check=CHOSEN
// RUN: optiml-opt --emit --passes='block-shape[product<float>]{x=16,y=8};coarsen[product<float>]{x=2,y=2};stage-shared[product<float>/k:a.data+b.data]{tile=8};block-shape[shift]{x=32,y=8};vectorize-access[shift]{width=4};block-shape[sums]{x=64};unroll[sums/i]{factor=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=15 --verify=%t.cu %s -- 45 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 44 2>&1 | %check=RAN
// RAN-DAG: product<float>: 1 optimized, 0 original launches
// RAN-DAG: shift: 1 optimized, 0 original launches
// RAN-DAG: sums: 1 optimized, 0 original launches
// STEPPED: its bound may change while it runs
// CHOSEN: its bound may change while it runs
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

template <class T> struct Tensor {
  T *data;
  int sizes[2];
  int strides[2];
  __device__ int size(int d) const { return sizes[d]; }
  __device__ T &at(int i, int j) const { return data[i * strides[0] + j * strides[1]]; }
};

template <class T> __global__ void product(Tensor<const T> a, Tensor<const T> b, Tensor<T> c) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < c.size(0) && j < c.size(1)) {
    T sum = 0;
    for (int k = 0; k < a.size(1); ++k)
      sum += a.at(i, k) * b.at(k, j);
    c.at(i, j) = sum;
  }
}
// CHECK-DAG: when c.sizes[1] <= grid.x * block.x
// CHECK-DAG: when a.strides[0] >= 0
// CHECK-DAG: when disjoint(a.data, {{.*}}a.sizes[1] * a.strides[1]{{.*}}, c.data, {{.*}}c.sizes[1] * c.strides[1]
// CHECK: for (int k0 = 0; k0 < a.sizes[1]; k0 += 8) {
// CHECK: a_data_tile{{.*}} ? a.data[{{.*}}a.strides[0]{{.*}}a.strides[1]] : 0.0f;
// CHECK: c.data[(i + iy) * c.strides[0] + (j + ix) * c.strides[1]] = sum[iy][ix];
// CONSTANT: when a.strides[1] == 1
// CONSTANT: sum += a.data[i * a.strides[0] + k * 1]

struct Shape {
  int rows, columns;
};
struct Grid {
  float *cells;
  Shape shape;
  __device__ bool holds(int i, int j) { return i < shape.rows && j < shape.columns; }
  __device__ float &operator()(int i, int j) { return cells[i * shape.columns + j]; }
};

__global__ void shift(Grid from, Grid to) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (to.holds(i, j))
    to(i, j) += from(i, j) * 2;
}
// SHIFT-DAG: when to.shape.columns <= grid.x * block.x
// SHIFT-DAG: when to.shape.columns % 4 == 0
// SHIFT-DAG: when from.shape.columns % 4 == 0
// SHIFT: const float4 from_cells_vector = *(const float4 *)&from.cells[i * from.shape.columns + j];

struct Rows {
  const float *first[2];
  int counts[2];
};

__global__ void sums(Rows rows, float *out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    float s = 0;
    for (int i = 0; i < rows.counts[1]; ++i)
      s += rows.first[0][i] * rows.first[1][(i + t) % n];
    out[t] = s;
  }
}
// SUMS: for (; rows.counts[1] - i >= 4; i += 4) {
// SUMS: s += rows.first[0][i + u] * rows.first[1][(i + u + t) % n];

/// The kernel changes its own copy.
__global__ void stepped(Rows rows, float *out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    float s = 0;
    for (int i = 0; i < rows.counts[1]; ++i) {
      s += rows.first[0][i];
      rows.counts[1] -= t % 2;
    }
    out[t] = s;
  }
}

/// Which element it is only the thread knows.
__global__ void chosen(Rows rows, float *out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    float s = 0;
    for (int i = 0; i < rows.counts[t % 2]; ++i)
      s += rows.first[0][i];
    out[t] = s;
  }
}

int main(int, char **argv) {
  int n = atoi(argv[1]);
  float *a, *b, *c;
  cudaMallocManaged(&a, n * n * sizeof(float));
  cudaMallocManaged(&b, n * n * sizeof(float));
  cudaMallocManaged(&c, 2 * n * n * sizeof(float));
  for (int i = 0; i < n * n; ++i) {
    a[i] = float(i * 7 % 31);
    b[i] = float(i * 5 % 29);
    c[i + n * n] = float(i % 11);
  }
  dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
  product<float><<<grid, block>>>({a, {n, n}, {n, 1}}, {b, {n, n}, {n, 1}}, {c, {n, n}, {n, 1}});
  cudaDeviceSynchronize();
  shift<<<grid, block>>>({a, {n, n}}, {c + n * n, {n, n}});
  cudaDeviceSynchronize();
  sums<<<(n + 63) / 64, 64>>>({{a, b}, {n, n}}, c, n);
  cudaDeviceSynchronize();
  stepped<<<(n + 63) / 64, 64>>>({{a, b}, {n, n}}, c, n);
  chosen<<<(n + 63) / 64, 64>>>({{a, b}, {n, n}}, c, n);
  cudaDeviceSynchronize();
  double total = 0;
  for (int i = 0; i < 2 * n * n; ++i)
    total += c[i];
  printf("%g\n", total);
}
