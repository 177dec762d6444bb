// Launches in a template that has one instantiation are fused; of several, each may launch another kernel.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// CHECK: __global__ void {{.*}} [[ONCE:shift.*square.*fused[0-9]*]](
// CHECK: __global__ void {{.*}} [[STAGE:scale.*square.*fused[0-9]*]](
// CHECK: void once(
// CHECK: const auto [[A:.*]] = [[ONCE]]_launch0(blocks, 128, 0, 0, x, by, T(2), n);
// CHECK: [[ONCE]]_launch([[A]], [[ONCE]]_launch1(
// CHECK: void twice(
// CHECK-NEXT: shift<T><<<blocks, 128>>>
// CHECK-NEXT: square<T><<<blocks, 128>>>
// CHECK: void run(
// CHECK-NOT: <<<
// CHECK: int main
// RAN-DAG: shift{{.*}}square{{.*}}fused{{[0-9]*}}: 1 optimized, 0 original launches
// RAN-DAG: scale{{.*}}square{{.*}}fused{{[0-9]*}}: 1 optimized, 0 original launches
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>

template <typename T> __global__ void shift(T *x, const T *by, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] + factor * by[i % 7];
}

template <typename T> __global__ void square(const T *in, T *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * in[i];
}

__global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= factor;
}

const int n = 1000, blocks = (n + 127) / 128;

template <typename T> void once(T *x, const T *by, T *out) {
  shift<T><<<blocks, 128>>>(x, by, T(2), n);
  square<T><<<blocks, 128>>>(x, out, n);
}

template <typename T> void twice(T *x, const T *by, T *out) {
  shift<T><<<blocks, 128>>>(x, by, T(3), n);
  square<T><<<blocks, 128>>>(x, out, n);
}

template <typename T, int Threads> class Stage {
public:
  explicit Stage(T *x) : x(x) {}
  void run(T *out, T factor) {
    scale<<<(n + Threads - 1) / Threads, Threads>>>(x, factor, n);
    square<T><<<(n + Threads - 1) / Threads, Threads>>>(x, out, n);
  }

private:
  T *x;
};

template <typename T> void show(const T *x) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += double(x[i]) * (i % 13);
  printf("%.9g\n", sum);
}

int main() {
  float *x, *by, *out;
  double *dx, *dby, *dout;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&by, 7 * sizeof(float));
  cudaMallocManaged(&out, n * sizeof(float));
  cudaMallocManaged(&dx, n * sizeof(double));
  cudaMallocManaged(&dby, 7 * sizeof(double));
  cudaMallocManaged(&dout, n * sizeof(double));
  for (int i = 0; i < n; ++i)
    dx[i] = x[i] = i % 31 - 15;
  for (int i = 0; i < 7; ++i)
    dby[i] = by[i] = i - 3;
  once(x, by, out);
  cudaDeviceSynchronize();
  show(out);
  twice(x, by, out);
  twice(dx, dby, dout);
  cudaDeviceSynchronize();
  show(out);
  show(dout);
  Stage<float, 128>(x).run(out, 0.5f);
  cudaDeviceSynchronize();
  show(out);
}
