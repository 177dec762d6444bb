// A program that neither copies anything back nor prints cannot show that another one is the same.
// RUN: cp %s %t.cu
// RUN: not optiml-run --verify=%t.cu %s 2>&1 | FileCheck %s
// CHECK: it copies nothing back to the host and prints nothing, so that nothing could differ
__global__ void fill(float *a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  float *a;
  cudaMalloc(&a, 32 * sizeof(float));
  fill<<<1, 32>>>(a);
  cudaDeviceSynchronize();
  cudaFree(a);
}
