// The whole way by recipe alone: from one output a thread to a kernel that stages both operands in shared memory and
// keeps 8x8 outputs a thread in registers. --reread parses every step again and compares the trees.
//
// RUN: %plan %s \
// RUN:   --passes='block-shape[sgemm]{x=16,y=16};coarsen[sgemm]{x=8,y=8};stage-shared[sgemm/p:a+b]{tile=8};qualify-pointers[sgemm]' \
// RUN:   | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[sgemm]{x=16,y=16};stage-shared[sgemm/p:a+b]{tile=16}' %s > %t.cu
// RUN: FileCheck --check-prefix=EMIT %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
__global__ void sgemm(int m, int n, int k, const float *a, const float *b, float *c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int p = 0; p < k; ++p)
      sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = sum;
  }
}
// CHECK: // plan sgemm: sgemm_optiml{{[0-9]*}}<<<(ceildiv(grid.x * block.x, 128), ceildiv(grid.y * block.y, 128), 1), (16, 16, 1), shared>>>
// CHECK-DAG: // when n <= grid.x * block.x
// CHECK-DAG: // when m <= grid.y * block.y
// CHECK-DAG: // when disjoint(a, 4 * (k * m), c, 4 * (m * n))
// CHECK: __global__ void __launch_bounds__(256) sgemm_optiml{{[0-9]*}}(
// CHECK: __shared__ __align__(16) float a_tile[8][132];
// CHECK: __shared__ __align__(16) float b_tile[8][128];
// CHECK: int row = blockIdx.y * 128 + threadIdx.y * 8;
// CHECK: float sum[8][8];
// CHECK: for (int p0 = 0; p0 < k; p0 += 8) {
// CHECK: a_tile[{{.*}} ? a[(blockIdx.y * 128 + r) * k + (p0 + {{.*}})] : 0.0f;
// CHECK: __syncthreads();
// CHECK: sum[iy][ix] += a_tile[p][iy + threadIdx.y * 8] * b_tile[p][ix + threadIdx.x * 8];
// CHECK: __syncthreads();
// CHECK: if (row + iy < m && col + ix < n) {
// CHECK-NEXT: c[(row + iy) * n + (col + ix)] = sum[iy][ix];

// EMIT: __global__ void sgemm(int m
// EMIT: __global__ void __launch_bounds__(256) sgemm_optiml{{[0-9]*}}(
// EMIT: static void sgemm_optiml{{[0-9]*}}_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
// EMIT: if (path.enabled(grid, block)
// EMIT: sgemm<<<grid, block, shared, stream>>>(m, n, k, a, b, c);
// EMIT: void run(
// EMIT-NEXT: dim3 grid
// EMIT: sgemm_optiml{{[0-9]*}}_launch(grid, dim3(16, 16), 0, 0, m, n, k, a, b, c);
void run(int m, int n, int k, const float *a, const float *b, float *c) {
  dim3 grid((n + 15) / 16, (m + 15) / 16);
  sgemm<<<grid, dim3(16, 16)>>>(m, n, k, a, b, c);
}
