// Best-available-pixel composite of a satellite image time series.
// Per date: digital numbers to reflectance, quality score (NDVI minus penalties,
// clouds excluded), keep the best pixel. Gaps in the NDVI map are filled at the end.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

namespace scene {

constexpr int kWidth = 1000, kHeight = 1000, kPixels = kWidth * kHeight;
constexpr int kDates = 24;
constexpr float kUnusable = -1000.0f;   // score of a cloudy or missing pixel
enum Band { BLUE = 0, RED = 1, NIR = 2, kBands = 3 };
enum QaBits : uint8_t { QA_FILL = 1, QA_CLOUD = 2, QA_SHADOW = 4 };

struct Acquisition {
    float gain[kBands];     // includes the sun elevation correction
    float offset[kBands];
    float penalty;          // distance from the target day
    int dayOfYear;
};

struct Composite {
    float *refl, *score;    // refl: [band][pixel]
    int* date;              // -1 while there is no valid observation
};

}  // namespace scene
using namespace scene;
#define CHECK(call)                                                              \
    if (cudaError_t err = (call)) {                                              \
        fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(err));     \
        exit(EXIT_FAILURE);                                                      \
    }

__device__ float ndviOf(float red, float nir) { return (nir - red) / (nir + red + 1e-6f); }

__global__ void toReflectance(const uint16_t* dn, float* refl, Acquisition acq)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y, b = blockIdx.z;
    if (x >= kWidth || y >= kHeight) return;
    int i = b * kPixels + y * kWidth + x;
    refl[i] = fmaf(acq.gain[b], (float)dn[i], acq.offset[b]);
}

__global__ void scorePixels(const float* refl, const uint8_t* qa, float* score, float penalty)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kPixels) return;
    score[i] = kUnusable;
    if (qa[i] & (QA_FILL | QA_CLOUD)) return;
    float s = ndviOf(refl[RED * kPixels + i], refl[NIR * kPixels + i]) - penalty;
    s = fmaf(-0.5f, refl[BLUE * kPixels + i], s);   // haze shows up in the blue band
    if (qa[i] & QA_SHADOW) s -= 0.3f;
    score[i] = s;
}

__global__ void keepBest(const float* refl, const float* score, int date, Composite comp)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kPixels) return;
    if (score[i] == kUnusable || (comp.date[i] >= 0 && score[i] <= comp.score[i])) return;
    comp.score[i] = score[i];
    comp.date[i] = date;
    for (int b = 0; b < kBands; ++b) comp.refl[b * kPixels + i] = refl[b * kPixels + i];
}

__global__ void countDates(const int* date, unsigned int* histogram)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kPixels) atomicAdd(&histogram[date[i] + 1], 1u);   // bin 0: no observation
}

__global__ void ndviMap(Composite comp, float* ndvi)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= kWidth || y >= kHeight) return;

    int i = y * kWidth + x;
    if (comp.date[i] >= 0) {
        ndvi[i] = ndviOf(comp.refl[RED * kPixels + i], comp.refl[NIR * kPixels + i]);
        return;
    }
    float sum = 0.0f, n = 0.0f;
    for (int yy = max(y - 1, 0); yy <= min(y + 1, kHeight - 1); ++yy)
        for (int xx = max(x - 1, 0); xx <= min(x + 1, kWidth - 1); ++xx) {
            int j = yy * kWidth + xx;
            if (comp.date[j] < 0) continue;
            sum += ndviOf(comp.refl[RED * kPixels + j], comp.refl[NIR * kPixels + j]);
            n += 1.0f;
        }
    ndvi[i] = n >= 3.0f ? sum / n : -1.0f;
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
        uint16_t *blue = &dn[(size_t)d * kBands * kPixels], *red = blue + kPixels, *nir = red + kPixels;
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

    uint16_t* dDn;
    uint8_t* dQa;
    float *dRefl, *dScore, *dNdvi;
    unsigned int* dHist;
    Composite comp;
    CHECK(cudaMalloc(&dDn, dn.size() * sizeof(uint16_t)));
    CHECK(cudaMalloc(&dQa, qa.size()));
    CHECK(cudaMalloc(&dRefl, kBands * kPixels * sizeof(float)));
    CHECK(cudaMalloc(&dScore, kPixels * sizeof(float)));
    CHECK(cudaMalloc(&dNdvi, kPixels * sizeof(float)));
    CHECK(cudaMalloc(&dHist, (kDates + 1) * sizeof(unsigned int)));
    CHECK(cudaMalloc(&comp.refl, kBands * kPixels * sizeof(float)));
    CHECK(cudaMalloc(&comp.score, kPixels * sizeof(float)));
    CHECK(cudaMalloc(&comp.date, kPixels * sizeof(int)));
    CHECK(cudaMemcpy(dDn, dn.data(), dn.size() * sizeof(uint16_t), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dQa, qa.data(), qa.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dHist, 0, (kDates + 1) * sizeof(unsigned int)));
    const int threads = 256, blocks = (kPixels + threads - 1) / threads;
    const dim3 tile(32, 8), tiles((kWidth + 31) / 32, (kHeight + 7) / 8);
    CHECK(cudaMemset(comp.date, 0xff, kPixels * sizeof(int)));   // -1 everywhere
    CHECK(cudaMemset(comp.refl, 0, kBands * kPixels * sizeof(float)));
    for (int d = 0; d < kDates; ++d) {
        toReflectance<<<dim3(tiles.x, tiles.y, kBands), tile>>>(dDn + (size_t)d * kBands * kPixels, dRefl, series[d]);
        scorePixels<<<blocks, threads>>>(dRefl, dQa + (size_t)d * kPixels, dScore, series[d].penalty);
        keepBest<<<blocks, threads>>>(dRefl, dScore, d, comp);
    }
    countDates<<<blocks, threads>>>(comp.date, dHist);
    ndviMap<<<tiles, tile>>>(comp, dNdvi);
    CHECK(cudaGetLastError());

    std::vector<float> refl(kBands * kPixels), ndvi(kPixels);
    std::vector<unsigned int> hist(kDates + 1);
    CHECK(cudaMemcpy(refl.data(), comp.refl, refl.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(ndvi.data(), dNdvi, ndvi.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hist.data(), dHist, hist.size() * sizeof(unsigned int), cudaMemcpyDeviceToHost));

    double sums[kBands] = {}, ndviSum = 0, daySum = 0;
    int gaps = 0;
    for (int b = 0; b < kBands; ++b)
        for (int i = 0; i < kPixels; ++i) sums[b] += refl[b * kPixels + i];
    for (float v : ndvi) v > -1.0f ? ndviSum += v : ++gaps;
    for (int d = 0; d < kDates; ++d) daySum += (double)hist[d + 1] * series[d].dayOfYear;
    printf("no observation: %u pixels, still empty after filling: %d\n", hist[0], gaps);
    printf("mean day of year %.5g\n", daySum / (kPixels - hist[0]));
    printf("band sums %.6g %.6g %.6g\n", sums[BLUE], sums[RED], sums[NIR]);
    printf("mean ndvi %.5g\n", ndviSum / (kPixels - gaps));
    printf("pixels from date 6, 12, 18: %u %u %u\n", hist[7], hist[13], hist[19]);
    printf("ndvi at (100,100) %.5g, (800,700) %.5g\n", ndvi[100 * kWidth + 100], ndvi[700 * kWidth + 800]);

    cudaFree(dDn); cudaFree(dQa); cudaFree(dRefl); cudaFree(dScore); cudaFree(dNdvi);
    cudaFree(dHist); cudaFree(comp.refl); cudaFree(comp.score); cudaFree(comp.date);
    return 0;
}
