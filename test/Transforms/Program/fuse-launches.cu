// Launches that follow one another become one kernel,
// where a thread needs of the earlier kernels only what it did itself.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: FileCheck %s --check-prefix=NOTES --implicit-check-not=note: < %t.notes
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: env OPTIML_DISABLE=all OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=DISABLED
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t status = (call);                                                                                       \
    if (status != cudaSuccess) {                                                                                       \
      std::printf("%s\n", cudaGetErrorString(status));                                                                 \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

// An early return in the first must not skip the second, whose guard is another one.
__global__ void addBias(const float *__restrict__ x, const float *__restrict__ bias, float *__restrict__ y, int rows,
                        int cols) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * cols)
    return;
  y[at] = x[at] + bias[at % cols];
}

__global__ void relu(float *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] = data[i] > 0 ? data[i] : 0;
}

// Two dimensions; the second reads what the first wrote and adds to it, a third reads both.
__global__ void scale2(const float *in, float *out, int width, int height, float factor) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    out[y * width + x] = factor * in[y * width + x];
}

__global__ void accumulate2(float *out, const float *more, int width, int height) {
  int col = threadIdx.x + blockIdx.x * blockDim.x;
  int row = threadIdx.y + blockIdx.y * blockDim.y;
  if (col < width && row < height)
    out[row * width + col] += more[row * width + col];
}

__global__ void product2(const float *a, const float *b, float *c, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    c[y * w + x] = a[y * w + x] * b[y * w + x];
}

// Reads its neighbour's element.
__global__ void shift(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i == 0 ? n - 1 : i - 1];
}

// A row for each thread: the greatest and the sum, as naive softmax has them.
__global__ void rowMax(const float *in, float *most, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float m = in[row * cols];
  for (int c = 1; c < cols; ++c)
    m = fmaxf(m, in[row * cols + c]);
  most[row] = m;
}

__global__ void rowSum(const float *in, const float *most, float *sum, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float m = most[row], s = 0;
  for (int c = 0; c < cols; ++c)
    s += expf(in[row * cols + c] - m);
  sum[row] = s;
}

// All threads add to one element.
__global__ void total(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&out[0], in[i]);
}

// Grid-stride loops, written in two ways, and a struct for arguments.
struct Range {
  int begin, count;
  float factor;
};

namespace strided {
template <typename T> __device__ T square(T v) { return v * v; }

template <typename T> __global__ void scaled(const T *in, T *out, Range range) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < range.count; i += gridDim.x * blockDim.x)
    out[i] = range.factor * in[i];
}

template <typename T> __global__ void squared(const T *in, T *out, Range range) {
  const int threads = blockDim.x * gridDim.x;
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  while (i < range.count) {
    out[i] = square(in[i]);
    i += threads;
  }
}

// Leaves its loop: what comes after must not be in it.
template <typename T> __global__ void untilNegative(T *data, Range range) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < range.count; i += gridDim.x * blockDim.x) {
    if (data[i] < 0)
      break;
    data[i] = data[i] + 1;
  }
}
} // namespace strided

// What the arguments are taken from may be read while kernels run.
struct Buffers {
  float *in, *out;
  Range range;
  void run() {
    strided::scaled<float><<<4, 64>>>(in, out, range);
    strided::squared<float><<<4, 64>>>(out, in, range);
    strided::untilNegative<float><<<4, 64>>>(in, range);
  }
};

static void runAfterWaiting(const Buffers &b) {
  strided::scaled<float><<<4, 64>>>(b.in, b.out, b.range);
  cudaDeviceSynchronize();
  // NOTES-DAG: note: line [[#@LINE+1]]: 'b' is a reference
  strided::squared<float><<<4, 64>>>(b.out, b.in, b.range);
  relu<<<1, 32>>>(b.in, 0);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? std::atoi(argv[1]) : 37, cols = argc > 2 ? std::atoi(argv[2]) : 29, n = rows * cols;
  std::vector<float> x(n), bias(cols), seen(n);
  for (int i = 0; i < n; ++i)
    x[i] = float(i * 7 % 23) - 11;
  for (int i = 0; i < cols; ++i)
    bias[i] = float(i % 5) - 2;
  float *dx, *dbias, *dy, *dz, *drows;
  cudaMalloc(&dx, n * sizeof(float));
  cudaMalloc(&dy, n * sizeof(float));
  cudaMalloc(&dz, n * sizeof(float));
  cudaMalloc(&dbias, cols * sizeof(float));
  cudaMalloc(&drows, 2 * rows * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dbias, bias.data(), cols * sizeof(float), cudaMemcpyHostToDevice);

  int blocks = (n + 127) / 128;
  addBias<<<blocks, 128>>>(dx, dbias, dy, rows, cols);
  CHECK(cudaGetLastError());
  relu<<<blocks, 128>>>(dy, n);
  CHECK(cudaDeviceSynchronize());
  // NOTES-DAG: note: line [[#@LINE+1]]: a call of cudaMemcpy
  cudaMemcpy(seen.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  bool good = true;
  for (int i = 0; i < n; ++i)
    good = good && seen[i] == (x[i] + bias[i % cols] > 0 ? x[i] + bias[i % cols] : 0);

  dim3 block(16, 8), grid((cols + 15) / 16, (rows + 7) / 8);
  scale2<<<grid, block>>>(dx, dz, cols, rows, 2.0f);
  accumulate2<<<grid, block>>>(dz, dy, cols, rows);
  product2<<<grid, block>>>(dz, dx, dy, cols, rows);
  // NOTES-DAG: note: line [[#@LINE+1]]: a call of cudaMemcpy
  cudaMemcpy(seen.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) {
    float before = x[i] + bias[i % cols] > 0 ? x[i] + bias[i % cols] : 0;
    good = good && seen[i] == (2 * x[i] + before) * x[i];
  }

  rowMax<<<(rows + 31) / 32, 32>>>(dx, drows, rows, cols);
  rowSum<<<(rows + 31) / 32, 32>>>(dx, drows, drows + rows, rows, cols);

  // NOTES-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'in'
  relu<<<blocks, 128>>>(dx, n);
  // NOTES-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'data'
  shift<<<blocks, 128>>>(dx, dz, n);
  // NOTES-DAG: note: line [[#@LINE+1]]: a call of cudaMemset
  cudaMemset(drows, 0, sizeof(float));
  relu<<<blocks, 128>>>(dz, n);
  total<<<blocks, 128>>>(dz, drows, n);
  // NOTES-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'out'
  relu<<<1, 32>>>(drows, 1);
  float sum = 0, expected = 0;
  // NOTES-DAG: note: line [[#@LINE+1]]: a call of cudaMemcpy
  cudaMemcpy(&sum, drows, sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    expected += x[i] > 0 ? x[i] : 0;
  good = good && sum == expected;

  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  Buffers buffers{dx, dz, {0, n, 0.5f}};
  buffers.run();
  cudaMemcpy(seen.data(), dx, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    good = good && seen[i] == 0.25f * x[i] * x[i] + 1;
  runAfterWaiting(buffers);
  CHECK(cudaDeviceSynchronize());

  // Other geometry, and pointers that differ: the launches themselves.
  relu<<<blocks, 128>>>(dy, n);
  relu<<<2 * blocks, 64>>>(dz, n);
  CHECK(cudaDeviceSynchronize());
  std::printf(good ? "PASS\n" : "FAIL\n");
}

// CHECK: // OptiML: launches of addBias and relu that follow one another, as one kernel
// CHECK-NEXT: __global__ void __launch_bounds__(1024) addBias_relu_fuse{{d}}(const float *x, const float *bias,
// CHECK-NEXT: float *y, int rows, int cols, int n) {
// CHECK-NEXT: int at = blockIdx.x * blockDim.x + threadIdx.x;
// CHECK-NEXT: if (at < rows * cols) {
// CHECK-NEXT:   float y_value = x[at] + bias[at % cols];
// CHECK-NEXT:   y[at] = y_value > 0 ? y_value : 0;
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: static void addBias_relu_fuse{{d}}_launch(
// CHECK: && launch1.data == launch0.y // the same argument
// CHECK: == 0) // they do as many elements each
// CHECK: // x and y must not overlap

// CHECK: __global__ void __launch_bounds__(1024) scale2_accumulate2_product2_fuse{{d}}(
// CHECK:      if (x < width && y < height) {
// CHECK-NEXT:   float out_value = factor * in[y * width + x];
// CHECK-NEXT:   float out_value1 = out_value + more[y * width + x];
// CHECK-NEXT:   out[y * width + x] = out_value1;
// CHECK-NEXT:   more[y * width + x] = out_value1 * in[y * width + x];
// CHECK-NEXT: }

// CHECK: __global__ void {{.*}}rowMax_rowSum_fuse{{d}}(
// CHECK:   float most_value = m;
// CHECK-NEXT: most[row] = most_value;
// CHECK-NEXT: float m1 = most_value;

// CHECK: __global__ void {{.*}}relu_total_fuse{{d}}(
// CHECK:   float data_value = data[i] > 0 ? data[i] : 0;
// CHECK-NEXT: data[i] = data_value;
// CHECK-NEXT: atomicAdd(&out[0], data_value);

// CHECK: __global__ void {{.*}}scaled_float_squared_float_untilNegative_float_fuse{{d}}(
// CHECK:   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < range.count; i += {{.*}}) {
// CHECK-NEXT: float out_value = range.factor * in[i];
// CHECK-NEXT: out[i] = out_value;
// CHECK-NEXT: in[i] = square(out_value);
// CHECK-NEXT: }
// CHECK-NEXT: for (int i2 =
// CHECK:   break;
// CHECK: && (std::memcmp(&launch1.range.begin, &launch0.range.begin, sizeof(launch0.range.begin)) == 0 && {{.*}}) // the same argument

// CHECK: const auto addBias_relu_fuse{{d}}0 = addBias_relu_fuse{{d}}_launch0(blocks, 128, 0, 0, dx, dbias, dy, rows, cols);
// CHECK-NEXT: CHECK(cudaGetLastError());
// CHECK-NEXT: addBias_relu_fuse{{d}}_launch(addBias_relu_fuse{{d}}0, addBias_relu_fuse{{d}}_launch1(blocks, 128, 0, 0, dy, n));

// RAN-DAG: PASS
// RAN-DAG: OptiML: addBias_relu_fuse{{d}}: 1 optimized, 0 original launches
// RAN-DAG: OptiML: scale2_accumulate2_product2_fuse{{d}}: 1 optimized, 0 original launches
// RAN-DAG: OptiML: rowMax_rowSum_fuse{{d}}: 1 optimized, 0 original launches
// RAN-DAG: OptiML: scaled_float_squared_float_untilNegative_float_fuse{{d}}: 1 optimized, 0 original launches
// RAN-DAG: OptiML: relu_total_fuse{{d}}: 1 optimized, 0 original launches
// RAN-DAG: OptiML: relu_relu_fuse{{d}}: 0 optimized, 1 original launches

// DISABLED-DAG: PASS
// DISABLED-DAG: OptiML: addBias_relu_fuse{{d}}: 0 optimized, 1 original launches
