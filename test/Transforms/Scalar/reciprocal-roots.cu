// Divisions by square roots become products with their reciprocals. What may change in between stays, and so do doubles
// and functions of the same name.
// RUN: %opt --passes='reciprocal-roots[bodies]' %s | %check=BODIES
// RUN: %opt --passes='reciprocal-roots[unit<float>]' %s | %check=UNIT
// RUN: %opt --passes='reciprocal-roots[cubes]' %s | %check=CUBES
// RUN: %opt --passes='reciprocal-roots[changes]' %s | %check=CHANGES
// RUN: %refused --passes='reciprocal-roots[others]' %s 2>&1 | %check=NONE
// RUN: %refused --fp=strict --passes='reciprocal-roots[bodies]' %s 2>&1 | %check=STRICT
// NONE: no float is divided by a square root
// STRICT: results may not be rounded otherwise (--optiml-fp=strict)

// RUN: optiml-opt --reread --emit --passes='reciprocal-roots[bodies];reciprocal-roots[unit<float>];reciprocal-roots[cubes];reciprocal-roots[changes]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

// The root is used elsewhere, too.
// BODIES: float far = sqrtf(d2);
// BODIES-NEXT: float far_inverse = rsqrtf(d2);
// BODIES: float w = g * mass[j] * far_inverse * far_inverse * far_inverse;
// BODIES: sum += far < 3.0f ? w * d : 0.0f;
__global__ void bodies(const float *at, const float *mass, float *out, float g, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float sum = 0.0f;
  for (unsigned j = 0; j < n; j++) {
    float d = at[j] - at[i];
    float d2 = d * d + 0.01f;
    const float far = sqrtf(d2);
    float w = g * mass[j] / (far * far * far);
    sum += far < 3.0f ? w * d : 0.0f;
  }
  out[i] = sum;
}

// UNIT: float norm_inverse = rsqrtf(x * x + y * y);
// UNIT-NOT: sqrtf
// UNIT: v[2 * i] = x * norm_inverse;
// UNIT: y = y * norm_inverse;
// UNIT: v[2 * i + 1] = y;
template <typename T> __global__ void unit(T *v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    T x = v[2 * i], y = v[2 * i + 1];
    T norm = std::sqrt(x * x + y * y);
    v[2 * i] = x / norm;
    y /= norm;
    v[2 * i + 1] = y;
  }
}

// A condition has no place before it where a root could be kept. The root of a constant stays.
// CUBES: float root_inverse = rsqrtf(r2);
// CUBES-NEXT: f += q * root_inverse * root_inverse * root_inverse;
// CUBES: f += q / k * rsqrtf(r2 + 1.0f);
// CUBES: f += rsqrtf(in[i] + 2.0f);
// CUBES: f += 1 / (float)n * rsqrtf(r2 + 4.0f);
// CUBES: f += f / sqrtf(2.0f);
// CUBES: if (i > 3 && q / (r2 * sqrtf(r2)) > 0.0f) {
// CUBES: float root_inverse1 = rsqrtf(r2);
// CUBES-NEXT: out[i] = f + (i > 3 ? q * root_inverse1 * root_inverse1 * root_inverse1 : 0.0f);
__global__ void cubes(const float *in, float *out, float q, float k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float r2 = in[i] * in[i] + 0.5f, f = 0;
  f += q / (r2 * sqrtf(r2));
  f += q / (k * sqrtf(r2 + 1.0f));
  f += 1 / sqrtf(in[i] + 2.0f);
  f += 1 / (n * sqrtf(r2 + 4.0f));
  f += f / sqrtf(2.0f); // the compiler takes this root
  if (i > 3 && q / (r2 * sqrtf(r2)) > 0.0f)
    f += 1.0f;
  out[i] = f + (i > 3 ? q / (r2 * sqrtf(r2)) : 0.0f);
}

// What the root was taken of has changed since.
// CHANGES: float s = sqrtf(x);
// CHANGES: x += 1.0f;
// CHANGES: out[i] = 1.0f / (x * s);
// CHANGES: s = 2.0f;
__global__ void changes(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i] + 1.0f, s = sqrtf(x), t = sqrtf(x + 3.0f);
  x += 1.0f;
  out[i] = 1.0f / (x * s);
  s = 2.0f;
  out[i] += s / t;
}

__device__ float root(float x) { return x * 0.5f; }

__global__ void others(const double *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double wide = 1.0 / sqrt(in[i] + 1.0);
    out[i] = 2.0f / root(float(i)) + sqrtf(float(wide)) / 3.0f + float(wide);
  }
}

int main() {
  const int n = 300;
  float *x, *m, *y;
  double *d;
  cudaMallocManaged(&x, 2 * n * sizeof(float));
  cudaMallocManaged(&m, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&d, n * sizeof(double));
  double sum = 0;
  auto add = [&] {
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i)
      sum += y[i] + x[i];
  };
  for (int i = 0; i < n; ++i)
    x[i] = 1 + i % 7, x[n + i] = 2 - i % 5 * 0.5f, m[i] = i % 3 + 0.5f, d[i] = i;
  bodies<<<2, 150>>>(x, m, y, 0.5f, n);
  add();
  cubes<<<2, 150>>>(x, y, 0.75f, 3.0f, n);
  add();
  changes<<<2, 150>>>(x, y, n);
  add();
  others<<<2, 150>>>(d, y, n);
  add();
  unit<<<2, 150>>>(x, n);
  add();
  printf("%.4g\n", sum);
}
