// loop-to-grid: a loop whose iterations are independent becomes an axis of the grid.
// RUN: %plan --passes='loop-to-grid[product/j];loop-to-grid[covariance/j2];loop-to-grid[heat/z];loop-to-grid[below/j];loop-to-grid[odd/j];loop-to-grid[ahead/j];loop-to-grid[votes/j];loop-to-grid[distances/i];loop-to-grid[distances/j]' %s > %t.kernels
// RUN: FileCheck %s --check-prefix=PRODUCT < %t.kernels
// RUN: FileCheck %s --check-prefix=COVARIANCE < %t.kernels
// RUN: FileCheck %s --check-prefix=HEAT < %t.kernels
// RUN: FileCheck %s --check-prefix=BELOW < %t.kernels
// RUN: FileCheck %s --check-prefix=ODD < %t.kernels
// RUN: FileCheck %s --check-prefix=AHEAD < %t.kernels
// RUN: FileCheck %s --check-prefix=VOTES < %t.kernels
// RUN: FileCheck %s --check-prefix=DISTANCES < %t.kernels
//
// What comes out is a kernel like any other of its shape.
// RUN: optiml-opt --emit --passes='loop-to-grid[product/j];swap-thread-axes[product]{with=y};block-shape[product]{x=16,y=16};coarsen[product]{x=4,y=4};stage-shared[product/k:a+b]{tile=8};loop-to-grid[covariance/j2];promote-accumulator[covariance/i:out];block-shape[covariance]{x=8,y=8};stage-shared[covariance/i:data]{tile=8};loop-to-grid[heat/z];loop-to-grid[below/j];loop-to-grid[odd/j];loop-to-grid[ahead/j];loop-to-grid[votes/j];loop-to-grid[distances/i];loop-to-grid[distances/j]' %s > %t.cu
// RUN: FileCheck %s --check-prefix=STAGED < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 33 | %check=SAME
// SAME: the same results
// With nothing to do for the loop, and so no thread of index 0 along its axis, the original runs.
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 33 2>&1 | %check=RAN
// RAN: distances: 1 optimized, 0 original launches
// RAN: votes: 1 optimized, 0 original launches
// RAN: ahead: 1 optimized, 1 original launches
// RAN: odd: 1 optimized, 0 original launches
// RAN: below: 1 optimized, 0 original launches
// RAN: heat: 1 optimized, 0 original launches
// RAN: covariance: 1 optimized, 0 original launches
// RAN: product: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// One thread a row.
__global__ void product(const float *a, const float *b, float *c, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n)
    return;
  float sum;
  for (int j = 0; j < n; ++j) {
    sum = 0;
    for (int k = 0; k < n; ++k)
      sum += a[row * n + k] * b[k * n + j];
    c[row * n + j] = sum;
  }
}
// PRODUCT: plan product: {{.*}}<<<(grid.x, ceildiv(n, block.y), grid.z), (block.x, block.y, block.z), shared>>>
// PRODUCT-DAG: when n >= 1
// PRODUCT-DAG: when ceildiv(n, block.y) <= 65535
// PRODUCT-DAG: when grid.y * block.y == 1
// PRODUCT-DAG: when disjoint(b, 4 * (n * n), c, 4 * (n * n))
// PRODUCT: int row = blockIdx.x * blockDim.x + threadIdx.x;
// PRODUCT-NEXT: int j = blockIdx.y * blockDim.y + threadIdx.y;
// PRODUCT-NEXT: if (row < n && j < n) {
// PRODUCT-NEXT: float sum = 0;
// PRODUCT-NEXT: for (int k = 0; k < n; ++k) {
// STAGED: __launch_bounds__(256) product_optiml
// STAGED: a_tile
// STAGED: sum[iy][ix] +=

// Both halves of a symmetric matrix; the loop begins at the thread's own index.
// What stands before it is written by one thread.
__global__ void covariance(const float *data, float *out, int m, int n) {
  int j1 = blockIdx.x * blockDim.x + threadIdx.x;
  if (j1 < m) {
    out[j1 * m + j1] = 1;
    for (int j2 = j1 + 1; j2 < m; ++j2) {
      out[j1 * m + j2] = 0;
      for (int i = 0; i < n; ++i)
        out[j1 * m + j2] += data[i * m + j1] * data[i * m + j2];
      out[j2 * m + j1] = out[j1 * m + j2];
    }
  }
}
// COVARIANCE: plan covariance: {{.*}}(grid.x, ceildiv(m, block.y), grid.z)
// COVARIANCE: when m >= 1
// COVARIANCE: if (j1 < m && j2 < m) {
// COVARIANCE-NEXT: if (j2 == 0) {
// COVARIANCE-NEXT: out[j1 * m + j1] = 1;
// COVARIANCE-NEXT: }
// COVARIANCE-NEXT: if (j2 >= j1 + 1) {
// COVARIANCE-NEXT: out[j1 * m + j2] = 0;

__global__ void heat(const float *in, float *out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < nx && y < ny)
    for (int z = 1; z < nz - 1; ++z) {
      if (in[(z * ny + y) * nx + x] < 0)
        continue;
      out[(z * ny + y) * nx + x] = in[((z - 1) * ny + y) * nx + x] + in[((z + 1) * ny + y) * nx + x];
    }
}
// HEAT: plan heat: {{.*}}(grid.x, grid.y, ceildiv(nz - 2, block.z))
// HEAT: when nz - 2 >= 1
// HEAT: int z = (int)(blockIdx.z * blockDim.z + threadIdx.z) + 1;
// HEAT-NEXT: if (x < nx && y < ny && z < nz - 1) {
// HEAT-NEXT: if (!(in[(z * ny + y) * nx + x] < 0)) {

// The end depends on the thread.
__global__ void below(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int j = 0; j <= i; ++j)
      out[i * n + j] = 2 * in[j * n + i];
}
// BELOW: plan below: {{.*}}(grid.x, ceildiv(n, block.y), grid.z)
// BELOW: if (i < n && j < n && j <= i) {

// Steps, from where the thread is.
__global__ void odd(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int j = i + 1; j < n; j += 2)
      out[i * n + j] = 3;
}
// ODD: plan odd: {{.*}}(grid.x, ceildiv(ceildiv(n - 1, 2), block.y), grid.z)
// ODD: int j_index = blockIdx.y * blockDim.y + threadIdx.y;
// ODD-NEXT: if (i < n && j_index * 2 < n - 1) {
// ODD-NEXT: int j = i + 1 + j_index * 2;
// ODD-NEXT: if (j < n) {

// A lower bound that only the launch knows.
__global__ void ahead(const float *in, float *out, int first, int n, float *sums) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 4) {
    float scale = in[i];
    for (int j = first; j < n; j += 3)
      out[i * n + j] = in[j] * scale;
    sums[i] += scale;
  }
}
// AHEAD: plan ahead: {{.*}}ceildiv(ceildiv(n - first, 3), block.y)
// AHEAD: when n - first >= 1
// AHEAD: int j = (int)(blockIdx.y * blockDim.y + threadIdx.y) * 3 + first;
// AHEAD-NEXT: if (i < 4 && j < n) {
// AHEAD-NEXT: float scale = in[i];
// AHEAD-NEXT: out[i * n + j] = in[j] * scale;
// AHEAD-NEXT: if (j == first) {
// AHEAD-NEXT: sums[i] += scale;

// Updates commute.
__global__ void votes(const float *in, int *bins, int rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows)
    for (int j = 0; j < n; ++j)
      atomicAdd(&bins[(int)in[i * n + j] & 15], 1);
}
// VOTES: plan votes: {{.*}}(grid.x, ceildiv(n, block.y), grid.z)

// The work of one thread: both its loops.
__global__ void distances(const float *p, float *d, int n, int dims) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float s = 0;
      for (int k = 0; k < dims; ++k) {
        float t = p[i * dims + k] - p[j * dims + k];
        s += t * t;
      }
      d[i * n + j] = sqrtf(s);
    }
}
// DISTANCES: plan distances: {{.*}}<<<(ceildiv(n, block.x), ceildiv(n, block.y), grid.z), (block.x, block.y, block.z), shared>>>
// DISTANCES: when grid.x * block.x == 1
// DISTANCES: if (i < n && j < n) {
// DISTANCES-NEXT: float s = 0;

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 33, count = 40 * 41 * 42;
  float *a, *b, *c;
  int *bins;
  cudaMallocManaged(&a, count * sizeof(float));
  cudaMallocManaged(&b, count * sizeof(float));
  cudaMallocManaged(&c, count * sizeof(float));
  cudaMallocManaged(&bins, 16 * sizeof(int));
  for (int i = 0; i < count; ++i)
    a[i] = float(i * 7 % 64) - 8, b[i] = float(i % 13), c[i] = 0;
  for (int i = 0; i < 16; ++i)
    bins[i] = 0;
  auto show = [&](const char *name) {
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < count; ++i)
      sum += c[i] * (i % 7 + 1);
    printf("%s %.9g\n", name, sum);
  };
  product<<<(n + 15) / 16 + 1, 16>>>(a, b, c, n), show("product");
  covariance<<<(n + 15) / 16 + 1, 16>>>(a, c, n, n + 3), show("covariance");
  heat<<<dim3(3, 6), dim3(16, 8)>>>(a, c, 40, 41, 42), show("heat");
  below<<<(n + 15) / 16 + 1, 16>>>(a, c, n), show("below");
  odd<<<(n + 15) / 16 + 1, 16>>>(c, n), show("odd");
  ahead<<<1, 32>>>(a, c, 2, n, b), show("ahead");
  ahead<<<1, 32>>>(a, c, n, n, b), show("ahead");
  votes<<<2, 32>>>(a, bins, 50, n), show("votes");
  distances<<<1, 1>>>(a, c, n, 5), show("distances");
  printf("%d %d\n", bins[3], bins[7]);
}
