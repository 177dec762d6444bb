// Less exact arithmetic, where the user allows it, within a budget that the verifier holds it to.
// RUN: %opt --fp=fast --passes='fast-arithmetic[sigmoid]{use=single}' %s | %check=SINGLE
// RUN: %opt --fp=fast --passes='fast-arithmetic[sigmoid]{use=single};fast-arithmetic[sigmoid]{use=intrinsics}' %s | %check=BOTH
// RUN: %opt --fp=fast --passes='fast-arithmetic[forces]{use=intrinsics}' %s | %check=FORCES
// RUN: %opt --fp=fast --passes='fast-arithmetic[mixed]{use=single}' %s | %check=MIXED
// RUN: %refused --passes='fast-arithmetic[sigmoid]{use=single}' %s 2>&1 | %check=NOT
// RUN: %refused --fp=fast --passes='fast-arithmetic[doubles]{use=single}' %s 2>&1 | %check=DOUBLES
// RUN: %refused --fp=fast --passes='fast-arithmetic[own]{use=intrinsics}' %s 2>&1 | %check=OWN
// RUN: %refused --fp=fast:2 --passes='fast-arithmetic[own]{use=intrinsics}' %s 2>&1 | %check=BUDGET
// NOT: results may not become less exact (--optiml-fp=fast allows it)
// DOUBLES: no float is computed in double precision that could do without
// OWN: there are no functions or divisions of floats that have a faster form
// BUDGET: want strict, reassoc, fast, tf32, or one of the last two with a relative error between 0 and 1

// RUN: optiml-opt --reread --emit --fp=fast --passes='fast-arithmetic[sigmoid]{use=single};fast-arithmetic[forces]{use=intrinsics};fast-arithmetic[mixed]{use=single}' %s > %t.cu
// RUN: %verify=%t.cu --fp=fast %s
// RUN: not optiml-run --verify=%t.cu --fp=strict %s
#include <cstdio>
#include <cuda_runtime.h>

// SINGLE: y[i] = 1.0f / (1.0f + expf(-x[i] * 0.5f));
// BOTH: y[i] = __fdividef(1.0f, 1.0f + __expf(-x[i] * 0.5f));
__global__ void sigmoid(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 1.0 / (1.0 + exp(-x[i] * 0.5));
}

// FORCES: float inverse = rsqrtf(d * d + soft);
// FORCES: f += m[k] * rsqrtf(d * d + 1.0f) * inverse;
// FORCES: a[i] = __fdividef(__logf(f + 2), w) / 3.0f;
__global__ void forces(const float *p, const float *m, float *a, int n, float soft, float w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float f = 0;
  for (int k = 0; k < n; ++k) {
    float d = p[k] - p[i];
    float inverse = 1 / sqrtf(d * d + soft);
    f += m[k] / std::sqrt(d * d + 1.0f) * inverse;
  }
  a[i] = logf(f + 2) / w / 3.0f;
}

// A double that is one stays: in s, and in what is made from it.
// MIXED: double s = 0;
// MIXED: s += 0.1 * x[i];
// MIXED: float h = sqrtf((float)x[i] + 2.5f);
// MIXED: y[i] = h * (i % 2 ? 1.5f : 0.25f) * powf(x[i], 2.0f);
// MIXED: z[i] = s / 3.0;
__global__ void mixed(const float *x, float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double s = 0;
  s += 0.1 * x[i];
  float h = sqrt((double)x[i] + 2.5);
  y[i] = h * (i % 2 ? 1.5 : 0.25) * pow(x[i], 2.0);
  z[i] = s / 3.0;
}

__global__ void doubles(const double *x, double *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = exp(-x[i]) * 0.5;
    z[i] = x[i] * 0.5;
    if (z[i] > 0.1)
      z[i] = 1;
  }
}

namespace mine {
__device__ float expf(float x) { return x * x; }
} // namespace mine

__global__ void own(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = mine::expf(x[i]) / 4.0f;
}

int main() {
  const int n = 500;
  float *x, *m, *y;
  cudaMallocManaged(&x, n * 4);
  cudaMallocManaged(&m, n * 4);
  cudaMallocManaged(&y, 4 * n * 4);
  for (int i = 0; i < n; ++i) {
    x[i] = (i * 37 % 101) * 0.0625f;
    m[i] = 1.0f + i % 3;
  }
  sigmoid<<<4, 128>>>(x, y, n);
  forces<<<4, 128>>>(x, m, y + n, n, 0.01f, 3.7f);
  mixed<<<4, 128>>>(x, y + 2 * n, y + 3 * n, n);
  printf("%d\n", cudaDeviceSynchronize());
}
