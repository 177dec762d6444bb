// unstage-shared: what it refuses, and why.
// RUN: not optiml-opt --passes='unstage-shared[scale]' %s 2>&1 | FileCheck %s
// CHECK: unstage-shared finds nothing to do at ''

__global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= factor;
}
