// What a copy loads under its guard, and computes with where no guard is needed, has a place for each copy: also where
// the variable that is computed is declared behind it.
// RUN: %opt --passes='block-shape[mix]{x=8,y=8};coarsen[mix]{style=strided,x=1,y=4}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[mix]{x=8,y=8};coarsen[mix]{style=strided,x=1,y=4}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// CHECK: float d[4];
// CHECK: if (x < n && y + iy * 8 < n) {
// CHECK-NEXT: d[iy] = depth[
// CHECK: v_x[iy] = (v_x[iy] * v_y[iy] + d[iy]) / (v_y[iy] + 1);
// SAME: the same results
#include <cstdio>
#include <vector>
__global__ void mix(float2 *volume, const float *depth, int n, int turns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n)
    return;
  for (int turn = 0; turn < turns; turn++) {
    float d = depth[(x * 3 + y) & 63] - turn;
    float2 v = volume[y * n + x];
    v.x = (v.x * v.y + d) / (v.y + 1);
    v.y += 1;
    volume[y * n + x] = v;
  }
}
int main() {
  const int n = 50;
  std::vector<float2> cells(n * n);
  std::vector<float> d(64);
  for (int i = 0; i < 64; i++)
    d[i] = i * 0.5f;
  for (int i = 0; i < n * n; i++)
    cells[i] = {float(i % 11), float(i % 5)};
  float2 *volume;
  float *depth;
  cudaMalloc(&volume, n * n * sizeof(float2));
  cudaMalloc(&depth, 64 * sizeof(float));
  cudaMemcpy(volume, cells.data(), n * n * sizeof(float2), cudaMemcpyHostToDevice);
  cudaMemcpy(depth, d.data(), 64 * sizeof(float), cudaMemcpyHostToDevice);
  mix<<<dim3(7, 7), dim3(8, 8)>>>(volume, depth, n, 3);
  cudaMemcpy(cells.data(), volume, n * n * sizeof(float2), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n * n; i++)
    sum += cells[i].x * (i % 7) + cells[i].y;
  printf("%.6g\n", sum);
  return 0;
}
