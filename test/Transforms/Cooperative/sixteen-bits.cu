// Sums that end in 16-bit floats may be reordered: a last bit or two of the result may differ, and no more.
// RUN: optiml-opt --emit --passes='distribute-loop[normalize<__half>]{threads=32,rows=8};distribute-loop[normalize<__nv_bfloat16>]{threads=128}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 159 159 | %check=SAME
// RUN: not optiml-run --fp=strict --verify=%t.cu %s -- 19 301 | %check=STRICT
// RUN: sed 's/1e-5f/3e-3f/' %t.cu > %t.wrong.cu
// RUN: not optiml-run --verify=%t.wrong.cu %s -- 19 301 | %check=WRONG
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// SAME: the same results
// STRICT: cudaMalloc #{{[0-9]}}[{{[0-9]+}}]: {{-?[0-9.]+}} instead of {{-?[0-9.]+}}
// WRONG: cudaMalloc #{{[0-9]}}[{{[0-9]+}}]: {{-?[0-9.]+}} instead of {{-?[0-9.]+}}
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

// A row a thread, to mean 0 and variance 1.
template <typename T> __global__ void normalize(const T *x, T *y, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float sum = 0, squares = 0;
  for (int c = 0; c < columns; ++c) {
    float v = float(x[r * columns + c]);
    sum += v;
    squares += v * v;
  }
  float mean = sum / columns, scale = rsqrtf(squares / columns - mean * mean + 1e-5f);
  for (int c = 0; c < columns; ++c)
    y[r * columns + c] = T((float(x[r * columns + c]) - mean) * scale);
}

template <typename T> static double run(int rows, int columns) {
  std::vector<T> x(size_t(rows) * columns), y(x.size());
  unsigned seed = 5;
  for (T &v : x)
    v = T(float((seed = seed * 1664525u + 1013904223u) >> 16) / 65536.0f);
  T *in, *out;
  cudaMalloc(&in, x.size() * sizeof(T));
  cudaMalloc(&out, x.size() * sizeof(T));
  cudaMemcpy(in, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice);
  normalize<<<(rows + 63) / 64, 64>>>(in, out, rows, columns);
  cudaMemcpy(y.data(), out, x.size() * sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
  double largest = 0;
  for (T v : y)
    largest = std::max(largest, double(float(v)));
  return largest;
}

int main(int argc, char **argv) {
  int rows = atoi(argv[1]), columns = atoi(argv[2]);
  printf("%.3g %.3g\n", run<__half>(rows, columns), run<__nv_bfloat16>(rows, columns));
}
