// fuse-loops: loops of a thread over the same iterations become one.
// RUN: %plan --passes='fuse-loops[summary]' %s | %check=SUMMARY
// RUN: %plan --passes='fuse-loops[cosine]' %s | %check=COSINE
// RUN: %plan --passes='fuse-loops[smoothed]' %s | %check=SMOOTHED
// RUN: optiml-opt --emit --passes='fuse-loops[summary];distribute-loop[summary]{rows=4,threads=32};fuse-loops[cosine];block-shape[cosine]{x=8,y=8};coarsen[cosine]{style=blocked,x=2,y=2};stage-shared[cosine/c:a+b]{tile=8};fuse-loops[smoothed]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
// RUN: %refused --passes='fuse-loops[centred]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='fuse-loops[mirrored]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='fuse-loops[found]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='fuse-loops[shorter]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='fuse-loops[carried]' %s 2>&1 | %check=NONE
// NONE: no two loops with the same iterations follow one another and need nothing of each other
#include <cmath>
#include <cstdio>

// Names of the loops' own that mean something else around them.
// SUMMARY: float total = 0;
// SUMMARY-NEXT: float squares = 0;
// SUMMARY-NEXT: float d = 2;
// SUMMARY-NEXT: float best = -
// SUMMARY-NEXT: int where = -1;
// SUMMARY-NEXT: for (int i = 0; i < n; ++i) {
// SUMMARY-NEXT: total += row[i];
// SUMMARY-NEXT: float [[D:d_[0-9]+]] = row[i];
// SUMMARY-NEXT: squares += [[D]] * [[D]];
// SUMMARY: }
// SUMMARY: float m = total / n;
// SUMMARY-NOT: for
__global__ void summary(const float *x, float *mean, float *norm, int *largest, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  const float *row = x + (size_t)r * n;
  float total = 0;
  for (int i = 0; i < n; ++i)
    total += row[i];
  float m = total / n;
  float squares = 0, d = 2;
  for (int k = 0; k != n; k++) {
    float d = row[k];
    squares += d * d;
  }
  float best = -INFINITY;
  int where = -1;
  for (int i = 0; i < n; i += 1) {
    const float d = row[i];
    if (d > best) {
      best = d;
      where = i;
    }
  }
  mean[r] = m * d;
  norm[r] = sqrtf(squares);
  largest[r] = where;
}

__device__ float dot(const float *u, const float *v, int n) {
  float s = 0;
  for (int c = 0; c < n; ++c)
    s += u[c] * v[c];
  return s;
}

// COSINE: for (int c = 0; c < n; ++c) {
// COSINE-NEXT: {{.*}} += {{.*}}
// COSINE-NEXT: {{.*}} += {{.*}}
// COSINE-NEXT: {{.*}} += {{.*}}
// COSINE-NEXT: }
// COSINE-NOT: for
__global__ void cosine(const float *a, const float *b, float *out, int rows, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && j < rows)
    out[i * rows + j] =
        dot(a + i * n, b + j * n, n) / (sqrtf(dot(a + i * n, a + i * n, n)) * sqrtf(dot(b + j * n, b + j * n, n)));
}

// What an iteration needs of the other loop, the same iteration has made.
// SMOOTHED: when disjoint(
// SMOOTHED: for (int i = 0; i < n; ++i) {
// SMOOTHED-NEXT: t[r * n + i] = 2 * x[r * n + i];
// SMOOTHED-NEXT: y[r * n + i] = t[r * n + i] + 1;
// SMOOTHED-NEXT: }
__global__ void smoothed(const float *x, float *t, float *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  for (int i = 0; i < n; ++i)
    t[r * n + i] = 2 * x[r * n + i];
  for (int j = 0; j < n; ++j)
    y[r * n + j] = t[r * n + j] + 1;
}

__global__ void centred(const float *x, float *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float mean = 0;
  for (int i = 0; i < n; ++i)
    mean += x[r * n + i];
  for (int i = 0; i < n; ++i)
    y[r * n + i] = x[r * n + i] - mean / n;
}

__global__ void mirrored(const float *x, float *t, float *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  for (int i = 0; i < n; ++i)
    t[r * n + i] = 2 * x[r * n + i];
  for (int j = 0; j < n; ++j)
    y[r * n + j] = t[r * n + n - 1 - j] + 1;
}

__global__ void found(const float *x, float *y, int *first, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  int at = n;
  for (int i = 0; i < n; ++i)
    if (x[r * n + i] > 3) {
      at = i;
      break;
    }
  float s = 0;
  for (int i = 0; i < n; ++i)
    s += x[r * n + i];
  first[r] = at;
  y[r] = s;
}

__global__ void shorter(const float *x, float *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float s = 0, t = 0;
  for (int i = 0; i < n; ++i)
    s += x[r * n + i];
  for (int i = 0; i < n - 1; ++i)
    t += x[r * n + i] * x[r * n + i + 1];
  y[r] = s + t;
}

// A private array whose elements the second loop needs in another order.
__global__ void carried(const float *x, float *y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float kept[8], s = 0;
  for (int i = 0; i < 8; ++i)
    kept[i] = x[r * 8 + i];
  for (int i = 0; i < 8; ++i)
    s += kept[7 - i] * float(i);
  y[r] = s;
}

int main() {
  const int rows = 37, n = 50;
  static float x[rows * n], y[rows * n], m[rows], q[rows], all[rows * rows];
  static int w[rows];
  for (int i = 0; i < rows * n; ++i)
    x[i] = float((i * 29) % 97) - 40;
  float *dx, *dt, *dy, *dm, *dq, *da;
  int *dw;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dt, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMalloc(&dm, sizeof m);
  cudaMalloc(&dq, sizeof q);
  cudaMalloc(&da, sizeof all);
  cudaMalloc(&dw, sizeof w);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  summary<<<2, 32>>>(dx, dm, dq, dw, rows, n);
  cosine<<<dim3(5, 5), dim3(8, 8)>>>(dx, dx + 10, da, rows - 1, n);
  smoothed<<<2, 32>>>(dx, dt, dy, rows, n);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  cudaMemcpy(m, dm, sizeof m, cudaMemcpyDeviceToHost);
  cudaMemcpy(q, dq, sizeof q, cudaMemcpyDeviceToHost);
  cudaMemcpy(all, da, sizeof all, cudaMemcpyDeviceToHost);
  cudaMemcpy(w, dw, sizeof w, cudaMemcpyDeviceToHost);
  double total = 0;
  for (int r = 0; r < rows; ++r)
    total += m[r] + q[r] + w[r] + y[r * n + r];
  for (int i = 0; i < (rows - 1) * (rows - 1); ++i)
    total += all[i] * (i % 5);
  printf("%.3f\n", total);
  return 0;
}
