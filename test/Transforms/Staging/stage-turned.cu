// Rows by a block's second axis along the grid's first: what such a launch touches is bounded by its own extents, so
// that tiles of both factors are legal where nothing overlaps.
// RUN: %plan --block=16x4x1 --passes='block-shape[product]{x=16,y=4};stage-shared[product/k:a+b]{tile=16}' %s | FileCheck %s
// RUN: optiml-opt --reread --emit --block=16x4x1 --passes='block-shape[product]{x=16,y=4};stage-shared[product/k:a+b]{tile=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RUN: optiml-run --coverage=15 --verify=%t.cu %s | %check=SAME
// CHECK: // when disjoint(a, 4 * (block.y * grid.x * s.inner + {{.*}}, out, 4 * (block.x + block.y * grid.x * s.columns + 
// CHECK: __shared__ {{.*}}float a_tile[16][{{[0-9]+}}];
// RAN: product: 1 optimized, 0 original launches
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Shape {
  int batches, rows, inner, columns;
};

__global__ void product(const float *a, const float *b, float *out, Shape s) {
  int column = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y, batch = blockIdx.y;
  float sum = 0;
  for (int k = 0; k < s.inner; ++k)
    sum += a[(batch * s.rows + row) * s.inner + k] * b[(batch * s.inner + k) * s.columns + column];
  out[(batch * s.rows + row) * s.columns + column] = sum;
}

int main(int argc, char **argv) {
  Shape s = {argc > 1 ? atoi(argv[1]) : 2, 8, argc > 2 ? atoi(argv[2]) : 37, 16};
  if (s.batches < 1 || s.inner < 1)
    return 1;
  const size_t inputs = size_t(s.batches) * s.inner * (s.rows + s.columns), outputs = size_t(s.batches) * s.rows * 16;
  std::vector<float> in(inputs), out(outputs);
  for (size_t i = 0; i < inputs; ++i)
    in[i] = float(i * 7919 % 257) / 16 - 8;
  float *din, *dout;
  cudaMalloc(&din, inputs * sizeof(float));
  cudaMalloc(&dout, outputs * sizeof(float));
  cudaMemcpy(din, in.data(), inputs * sizeof(float), cudaMemcpyHostToDevice);
  product<<<dim3(s.rows / 4, s.batches), dim3(16, 4)>>>(din, din + size_t(s.batches) * s.rows * s.inner, dout, s);
  cudaMemcpy(out.data(), dout, outputs * sizeof(float), cudaMemcpyDeviceToHost);
  float sum = 0;
  for (float x : out)
    sum += x;
  printf("%g\n", sum);
}
