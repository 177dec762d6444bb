// Loops in one another that only fold values: neighbouring threads take neighbouring elements, whichever loop reads
// them, and blocks of several axes become rows.
// RUN: %opt --passes='distribute-loop[channel]{threads=256}' %s | %check=CHANNEL
// RUN: %opt --passes='distribute-loop[channel]{threads=32,rows=8}' %s | %check=LANES
// RUN: %opt --scalar=n=4 --scalar=hw=512 --passes='distribute-loop[channel]{threads=256}' %s | %check=LONG
// RUN: %opt --passes='distribute-loop[lowerPart]{threads=128}' %s | %check=LOWER
// RUN: %opt --passes='distribute-loop[squares]{threads=128}' %s | %check=SQUARES
// RUN: %opt --passes='distribute-loop[windows]{threads=64}' %s | %check=WINDOWS
// RUN: %plan --block=3x3x1 --grid=4x2x1 --passes='distribute-loop[weights]{threads=64}' %s | %check=WEIGHTS
// RUN: %refused --block=3x3x1 --passes='distribute-loop[weights]{threads=64}' %s 2>&1 | %check=OPEN
// OPEN: the kernel uses more than its global index along x

// RUN: optiml-opt --reread --emit --passes='distribute-loop[channel]{threads=256};distribute-loop[lowerPart]{threads=128};distribute-loop[squares]{threads=128};distribute-loop[windows]{threads=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 5 | %check=SAME
// RUN: %verify=%t.cu %s -- 70 | %check=SAME
// RUN: optiml-opt --reread --emit --block=3x3x1 --grid=4x2x1 --passes='distribute-loop[weights]{threads=64}' %s > %t.weights.cu
// RUN: %nvcc -arch=sm_90 -c %t.weights.cu -o %t.o
// RUN: %verify=%t.weights.cu %s -- 5 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// CHANNEL: for (int i = threadIdx.x / 32; i < n; i += 8)
// CHANNEL: for (int p = threadIdx.x % 32; p < hw; p += 32)
// CHANNEL: __shared__ float total_of_warps[8]
// LANES: for (int i = 0; i < n; ++i)
// LANES: for (int p = threadIdx.x; p < hw; p += 32)
// LONG: for (int i = 0; i < n; ++i)
// LONG: for (int p = threadIdx.x; p < hw; p += 256)
__global__ void channel(const float *x, float *sum, int n, int c, int hw) {
  int ch = blockIdx.x * blockDim.x + threadIdx.x;
  if (ch < c) {
    float total = 0;
    for (int i = 0; i < n; ++i) {
      const float *image = x + (i * c + ch) * hw;
      for (int p = 0; p < hw; ++p)
        total += image[p];
    }
    sum[ch] = total;
  }
}

// The inner loop's bound is the outer one's counter.
// LOWER: for (int r = threadIdx.x / 32; r < n; r += 4)
// LOWER: for (long long q_of_group = threadIdx.x % 32; q_of_group < r + 1; q_of_group += 32)
__global__ void lowerPart(const float *a, float *most, int rows, int n) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= rows)
    return;
  float best = -1e30f;
  for (int r = 0; r < n; ++r)
    for (int q = 0; q <= r; ++q)
      best = fmaxf(best, a[(m * n + r) * n + q]);
  most[m] = best;
}

// A sum of its own for each line: only whole lines can be shared out.
// SQUARES: for (int r = threadIdx.x; r < n; r += 128)
// SQUARES: for (int q = 0; q < n; ++q)
__global__ void squares(const float *a, float *norm, int rows, int n) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m < rows) {
    float all = 0;
    for (int r = 0; r < n; ++r) {
      float line = 0;
      for (int q = 0; q < n; ++q)
        line += a[(m * n + r) * n + q];
      all += line * line;
    }
    norm[m] = all;
  }
}

// Three neighbours keep no warp busy.
// WINDOWS: for (int r = threadIdx.x; r < n; r += 64)
// WINDOWS: for (int d = 0; d < 3; ++d)
__global__ void windows(const float *a, float *sum, int rows, int n) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m < rows) {
    float all = 0;
    for (int r = 0; r < n; ++r)
      for (int d = 0; d < 3; ++d)
        all += a[(m * n + r) * n + d] * float(d + 1);
    sum[m] = all;
  }
}

// WEIGHTS: plan weights: {{[a-z_0-9]+}}<<<(block.x, block.y, grid.x * grid.y * block.z), (64, 1, 1)
// WEIGHTS: when grid.x == 4
// WEIGHTS: = blockIdx.z % (unsigned int)4
// WEIGHTS: = blockIdx.z / (unsigned int)4
// WEIGHTS: for (int h = threadIdx.x / 32; h < height; h += 2)
// WEIGHTS: for (int w = threadIdx.x % 32; w < width; w += 32)
__global__ void weights(const float *x, const float *dy, float *dw, int images, int height, int width) {
  const int in = blockIdx.x, out = blockIdx.y, dx = threadIdx.x - 1, line = threadIdx.y - 1;
  float g = 0;
  for (int i = 0; i < images; ++i)
    for (int h = 0; h < height; ++h)
      for (int w = 0; w < width; ++w) {
        const int y = h + line, z = w + dx;
        if (y >= 0 && y < height && z >= 0 && z < width)
          g += dy[((i * 2 + out) * height + h) * width + w] * x[((i + in) * height + y) * width + z];
      }
  dw[((out * 4 + in) * 3 + threadIdx.y) * 3 + threadIdx.x] = g;
}

int main(int argc, char **argv) {
  const int n = atoi(argv[1]), c = 6, hw = 40 + n, total = c * (n + 9) * (n + 9) + c * n * hw;
  float *host = (float *)malloc(total * sizeof(float)), *x, *y;
  for (int i = 0; i < total; ++i)
    host[i] = float((i * 7) % 37 - 18) / 8.0f;
  cudaMalloc(&x, total * sizeof(float));
  cudaMalloc(&y, 200 * sizeof(float));
  cudaMemcpy(x, host, total * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(y, 0, 200 * sizeof(float));
  channel<<<1, 64>>>(x, y, n, c, hw);
  lowerPart<<<1, 64>>>(x, y + 10, c, n);
  squares<<<1, 64>>>(x, y + 20, c, n);
  windows<<<1, 64>>>(x, y + 30, c, n);
  weights<<<dim3(4, 2), dim3(3, 3)>>>(x, x + 3, y + 40, 2, n, n);
  cudaMemcpy(host, y, 200 * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 120; ++i)
    printf("%g ", host[i]);
  return 0;
}
