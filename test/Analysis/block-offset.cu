// Where a block begins may be a variable of its own, bounded needlessly; conditions may be joined by & and |.
// RUN: %opt --passes='grid-stride[first]{x=256,blocks=8}' %s | %check=FIRST
// RUN: %plan --passes='block-shape[stencil]{x=32,y=4};stage-window[stencil:in]' %s | %check=STENCIL
// RUN: %plan --passes='block-shape[overlapping]{x=32,y=4};stage-window[overlapping:in]' %s | %check=APART
// RUN: %opt --passes='block-shape[ring]{x=64,y=1};coarsen[ring]{x=2,y=1}' %s | %check=RING
// RUN: %refused --passes='grid-stride[later]{x=256,blocks=8}' %s 2>&1 | %check=LATER
// RUN: optiml-opt --reread --emit --passes='grid-stride[first]{x=256,blocks=8};block-shape[stencil]{x=32,y=4};stage-window[stencil:in];block-shape[ring]{x=64,y=1};coarsen[ring]{x=2,y=1}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 70 40 | %check=SAME
// RUN: %verify=%t.cu %s -- 33 9 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

// FIRST: for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 2048) {
__global__ void first(const float *in, float *out, int n) {
  const int begin = blockIdx.x * blockDim.x;
  int i = begin + threadIdx.x;
  if (i < n)
    out[i] = 2 * in[i];
}

// STENCIL: // when grid.x * block.x <= 2147483647
// STENCIL: in_window[6][36]
__global__ void stencil(const float *__restrict__ in, float *__restrict__ out, int width, int height) {
  int dx = (int)(blockDim.x), dy = (int)blockDim.y;
  int x0 = (int)(blockIdx.x) * dx, y0 = (int)blockIdx.y * dy;
  int x = max(x0, 0) + (int)threadIdx.x, y = max(0, y0) + (int)(threadIdx.y);
  if (x >= 1 & y >= 1 & x < width - 1 & y < height - 1)
    out[y * width + x] =
        in[y * width + x - 1] + in[y * width + x + 1] + in[(y - 1) * width + x] + in[(y + 1) * width + x];
}

// Of the ends of what is touched, those that another one covers are not compared.
// APART: // when disjoint(in + 4 * min(-1, -width), 4 * (max({{[^()]*}}) - min(-1, -width)), out, 4 * ({{[^()]*}}))
__global__ void overlapping(const float *in, float *out, int width, int height) {
  int x0 = blockIdx.x * blockDim.x, y0 = blockIdx.y * blockDim.y;
  int x = max(x0, 0) + threadIdx.x, y = max(y0, 0) + threadIdx.y;
  if (x >= 1 && y >= 1 && x < width - 1 && y < height - 1)
    out[y * width + x] =
        in[y * width + x - 1] + in[y * width + x + 1] + in[(y - 1) * width + x] + in[(y + 1) * width + x];
}

// RING: (x + ix == 0 || x + ix == n - 1)
__global__ void ring(float *out, int n) {
  int x = blockDim.x * blockIdx.x + threadIdx.x;
  if (x < n)
    if (x == 0 | x == n - 1)
      out[x] = -1.0f;
}

// This one is no index of a thread.
// LATER: the kernel uses more than its global index along x
__global__ void later(float *out, int n) {
  int at = max((int)(blockIdx.x * blockDim.x), 5) + threadIdx.x;
  if (at < n)
    out[at] += 1.0f;
}

int main(int argc, char **argv) {
  const int width = atoi(argv[1]), height = atoi(argv[2]), n = width * height;
  std::vector<float> h(n);
  for (int i = 0; i < n; ++i)
    h[i] = float(i % 29);
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  cudaMemcpy(a, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(c, 0, n * sizeof(float));
  first<<<(n + 127) / 128, 128>>>(a, b, n);
  stencil<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(b, c, width, height);
  ring<<<(n + 127) / 128, 128>>>(c, n);
  later<<<1, 32>>>(c, n);
  cudaMemcpy(h.data(), c, n * sizeof(float), cudaMemcpyDeviceToHost);
  double total = 0;
  for (int i = 0; i < n; ++i)
    total += h[i] * (1 + i % 7);
  printf("%.3f\n", total);
  return 0;
}
