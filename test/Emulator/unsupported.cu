// Constructs that the emulator lacks stop the program where they are reached, and say which.
// RUN: not optiml-run %s -DTENSOR 2>&1 | FileCheck %s --check-prefix=TENSOR
// RUN: not optiml-run %s -DMANAGED 2>&1 | FileCheck %s --check-prefix=MANAGED
// RUN: optiml-run %s | FileCheck %s --check-prefix=UNREACHED
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

#ifdef MANAGED
__device__ __managed__ int shared; // MANAGED: unsupported.cu:[[#@LINE]]:{{.*}}__managed__ variables are not supported
#endif

__global__ void multiply(const half *a, half *b) {
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> f;
  nvcuda::wmma::load_matrix_sync(f, a, 16); // TENSOR: unsupported: tensor core operations
  // TENSOR: kernel: multiply
  b[0] = f.x[0];
}

int main() {
  half *a;
  cudaMalloc(&a, 512);
#ifdef TENSOR
  multiply<<<1, 32>>>(a, a);
#endif
  printf("%d\n", cudaDeviceSynchronize()); // UNREACHED: 0
}
