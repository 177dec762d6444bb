// Of `float *const *` the rows are constant, not their elements: a kernel that writes them keeps its type.
// RUN: optiml-opt --emit --passes='block-shape[addRows]{x=128,y=1};coarsen[addRows]{style=strided,x=2,y=1}' %s > %t.cu
// RUN: FileCheck --check-prefix=TEXT --input-file=%t.cu %s
// TEXT: addRows_optiml(float *const *rows, const float *volatile *const *hidden, float **plain, const float *const *in,
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s | FileCheck %s
// CHECK: the same results in {{[0-9]+}} runs
#include <cstdio>
__global__ void addRows(float *const *rows, const float *volatile *const *hidden, float **plain,
                        const float *const *in, int rowCount, int cols) {
  int r = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rowCount && c < cols) {
    rows[r][c] += in[r][c];
    plain[r][c] = in[r][c] * 2;
  }
}

int main() {
  const int n = 300, m = 5;
  float **rows, **plain, **in;
  cudaMallocManaged(&rows, m * sizeof(float *));
  cudaMallocManaged(&plain, m * sizeof(float *));
  cudaMallocManaged(&in, m * sizeof(float *));
  for (int i = 0; i < m; ++i) {
    cudaMallocManaged(&rows[i], n * sizeof(float));
    cudaMallocManaged(&plain[i], n * sizeof(float));
    cudaMallocManaged(&in[i], n * sizeof(float));
    for (int j = 0; j < n; ++j) {
      rows[i][j] = float(i);
      in[i][j] = float(j);
    }
  }
  addRows<<<dim3(4, m), 128>>>(rows, nullptr, plain, in, m, n);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      sum += rows[i][j] + plain[i][j];
  printf("%g\n", sum);
}
