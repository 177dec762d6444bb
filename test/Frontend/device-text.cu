// What NVRTC compiles of a program: kernels, and all that they use, but no host code.
// RUN: optiml-opt --device-text %s -- -DUNIT=2 | FileCheck %s
// RUN: optiml-opt --device-text --passes='block-shape[tools::scale]{x=128}' %s -- -DUNIT=2 | %check=NEW
// CHECK: typedef unsigned uint32_t;
// CHECK-NOT: #include <vector>
// CHECK: #include <cuda_fp16.h>
// CHECK: #define CHECKED(call)
// CHECK-NEXT: if ((call) != cudaSuccess)
// CHECK-NOT: hostOnly
// CHECK: int first = 3, second = 4;
// CHECK: struct Sizes {
// CHECK-NEXT: int rows, columns;
// CHECK-NEXT: Sizes(int rows, int columns);
// CHECK: int count() const { return rows * columns; }
// CHECK: void print() const ;
// CHECK: namespace {
// CHECK: #ifdef UNIT
// CHECK: float unit(float x)
// CHECK: }
// CHECK: namespace tools {
// CHECK-NOT: helper
// CHECK: template <typename T> __device__ T twice(T x)
// CHECK: scale(
// NEW-NOT: void scale(
// NEW: scale_optiml{{[0-9]*}}(
// CHECK-NOT: main
#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>
#include <vector>

#define CHECKED(call) \
  if ((call) != cudaSuccess) \
    std::exit(1)

static std::vector<int> hostOnly(3);
constexpr int first = 3, second = 4;
constexpr int unused = 9;

struct Sizes {
  int rows, columns;
  Sizes(int rows, int columns) : rows(rows), columns(columns) { hostOnly.push_back(rows); }
  __host__ __device__ int count() const { return rows * columns; }
  void print() const { std::printf("%d\n", rows); }
};

namespace {
#ifdef UNIT
__device__ float unit(float x) { return x * UNIT; }
#else
__device__ float unit(float x) { return x; }
#endif
void report(const Sizes &sizes) { sizes.print(); }
} // namespace

namespace tools {
inline int helper(int x) { return x + 1; }
template <typename T> __device__ T twice(T x) { return x + x; }
__global__ void scale(float *a, const __half *h, Sizes sizes, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i < uint32_t(sizes.count()))
    a[i] = unit(twice(a[i])) * first + __half2float(h[i]);
}
} // namespace tools

int main() {
  Sizes sizes(second, tools::helper(2));
  float *a;
  __half *h;
  CHECKED(cudaMalloc(&a, sizes.count() * sizeof(float)));
  CHECKED(cudaMalloc(&h, sizes.count() * sizeof(__half)));
  tools::scale<<<1, 64>>>(a, h, sizes, sizes.count());
  report(sizes);
}
