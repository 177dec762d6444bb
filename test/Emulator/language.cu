// Templates, device lambdas, function pointers, virtual functions, recursion, structures by value, printf.
// RUN: optiml-run %s --extended-lambda | FileCheck %s
#include <cstdio>
#include <cuda_runtime.h>

struct Params {
  int scale;
  double offset;
  float4 weights;
};
template <typename T, int N> __global__ void fill(T *out, Params p) {
  p.scale += N; // a copy of its own for each thread
  out[threadIdx.x] = T(p.scale * threadIdx.x + p.offset + p.weights.z);
}
template <typename F> __global__ void apply(int *out, F f) { out[threadIdx.x] = f(threadIdx.x); }

typedef int (*Function)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ Function table[] = {twice, square};
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

struct Shape {
  __device__ virtual int area() const { return 0; }
};
struct Box : Shape {
  int w, h;
  __device__ Box(int w, int h) : w(w), h(h) {}
  __device__ int area() const override { return w * h; }
};

__global__ void calls(int *out, int which) {
  out[0] = table[which](7);
  out[1] = fib(10);
  Box box(3, 5);
  const Shape *shape = &box;
  out[2] = shape->area();
  int *heap = (int *)malloc(4 * sizeof(int));
  for (int i = 0; i < 4; ++i)
    heap[i] = i;
  out[3] = heap[1] + heap[3];
  free(heap);
  printf("from the device: %d %.2f %s %c %lld\n", out[0], 1.5, "text", 'x', 1ll << 40);
}

int main() {
  int *out, h[4];
  cudaMalloc(&out, sizeof h);
  auto show = [&](const char *what) {
    cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
    printf("%s: %d %d %d %d\n", what, h[0], h[1], h[2], h[3]);
  };
  fill<int, 3><<<1, 4>>>(out, Params{7, 0.5, {0, 0, 100, 0}});
  show("template");
  int base = 40;
  apply<<<1, 4>>>(out, [base] __device__(int i) { return base + i * i; });
  show("lambda");
  void (*pointer)(int *, int) = calls;
  pointer<<<1, 1>>>(out, 1);
  show("calls");
}
// CHECK: template: 100 110 120 130
// CHECK: lambda: 40 41 44 49
// CHECK: from the device: 49 1.50 text x 1099511627776
// CHECK: calls: 49 55 15 4
