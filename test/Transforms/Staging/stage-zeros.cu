// Windows whose tile holds zeros outside of the image: nothing is tested where they are added.
// RUN: %opt --passes='split-border[blur/y]{style=guard};split-border[blur/y/x]{style=guard};block-shape[blur]{x=16,y=8};stage-window[blur:in]{zeros=1}' %s | %check=BLUR
// RUN: %opt --passes='block-shape[filter]{x=16,y=8};coarsen[filter]{x=2,style=blocked};stage-window[filter:in+w]{zeros=1}' %s | %check=FILTER
// RUN: %refused --passes='block-shape[filter]{x=16,y=8};stage-window[filter:in]{zeros=1}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[counts]{x=16,y=8};stage-window[counts:in]{zeros=1}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[largest]{x=16,y=8};stage-window[largest:in]{zeros=1}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[inner]{x=16,y=8};stage-window[inner:in+w]{zeros=1}' %s 2>&1 | %check=NONE
// RUN: %opt --passes='block-shape[neighbours]{x=16,y=8};stage-window[neighbours:in]{zeros=1}' %s | %check=NEIGHBOURS
// RUN: %refused --fp=strict --passes='block-shape[filter]{x=16,y=8};stage-window[filter:in+w]{zeros=1}' %s 2>&1 | %check=STRICT
// NONE: no test could go in favour of zeros in a tile
// STRICT: zeros may change the sign of a zero (--optiml-fp=strict)

// RUN: optiml-opt --reread --emit --passes='split-border[blur/y]{style=guard};split-border[blur/y/x]{style=guard};block-shape[blur]{x=16,y=8};stage-window[blur:in]{zeros=1};block-shape[filter]{x=16,y=8};coarsen[filter]{x=2,style=blocked};stage-window[filter:in+w]{zeros=1};block-shape[neighbours]{x=16,y=8};stage-window[neighbours:in]{zeros=1}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 37 21 | %check=SAME
// A weight that is infinite, and one that is no number.
// RUN: optiml-run %s -- 40 20 inf > %t.1 && optiml-run %t.cu -- 40 20 inf > %t.2 && cmp %t.1 %t.2
// RUN: optiml-run %s -- 40 20 nan > %t.1 && optiml-run %t.cu -- 40 20 nan > %t.2 && cmp %t.1 %t.2
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// Only sums: there is no factor that could be infinite.
// BLUR-NOT: __syncthreads_and
// BLUR: for (int y = 0; y < 5; ++y) {
// BLUR-NEXT: for (int x = 0; x < 5; ++x) {
// BLUR-NEXT: s += in_window[y + threadIdx.y][x + threadIdx.x];
__global__ void blur(const float *in, float *out, int w, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c >= w || r >= h)
    return;
  float s = 0;
  for (int y = max(r - 2, 0); y <= min(r + 2, h - 1); ++y)
    for (int x = max(c - 2, 0); x <= min(c + 2, w - 1); ++x)
      s += in[y * w + x];
  out[r * w + c] = s / 25.0f;
}

// FILTER: finite = finite && fabsf(w_window[e1]) <= 3.402823466e+38f;
// FILTER: const int all_finite = __syncthreads_and(finite);
// FILTER: if (all_finite) {
// FILTER-NEXT: for (int y = 0; y < 3; ++y) {
// FILTER-NEXT: for (int x = 0; x < 3; ++x) {
// FILTER-NEXT: #pragma unroll
// FILTER-NEXT: for (int ix = 0; ix < 2; ++ix) {
// FILTER-NEXT: s[ix] = fmaf(
// FILTER: } else {
// FILTER: >= 0 && {{.*}} < h
__global__ void filter(const float *in, const float *w, float *out, int width, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r < h) {
    float s = 0;
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 3; ++x) {
        int at = r + y - 1, left = c + x - 1;
        if (at >= 0 && at < h && left >= 0 && left < width)
          s = fmaf(in[at * width + left], w[y * 3 + x], s);
      }
    out[r * width + c] = s;
  }
}

// What is added outside is no zero.
__global__ void counts(const float *in, float *out, int width, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r < h) {
    float s = 0;
    for (int x = 0; x < 3; ++x)
      if (c + x >= 1 && c + x - 1 < width)
        s += in[r * width + c + x - 1] + 1.0f;
    out[r * width + c] = s;
  }
}

// A zero may be the largest.
__global__ void largest(const float *in, float *out, int width, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r < h) {
    float s = -1e30f;
    for (int x = 0; x < 3; ++x)
      if (c + x >= 1 && c + x - 1 < width)
        s = fmaxf(s, in[r * width + c + x - 1]);
    out[r * width + c] = s;
  }
}

// The test is not about the element: it holds for some threads that read it, and for others not.
__global__ void inner(const float *in, const float *w, float *out, int width, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r < h) {
    float s = 0;
    for (int x = 0; x < 3; ++x)
      if (x + c < 20)
        s += in[r * (width + 2) + c + 2 - x] * w[x];
    out[r * width + c] = s;
  }
}

// One of three elements is outside where the test on columns fails, and the others are not. The test on rows is of all.
// NEIGHBOURS: if (c >= 1 && c < width - 1) {
// NEIGHBOURS-NEXT: s += in_window
__global__ void neighbours(const float *in, float *out, int width, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  float s = 0;
  if (r < h && c >= 1 && c < width - 1)
    s += in[r * width + c - 1] + in[r * width + c] + in[r * width + c + 1];
  if (c < width && r < h)
    out[r * width + c] = s;
}

int main(int argc, char **argv) {
  const int w = argc > 1 ? atoi(argv[1]) : 33, h = argc > 2 ? atoi(argv[2]) : 18;
  float *in, *weights, *out;
  cudaMallocManaged(&in, (w + 2) * h * sizeof(float));
  cudaMallocManaged(&weights, 9 * sizeof(float));
  cudaMallocManaged(&out, w * h * sizeof(float));
  for (int i = 0; i < (w + 2) * h; ++i)
    in[i] = i * 17 % 29 - 7;
  for (int i = 0; i < 9; ++i)
    weights[i] = i * 0.25f - 1;
  if (argc > 3)
    weights[2] = float(atof(argv[3]));
  double sum = 0;
  unsigned odd = 0;
  auto add = [&] {
    cudaDeviceSynchronize();
    for (int i = 0; i < w * h; ++i)
      if (out[i] - out[i] == 0)
        sum += out[i] * (i % 7 + 1);
      else
        odd += i;
  };
  dim3 block(16, 8), grid((w + 15) / 16, (h + 7) / 8);
  blur<<<grid, block>>>(in, out, w, h);
  add();
  filter<<<grid, block>>>(in, weights, out, w, h);
  add();
  counts<<<grid, block>>>(in, out, w, h);
  add();
  largest<<<grid, block>>>(in, out, w, h);
  add();
  neighbours<<<grid, block>>>(in, out, w, h);
  add();
  inner<<<grid, block>>>(in, weights, out, w, h);
  add();
  printf("%.3f %u\n", sum, odd);
}
