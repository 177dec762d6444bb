// A stencil's step and the kernel that copies its cells back: several of both become one launch.
// RUN: optiml-opt --emit --launch-loops %s > %t.cu 2> %t.notes
// RUN: FileCheck %s --check-prefix=NOTES --implicit-check-not=note: < %t.notes
// RUN: FileCheck %s < %t.cu
// RUN: optiml-run %s > %t.expected
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu > %t.got 2> %t.trace
// RUN: diff %t.expected %t.got
// RUN: FileCheck %s --check-prefix=RAN < %t.trace
#include <cstdio>
#include <vector>

constexpr int n = 150;

// Constant sizes; x runs along columns.
__global__ void relax(float *a, float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 1 && i < n - 1 && j > 1 && j < n - 1)
    b[i * n + j] = 0.2f * (a[i * n + j] + a[i * n + (j - 1)] + a[i * n + (1 + j)] + a[(1 + i) * n + j] +
                           __ldg(&a[(i - 1) * n + j]));
}
__global__ void back(float *a, float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 1 && i < n - 1 && j > 1 && j < n - 1)
    a[i * n + j] = b[i * n + j];
}
// Of other cells than those that are computed.
__global__ void backAll(float *a, float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < n)
    a[i * n + j] = b[i * n + j];
}
__global__ void backHalf(float *a, float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 1 && i < n - 1 && j > 1 && j < n - 1)
    a[i * n + j] = 0.5f * b[i * n + j];
}
__global__ void average(const double *a, double *b, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < count - 1)
    b[i] = 0.5 * (a[i - 1] + a[i + 1]);
}
__global__ void take(double *a, const double *b, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < count - 1)
    a[i] = b[i];
}

template <typename T> static T *make(int size, int step) {
  std::vector<T> host(size);
  for (int i = 0; i < size; ++i)
    host[i] = T(i * step % 101) / 8;
  T *p;
  cudaMalloc(&p, size * sizeof(T));
  cudaMemcpy(p, host.data(), size * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
template <typename T> static void show(const char *name, const T *p, int size) {
  std::vector<T> host(size);
  cudaMemcpy(host.data(), p, size * sizeof(T), cudaMemcpyDeviceToHost);
  unsigned long long hash = 1;
  for (size_t i = 0; i < size * sizeof(T); ++i)
    hash = hash * 1099511628211ull + ((const unsigned char *)host.data())[i];
  std::printf("%s %016llx\n", name, hash);
}

int main() {
  float *a = make<float>(n * n, 37), *b = make<float>(n * n, 11);
  dim3 block(8, 32), grid((n + 7) / 8, (n + 31) / 32);
  for (int t = 0; t < 11; ++t) {
    relax<<<grid, block>>>(a, b);
    cudaDeviceSynchronize();
    back<<<grid, block>>>(a, b);
    cudaDeviceSynchronize();
  }
  show("relax", a, n * n), show("relax", b, n * n);
  for (int t = 0; t < 3; ++t) {
    relax<<<grid, block>>>(a, b);
    backAll<<<grid, block>>>(a, b);
  }
  for (int t = 0; t < 3; ++t) {
    relax<<<grid, block>>>(a, b);
    backHalf<<<grid, block>>>(a, b);
  }
  for (int t = 0; t < 3; ++t) {
    relax<<<grid, block>>>(a, b);
    back<<<grid, block>>>(a, b);
    relax<<<grid, block>>>(b, a);
  }
  show("others", a, n * n), show("others", b, n * n);

  double *x = make<double>(5000, 7), *y = make<double>(5000, 13), *z = make<double>(5000, 3);
  for (int t = 0; t < 20; ++t) {
    average<<<20, 256>>>(x, y, 5000);
    take<<<20, 256>>>(x, y, 5000);
  }
  show("average", x, 5000), show("average", y, 5000);
  for (int t = 0; t < 6; ++t) { // fewer cells are copied than computed
    average<<<20, 256>>>(x, y, 5000);
    take<<<20, 256>>>(x, y, 4000);
  }
  show("fewer", x, 5000), show("fewer", y, 5000);
  for (int t = 0; t < 6; ++t) { // to another place
    average<<<20, 256>>>(x, y, 5000);
    take<<<20, 256>>>(z, y, 5000);
  }
  show("elsewhere", x, 5000), show("elsewhere", y, 5000), show("elsewhere", z, 5000);
}
// CHECK: // OptiML: relax is a step of a stencil in time.
// CHECK: void addCopy(dim3 launchGrid, dim3 launchBlock, size_t launchShared, cudaStream_t launchStream,
// CHECK-NEXT: float *a, float *b) {
// CHECK: copies.size() == launches.size()
// CHECK: copy.b == launch.b && copy.a == launch.a
// CHECK: passes += passes % 2;
// CHECK: { // OptiML: its launches take place at the end
// CHECK: .add(grid, block, 0, 0, a, b);
// CHECK: .addCopy(grid, block, 0, 0, a, b);
//
// NOTES: note: line {{[0-9]+}}: it launches two kernels that deal with different cells (the loop's launches stay as they are)
// NOTES: note: line {{[0-9]+}}: it launches different kernels (the loop's launches stay as they are)
// NOTES: note: line {{[0-9]+}}: it launches different kernels (the loop's launches stay as they are)
//
// Of the first loop, the last step and its copy take place as they are; of the others, all launches.
// RAN-DAG: OptiML: relax: 1 optimized, 2 original launches
// RAN-DAG: OptiML: average: 1 optimized, 26 original launches
