// Tables that surely hold the element: no update goes past them. Where the index comes from memory, or is changed in a
// way that says nothing of its end, updates behind the table stay.
// RUN: %plan --passes='block-shape[nearest]{x=64,y=1};privatize-atomic[nearest:counts]{bins=64}' %s | %check=NEAREST
// RUN: %plan --passes='block-shape[columns]{x=64,y=1};privatize-atomic[columns:sums]{bins=64}' %s | %check=COLUMNS
// RUN: %opt --passes='block-shape[given]{x=64,y=1};privatize-atomic[given:counts]{bins=64}' %s | %check=GIVEN
// RUN: %opt --passes='block-shape[stepped]{x=64,y=1};privatize-atomic[stepped:counts]{bins=64}' %s | %check=STEPPED
// RUN: %opt --passes='block-shape[around]{x=64,y=1};privatize-atomic[around:counts]{bins=64}' %s | %check=AROUND
// RUN: %opt --passes='block-shape[again]{x=64,y=1};privatize-atomic[again:counts]{bins=64}' %s | %check=AGAIN
// RUN: %opt --passes='block-shape[before]{x=64,y=1};privatize-atomic[before:counts]{bins=64}' %s | %check=BEFORE

// RUN: optiml-opt --reread --emit --passes='block-shape[nearest]{x=64,y=1};privatize-atomic[nearest:counts]{bins=64};block-shape[columns]{x=64,y=1};privatize-atomic[columns:sums]{bins=64};block-shape[stepped]{x=64,y=1};privatize-atomic[stepped:counts]{bins=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 500 20 2>&1 | %check=RAN
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 500 65 2>&1 | %check=MANY
// RUN: optiml-run --coverage=15 --verify=%t.cu %s -- 500 20 | %check=SAME
// RUN: timeout 600 optiml-run --coverage=15 --verify=%t.cu %s -- 333 70 | %check=SAME
// RAN-DAG: nearest: 1 optimized
// MANY-DAG: nearest: 0 optimized
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// NEAREST: when centers - 1 < 64  (every element has a place in the table)
// NEAREST-NOT: if (best
// NEAREST: atomicAdd(&counts_of_block[best], 1);
// NEAREST-NOT: atomicAdd(&counts[best], 1);
__global__ void nearest(const float *at, const float *center, int *counts, int points, int centers) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= points)
    return;
  int best = 0;
  float least = 3e38f;
  for (int c = 0; c < centers; ++c) {
    float d = fabsf(at[p] - center[c]);
    if (d < least) {
      least = d;
      best = c;
    }
  }
  atomicAdd(&counts[best], 1);
}

// COLUMNS: when width - 1 < 64
// COLUMNS: atomicAdd(&sums_of_block[j], at[p]);
// COLUMNS-NOT: atomicAdd(&sums[j]
__global__ void columns(const float *at, float *sums, int points, int width) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < points)
    for (int j = 0; j < width; ++j)
      atomicAdd(&sums[j], at[p]);
}

// GIVEN: if (bin >= 0 && bin < 64) {
// GIVEN: atomicAdd(&counts[bin], 1);
__global__ void given(const int *bins, int *counts, int points) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < points)
    atomicAdd(&counts[bins[p]], 1);
}

// STEPPED: if (best >= 0 && best < 64) {
__global__ void stepped(const float *at, int *counts, int points, int centers) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < points) {
    int best = 0;
    for (int c = 0; c < centers; ++c)
      if (at[p] > 10.0f * c)
        ++best;
    atomicAdd(&counts[best], 1);
  }
}

// The loop has moved on since: the last value is of an earlier iteration, and of another loop's end.
// AROUND: if (bin >= 0 && bin < 64) {
__global__ void around(const float *at, int *counts, int points, int centers) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < points) {
    int best = 0;
    for (int c = 0; c < centers; ++c) {
      if (at[p] > 10.0f * c)
        best = c;
      if (c < 3)
        atomicAdd(&counts[best + c], 1);
    }
  }
}

// Another counter of the same name.
// AGAIN: if (bin >= 0 && bin < 64) {
__global__ void again(const float *at, int *counts, int points, int centers) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < points) {
    int best = 0;
    for (int c = 0; c < centers; ++c)
      if (at[p] > 10.0f * c)
        best = c;
    for (int c = 0; c < 3; ++c)
      atomicAdd(&counts[best + c], 1);
  }
}

// What holds of this value need not hold of the one before.
// BEFORE: if (bin >= 0 && bin < 64) {
__global__ void before(const int *bins, int *counts, int points) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < points) {
    int previous = 0;
    for (int t = 0; t < 5; ++t) {
      int now = bins[(p + t) % points];
      if (now >= 0 && now < 64)
        atomicAdd(&counts[previous + 1], 1);
      previous = now;
    }
  }
}

int main(int argc, char **argv) {
  const int points = argc > 1 ? atoi(argv[1]) : 300, centers = argc > 2 ? atoi(argv[2]) : 12;
  float *at, *center, *sums;
  int *bins, *counts;
  cudaMallocManaged(&at, points * sizeof(float));
  cudaMallocManaged(&center, centers * sizeof(float));
  cudaMallocManaged(&sums, 256 * sizeof(float));
  cudaMallocManaged(&bins, points * sizeof(int));
  cudaMallocManaged(&counts, 256 * sizeof(int));
  for (int i = 0; i < points; ++i)
    at[i] = i * 37 % 101, bins[i] = i * 7 % 97;
  for (int i = 0; i < centers; ++i)
    center[i] = i * 11 % 50;
  for (int i = 0; i < 256; ++i)
    sums[i] = counts[i] = 0;
  const int blocks = (points + 63) / 64;
  nearest<<<blocks, 64>>>(at, center, counts, points, centers);
  columns<<<blocks, 64>>>(at, sums, points, centers);
  given<<<blocks, 64>>>(bins, counts, points);
  stepped<<<blocks, 64>>>(at, counts, points, centers);
  around<<<blocks, 64>>>(at, counts, points, centers);
  before<<<blocks, 64>>>(bins, counts, points);
  again<<<blocks, 64>>>(at, counts, points, centers);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < 256; ++i)
    sum += counts[i] * (i + 1) + sums[i];
  printf("%.2f\n", sum);
}
