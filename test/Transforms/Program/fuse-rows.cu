// Launches of a thread an element become loops of the thread that owns the row:
// softmax, batch norm, channels, blocks for rows.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu -- 37 29 > %t.after 2> %t.paths
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: optiml-run %s -- 37 29 > %t.before
// RUN: cmp %t.before %t.after
#include <cstdio>
#include <cstdlib>
#include <vector>

// Softmax in four kernels; elements are flat indices here and have two axes there.
__global__ void rowMax(const float *x, float *most, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float m = x[row * cols];
  for (int c = 1; c < cols; ++c)
    m = fmaxf(m, x[row * cols + c]);
  most[row] = m;
}
__global__ void shiftedExp(const float *x, const float *most, float *e, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int r = i / cols;
    e[i] = expf(x[i] - most[r]);
  }
}
__global__ void rowSum(const float *e, float *total, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float s = 0;
    for (int c = 0; c < cols; ++c)
      s += e[row * cols + c];
    total[row] = s;
  }
}
__global__ void divide(float *e, const float *total, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols)
    e[r * cols + c] /= total[r];
}
// CHECK: // OptiML: launches of rowMax, shiftedExp, rowSum and divide that follow one another, as one kernel
// CHECK: int row = blockIdx.x * blockDim.x + threadIdx.x;
// CHECK-NEXT: if (row < rows) {
// CHECK: float s = 0;
// CHECK-NEXT: for (int at = 0; at < cols; ++at) {
// CHECK-NEXT:   float e_value = expf(x[row * cols + at] - most_value);
// CHECK-NEXT:   e[row * cols + at] = e_value;
// CHECK-NEXT:   s += e_value;
// CHECK-NEXT: }
// CHECK: for (int [[AT:[a-z0-9]+]] = 0; [[AT]] < cols; ++[[AT]]) {
// CHECK-NEXT:   e[row * cols + [[AT]]] /= total_value;
// CHECK: static void rowMax_shiftedExp_rowSum_divide_fuse{{d}}_launch(
// CHECK-DAG: (long long)launch1.n - (long long)launch0.cols * (long long)launch0.rows == 0) // the rows have that many elements
// CHECK-DAG: <= (long long)launch1.launchGrid.x * (long long)launch1.launchBlock.x) // no element is left out

// Batch norm: a thread owns a column.
__global__ void colMean(const float *x, float *mean, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols)
    return;
  float s = 0;
  for (int r = 0; r < rows; ++r)
    s += x[r * cols + c];
  mean[c] = s / rows;
}
__global__ void center(float *x, const float *mean, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] -= mean[i % cols];
}
// CHECK: // OptiML: launches of colMean and center
// CHECK: for (int part = 0; part < rows; ++part) {
// CHECK-NEXT:   x[part * cols + c] -= mean_value;

// Channels between images and pixels: (i / pixels) % channels, and an axis for each.
__global__ void channelSum(const float *x, float *sum, int images, int channels, int pixels) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < channels) {
    float s = 0;
    for (int n = 0; n < images; ++n)
      for (int p = 0; p < pixels; ++p)
        s += x[(n * channels + c) * pixels + p];
    sum[c] = s;
  }
}
__global__ void channelScale(float *x, const float *sum, int images, int channels, int pixels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= images * channels * pixels)
    return;
  int c = (i / pixels) % channels;
  x[i] = x[i] * 2 + sum[c];
}
__global__ void channelShift(float *x, const float *sum, int images, int channels, int pixels) {
  int p = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, n = blockIdx.z;
  if (p < pixels)
    x[(n * channels + c) * pixels + p] -= sum[c];
}
// CHECK: // OptiML: launches of channelSum, channelScale and channelShift

// A block for each row: with a thread for each column, and with threads that take turns.
__global__ void blockRow(float *e, const float *total, int cols) {
  e[blockIdx.x * cols + threadIdx.x] -= total[blockIdx.x];
}
__global__ void turns(float *e, const float *total, int cols) {
  int row = blockIdx.x;
  const float t = total[row];
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    e[row * cols + c] += t;
}
__global__ void gridTurns(float *e, const float *total, int n, int cols) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    e[i] *= total[i / cols];
}
// CHECK: // OptiML: launches of rowSum, blockRow, turns and gridTurns

// Indices of 64 bits, remainders by subtraction, a struct, and a width that is a constant.
struct Shape {
  size_t rows, cols;
};
__global__ void wideSum(const float *e, float *total, Shape shape) {
  size_t row = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row < shape.rows) {
    float s = 0;
    for (size_t c = 0; c < shape.cols; ++c)
      s += e[row * shape.cols + c];
    total[row] = s;
  }
}
__global__ void wideScale(float *e, const float *total, const float *weight, Shape shape) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= shape.rows * shape.cols)
    return;
  const size_t row = i / shape.cols, col = i - row * shape.cols;
  e[row * shape.cols + col] = e[i] * weight[col] - total[row];
}
// CHECK: // OptiML: launches of wideSum and wideScale
__global__ void sum16(const float *e, float *total, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float s = 0;
    for (int c = 0; c < 16; ++c)
      s += e[row * 16 + c];
    total[row] = s;
  }
}
__global__ void scale16(float *e, const float *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    e[i] = total[i >> 4] + (i & 15);
}
// CHECK: // OptiML: launches of sum16 and scale16

static void show(const float *d, int n) {
  std::vector<float> h(n);
  cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += (i % 7 + 1) * h[i];
  printf("%.7g\n", sum);
}

int main(int argc, char **argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 37, cols = argc > 2 ? atoi(argv[2]) : 29, n = rows * cols, m = rows * 16;
  std::vector<float> h(n + m);
  for (int i = 0; i < n + m; ++i)
    h[i] = float(i * 37 % 101) / 32;
  float *x, *most, *e, *total;
  cudaMalloc(&x, (n + m) * sizeof(float));
  cudaMalloc(&most, (rows + cols) * sizeof(float));
  cudaMalloc(&e, n * sizeof(float));
  cudaMalloc(&total, (rows + cols) * sizeof(float));
  cudaMemcpy(x, h.data(), (n + m) * sizeof(float), cudaMemcpyHostToDevice);

  const int blocks = (n + 127) / 128, rowBlocks = (rows + 31) / 32;
  rowMax<<<rowBlocks, 32>>>(x, most, rows, cols);
  shiftedExp<<<blocks, 128>>>(x, most, e, n, cols);
  rowSum<<<rowBlocks, 32>>>(e, total, rows, cols);
  divide<<<dim3((cols + 15) / 16, (rows + 7) / 8), dim3(16, 8)>>>(e, total, rows, cols);
  show(e, n);

  colMean<<<(cols + 31) / 32, 32>>>(x, most, rows, cols);
  center<<<blocks, 128>>>(x, most, n, cols);
  show(x, n);

  const int images = 3, channels = rows, pixels = n / 3 / rows;
  channelSum<<<rowBlocks, 32>>>(x, most, images, channels, pixels);
  channelScale<<<(images * channels * pixels + 127) / 128, 128>>>(x, most, images, channels, pixels);
  if (pixels > 0)
    show(x, n);
  channelSum<<<rowBlocks, 32>>>(x, most, images, channels, pixels);
  channelScale<<<blocks, 128>>>(x, most, images, channels, pixels);
  channelShift<<<dim3(pixels / 32 + 1, channels, images), 32>>>(x, most, images, channels, pixels);
  show(x, n);

  rowSum<<<rowBlocks, 32>>>(e, total, rows, cols);
  blockRow<<<rows, cols>>>(e, total, cols);
  turns<<<rows, 8>>>(e, total, cols);
  gridTurns<<<3, 32>>>(e, total, n, cols);
  show(e, n);

  Shape shape{size_t(rows), size_t(cols)};
  wideSum<<<rowBlocks, 32>>>(e, total, shape);
  wideScale<<<blocks, 128>>>(e, total, x, shape);
  show(e, n);
  sum16<<<rowBlocks, 32>>>(x, most, rows);
  scale16<<<(m + 63) / 64, 64>>>(x, most, m);
  show(x, m);
}

// PATHS-DAG: rowMax_shiftedExp_rowSum_divide_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: colMean_center_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: channelSum_channelScale_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: channelSum_channelScale_channelShift_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: rowSum_blockRow_turns_gridTurns_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: wideSum_wideScale_fuse{{d}}: 1 optimized, 0 original launches
// PATHS-DAG: sum16_scale16_fuse{{d}}: 1 optimized, 0 original launches
