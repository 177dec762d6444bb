// A window that is clipped by the bounds of its loops gets loops of a constant number of iterations: then it lies in
// shared memory, and a thread has several outputs. The twin for where nothing is clipped has no conditions left, in
// inner loops neither.
// RUN: %plan --passes='split-border[box/j]{style=guard};split-border[box/j/i]{style=guard}' %s | FileCheck %s
// RUN: %plan --passes='split-border[box/j]{style=guard};split-border[box/j/i]{style=guard};block-shape[box]{x=16,y=8};coarsen[box]{style=blocked,x=2,y=2};stage-window[box:in];split-border[box/j]' %s | %check=TWIN
// RUN: optiml-opt --emit --passes='split-border[box/j]{style=guard};split-border[box/j/i]{style=guard};block-shape[box]{x=16,y=8};coarsen[box]{style=blocked,x=2,y=2};stage-window[box:in];split-border[box/j]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: not optiml-opt --passes='split-border[moving/j]{style=guard}' %s 2>&1 | %check=MOVING
// RUN: not optiml-opt --passes='split-border[box/j]{style=other}' %s 2>&1 | %check=STYLE
// RUN: not optiml-opt --passes='split-border[halves/d]' %s 2>&1 | %check=HALVES
// SAME: the same results
// HALVES: split-border[halves/d]: line {{[0-9]+}}: nothing clips a constant number of iterations
// MOVING: split-border[moving/j]{style=guard}: line {{[0-9]+}}: nothing clips a constant number of iterations
// STYLE: the style can be 'guard', or none is told
#include <algorithm>
#include <cstdio>
#include <vector>

// CHECK: for (int j = 0; j < 7; ++j) {
// CHECK-NEXT: int j1 = y - 3 + j;
// CHECK-NEXT: if (j1 >= 0 && j1 < {{.*}}) {
// CHECK-NEXT: for (int i = 0; i < 5; ++i) {
// CHECK-NEXT: int i1 = x - 2 + i;
// CHECK-NEXT: if (i1 >= 0 && i1 < w) {
//
// TWIN: __shared__
// TWIN: if (y - 3 {{.*}} >= 0 &&
// TWIN-NEXT: for (int j = 0; j < 7; ++j) {
// TWIN-NOT: if
// TWIN: sum[iy][ix] +=
// TWIN: } else {
// TWIN: if ({{.*}} < h
__global__ void box(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float sum = 0;
  int first = y - 3;
  if (first < 0)
    first = 0;
  for (int j = max(0, y - 3); j <= min(h - 1, y + 3); ++j)
    for (int i = max(x - 2, 0); i < min(x + 3, w); ++i)
      sum += in[j * w + i] * (j - y + 4);
  out[y * w + x] = sum;
}

// What bounds the window changes within it.
__global__ void moving(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int at = x;
  float sum = 0;
  for (int j = max(0, at - 2); j < min(n, x + 3); ++j) {
    sum += in[j];
    at += 1;
  }
  if (x < n)
    out[x] = sum + at;
}

// In a quotient the counter falls: where it holds for the first, it need not hold for the last.
__global__ void halves(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int d = -3; d < 4; ++d)
    if ((x - d) / 2 >= 1)
      sum += in[(x - d) / 2 - 1];
  if (x < n)
    out[x] = sum;
}

int main() {
  const int w = 53, h = 31;
  std::vector<float> data(w * h);
  for (int i = 0; i < w * h; ++i)
    data[i] = float(i * 7 % 31) / 8;
  float *in, *out;
  cudaMalloc(&in, w * h * sizeof(float));
  cudaMalloc(&out, w * h * sizeof(float));
  cudaMemcpy(in, data.data(), w * h * sizeof(float), cudaMemcpyHostToDevice);
  box<<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(in, out, w, h);
  cudaMemcpy(data.data(), out, w * h * sizeof(float), cudaMemcpyDeviceToHost);
  double all = 0;
  for (float v : data)
    all += v;
  printf("%g\n", all);
  moving<<<(w + 31) / 32, 32>>>(in, out, w);
  cudaMemcpy(data.data(), out, w * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\n", data[w - 1]);
}
