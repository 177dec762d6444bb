// large-launches: the new kernel for launches of a size or more, the original for smaller ones.
// RUN: optiml-opt --kernels-only --print-plan --passes='block-shape[blur]{x=64,y=2};coarsen[blur]{style=strided,x=1,y=4};large-launches[blur:to.rows]{least=64}' %s | %check=PLAN
// PLAN: when to.rows >= 64  (smaller launches run the original)
// RUN: optiml-opt --emit --passes='block-shape[blur]{x=64,y=2};coarsen[blur]{style=strided,x=1,y=4};large-launches[blur:to.rows]{least=64}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RAN: blur: 1 optimized, 2 original launches
// RUN: %refused --passes='block-shape[blur]{x=64,y=2};large-launches[blur:to.rows]{least=64};large-launches[blur:to.rows]{least=64}' %s 2>&1 | %check=TWICE
// TWICE: the launches have such a 'to.rows' already
// RUN: %refused --passes='large-launches[blur:to.data]{least=64}' %s 2>&1 | %check=POINTER
// POINTER: there is no integer parameter 'to.data'
// RUN: %refused --passes='large-launches[blur:from]{least=64}' %s 2>&1 | %check=NONE
// NONE: there is no integer parameter 'from'
// REQUIRES: optiml-run
#include <cstdio>

struct Level {
  float *data;
  int rows, columns;
};

__global__ void blur(const float *from, Level to) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= to.rows || column >= to.columns)
    return;
  const float *at = from + 4 * row * to.columns + 2 * column;
  to.data[row * to.columns + column] = 0.25f * (at[0] + at[1] + at[2 * to.columns] + at[2 * to.columns + 1]);
}

int main() {
  const int size = 128;
  static float image[size * size], small[16 * 16];
  for (int i = 0; i < size * size; ++i)
    image[i] = float((i * 37) % 101);
  float *levels[4];
  for (int l = 0; l < 4; ++l)
    cudaMalloc(&levels[l], sizeof image >> 2 * l);
  cudaMemcpy(levels[0], image, sizeof image, cudaMemcpyHostToDevice);
  for (int l = 1; l < 4; ++l) {
    const int rows = size >> l;
    blur<<<dim3((unsigned(rows) + 63) / 64, (unsigned(rows) + 1) / 2), dim3(64, 2)>>>(levels[l - 1],
                                                                                   {levels[l], rows, rows});
  }
  cudaMemcpy(small, levels[3], sizeof small, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < 16 * 16; ++i)
    sum += small[i] * (i % 13);
  printf("%g\n", sum);
  return 0;
}
