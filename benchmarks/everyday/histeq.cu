// Histogram equalisation of an 8-bit grayscale image.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>

constexpr uint32_t BINS = 256;

__global__ void histogram(const uint8_t *image, uint32_t *hist, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uint8_t level = image[i];
        atomicAdd(&hist[level], 1u);
    }
}

// tiny, one thread is enough
__global__ void cumulativeSum(const uint32_t *hist, uint32_t *cdf, uint32_t *cdfMin)
{
    uint32_t sum = 0;
    bool first = true;
    for (uint32_t b = 0; b < BINS; b++) {
        sum += hist[b];
        cdf[b] = sum;
        if (first && hist[b] != 0) {
            *cdfMin = sum;
            first = false;
        }
    }
}

__global__ void mapPixels(const uint8_t *in, uint8_t *out, const uint32_t *cdf,
                          const uint32_t *cdfMin, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint64_t num = (uint64_t)(cdf[in[i]] - *cdfMin) * 255u;
    uint64_t den = n - *cdfMin;
    out[i] = (uint8_t)((num + den / 2) / den);
}

int main()
{
    const uint32_t width = 5120, height = 4096;
    const uint64_t n = (uint64_t)width * height;
    std::vector<uint8_t> image(n);

    uint32_t state = 5u;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            state = state * 1664525u + 1013904223u;
            uint32_t a = (state >> 24) & 63u;
            state = state * 1664525u + 1013904223u;
            uint32_t b = (state >> 24) & 31u;
            uint32_t slope = (x * 60u) / width + (y * 20u) / height;
            image[(uint64_t)y * width + x] = (uint8_t)(40u + a + b + slope);
        }

    uint8_t *dIn, *dOut;
    uint32_t *dHist, *dCdf, *dMin;
    cudaMalloc(&dIn, n);
    cudaMalloc(&dOut, n);
    cudaMalloc(&dHist, BINS * sizeof(uint32_t));
    cudaMalloc(&dCdf, BINS * sizeof(uint32_t));
    cudaMalloc(&dMin, sizeof(uint32_t));
    cudaMemcpy(dIn, image.data(), n, cudaMemcpyHostToDevice);
    cudaMemset(dHist, 0, BINS * sizeof(uint32_t));

    const uint32_t threads = 256;
    const uint32_t blocks = (uint32_t)((n + threads - 1) / threads);
    histogram<<<blocks, threads>>>(dIn, dHist, n);
    cumulativeSum<<<1, 1>>>(dHist, dCdf, dMin);
    mapPixels<<<blocks, threads>>>(dIn, dOut, dCdf, dMin, n);

    uint32_t cdf[BINS];
    cudaMemcpy(image.data(), dOut, n, cudaMemcpyDeviceToHost);
    cudaMemcpy(cdf, dCdf, sizeof(cdf), cudaMemcpyDeviceToHost);
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(err));
        return EXIT_FAILURE;
    }

    uint64_t hash = 1469598103934665603ULL;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        hash = (hash ^ image[i]) * 1099511628211ULL;
        sum += image[i];
    }
    printf("image hash %016llx\n", (unsigned long long)hash);
    printf("image sum  %llu\n", (unsigned long long)sum);
    printf("cdf[100] %u cdf[128] %u cdf[255] %u\n", cdf[100], cdf[128], cdf[255]);

    cudaFree(dIn); cudaFree(dOut); cudaFree(dHist); cudaFree(dCdf); cudaFree(dMin);
    return 0;
}
