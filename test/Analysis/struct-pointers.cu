// Pointers in parameters of class type are arrays like pointer parameters: they can be staged, and tested for overlap.
// RUN: %plan --passes='block-shape[product<float>]{x=16,y=16};coarsen[product<float>]{x=2,y=2};stage-shared[product<float>/k:a.data+p.b]{tile=16}' %s | %check=PRODUCT
// RUN: %plan --passes='block-shape[scale]{x=64};vectorize-access[scale]{width=4}' %s | %check=SCALE
// RUN: optiml-opt --emit --passes='block-shape[product<float>]{x=16,y=16};coarsen[product<float>]{x=2,y=2};stage-shared[product<float>/k:a.data+p.b]{tile=16};block-shape[scale]{x=64};vectorize-access[scale]{width=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 37 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 37 2>&1 | %check=RAN
// RAN-DAG: product<float>: 1 optimized, 0 original launches
// RAN-DAG: scale: 1 optimized, 0 original launches
// REQUIRES: optiml-run
// RUN: %refused --passes='block-shape[moved]{x=64};vectorize-access[moved]{width=4}' %s 2>&1 | %check=MOVED
#include <cstdio>
#include <cstdlib>

template <typename T> struct Matrix {
  const T *data;
  int rows, cols;
};
struct Product {
  const float *b;
  float *c;
  int cols;
};
struct Vectors {
  const float *in;
  float *out;
  int n;
};

template <typename T> __global__ void product(Matrix<T> a, Product p) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.rows || j >= p.cols)
    return;
  float sum = 0;
  for (int k = 0; k < a.cols; ++k)
    sum += a.data[i * a.cols + k] * p.b[k * p.cols + j];
  p.c[i * p.cols + j] = sum;
}
// PRODUCT: when disjoint(a.data, 4 * (a.cols * a.rows), p.c, 4 * (a.rows * p.cols))
// PRODUCT: __shared__ __align__(16) float a_data_tile[16]

__global__ void scale(Vectors v, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.n)
    v.out[i] = v.in[i] * by;
}
// SCALE-DAG: when aligned(v.in, 16)
// SCALE-DAG: when aligned(v.out, 16)
// SCALE: *(float4 *)&v.out[i] = make_float4

__global__ void moved(Vectors v, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  v.out += 1;
  if (i < v.n)
    v.out[i] = v.in[i] * by;
}
// MOVED: the kernel changes its parameter 'v'

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 37;
  float *a, *b, *c;
  cudaMallocManaged(&a, n * n * sizeof(float));
  cudaMallocManaged(&b, n * n * sizeof(float));
  cudaMallocManaged(&c, n * n * sizeof(float));
  for (int i = 0; i < n * n; ++i)
    a[i] = float(i % 7), b[i] = float(i % 5), c[i] = 0;
  product<float><<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>({a, n, n}, {b, c, n});
  scale<<<(n + 63) / 64, 64>>>({a, b, n}, 2.0f);
  cudaDeviceSynchronize();
  printf("%g %g %g\n", b[n - 1], c[0], c[n * n - 1]);
}
