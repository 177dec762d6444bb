// Histogram of 64 MB of bytes (256 bins) whose distribution is skewed towards small values.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

using std::uint8_t;

__global__ void histogram(const uint8_t* bytes, unsigned int* bins, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    atomicAdd(&bins[bytes[i]], 1u);
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

    uint8_t* d_bytes;
    unsigned int* d_bins;
    cudaMalloc(&d_bytes, count);
    cudaMalloc(&d_bins, bins * sizeof(unsigned int));
    cudaMemcpy(d_bytes, bytes.data(), count, cudaMemcpyHostToDevice);
    cudaMemset(d_bins, 0, bins * sizeof(unsigned int));

    const int threads = 256;
    histogram<<<(unsigned)((count + threads - 1) / threads), threads>>>(d_bytes, d_bins, count);

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
