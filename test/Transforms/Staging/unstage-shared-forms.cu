// unstage-shared: the many ways in which tiles are written. Each ends as the plain kernel.
// RUN: %plan --block=16x16x1 --passes='unstage-shared[pmpp];unstage-shared[guide];unstage-shared[inside]' %s | FileCheck %s
// RUN: %opt --block=256x1x1 --passes='unstage-shared[nbody];unstage-shared[nbody2];unstage-shared[nbody3]' %s | %check=BODIES
// RUN: optiml-opt --reread --emit --block=16x16x1 --passes='unstage-shared[pmpp];unstage-shared[guide];unstage-shared[inside]' %s > %t.cu
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 37 51 29 | %check=SAME
// RUN: optiml-run --coverage=8 --verify=%t.cu %s -- 48 48 48 | %check=SAME
// RUN: optiml-opt --reread --emit --block=256x1x1 --passes='unstage-shared[nbody];unstage-shared[nbody2];unstage-shared[nbody3]' %s > %t.bodies.cu
// RUN: optiml-run --coverage=10 --verify=%t.bodies.cu %s -- 37 51 29 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <math.h>
#define TILE_WIDTH 16

// The number of tiles in floating point: sizes that float holds well enough.
// CHECK: plan pmpp
// CHECK: when Width <= 1048576
// CHECK: plan guide
// CHECK: when A.width % 16 == 0
// CHECK: if (Row < Width && Col < Width) {
// CHECK: for (int k = 0; k < Width; ++k) {
// CHECK-NEXT: Pvalue += M[Row * Width + k] * N[Width * k + Col];
__global__ void pmpp(float *M, float *N, float *P, int Width) {
  __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
  __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
  int bx = blockIdx.x; int by = blockIdx.y; int tx = threadIdx.x; int ty = threadIdx.y;
  int Row = by * TILE_WIDTH + ty; int Col = bx * TILE_WIDTH + tx;
  float Pvalue = 0;
  for (int ph = 0; ph < ceil(Width/(float)TILE_WIDTH); ++ph) {
    if ((Row < Width) && (ph*TILE_WIDTH+tx) < Width)
      Mds[ty][tx] = M[Row*Width + ph*TILE_WIDTH + tx];
    else Mds[ty][tx] = 0.0f;
    if ((ph*TILE_WIDTH+ty) < Width && Col < Width)
      Nds[ty][tx] = N[(ph*TILE_WIDTH + ty)*Width + Col];
    else Nds[ty][tx] = 0.0f;
    __syncthreads();
    for (int k = 0; k < TILE_WIDTH; ++k) Pvalue += Mds[ty][k] * Nds[k][tx];
    __syncthreads();
  }
  if ((Row < Width) && (Col < Width)) P[Row*Width + Col] = Pvalue;
}

// Matrices as structs, and tiles of them: a variable for each member.
// CHECK: for (int e = 0; e < A.width; ++e) {
// CHECK-NEXT: Cvalue += A.elements[(long long)(blockIdx.y * blockDim.y + threadIdx.y) * A.stride + e] * B.elements[(long long)blockIdx.x * blockDim.x + threadIdx.x + (long long)e * B.stride];
struct Matrix { int width, height, stride; float *elements; };
__device__ float GetElement(const Matrix A, int row, int col) { return A.elements[row * A.stride + col]; }
__device__ void SetElement(Matrix A, int row, int col, float value) { A.elements[row * A.stride + col] = value; }
__device__ Matrix GetSubMatrix(Matrix A, int row, int col) {
  Matrix Asub; Asub.width = 16; Asub.height = 16; Asub.stride = A.stride;
  Asub.elements = &A.elements[A.stride * 16 * row + 16 * col];
  return Asub;
}
__global__ void guide(Matrix A, Matrix B, Matrix C) {
  int blockRow = blockIdx.y, blockCol = blockIdx.x;
  Matrix Csub = GetSubMatrix(C, blockRow, blockCol);
  float Cvalue = 0;
  int row = threadIdx.y, col = threadIdx.x;
  for (int m = 0; m < (A.width / 16); ++m) {
    Matrix Asub = GetSubMatrix(A, blockRow, m);
    Matrix Bsub = GetSubMatrix(B, m, blockCol);
    __shared__ float As[16][16];
    __shared__ float Bs[16][16];
    As[row][col] = GetElement(Asub, row, col);
    Bs[row][col] = GetElement(Bsub, row, col);
    __syncthreads();
    for (int e = 0; e < 16; ++e) Cvalue += As[row][e] * Bs[e][col];
    __syncthreads();
  }
  SetElement(Csub, row, col, Cvalue);
}

// Zeros that no read finds, before the loop.
// CHECK: for (int j = 0; j < K; ++j) {
// CHECK-NEXT: Cvalue += A[Row * K + j] * B[N * j + Col];
__global__ void inside(const float *A, const float *B, float *C, int M, int N, int K) {
  __shared__ float sA[16][16]; __shared__ float sB[16][16];
  int Row = blockDim.y * blockIdx.y + threadIdx.y, Col = blockDim.x * blockIdx.x + threadIdx.x;
  float Cvalue = 0.0;
  sA[threadIdx.y][threadIdx.x] = 0.0;
  sB[threadIdx.y][threadIdx.x] = 0.0;
  for (int ph = 0; ph < (((K - 1) / 16) + 1); ph++) {
    if ((Row < M) && (threadIdx.x + (ph * 16)) < K)
      sA[threadIdx.y][threadIdx.x] = A[(Row * K) + threadIdx.x + (ph * 16)];
    else sA[threadIdx.y][threadIdx.x] = 0.0;
    if (Col < N && (threadIdx.y + ph * 16) < K) sB[threadIdx.y][threadIdx.x] = B[(threadIdx.y + ph * 16) * N + Col];
    else sB[threadIdx.y][threadIdx.x] = 0.0;
    __syncthreads();
    for (int j = 0; j < 16; ++j) Cvalue += sA[threadIdx.y][j] * sB[j][threadIdx.x];
    __syncthreads();
  }
  if (Row < M && Col < N) C[Row * N + Col] = Cvalue;
}

// Tiles of one dimension, counted beside the offset.
// BODIES: for (int j = 0; j < n; ++j) {
// BODIES-NEXT: float dx = pos[j].x - me_x;
__device__ float3 inter(float4 a, float4 b, float3 acc) {
  float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
  float d = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
  float s = b.w * d * d * d;
  acc.x += dx * s; acc.y += dy * s; acc.z += dz * s;
  return acc;
}
__global__ void nbody(const float4 *pos, float4 *out, int n) {
  extern __shared__ float4 sh[];
  int gid = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = pos[gid];
  float3 acc = {0, 0, 0};
  for (int i = 0, tile = 0; i < n; i += blockDim.x, tile++) {
    int idx = tile * blockDim.x + threadIdx.x;
    sh[threadIdx.x] = pos[idx];
    __syncthreads();
    for (int j = 0; j < blockDim.x; j++) acc = inter(me, sh[j], acc);
    __syncthreads();
  }
  out[gid] = make_float4(acc.x, acc.y, acc.z, 0);
}
// The last tile ends early, by the loop's condition,
// BODIES: for (int k = 0; k < n; ++k) {
// BODIES-NEXT: float dx = x[k] - xi;
__global__ void nbody2(const float *x, const float *y, float *fx, int n) {
  __shared__ float sx[256], sy[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float xi = i < n ? x[i] : 0, yi = i < n ? y[i] : 0, f = 0;
  for (int t = 0; t < n; t += 256) {
    int j = t + threadIdx.x;
    sx[threadIdx.x] = j < n ? x[j] : 0.0f;
    sy[threadIdx.x] = j < n ? y[j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 256 && t + k < n; ++k) {
      float dx = sx[k] - xi, dy = sy[k] - yi;
      f += dx * rsqrtf(dx * dx + dy * dy + 0.01f);
    }
    __syncthreads();
  }
  if (i < n) fx[i] = f;
}
// and by its length.
// BODIES: for (int k = 0; k < n; ++k) {
// BODIES-NEXT: float dx = x[k] - xi;
__global__ void nbody3(const float *x, const float *y, float *fx, int n) {
  __shared__ float sx[256], sy[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float xi = 0, yi = 0, f = 0;
  if (i < n) { xi = x[i]; yi = y[i]; }
  for (int t = 0; t < (n + 255) / 256; ++t) {
    int j = t * 256 + threadIdx.x;
    if (j < n) { sx[threadIdx.x] = x[j]; sy[threadIdx.x] = y[j]; }
    __syncthreads();
    int m = min(256, n - t * 256);
    if (i < n)
    for (int k = 0; k < m; ++k) {
      float dx = sx[k] - xi, dy = sy[k] - yi;
      f += dx * rsqrtf(dx * dx + dy * dy + 0.01f);
    }
    __syncthreads();
  }
  if (i < n) fx[i] = f;
}

int main(int argc, char **argv) {
  int m = argc > 3 ? atoi(argv[1]) : 64, n = argc > 3 ? atoi(argv[2]) : 32, k = argc > 3 ? atoi(argv[3]) : 48,
      size = 128 * 128;
  float *a, *b, *c;
  float4 *p, *q;
  cudaMallocManaged(&a, sizeof(float) * size);
  cudaMallocManaged(&b, sizeof(float) * size);
  cudaMallocManaged(&c, sizeof(float) * size);
  cudaMallocManaged(&p, sizeof(float4) * 512);
  cudaMallocManaged(&q, sizeof(float4) * 512);
  for (int i = 0; i < size; ++i) {
    a[i] = i * 37 % 101 * 0.01f - 0.5f;
    b[i] = i * 53 % 97 * 0.01f - 0.5f;
    c[i] = 1;
  }
  for (int i = 0; i < 512; ++i)
    p[i] = make_float4(a[i], b[i], a[i + 512], 1);
  dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16), square((m + 15) / 16, (m + 15) / 16);
  pmpp<<<square, block>>>(a, b, c, m);
  inside<<<grid, block>>>(a, b, c, m, n, k);
  guide<<<dim3(n / 16, m / 16), block>>>({k, m, k, a}, {n, k, n, b}, {n, m, n, c});
  nbody<<<2, 256, 256 * sizeof(float4)>>>(p, q, 512);
  nbody2<<<2, 256>>>(a, b, c, 256 + n);
  nbody3<<<2, 256>>>(a, b, c + 512, 256 + n);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < size; ++i)
    sum += c[i] * (i % 7 + 1);
  printf("%.6g %.6g\n", sum, q[100].x);
}
