// Windows that are copied 16 bytes at a time: rows of a tile grow to whole pieces, where the array is known to go on.
// RUN: %opt --passes='block-shape[row]{x=64};stage-window[row:in]{wide=1}' %s | %check=ROW
// RUN: %opt --passes='block-shape[filter]{x=16,y=8};coarsen[filter]{x=4,style=blocked};stage-window[filter:in+w]{wide=1,zeros=1}' %s | %check=FILTER
// RUN: %refused --passes='block-shape[open]{x=64};stage-window[open:in]{wide=1}' %s 2>&1 | %check=OPEN
// RUN: %refused --passes='block-shape[clamped]{x=64};stage-window[clamped:in]{wide=1}' %s 2>&1 | %check=RULE
// OPEN: in may end where the last piece of 16 bytes does not
// RULE: in is read by a rule at its edges, not 16 bytes at a time

// RUN: optiml-opt --reread --emit --passes='block-shape[row]{x=64};stage-window[row:in]{wide=1};block-shape[filter]{x=16,y=8};coarsen[filter]{x=4,style=blocked};stage-window[filter:in+w]{wide=1,zeros=1}' %s > %t.cu
// RUN: FileCheck --check-prefix=WHEN %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 84 21 | %check=SAME
// RUN: %verify=%t.cu %s -- 132 9 | %check=SAME
// WHEN: && ((long long)n <= ({{.*}} - 1) * 64 + 70) // what is read 16 bytes at a time ends where in does
// WHEN: && ((long long)n % 4 == 0)
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// Two elements before the block's own and four behind them are read.
// ROW: float in_window[72];
// ROW: const int c = tid * 4;
// ROW: *(float4 *)&in_window[c] = {{.*}}blockIdx.x * 64 + c < n + 4 && {{.*}}3 < {{.*}}blockIdx.x * 64 + c ? *(const float4 *)&in[blockIdx.x * 64 + c - 4] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
// ROW: s += in_window[k + threadIdx.x + 2] * k;
__global__ void row(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  float s = 0;
  for (int k = 0; k < 7; ++k)
    if (x + k >= 2 && x + k - 2 < n)
      s += in[x + k - 2] * k;
  out[x] = s;
}

// FILTER: float in_window[10][72];
// FILTER: *(float4 *)&in_window[r1][c1] =
// FILTER: w_window[
// FILTER: if (all_finite) {
__global__ void filter(const float *in, const float *w, float *out, int width, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r < h) {
    float s = 0;
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 3; ++x) {
        int at = r + y - 1, left = c + x - 1;
        if (at >= 0 && at < h && left >= 0 && left < width)
          s += in[at * width + left] * w[y * 3 + x];
      }
    out[r * width + c] = s;
  }
}

// Nothing says where the input ends.
__global__ void open(const float *in, float *out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < 7; ++k)
    s += in[x + k];
  out[x] = s;
}

__global__ void clamped(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  float s = 0;
  for (int k = 0; k < 7; ++k)
    s += in[min(max(x + k - 3, 0), n - 1)];
  out[x] = s;
}

int main(int argc, char **argv) {
  int n = atoi(argv[1]), h = atoi(argv[2]);
  const float weights[9] = {0.5f, 1, 2, -1, 0.25f, 3, 1.5f, -2, 1};
  float *host = (float *)malloc(n * h * sizeof(float)), *in, *out, *w;
  for (int i = 0; i < n * h; ++i)
    host[i] = float(i * 37 % 101) / 16.0f;
  // The last elements of the allocation are the last ones that are read.
  cudaMalloc(&in, n * h * sizeof(float));
  cudaMalloc(&out, n * h * sizeof(float));
  cudaMalloc(&w, 9 * sizeof(float));
  cudaMemcpy(in, host, n * h * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(w, weights, sizeof weights, cudaMemcpyHostToDevice);
  row<<<(n + 63) / 64, 64>>>(in, out, n);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += host[i] * (i % 7);
  printf("%g\n", sum);
  filter<<<dim3((n + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(in, w, out, n, h);
  cudaMemcpy(host, out, n * h * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n * h; ++i)
    sum += host[i] * (i % 7);
  printf("%g\n", sum);
  return 0;
}
