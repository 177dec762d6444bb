// Outputs of a thread in pieces: neighbouring threads' pieces lie side by side, so that wide reads of shared memory
// meet in no bank; and as fragments of tensor cores lie.
//
// RUN: %opt --passes='block-shape[product]{x=16,y=8};coarsen[product]{x=8,y=2,style=pieces};stage-shared[product/k:a+b]{tile=8}' %s | FileCheck %s
// RUN: %opt --passes='block-shape[product]{x=4,y=16};coarsen[product]{x=8,y=2,style=fragments}' %s | %check=FRAGMENTS
// RUN: optiml-opt --emit --passes='block-shape[product]{x=8,y=8};coarsen[product]{x=8,y=8,style=pieces};stage-shared[product/k:a+b]{tile=8,wide=1,prefetch=1}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: optiml-opt --emit --passes='block-shape[blocks]{x=16,y=1};coarsen[blocks]{x=8,style=pieces}' %s > %t.blocks.cu
// RUN: %verify=%t.blocks.cu %s | %check=SAME
// RUN: %plan --passes='block-shape[blocks]{x=16,y=1};coarsen[blocks]{x=8,style=pieces}' %s | %check=BLOCKS
// RUN: %refused --passes='block-shape[product]{x=16,y=8};coarsen[product]{x=6,y=2,style=pieces}' %s 2>&1 | %check=WHOLE
// RUN: %refused --passes='block-shape[product]{x=16,y=8};coarsen[product]{x=4,y=4,style=pieces}' %s 2>&1 | %check=ONE
// RUN: %refused --passes='block-shape[product]{x=16,y=8};coarsen[product]{x=4,y=4,style=diagonal}' %s 2>&1 | %check=STYLE

// Two pieces of four columns, 64 columns apart; two rows are one piece.
// CHECK: int row = blockIdx.y * 16 + threadIdx.y * 2;
// CHECK: int col = blockIdx.x * 128 + threadIdx.x * 4;
// CHECK: float s[2][2][4];
// CHECK: for (int iy = 0; iy < 2; ++iy) {
// CHECK: for (int jx = 0; jx < 2; ++jx) {
// CHECK: for (int ix = 0; ix < 4; ++ix) {
// CHECK: s[iy][jx][ix] += a_tile[k][iy + threadIdx.y * 2] * b_tile[k][ix + jx * 64 + threadIdx.x * 4];
// CHECK: if (row + iy < m && col + jx * 64 + ix < n) {
// CHECK-NEXT: c[(row + iy) * n + (col + jx * 64 + ix)] = s[iy][jx][ix];
// Pieces of two along x, strided along y.
// FRAGMENTS: int row = blockIdx.y * 32 + threadIdx.y;
// FRAGMENTS: int col = blockIdx.x * 32 + threadIdx.x * 2;
// FRAGMENTS: c[(row + iy * 16) * n + (col + jx * 8 + ix)] = s[iy][jx][ix];
// WHOLE: 6 outputs along x are not whole pieces of 4
// ONE: more than one piece of 4 outputs is wanted along some axis
// STYLE: the style must be 'blocked', 'strided', 'pieces' or 'fragments'
// SAME: the same results in {{[0-9]+}} runs
__global__ void product(const float *a, const float *b, float *c, int m, int n, int depth) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float s = 0;
    for (int k = 0; k < depth; ++k)
      s += a[row * depth + k] * b[k * n + col];
    c[row * n + col] = s;
  }
}

// An index that is taken apart: a thread's pieces are apart,
// so the quotient is that of the block, not of the thread's first index.
// BLOCKS: // when width % 128 == 0
// BLOCKS: y[i + jx * 64 + ix] = x[(int)(blockIdx.x * 128) / width] + (float)((int)(blockIdx.x * 128 + threadIdx.x * 4 + jx * 64 + ix) - (int)(blockIdx.x * 128) / width * width);
__global__ void blocks(const float *x, float *y, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i / width] + float(i % width);
}

int main() {
  static float host[2000], result[2000];
  for (int i = 0; i < 2000; ++i)
    host[i] = (i * 7919 % 1009 - 500) / 313.0f;
  float *a, *b, *c;
  cudaMalloc(&a, sizeof host);
  cudaMalloc(&b, sizeof host);
  cudaMalloc(&c, sizeof host);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
  product<<<dim3(3, 3), dim3(16, 16)>>>(a, b, c, 39, 44, 36);
  cudaMemcpy(result, c, 39 * 44 * sizeof(float), cudaMemcpyDeviceToHost);
  blocks<<<16, 64>>>(a, c, 1001, 128);
  cudaMemcpy(result, c, 1001 * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}
