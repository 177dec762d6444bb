// RUN: %plan --passes='qualify-pointers[copy]' %s | FileCheck %s
// RUN: %refused --passes='qualify-pointers[gather]' %s 2>&1 | %check=GATHER
// RUN: %refused --passes='qualify-pointers[done]' %s 2>&1 | %check=DONE

// CHECK: when disjoint(from, 4 * n, to, 4 * n)
// CHECK: copy_optiml{{[0-9]*}}(const float *__restrict__ from, float *__restrict__ to, int n)
__global__ void copy(float *from, float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[i];
}

// GATHER: the range of from that the kernel touches cannot be bounded
__global__ void gather(float *from, const int *index, float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[index[i]];
}

// DONE: every pointer parameter is __restrict__ already
__global__ void done(const float *__restrict__ from, float *__restrict__ to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[i];
}
