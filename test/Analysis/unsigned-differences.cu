// "n - 1" of an unsigned n, and "i - 1" behind "i > 0": they do not wrap around, by a condition and by the guard.
// RUN: %plan --passes='block-shape[jacobi]{x=32,y=8};stage-window[jacobi:in]' %s | FileCheck %s
// RUN: %plan --passes='block-shape[differences]{x=64};coarsen[differences]{x=4,style=blocked};stage-window[differences:in]' %s | %check=WIDE
// RUN: %refused --passes='block-shape[unguarded]{x=64};stage-window[unguarded:in]' %s 2>&1 | %check=NO
// RUN: optiml-opt --emit --passes='block-shape[jacobi]{x=32,y=8};stage-window[jacobi:in];block-shape[differences]{x=64};coarsen[differences]{x=4,style=blocked};stage-window[differences:in]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 67 45 | %check=SAME
// RUN: %verify=%t.cu %s -- 33 9 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 67 45 2>&1 | %check=RAN
// RAN-DAG: jacobi: 1 optimized, 0 original launches
// RAN-DAG: differences: 1 optimized, 0 original launches
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 1 1 2>&1 | %check=SMALL
// SMALL-DAG: differences: 0 optimized, 1 original launches
// NO: error
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

__global__ void jacobi(const float *in, float *out, unsigned nx, unsigned ny) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 0 && j > 0 && i < nx - 1 && j < ny - 1)
    out[j * nx + i] = in[j * nx + i - 1] + in[j * nx + i + 1] + in[(j - 1) * nx + i] + in[(j + 1) * nx + i];
}
// CHECK-DAG: when nx >= 1  (unsigned differences do not wrap around)
// CHECK-DAG: when nx - 1 <= grid.x * block.x
// CHECK: in_window

__global__ void differences(const float *in, float *out, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0 || i >= n - 2)
    return;
  out[i] = in[i - 1] - 2 * in[i] + in[i + 1] + in[i + 2];
}
// WIDE-DAG: when n >= 2  (unsigned differences do not wrap around)
// WIDE: in_window

/// Thread 0 may read far behind the array, if the program does.
__global__ void unguarded(const float *in, float *out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = i - 1 < n ? in[(i - 1) % n] : 0;
}

int main(int, char **argv) {
  unsigned nx = atoi(argv[1]), ny = atoi(argv[2]);
  size_t n = size_t(nx) * ny;
  float *in, *out;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMallocManaged(&out, 2 * n * sizeof(float));
  for (size_t i = 0; i < n; ++i)
    in[i] = out[i] = out[i + n] = float(i * 7 % 31);
  jacobi<<<dim3((nx + 15) / 16, (ny + 15) / 16), dim3(16, 16)>>>(in, out, nx, ny);
  cudaDeviceSynchronize();
  differences<<<unsigned((n + 127) / 128), n == 1 ? 1 : 128>>>(in, out + n, n);
  unguarded<<<unsigned((n + 127) / 128), 128>>>(in, out + n, 1);
  cudaDeviceSynchronize();
  double total = 0;
  for (size_t i = 0; i < 2 * n; ++i)
    total += out[i];
  printf("%g\n", total);
}
