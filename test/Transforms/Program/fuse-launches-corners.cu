// What fusing must leave as it is: skipped stores, two loops of one kernel, loops that share a variable's name,
// pointers in structs that are passed twice.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.txt
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: optiml-run %t.cu > %t.after
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s < %t.cu
// CHECK: roots_fused
// CHECK: scale_scale_fused
#include <cstdio>
#include <vector>

__global__ void shift(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] - 0.5f;
}

// A negative element keeps what shift has stored.
__global__ void roots(float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (y[i] < 0)
      continue;
    y[i] = sqrtf(y[i]);
  }
}

// The second loop needs all of the first.
__global__ void share(const float *x, float *y, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += x[i];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] / sum;
}

// An ordinary loop beside the grid-stride one, with the same variable.
__global__ void weigh(float *y, const float *w, int n) {
  float sum = 0;
  for (int i = 0; i < 8; ++i)
    sum += w[i];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] *= sum;
}

__global__ void negate(float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = -y[i];
}

struct Args {
  float *data;
  int n;
};

__global__ void scale(Args a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.n)
    a.data[i] *= 2;
}

static void show(const float *d, int n) {
  std::vector<float> h(n);
  cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += (i % 7 + 1) * h[i];
  printf("%.6f\n", sum);
}

int main() {
  const int n = 300;
  std::vector<float> h(n);
  for (int i = 0; i < n; ++i)
    h[i] = (float)(i * 37 % 64) / 64.0f;
  float *x, *y, *z;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&z, n * sizeof(float));
  cudaMemcpy(x, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(z, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  shift<<<2, 64>>>(x, y, n);
  roots<<<2, 64>>>(y, n);
  show(y, n);
  share<<<1, 32>>>(x, y, n);
  negate<<<1, 32>>>(y, n);
  show(y, n);
  weigh<<<2, 64>>>(y, x, n);
  negate<<<2, 64>>>(y, n);
  show(y, n);
  Args p{x, n}, q{z, n};
  scale<<<5, 64>>>(p);
  scale<<<5, 64>>>(q);
  show(x, n);
  show(z, n);
  return 0;
}
