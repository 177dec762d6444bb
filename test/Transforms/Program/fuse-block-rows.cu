// Kernels whose blocks have a row each, and fold it in shared memory, become loops of the thread that owns the row, as
// those with a thread an element do. How many blocks there are is a parameter then.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTES < %t.notes
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu -- 37 29 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s -- 37 29 | %check=SAME
// RUN: optiml-opt --reread --fuse-launches --kernels-only --passes='distribute-loop[rowSums_rowVariances_normalize_'fused']{threads=64}' %s | %check=SHARED
// RAN-DAG: rowSums{{.*}}normalize{{.*}}: 1 optimized, 0 original launches
// RAN-DAG: rowMax{{.*}}divide{{.*}}: 1 optimized, 0 original launches
// RAN-DAG: rowSums{{.*}}scaleOthers{{.*}}: 1 optimized, 1 original launches
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

constexpr int Threads = 64;

__global__ void rowSums(const float *x, float *mean, int cols) {
  __shared__ float part[Threads];
  const int row = blockIdx.x, t = threadIdx.x;
  float s = 0;
  for (int i = t; i < cols; i += blockDim.x)
    s += x[row * cols + i];
  part[t] = s;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d)
      part[t] += part[t + d];
    __syncthreads();
  }
  if (t == 0)
    mean[row] = part[0] / cols;
}

__global__ void rowVariances(const float *x, const float *mean, float *scale, int cols) {
  __shared__ float part[Threads];
  float s = 0;
  for (int i = threadIdx.x; i < cols; i += Threads) {
    const float d = x[blockIdx.x * cols + i] - mean[blockIdx.x];
    s += d * d;
  }
  part[threadIdx.x] = s;
  __syncthreads();
  for (int d = Threads / 2; d > 0; d >>= 1) {
    if (threadIdx.x < d)
      part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    scale[blockIdx.x] = rsqrtf(part[0] / cols + 1e-5f);
}

__global__ void normalize(const float *x, const float *mean, const float *scale, const float *weight, float *y,
                          int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * cols)
    return;
  y[i] = (x[i] - mean[i / cols]) * scale[i / cols] + weight[i % cols];
}
// CHECK: __global__ void {{.*}}rowSums{{.*}}normalize{{.*}}(
// CHECK: if (row < rows) {
// CHECK: for (int i = 0; i < cols; ++i) {
// CHECK: mean[row] =
// CHECK-NOT: __syncthreads
// CHECK: y[row * cols + {{[a-z0-9]*}}] =
// CHECK: launch2.rows == int(launch0.launchGrid.x) // the same argument
// CHECK: launch0.launchBlock.x == 64) // the kernel is written for this block shape
// SHARED: __shfl_xor_sync
// SHARED: for (int at = threadIdx.x; at < cols; at += 64) {

__global__ void rowMax(const float *x, float *most, int cols) {
  __shared__ float part[Threads];
  float m = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    m = fmaxf(m, x[blockIdx.x * cols + i]);
  part[threadIdx.x] = m;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (threadIdx.x < d)
      part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + d]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    most[blockIdx.x] = part[0];
}

__global__ void exponentials(const float *x, const float *most, float *e, float *total, int cols) {
  __shared__ float part[Threads];
  float s = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    float v = expf(x[blockIdx.x * cols + i] - most[blockIdx.x]);
    e[blockIdx.x * cols + i] = v;
    s += v;
  }
  part[threadIdx.x] = s;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (threadIdx.x < d)
      part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    total[blockIdx.x] = part[0];
}

__global__ void divide(float *e, const float *total, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    e[i] /= total[i / cols];
}
// CHECK: __global__ void {{.*}}rowMax{{.*}}divide{{.*}}(
// CHECK-NOT: __syncthreads
// CHECK: total[

// It may scale fewer rows than there are blocks before it.
__global__ void scaleOthers(float *x, const float *mean, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= mean[i / cols];
}

// Prefix sums are more than a fold.
__global__ void prefixes(const float *x, float *y, int cols) {
  __shared__ float a[Threads];
  a[threadIdx.x] = threadIdx.x < cols ? x[blockIdx.x * cols + threadIdx.x] : 0;
  __syncthreads();
  for (int d = 1; d < Threads; d *= 2) {
    float v = threadIdx.x >= d ? a[threadIdx.x - d] : 0;
    __syncthreads();
    a[threadIdx.x] += v;
    __syncthreads();
  }
  if (threadIdx.x < cols)
    y[blockIdx.x * cols + threadIdx.x] = a[threadIdx.x];
}
// NOTES: the launch is not fused with what stands before it: one thread may need what another did to 'x'

int rows, cols, n;
float *x, *y, *e, *weight, *mean, *scale, *most, *total;

void layerNorm() {
  rowSums<<<rows, Threads>>>(x, mean, cols);
  rowVariances<<<rows, Threads>>>(x, mean, scale, cols);
  normalize<<<(n + 127) / 128, 128>>>(x, mean, scale, weight, y, rows, cols);
}

void softmax() {
  rowMax<<<rows, Threads>>>(y, most, cols);
  exponentials<<<rows, Threads>>>(y, most, e, total, cols);
  divide<<<(n + 255) / 256, 256>>>(e, total, n, cols);
}

void fewerRows(int fewer) {
  rowSums<<<rows, Threads>>>(x, mean, cols);
  scaleOthers<<<(n + 255) / 256, 256>>>(y, mean, n - fewer * cols, cols);
}

void scan() {
  rowSums<<<rows, Threads>>>(y, mean, cols);
  prefixes<<<rows, Threads>>>(e, y, cols);
}

int main(int, char **argv) {
  rows = atoi(argv[1]);
  cols = atoi(argv[2]);
  n = rows * cols;
  for (float **p : {&x, &y, &e})
    cudaMallocManaged(p, n * sizeof(float));
  for (float **p : {&mean, &scale, &most, &total})
    cudaMallocManaged(p, rows * sizeof(float));
  cudaMallocManaged(&weight, cols * sizeof(float));
  for (int i = 0; i < n; ++i)
    x[i] = i * 37 % 101 / 50.0f;
  for (int i = 0; i < cols; ++i)
    weight[i] = i % 7;
  layerNorm();
  softmax();
  fewerRows(0);
  fewerRows(1);
  scan();
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += (y[i] + 3 * e[i]) * (i % 13);
  printf("%.6g %.6g\n", sum, mean[rows - 1]);
}
