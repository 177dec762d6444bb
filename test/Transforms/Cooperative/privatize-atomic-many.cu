// privatize-atomic with several arrays of one type: only the table's elements must not overlap what is read, and
// updates of
// one kind come to the same in any order.
// RUN: %plan --passes='block-shape[gather]{x=128};privatize-atomic[gather:sums]{bins=64};privatize-atomic[gather:sizes]{bins=64}' %s | FileCheck %s
// RUN: %plan --passes='block-shape[chained]{x=128};privatize-atomic[chained:sizes]{bins=64}' %s | %check=CHAINED
// RUN: %plan --passes='block-shape[mixed]{x=128};privatize-atomic[mixed:sizes]{bins=64}' %s | %check=MIXED
// RUN: optiml-opt --emit --passes='block-shape[gather]{x=128};privatize-atomic[gather:sums]{bins=64};privatize-atomic[gather:sizes]{bins=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 700 3 | %check=SAME
// RUN: %verify=%t.cu %s -- 300 30 | %check=SAME
// SAME: the same results
// RUN: %plan --passes='thread-per-iteration[energies]' %s | %check=ENERGIES
// RUN: %plan --passes='thread-per-iteration[numbers]' %s | %check=NUMBERS
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 700 3 2>&1 | %check=RAN
// RAN-DAG: gather: 1 optimized, 0 original launches
// CHAINED: when apart(first, sizes)
// MIXED: when apart(most, sizes)
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

__global__ void gather(const float *points, const int *labels, float *sums, int *sizes, int *twice, int n, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int c = labels[i];
    atomicAdd(&sizes[c], 1);
    atomicAdd(&twice[c], 2);
    for (int d = 0; d < dim; ++d)
      atomicAdd(&sums[c * dim + d], points[i * dim + d]);
  }
}
// CHECK-DAG: when disjoint(points, 4 * (dim * n), sums, 4 * 64)
// CHECK-DAG: when disjoint(labels, 4 * n, sizes, 4 * 64)
// CHECK: sizes_of_block[64];
// CHECK: sums_of_block[64];

/// What is read may lie anywhere, in the table's elements too.
__global__ void chained(const int *labels, const int *first, int *sizes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&sizes[labels[i]], 1);
    atomicAdd(&sizes[first[labels[i]]], 1);
  }
}

/// A maximum and a sum of one element do not commute.
__global__ void mixed(const int *labels, int *most, int *sizes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&sizes[labels[i]], 1);
    atomicMax(&most[labels[i]], i);
  }
}

struct Event {
  float energy, angle;
};

/// No number in an event is an unsigned one: no update changes an event, wherever it goes.
__global__ void energies(const Event *events, unsigned *counts, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[(int)(events[i].energy * events[i].angle)], 1u);
}
// ENERGIES: <<<(max(1, ceildiv(n, block.x)), grid.y, grid.z)
// ENERGIES-NOT: when n <= grid.x * block.x

struct Numbered {
  float energy;
  int number;
};

/// An update may change which element the next one goes to, unless they lie apart.
__global__ void numbers(const Numbered *events, unsigned *counts, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[events[i].number], 1u);
}
// NUMBERS: when apart(counts, events)

int main(int, char **argv) {
  int n = atoi(argv[1]), dim = atoi(argv[2]), k = 80;
  float *points, *sums;
  int *labels, *sizes;
  cudaMallocManaged(&points, n * dim * sizeof(float));
  cudaMallocManaged(&sums, k * dim * sizeof(float));
  cudaMallocManaged(&labels, n * sizeof(int));
  cudaMallocManaged(&sizes, 5 * k * sizeof(int));
  for (int i = 0; i < n; ++i)
    labels[i] = i * 7 % k;
  for (int i = 0; i < n * dim; ++i)
    points[i] = float(i % 13);
  gather<<<(n + 63) / 64, 64>>>(points, labels, sums, sizes, sizes + k, n, dim);
  chained<<<(n + 63) / 64, 64>>>(labels, labels, sizes + 2 * k, n);
  mixed<<<(n + 63) / 64, 64>>>(labels, sizes + 3 * k, sizes + 4 * k, n);
  cudaDeviceSynchronize();
  printf("%g %d\n", sums[3], sizes[4]);
}
