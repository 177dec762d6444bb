// Verbatim text names a variable as the kernel does, where another one of the same name has given it a new one.
//
// RUN: %opt --passes='block-shape[scopes]{x=64,y=1}' %s | %check=SCOPES
// RUN: optiml-opt --list-sites %s 2>&1 | %check=DECLARES
// RUN: optiml-opt --emit %s --passes='block-shape[scopes]{x=64,y=1}' > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 300 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// SCOPES: float s = x[i];
// SCOPES: float s_1 = 0;
// SCOPES: for (float e : parts)
// SCOPES-NEXT: s_1 += e * x[i];
// SCOPES: y[i] += s_1;
__global__ void scopes(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    {
      float s = x[i];
      y[i] = s * s;
    }
    {
      float parts[2] = {0.5f, 0.25f}, s = 0;
      for (float e : parts)
        s += e * x[i];
      y[i] += s;
    }
  }
}

// What the text itself declares keeps its name.
// DECLARES: declares is left alone: {{.*}}the name 's' is declared more than once
__global__ void declares(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = x[i], parts[2] = {0.5f, 0.25f};
    for (float e : parts) {
      float s = e * x[i];
      y[i] += s;
    }
    y[i] += s;
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 300;
  float *x, *y;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  for (int i = 0; i < n; ++i)
    x[i] = i % 37;
  scopes<<<(n + 127) / 128, 128>>>(x, y, n);
  declares<<<(n + 127) / 128, 128>>>(x, y, n);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += y[i];
  printf("%g\n", sum);
  return 0;
}
