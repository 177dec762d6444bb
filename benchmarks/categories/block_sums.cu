// Sums 64M floats: every block adds its elements in a shared-memory tree and writes one partial sum, and
// a second kernel adds the partial sums.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

template <int BLOCK>
__global__ void block_sum(const float* data, float* partial, size_t n)
{
  __shared__ float cache[BLOCK];
  size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  cache[threadIdx.x] = i < n ? data[i] : 0.0f;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = cache[0];
}

template <int BLOCK>
__global__ void final_sum(const float* partial, float* result, size_t count)
{
  __shared__ float cache[BLOCK];
  float sum = 0.0f;
  for (size_t i = threadIdx.x; i < count; i += BLOCK) sum += partial[i];
  cache[threadIdx.x] = sum;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *result = cache[0];
}

int main()
{
  constexpr int block = 256;
  const size_t n = size_t(1) << 26;
  const size_t blocks = (n + block - 1) / block;
  std::vector<float> data(n);
  unsigned s = 5u;
  for (size_t i = 0; i < n; ++i) {
    s = s * 1664525u + 1013904223u;
    data[i] = (s >> 8) * (1.0f / 16777216.0f) + (i & 1 ? 0.25f : 0.0f);
  }

  float *d_data, *d_partial, *d_result;
  cudaMalloc(&d_data, n * sizeof(float));
  cudaMalloc(&d_partial, blocks * sizeof(float));
  cudaMalloc(&d_result, sizeof(float));
  cudaMemcpy(d_data, data.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  block_sum<block><<<(unsigned)blocks, block>>>(d_data, d_partial, n);
  final_sum<1024><<<1, 1024>>>(d_partial, d_result, blocks);

  float result = 0.0f;
  if (cudaMemcpy(&result, d_result, sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) {
    fprintf(stderr, "sum failed\n");
    return 1;
  }
  printf("sum %.6e\n", (double)result);
  printf("mean %.6e\n", (double)result / (double)n);
  cudaFree(d_data);
  cudaFree(d_partial);
  cudaFree(d_result);
  return 0;
}
