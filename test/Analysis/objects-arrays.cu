// Objects of a thread's own that hold arrays, also of records, and functors: read as arrays.
// RUN: %opt --passes='distribute-loop[best]{threads=32,rows=2}' %s | FileCheck %s
// RUN: %opt --passes='block-shape[smooth]{x=64}' %s | %check=SMOOTH
// RUN: %opt --passes='block-shape[whole]{x=64}' %s | %check=WHOLE
// RUN: %refused --passes='block-shape[given]{x=64};coarsen[given]{style=strided,x=2,y=1}' %s 2>&1 | %check=GIVEN
// RUN: optiml-opt --emit --passes='distribute-loop[best]{threads=32,rows=2};block-shape[smooth]{x=64};block-shape[whole]{x=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 45 131 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 45 131 2>&1 | %check=RAN
// RAN-DAG: best: 1 optimized, 0 original launches
// RAN-DAG: smooth: 1 optimized, 0 original launches
// GIVEN: the kernel's threads work together, or wait for each other: 
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

struct Entry {
  float key;
  int place;
};
struct Greater {
  __device__ bool operator()(float a, float b) const { return a > b; }
};

template <int K, class Order> class TopList {
public:
  __device__ TopList() {
    for (int i = 0; i < K; ++i) {
      entries[i].key = -1e30f;
      entries[i].place = -1;
    }
  }
  __device__ void push(float key, int place) {
    if (!before(key, entries[K - 1].key))
      return;
    int at = K - 1;
    while (at > 0 && before(key, entries[at - 1].key)) {
      entries[at] = entries[at - 1];
      --at;
    }
    entries[at].key = key;
    entries[at].place = place;
  }
  __device__ const Entry &operator[](int i) const { return entries[i]; }

private:
  Entry entries[K];
  Order before;
};

__global__ void best(const float *x, float *keys, int *places, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  TopList<4, Greater> list;
  for (int i = 0; i < columns; ++i)
    list.push(x[row * columns + i], i);
  for (int i = 0; i < 4; ++i) {
    keys[row * 4 + i] = list[i].key;
    places[row * 4 + i] = list[i].place;
  }
}
// CHECK: float list_entries_key[4];
// CHECK: int list_entries_place[4];
// CHECK: __shfl_xor_sync(0xffffffff, list_entries_key[3 - entry], lane_offset);

struct Window {
  float values[3];
  int count;
  __device__ void add(float v) {
    values[0] = values[1];
    values[1] = values[2];
    values[2] = v;
    ++count;
  }
  __device__ float mean() const { return (values[0] + values[1] + values[2]) / min(count, 3); }
};

__global__ void smooth(const float *x, float *out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    Window w;
    w.values[0] = w.values[1] = w.values[2] = 0;
    w.count = 0;
    for (int i = 0; i < columns; ++i) {
      w.add(x[row * columns + i]);
      out[row * columns + i] = w.mean();
    }
  }
}
// SMOOTH: float w_values[3];
// SMOOTH: w_values[0] = w_values[1];

/// A copy of the whole stays one.
__global__ void whole(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Window w = {};
    w.values[0] = x[i];
    Window other = w;
    other.values[1] = 2;
    out[i] = w.values[0] + w.values[1] + other.values[0] + other.values[1];
  }
}
// WHOLE: Window other = w;
// WHOLE: other.values[1] = 2;

__device__ __noinline__ void fill(Window &w) { w.values[0] = w.values[1] = w.values[2] = 1; }
__global__ void given(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Window w;
    fill(w);
    out[i] = w.values[0] * x[i];
  }
}

int main(int, char **argv) {
  int rows = atoi(argv[1]), columns = atoi(argv[2]);
  float *x, *keys, *out;
  int *places;
  cudaMallocManaged(&x, rows * columns * sizeof(float));
  cudaMallocManaged(&out, rows * columns * sizeof(float));
  cudaMallocManaged(&keys, 4 * rows * sizeof(float));
  cudaMallocManaged(&places, 4 * rows * sizeof(int));
  for (int i = 0; i < rows * columns; ++i)
    x[i] = float(i * 37 % 101);
  best<<<(rows + 31) / 32, 32>>>(x, keys, places, rows, columns);
  smooth<<<(rows + 31) / 32, 32>>>(x, out, rows, columns);
  cudaDeviceSynchronize();
  printf("%g %d %g\n", keys[1], places[1], out[5]);
  whole<<<(rows + 31) / 32, 32>>>(x, out, rows);
  cudaDeviceSynchronize();
  printf("%g\n", out[5]);
  given<<<(rows + 31) / 32, 32>>>(x, out, rows);
  cudaDeviceSynchronize();
  printf("%g\n", out[5]);
}
