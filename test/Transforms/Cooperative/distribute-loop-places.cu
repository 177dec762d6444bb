// distribute-loop: extremes that are kept with their first place (argmax and its kin). Nothing is rounded: also under
// --optiml-fp=strict.
// RUN: optiml-opt --reread --emit --passes='distribute-loop[farthest]{threads=32,rows=4};distribute-loop[nearest]{threads=64};distribute-loop[labelled]{threads=128};distribute-loop[last]{threads=32,rows=2}' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 900 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run

// RUN: %refused --passes='distribute-loop[rounded]{threads=64}' %s 2>&1 | %check=ROUNDED
// ROUNDED: what the loop computes in 'at' is no sum, product or extreme alone
// RUN: %refused --passes='distribute-loop[second]{threads=64}' %s 2>&1 | %check=SECOND
// SECOND: what the loop computes in
// RUN: %refused --passes='distribute-loop[folded]{threads=64}' %s 2>&1 | %check=FOLDED
// FOLDED: what the loop computes in 'at' is no sum, product or extreme alone
// RUN: %refused --passes='distribute-loop[both]{threads=64}' %s 2>&1 | %check=BOTH
// BOTH: what the loop computes in
// RUN: %refused --passes='distribute-loop[plane]{threads=64}' %s 2>&1 | %check=PLANE
// PLANE: what the loop computes in 'at' is no sum, product or extreme alone
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define ROW int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return

__global__ void farthest(const float *in, int *where, float *most, int rows, int n) {
  ROW;
  float m = in[i * n];
  int at = 0;
  for (int j = 1; j < n; ++j)
    if (in[i * n + j] > m) {
      m = in[i * n + j];
      at = j;
    }
  where[i] = at;
  most[i] = m;
}
// CHECK: void __launch_bounds__(128) farthest_optiml
// CHECK: for (int j = threadIdx.x + 1; j < n; j += 32) {
// CHECK: for (int offset = 16; offset > 0; offset /= 2) {
// CHECK-NEXT: int other_at = __shfl_xor_sync(0xffffffff, at, offset);
// CHECK-NEXT: float other_m = __shfl_xor_sync(0xffffffff, m, offset);
// CHECK-NEXT: if (other_m > m || other_m == m && other_at < at) {
// CHECK-NEXT: m = other_m;
// CHECK-NEXT: at = other_at;

// The nearest of the centers: the loop over them holds a loop.
__global__ void nearest(const float *p, const float *centers, int *label, int rows, int n, int d) {
  ROW;
  float best = 1e30f;
  int at = -1;
  for (int j = 0; j < n; ++j) {
    float s = 0;
    for (int k = 0; k < d; ++k)
      s += (p[i * d + k] - centers[j * d + k]) * (p[i * d + k] - centers[j * d + k]);
    if (s < best) {
      at = j;
      best = s;
    }
  }
  label[i] = at;
}

// What else belongs to the place.
__global__ void labelled(const int *in, const float *weight, float *out, int rows, int n) {
  ROW;
  int m = 2000000;
  long long at = -1;
  float w = 0;
  for (long long j = 0; j < n; ++j) {
    int v = in[i * n + j];
    if (m > v) {
      w = weight[j];
      m = v;
      at = (long long)i * n + j;
    }
  }
  out[i] = m + w + at;
}

// The last of equal values.
// CHECK: if (other_m > m || other_m == m && at < other_at) {
__global__ void last(const float *in, int *where, int rows, int n) {
  ROW;
  float m = in[i * n];
  int at = 0;
  for (int j = 0; j < n; ++j)
    if (in[i * n + j] >= m) {
      m = in[i * n + j];
      at = j;
    }
  where[i] = at;
}

// Two doubles may be one float.
__global__ void rounded(const double *in, int *where, int rows, int n) {
  ROW;
  float m = 0;
  int at = 0;
  for (int j = 0; j < n; ++j)
    if (in[i * n + j] > m) {
      m = in[i * n + j];
      at = j;
    }
  where[i] = at;
}

__global__ void second(const float *in, float *out, int rows, int n) {
  ROW;
  float m = -1, next = -1;
  int at = 0;
  for (int j = 0; j < n; ++j)
    if (in[i * n + j] > m) {
      next = m;
      m = in[i * n + j];
      at = j;
    }
  out[i] = next + at;
}

// The index does not tell which of two iterations came first.
__global__ void folded(const float *in, int *where, int rows, int n) {
  ROW;
  float m = -1;
  int at = 0;
  for (int j = 0; j < n; ++j)
    if (in[i * n + j] > m) {
      m = in[i * n + j];
      at = j % 8;
    }
  where[i] = at;
}

// The place of whichever came last.
__global__ void both(const float *in, int *where, int rows, int n) {
  ROW;
  float most = -1, least = 100;
  int at = 0;
  for (int j = 0; j < n; ++j) {
    if (in[i * n + j] > most) {
      most = in[i * n + j];
      at = j;
    }
    if (in[i * n + j] < least) {
      least = in[i * n + j];
      at = j;
    }
  }
  where[i] = at;
}

__global__ void plane(const float *in, int *where, int rows, int n) {
  ROW;
  float m = -1;
  int at = 0;
  for (int j = 0; j < n; ++j)
    for (int k = 0; k < n; ++k)
      if (in[k * n + j] > m) {
        m = in[k * n + j];
        at = k * n + j;
      }
  where[i] = at;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100, rows = 37;
  float *in, *most;
  int *whole, *where;
  cudaMallocManaged(&in, rows * n * sizeof(float));
  cudaMallocManaged(&whole, rows * n * sizeof(int));
  cudaMallocManaged(&most, rows * sizeof(float));
  cudaMallocManaged(&where, rows * sizeof(int));
  for (int i = 0; i < rows * n; ++i)
    in[i] = float(i * 7 % 11), whole[i] = unsigned(i) * 2654435761u >> 22; // many are alike
  for (int j = 0; j < n; ++j)
    in[3 * n + j] = j % 3 ? NAN : -0.0f, in[4 * n + j] = j ? float(j) : NAN, in[5 * n + j] = j % 5 ? 0.0f : -0.0f;
  auto show = [&] {
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < rows; ++i)
      sum += where[i] * (i + 1) + (i != 4 ? most[i] : 0);
    printf("%.9g\n", sum);
  };
  farthest<<<2, 32>>>(in, where, most, rows, n), show();
  nearest<<<2, 32>>>(in, in, where, rows, n / 4, 4), show();
  labelled<<<2, 32>>>(whole, in, most, rows, n), show();
  last<<<2, 32>>>(in, where, rows, n), show();
}
