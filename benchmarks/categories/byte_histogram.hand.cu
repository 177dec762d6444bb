// Histogram of 64 MB of bytes (256 bins) whose distribution is skewed towards small values. By hand: each
// block counts in shared memory with a column of bins for every lane, so that a warp's atomics never meet
// on a bank or an address; bytes are read 16 at a time, and a block adds its totals to global memory once.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

using std::uint8_t;

constexpr int THREADS = 1024;
constexpr int UNROLL = 4;

__device__ __forceinline__ void count_word(unsigned int* column, unsigned int word)
{
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8)
        atomicAdd(column + ((word >> shift) & 255u) * 32, 1u);
}

__device__ __forceinline__ void count_vector(unsigned int* column, uint4 v)
{
    count_word(column, v.x);
    count_word(column, v.y);
    count_word(column, v.z);
    count_word(column, v.w);
}

__global__ void __launch_bounds__(THREADS, 2)
histogram(const uint4* __restrict__ data, unsigned int* __restrict__ bins, unsigned int vectors)
{
    __shared__ unsigned int counts[256 * 32];
    for (int i = threadIdx.x; i < 256 * 32; i += THREADS)
        counts[i] = 0;
    __syncthreads();

    unsigned int* column = counts + (threadIdx.x & 31);
    const unsigned int stride = gridDim.x * THREADS;
    unsigned int i = blockIdx.x * THREADS + threadIdx.x;
    for (; i + (UNROLL - 1) * stride < vectors; i += UNROLL * stride) {
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            v[u] = __ldcs(data + i + u * stride);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            count_vector(column, v[u]);
    }
    for (; i < vectors; i += stride)
        count_vector(column, __ldcs(data + i));
    __syncthreads();

    // Four threads add up a bin; the rotation by the bin keeps a warp on 32 different banks.
    const int bin = threadIdx.x >> 2, part = threadIdx.x & 3;
    unsigned int sum = 0;
#pragma unroll
    for (int c = 0; c < 8; c++)
        sum += counts[bin * 32 + ((part * 8 + c + bin) & 31)];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (part == 0 && sum > 0)
        atomicAdd(bins + bin, sum);
}

int main()
{
    const size_t count = 64u << 20;
    const int bins = 256;
    std::vector<uint8_t> bytes(count);
    uint32_t s = 2024u;
    for (size_t i = 0; i < count; i++) {
        s = s * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(((s >> 24) * ((s >> 16) & 255u)) >> 8);
    }

    uint4* d_bytes;
    unsigned int* d_bins;
    cudaMalloc(&d_bytes, count);
    cudaMalloc(&d_bins, bins * sizeof(unsigned int));
    cudaMemcpy(d_bytes, bytes.data(), count, cudaMemcpyHostToDevice);
    cudaMemset(d_bins, 0, bins * sizeof(unsigned int));

    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    histogram<<<2 * processors, THREADS>>>(d_bytes, d_bins, (unsigned int)(count / 16));

    std::vector<unsigned int> result(bins);
    cudaError_t err = cudaMemcpy(result.data(), d_bins, bins * sizeof(unsigned int), cudaMemcpyDeviceToHost);
    if (err != cudaSuccess) {
        fprintf(stderr, "histogram: %s\n", cudaGetErrorString(err));
        return 1;
    }
    double total = 0.0, mean = 0.0, squares = 0.0;
    for (int b = 0; b < bins; b++) {
        total += result[b];
        mean += (double)result[b] * b;
        squares += (double)result[b] * result[b] * (1 + b % 7);
    }
    printf("total %.6e\n", total);
    printf("first moment %.6e\n", mean);
    printf("squares %.6e\n", squares);
    cudaFree(d_bytes);
    cudaFree(d_bins);
    return 0;
}
