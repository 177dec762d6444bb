// Histogram equalisation of an 8-bit grayscale image.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>

constexpr uint32_t BINS = 256;

constexpr uint32_t THREADS = 256;
constexpr uint32_t WARPS = THREADS / 32;
static_assert(THREADS == BINS, "one thread per bin");

// a histogram per warp in shared memory, 16 pixels per load
__global__ void __launch_bounds__(THREADS)
histogram(const uint8_t *__restrict__ image, uint32_t *__restrict__ hist, uint64_t n)
{
    __shared__ uint32_t priv[WARPS][BINS];
    const uint32_t tid = threadIdx.x;
    uint32_t *mine = priv[tid / 32];
#pragma unroll
    for (uint32_t w = 0; w < WARPS; w++) priv[w][tid] = 0;
    __syncthreads();

    const uint4 *v = (const uint4 *)image;
    const uint32_t n16 = (uint32_t)(n / 16);
    for (uint32_t i = blockIdx.x * THREADS + tid; i < n16; i += gridDim.x * THREADS) {
        const uint4 q = v[i];
        const uint32_t word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            atomicAdd(&mine[word[k] & 255u], 1u);
            atomicAdd(&mine[(word[k] >> 8) & 255u], 1u);
            atomicAdd(&mine[(word[k] >> 16) & 255u], 1u);
            atomicAdd(&mine[word[k] >> 24], 1u);
        }
    }
    if (blockIdx.x == 0 && tid < n % 16) atomicAdd(&mine[image[(uint64_t)n16 * 16 + tid]], 1u);
    __syncthreads();

    uint32_t sum = 0;
#pragma unroll
    for (uint32_t w = 0; w < WARPS; w++) sum += priv[w][tid];
    if (sum) atomicAdd(&hist[tid], sum);
}

// every block scans the 256 bins itself (cheap), builds the table of grey levels and maps with it
__global__ void __launch_bounds__(THREADS)
mapPixels(const uint8_t *__restrict__ in, uint8_t *__restrict__ out, const uint32_t *__restrict__ hist,
          uint32_t *__restrict__ cdf, uint64_t n)
{
    __shared__ uint32_t warpSum[WARPS];
    __shared__ uint32_t cdfMin;
    __shared__ uint8_t lut[BINS];
    const uint32_t tid = threadIdx.x, lane = tid & 31u;
    const uint32_t count = hist[tid];
    uint32_t sum = count;
#pragma unroll
    for (uint32_t o = 1; o < 32; o *= 2) {
        uint32_t up = __shfl_up_sync(0xffffffffu, sum, o);
        if (lane >= o) sum += up;
    }
    if (lane == 31) warpSum[tid / 32] = sum;
    if (tid == 0) cdfMin = 0xffffffffu;
    __syncthreads();
    for (uint32_t w = 0; w < tid / 32; w++) sum += warpSum[w];
    if (count) atomicMin(&cdfMin, sum);            // the first bin in use has the smallest sum
    if (blockIdx.x == 0) cdf[tid] = sum;
    __syncthreads();
    if (count) {
        uint64_t num = (uint64_t)(sum - cdfMin) * 255u;
        uint64_t den = n - cdfMin;
        lut[tid] = (uint8_t)((num + den / 2) / den);
    }
    __syncthreads();

    const uint4 *src = (const uint4 *)in;
    uint4 *dst = (uint4 *)out;
    const uint32_t n16 = (uint32_t)(n / 16);
    for (uint32_t i = blockIdx.x * THREADS + tid; i < n16; i += gridDim.x * THREADS) {
        const uint4 q = src[i];
        uint32_t word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int k = 0; k < 4; k++)
            word[k] = (uint32_t)lut[word[k] & 255u] | ((uint32_t)lut[(word[k] >> 8) & 255u] << 8) |
                      ((uint32_t)lut[(word[k] >> 16) & 255u] << 16) | ((uint32_t)lut[word[k] >> 24] << 24);
        dst[i] = make_uint4(word[0], word[1], word[2], word[3]);
    }
    if (blockIdx.x == 0 && tid < n % 16) {
        uint64_t i = (uint64_t)n16 * 16 + tid;
        out[i] = lut[in[i]];
    }
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
    uint32_t *dHist, *dCdf;
    cudaMalloc(&dIn, n);
    cudaMalloc(&dOut, n);
    cudaMalloc(&dHist, BINS * sizeof(uint32_t));
    cudaMalloc(&dCdf, BINS * sizeof(uint32_t));
    cudaMemcpy(dIn, image.data(), n, cudaMemcpyHostToDevice);
    cudaMemset(dHist, 0, BINS * sizeof(uint32_t));

    const uint32_t blocks = 132 * 8;
    histogram<<<blocks, THREADS>>>(dIn, dHist, n);
    mapPixels<<<blocks, THREADS>>>(dIn, dOut, dHist, dCdf, n);

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

    cudaFree(dIn); cudaFree(dOut); cudaFree(dHist); cudaFree(dCdf);
    return 0;
}
