// What all threads divide by is inverted once.
// RUN: %opt --passes='reciprocal-divisors[weights]' %s | %check=WEIGHTS
// RUN: %opt --passes='reciprocal-divisors[means]' %s | %check=MEANS
// RUN: %refused --passes='reciprocal-divisors[others]' %s 2>&1 | %check=NONE
// RUN: %refused --fp=strict --passes='reciprocal-divisors[weights]' %s 2>&1 | %check=STRICT
// NONE: no float is divided again and again by what the arguments tell
// STRICT: results may not be rounded otherwise (--optiml-fp=strict)

// RUN: optiml-opt --reread --emit --passes='reciprocal-divisors[weights];reciprocal-divisors[means]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 700 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

struct Filter {
  float sigma;
  int taps;
};

// WEIGHTS: const float [[I:inverse[0-9]*]] = 1.0f / (2.0f * f.sigma * f.sigma);
// WEIGHTS-NOT: const float
// WEIGHTS: s += expf(-(k * k) * [[I]]) * x[i + k];
// WEIGHTS: norm += expf(-(k * k) * [[I]]);
// WEIGHTS: y[i] = s / norm;
__global__ void weights(const float *x, float *y, Filter f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + f.taps > n)
    return;
  float two = 2.0f * f.sigma, s = 0, norm = 0;
  for (int k = 0; k < f.taps; ++k) {
    s += expf(-(k * k) / (two * f.sigma)) * x[i + k];
    norm += expf(-(k * k) / (two * f.sigma));
  }
  y[i] = s / norm;
}

// Twice without a loop; `/=` as well; by an integer.
// MEANS: const float inverse = 1.0f / (float)n;
// MEANS: float m = x[i] * inverse;
// MEANS: m *= inverse;
__global__ void means(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float m = x[i] / n;
  m /= (float)n;
  y[i] += m;
}

// A divisor of the thread, one that changes, one of memory, a double, a constant, a quotient of integers, which may
// fault, and a single division.
__global__ void others(const float *x, float *y, double d, float s, float once, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0, last = s;
  for (int k = 0; k < n; ++k) {
    sum += x[k] / (i + 1) + x[k] / last + x[k] / x[0] + float(x[k] / d) + x[k] / 3.0f + x[k] / (float)(n / 7);
    last += 1.0f;
  }
  y[i] += sum / once;
}

int main(int argc, char **argv) {
  const int n = atoi(argv[1]);
  float *host = (float *)malloc(n * sizeof(float)), *x, *y;
  for (int i = 0; i < n; ++i)
    host[i] = float(i * 37 % 101) / 16.0f;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(y, 0, n * sizeof(float));
  weights<<<(n + 63) / 64, 64>>>(x, y, {1.7f, 5}, n);
  means<<<(n + 63) / 64, 64>>>(x, y, n);
  cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += host[i] * (1 + i % 7);
  printf("%.4g\n", sum);
  return 0;
}
