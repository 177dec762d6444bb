// A loop around atomicCAS folds its value in as CUDA's own atomics do: sums, minima and maxima that CUDA has no atomic
// for are combined by a block before one thread updates them.
// RUN: %opt --block=256x1x1 --passes='block-shape[smallest]{x=256};privatize-atomic[smallest:out]' %s | FileCheck %s
// RUN: %opt --block=256x1x1 --passes='block-shape[total]{x=256};privatize-atomic[total:out]' %s | %check=TOTAL
// RUN: %opt --block=256x1x1 --passes='block-shape[peaks]{x=256};privatize-atomic[peaks:best]{bins=8}' %s | %check=PEAKS
// RUN: optiml-opt --list-sites --passes='block-shape[smallest]{x=256};block-shape[others]{x=1}' %s | %check=SITES --implicit-check-not='privatize-atomic[other'
// RUN: optiml-opt --reread --emit --block=256x1x1 --passes='block-shape[smallest]{x=256};privatize-atomic[smallest:out];block-shape[total]{x=256};privatize-atomic[total:out];block-shape[peaks]{x=256};privatize-atomic[peaks:best]{bins=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1500 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

// As the CUDA programming guide has it.
__device__ double addDouble(double *address, double val) {
  unsigned long long int *address_as_ull = (unsigned long long int *)address;
  unsigned long long int old = *address_as_ull, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}

__device__ __forceinline__ void lower(float *cell, const float x) {
  int *bits = reinterpret_cast<int *>(cell);
  int seen = bits[0];
  while (x < __int_as_float(seen)) {
    const int before = seen;
    if ((seen = atomicCAS(bits, before, __float_as_int(x))) == before)
      break;
  }
}

template <typename T> __device__ T raise(T *at, T with) {
  if (*at >= with)
    return *at;
  unsigned now = *(unsigned *)at, then;
  for (;;) {
    then = now;
    if (__uint_as_float(then) >= with)
      break;
    now = atomicCAS((unsigned *)at, then, __float_as_uint(with));
    if (now == then)
      break;
  }
  return __uint_as_float(now);
}

// Not what they seem: the value that is compared is not the one that was read last, or something is lost between.
__device__ void staleCompare(float *cell, float x) {
  int *bits = (int *)cell;
  int first = *bits, seen = first, before;
  do {
    before = seen;
    seen = atomicCAS(bits, before, __float_as_int(x + __int_as_float(first)));
  } while (seen != before);
}
__device__ void onceOnly(float *cell, float x) {
  int seen = *(int *)cell;
  atomicCAS((int *)cell, seen, __float_as_int(x + __int_as_float(seen)));
}
__device__ void difference(float *cell, float x) {
  int seen = *(int *)cell, before;
  do {
    before = seen;
    seen = atomicCAS((int *)cell, before, __float_as_int(__int_as_float(before) - x));
  } while (seen != before);
}

// CHECK-LABEL: smallest_optiml{{[0-9]*}}(
// CHECK: float [[MIN:[a-z_]+]] = __builtin_inff();
// CHECK: if (threadIdx.x == 0 && [[MIN]] != __builtin_inff()) {
// CHECK-NEXT: lower(out, [[MIN]]);
__global__ void smallest(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    lower(out, x[i] * 0.5f);
}

// TOTAL-LABEL: total_optiml{{[0-9]*}}(
// TOTAL: addDouble(out, {{[a-z_]+}});
__global__ void total(const float *x, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  addDouble(out, x[i]);
}

// PEAKS-LABEL: peaks_optiml{{[0-9]*}}(
// PEAKS: __shared__ {{.*}}float best_of_block[8];
// PEAKS: raise(&best_of_block[
// PEAKS: raise(&best[
__global__ void peaks(const float *x, float *best, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    raise(&best[i % 13], x[i]);
}

// SITES: privatize-atomic[smallest:out]
__global__ void others(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    staleCompare(out, x[i]);
    onceOnly(out + 1, x[i]);
    difference(out + 2, x[i]);
  }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 5000;
  std::vector<float> x(n), best(13, -1000.0f);
  for (int i = 0; i < n; ++i)
    x[i] = float((i * 7919) % 10007 - 5000) / 16;
  float *dx, *least, *dbest, *rest;
  double *sum, result = 0;
  cudaMalloc(&dx, n * sizeof(float));
  cudaMalloc(&least, sizeof(float));
  cudaMalloc(&sum, sizeof(double));
  cudaMalloc(&dbest, 13 * sizeof(float));
  cudaMalloc(&rest, 3 * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(least, 0, sizeof(float));
  cudaMemset(sum, 0, sizeof(double));
  cudaMemset(rest, 0, 3 * sizeof(float));
  cudaMemcpy(dbest, best.data(), 13 * sizeof(float), cudaMemcpyHostToDevice);
  smallest<<<(n + 255) / 256, 256>>>(dx, least, n);
  total<<<(n + 255) / 256, 256>>>(dx, sum, n);
  peaks<<<4, 256>>>(dx, dbest, n);
  others<<<1, 1>>>(dx, rest, n);
  float found = 0;
  cudaMemcpy(&found, least, sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(&result, sum, sizeof(double), cudaMemcpyDeviceToHost);
  cudaMemcpy(best.data(), dbest, 13 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g %g %g\n", found, result, best[5]);
}
