// Forward pass of the spatial half of a ConvNeXt-V2 style block on NCHW activations:
//     y = GELU(LayerNorm over channels(depthwise 7x7 convolution(x)))
//     out = x + gamma * (y * N(y)) + beta + y,  N(y) = |y|_2(n, c) / mean over c   (global response normalization)
// Hand-tuned version.
//
// The first kernel fuses convolution, layer norm, GELU and the sums of squares: a block owns four full rows of
// an image with ALL channels in shared memory.  A warp convolves two channels at a time from a private,
// zero-padded staging buffer (filled by asynchronous copies); every lane computes 4 x 4 outputs from registers.
// The second kernel applies the response, latest images first because they are still in the L2 cache.
// Device memory: about 202 MB.  Estimated kernel time on an H200: about 0.13 ms in total (2 launches).
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void gpuAssert(cudaError_t code, const char* expression) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "%s -> %s\n", expression, cudaGetErrorString(code));
    std::exit(1);
}
#define GPU(x) gpuAssert((x), #x)

constexpr int kBatch = 56, kChannels = 96, kHeight = 56, kWidth = 56;
constexpr int kKernel = 7;
constexpr float kEps = 1e-6f;

struct Shape {
    int n, c, h, w;
    __host__ __device__ size_t size() const { return (size_t)n * c * h * w; }
    __host__ __device__ size_t at(int in, int ic, int ih, int iw) const {
        return (((size_t)in * c + ic) * h + ih) * w + iw;
    }
};

constexpr unsigned kFull = 0xffffffffu;
constexpr int kPlane = kHeight * kWidth;
constexpr int kTileRows = 4;
constexpr int kTilePixels = kTileRows * kWidth;
constexpr int kTilesPerImage = kHeight / kTileRows;
constexpr int kQuads = kWidth / 4;                   // float4 per row
constexpr int kActive = 2 * kQuads;                  // lanes that work: two channels, one float4 column each
constexpr int kHalo = kKernel / 2;
constexpr int kStageRows = kTileRows + kKernel - 1;
constexpr int kPitch = kWidth + 4;                   // the pad left of a row is also the pad right of the last one
constexpr int kStage = kStageRows * kPitch + 4;      // floats per staged channel
constexpr int kWarps = 6;
constexpr int kThreads = kWarps * 32;
constexpr int kPairsPerWarp = kChannels / (2 * kWarps);
constexpr int kParts = 3;                            // layer norm sums are split over the channels
constexpr int kSharedFloats = kChannels * kTilePixels + kWarps * 2 * kStage;
static_assert(kKernel == 7 && kHalo <= 4, "the register window of the convolution is 12 wide");
static_assert(kHeight % kTileRows == 0 && kWidth % 4 == 0 && kActive <= 32, "tiling");
static_assert(kChannels % (2 * kWarps) == 0 && kChannels % kParts == 0, "channel split");
static_assert(kTilePixels / 4 == 2 * kActive && kParts * kTilePixels / 4 <= kThreads, "layer norm mapping");
static_assert(2 * kParts * kTilePixels <= kWarps * 2 * kStage, "sums reuse the staging buffers");
static_assert(kStage % 4 == 0 && kPitch % 4 == 0 && kPlane % 4 == 0, "float4 alignment");

// x * Phi(x), with erfc by Abramowitz & Stegun 7.1.26 (absolute error below 2e-7).
__device__ __forceinline__ float geluFast(float x) {
    float z = fabsf(x) * 0.70710678f;
    float t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
    float p = fmaf(t, 1.061405429f, -1.453152027f);
    p = fmaf(t, p, 1.421413741f);
    p = fmaf(t, p, -0.284496736f);
    p = fmaf(t, p, 0.254829592f);
    float tail = 0.5f * t * p * __expf(-z * z);
    return x * (x >= 0.0f ? 1.0f - tail : tail);
}

__device__ __forceinline__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }

// Starts the copy of the rows around the tile of one channel per half warp.
__device__ __forceinline__ void stageRows(float* stage, const float* plane, int firstRow, int quad) {
#pragma unroll
    for (int r = 0; r < kStageRows; r++) {
        int row = firstRow + r;
        bool inside = row >= 0 && row < kHeight;
        const float* src = plane + (inside ? row : 0) * kWidth + 4 * quad;
        __pipeline_memcpy_async(stage + r * kPitch + 4 + 4 * quad, src, 16, inside ? 0 : 16);
    }
}

__global__ void __launch_bounds__(kThreads, 2)
convNormGelu(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
             const float* __restrict__ scale, const float* __restrict__ shift, float* __restrict__ y,
             float* __restrict__ sumSquares) {
    extern __shared__ __align__(16) float smem[];
    float* tile = smem;                                  // [channel][tile pixel]
    float* staging = smem + kChannels * kTilePixels;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int image = blockIdx.x / kTilesPerImage;
    const int row0 = blockIdx.x % kTilesPerImage * kTileRows;
    const float* imageIn = x + (size_t)image * kChannels * kPlane;

    // Depthwise convolution.
    {
        const int half = lane / kQuads;  // 0 or 1: which channel of the pair (2: idle)
        const int quad = lane % kQuads;
        const bool active = lane < kActive;
        float* stagePair = staging + warp * 2 * kStage;
        for (int i = lane; i < 2 * (kStageRows + 1) * 4; i += 32) {
            int channel = i / ((kStageRows + 1) * 4), k = i % ((kStageRows + 1) * 4);
            stagePair[channel * kStage + k / 4 * kPitch + k % 4] = 0.0f;
        }
        float* stage = stagePair + (active ? half : 0) * kStage;
        int channel = 2 * warp + (active ? half : 0);
        if (active) stageRows(stage, imageIn + (size_t)channel * kPlane, row0 - kHalo, quad);
        __pipeline_commit();

        for (int pair = 0; pair < kPairsPerWarp; pair++) {
            float w[kKernel * kKernel];
            float acc[kTileRows][4];
            const float b = __ldg(bias + channel);
#pragma unroll
            for (int k = 0; k < kKernel * kKernel; k++) w[k] = __ldg(weight + channel * kKernel * kKernel + k);
#pragma unroll
            for (int o = 0; o < kTileRows; o++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[o][j] = b;

            __pipeline_wait_prior(0);
            __syncwarp();
            if (active) {
#pragma unroll
                for (int r = 0; r < kStageRows; r++) {
                    const float* p = stage + r * kPitch + 4 * quad;
                    float4 v0 = load4(p), v1 = load4(p + 4), v2 = load4(p + 8);
                    const float in[12] = {v0.x, v0.y, v0.z, v0.w, v1.x, v1.y, v1.z, v1.w, v2.x, v2.y, v2.z, v2.w};
#pragma unroll
                    for (int o = 0; o < kTileRows; o++) {
                        const int ky = r - o;
                        if (ky < 0 || ky >= kKernel) continue;
#pragma unroll
                        for (int kx = 0; kx < kKernel; kx++)
#pragma unroll
                            for (int j = 0; j < 4; j++)
                                acc[o][j] = fmaf(w[ky * kKernel + kx], in[4 - kHalo + j + kx], acc[o][j]);
                    }
                }
            }
            __syncwarp();
            const int current = channel;
            channel += 2 * kWarps;
            if (active && pair + 1 < kPairsPerWarp)
                stageRows(stage, imageIn + (size_t)channel * kPlane, row0 - kHalo, quad);
            __pipeline_commit();
            if (pair + 1 >= kPairsPerWarp) channel = current;
            if (active) {
#pragma unroll
                for (int o = 0; o < kTileRows; o++)
                    *reinterpret_cast<float4*>(tile + current * kTilePixels + o * kWidth + 4 * quad) =
                        make_float4(acc[o][0], acc[o][1], acc[o][2], acc[o][3]);
            }
        }
    }
    __syncthreads();

    // Layer norm: sums over a third of the channels for four pixels per thread, kept in the staging memory.
    constexpr int groups = kTilePixels / 4;
    float* sums = staging;                               // [part][tile pixel]
    float* squares = staging + kParts * kTilePixels;     // [part][tile pixel]
    if (threadIdx.x < kParts * groups) {
        const int part = threadIdx.x / groups, pixel = threadIdx.x % groups * 4;
        float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f), q = s;
        const float* p = tile + part * (kChannels / kParts) * kTilePixels + pixel;
#pragma unroll 8
        for (int c = 0; c < kChannels / kParts; c++) {
            float4 v = load4(p + c * kTilePixels);
            s.x += v.x;
            s.y += v.y;
            s.z += v.z;
            s.w += v.w;
            q.x = fmaf(v.x, v.x, q.x);
            q.y = fmaf(v.y, v.y, q.y);
            q.z = fmaf(v.z, v.z, q.z);
            q.w = fmaf(v.w, v.w, q.w);
        }
        *reinterpret_cast<float4*>(sums + part * kTilePixels + pixel) = s;
        *reinterpret_cast<float4*>(squares + part * kTilePixels + pixel) = q;
    }
    __syncthreads();

    // Every lane normalizes the same eight pixels for all channels of its warp.
    const bool active = lane < kActive;
    float factor[8], offset[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int pixel = active ? 4 * (lane + k / 4 * kActive) + k % 4 : 0;
        float s = 0.0f, q = 0.0f;
#pragma unroll
        for (int part = 0; part < kParts; part++) {
            s += sums[part * kTilePixels + pixel];
            q += squares[part * kTilePixels + pixel];
        }
        float mean = s * (1.0f / kChannels);
        float variance = fmaxf(q * (1.0f / kChannels) - mean * mean, 0.0f);
        factor[k] = rsqrtf(variance + kEps);
        offset[k] = -mean * factor[k];
    }
    float* imageOut = y + (size_t)image * kChannels * kPlane + row0 * kWidth;
    for (int c = warp; c < kChannels; c += kWarps) {
        float sum = 0.0f;
        if (active) {
            const float a = __ldg(scale + c), b = __ldg(shift + c);
#pragma unroll
            for (int g = 0; g < 2; g++) {
                const int pixel = 4 * (lane + g * kActive);
                float4 v = load4(tile + c * kTilePixels + pixel);
                v.x = geluFast(fmaf(fmaf(v.x, factor[4 * g], offset[4 * g]), a, b));
                v.y = geluFast(fmaf(fmaf(v.y, factor[4 * g + 1], offset[4 * g + 1]), a, b));
                v.z = geluFast(fmaf(fmaf(v.z, factor[4 * g + 2], offset[4 * g + 2]), a, b));
                v.w = geluFast(fmaf(fmaf(v.w, factor[4 * g + 3], offset[4 * g + 3]), a, b));
                sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
                *reinterpret_cast<float4*>(imageOut + (size_t)c * kPlane + pixel) = v;
            }
        }
#pragma unroll
        for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(kFull, sum, bit);
        if (lane == 0) atomicAdd(sumSquares + image * kChannels + c, sum);
    }
}

constexpr int kApplyThreads = 416;  // two float4 per thread cover a plane of 784 with little waste

// One block per (image, channel); every warp forms the mean norm of the image for itself.
__global__ void __launch_bounds__(kApplyThreads)
applyResponse(const float4* __restrict__ x, const float4* __restrict__ y, const float* __restrict__ sumSquares,
              const float* __restrict__ gamma, const float* __restrict__ beta, float4* __restrict__ out) {
    const int plane = gridDim.x - 1 - blockIdx.x;
    const int image = plane / kChannels, c = plane % kChannels;
    const int lane = threadIdx.x & 31;
    const size_t base = (size_t)plane * (kPlane / 4);
    constexpr int perThread = (kPlane / 4 + kApplyThreads - 1) / kApplyThreads;
    float4 vx[perThread], vy[perThread];
#pragma unroll
    for (int k = 0; k < perThread; k++) {
        int i = threadIdx.x + k * kApplyThreads;
        if (i < kPlane / 4) {
            vx[k] = __ldcs(x + base + i);
            vy[k] = __ldcs(y + base + i);
        }
    }
    float total = 0.0f;
    for (int k = lane; k < kChannels; k += 32) total += sqrtf(__ldg(sumSquares + image * kChannels + k));
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) total += __shfl_xor_sync(kFull, total, bit);
    const float response = sqrtf(__ldg(sumSquares + plane)) / (total * (1.0f / kChannels) + kEps);
    const float a = fmaf(__ldg(gamma + c), response, 1.0f), b = __ldg(beta + c);
#pragma unroll
    for (int k = 0; k < perThread; k++) {
        int i = threadIdx.x + k * kApplyThreads;
        if (i < kPlane / 4)
            __stcs(out + base + i, make_float4(fmaf(vy[k].x, a, vx[k].x + b), fmaf(vy[k].y, a, vx[k].y + b),
                                               fmaf(vy[k].z, a, vx[k].z + b), fmaf(vy[k].w, a, vx[k].w + b)));
    }
}

static uint32_t rngState = 2463534242u;
static float rng() {  // uniform in [-1, 1)
    rngState ^= rngState << 13;
    rngState ^= rngState >> 17;
    rngState ^= rngState << 5;
    return (int32_t)rngState * (1.0f / 2147483648.0f);
}

template <typename Generator>
static float* upload(size_t n, std::vector<float>& host, Generator generate) {
    host.resize(n);
    for (auto& v : host) v = generate();
    float* device;
    GPU(cudaMalloc(&device, n * sizeof(float)));
    GPU(cudaMemcpy(device, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    return device;
}

static float* allocate(size_t n) {
    float* device;
    GPU(cudaMalloc(&device, n * sizeof(float)));
    return device;
}

int main() {
    Shape shape{kBatch, kChannels, kHeight, kWidth};
    const size_t n = shape.size();
    std::vector<float> hx, scratch;
    float drift = 0.0f;
    float* x = upload(n, hx, [&] { return drift = 0.7f * drift + 0.6f * rng(); });
    float* weight = upload(kChannels * kKernel * kKernel, scratch, [] { return 0.15f * rng() + 0.02f; });
    float* bias = upload(kChannels, scratch, [] { return 0.3f * rng(); });
    float* scale = upload(kChannels, scratch, [] { return 1.0f + 0.3f * rng(); });
    float* shift = upload(kChannels, scratch, [] { return 0.2f * rng(); });
    float* gamma = upload(kChannels, scratch, [] { return 0.5f * rng(); });
    float* beta = upload(kChannels, scratch, [] { return 0.1f * rng(); });
    float* y = allocate(n);
    float* sumSquares = allocate(kBatch * kChannels);
    float* out = allocate(n);

    const int sharedBytes = kSharedFloats * (int)sizeof(float);
    GPU(cudaFuncSetAttribute(convNormGelu, cudaFuncAttributeMaxDynamicSharedMemorySize, sharedBytes));
    GPU(cudaFuncSetAttribute(convNormGelu, cudaFuncAttributePreferredSharedMemoryCarveout,
                             (int)cudaSharedmemCarveoutMaxShared));
    GPU(cudaMemset(sumSquares, 0, kBatch * kChannels * sizeof(float)));
    convNormGelu<<<kBatch * kTilesPerImage, kThreads, sharedBytes>>>(x, weight, bias, scale, shift, y, sumSquares);
    applyResponse<<<kBatch * kChannels, kApplyThreads>>>((const float4*)x, (const float4*)y, sumSquares, gamma, beta,
                                                         (float4*)out);
    GPU(cudaGetLastError());
    GPU(cudaDeviceSynchronize());

    std::vector<float> result(n);
    GPU(cudaMemcpy(result.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0.0, squares = 0.0, change = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += result[i];
        squares += (double)result[i] * result[i];
        change += std::fabs((double)result[i] - hx[i]);
    }
    std::printf("mean             %.6g\n", sum / n);
    std::printf("rms              %.6g\n", std::sqrt(squares / n));
    std::printf("mean |out - x|   %.6g\n", change / n);
    std::printf("corner           %.6g\n", result[shape.at(0, 0, 0, 0)]);
    std::printf("edge             %.6g\n", result[shape.at(kBatch / 2, 41, 55, 30)]);
    std::printf("middle           %.6g\n", result[shape.at(kBatch - 1, 90, 28, 30)]);
    for (float* p : {x, weight, bias, scale, shift, gamma, beta, y, sumSquares, out}) GPU(cudaFree(p));
    return 0;
}
