// Blocks that are numbered across two axes of the grid, as for devices that had no more than 65535 along one.
//
// RUN: %plan --passes='grid-stride[add]{x=128,blocks=132}' %s | %check=ADD
// RUN: %plan --block=64x1x1 --passes='block-shape[turns]{x=64,y=1};coarsen[turns]{x=2,y=1,style=strided}' %s 2>&1 | %check=TURNS
// RUN: %refused --passes='grid-stride[both]' %s 2>&1 | %check=BOTH
// RUN: %plan --passes='block-shape[wide]{x=256,y=1}' %s | %check=WIDE
// RUN: optiml-opt --emit --passes='grid-stride[add]{x=128,blocks=132}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#define THREAD (((gridDim.x) * (blockIdx.y) + (blockIdx.x)) * (blockDim.x) + (threadIdx.x))

// ADD: <<<(min(132, ceildiv(grid.x * grid.y * block.x, 128)), 1, 1), (128, 1, 1), shared>>>
// ADD: when {{.*}}n <= grid.x * grid.y * block.x
// ADD: for (unsigned int {{.*}} < n; {{.*}} += 16896)
__global__ void add(float *a, float by, unsigned n) {
  if (THREAD < n)
    a[THREAD] += by;
}

// TURNS: if (i + ix * 64 < n)
__global__ void turns(const float *in, float *out, int n) {
  int block = blockIdx.x + blockIdx.y * gridDim.x;
  int i = block * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i];
}

// WIDE: when grid.x * grid.y * block.x <= 4294967295
// WIDE: size_t i = (size_t)((size_t)blockIdx.x * 256 + threadIdx.x);
__global__ void wide(float *a, size_t n) {
  size_t block = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
  size_t i = block * blockDim.x + threadIdx.x;
  if (i < n)
    a[i] += 1;
}

// The block's column is used by itself.
// BOTH: the kernel uses more than its global index along x
__global__ void both(const float *in, float *out, int n) {
  int i = (blockIdx.x + blockIdx.y * gridDim.x) * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[blockIdx.x];
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 5000;
  float *a;
  cudaMallocManaged(&a, n * sizeof(float));
  for (int i = 0; i < n; ++i)
    a[i] = i % 17;
  add<<<dim3(5, (n + 639) / 640), 128>>>(a, 0.5f, n);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += a[i] * (i % 5);
  printf("%.3f\n", sum);
}
