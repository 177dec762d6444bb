// What fusing over rows must leave as it is: elements of other rows, threads that depend on the order of their turns,
// launches that do not have a thread for each element, places of threads in helpers, arrays that overlap, and loops
// that need all of the one before.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s -- 37 29 > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 37 29 > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void rowSum(const float *e, float *total, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float s = 0;
    for (int c = 0; c < cols; ++c)
      s += e[row * cols + c];
    total[row] = s;
  }
}
// Of the next row; of the transposed element; rows counted from the end.
__global__ void nextRow(const float *e, const float *total, float *y, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols)
    y[r * cols + c] = e[r * cols + c] + total[(r + 1) % rows];
}
__global__ void byRemainder(float *e, const float *total, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols)
    e[i] += total[i % rows];
}
__global__ void backwards(float *e, const float *total, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    e[n - 1 - i] += total[i / cols];
}
// CHECK-NOT: rowSum and nextRow
// CHECK-NOT: rowSum and byRemainder
// CHECK-NOT: rowSum and backwards

// One thread runs all turns: each needs the one before, what it read before the loop, or a sum of its own.
__global__ void running(float *e, const float *total, int n, int cols) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    e[i] = (i > 0 ? e[i - 1] : 0) * 0.5f + total[i / cols];
}
__global__ void lessFirst(float *e, const float *total, int cols) {
  float first = e[blockIdx.x * cols];
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    e[blockIdx.x * cols + c] += total[blockIdx.x] - first;
}
__global__ void summed(float *e, const float *total, int n, int cols) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    s += e[i];
    e[i] = s + total[i / cols];
  }
}
__global__ void inRegisters(float *e, const float *total, int n, int cols) {
  float last[2] = {0, 0};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    e[i] = e[i] + last[0] + total[i / cols];
    last[0] = e[i] * 0.25f;
  }
}
// A turn's number is not the thread's; a loop around the turns orders them; a whole row is read before it changes.
__global__ void byThread(float *e, const float *total, int n, int cols) {
  int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = first; i < n; i += gridDim.x * blockDim.x)
    e[i] += first * total[i / cols];
}
__global__ void sweeps(float *e, const float *total, int cols) {
  for (int k = 0; k < 3; ++k)
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
      e[blockIdx.x * cols + c] = e[blockIdx.x * cols + (c + 1 < cols ? c + 1 : 0)] * 0.5f + total[blockIdx.x];
}
__global__ void atOnce(float *e, const float *total, int cols) {
  float first = e[blockIdx.x * cols];
  e[blockIdx.x * cols + threadIdx.x] += total[blockIdx.x] - first;
}
// CHECK-NOT: rowSum and byThread
// CHECK-NOT: rowSum and sweeps
// CHECK-NOT: rowSum and atOnce
// CHECK-NOT: rowSum and running
// CHECK-NOT: rowSum and lessFirst
// CHECK-NOT: rowSum and summed
// CHECK-NOT: rowSum and inRegisters

// The place of a thread in a helper.
__device__ float weighted(float v) { return v * (threadIdx.x % 3); }
__global__ void byPlace(float *e, const float *total, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    e[i] = weighted(e[i]) + total[i / cols];
}
// CHECK-NOT: rowSum and byPlace

// Right where the launch has a thread for each element, and n is all of them.
__global__ void scale(float *e, const float *total, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    e[i] = e[i] * 0.5f + total[i / cols];
}

// Loops of two kernels that stay two: the second needs later elements, elements from the end, or a sum of the first.
__global__ void spreadOut(const float *x, float *y, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols)
    y[i] = x[i] + 1;
}
__global__ void differences(const float *y, float *d, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows)
    for (int c = 0; c < cols; ++c)
      d[row * cols + c] = y[row * cols + (c + 1 < cols ? c + 1 : 0)] - y[row * cols + c];
}
__global__ void mirrored(const float *y, float *d, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows)
    for (int c = 0; c < cols; ++c)
      d[row * cols + c] = y[row * cols + cols - 1 - c];
}
__global__ void untilGreat(float *y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows)
    for (int c = 0; c < cols; ++c) {
      if (y[row * cols + c] > 3)
        break;
      y[row * cols + c] = -1;
    }
}
// CHECK: spreadOut and untilGreat
// CHECK: y[row * cols + at] = x[row * cols + at] + 1;
// CHECK-NEXT: }
// CHECK-NEXT: for (int c = 0;

static void show(const float *d, int n) {
  std::vector<float> h(n);
  cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += (i % 7 + 1) * h[i];
  printf("%.7g %s\n", sum, cudaGetErrorString(cudaGetLastError()));
}

int main(int argc, char **argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 37, cols = argc > 2 ? atoi(argv[2]) : 29, n = rows * cols;
  std::vector<float> h(2 * n);
  for (int i = 0; i < 2 * n; ++i)
    h[i] = float(i * 37 % 101) / 32;
  float *x, *y, *total;
  cudaMalloc(&x, 2 * n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&total, rows * sizeof(float));
  cudaMemcpy(x, h.data(), 2 * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(y, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  const int blocks = (n + 127) / 128, rowBlocks = (rows + 31) / 32;
  const dim3 grid((cols + 15) / 16, (rows + 7) / 8), block(16, 8);

  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  nextRow<<<grid, block>>>(x, total, y, rows, cols);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  byRemainder<<<blocks, 128>>>(x, total, rows, cols);
  show(x, n);
  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  backwards<<<blocks, 128>>>(x, total, n, cols);
  show(x, n);

  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  running<<<1, 1>>>(y, total, n, cols);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  lessFirst<<<rows, 1>>>(y, total, cols);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  summed<<<1, 1>>>(y, total, n, cols);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  inRegisters<<<1, 1>>>(y, total, n, cols);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  byThread<<<2, 32>>>(y, total, n, cols);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  sweeps<<<rows, 1>>>(y, total, cols);
  show(y, n);
  cudaMemcpy(y, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, 1);
  atOnce<<<rows, 1>>>(y, total, 1);
  show(y, n);
  rowSum<<<rowBlocks, 32>>>(y, total, rows, cols);
  byPlace<<<blocks, 128>>>(y, total, n, cols);
  show(y, n);

  cudaMemcpy(x, h.data(), 2 * n * sizeof(float), cudaMemcpyHostToDevice);
  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  scale<<<blocks, 128>>>(x, total, n, cols); // this one is fused
  show(x, n);
  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  scale<<<blocks, 128>>>(x, total, n - cols, cols); // not all rows
  show(x, n);
  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  scale<<<1, 128>>>(x, total, n, cols); // too few threads
  show(x, n);
  rowSum<<<1, 32>>>(x, total, rows, cols); // not all sums
  scale<<<blocks, 128>>>(x, total, n, cols);
  show(x, n);
  rowSum<<<rowBlocks, 32>>>(x, x + n - 2, rows, cols); // the sums lie in the rows
  scale<<<blocks, 128>>>(x, x + n - 2, n, cols);
  show(x, n);
  rowSum<<<rowBlocks, 32>>>(x, total, rows, cols);
  scale<<<0, 128>>>(x, total, n, cols); // an error, which is seen
  show(x, n);
  rowSum<<<dim3(rowBlocks, 2), 32>>>(x, total, rows, cols); // each row twice
  scale<<<dim3(blocks, 2), 128>>>(x, total, n - n, cols);
  show(x, n);

  spreadOut<<<blocks, 128>>>(x, y, rows, cols);
  differences<<<rowBlocks, 32>>>(y, x + n, rows, cols);
  show(x + n, n);
  spreadOut<<<blocks, 128>>>(x, y, rows, cols);
  mirrored<<<rowBlocks, 32>>>(y, x + n, rows, cols);
  show(x + n, n);
  spreadOut<<<blocks, 128>>>(x, y, rows, cols);
  untilGreat<<<rowBlocks, 32>>>(y, rows, cols);
  show(y, n);
}

// PATHS-DAG: rowSum_scale_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: rowSum_scale_fuse{{d}}2: 0 optimized, 1 original launches
// PATHS-DAG: rowSum_scale_fuse{{d}}3: 0 optimized, 1 original launches
// PATHS-DAG: rowSum_scale_fuse{{d}}4: 0 optimized, 1 original launches
// PATHS-DAG: rowSum_scale_fuse{{d}}5: 0 optimized, 1 original launches
// PATHS-DAG: rowSum_scale_fuse{{d}}6: 0 optimized, 1 original launches
// PATHS-DAG: rowSum_scale_fuse{{d}}7: 0 optimized, 1 original launches
// PATHS-DAG: spreadOut_untilGreat_fuse{{d}}: 1 optimized, 0 original launches
