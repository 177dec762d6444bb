// A loop along each thread's own row, strip by strip in shared memory.
// RUN: %opt --passes='block-shape[smooth]{x=64,y=1};stage-strips[smooth/k]{tile=16}' %s | %check=SMOOTH
// RUN: %opt --passes='block-shape[thomas]{x=32,y=1};stage-strips[thomas/k]{tile=8};stage-strips[thomas/k#2]{tile=8}' %s | %check=THOMAS
// RUN: %opt --passes='block-shape[plane]{x=16,y=4};stage-strips[plane/k]{tile=8}' %s | %check=PLANE
// RUN: %opt --passes='block-shape[whole]{x=32,y=1};stage-strips[whole/k]{tile=16}' %s | %check=WHOLE
// RUN: %opt --passes='block-shape[sized]{x=32,y=1};stage-strips[sized/k]{tile=8}' %s | %check=SIZED
// RUN: %opt --passes='block-shape[topk]{x=1024,y=1};stage-strips[topk/i#2]{tile=8}' %benchmarks/topk.cu | %check=NAMES
// NAMES: const int [[I:i[0-9]+]] = i0 + lane;
// NAMES-NOT: for (int [[I]] =
// RUN: %refused --passes='block-shape[columns]{x=64,y=1};stage-strips[columns/k]' %s 2>&1 | %check=COLUMNS
// RUN: %refused --passes='block-shape[until]{x=64,y=1};stage-strips[until/k]' %s 2>&1 | %check=UNTIL
// RUN: %refused --passes='block-shape[chosen]{x=64,y=1};stage-strips[chosen/k]' %s 2>&1 | %check=CHOSEN
// RUN: %refused --passes='block-shape[lengths]{x=64,y=1};stage-strips[lengths/k]' %s 2>&1 | %check=LENGTHS
// RUN: %refused --passes='block-shape[often]{x=64,y=1};stage-strips[often/t/k]' %s 2>&1 | %check=OFTEN
// RUN: optiml-opt --emit --passes='block-shape[smooth]{x=64,y=1};stage-strips[smooth/k]{tile=16};block-shape[thomas]{x=32,y=1};stage-strips[thomas/k]{tile=8};stage-strips[thomas/k#2]{tile=8};block-shape[plane]{x=16,y=4};stage-strips[plane/k]{tile=8};block-shape[whole]{x=32,y=1};stage-strips[whole/k]{tile=16};block-shape[sized]{x=32,y=1};stage-strips[sized/k]{tile=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 150 37 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 150 37 2>&1 | %check=RAN
// RAN-DAG: smooth: 1 optimized, 0 original launches
// RAN-DAG: thomas: 1 optimized, 0 original launches
// RAN-DAG: plane: 1 optimized, 0 original launches
// RAN-DAG: whole: 1 optimized, 0 original launches
// RAN-DAG: sized: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// In place: what is read goes in, what is written goes back. The last block has threads without a row.
// SMOOTH: __shared__ float x_strip[64][17];
// SMOOTH: if ((long long)blockIdx.x * 64 + 64 <= (long long)n) {
// SMOOTH-NEXT: const int tid = threadIdx.x;
// SMOOTH-NEXT: for (int k0 = 0; k0 < m; k0 += 16) {
// SMOOTH-NEXT: __syncthreads();
// SMOOTH: if (k0 + c < m) {
// SMOOTH-NEXT: x_strip[r][c] = x[
// SMOOTH: __syncthreads();
// SMOOTH-NEXT: for (int lane = 0; lane < 16; ++lane) {
// SMOOTH-NEXT: if (k0 + lane < m) {
// SMOOTH-NEXT: s = 0.75f * s + x_strip[threadIdx.x][lane];
// SMOOTH-NEXT: x_strip[threadIdx.x][lane] = s;
// SMOOTH: __syncthreads();
// SMOOTH: x[{{.*}}] = x_strip[r1][c1];
// SMOOTH: __syncthreads();
// SMOOTH-NEXT: } else {
// SMOOTH-NEXT: for (int k = 0; k < m; k++) {
__global__ void smooth(float *x, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; k++) {
    s = 0.75f * s + x[i * m + k];
    x[i * m + k] = s;
  }
}

// Of what an iteration reads that the one before wrote, a strip's first column goes in alone. The second loop runs
// backwards.
// THOMAS: u_strip[e{{[0-9]*}}][0] = u[
// THOMAS: double w = b_strip[threadIdx.x][lane] - 0.5 * u_strip[threadIdx.x][lane];
// THOMAS: u_strip[threadIdx.x][lane + 1] = 0.5 / w;
// THOMAS: y_strip[threadIdx.x][lane + 1] = (y_strip[threadIdx.x][lane + 1] - 0.5 * y_strip[threadIdx.x][lane]) / w;
// THOMAS: y_strip1[threadIdx.x][lane{{[0-9]*}} + 1] -= u_strip1[threadIdx.x][lane{{[0-9]*}}] * y_strip1[threadIdx.x][lane{{[0-9]*}}];
__global__ void thomas(const double *b, double *u, double *y, long long n, int m) {
  long long col = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (col < n) {
    u[col * m] = 0.5 / b[col * m];
    y[col * m] = y[col * m] / b[col * m];
    for (int k = 1; k < m; ++k) {
      double w = b[col * m + k] - 0.5 * u[col * m + k - 1];
      u[col * m + k] = 0.5 / w;
      y[col * m + k] = (y[col * m + k] - 0.5 * y[col * m + k - 1]) / w;
    }
    for (int k = m - 2; k >= 0; --k)
      y[col * m + k] -= u[col * m + k] * y[col * m + k + 1];
  }
}

// Rows of a plane's points, of which the sums at three places are written.
// PLANE: __shared__ float from_strip[64][11];
// PLANE: __shared__ int to_strip[64][9];
// PLANE: if (k0 + c < 22) {
__global__ void plane(const float *from, int *to, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    for (int k = 1; k < 20; k++)
      to[(y * w + x) * 24 + k] = (int)(from[(y * w + x) * 22 + k - 1] + from[(y * w + x) * 22 + k + 1]);
}

// Whole strips need no test.
// WHOLE: for (int k0 = 0; k0 < 32; k0 += 16) {
// WHOLE-NOT: if (k0
__global__ void whole(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float best = 0, sum = 0;
  for (int k = 0; k < 32; ++k) {
    sum = sum * 0.5f + x[i * 32 + k];
    best = fmaxf(best, sum);
  }
  y[i] = best;
}

// SIZED: if ((long long)blockIdx.x * 32 + 32 <= (long long)size.rows) {
struct Size {
  int rows, columns;
};
__global__ void sized(float *x, Size size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size.rows)
    return;
  float s = 1;
  for (int k = 0; k < size.columns; k++) {
    s = 0.5f * s + x[i * size.columns + k];
    x[i * size.columns + k] = s;
  }
}

// COLUMNS: x is not accessed along a row
__global__ void columns(float *x, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 1; k < m; ++k)
      x[k * n + i] += x[(k - 1) * n + i];
}
// UNTIL: the loop may be left early
__global__ void until(float *x, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < m; ++k) {
      if (x[i * m + k] < 0)
        break;
      x[i * m + k] = 1;
    }
}
// CHOSEN: threads walk along no rows of their own in every iteration
__global__ void chosen(float *x, const int *at, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < m; ++k)
      x[i * m + at[k]] = k;
}
// LENGTHS: the loop's bounds differ between threads, or depend on data
__global__ void lengths(float *x, const int *length, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int count = length[i];
    for (int k = 0; k < count; ++k)
      x[i * m + k] = k;
  }
}
// OFTEN: a loop is around it
__global__ void often(float *x, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int t = 0; t < 3; ++t)
      for (int k = 0; k < m; ++k)
        x[i * m + k] += t;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 150, m = argc > 2 ? atoi(argv[2]) : 37;
  float *x, *from, *rows, *best;
  double *b, *u, *y;
  int *to;
  cudaMallocManaged(&x, n * m * sizeof(float));
  cudaMallocManaged(&from, n * 5 * 22 * sizeof(float));
  cudaMallocManaged(&to, n * 5 * 24 * sizeof(int));
  cudaMallocManaged(&rows, 64 * 32 * sizeof(float));
  cudaMallocManaged(&best, 64 * sizeof(float));
  cudaMallocManaged(&b, n * m * sizeof(double));
  cudaMallocManaged(&u, n * m * sizeof(double));
  cudaMallocManaged(&y, n * m * sizeof(double));
  for (int i = 0; i < n * m; ++i) {
    x[i] = (i * 37 % 101) / 101.0f;
    b[i] = 2 + (i * 31 % 17) / 17.0;
    y[i] = (i * 29 % 53) / 53.0;
  }
  for (int i = 0; i < n * 5 * 22; ++i)
    from[i] = i * 7 % 41;
  for (int i = 0; i < n * 5 * 24; ++i)
    to[i] = 0;
  for (int i = 0; i < 64 * 32; ++i)
    rows[i] = i * 11 % 23;
  smooth<<<(n + 63) / 64, 64>>>(x, n, m);
  thomas<<<(n + 63) / 64, 64>>>(b, u, y, n, m);
  plane<<<dim3((n + 15) / 16, 2), dim3(16, 4)>>>(from, to, n, 5);
  whole<<<2, 32>>>(rows, best);
  sized<<<(n + 31) / 32, 32>>>(x, Size{n, m});
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n * m; ++i)
    sum += x[i] * (i % 3) + y[i] + u[i] * (i % 5);
  for (int i = 0; i < n * 5 * 24; ++i)
    sum += to[i] * (i % 7);
  for (int i = 0; i < 64; ++i)
    sum += best[i];
  printf("%g\n", sum);
  return 0;
}
