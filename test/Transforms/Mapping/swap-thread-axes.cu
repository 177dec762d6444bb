// Rows along threadIdx.x: neighbouring threads access elements that are a row apart.
// RUN: %plan --passes='swap-thread-axes[product]{with=y}' %s | FileCheck %s
// RUN: %plan --passes='swap-thread-axes[product]{with=y};block-shape[product]{x=32,y=8};coarsen[product]{style=strided,x=1,y=4}' %s | %check=AFTER
// RUN: optiml-opt --list-sites %s | %check=SITES
// RUN: optiml-opt --reread --emit --passes='swap-thread-axes[product]{with=y};block-shape[product]{x=16,y=16};coarsen[product]{style=blocked,x=2,y=2};stage-shared[product/p:a+b]{tile=8};swap-thread-axes[shift]{with=z};swap-thread-axes[good]{with=y};block-shape[good]{x=8,y=8}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --passes='swap-thread-axes[product]{with=z}' %s 2>&1 | %check=UNUSED
// RUN: %refused --passes='swap-thread-axes[product];swap-thread-axes[product]' %s 2>&1 | %check=TWICE
// RUN: %refused --passes='block-shape[product]{x=8,y=8};swap-thread-axes[product]' %s 2>&1 | %check=FIXED
// RUN: %refused --passes='swap-thread-axes[tile]' %s 2>&1 | %check=TOGETHER
#include <cstdio>
#include <vector>

// CHECK: plan product: {{.*}}<<<(grid.y, grid.x, grid.z), (block.y, block.x, block.z), shared>>>
// CHECK: when grid.x <= 65535
// CHECK-DAG: int row = blockIdx.y * blockDim.y + threadIdx.y;
// CHECK-DAG: int col = blockIdx.x * blockDim.x + threadIdx.x;
// Texts of the plan are the original launch's.
// AFTER: <<<(ceildiv(grid.y * block.y, 32), ceildiv(grid.x * block.x, 32), 1), (32, 8, 1), shared>>>
// AFTER-DAG: when n <= grid.y * block.y
// AFTER-DAG: when m <= grid.x * block.x
// SITES-DAG: swap-thread-axes[product]{with=y}
// SITES-DAG: swap-thread-axes[shift]{with=z}
// SITES-NOT: swap-thread-axes[good]
// SITES-NOT: swap-thread-axes[tile]
// SAME: the same results
// UNUSED: the kernel does not use both axes
// TWICE: the axes are swapped already
// FIXED: the block shape is fixed already
__global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n)
    return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p)
    sum += a[row * k + p] * b[p * n + col];
  c[row * n + col] = sum;
}

// The fastest index along z.
__global__ void shift(const float *in, float *out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < nx && y < ny && z < nz)
    out[(x * ny + y) * nz + z] = in[(x * ny + y) * nz + z] + 1.0f;
}

__global__ void good(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n)
    out[y * n + x] = 2.0f * in[y * n + x];
}

// TOGETHER: the kernel's threads work together
__global__ void tile(const float *in, float *out, int n) {
  __shared__ float t[16][16];
  int row = blockIdx.x * 16 + threadIdx.x, col = blockIdx.y * 16 + threadIdx.y;
  t[threadIdx.x][threadIdx.y] = in[row * n + col];
  __syncthreads();
  out[row * n + col] = t[threadIdx.x][threadIdx.y];
}

int main() {
  const int m = 45, n = 70, k = 33;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i)
    a[i] = (float)(i % 13) - 6;
  for (int i = 0; i < k * n; ++i)
    b[i] = (float)(i % 7) - 3;
  float *da, *db, *dc, *dd;
  cudaMalloc(&da, sizeof(float) * m * k);
  cudaMalloc(&db, sizeof(float) * k * n);
  cudaMalloc(&dc, sizeof(float) * m * n);
  cudaMalloc(&dd, sizeof(float) * m * n);
  cudaMemcpy(da, a.data(), sizeof(float) * m * k, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), sizeof(float) * k * n, cudaMemcpyHostToDevice);
  product<<<dim3((m + 7) / 8, (n + 15) / 16), dim3(8, 16)>>>(da, db, dc, m, n, k);
  shift<<<dim3(2, 3, 5), dim3(4, 4, 2)>>>(dc, dd, 7, 10, 9);
  good<<<dim3(3, 3), dim3(16, 16)>>>(dd, dc, 24);
  cudaMemcpy(c.data(), dc, sizeof(float) * m * n, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : c)
    sum += v;
  printf("%g\n", sum);
  return 0;
}
