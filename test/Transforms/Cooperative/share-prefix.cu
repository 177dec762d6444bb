// share-prefix: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='block-shape[upTo]{x=64};share-prefix[upTo/j]' %s | %check=UPTO
// RUN: %plan --passes='block-shape[before]{x=32};share-prefix[before/j]' %s | %check=BEFORE
// RUN: optiml-opt --emit --passes='block-shape[upTo]{x=64};share-prefix[upTo/j];block-shape[before]{x=32};share-prefix[before/j];block-shape[highest]{x=64};share-prefix[highest/k]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 300 5 | %check=SAME %}
// RUN: %refused --passes='share-prefix[upTo/j]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[byRow]{x=64};share-prefix[byRow/j]' %s 2>&1 | %check=BYROW
// RUN: %refused --passes='block-shape[chosen]{x=64};share-prefix[chosen/j]' %s 2>&1 | %check=CHOSEN
// RUN: %refused --passes='block-shape[twoSteps]{x=64};share-prefix[twoSteps/j]' %s 2>&1 | %check=TWOSTEPS
// RUN: %refused --passes='block-shape[watched]{x=64};share-prefix[watched/j]' %s 2>&1 | %check=WATCHED
// RUN: optiml-opt --list-sites --passes='block-shape[upTo]{x=64}' %s | %check=SITES
// SAME: the same results
// SHAPE: the block shape is not fixed yet
// BYROW: what an iteration folds does not depend on its counter alone
// CHOSEN: may be taken by some threads of a block in any order
// TWOSTEPS: does not end one later in each thread
// WATCHED: 'seen'
// SITES: share-prefix[upTo/j]
#include <cstdio>
#include <cstdlib>

// UPTO: when disjoint(counts, 4 * {{.*}}, sums, 8 * n)
// UPTO: const bool active = i < n;
// UPTO: const int any_active = __syncthreads_or(active);
// UPTO: const long long j_first = (long long)blockIdx.x * 64
// UPTO: for (long long j_shared = threadIdx.x; j_shared < j_first; j_shared += 64) {
// UPTO: s_before += counts[j1];
// UPTO: if (active && j_first + threadIdx.x >= 0) {
// UPTO: __shfl_xor_sync
// UPTO: __shfl_up_sync
// UPTO: long long s = 7;
// UPTO-NEXT: s += s_before;
// UPTO-NEXT: s += s_own;
__global__ void upTo(const int *counts, long long *sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    long long s = 7;
    for (int j = 0; j <= i; ++j)
      s += counts[j];
    sums[i] = s;
  }
}

// Exclusive, from an element on, with two sums; the first threads have none.
// BEFORE: when
// BEFORE: if (any_active) {
// BEFORE: p_before *=
__global__ void before(const int *in, unsigned *out, size_t n, size_t from) {
  const size_t me = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (me >= n)
    return;
  unsigned s = 0, p = 1;
  for (size_t j = from; j < me; j++) {
    if (in[j] < 0)
      continue;
    s += in[j];
    p *= in[j] | 1;
  }
  out[me] = s ^ p;
}

// A running maximum.
__global__ void highest(const float *in, float *out, unsigned n) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    float m = -1e30f;
    unsigned k = 0;
    while (k <= t) {
      m = fmaxf(m, in[k]);
      k++;
    }
    out[t] = m;
  }
}

__global__ void byRow(const int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int s = 0;
    for (int j = 0; j < i; ++j)
      s += a[i * n + j];
    out[i] = s;
  }
}

__global__ void chosen(const int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i % 2) {
    int s = 0;
    for (int j = 0; j < i; ++j)
      s += a[j];
    out[i] = s;
  }
}

__global__ void twoSteps(const int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i < n) {
    int s = 0;
    for (int j = 0; j < 2 * i; ++j)
      s += a[j];
    out[i] = s;
  }
}

__global__ void watched(const int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int s = 0, seen = 0;
    for (int j = 0; j < i; ++j) {
      seen = seen * 2 + a[j];
      s += seen;
    }
    out[i] = s;
  }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 300, from = argc > 2 ? atoi(argv[2]) : 5;
  int *a, *out;
  float *f, *m;
  long long *sums;
  cudaMallocManaged(&a, n * 4);
  cudaMallocManaged(&out, n * 4);
  cudaMallocManaged(&f, n * 4);
  cudaMallocManaged(&m, n * 4);
  cudaMallocManaged(&sums, n * 8);
  for (int i = 0; i < n; ++i) {
    a[i] = (i * 37 + 11) % 101 - 30;
    f[i] = (i * 53 + 5) % 89;
  }
  upTo<<<(n + 127) / 128, 128>>>(a, sums, n);
  before<<<(n + 127) / 128, 128>>>(a, (unsigned *)out, n, from);
  highest<<<(n + 127) / 128, 128>>>(f, m, n);
  cudaDeviceSynchronize();
  unsigned long long h = 0;
  for (int i = 0; i < n; ++i)
    h = h * 31 + sums[i] + out[i] + (unsigned)m[i];
  printf("%llu\n", h);
}
