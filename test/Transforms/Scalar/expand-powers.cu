// Powers with a whole exponent as products: bases that are computed stand in front, where they are computed anyway.
// RUN: %opt --passes='expand-powers[powers]' %s | FileCheck %s
// RUN: %opt --passes='expand-powers[hidden]' %s | %check=HIDDEN
// RUN: optiml-opt --reread --emit --passes='expand-powers[powers];expand-powers[hidden]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --fp=strict --passes='expand-powers[powers]' %s 2>&1 | %check=STRICT
// RUN: %refused --passes='expand-powers[others]' %s 2>&1 | %check=OTHERS
// SAME: the same results
// STRICT: results may not be rounded otherwise (--optiml-fp=strict)
// OTHERS: no power has a whole exponent of at most 16 that is known
#include <cmath>
#include <cstdio>

struct Own {
  float of;
  __device__ friend float pow(Own o, float e) { return o.of + e; }
};

// CHECK: float base = x[i] - 1.0f;
// CHECK-NEXT: y[i] = v * v + v * v * v - 1.0f / (base * base) * ((double)v * (double)v) + exp2f(v);
// CHECK-NEXT: double base1 = x[i] * 0.5 + 1;
// CHECK-NEXT: d[i] = base1 * base1 * base1 * (base1 * base1 * base1) + (v > 0.5f ? (double)(x[i] * 2) * (double)(x[i] * 2) * (double)(x[i] * 2) : 1.0 / (double)v);
// CHECK-NEXT: if (v * v > 0.25f && (x[i] + v) * (x[i] + v) < 2.0f) {
// CHECK-NEXT: y[i] += (double)i * (double)i;
__global__ void powers(float *y, double *d, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i];
  y[i] = powf(v, 2.0f) + pow(v, 3.0f) - powf(x[i] - 1.0f, -2) * std::pow(v, 2) + powf(2.0f, v);
  d[i] = pow(x[i] * 0.5 + 1, 6.0) + (v > 0.5f ? pow(x[i] * 2, 3) : pow((double)v, -1.0));
  if (powf(v, 2.f) > 0.25f && powf(x[i] + v, 2.f) < 2.0f)
    y[i] += pow(i, 2);
}

// A base that changes on the way is not computed in front of it.
// HIDDEN: y[i] = powf(x[k++] + 1.0f, 2.0f) + x[i] * x[i] + x[k % n];
__global__ void hidden(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = i;
  if (i < n)
    y[i] = powf(x[k++] + 1.0f, 2.0f) + powf(x[i], 2.0f) + x[k % n];
}

__global__ void others(float *y, const float *x, float e, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] =
        powf(x[i], 0.5f) + powf(x[i], e) + powf(x[i], 13.0f) + powf(x[i], 0.0f) + pow(Own{x[i]}, 2.0f) + powf(e, x[i]);
}

int main() {
  const int n = 256;
  float h[n], *x, *y;
  double *d, r[n];
  for (int i = 0; i < n; ++i)
    h[i] = (i + 2) / 100.0f;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&y, 3 * sizeof h);
  cudaMalloc(&d, sizeof r);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  powers<<<n / 64, 64>>>(y, d, x, n);
  hidden<<<n / 64, 64>>>(y + n, x, n);
  others<<<n / 64, 64>>>(y + 2 * n, x, 1.5f, n);
  float out[3 * n];
  cudaMemcpy(out, y, sizeof out, cudaMemcpyDeviceToHost);
  cudaMemcpy(r, d, sizeof r, cudaMemcpyDeviceToHost);
  double s = 0;
  for (int i = 0; i < 3 * n; ++i)
    s += out[i];
  for (double v : r)
    s += v;
  printf("%.4e\n", s);
}
