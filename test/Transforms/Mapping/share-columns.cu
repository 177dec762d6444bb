// share-columns: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='block-shape[box]{x=64,y=1};share-columns[box/j]{rows=8}' %s | %check=BOX
// RUN: optiml-opt --emit --passes='block-shape[box]{x=64,y=1};share-columns[box/j]{rows=8};block-shape[guarded]{x=32,y=1};share-columns[guarded/dy]{rows=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 150 83 | %check=SAME %}
// RUN: %if verify %{ optiml-run --verify=%t.cu %s -- 5 3 | %check=SAME %}
// RUN: %refused --passes='share-columns[box/j]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[box]{x=32,y=4};share-columns[box/j]' %s 2>&1 | %check=ROWS
// RUN: %refused --passes='block-shape[box]{x=64,y=1};share-columns[box/j/i]' %s 2>&1 | %check=INNER
// RUN: %refused --passes='block-shape[means]{x=64,y=1};share-columns[means/j]' %s 2>&1 | %check=MEANS
// RUN: %refused --passes='block-shape[wide]{x=64,y=1};share-columns[wide/j]' %s 2>&1 | %check=WIDE
// RUN: %refused --passes='block-shape[slanted]{x=64,y=1};share-columns[slanted/j]' %s 2>&1 | %check=SLANTED
// RUN: %refused --passes='block-shape[weighted]{x=64,y=1};share-columns[weighted/j]' %s 2>&1 | %check=WEIGHTED
// RUN: optiml-opt --list-sites --passes='block-shape[box]{x=64,y=1}' %s | %check=SITES
// SAME: the same results
// SHAPE: the block shape is not fixed yet
// ROWS: the block has threads along y or z
// INNER: the loop stands in another one
// MEANS: the loop does more than to add integers
// WIDE: the window's columns are not a constant away from the output
// SLANTED: what an iteration adds depends on the output
// WEIGHTED: what an iteration adds depends on the output
// SITES: share-columns[box/j]
// SITES-NOT: share-columns[box/j/i]
#include <cstdio>
#include <cstdlib>

// BOX: ceildiv(grid.y * block.y, 8)
// BOX: when disjoint(in, 1 * (h * w), out, 4 * (h * w))
// BOX: __shared__ bool needed[68];
// BOX: __shared__ unsigned int s_of_column[68];
// BOX: needed[i - ((int)(blockIdx.x * 64) - 2)] = true
// BOX: for (int row = 0; row < 8; ++row) {
// BOX: if (anew) {
// BOX: if (needed[c{{.*}}]) {
// BOX: for (int j = j_first; j < j_from; ++j) {
// BOX: s_of_window -= (unsigned int)in[j * w + i{{[0-9]*}}];
// BOX: for (int j = j_end; j < j_to; ++j) {
// BOX: __syncthreads();
// BOX: s_of_columns += s_of_column[
// BOX: s += (int)s_of_columns;
// BOX: __syncthreads();
__global__ void box(const unsigned char *in, int *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int s = 5, n = 1;
  const int left = x < 2 ? 0 : x - 2;
  for (int j = max(y - 3, 0); j < min(y + 4, h); ++j)
    for (int i = left; i <= min(x + 2, w - 1); ++i) {
      s += in[j * w + i];
      n++;
    }
  out[y * w + x] = s / n;
}

constexpr int radius = 4;

__device__ bool inside(int i, int n) { return i >= 0 && i < n; }

__global__ void guarded(const int *in, long long *out, int w, int h) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (y < h) {
    if (x < w) {
      long long total = 0;
      for (int dy = -radius; dy <= radius; ++dy) {
        if (!inside(y + dy, h))
          continue;
        const int *line = in + (size_t)(y + dy) * w;
        for (int dx = -radius; dx <= radius; ++dx)
          if (inside(x + dx, w))
            total += line[x + dx];
      }
      out[(size_t)y * w + x] = total;
    }
  }
}

__global__ void means(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float s = 0;
  if (x < w && y < h) {
    for (int j = max(y - 3, 0); j < min(y + 4, h); ++j)
      for (int i = max(x - 3, 0); i < min(x + 4, w); ++i)
        s += in[j * w + i];
    out[y * w + x] = s;
  }
}

__global__ void wide(const int *in, int *out, int w, int h, int r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int s = 0;
  if (x < w && y < h) {
    for (int j = max(y - 3, 0); j < min(y + 4, h); ++j)
      for (int i = max(x - r, 0); i < min(x + r + 1, w); ++i)
        s += in[j * w + i];
    out[y * w + x] = s;
  }
}

__global__ void slanted(const int *in, int *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int s = 0;
  if (x < w && y < h) {
    for (int j = max(y - 3, 0); j < min(y + 4, h); ++j)
      for (int i = max(x - 3, 0); i < min(x + 4, min(w, x + y)); ++i)
        s += in[j * w + i];
    out[y * w + x] = s;
  }
}

__global__ void weighted(const int *in, int *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int s = 0;
  if (x < w && y < h) {
    for (int j = max(y - 3, 0); j < min(y + 4, h); ++j)
      for (int i = max(x - 3, 0); i < min(x + 4, w); ++i)
        s += in[j * w + i] * (i - x);
    out[y * w + x] = s;
  }
}

int main(int argc, char **argv) {
  int w = argc > 1 ? atoi(argv[1]) : 100, h = argc > 2 ? atoi(argv[2]) : 50;
  if (w < 1 || h < 1)
    return 2;
  int n = w * h, *numbers, *out;
  unsigned char *in;
  long long *sums;
  cudaMallocManaged(&in, n);
  cudaMallocManaged(&numbers, n * sizeof(int));
  cudaMallocManaged(&out, n * sizeof(int));
  cudaMallocManaged(&sums, n * sizeof(long long));
  for (int i = 0; i < n; ++i) {
    in[i] = i * 37 % 251;
    numbers[i] = i * 91 % 513 - 200;
  }
  box<<<dim3((w + 31) / 32, (h + 3) / 4), dim3(32, 4)>>>(in, out, w, h);
  guarded<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(numbers, sums, w, h);
  cudaDeviceSynchronize();
  printf("%d %lld\n", out[n / 2], sums[n / 2]);
  return 0;
}
