// Sums 64M floats. By hand: a grid that just fills the device, four independent float4 loads in flight a
// thread, shuffle reductions, and the last block to finish adds the few partial sums in the same kernel.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int BLOCK = 512;
constexpr int UNROLL = 4;
constexpr int MAX_BLOCKS = 1024;

__device__ unsigned finished = 0;

__device__ __forceinline__ float reduce_block(float sum)
{
  __shared__ float warps[BLOCK / 32];
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
  __syncthreads();
  sum = threadIdx.x < BLOCK / 32 ? warps[threadIdx.x] : 0.0f;
  if (threadIdx.x < 32) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  }
  __syncthreads();
  return sum;
}

__global__ void __launch_bounds__(BLOCK)
total_sum(const float4* __restrict__ data, float* partial, float* result, unsigned vectors)
{
  __shared__ bool last;
  const unsigned stride = gridDim.x * BLOCK;
  unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  float sums[UNROLL] = {};
  for (; i + (UNROLL - 1) * stride < vectors; i += UNROLL * stride) {
    float4 v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = __ldcs(data + i + u * stride);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) sums[u] += (v[u].x + v[u].y) + (v[u].z + v[u].w);
  }
  for (; i < vectors; i += stride) {
    const float4 v = __ldcs(data + i);
    sums[0] += (v.x + v.y) + (v.z + v.w);
  }
  float sum = 0.0f;
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) sum += sums[u];
  sum = reduce_block(sum);

  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(&finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0.0f;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += BLOCK) sum += __ldcg(partial + b);
  sum = reduce_block(sum);
  if (threadIdx.x == 0) {
    *result = sum;
    finished = 0;
  }
}

int main()
{
  const size_t n = size_t(1) << 26;
  std::vector<float> data(n);
  unsigned s = 5u;
  for (size_t i = 0; i < n; ++i) {
    s = s * 1664525u + 1013904223u;
    data[i] = (s >> 8) * (1.0f / 16777216.0f) + (i & 1 ? 0.25f : 0.0f);
  }

  float *d_partial, *d_result;
  float4* d_data;
  cudaMalloc(&d_data, n * sizeof(float));
  cudaMalloc(&d_partial, MAX_BLOCKS * sizeof(float));
  cudaMalloc(&d_result, sizeof(float));
  cudaMemcpy(d_data, data.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  int processors = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  int blocks = processors * (2048 / BLOCK);
  if (blocks > MAX_BLOCKS) blocks = MAX_BLOCKS;
  total_sum<<<blocks, BLOCK>>>(d_data, d_partial, d_result, (unsigned)(n / 4));

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
