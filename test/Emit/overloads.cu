// Of kernels with the same name the first is rewritten, and only its own launches. The others are told.
// RUN: optiml-opt --list-sites %s 2>&1 | %check=SITES
// RUN: optiml-opt --emit --passes='block-shape[scale]{x=256,y=1}' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=ONE
// RUN: optiml-opt --emit --fuse-launches %s > %t.fused.cu 2> %t.notes
// RUN: %check=NOTES < %t.notes
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.fused.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: %check=FUSED < %t.paths
#include <cstdio>

__global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= 2;
}
__global__ void scale(float *x, float n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= n / 256;
}
__global__ void shift(float *x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += by;
}
// SITES: scale{{.*}} a kernel of the same name, with other parameters, is rewritten
// ONE: scale: 1 optimized, 0 original launches
// NOTES: scale cannot be read: a kernel of the same name, with other parameters, is rewritten
// FUSED: scale_shift_{{fused}}: 1 optimized, 0 original launches

int main() {
  const int n = 1000;
  float *a, host[n];
  for (int i = 0; i < n; ++i)
    host[i] = i % 13;
  cudaMalloc(&a, sizeof(host));
  cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice);
  scale<<<(n + 127) / 128, 128>>>(a, n);
  shift<<<(n + 127) / 128, 128>>>(a, 0.25f, n);
  cudaMemcpy(host, a, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g\n", host[n - 1]);
  scale<<<(n + 127) / 128, 128>>>(a, n - 0.5f);
  shift<<<(n + 127) / 128, 128>>>(a, 0.25f, n);
  cudaMemcpy(host, a, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g\n", host[n - 1]);
}
