// Plane-wave ultrasound imaging: delay-and-sum beamforming of baseband (IQ) channel data with
// coherent compounding over several steering angles.  Hand-tuned version.
//
// One fused kernel: the receive geometry (square root, apodization, phase rotation) is computed once per
// (pixel, element) and shared by all angles; the transmit rotation is applied once per (pixel, angle) to
// register accumulators; envelope detection is the epilogue.  A warp covers an 8 x 4 patch of pixels so that
// its gathers stay within a few cache lines, and only the elements of the active aperture are visited.
// Device memory: about 26 MB.  Estimated kernel time on an H200: about 0.3 ms.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t err_ = (call);                                                         \
        if (err_ != cudaSuccess) {                                                         \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

constexpr int kAngles = 15;
constexpr float kPi = 3.14159265358979f;

struct Probe {
    int elements;
    int samples;       // IQ samples per element and transmit
    float pitch;       // mm
    float soundSpeed;  // mm/us
    float sampleRate;  // MHz
    float carrier;     // MHz
    float fNumber;
};

struct ImageGrid {
    int nx, nz;
    float x0, z0;  // mm
    float dx, dz;  // mm
};

__host__ __device__ inline float elementPosition(const Probe& p, int e) {
    return (e - 0.5f * (p.elements - 1)) * p.pitch;
}

struct Steering {
    float cosA[kAngles];
    float sinA[kAngles];
};

constexpr int kTileX = 16, kTileZ = 8;  // pixels per block: 2 x 2 warps of 8 x 4 pixels
constexpr float kMagic = 12582912.0f;   // 1.5 * 2^23: adding it rounds to the nearest integer
constexpr unsigned kMagicBits = 0x4B400000u;

__device__ __forceinline__ void rotation(float cycles, float* sn, float* cs) {
    __sincosf(2.0f * kPi * (cycles - rintf(cycles)), sn, cs);
}

template <bool Guarded>
__device__ __forceinline__ void accumulateAngles(const float2* __restrict__ iq, unsigned elementOffset,
                                                 unsigned perAngle, unsigned lastSample,
                                                 const float (&tx)[kAngles], float rx, float wr, float wi,
                                                 float2 (&acc)[kAngles]) {
    const float rxHalf = rx - 0.5f;
#pragma unroll
    for (int a = 0; a < kAngles; a++) {
        float h = tx[a] + rxHalf;
        float r = h + kMagic;
        float frac = h - (r - kMagic) + 0.5f;
        unsigned i = __float_as_uint(r) - kMagicBits;
        if (Guarded && i >= lastSample) continue;
        const float2* p = iq + (elementOffset + a * perAngle + i);
        float2 v0 = __ldg(p);
        float2 v1 = __ldg(p + 1);
        float vx = fmaf(frac, v1.x - v0.x, v0.x);
        float vy = fmaf(frac, v1.y - v0.y, v0.y);
        acc[a].x = fmaf(vx, wr, fmaf(-vy, wi, acc[a].x));
        acc[a].y = fmaf(vx, wi, fmaf(vy, wr, acc[a].y));
    }
}

__global__ void __launch_bounds__(128, 4)
beamformCompound(Probe probe, ImageGrid grid, Steering steer, const float2* __restrict__ iq,
                 float* __restrict__ env) {
    const unsigned full = 0xffffffffu;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int ix = blockIdx.x * kTileX + (warp & 1) * 8 + (lane & 7);
    // Deep rows have the largest aperture, hence the most work: start them first.
    int iz = (gridDim.y - 1 - blockIdx.y) * kTileZ + (warp >> 1) * 4 + (lane >> 3);
    bool inside = ix < grid.nx && iz < grid.nz;

    // Threads outside the image follow the pixel at the border (they take part in warp votes).
    float x = grid.x0 + min(ix, grid.nx - 1) * grid.dx;
    float z = grid.z0 + min(iz, grid.nz - 1) * grid.dz;
    float toSamples = probe.sampleRate / probe.soundSpeed;
    float cyclesPerSample = probe.carrier / probe.sampleRate;

    float tx[kAngles];
    float2 acc[kAngles];
    float txMin = 1e30f, txMax = -1e30f;
#pragma unroll
    for (int a = 0; a < kAngles; a++) {
        tx[a] = (z * steer.cosA[a] + x * steer.sinA[a]) * toSamples;
        acc[a] = make_float2(0.0f, 0.0f);
        txMin = fminf(txMin, tx[a]);
        txMax = fmaxf(txMax, tx[a]);
    }

    float halfAperture = z / (2.0f * probe.fNumber);
    float invHalf = 1.0f / halfAperture;
    float center = x / probe.pitch + 0.5f * (probe.elements - 1);
    float reach = halfAperture / probe.pitch;
    int first = max(0, (int)floorf(center - reach));
    int last = min(probe.elements - 1, (int)ceilf(center + reach));
    first = __reduce_min_sync(full, first);
    last = __reduce_max_sync(full, last);

    unsigned perAngle = (unsigned)probe.elements * probe.samples;
    unsigned lastSample = probe.samples - 1;
    float upper = (float)(probe.samples - 2);
    float weightSum = 0.0f;
    for (int e = first; e <= last; e++) {
        float dx = x - elementPosition(probe, e);
        float apod = fabsf(dx) <= halfAperture ? 0.5f + 0.5f * __cosf(kPi * dx * invHalf) : 0.0f;
        weightSum += apod;
        float rx = sqrtf(dx * dx + z * z) * toSamples;
        float sn, cs;
        rotation(rx * cyclesPerSample, &sn, &cs);
        bool safe = txMin + rx >= 1.0f && txMax + rx <= upper;
        unsigned offset = (unsigned)e * probe.samples;
        if (__all_sync(full, safe))
            accumulateAngles<false>(iq, offset, perAngle, lastSample, tx, rx, apod * cs, apod * sn, acc);
        else
            accumulateAngles<true>(iq, offset, perAngle, lastSample, tx, rx, apod * cs, apod * sn, acc);
    }
    if (!inside) return;

    float re = 0.0f, im = 0.0f;
#pragma unroll
    for (int a = 0; a < kAngles; a++) {
        float sn, cs;
        rotation(tx[a] * cyclesPerSample, &sn, &cs);
        re += acc[a].x * cs - acc[a].y * sn;
        im += acc[a].x * sn + acc[a].y * cs;
    }
    float scale = weightSum > 0.0f ? 1.0f / (weightSum * kAngles) : 0.0f;
    env[(size_t)iz * grid.nx + ix] = sqrtf(re * re + im * im) * scale;
}

static uint32_t g_seed = 20231u;
static float uniform01() {
    g_seed = g_seed * 1664525u + 1013904223u;
    return (g_seed >> 8) * (1.0f / 16777216.0f);
}

int main() {
    Probe probe{128, 1600, 0.30f, 1.54f, 20.0f, 5.2f, 1.4f};
    ImageGrid grid{380, 900, -18.95f, 5.0f, 0.1f, 0.05f};
    std::vector<float> angles(kAngles);
    for (int a = 0; a < kAngles; a++) angles[a] = (a - kAngles / 2) * 2.0f * kPi / 180.0f;

    // Point scatterers that sit on pixels of the image, plus background noise.
    const int scatterers = 40;
    std::vector<int> sx(scatterers), sz(scatterers);
    std::vector<float> amp(scatterers);
    for (int k = 0; k < scatterers; k++) {
        sx[k] = 20 + (int)(uniform01() * (grid.nx - 40));
        sz[k] = 20 + (int)(uniform01() * (grid.nz - 40));
        amp[k] = 2.0f + 3.0f * uniform01();
    }
    size_t perAngle = (size_t)probe.elements * probe.samples;
    std::vector<float2> iq(kAngles * perAngle);
    for (auto& v : iq) v = make_float2(0.2f * (uniform01() - 0.5f), 0.2f * (uniform01() - 0.5f));
    for (int a = 0; a < kAngles; a++)
        for (int k = 0; k < scatterers; k++) {
            double px = grid.x0 + sx[k] * grid.dx, pz = grid.z0 + sz[k] * grid.dz;
            double tx = pz * std::cos(angles[a]) + px * std::sin(angles[a]);
            for (int e = 0; e < probe.elements; e++) {
                double d = px - elementPosition(probe, e);
                double tau = (tx + std::sqrt(d * d + pz * pz)) / probe.soundSpeed;
                double phase = -2.0 * kPi * probe.carrier * tau;
                float re = amp[k] * (float)std::cos(phase), im = amp[k] * (float)std::sin(phase);
                int center = (int)(tau * probe.sampleRate);
                for (int i = center - 8; i <= center + 9; i++) {
                    if (i < 0 || i >= probe.samples) continue;
                    float u = (float)(i - tau * probe.sampleRate) / 3.0f;
                    float g = std::exp(-u * u);
                    float2& v = iq[a * perAngle + (size_t)e * probe.samples + i];
                    v.x += g * re;
                    v.y += g * im;
                }
            }
        }

    size_t pixels = (size_t)grid.nx * grid.nz;
    float2* dIq;
    float* dEnv;
    CHECK(cudaMalloc(&dIq, iq.size() * sizeof(float2)));
    CHECK(cudaMalloc(&dEnv, pixels * sizeof(float)));
    CHECK(cudaMemcpy(dIq, iq.data(), iq.size() * sizeof(float2), cudaMemcpyHostToDevice));

    Steering steer;
    for (int a = 0; a < kAngles; a++) {
        steer.cosA[a] = std::cos(angles[a]);
        steer.sinA[a] = std::sin(angles[a]);
    }
    dim3 blocks((grid.nx + kTileX - 1) / kTileX, (grid.nz + kTileZ - 1) / kTileZ);
    beamformCompound<<<blocks, 128>>>(probe, grid, steer, dIq, dEnv);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    std::vector<float> env(pixels);
    CHECK(cudaMemcpy(env.data(), dEnv, pixels * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0.0, energy = 0.0;
    float peak = 0.0f;
    for (float v : env) {
        sum += v;
        energy += (double)v * v;
        peak = std::fmax(peak, v);
    }
    std::printf("mean envelope   %.6g\n", sum / pixels);
    std::printf("rms envelope    %.6g\n", std::sqrt(energy / pixels));
    std::printf("peak            %.6g\n", peak);
    for (int k = 0; k < 4; k++)
        std::printf("scatterer %d     %.6g\n", k, env[(size_t)sz[k] * grid.nx + sx[k]]);
    CHECK(cudaFree(dIq));
    CHECK(cudaFree(dEnv));
    return 0;
}
