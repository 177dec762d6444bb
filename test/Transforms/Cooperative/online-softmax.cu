// The maximum and the sum of exponentials of one pass are shared out together, however the update is written.
// RUN: %opt --passes='distribute-loop[largest]{threads=64}' %s | %check=LARGEST
// RUN: %opt --passes='distribute-loop[branches]{threads=32,rows=4}' %s | %check=BRANCHES
// RUN: %opt --passes='distribute-loop[weighted]{threads=32,rows=2}' %s | %check=WEIGHTED
// RUN: %refused --fp=strict --passes='distribute-loop[branches]{threads=64}' %s 2>&1 | %check=STRICT
// RUN: %refused --passes='distribute-loop[unscaled]{threads=64}' %s 2>&1 | %check=UNSCALED
// RUN: %refused --passes='distribute-loop[smallest]{threads=64}' %s 2>&1 | %check=SMALLEST
// RUN: %refused --passes='distribute-loop[watched]{threads=64}' %s 2>&1 | %check=WATCHED
// RUN: optiml-opt --reread --emit --passes='distribute-loop[largest]{threads=64};distribute-loop[branches]{threads=32,rows=4};distribute-loop[weighted]{threads=32,rows=2}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 7 300 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 5 3 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 7 300 masked | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 7 300 2>&1 | %check=RAN
// RAN-DAG: largest: 1 optimized, 0 original launches
// RAN-DAG: branches: 1 optimized, 0 original launches
// RAN-DAG: weighted: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cmath>
#include <cstdio>
#include <cstdlib>

// A thread that sees nothing but masked elements has no number without this.
// LARGEST: float s = 0;
// LARGEST-NEXT: const float m_before = m;
// LARGEST-NEXT: if (threadIdx.x != 0) {
// LARGEST-NEXT: if (m < -3.40282347e+38f) {
// LARGEST-NEXT: m = -3.40282347e+38f;
// LARGEST: for (int j = threadIdx.x; j < cols; j += 64) {
// LARGEST: m = mn;
// LARGEST: if (threadIdx.x != 0) {
// LARGEST-NEXT: if (m == -3.40282347e+38f && s == 0) {
// LARGEST-NEXT: m = m_before;
// LARGEST: float other_m = __shfl_xor_sync(0xffffffff, m, offset);
// LARGEST-NEXT: float other_s = __shfl_xor_sync(0xffffffff, s, offset);
// LARGEST-NEXT: if (other_m > m) {
// LARGEST-NEXT: s = s * expf(m - other_m) + other_s;
// LARGEST-NEXT: m = other_m;
// LARGEST-NEXT: } else {
// LARGEST-NEXT: s += other_m == m ? other_s : other_s * expf(other_m - m);
// LARGEST: m_of_warps[threadIdx.x / 32] = m;
// LARGEST-NEXT: s_of_warps[threadIdx.x / 32] = s;
__global__ void largest(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = -INFINITY, s = 0;
    for (int j = 0; j < cols; ++j) {
      float v = x[r * cols + j];
      float mn = fmaxf(m, v);
      s = s * expf(m - mn) + expf(v - mn);
      m = mn;
    }
    for (int j = 0; j < cols; ++j)
      y[r * cols + j] = expf(x[r * cols + j] - m) / s;
  }
}

// Only the first thread's sum starts with the first element.
// BRANCHES: if (threadIdx.x != 0) {
// BRANCHES-NEXT: s = 0.0f;
// BRANCHES: for (int j = 1 + threadIdx.x; j < cols; j += 32) {
// BRANCHES: if (other_m > m) {
// STRICT: the order in which 'm' is computed may not change
__global__ void branches(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    const float *row = x + r * cols;
    float m = row[0], s = 1.0f;
    for (int j = 1; j < cols; ++j) {
      float v = row[j];
      if (v <= m) {
        s += expf(v - m);
      } else {
        s *= expf(m - v);
        s += 1.0f;
        m = v;
      }
    }
    y[r * cols] = m + logf(s);
  }
}

// WEIGHTED: double other_s = __shfl_xor_sync
// WEIGHTED: s = s * exp(m - other_m) + other_s;
__global__ void weighted(const float *x, const float *w, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    double m = -1e300, s = 0;
    for (int j = 0; j < cols; ++j) {
      double v = x[r * cols + j], weight = w[j], old = m;
      m = v > m ? v : m;
      double correction = exp(old - m);
      s = weight * exp(v - m) + s * correction;
    }
    y[r * cols] = m + log(s);
  }
}

// The sum is not scaled to the new maximum.
// UNSCALED: is no sum, product or extreme alone
__global__ void unscaled(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = -INFINITY, s = 0;
    for (int j = 0; j < cols; ++j) {
      float mn = fmaxf(m, x[r * cols + j]);
      s = s + expf(x[r * cols + j] - mn);
      m = mn;
    }
    y[r] = m + logf(s);
  }
}
// The scale is that of the smallest one, and the branches are exchanged.
// SMALLEST: is no sum, product or extreme alone
__global__ void smallest(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = -INFINITY, s = 0;
    for (int j = 0; j < cols; ++j) {
      float v = x[r * cols + j];
      if (v < m) {
        s = s * expf(m - v) + 1.0f;
        m = v;
      } else {
        s += expf(v - m);
      }
    }
    y[r] = m + logf(s);
  }
}
// Every value on the way is looked at.
// WATCHED: is no sum, product or extreme alone
__global__ void watched(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float m = -INFINITY, s = 0;
    for (int j = 0; j < cols; ++j) {
      float v = x[r * cols + j];
      float mn = fmaxf(m, v);
      s = s * expf(m - mn) + expf(v - mn);
      m = mn;
      y[r * cols + j] = s;
    }
  }
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 7, cols = argc > 2 ? atoi(argv[2]) : 300;
  float *x, *w, *y[6];
  cudaMallocManaged(&x, rows * cols * sizeof(float));
  cudaMallocManaged(&w, cols * sizeof(float));
  for (float *&data : y) {
    cudaMallocManaged(&data, rows * cols * sizeof(float));
    for (int i = 0; i < rows * cols; ++i)
      data[i] = 0;
  }
  bool masked = argc > 3; // every element beyond the diagonal
  for (int i = 0; i < rows * cols; ++i)
    x[i] = masked && i % cols > i / cols ? -INFINITY : (i * 37 % 101) / 8.0f - 5;
  for (int i = 0; i < cols; ++i)
    w[i] = (i % 7) / 4.0f + 0.25f;
  largest<<<1, 32>>>(x, y[0], rows, cols);
  branches<<<1, 32>>>(x, y[1], rows, cols);
  weighted<<<1, 32>>>(x, w, y[2], rows, cols);
  unscaled<<<1, 32>>>(x, y[3], rows, cols);
  smallest<<<1, 32>>>(x, y[4], rows, cols);
  watched<<<1, 32>>>(x, y[5], rows, cols);
  cudaDeviceSynchronize();
  printf("%g %g %g\n", y[0][0], y[1][0], y[2][0]);
  return 0;
}
