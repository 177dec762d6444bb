// What the program sets for a kernel reaches its twin: more dynamic shared memory, and the carve-out.
// REQUIRES: optiml-run
// RUN: optiml-opt --reread --emit --passes='unroll[windowed/i/k]{factor=full}' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// CHECK: OptimlPath::follow(windowed_optiml, windowed, shared, shared) // its attributes are the original's
// RAN-DAG: OptiML: windowed: 2 optimized, 1 original launches
// RAN-DAG: 16384: no error, 3145728
// RAN-DAG: 8192: no error, 3145728
// RAN-DAG: 32768: invalid argument, 3145728
#include <cstdio>
#include <vector>

__global__ void windowed(const float *in, float *out, int n, int cells) {
  extern __shared__ float box[];
  for (int i = threadIdx.x; i < cells; i += blockDim.x)
    box[i] = blockIdx.x * cells + i < n ? in[blockIdx.x * cells + i] : 0;
  __syncthreads();
  for (int i = threadIdx.x; i < cells; i += blockDim.x) {
    float s = 0;
    for (int k = 0; k < 16; ++k)
      s += box[(i + k) % cells];
    if (blockIdx.x * cells + i < n)
      out[blockIdx.x * cells + i] = s;
  }
}

template <typename K> void allow(K kernel, int bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50);
}

int main() {
  int n = 1 << 17;
  std::vector<float> h(n, 1.5f);
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  allow(windowed, 65536);
  for (int cells : {16384, 8192, 32768}) {
    windowed<<<(n + cells - 1) / cells, 256, cells * sizeof(float)>>>(in, out, n, cells);
    cudaError_t error = cudaGetLastError();
    cudaMemcpy(h.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (float v : h)
      sum += v;
    printf("%d: %s, %.0f\n", cells, cudaGetErrorString(error), sum);
  }
}
