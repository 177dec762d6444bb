// A mean and a variance of one pass (Welford) are shared out, and combined as Chan, Golub and LeVeque do.
// RUN: %opt --passes='distribute-loop[moments]{threads=64}' %s | %check=MOMENTS
// RUN: %opt --passes='distribute-loop[scaled]{threads=32,rows=2}' %s | %check=SCALED
// RUN: %refused --fp=strict --passes='distribute-loop[moments]{threads=64}' %s 2>&1 | %check=STRICT
// RUN: %refused --passes='distribute-loop[old]{threads=64}' %s 2>&1 | %check=OLD
// RUN: %refused --passes='distribute-loop[twice]{threads=64}' %s 2>&1 | %check=TWICE
// RUN: optiml-opt --reread --emit --passes='distribute-loop[moments]{threads=64};distribute-loop[scaled]{threads=32,rows=2}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 5 300 | %check=SAME
// RUN: %verify=%t.cu %s -- 5 3 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 5 300 2>&1 | %check=RAN
// RAN-DAG: moments: 1 optimized, 0 original launches
// RAN-DAG: scaled: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// MOMENTS: int other_count = __shfl_xor_sync(0xffffffff, count, offset);
// MOMENTS-NEXT: if (other_count != 0) {
// MOMENTS-NEXT: const float m_distance = other_m - m;
// MOMENTS-NEXT: const float count_share = (float)other_count / (float)(count + other_count);
// MOMENTS-NEXT: m2 += other_m2 + m_distance * m_distance * (float)count * count_share;
// MOMENTS-NEXT: m += m_distance * count_share;
// MOMENTS-NEXT: count += other_count;
// STRICT: the order in which 'm' is computed may not change
__global__ void moments(const float *x, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = 0, m2 = 0;
    int count = 0;
    for (int j = 0; j < cols; ++j) {
      float v = x[r * cols + j];
      ++count;
      float d = v - m;
      m += d / count;
      m2 += d * (v - m);
    }
    out[2 * r] = m;
    out[2 * r + 1] = m2 / count;
  }
}
// The lanes of a warp go on with one result.
// SCALED: mean = __shfl_sync(0xffffffff, mean, 0);
__global__ void scaled(const float *x, double *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    double n = 0, mean = 0, squares = 0;
    for (int j = 0; j < cols; ++j) {
      double v = x[r * cols + j], before = mean;
      n += 1;
      mean = before + (v - before) * (1.0 / n);
      squares = squares + (v - mean) * (v - before);
    }
    out[2 * r] = mean;
    out[2 * r + 1] = squares / n;
  }
}
// Both distances are from the old mean.
// OLD: is no sum, product or extreme alone
__global__ void old(const float *x, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = 0, m2 = 0;
    int count = 0;
    for (int j = 0; j < cols; ++j) {
      ++count;
      float d = x[r * cols + j] - m;
      m += d / count;
      m2 += d * d;
    }
    out[r] = m2 / count + m;
  }
}
// TWICE: is no sum, product or extreme alone
__global__ void twice(const float *x, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = 0, m2 = 0;
    int count = 0;
    for (int j = 0; j < cols; ++j) {
      count += 2;
      float v = x[r * cols + j], d = v - m;
      m += d / count;
      m2 += d * (v - m);
    }
    out[r] = m2 / count + m;
  }
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 5, cols = argc > 2 ? atoi(argv[2]) : 300;
  float *x, *out;
  double *wide;
  cudaMallocManaged(&x, rows * cols * sizeof(float));
  cudaMallocManaged(&out, 4 * rows * sizeof(float));
  cudaMallocManaged(&wide, 2 * rows * sizeof(double));
  for (int i = 0; i < rows * cols; ++i)
    x[i] = (i * 37 % 101) / 8.0f + 50;
  moments<<<1, 32>>>(x, out, rows, cols);
  scaled<<<1, 32>>>(x, wide, rows, cols);
  old<<<1, 32>>>(x, out + 2 * rows, rows, cols);
  twice<<<1, 32>>>(x, out + 3 * rows, rows, cols);
  cudaDeviceSynchronize();
  printf("%g %g %g\n", out[0], out[1], wide[1]);
  return 0;
}
