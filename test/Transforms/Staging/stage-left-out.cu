// stage-shared where a thread leaves out its own element in the loop, which it reads beside it.
// RUN: %opt --passes='block-shape[pull]{x=64};stage-shared[pull/j:p]{tile=32}' %s | FileCheck %s
// RUN: %opt --passes='block-shape[pairs]{x=64};coarsen[pairs]{x=2};stage-shared[pairs/j:x+m]{tile=32}' %s | %check=PAIRS
// RUN: %refused --passes='block-shape[others]{x=64};stage-shared[others/j:x]{tile=32}' %s 2>&1 | %check=OTHERS
// RUN: optiml-opt --emit --passes='block-shape[pull]{x=64};stage-shared[pull/j:p]{tile=32};block-shape[pairs]{x=64};coarsen[pairs]{x=2};stage-shared[pairs/j:x+m]{tile=32}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 97 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 65 | %check=SAME
// SAME: the same results
// OTHERS: the condition around x is not affine
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

struct Star {
  float3 place;
  float mass;
};

__global__ void pull(const Star *p, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Star own = p[i];
  float sum = 0;
  for (int j = 0; j < n; ++j) {
    if (j == i)
      continue;
    float d = p[j].place.x - own.place.x;
    sum += p[j].mass / (d * d + 0.5f);
  }
  out[i] = sum;
}
// CHECK: __shared__ {{.*}}float p_place_x_tile[32];
// CHECK: j0 + {{.*}} < n
// CHECK: {{.*}}!= i
// CHECK: p_mass_tile[j]

__global__ void pairs(const float *x, const float *m, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float mine = x[2 * i], heavy = m[i], sum = 0;
    for (int j = 0; j < n; ++j)
      if (i != j)
        sum += m[j] / (heavy + (x[2 * j] - mine) * (x[2 * j] - mine));
    out[i] = sum;
  }
}
// PAIRS-DAG: __shared__ {{.*}}float x_tile
// PAIRS-DAG: __shared__ {{.*}}float m_tile

/// Nobody reads the element that is left out, which may not exist.
__global__ void others(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0;
    for (int j = 0; j < n; ++j)
      if (i != j)
        sum += x[j];
    out[i] = sum;
  }
}

int main(int, char **argv) {
  int n = atoi(argv[1]);
  Star *p;
  float *out;
  cudaMallocManaged(&p, n * sizeof(Star));
  cudaMallocManaged(&out, 3 * n * sizeof(float));
  float *x = (float *)p;
  for (int i = 0; i < 4 * n; ++i)
    x[i] = float(i * 7 % 31) / 31;
  pull<<<(n + 63) / 64, 64>>>(p, out, n);
  pairs<<<(n + 63) / 64, 64>>>(x, x + 2 * n, out + n, n);
  others<<<(n + 63) / 64, 64>>>(x, out + 2 * n, n);
  cudaDeviceSynchronize();
  double total = 0;
  for (int i = 0; i < 3 * n; ++i)
    total += out[i];
  printf("%g\n", total);
}
