// Finds bright dust specks on a scanned film frame:
//   RGB -> luminance -> 5x5 median against grain -> white top-hat with a
//   15x15 square (erosion followed by dilation, then difference) -> histogram of
//   the top-hat response, from which the speck statistics are read.
//
// Estimated kernel time on an H200: about 8 ms in total (median about 5 ms).
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                          \
    do {                                                                          \
        cudaError_t err_ = (call);                                                \
        if (err_ != cudaSuccess) {                                                \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,               \
                         cudaGetErrorString(err_));                               \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

typedef unsigned char uchar;

constexpr int kWidth = 4060;
constexpr int kHeight = 2900;
constexpr int kRadius = 7;        // structuring element is 15 x 15
constexpr int kSpeckLevel = 40;   // top-hat response that counts as dust

__device__ int clampi(int v, int lo, int hi) { return v < lo ? lo : (v > hi ? hi : v); }

__global__ void luminance(const uchar* rgb, uchar* luma, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    size_t i = (size_t)y * width + x;
    int r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
    luma[i] = (uchar)((77 * r + 150 * g + 29 * b + 128) >> 8);
}

template <int R>
__global__ void median_filter(const uchar* in, uchar* out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    uchar window[(2 * R + 1) * (2 * R + 1)];
    int count = 0;
    for (int dy = -R; dy <= R; ++dy) {
        int yy = clampi(y + dy, 0, height - 1);
        for (int dx = -R; dx <= R; ++dx) {
            int xx = clampi(x + dx, 0, width - 1);
            uchar v = in[(size_t)yy * width + xx];
            // insertion sort
            int k = count++;
            while (k > 0 && window[k - 1] > v) {
                window[k] = window[k - 1];
                --k;
            }
            window[k] = v;
        }
    }
    out[(size_t)y * width + x] = window[count / 2];
}

// grey-scale erosion or dilation with a square; pixels outside the image are ignored
template <bool kErode>
__global__ void morphology(const uchar* in, uchar* out, int width, int height, int radius)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    int best = kErode ? 255 : 0;
    for (int yy = max(y - radius, 0); yy <= min(y + radius, height - 1); ++yy)
        for (int xx = max(x - radius, 0); xx <= min(x + radius, width - 1); ++xx) {
            int v = in[(size_t)yy * width + xx];
            best = kErode ? min(best, v) : max(best, v);
        }
    out[(size_t)y * width + x] = (uchar)best;
}

__global__ void top_hat(const uchar* smooth, const uchar* opened, uchar* response,
                        unsigned* histogram, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    size_t i = (size_t)y * width + x;
    int d = smooth[i] - opened[i];
    response[i] = (uchar)d;
    atomicAdd(&histogram[d], 1u);
}

struct Speck {
    int x, y, radius;
};

// slowly varying picture, film grain, and bright round specks
static std::vector<uchar> make_frame(std::vector<Speck>& specks)
{
    std::vector<uchar> rgb((size_t)3 * kWidth * kHeight);
    std::vector<float> across(kWidth), down(kHeight);
    for (int x = 0; x < kWidth; ++x) across[x] = 35.0f * std::sin(0.004f * x) + 10.0f * std::sin(0.05f * x);
    for (int y = 0; y < kHeight; ++y) down[y] = 30.0f * std::cos(0.003f * y + 1.0f);

    uint32_t state = 2024u;
    auto next = [&state]() {
        state = state * 1664525u + 1013904223u;
        return state >> 8;
    };
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) {
            uint32_t n = next();
            int base = (int)(100.0f + across[x] + down[y]);
            uchar* p = &rgb[3 * ((size_t)y * kWidth + x)];
            p[0] = (uchar)std::min(255, std::max(0, base + (int)(n & 31) - 16));
            p[1] = (uchar)std::min(255, std::max(0, base + (int)(n >> 5 & 31) - 16));
            p[2] = (uchar)std::min(255, std::max(0, base + (int)(n >> 10 & 31) - 10));
        }
    for (int s = 0; s < 9000; ++s) {
        Speck k{(int)(next() % kWidth), (int)(next() % kHeight), 2 + (int)(next() % 6)};
        int lift = 40 + (int)(next() % 60);
        for (int y = std::max(0, k.y - k.radius); y <= std::min(kHeight - 1, k.y + k.radius); ++y)
            for (int x = std::max(0, k.x - k.radius); x <= std::min(kWidth - 1, k.x + k.radius); ++x) {
                int dx = x - k.x, dy = y - k.y;
                if (dx * dx + dy * dy > k.radius * k.radius) continue;
                uchar* p = &rgb[3 * ((size_t)y * kWidth + x)];
                for (int c = 0; c < 3; ++c) p[c] = (uchar)std::min(255, p[c] + lift);
            }
        specks.push_back(k);
    }
    return rgb;
}

int main()
{
    std::vector<Speck> specks;
    std::vector<uchar> frame = make_frame(specks);
    const size_t pixels = (size_t)kWidth * kHeight;

    uchar *d_rgb, *d_luma, *d_smooth, *d_eroded, *d_opened, *d_response;
    unsigned* d_histogram;
    CUDA_CHECK(cudaMalloc(&d_rgb, 3 * pixels));
    CUDA_CHECK(cudaMalloc(&d_luma, pixels));
    CUDA_CHECK(cudaMalloc(&d_smooth, pixels));
    CUDA_CHECK(cudaMalloc(&d_eroded, pixels));
    CUDA_CHECK(cudaMalloc(&d_opened, pixels));
    CUDA_CHECK(cudaMalloc(&d_response, pixels));
    CUDA_CHECK(cudaMalloc(&d_histogram, 256 * sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpy(d_rgb, frame.data(), 3 * pixels, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_histogram, 0, 256 * sizeof(unsigned)));

    dim3 block(16, 16);
    dim3 grid((kWidth + 15) / 16, (kHeight + 15) / 16);
    luminance<<<grid, block>>>(d_rgb, d_luma, kWidth, kHeight);
    median_filter<2><<<grid, block>>>(d_luma, d_smooth, kWidth, kHeight);
    morphology<true><<<grid, block>>>(d_smooth, d_eroded, kWidth, kHeight, kRadius);
    morphology<false><<<grid, block>>>(d_eroded, d_opened, kWidth, kHeight, kRadius);
    top_hat<<<grid, block>>>(d_smooth, d_opened, d_response, d_histogram, kWidth, kHeight);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    const size_t pitch = kWidth;
    std::vector<uchar> smooth(pitch * kHeight), response(pitch * kHeight);
    std::vector<unsigned> histogram(256);
    CUDA_CHECK(cudaMemcpy(smooth.data(), d_smooth, smooth.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(response.data(), d_response, response.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(histogram.data(), d_histogram, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));

    double smooth_sum = 0.0, response_sum = 0.0;
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) smooth_sum += smooth[y * pitch + x];
    size_t dust = 0, seen = 0;
    int percentile = -1;
    for (int level = 0; level < 256; ++level) {
        response_sum += (double)level * histogram[level];
        if (level > kSpeckLevel) dust += histogram[level];
        seen += histogram[level];
        if (percentile < 0 && seen >= pixels / 100 * 98) percentile = level;
    }
    std::printf("mean smoothed level   %.6g\n", smooth_sum / pixels);
    std::printf("mean top-hat          %.6g\n", response_sum / pixels);
    std::printf("dust pixels           %zu\n", dust);
    std::printf("98th percentile       %d\n", percentile);
    for (int s : {3, 500, 8000})
        std::printf("speck %-5d            %d %d\n", s, smooth[specks[s].y * pitch + specks[s].x],
                    response[specks[s].y * pitch + specks[s].x]);

    CUDA_CHECK(cudaFree(d_rgb));
    CUDA_CHECK(cudaFree(d_luma));
    CUDA_CHECK(cudaFree(d_smooth));
    CUDA_CHECK(cudaFree(d_eroded));
    CUDA_CHECK(cudaFree(d_opened));
    CUDA_CHECK(cudaFree(d_response));
    CUDA_CHECK(cudaFree(d_histogram));
    return 0;
}
