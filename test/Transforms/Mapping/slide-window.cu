// slide-window: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='block-shape[box]{x=32,y=4};slide-window[box/j]{axis=y,rows=4}' %s | %check=BOX
// RUN: %plan --passes='block-shape[relative]{x=64,y=1};slide-window[relative/d]{axis=x,rows=8}' %s | %check=RELATIVE
// RUN: optiml-opt --emit --passes='block-shape[box]{x=32,y=4};slide-window[box/j]{axis=y,rows=4};block-shape[relative]{x=64,y=1};slide-window[relative/d]{axis=x,rows=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 37 23 3 | %check=SAME %}
// RUN: %refused --passes='slide-window[box/j]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[box]{x=32,y=4};slide-window[box/j]{axis=x}' %s 2>&1 | %check=ALONG
// RUN: %refused --passes='block-shape[box]{x=32,y=4};slide-window[box/j/i]{axis=x}' %s 2>&1 | %check=INNER
// RUN: %refused --passes='block-shape[rounds]{x=64,y=1};slide-window[rounds/j]{axis=x}' %s 2>&1 | %check=ROUNDS
// RUN: %refused --passes='block-shape[weighted]{x=64,y=1};slide-window[weighted/j]{axis=x}' %s 2>&1 | %check=WEIGHTED
// RUN: %refused --passes='block-shape[watched]{x=64,y=1};slide-window[watched/j]{axis=x}' %s 2>&1 | %check=WATCHED
// RUN: optiml-opt --list-sites --passes='block-shape[box]{x=32,y=4}' %s | %check=SITES
// SAME: the same results
// SHAPE: the block shape is not fixed yet
// ALONG: what an iteration adds depends on the output
// INNER: the loop stands in another one
// ROUNDS: the loop is not known to have 2 to 64 iterations
// WEIGHTED: what an iteration adds depends on the output
// WATCHED: the loop does more than to add numbers
// SITES: slide-window[box/j]
// SITES-NOT: slide-window[box/j/i]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

// BOX: ceildiv(grid.y * block.y, 16)
// BOX: when disjoint(in, 1 * (h * w), out, 4 * (h * w))
// BOX: unsigned int s_of_window = 0;
// BOX: for (int row = 0; row < 4; ++row) {
// BOX: if (j_from < j_first || j_to < j_end || j_end < j_from) {
// BOX: for (int j = j_first; j < j_from; ++j) {
// BOX: s_of_window -= (unsigned int)in[j * w + i];
// BOX: for (int j = j_end; j < j_to; ++j) {
// BOX: n_of_window += 1
// BOX: s += (int)s_of_window;
// BOX: out[y * w + x] = s / n;
__global__ void box(const unsigned char *in, int *out, int w, int h, int r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int s = 5, n = 1;
  const int top = max(y - r, 0);
  for (int j = top; j < min(y + r + 1, h); ++j)
    for (int i = x < r ? 0 : x - r; i <= min(x + r, w - 1); ++i) {
      s += in[j * w + i];
      n++;
    }
  out[y * w + x] = s / n;
}

// RELATIVE: const long long d_from = (long long)-r + (blockIdx.x * 512 + threadIdx.x * 8 + row);
// RELATIVE: if (d >= 0 && d < n) {
// RELATIVE: s_of_window += (unsigned int){{.*}}in[d];
__global__ void relative(const int *in, long *out, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int s = 0;
    for (int d = -r; d <= r; ++d) {
      if (i + d < 0 || i + d >= n)
        continue;
      s += in[i + d];
    }
    out[i] = s;
  }
}

__global__ void rounds(const float *in, float *out, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  if (i < n) {
    for (int j = max(0, i - r); j < min(n, i + r); ++j)
      s += in[j];
    out[i] = s;
  }
}

__global__ void weighted(const int *in, int *out, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  if (i < n) {
    for (int j = max(0, i - r); j < min(n, i + r); ++j)
      s += in[j] * (j - i);
    out[i] = s;
  }
}

__global__ void watched(const int *in, int *out, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  if (i < n) {
    for (int j = max(0, i - r); j < min(n, i + r); ++j)
      if (s < 100)
        s += in[j];
    out[i] = s;
  }
}

int main(int argc, char **argv) {
  int w = argc > 1 ? atoi(argv[1]) : 100, h = argc > 2 ? atoi(argv[2]) : 50, r = argc > 3 ? atoi(argv[3]) : 2;
  if (w < 1 || h < 1 || r < 0 || r > 64)
    return 2;
  int n = w * h, *numbers, *out;
  unsigned char *in;
  long *sums;
  cudaMallocManaged(&in, n);
  cudaMallocManaged(&numbers, n * sizeof(int));
  cudaMallocManaged(&out, n * sizeof(int));
  cudaMallocManaged(&sums, n * sizeof(long));
  for (int i = 0; i < n; ++i) {
    in[i] = i * 37 % 251;
    numbers[i] = i * 91 % 513 - 200;
  }
  box<<<dim3((w + 31) / 32, (h + 3) / 4), dim3(32, 4)>>>(in, out, w, h, r);
  relative<<<(n + 63) / 64, 64>>>(numbers, sums, n, r);
  cudaDeviceSynchronize();
  printf("%d %ld\n", out[n / 2], sums[n / 2]);
  return 0;
}
