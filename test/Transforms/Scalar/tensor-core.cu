// Products of tiles by tensor cores, where the user allows their inputs to be rounded.
//
// DEFINE: %{tile} = block-shape[gemm]{x=4,y=16};coarsen[gemm]{x=8,y=2,style=fragments};qualify-pointers[gemm]
// RUN: optiml-opt --fp=tf32 --reread --kernels-only --passes='%{tile};stage-shared[gemm/k:a+b]{tile=16,wide=1,layout=fragments,stages=2};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 | FileCheck %s
// RUN: optiml-opt --fp=tf32 --reread --kernels-only --passes='block-shape[gemm]{x=4,y=16};coarsen[gemm]{x=8,y=4,style=fragments};qualify-pointers[gemm];stage-shared[gemm/k:a+b]{tile=8,wide=1,prefetch=1};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 | %check=ROWS
// RUN: optiml-opt --fp=tf32 --emit --passes='%{tile};stage-shared[gemm/k:a+b]{tile=16,wide=1,layout=fragments,stages=2};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 > %t.cu
// RUN: %nvcc -arch=sm_80 -c %t.cu -o %t.o
// RUN: optiml-run -arch=sm_80 --fp=tf32 --verify=%t.cu %s | %check=SAME
// RUN: not optiml-run -arch=sm_80 --fp=reassoc --verify=%t.cu %s | %check=ROUNDED
// RUN: optiml-opt --fp=tf32 --emit --passes='block-shape[gemm]{x=4,y=8};coarsen[gemm]{x=8,y=4,style=fragments};stage-shared[gemm/k:a+b]{tile=8};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 > %t.narrow.cu
// RUN: optiml-run -arch=sm_80 --fp=tf32 --verify=%t.narrow.cu %s | %check=SAME
// RUN: optiml-opt --fp=tf32 --list-sites --passes='%{tile};stage-shared[gemm/k:a+b]{tile=16}' %s -- -arch=sm_80 | %check=SITES
// RUN: %refused --fp=fast --passes='%{tile};stage-shared[gemm/k:a+b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=EXACT
// RUN: %refused --fp=tf32 --passes='%{tile};stage-shared[gemm/k:a+b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_75 2>&1 | %check=OLD
// RUN: %refused --fp=tf32 --passes='block-shape[gemm]{x=16,y=16};coarsen[gemm]{x=4,y=4};stage-shared[gemm/k:a+b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=SHAPE
// RUN: %refused --fp=tf32 --passes='block-shape[gemm]{x=4,y=16};coarsen[gemm]{x=8,y=2,style=blocked};stage-shared[gemm/k:a+b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=COLUMNS
// RUN: %refused --fp=tf32 --passes='block-shape[gemm]{x=4,y=16};coarsen[gemm]{x=8,y=2,style=strided};stage-shared[gemm/k:a+b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=COLUMNS
// RUN: %refused --fp=tf32 --passes='block-shape[gemm]{x=4,y=16};coarsen[gemm]{x=8,y=1,style=fragments};stage-shared[gemm/k:a+b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=PAIRS
// RUN: %refused --fp=tf32 --passes='%{tile};stage-shared[gemm/k:a+b]{tile=12};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=DEPTH
// RUN: %refused --fp=tf32 --passes='%{tile};stage-shared[gemm/k:b]{tile=16};tensor-core[gemm/k0/k]' %s -- -arch=sm_80 2>&1 | %check=GLOBAL
// RUN: %refused --fp=tf32 --passes='block-shape[scaled]{x=4,y=16};coarsen[scaled]{x=8,y=2,style=fragments};stage-shared[scaled/k:a+b]{tile=16};tensor-core[scaled/k0/k]' %s -- -arch=sm_80 2>&1 | %check=MORE

// CHECK: static __device__ __forceinline__ unsigned [[K:gemm_optiml[0-9]*]]_tf32(float x) {
// CHECK: asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
// CHECK: void [[K]]_multiply(float *upper, float *lower, const unsigned *a, const unsigned *below, const unsigned *b) {
// CHECK: asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
// CHECK: __shared__ __align__(16) float a_tile[2][32][20];
// CHECK: __shared__ __align__(16) float b_tile[2][16][40];
// CHECK: float s[2][4][2];
// CHECK: for (int k = 0; k < 16; k += 8) {
// CHECK-NEXT: unsigned int a_tile_tf32[2][2];
// CHECK: a_tile_tf32[iy][0] = [[K]]_tf32(a_tile[stage][iy * 16 + threadIdx.y][k + threadIdx.x]);
// CHECK-NEXT: a_tile_tf32[iy][1] = [[K]]_tf32(a_tile[stage][iy * 16 + threadIdx.y][k + threadIdx.x + 4]);
// CHECK: unsigned int b_tile_tf32[4][2];
// CHECK: b_tile_tf32[jx][0] = [[K]]_tf32(b_tile[stage][k + threadIdx.x][jx * 8 + threadIdx.y % 8]);
// CHECK-NEXT: b_tile_tf32[jx][1] = [[K]]_tf32(b_tile[stage][k + threadIdx.x + 4][jx * 8 + threadIdx.y % 8]);
// CHECK: for (int iy = 0; iy < 2; iy += 2) {
// CHECK: for (int jx = 0; jx < 4; ++jx) {
// CHECK-NEXT: [[K]]_multiply(&s[iy][jx][0], &s[iy + 1][jx][0], &a_tile_tf32[iy][0], &a_tile_tf32[iy + 1][0], &b_tile_tf32[jx][0]);
// The rest of the kernel is as it was.
// CHECK: if (row + iy * 16 < m && col + jx * 8 + ix < n) {
// CHECK-NEXT: c[{{.*}}] = alpha * s[iy][jx][ix] + beta * c[{{.*}}];

// ROWS: a_tile_tf32[iy][0] =
// ROWS: for (int iy = 0; iy < 4; iy += 2) {
// ROWS: _multiply(&s[iy][jx][0], &s[iy + 1][jx][0], &a_tile_tf32[iy][0], &a_tile_tf32[iy + 1][0], &b_tile_tf32[jx][0]);
// SITES: tensor-core[gemm/k0/k]
// SAME: the same results in {{[0-9]+}} runs
// ROUNDED: not the same
// EXACT: inputs of products may not be rounded to TF32 (--optiml-fp=tf32 allows it)
// OLD: products of TF32 numbers need -arch=sm_80 or later
// SHAPE: blocks must have 4 threads along x and a multiple of 8 along y
// COLUMNS: a thread has no two adjacent columns (coarsen with style=fragments)
// PAIRS: a thread has no even number of rows
// DEPTH: the loop does not run from 0 to a multiple of 8
// GLOBAL: the loops hold more than a sum of products of two elements
__global__ void gemm(const float *a, const float *b, float *c, int m, int n, int depth, float alpha, float beta) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float s = 0;
    for (int k = 0; k < depth; ++k)
      s += a[row * depth + k] * b[k * n + col];
    c[row * n + col] = alpha * s + beta * c[row * n + col];
  }
}

// MORE: the loops hold more than a sum of products of two elements
__global__ void scaled(const float *a, const float *b, float *c, int m, int n, int depth) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float s = 0;
    for (int k = 0; k < depth; ++k)
      s += 2.0f * a[row * depth + k] * b[k * n + col];
    c[row * n + col] = s;
  }
}

int main() {
  float *a, *b, *c, host[80 * 80];
  for (int i = 0; i < 80 * 80; ++i)
    host[i] = (i * 7919 % 1009 - 500) / 313.0f;
  const int sizes[][3] = {{72, 76, 36}, {33, 36, 4}, {40, 44, 20}};
  for (const int *size : sizes) {
    cudaMalloc(&a, sizeof host);
    cudaMalloc(&b, sizeof host);
    cudaMalloc(&c, sizeof host);
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(c, host, sizeof host, cudaMemcpyHostToDevice);
    gemm<<<dim3(5, 5), dim3(16, 16)>>>(a, b, c, size[0], size[1], size[2], 1.5f, 0.5f);
    static float result[80 * 80];
    cudaMemcpy(result, c, sizeof result, cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
  }
}
