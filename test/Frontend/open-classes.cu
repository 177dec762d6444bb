// Functors whose members are private: a new kernel names what they use. Nothing else about the classes changes.
// RUN: optiml-opt --emit --passes='unroll[apply<Scale>/k]{factor=2};unroll[apply<Clamp<float>>/k]{factor=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
#include <cstdio>
#include <vector>

// CHECK: class Scale { public:
// CHECK-NEXT: float factor_;
// CHECK: class Hidden {
// CHECK-NEXT: int never_ = 3;
// CHECK: class Clamp : Base {
// CHECK-NEXT: public:
// CHECK: public:
// CHECK-NEXT: T low_, high_;
// CHECK: x[i * 8 + (k + u)] * f.factor_ + f.factor_ * 0.5f
// PATHS-DAG: OptiML: apply<Scale>: 1 optimized, 0 original launches
// PATHS-DAG: OptiML: apply<Clamp<float>{{ ?}}>: 1 optimized, 0 original launches
class Scale {
  float factor_;

public:
  explicit Scale(float f) : factor_(f) {}
  __device__ float operator()(float x) const { return x * factor_ + shift(); }

protected:
  __device__ float shift() const { return factor_ * 0.5f; }
};

class Hidden { // no kernel takes it
  int never_ = 3;

public:
  int get() const { return never_; }
};

struct Base {};
template <typename T> class Clamp : Base {
public:
  Clamp(T low, T high) : low_(low), high_(high) {}
  __device__ T operator()(T x) const { return x < low_ ? low_ : x > high_ ? high_ : x; }

private:
  T low_, high_;
};

template <typename F> __global__ void apply(float *y, const float *x, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int k = 0; k < 8; k++)
      s += f(x[i * 8 + k]);
    y[i] = s;
  }
}

int main() {
  const int n = 1000;
  std::vector<float> host(n * 8);
  for (int i = 0; i < n * 8; i++)
    host[i] = float(i % 100) * 0.25f - 10;
  float *x, *y;
  cudaMalloc(&x, n * 8 * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, host.data(), n * 8 * sizeof(float), cudaMemcpyHostToDevice);
  for (int way = 0; way < 2; way++) {
    if (way)
      apply<<<4, 256>>>(y, x, n, Scale(2.f));
    else
      apply<<<4, 256>>>(y, x, n, Clamp<float>(-3, 5));
    cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (int i = 0; i < n; i++)
      sum += host[i] * (i % 7);
    printf("%.9g\n", sum);
  }
  printf("%d\n", Hidden().get());
  return 0;
}
