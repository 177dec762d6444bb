// distribute-loop of kernels of several axes: what is not x stays an axis of the grid.
// RUN: %plan --passes='distribute-loop[softmax]{threads=32,rows=8}' %s | %check=HEADS
// RUN: %plan --passes='distribute-loop[norms]{threads=128}' %s | %check=PLANES
// RUN: %plan --passes='distribute-loop[totals]{threads=64}' %s | %check=ALONE
// RUN: %refused --passes='distribute-loop[half]' %s 2>&1 | %check=HALF
// RUN: optiml-opt --emit --passes='distribute-loop[softmax]{threads=32,rows=8};distribute-loop[norms]{threads=128};distribute-loop[totals]{threads=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 37 5 | %check=SAME
// RUN: %verify=%t.cu %s -- 130 2 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 37 5 2>&1 | %check=RAN
// RAN-DAG: softmax: 1 optimized, 0 original launches
// RAN-DAG: norms: 1 optimized, 0 original launches
// RAN-DAG: totals: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// HEADS: plan softmax: {{.*}}<<<(ceildiv(grid.x * block.x, 8), grid.y * block.y, 1), (32, 8, 1), shared>>>
// HEADS: when block.y == 1  (blockIdx.y is taken for the global index)
// HEADS: when rows <= grid.x * block.x
// HEADS: when grid.y * block.y <= 65535
// HEADS: when grid.z * block.z == 1
// HEADS: int row = blockIdx.x * 8 + threadIdx.y;
// HEADS: float *p = s + ((long)blockIdx.y * rows + row) * cols;
// HEADS: for (int j = threadIdx.x; j < cols; j += 32) {
__global__ void softmax(float *s, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float *p = s + ((long)blockIdx.y * rows + row) * cols;
  if (row >= rows)
    return;
  float m = p[0], sum = 0;
  for (int j = 0; j < cols; ++j)
    m = fmaxf(m, p[j]);
  for (int j = 0; j < cols; ++j) {
    p[j] = expf(p[j] - m);
    sum += p[j];
  }
  for (int j = 0; j < cols; ++j)
    p[j] /= sum;
}

// PLANES: plan norms: {{.*}}<<<(grid.x * block.x, grid.y * block.y, grid.z * block.z), (128, 1, 1), shared>>>
// PLANES: when grid.y * block.y <= 65535
// PLANES: when grid.z * block.z <= 65535
// PLANES: int row = blockIdx.x;
// PLANES: int head = blockIdx.y;
// PLANES: int batch = blockIdx.z;
__global__ void norms(const float *x, float *y, int rows, int heads, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int head = blockIdx.y * blockDim.y + threadIdx.y;
  int batch = blockIdx.z * blockDim.z + threadIdx.z;
  if (row < rows && head < heads) {
    float sum = 0;
    for (int j = 0; j < cols; ++j) {
      float v = x[((batch * heads + head) * rows + row) * cols + j];
      sum += v * v;
    }
    y[(batch * heads + head) * rows + row] = sqrtf(sum);
  }
}

// A block of one thread for each row.
// ALONE: plan totals: {{.*}}<<<(grid.x * block.x, 1, 1), (64, 1, 1), shared>>>
// ALONE: when block.x == 1  (blockIdx.x is taken for the global index)
__global__ void totals(const float *x, float *y, int cols) {
  float sum = 0;
  for (int j = 0; j < cols; ++j)
    sum += x[blockIdx.x * cols + j];
  y[blockIdx.x] = sum;
}

// HALF: the kernel uses more than its global index along x
__global__ void half(const float *x, float *y, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < cols; ++j)
    sum += x[(blockIdx.y / 2 * gridDim.y + row) * cols + j];
  y[row] = sum;
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 37, heads = argc > 2 ? atoi(argv[2]) : 5, cols = 2 * rows + 3;
  int n = 2 * heads * rows;
  float *x, *y, *z;
  cudaMallocManaged(&x, n * cols * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&z, n * sizeof(float));
  for (int i = 0; i < n * cols; i++)
    x[i] = (i * 37 % 101) * 0.01f;
  softmax<<<dim3((rows + 31) / 32, heads), 32>>>(x, rows, cols);
  norms<<<dim3((rows + 15) / 16, (heads + 1) / 2, 2), dim3(16, 2)>>>(x, y, rows, heads, cols);
  totals<<<n, 1>>>(x, z, cols);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += y[i] + z[i];
  printf("%g\n", sum);
}
