// Constructs that the emulator lacks stop the program where they are reached, and say which.
// RUN: not optiml-run %s -DTENSOR 2>&1 | %check=TENSOR
// RUN: not optiml-run %s -DMANAGED 2>&1 | %check=MANAGED
// RUN: not optiml-run %s -DTEXTURE 2>&1 | %check=TEXTURE
// RUN: not optiml-run %s -DLAUNCH 2>&1 | %check=LAUNCH
// RUN: optiml-run %s | %check=UNREACHED
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

__global__ void sample(cudaTextureObject_t texture, half *b) {
  b[0] = tex2D<float>(texture, 0.5f, 0.5f); // TEXTURE: unsupported: textures and surfaces
  // TEXTURE: source: {{.*}}unsupported.cu:[[#@LINE-1]]
}

#ifdef LAUNCH
__global__ void parent(half *a) {
  sample<<<1, 1>>>(0, a); // LAUNCH: unsupported.cu:[[#@LINE]]:{{.*}}dynamic parallelism
}
#endif

int main() {
  half *a;
  cudaMalloc(&a, 512);
#ifdef TEXTURE
  sample<<<1, 1>>>(0, a);
#endif
#ifdef TENSOR
  multiply<<<1, 32>>>(a, a);
#endif
  printf("%d\n", cudaDeviceSynchronize()); // UNREACHED: 0
}
