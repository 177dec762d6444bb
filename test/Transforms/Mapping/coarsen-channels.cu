// A convolution whose blocks take an image and a filter from one index by / and %: with outputs of several filters
// a thread,
// the pixels are loaded once, and the filters, which are read under conditions on the pixel, are copied whole.
// RUN: %plan --passes='block-shape[conv]{x=16,y=8};coarsen[conv]{x=2,y=1,z=4,style=strided}' %s | FileCheck %s
// RUN: %plan --passes='block-shape[conv]{x=16,y=8};coarsen[conv]{x=2,y=1,z=4,style=strided};stage-shared[conv/c:x+w]{tile=2}' %s | %check=TILE
// RUN: %plan --passes='block-shape[rows]{x=64,y=1};coarsen[rows]{x=4}' %s | %check=ROWS
// RUN: %plan --passes='block-shape[odd]{x=64,y=1};coarsen[odd]{x=4}' %s | %check=ODD
// RUN: optiml-opt --emit --passes='block-shape[conv]{x=16,y=8};coarsen[conv]{x=2,y=1,z=4,style=strided};stage-shared[conv/c:x+w]{tile=2};block-shape[rows]{x=64,y=1};coarsen[rows]{x=4}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Shape {
  int C, H, W, K;
};

// CHECK: when s.K >= 1
// CHECK: when s.K % 4 == 0  (what is computed together has one quotient)
// CHECK: const int n = blockIdx.z * 4 / s.K;
// CHECK: int j = q - 1 + t;
// CHECK: for (int ix = 0; ix < 2; ++ix) {
// CHECK-NEXT: if (
// CHECK: for (int iz = 0; iz < 4; ++iz) {
// CHECK-NEXT: acc[iz][ix] += x[
//
// TILE: when s.W >= 3  (one thread reads all that is copied)
// TILE: when s.H >= 3  (one thread reads all that is copied)
// TILE: w_tile{{.*}} < s.C * 9 ? w[
// TILE: float w_tile_held[4];
// TILE: if (j + ix * 16 >= 0 && j + ix * 16 < s.W) {
__global__ void conv(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, Shape s) {
  int q = blockIdx.x * blockDim.x + threadIdx.x;
  int p = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z % s.K;
  const int n = blockIdx.z / s.K;
  if (q >= s.W || p >= s.H)
    return;
  float acc = 0;
  for (int c = 0; c < s.C; ++c)
    for (int r = 0; r < 3; ++r) {
      int i = p - 1 + r;
      if (i < 0 || i >= s.H)
        continue;
      for (int t = 0; t < 3; ++t) {
        int j = q - 1 + t;
        if (j < 0 || j >= s.W)
          continue;
        acc += x[((n * s.C + c) * s.H + i) * s.W + j] * w[((k * s.C + c) * 3 + r) * 3 + t];
      }
    }
  y[((n * s.K + k) * s.H + p) * s.W + q] = acc;
}

// Not all of a block's indices have one quotient, but those of a thread.
// ROWS: when width % 4 == 0
// ROWS: (blockIdx.x * 256 + threadIdx.x * 4) / width
__global__ void rows(const float *__restrict__ a, float *__restrict__ b, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    b[i] = a[i / width] + i % width;
}

// 6 indices do not hold 4 twice.
// ODD-NOT: % 4 == 0
// ODD: (i + ix) / 6
__global__ void odd(const float *__restrict__ a, float *__restrict__ b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    b[i] = a[i / 6] + i % 6;
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 20, images = 2;
  Shape s{5, size, size + 3, 8};
  std::vector<float> x(images * s.C * s.H * s.W), w(s.K * s.C * 9), y(images * s.K * s.H * s.W);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i * 7 % 23) - 11;
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(i * 5 % 13) - 6;
  float *dx, *dw, *dy;
  cudaMalloc(&dx, x.size() * 4);
  cudaMalloc(&dw, w.size() * 4);
  cudaMalloc(&dy, y.size() * 4);
  cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dw, w.data(), w.size() * 4, cudaMemcpyHostToDevice);
  conv<<<dim3((s.W + 15) / 16, (s.H + 7) / 8, images * s.K), dim3(16, 8)>>>(dx, dw, dy, s);
  cudaMemcpy(y.data(), dy, y.size() * 4, cudaMemcpyDeviceToHost);
  rows<<<4, 64>>>(dx, dy, 200, 12);
  cudaMemcpy(y.data(), dy, 800, cudaMemcpyDeviceToHost);
  std::printf("%g\n", y[33]);
}
