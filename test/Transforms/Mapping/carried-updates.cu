// What a thread sums up over its turns for one atomic update is added by every iteration; a block then sums up in
// registers.
// RUN: %plan --passes='thread-per-iteration[sum]' %s | %check=SUM
// RUN: %opt --passes='thread-per-iteration[moments];grid-stride[moments]{blocks=8,x=64};privatize-atomic[moments:out]' %s | %check=MOMENTS
// RUN: %opt --passes='thread-per-iteration[statistics<float>];block-shape[statistics<float>]{x=64};privatize-atomic[statistics<float>:out]' %s | %check=STATISTICS
// RUN: %opt --passes='thread-per-iteration[extremes]' %s | %check=EXTREMES
// RUN: %refused --passes='thread-per-iteration[mean]' %s 2>&1 | %check=MEAN
// RUN: %refused --passes='thread-per-iteration[started]' %s 2>&1 | %check=STARTED
// RUN: %refused --passes='thread-per-iteration[other]' %s 2>&1 | %check=OTHER
// RUN: %refused --fp=strict --passes='thread-per-iteration[sum]' %s 2>&1 | %check=STRICT
// RUN: optiml-opt --reread --emit --passes='thread-per-iteration[sum];block-shape[sum]{x=64};privatize-atomic[sum:out];thread-per-iteration[moments];grid-stride[moments]{blocks=8,x=64};privatize-atomic[moments:out];thread-per-iteration[statistics<float>];block-shape[statistics<float>]{x=64};privatize-atomic[statistics<float>:out];thread-per-iteration[extremes];grid-stride[extremes]{blocks=2,x=32};privatize-atomic[extremes:least];privatize-atomic[extremes:most]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 1000 | %check=SAME
// RUN: %verify=%t.cu %s -- 1 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 1000 2>&1 | %check=RAN
// RAN-DAG: sum: 1 optimized, 0 original launches
// RAN-DAG: moments: 1 optimized, 0 original launches
// RAN-DAG: statistics<float>: 1 optimized, 0 original launches
// RAN-DAG: extremes: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <climits>
#include <cstdio>
#include <cstdlib>

// SUM: <<<(max(1, ceildiv(n, block.x)), grid.y, grid.z)
// SUM: float d = x[i] - y[i];
// SUM-NEXT: atomicAdd(out, d * d);
// STRICT: line {{[0-9]+}} is not part of a loop
__device__ void add(float *to, float value) {
  if (value != 0.0f)
    atomicAdd(to, value);
}
__global__ void sum(const float *x, const float *y, int n, float *out) {
  float s = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    float d = x[i] - y[i];
    s += d * d;
  }
  add(out, s);
}

// MOMENTS: double out_of_thread = 0.0;
// MOMENTS-NEXT: double out_of_thread1 = 0.0;
// MOMENTS: out_of_thread += (double)v;
// MOMENTS-NEXT: out_of_thread1 += (double)v * v;
// MOMENTS: atomicAdd(out, out_of_thread);
// MOMENTS: atomicAdd(&out[1], out_of_thread1);
__global__ void moments(const float *x, int n, double *out) {
  double s = 0, q = 0;
  int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    float v = x[i];
    s += v;
    q += (double)v * v;
  }
  atomicAdd(&out[0], s);
  atomicAdd(&out[1], q);
}

struct Statistics {
  float sum;
  int positive;
};
__device__ float score(float a) { return a > 0 ? a * a : -a; }
// The loop says what the early exit said.
// STATISTICS: float out_sum_of_thread = 0.0f;
// STATISTICS-NEXT: int out_positive_of_thread = 0;
// STATISTICS: out_sum_of_thread += score(x[i]);
// STATISTICS-NEXT: if (x[i] > 0) {
// STATISTICS-NEXT: out_positive_of_thread += 1;
// STATISTICS: atomicAdd(&out->sum, out_sum_of_thread);
// STATISTICS: atomicAdd(&out->positive, out_positive_of_thread);
template <typename T> __global__ void statistics(const T *x, int n, Statistics *out) {
  const int tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= n)
    return;
  T s = 0;
  int positive = 0;
  for (int i = tid; i < n; i += blockDim.x * gridDim.x) {
    s += score(x[i]);
    if (x[i] > 0)
      positive++;
  }
  atomicAdd(&out->sum, s);
  atomicAdd(&out->positive, positive);
}

// EXTREMES: atomicMin(least, k[i]);
// EXTREMES-NEXT: atomicMax(most, k[i]);
__global__ void extremes(const int *k, int n, int *least, int *most) {
  int low = INT_MAX, high = INT_MIN;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    low = min(low, k[i]);
    if (k[i] > high)
      high = k[i];
  }
  atomicMin(least, low);
  atomicMax(most, high);
}

// The sum of a thread is not what is added.
// MEAN: line {{[0-9]+}} is not part of a loop
__global__ void mean(const float *x, int n, float *out) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    s += x[i];
  atomicAdd(out, s * s);
}
// Every thread adds something of its own.
// STARTED: line {{[0-9]+}} is not part of a loop
__global__ void started(const float *x, int n, float *out) {
  float s = 1;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    s += x[i];
  atomicAdd(out, s);
}
// A product is no sum.
// OTHER: line {{[0-9]+}} is not part of a loop
__global__ void other(const int *x, int n, int *out) {
  int s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    s |= x[i];
  atomicAdd(out, s);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  float *x, *y, *sums;
  double *out;
  int *k, *ends;
  Statistics *found;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&k, n * sizeof(int));
  cudaMallocManaged(&sums, 3 * sizeof(float));
  cudaMallocManaged(&out, 2 * sizeof(double));
  cudaMallocManaged(&ends, 3 * sizeof(int));
  cudaMallocManaged(&found, sizeof(Statistics));
  for (int i = 0; i < n; ++i) {
    x[i] = (i * 7 % 23) / 16.0f - 0.5f;
    y[i] = (i * 5 % 19) / 16.0f;
    k[i] = i * 7919 % 1013 - 500;
  }
  sums[0] = sums[1] = sums[2] = 0;
  out[0] = out[1] = 0;
  ends[0] = ends[1] = ends[2] = 3;
  *found = {0, 0};
  sum<<<2, 64>>>(x, y, n, sums);
  moments<<<3, 64>>>(x, n, out);
  statistics<float><<<2, 96>>>(x, n, found);
  extremes<<<2, 64>>>(k, n, ends, ends + 1);
  mean<<<1, 32>>>(x, n, sums + 1);
  started<<<1, 32>>>(x, n, sums + 2);
  other<<<1, 32>>>(k, n, ends + 2);
  cudaDeviceSynchronize();
  printf("%g %g %g %g %d %d %d\n", sums[0], out[0], out[1], found->sum, found->positive, ends[0], ends[1]);
  return 0;
}
