// Groups of lanes with several rows each: what the rows read alike is read once.
// RUN: %plan --passes='distribute-loop[product]{threads=32,rows=8,each=4}' %s | %check=PRODUCT
// RUN: %opt --passes='distribute-loop[nearest<unsigned long>]{threads=8,rows=16,each=2}' %s | %check=NEAREST
// RUN: %plan --passes='distribute-loop[all]{threads=32,rows=4,each=2}' %s | %check=ALL
// RUN: %refused --passes='distribute-loop[product]{threads=64,each=2}' %s 2>&1 | %check=BLOCK
// RUN: %refused --passes='distribute-loop[product]{threads=32,rows=8,each=17}' %s 2>&1 | %check=MANY
// BLOCK: only groups within warps can share a block, or have several rows
// MANY: a group takes 1 to 16 rows

// RUN: optiml-opt --list-sites %s | %check=SITES
// SITES-DAG: distribute-loop[product]{each=4,rows=8,threads=32}
// SITES-DAG: distribute-loop[nearest<unsigned long>]{each=4,rows=8,threads=32}
// SITES-NOT: distribute-loop[running]{each

// RUN: optiml-opt --reread --emit --passes='distribute-loop[product]{threads=32,rows=8,each=4};distribute-loop[nearest<unsigned long>]{threads=8,rows=16,each=2};distribute-loop[all]{threads=32,rows=4,each=2};distribute-loop[running]{threads=16,rows=4,each=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 96 70 2>&1 | %check=RAN
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 97 70 2>&1 | %check=ODD
// RUN: optiml-run --coverage=15 --verify=%t.cu %s -- 96 70 | %check=SAME
// RUN: optiml-run --coverage=15 --verify=%t.cu %s -- 97 41 | %check=SAME
// RAN-DAG: product: 1 optimized
// RAN-DAG: nearest<unsigned long>: 1 optimized
// RAN-DAG: running: 1 optimized
// RAN-DAG: all: 1 optimized
// ODD-DAG: product: 0 optimized
// ODD-DAG: nearest<unsigned long>: 0 optimized
// ODD-DAG: all: 1 optimized
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// PRODUCT: when rows % 4 == 0
// PRODUCT: int r = blockIdx.x * 32 + threadIdx.y * 4;
// PRODUCT-NEXT: if (r < rows) {
// PRODUCT-NEXT: float s[4];
// PRODUCT: for (int j = threadIdx.x; j < n; j += 32) {
// PRODUCT-NEXT: #pragma unroll
// PRODUCT-NEXT: for (int row = 0; row < 4; ++row) {
// PRODUCT-NEXT: s[row] += a[(r + row) * n + j] * x[j];
// PRODUCT: s[row] += __shfl_xor_sync(0xffffffff, s[row], offset);
// PRODUCT: __syncwarp();
// PRODUCT-NEXT: if (threadIdx.x == 0) {
// PRODUCT: y[r + row] = s[row];
__global__ void product(const float *a, const float *x, float *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float s = 0.0f;
  for (int j = 0; j < n; ++j)
    s += a[r * n + j] * x[j];
  y[r] = s;
}

// NEAREST: if (p < points) {
// NEAREST: for ({{.*}} c = threadIdx.x; c < centers; c += 8) {
// NEAREST: for (int row = 0; row < 2; ++row) {
// NEAREST: d[row] = at[p + row] - center[c];
// NEAREST: atomicAdd(&counts[best[row]], 1);
template <typename Index>
__global__ void nearest(const float *at, const float *center, int *label, int *counts, Index points, Index centers) {
  Index p = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (p < points) {
    float least = 3.0e38f;
    int best = 0;
    for (Index c = 0; c < centers; ++c) {
      float d = at[p] - center[c];
      d *= d;
      if (d < least) {
        least = d;
        best = int(c);
      }
    }
    label[p] = best;
    atomicAdd(&counts[best], 1);
  }
}

// A launch without a test: its threads are all rows.
// ALL: when grid.x * block.x % 8 == 0
// ALL: int r = blockIdx.x * 8 + threadIdx.y * 2;
// ALL-NEXT: float s[2];
__global__ void all(const float *x, float *y, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += x[j] * (r + 1);
  y[r] = s;
}

// Nothing is shared here, so it is not offered; it is right all the same.
__global__ void running(const float *x, float *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float s = 0;
    for (int j = 0; j < n; ++j) {
      s += x[r * n + j];
      y[r * n + j] = s;
    }
  }
}

int main(int argc, char **argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 64, n = argc > 2 ? atoi(argv[2]) : 48;
  float *a, *b, *x, *y;
  int *label, *counts;
  cudaMallocManaged(&a, rows * n * sizeof(float));
  cudaMallocManaged(&b, rows * n * sizeof(float));
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, 256 * sizeof(float));
  cudaMallocManaged(&label, rows * sizeof(int));
  cudaMallocManaged(&counts, n * sizeof(int));
  for (int i = 0; i < rows * n; ++i)
    a[i] = (i * 37 % 101) * 0.25f;
  for (int j = 0; j < n; ++j)
    x[j] = j % 13 * 0.5f, counts[j] = 0;
  double sum = 0;
  product<<<(rows + 31) / 32, 32>>>(a, x, y, rows, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < rows; ++i)
    sum += y[i];
  nearest<size_t><<<(rows + 31) / 32, 32>>>(a, x, label, counts, size_t(rows), size_t(n));
  all<<<4, 64>>>(x, y, n);
  running<<<(rows + 31) / 32, 32>>>(a, b, rows, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < rows; ++i)
    sum += label[i];
  for (int i = 0; i < 256; ++i)
    sum += y[i];
  for (int i = 0; i < rows * n; ++i)
    sum += b[i] / n;
  for (int j = 0; j < n; ++j)
    sum += counts[j] * j;
  printf("%.3f\n", sum);
}
