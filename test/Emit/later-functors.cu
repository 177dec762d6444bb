// Functors that are defined behind the generic kernel which runs them: the new kernels stand behind both.
// RUN: optiml-opt --emit --reread --passes='distribute-loop[util::each<util::RowSum>]{threads=64};grid-stride[run<Scale<float>>]{blocks=8,x=256};grid-stride[run<shapes::Shift>]{blocks=8,x=256};grid-stride[run<Outer::Inner>]{blocks=8,x=256}' %s > %t.cu
// RUN: %check=EMITTED --input-file=%t.cu
// RUN: %nvcc -std=c++17 -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RUN: %if verify %{ %verify=%t.cu %s | %check=SAME %}
// RAN-DAG: util::each<util::RowSum>: 1 optimized, 0 original
// RAN-DAG: run<Scale<float>>: 2 optimized, 0 original
// RAN-DAG: run<shapes::Shift>: 1 optimized, 0 original
// RAN-DAG: run<Outer::Inner>: 1 optimized, 0 original
// SAME: the same results
#include <cstdio>
#include <cuda_runtime.h>

namespace util {
template <class F> __global__ void each(int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    f(i);
}
template <class F> void forEach(int n, F f) { each<<<(n + 127) / 128, 128>>>(n, f); }
} // namespace util

template <typename T> __global__ void run(T job, int n) {
  int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i >= n)
    return;
  job(i);
}

template <typename T> void start(const T &job, int n) {
  run<T><<<dim3((n + 255) / 256), dim3(256)>>>(job, n);
}

namespace util {
__device__ inline float half(float x) { return 0.5f * x; }
struct RowSum {
  const float *in;
  float *out;
  int width;
  __device__ void operator()(int row) const {
    float sum = 0;
    for (int k = 0; k < width; ++k)
      sum += half(in[row * width + k]);
    out[row] = sum;
  }
};
} // namespace util
// EMITTED: struct RowSum {
// EMITTED: __global__ void {{.*}}each_util_RowSum_optiml{{[0-9]*}}(int n, util::RowSum f)
// EMITTED: } // namespace util

template <typename T> struct Scale {
  T *data;
  T by;
  __device__ T twice(T x) const { return x + x; }
  __device__ void operator()(int i) const {
    data[i] = by * twice(data[i]);
  }
};
// EMITTED: __global__ void {{.*}}run_Scale_float_optiml{{[0-9]*}}(Scale<float> job, int n)

namespace shapes {
struct Shift {
  float *data;
  __device__ void operator()(int i) const { data[i] += 1.0f; }
} unused;
struct Other {
  int value;
};
} // namespace shapes
// EMITTED: } // namespace shapes
// EMITTED-NEXT: namespace {
// EMITTED-NEXT: __global__ void {{.*}}run_shapes_Shift_optiml{{[0-9]*}}(shapes::Shift job, int n)

class Outer {
public:
  struct Inner {
    float *data;
    __device__ void operator()(int i) const { data[i] *= 0.5f; }
  };
  void halve(float *data, int n) {
    start(Inner{data}, n);
  }
};
// EMITTED: __global__ void {{.*}}run_Outer_Inner_optiml{{[0-9]*}}(Outer::Inner job, int n)

int main() {
  const int rows = 300, width = 100;
  static float host[rows * width];
  for (int i = 0; i < rows * width; ++i)
    host[i] = float(i % 17) - 3.0f;
  float *in, *out;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, rows * sizeof(float));
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  util::forEach(rows, util::RowSum{in, out, width});
  start(Scale<float>{out, 3.0f}, rows);
  start(shapes::Shift{out}, rows);
  Outer().halve(out, rows);
  run<Scale<float>><<<2, 256>>>({in, 2.0f}, 400);
  cudaMemcpy(host, out, rows * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < rows; ++i)
    sum += host[i] * (1 + i % 3);
  printf("%.3f\n", sum);
}
