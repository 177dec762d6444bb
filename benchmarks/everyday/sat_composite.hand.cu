// Best-available-pixel composite of a satellite image time series.
// Tuned version: one pass over the whole series with the best pixel kept in
// registers (vector loads, parameters in constant memory, shared histogram),
// then a small kernel that fills the gaps of the NDVI map.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

namespace scene {

constexpr int kWidth = 1000;
constexpr int kHeight = 1000;
constexpr int kPixels = kWidth * kHeight;
constexpr int kDates = 24;
enum Band { BLUE = 0, RED = 1, NIR = 2, kBands = 3 };
enum QaBits : uint8_t { QA_FILL = 1, QA_CLOUD = 2, QA_SHADOW = 4 };

struct Acquisition {
    float gain[kBands];     // includes the sun elevation correction
    float offset[kBands];
    float penalty;          // distance from the target day
    int dayOfYear;
};

constexpr float kNoNdvi = -9.0f;   // marks a pixel without observation

}  // namespace scene

using namespace scene;

#define CHECK(call)                                                              \
    if (cudaError_t err = (call)) {                                              \
        fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(err));     \
        exit(EXIT_FAILURE);                                                      \
    }

__device__ float ndviOf(float red, float nir) { return (nir - red) / (nir + red + 1e-6f); }

__constant__ Acquisition cSeries[kDates];

struct BestPixel {
    float score, blue, red, nir;
    int date;
};

__device__ __forceinline__ void consider(BestPixel& best, int date, unsigned qa,
                                         unsigned blueDn, unsigned redDn, unsigned nirDn)
{
    const Acquisition& a = cSeries[date];
    const float blue = fmaf(a.gain[BLUE], (float)blueDn, a.offset[BLUE]);
    const float red = fmaf(a.gain[RED], (float)redDn, a.offset[RED]);
    const float nir = fmaf(a.gain[NIR], (float)nirDn, a.offset[NIR]);
    float s = ndviOf(red, nir) - a.penalty;
    s = fmaf(-0.5f, blue, s);
    if (qa & QA_SHADOW) s -= 0.3f;
    if (!(qa & (QA_FILL | QA_CLOUD)) && s > best.score) {
        best.score = s;
        best.blue = blue;
        best.red = red;
        best.nir = nir;
        best.date = date;
    }
}

// The whole season for four neighbouring pixels per thread; the running best
// stays in registers and each input value is read exactly once.
__global__ void __launch_bounds__(128)
compositeSeason(const ushort4* __restrict__ dn, const uchar4* __restrict__ qa,
                float4* __restrict__ refl, float4* __restrict__ ndvi,
                unsigned int* __restrict__ histogram)
{
    constexpr int kQuads = kPixels / 4;
    __shared__ unsigned int hist[kDates + 1];
    if (threadIdx.x <= kDates) hist[threadIdx.x] = 0;
    __syncthreads();

    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kQuads) {
        BestPixel b0 = {-100.0f, 0.0f, 0.0f, 0.0f, -1}, b1 = b0, b2 = b0, b3 = b0;
#pragma unroll 4
        for (int d = 0; d < kDates; ++d) {
            const ushort4* p = dn + (size_t)d * kBands * kQuads + i;
            const uchar4 q = __ldcs(qa + (size_t)d * kQuads + i);
            const ushort4 bl = __ldcs(p), re = __ldcs(p + kQuads), ni = __ldcs(p + 2 * kQuads);
            consider(b0, d, q.x, bl.x, re.x, ni.x);
            consider(b1, d, q.y, bl.y, re.y, ni.y);
            consider(b2, d, q.z, bl.z, re.z, ni.z);
            consider(b3, d, q.w, bl.w, re.w, ni.w);
        }
        refl[i] = make_float4(b0.blue, b1.blue, b2.blue, b3.blue);
        refl[kQuads + i] = make_float4(b0.red, b1.red, b2.red, b3.red);
        refl[2 * kQuads + i] = make_float4(b0.nir, b1.nir, b2.nir, b3.nir);
        ndvi[i] = make_float4(b0.date < 0 ? kNoNdvi : ndviOf(b0.red, b0.nir),
                              b1.date < 0 ? kNoNdvi : ndviOf(b1.red, b1.nir),
                              b2.date < 0 ? kNoNdvi : ndviOf(b2.red, b2.nir),
                              b3.date < 0 ? kNoNdvi : ndviOf(b3.red, b3.nir));
        atomicAdd(&hist[b0.date + 1], 1u);
        atomicAdd(&hist[b1.date + 1], 1u);
        atomicAdd(&hist[b2.date + 1], 1u);
        atomicAdd(&hist[b3.date + 1], 1u);
    }
    __syncthreads();
    if (threadIdx.x <= kDates && hist[threadIdx.x]) atomicAdd(&histogram[threadIdx.x], hist[threadIdx.x]);
}

__global__ void fillGaps(const float* __restrict__ ndvi, float* __restrict__ filled)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= kWidth || y >= kHeight) return;
    const int i = y * kWidth + x;
    float v = ndvi[i];
    if (v == kNoNdvi) {
        float sum = 0.0f;
        int n = 0;
        for (int yy = max(y - 1, 0); yy <= min(y + 1, kHeight - 1); ++yy)
            for (int xx = max(x - 1, 0); xx <= min(x + 1, kWidth - 1); ++xx) {
                const float u = ndvi[yy * kWidth + xx];
                if (u == kNoNdvi) continue;
                sum += u;
                ++n;
            }
        v = n >= 3 ? sum / n : -1.0f;
    }
    filled[i] = v;
}

static uint32_t hash32(uint32_t v)
{
    v *= 2654435761u;
    v = (v ^ (v >> 15)) * 0x846ca68bu;
    return v ^ (v >> 13);
}

static void makeSeries(std::vector<uint16_t>& dn, std::vector<uint8_t>& qa)
{
    for (int d = 0; d < kDates; ++d) {
        uint16_t* blue = &dn[(size_t)d * kBands * kPixels];
        uint16_t *red = blue + kPixels, *nir = red + kPixels;
        uint8_t* q = &qa[(size_t)d * kPixels];
        int season = 12 - abs(d - 12);
        for (int y = 0; y < kHeight; ++y)
            for (int x = 0; x < kWidth; ++x) {
                int i = y * kWidth + x;
                uint32_t h = hash32((uint32_t)(i * kDates + d));
                int veg = ((x >> 3) * 5 + (y >> 2) * 3) & 127;
                blue[i] = (uint16_t)(320 + (h & 63));
                red[i] = (uint16_t)(1300 - veg * 5 - season * 10 + ((h >> 6) & 127));
                nir[i] = (uint16_t)(1500 + veg * 12 + season * 20 + ((h >> 13) & 255));
                bool wet = x > 600 && y > 500;     // this corner is almost always cloudy
                uint32_t c = h >> 24;
                q[i] = c < (wet ? 238u : 90u) ? QA_CLOUD : (c < 245u ? 0 : QA_SHADOW);
            }
        // some dates have missing scan lines
        for (int y = 7 * d; d % 5 == 3 && y + 2 <= kHeight; y += 25)
            std::fill(q + y * kWidth, q + (y + 2) * kWidth, (uint8_t)QA_FILL);
    }
}

int main()
{
    std::vector<Acquisition> series(kDates);
    for (int d = 0; d < kDates; ++d) {
        Acquisition& a = series[d];
        a.dayOfYear = 5 + 15 * d + (int)(hash32(d) % 5);
        float sun = 0.35f + 0.55f * sinf(3.14159265f * a.dayOfYear / 365.0f);
        for (int b = 0; b < kBands; ++b) {
            a.gain[b] = (1.0e-4f + 2.0e-6f * b) * 0.8f / sun;
            a.offset[b] = (0.004f - 0.001f * b) / sun;
        }
        a.penalty = 0.0004f * abs(a.dayOfYear - 200);
    }
    std::vector<uint16_t> dn((size_t)kDates * kBands * kPixels);
    std::vector<uint8_t> qa((size_t)kDates * kPixels);
    makeSeries(dn, qa);

    uint16_t* dDn; uint8_t* dQa;
    float *dRefl, *dNdvi, *dFilled;
    unsigned int* dHist;
    CHECK(cudaMalloc(&dDn, dn.size() * sizeof(uint16_t)));
    CHECK(cudaMalloc(&dQa, qa.size()));
    CHECK(cudaMalloc(&dRefl, kBands * kPixels * sizeof(float)));
    CHECK(cudaMalloc(&dNdvi, kPixels * sizeof(float)));
    CHECK(cudaMalloc(&dFilled, kPixels * sizeof(float)));
    CHECK(cudaMalloc(&dHist, (kDates + 1) * sizeof(unsigned int)));
    CHECK(cudaMemcpy(dDn, dn.data(), dn.size() * sizeof(uint16_t), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dQa, qa.data(), qa.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dHist, 0, (kDates + 1) * sizeof(unsigned int)));
    CHECK(cudaMemcpyToSymbol(cSeries, series.data(), kDates * sizeof(Acquisition)));

    static_assert(kPixels % 4 == 0, "four pixels per thread");
    compositeSeason<<<(kPixels / 4 + 127) / 128, 128>>>(
        reinterpret_cast<const ushort4*>(dDn), reinterpret_cast<const uchar4*>(dQa),
        reinterpret_cast<float4*>(dRefl), reinterpret_cast<float4*>(dNdvi), dHist);
    fillGaps<<<dim3((kWidth + 31) / 32, (kHeight + 7) / 8), dim3(32, 8)>>>(dNdvi, dFilled);
    CHECK(cudaGetLastError());

    std::vector<float> refl(kBands * kPixels), ndvi(kPixels);
    std::vector<unsigned int> hist(kDates + 1);
    CHECK(cudaMemcpy(refl.data(), dRefl, refl.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(ndvi.data(), dFilled, ndvi.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hist.data(), dHist, hist.size() * sizeof(unsigned int), cudaMemcpyDeviceToHost));

    double sums[kBands] = {}, ndviSum = 0, daySum = 0;
    int gaps = 0;
    for (int b = 0; b < kBands; ++b)
        for (int i = 0; i < kPixels; ++i) sums[b] += refl[b * kPixels + i];
    for (float v : ndvi)
        if (v > -1.0f) ndviSum += v;
        else ++gaps;
    for (int d = 0; d < kDates; ++d) daySum += (double)hist[d + 1] * series[d].dayOfYear;
    printf("no observation: %u pixels, still empty after filling: %d\n", hist[0], gaps);
    printf("mean day of year %.5g\n", daySum / (kPixels - hist[0]));
    printf("band sums %.6g %.6g %.6g\n", sums[BLUE], sums[RED], sums[NIR]);
    printf("mean ndvi %.5g\n", ndviSum / (kPixels - gaps));
    printf("pixels from date 6, 12, 18: %u %u %u\n", hist[7], hist[13], hist[19]);
    printf("ndvi at (100,100) %.5g, (800,700) %.5g\n", ndvi[100 * kWidth + 100], ndvi[700 * kWidth + 800]);

    cudaFree(dDn); cudaFree(dQa); cudaFree(dRefl);
    cudaFree(dNdvi); cudaFree(dFilled); cudaFree(dHist);
    return 0;
}
