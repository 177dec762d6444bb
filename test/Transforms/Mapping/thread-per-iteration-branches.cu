// thread-per-iteration where an argument decides between two loops: the one that is run, under that condition.
// RUN: %opt --passes='thread-per-iteration[mask];block-shape[mask]{x=128};coarsen[mask]{x=2}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='thread-per-iteration[mask];block-shape[mask]{x=128};coarsen[mask]{x=2}' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %opt --passes='thread-per-iteration[signs]' %s | %check=SIGNS
// RUN: %refused --passes='thread-per-iteration[loaded]' %s 2>&1 | %check=LOADED
// RUN: %refused --passes='thread-per-iteration[wraps]' %s 2>&1 | %check=LOADED
// CHECK: if (batches >= 0) {
// CHECK-NOT: else
// CHECK: out[
// RAN: mask: 2 optimized, 1 original launches
// SAME: the same results
// SIGNS: signs_optiml
// SIGNS-NOT: for (
// SIGNS: } else {
// LOADED: which branch threads take is not known before the launch
// REQUIRES: optiml-run
#include <cstdio>

__global__ void mask(const float *in, const int *lengths, float *out, int rows, int columns, int batches) {
  if (batches >= 0) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < batches * rows * columns; i += gridDim.x * blockDim.x)
      out[i] = i % columns < lengths[i / columns % rows] ? in[i] : 0;
  } else {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.x * blockDim.x)
      out[i] = i % columns < lengths[i / columns] ? in[i] : -1;
  }
}

// What decides within the loop stays.
__global__ void signs(const float *in, float *out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (in[i] > 0)
      out[i] = 1;
    else
      out[i] = -1;
  }
}

__global__ void loaded(const float *in, float *out, int n, const int *mode) {
  if (mode[0] > 0) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      out[i] = in[i];
  } else {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      out[i] = -in[i];
  }
}

__global__ void wraps(const float *in, float *out, int n, unsigned least) {
  if (least - 1 < 5u) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      out[i] = in[i];
  } else {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      out[i] = -in[i];
  }
}

int main() {
  const int rows = 20, columns = 30, batches = 4, n = rows * columns * batches;
  float *in, *out;
  int *lengths;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMallocManaged(&out, n * sizeof(float));
  cudaMallocManaged(&lengths, rows * sizeof(int));
  for (int i = 0; i < n; ++i)
    in[i] = i % 17 - 4;
  for (int i = 0; i < rows; ++i)
    lengths[i] = i * 7 % columns;
  for (int b : {batches, -1, 2}) {
    mask<<<5, 64>>>(in, lengths, out, rows, columns, b);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < rows * columns * (b < 0 ? 1 : b); ++i)
      sum += out[i] * (i % 7);
    printf("%g\n", sum);
  }
}
