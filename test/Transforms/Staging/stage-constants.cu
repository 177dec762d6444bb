// stage-constants: tables in constant memory that threads read at places of their own.
// RUN: %opt --passes='block-shape[score]{x=64,y=1};stage-constants[score];grid-stride[window]{x=128,blocks=2};stage-constants[window];block-shape[neighbours]{x=32,y=4};stage-constants[neighbours]' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[score]{x=64,y=1};stage-constants[score];grid-stride[window]{x=128,blocks=2};stage-constants[window];block-shape[neighbours]{x=32,y=4};stage-constants[neighbours]' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --passes='block-shape[alike]{x=64,y=1};stage-constants[alike]' %s 2>&1 | %check=ALIKE
// RUN: %refused --passes='stage-constants[score]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[large]{x=64,y=1};stage-constants[large]' %s 2>&1 | %check=ALIKE
// RAN-NOT: 0 optimized
// SAME: the same results
// ALIKE: no array of constants is read at places that differ between threads
// SHAPE: the block shape is not fixed yet
#include <cstdio>

constexpr int Motifs = 3, Length = 4;
__constant__ int weights[Motifs][Length][5];
__constant__ float taper[40];
__constant__ int dx[8] = {1, 1, 0, -1, -1, -1, 0, 1}, dy[8] = {0, 1, 1, 1, 0, -1, -1, -1};
__constant__ float wide[8192];

// The letter decides.
__global__ void score(const unsigned char *text, int *scores, size_t places) {
  size_t p = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  int m = blockIdx.y;
  if (p >= places)
    return;
  int sum = 0;
  for (int k = 0; k < Length; k++)
    sum += weights[m][k][text[p + k] % 5];
  scores[m * places + p] = sum;
}
// CHECK: score_optiml{{2?}}(
// CHECK: __shared__ int weights_of_block[3][4][5];
// CHECK: for (int k1 = threadIdx.x; k1 < 60; k1 += 64) {
// CHECK-NEXT: (&weights_of_block[0][0][0])[k1] = (&weights[0][0][0])[k1];
// CHECK: __syncthreads();
// CHECK: sum += weights_of_block[m][k][text[p + k] % 5];

// The thread does.
__global__ void window(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] * taper[i % 40];
}
// CHECK: window_optiml{{2?}}(
// CHECK: taper_of_block[k] = taper[k];
// CHECK: * taper_of_block[i % 40];

__global__ void neighbours(const int *x, int *y, int width, int height) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= width || row >= height)
    return;
  int d = x[row * width + col] & 7;
  int c = min(max(col + dx[d], 0), width - 1), r = min(max(row + dy[d], 0), height - 1);
  y[row * width + col] = x[r * width + c];
}
// CHECK: neighbours_optiml{{2?}}(
// CHECK: __shared__ int dx_of_block[8];
// CHECK: __shared__ int dy_of_block[8];
// CHECK: for (int k = threadIdx.x + threadIdx.y * 32; k < 8; k += 128) {
// CHECK: dy_of_block[d]

__global__ void alike(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < 4; ++k)
      y[i] += x[i] * taper[k + blockIdx.y];
}

__global__ void large(const unsigned short *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = wide[x[i] & 8191];
}

int main() {
  const int n = 300, width = 37, height = 8;
  unsigned char *text;
  int *scores, *image, *moved;
  float *x, *y;
  unsigned short *places;
  cudaMallocManaged(&text, n + Length);
  cudaMallocManaged(&scores, Motifs * n * sizeof(int));
  cudaMallocManaged(&image, width * height * sizeof(int));
  cudaMallocManaged(&moved, width * height * sizeof(int));
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&places, n * sizeof(short));
  int w[Motifs][Length][5];
  float t[40];
  for (int i = 0; i < Motifs * Length * 5; ++i)
    w[0][0][i] = i * 7 % 11 - 5;
  for (int i = 0; i < 40; ++i)
    t[i] = i / 40.0f;
  cudaMemcpyToSymbol(weights, w, sizeof w);
  cudaMemcpyToSymbol(taper, t, sizeof t);
  for (int i = 0; i < n; ++i) {
    text[i] = i * 3 % 5;
    x[i] = i % 9 - 4;
    places[i] = i;
  }
  for (int i = 0; i < Length; ++i)
    text[n + i] = 4;
  for (int i = 0; i < width * height; ++i)
    image[i] = i * 5 % 23;
  score<<<dim3((n + 63) / 64, Motifs), 64>>>(text, scores, n);
  window<<<(n + 127) / 128, 128>>>(x, y, n);
  neighbours<<<dim3(2, 2), dim3(32, 4)>>>(image, moved, width, height);
  alike<<<(n + 63) / 64, 64>>>(x, y, n);
  large<<<(n + 63) / 64, 64>>>(places, x, n);
  cudaDeviceSynchronize();
  printf("%d %g %d %g\n", scores[n + 5], y[77], moved[40], x[3]);
}
