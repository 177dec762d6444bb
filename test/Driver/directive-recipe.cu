// A search tries first what the source asks for, and says what of it nobody can read.
// REQUIRES: optiml-search
// RUN: optiml-clang -O-search=1 --optiml-backend=cpu --optiml-store=none -arch=sm_90 %s -o %t 2>&1 | FileCheck %s
// CHECK: warning: {{.*}}directive-recipe.cu:[[#@LINE+14]]: the recipe at fill is left out:
// CHECK: directive-recipe.cu: {{[0-9.]+}} times faster
// CHECK: recipe: distribute-loop[rowSums]{threads=64}{{$}}
// CHECK: 1 evaluations
#include <cstdio>
// clang-format off
#pragma optiml recipe(distribute-loop[rowSums]{threads=64})
__global__ void rowSums(const float *m, float *sums, int rows, int columns) {
  float s = 0;
  for (int c = 0; c < columns; ++c)
    s += m[(blockIdx.x * blockDim.x + threadIdx.x) * columns + c];
  sums[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
#pragma optiml recipe(make it [fast)
__global__ void fill(float *m) { m[blockIdx.x * blockDim.x + threadIdx.x] = 0.25f * (threadIdx.x % 9); }
int main() {
  const int rows = 256, columns = 1024;
  float *m, *sums, last;
  cudaMalloc(&m, rows * columns * 4);
  cudaMalloc(&sums, rows * 4);
  fill<<<rows * columns / 256, 256>>>(m);
  rowSums<<<rows / 64, 64>>>(m, sums, rows, columns);
  cudaMemcpy(&last, sums + rows - 1, 4, cudaMemcpyDeviceToHost);
  printf("%g\n", last);
}
