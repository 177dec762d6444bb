// RUN: %plan --passes='specialize-scalar[taps:width]{value=5}' %s | FileCheck %s
// RUN: %opt --passes='specialize-scalar[pitched:stride]{value=3};specialize-scalar[pitched:shift]{value=-2}' %s | %check=TYPED
// RUN: optiml-opt --list-sites --scalar=width=5 --scalar=n=100000 --scalar=stride=3 --scalar=shift=-2 %s | %check=SITES
// RUN: %refused --passes='specialize-scalar[taps:width]' %s 2>&1 | %check=VALUE
// RUN: %refused --passes='specialize-scalar[taps:in]{value=5}' %s 2>&1 | %check=POINTER
// RUN: %refused --passes='specialize-scalar[pitched:stride]{value=-1}' %s 2>&1 | %check=RANGE
// RUN: %refused --passes='specialize-scalar[halve:n]{value=8}' %s 2>&1 | %check=CHANGED
// RUN: %plan --passes='specialize-scalar[strided:p.taps]{value=3}' %s | %check=MEMBER
// RUN: %plan --passes='specialize-scalar[nearest:p.taps]{value=3};unroll[nearest/c/k]{factor=full}' %s | %check=LOCALS
// RUN: optiml-opt --emit --passes='specialize-scalar[taps:width]{value=5};unroll[taps/k]{factor=full}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o

// Sums and products of constants are folded, and the loop has a constant trip count.
// CHECK: when width == 5  (the kernel is written for this value)
// CHECK: __global__ void {{taps.*}}(const float *in, const float *w, float *out, int n, int width) {
// CHECK-NEXT: int x = blockIdx.x * blockDim.x + threadIdx.x;
// CHECK-NEXT: if (x >= n - 4) {
// CHECK: for (int k = 0; k < 5; ++k) {
// CHECK-NEXT: s += in[x + k] * w[4 - k];
// VALUE: the value of 'width' is not given
// POINTER: there is no integer parameter 'in'
__global__ void taps(const float *in, const float *w, float *out, int n, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n - width + 1)
    return;
  float s = 0;
  for (int k = 0; k < width; ++k)
    s += in[x + k] * w[width - 1 - k];
  out[x] = s;
}

// Arithmetic keeps its type.
// TYPED: out[x * (unsigned long)3 + -2] = in[x / (unsigned long)3];
// RANGE: -1 is no value of 'stride'
__global__ void pitched(const float *in, float *out, unsigned long stride, int shift) {
  unsigned long x = blockIdx.x * blockDim.x + threadIdx.x;
  out[x * stride + shift] = in[x / stride];
}

// MEMBER: when p.taps == 3  (the kernel is written for this value)
// MEMBER: for (int k = 0; k < 3; ++k) {
// MEMBER-NEXT: s += in[x * p.stride + k];
struct Shape {
  float scale;
  int taps;
  unsigned short stride;
};
__global__ void strided(const float *in, float *out, Shape p) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < p.taps; ++k)
    s += in[x * p.stride + k];
  out[x] = s * p.scale;
}

// Locals and parameters of helpers that keep its value give way to it; one that changes stays, and one that a person
// made a constant.
// LOCALS: const int names = 2;
// LOCALS: for (int c = 0; c < names; ++c) {
// LOCALS-NOT: dims
// LOCALS: unsigned int left = (unsigned int)3;
// LOCALS: for (unsigned int k = 0; k < (unsigned int)3; ++k) {
// LOCALS-NEXT: sum += in[(long long)x + c + k * (unsigned int)4];
// LOCALS-NEXT: left -= k;
__device__ float difference(const float *a, unsigned dims, unsigned more) {
  float sum = 0;
  unsigned left = dims;
  for (unsigned k = 0; k < dims; ++k) {
    sum += a[k * more];
    left -= k;
  }
  return sum * left;
}
__global__ void nearest(const float *in, float *out, Shape p) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int names = 2;
  float best = 1e30f;
  for (int c = 0; c < names; ++c) {
    const unsigned d = p.taps, more = d + 1;
    best = fminf(best, difference(in + x + c, d, more));
  }
  out[x] = best;
}

// CHANGED: the kernel changes its parameter 'n'
__global__ void halve(float *x, int n) {
  for (; n > 1; n /= 2)
    x[n] = x[n / 2];
}

// What bounds a loop, divides, or is a small factor, where all launches agree on a value.
// SITES-NOT: specialize-scalar
// SITES: specialize-scalar[pitched:stride]{value=3}
// SITES-NOT: specialize-scalar
// SITES: specialize-scalar[taps:width]{value=5}
// SITES-NOT: specialize-scalar

int main() {
  taps<<<1, 32>>>(nullptr, nullptr, nullptr, 0, 5);
}
