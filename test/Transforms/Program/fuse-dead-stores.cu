// What only fused kernels read of a buffer that nothing looks at afterwards is not stored.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// What follows in the order of the functions but the first, whose kernel comes last.
// CHECK-NOT: // Nothing looks
// CHECK: __global__ void {{.*}}shift_square_fused{{[0-9]*}}(
// CHECK: x[i] =
// CHECK: out[i] =
// CHECK: // Nothing looks at out after
// CHECK-NEXT: __global__ void {{.*}}shift_square_fused{{[0-9]*}}(
// CHECK: x[i] =
// CHECK-NOT: out[i] =
// CHECK: __global__ void {{.*}}shift_square_fused{{[0-9]*}}(
// CHECK: x[i] =
// CHECK: out[i] =
// CHECK: // Nothing looks at out after
// CHECK-NEXT: __global__ void {{.*}}shift_square_fused{{[0-9]*}}(
// CHECK: x[i] =
// CHECK-NOT: out[i] =
// CHECK: // Nothing looks at out after
// CHECK-NEXT: __global__ void {{.*}}shift_square_fused{{[0-9]*}}(
// CHECK: x[i] =
// CHECK-NOT: out[i] =
// CHECK: // Nothing looks at out after
// CHECK-NEXT: __global__ void {{.*}}shift_square_fused{{[0-9]*}}(
// CHECK: x[i] =
// CHECK-NOT: out[i] =
// CHECK: // Nothing looks at x, out after the launches: what they would hold is not stored.
// CHECK-NEXT: __global__ void {{.*}}shift_square_sum_fused{{[0-9]*}}(
// CHECK-NOT: x[i] =
// CHECK-NOT: out[i] =
// CHECK: total[i] =
// RAN-NOT: {{[1-9]}} original launches
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <vector>

__global__ void shift(float *x, const float *by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] + by[i % 7];
}

__global__ void square(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * in[i];
}

__global__ void sum(const float *a, const float *b, float *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    total[i] = a[i] + b[i];
}

const int n = 1000, blocks = (n + 127) / 128;
const size_t bytes = n * sizeof(float);

// The input, which changes in place, and what lies between.
static void whole(const std::vector<float> &start, std::vector<float> &end) {
  float *x = nullptr, *by, *between, *more, *result;
  cudaMalloc(&x, bytes);
  cudaMalloc((void **)&by, bytes);
  cudaMalloc(&between, bytes);
  cudaMalloc(&more, bytes);
  cudaMalloc(&result, bytes);
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(more, start.data(), bytes, cudaMemcpyHostToDevice);
  shift<<<blocks, 128>>>(x, by, n);
  square<<<blocks, 128>>>(x, between, n);
  sum<<<blocks, 128>>>(between, more, result, n);
  cudaMemcpy(end.data(), result, bytes, cudaMemcpyDeviceToHost);
  cudaFree(x);
  cudaFree(by);
  cudaFree(between);
  cudaFree(more);
  cudaFree(result);
}

// The host looks at it later.
static void looked(const std::vector<float> &start, std::vector<float> &end) {
  float *x, *by, *result;
  cudaMalloc(&x, bytes);
  cudaMalloc(&by, bytes);
  cudaMalloc(&result, bytes);
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  shift<<<blocks, 128>>>(x, by, n);
  square<<<blocks, 128>>>(x, result, n);
  cudaMemcpy(end.data(), result, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(end.data() + n / 2, x, bytes / 2, cudaMemcpyDeviceToHost);
}

// Another variable may hold the pointer.
static void copied(const std::vector<float> &start, std::vector<float> &end) {
  float *x, *by, *result;
  cudaMalloc(&x, bytes);
  cudaMalloc(&by, bytes);
  cudaMalloc(&result, bytes);
  float *other = x;
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  shift<<<blocks, 128>>>(x, by, n);
  square<<<blocks, 128>>>(x, result, n);
  cudaMemcpy(end.data(), other, bytes, cudaMemcpyDeviceToHost);
}

// The next round reads it.
static void again(const std::vector<float> &start, std::vector<float> &end) {
  float *x, *by, *result;
  cudaMalloc(&x, bytes);
  cudaMalloc(&by, bytes);
  cudaMalloc(&result, bytes);
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  for (int round = 0; round < 3; ++round) {
    shift<<<blocks, 128>>>(x, by, n);
    square<<<blocks, 128>>>(x, result, n);
    cudaMemcpy(end.data(), result, bytes, cudaMemcpyDeviceToHost);
  }
}

// The caller has it.
static void given(float *x, const std::vector<float> &start) {
  float *by, *result;
  cudaMalloc(&by, bytes);
  cudaMalloc(&result, bytes);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  shift<<<blocks, 128>>>(x, by, n);
  square<<<blocks, 128>>>(x, result, n);
}

// A kernel keeps the pointer in memory, where another one finds it.
__global__ void keep(float **table, float *x) { table[0] = x; }
__global__ void follow(float **table, float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = table[0][i];
}
static void kept(const std::vector<float> &start, std::vector<float> &end) {
  float *x, *by, *result, *seen, **table;
  cudaMalloc(&x, bytes);
  cudaMalloc(&by, bytes);
  cudaMalloc(&result, bytes);
  cudaMalloc(&seen, bytes);
  cudaMalloc(&table, sizeof(float *));
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  keep<<<1, 1>>>(table, x);
  cudaDeviceSynchronize();
  cudaMemset(result, 0, bytes);
  shift<<<blocks, 128>>>(x, by, n);
  square<<<blocks, 128>>>(x, result, n);
  cudaMemset(by, 0, bytes);
  follow<<<blocks, 128>>>(table, seen, n);
  cudaMemcpy(end.data(), seen, bytes, cudaMemcpyDeviceToHost);
}

// A lambda has it.
static void captured(const std::vector<float> &start, std::vector<float> &end) {
  float *x, *by, *result;
  cudaMalloc(&x, bytes);
  cudaMalloc(&by, bytes);
  cudaMalloc(&result, bytes);
  auto look = [&] { cudaMemcpy(end.data(), x, bytes, cudaMemcpyDeviceToHost); };
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(by, start.data(), bytes, cudaMemcpyHostToDevice);
  shift<<<blocks, 128>>>(x, by, n);
  square<<<blocks, 128>>>(x, result, n);
  look();
}

static void print(const std::vector<float> &values) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += values[i] * (i % 11 + 1);
  std::printf("%g\n", sum);
}

int main() {
  std::vector<float> start(n), end(n);
  for (int i = 0; i < n; ++i)
    start[i] = float(i % 17) / 4;
  for (auto *run : {whole, looked, copied, again, kept, captured}) {
    run(start, end);
    print(end);
  }
  float *x;
  cudaMalloc(&x, bytes);
  cudaMemcpy(x, start.data(), bytes, cudaMemcpyHostToDevice);
  given(x, start);
  cudaMemcpy(end.data(), x, bytes, cudaMemcpyDeviceToHost);
  print(end);
}
