// Indices that are clamped or mirrored step by step, in place or by a helper, are one expression each.
// RUN: %opt --passes='block-shape[steps]{x=32,y=4};stage-window[steps:in]' %s | %check=STEPS
// RUN: %opt --passes='block-shape[helper]{x=32,y=4};stage-window[helper:in]' %s | %check=HELPER
// RUN: %opt --passes='block-shape[others]{x=64}' %s | %check=OTHERS
// RUN: optiml-opt --emit --passes='block-shape[steps]{x=32,y=4};stage-window[steps:in];block-shape[helper]{x=32,y=4};stage-window[helper:in];block-shape[others]{x=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 37 21 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 64 5 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 37 21 2>&1 | %check=RAN
// RAN-DAG: steps: 1 optimized, 0 original launches
// RAN-DAG: helper: 1 optimized, 0 original launches
// RAN-DAG: others: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// STEPS: ? in[min(max(row, 0), h - 1) * w + (column < 0 ? 0 - column >= w ? {{.*}} : 0 - column : column >= w ? w * 2 - 2 - column : column)] : 0.0f;
// STEPS: s += in_window[dy + threadIdx.y][dx + threadIdx.x];
__global__ void steps(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float s = 0;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++) {
      int yy = y + dy;
      if (yy < 0)
        yy = 0;
      if (h <= yy)
        yy = h - 1;
      int xx = x + dx;
      if (xx < 0)
        xx = -xx;
      if (xx >= w)
        xx = 2 * w - 2 - xx;
      s += in[yy * w + xx];
    }
  out[y * w + x] = s;
}

__device__ int clamped(int i, int n) {
  if (i >= n)
    i = n - 1;
  if (i < 0)
    i = 0;
  return i;
}
__device__ int wrapped(int i, int n) {
  if (i < 0)
    i += n;
  else if (i >= n)
    i -= n;
  return i;
}
// HELPER: ? in[max(min(row, h - 1), 0) * w + max(min(column, w - 1), 0)] : 0.0f;
// HELPER: s += in_window[
__global__ void helper(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float s = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      s += in[clamped(y + dy, h) * w + clamped(x + dx, w)];
  out[y * w + x] = s;
}

// What memory decides, what changes again and what no index is made of stays as it is; other bounds are no minimum.
// OTHERS: int a = i;
// OTHERS-NEXT: if (in[i] < 0) {
// OTHERS-NEXT: a = 0;
// OTHERS: int b = i;
// OTHERS-NEXT: if (b > 3) {
// OTHERS-NEXT: b = 3;
// OTHERS: int c = min(i, 5);
// OTHERS-NEXT: int d = i < 7 ? 5 : i;
// OTHERS-NEXT: unsigned int e = i;
// OTHERS-NEXT: int f = 1;
// OTHERS-NEXT: if (i < 4) {
// OTHERS-NEXT: f = 2;
// OTHERS: b += 1;
// OTHERS-NEXT: int i_1 = i + 1 < 0 ? i + 1 + n : i + 1 >= n ? i + 1 - n : i + 1;
__global__ void others(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int a = i;
  if (in[i] < 0)
    a = 0;
  int b = i;
  if (b > 3)
    b = 3;
  int c = i;
  if (c >= 5)
    c = 5;
  int d = i;
  if (d < 7)
    d = 5;
  unsigned e = i;
  int f = 1;
  if (i < 4)
    f = 2;
  b += 1;
  out[i] = in[a] + in[b % n] + in[c % n] + in[d % n] + in[e] + f + in[wrapped(i + 1, n)];
}

int main(int argc, char **argv) {
  int w = argc > 1 ? atoi(argv[1]) : 37, h = argc > 2 ? atoi(argv[2]) : 21, n = w * h;
  float *in, *out[3];
  cudaMallocManaged(&in, n * sizeof(float));
  for (float *&o : out)
    cudaMallocManaged(&o, n * sizeof(float));
  for (int i = 0; i < n; i++)
    in[i] = i * 37 % 101 - 20;
  dim3 block(16, 8), grid((w + 15) / 16, (h + 7) / 8);
  steps<<<grid, block>>>(in, out[0], w, h);
  helper<<<grid, block>>>(in, out[1], w, h);
  others<<<(n + 127) / 128, 128>>>(in, out[2], n);
  cudaDeviceSynchronize();
  double sum = 0;
  for (float *o : out)
    for (int i = 0; i < n; i++)
      sum += o[i] * (i % 7 + 1);
  printf("%g\n", sum);
}
