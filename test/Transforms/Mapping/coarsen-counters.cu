// Counters that are alike in all threads, and change where every copy of a thread would change them again.
// RUN: optiml-opt --reread --emit --passes='block-shape[outside]{x=32,y=1};coarsen[outside]{style=blocked,x=4,y=1};block-shape[derived]{x=32,y=1};coarsen[derived]{style=strided,x=2,y=1};unroll[unrolled/k]{factor=4};block-shape[unrolled]{x=32,y=1};coarsen[unrolled]{style=blocked,x=2,y=1};block-shape[shared]{x=32,y=1};coarsen[shared]{style=strided,x=2,y=1};block-shape[guarded]{x=32,y=1};coarsen[guarded]{style=strided,x=2,y=1};block-shape[between]{x=32,y=1};coarsen[between]{style=strided,x=2,y=1}' %s > %t.cu
// RUN: FileCheck --input-file=%t.cu --check-prefix=TEXT %s
// RUN: %verify=%t.cu %s | FileCheck %s
// CHECK: the same results in {{[0-9]+}} runs

// TEXT-LABEL: void {{.*}} outside_{{.*}}(
// TEXT: for (int ix = 0; ix < 4; ++ix) {
// TEXT-NEXT: int s = 0;
__global__ void outside(int *o, const int *step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  while (s < n) {
    o[i] += s;
    s += step[0];
  }
}

// t follows s, which each copy counts for itself; the loop between them is shared.
__global__ void derived(int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 1;
  for (; s < n; s *= 2)
    o[i] += s;
  int t = s + 1;
  for (int k = 0; k < 4; ++k) {
    o[i] += t * k;
    t += s;
  }
  if (n > 2)
    o[i] += t;
}

__global__ void unrolled(int *o, const int *by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; ++k)
    o[i] += *by;
}

// Nothing that is counted here differs: one counter does for all copies.
// TEXT-LABEL: void {{.*}} shared_{{.*}}(
// TEXT: int s = 0;
// TEXT: for (int k = 0; k < n; ++k) {
// TEXT: s += k;
__global__ void shared(int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  for (int k = 0; k < n; ++k) {
    s += k;
    o[i] += s;
  }
}

// Under its guard the loop runs once for each copy, since what it writes may be its bound.
__global__ void guarded(int *o, const int *trips, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  if (i < n) {
    for (int k = 0; k < trips[0]; ++k) {
      s += k + 1;
      o[i] += s;
    }
  }
}

// What is made of the index between a local and its use does not tear them apart.
// TEXT-LABEL: void {{.*}} between_{{.*}}(
// TEXT: for (int ix = 0; ix < 2; ++ix) {
// TEXT-NEXT: int best = -1;
// TEXT-NEXT: for (int j = 
// TEXT: o[{{.*}}] = best;
__global__ void between(int *o, const int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int best = -1;
  const int first = i % n;
  const int last = min(first + 5, n);
  for (int j = first; j < last; ++j)
    if (x[j] > best)
      best = x[j];
  o[i] = best;
}

#include <cstdio>
int main() {
  const int n = 128;
  int *o, *by, two[1] = {2};
  cudaMalloc(&o, 6 * n * sizeof(int));
  cudaMalloc(&by, sizeof two);
  cudaMemcpy(by, two, sizeof two, cudaMemcpyHostToDevice);
  cudaMemset(o, 0, 6 * n * sizeof(int));
  outside<<<n / 32, 32>>>(o, by, 7);
  derived<<<n / 32, 32>>>(o + n, 20);
  unrolled<<<n / 32, 32>>>(o + 2 * n, by, 5);
  shared<<<n / 32, 32>>>(o + 3 * n, 5);
  guarded<<<n / 32, 32>>>(o + 4 * n, by, n);
  between<<<n / 32, 32>>>(o + 5 * n, o, n);
  int h[6 * n];
  cudaMemcpy(h, o, sizeof h, cudaMemcpyDeviceToHost);
  long sum = 0;
  for (int x : h)
    sum += x;
  printf("%ld\n", sum);
}
