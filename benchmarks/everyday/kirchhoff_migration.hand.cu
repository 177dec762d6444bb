// Kirchhoff migration of a 2-D seismic survey: every image point sums the
// recorded traces along its diffraction travel-time curve.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int   NX   = 384;      // image columns
constexpr int   NZ   = 256;      // image rows
constexpr int   NSRC = 64;       // shots
constexpr int   NREC = 96;       // receiver stations, live for every shot
constexpr int   NT   = 1536;     // samples per trace
constexpr float DX   = 10.0f;    // m
constexpr float DZ   = 8.0f;     // m
constexpr float DT   = 0.002f;   // s
constexpr float APERTURE = 1200.0f;  // largest distance image point - midpoint

struct Survey {
    const float* srcX;    // [NSRC]
    const float* recX;    // [NREC]
    const float* vrms;    // [NZ]
    const float* traces;  // [NSRC][NREC][NT]
};

static void check(cudaError_t err, const char* what)
{
    if (err != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
        std::exit(EXIT_FAILURE);
    }
}

// The travel time splits into a source part and a receiver part. A thread owns
// two image points and a group of eight receivers, whose one-way times and
// weights it keeps in registers while it walks over the shots; the shot's part
// is computed once per eight traces. A warp covers 8 x 4 image points, so its
// gathers fall into few cache lines. Receiver groups go to different blocks and
// leave partial images, which a second kernel adds up in a fixed order.
constexpr int RG      = 8;                 // receivers per group
constexpr int GROUPS  = NREC / RG;
constexpr int PIX     = 2;                 // image points per thread, 8 rows apart
constexpr int TILE_X  = 16;
constexpr int TILE_Z  = 16;
constexpr int THREADS = TILE_X * TILE_Z / PIX;
constexpr float FLOOR_MAGIC = 8388608.0f;  // 2^23

static_assert(NREC % RG == 0 && NX % TILE_X == 0 && NZ % TILE_Z == 0, "exact tiling");

__global__ void __launch_bounds__(THREADS)
migrateGroup(Survey survey, float* __restrict__ partial)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warpX = blockIdx.x * TILE_X + (warp & 1) * 8;
    const int ix = warpX + (lane & 7);
    const int iz0 = blockIdx.y * TILE_Z + (warp >> 1) * 4 + (lane >> 3);
    const int r0 = blockIdx.z * RG;

    const float x = ix * DX;
    float z2[PIX], z[PIX], scale[PIX];
#pragma unroll
    for (int p = 0; p < PIX; ++p) {
        z[p] = (iz0 + 8 * p + 1) * DZ;
        z2[p] = z[p] * z[p];
        scale[p] = 1.0f / (survey.vrms[iz0 + 8 * p] * DT);   // metres -> samples
    }

    // weight = (z/ds)(z/dr)/sqrt(ds dr) = [z ds^-3/2] [z dr^-3/2]
    float tr[RG][PIX], wr[RG][PIX], off[RG];
    float recLo = 1e30f, recHi = -1e30f;   // half the receiver positions, extremes
#pragma unroll
    for (int r = 0; r < RG; ++r) {
        const float rx = survey.recX[r0 + r];
        const float dx = x - rx;
        off[r] = x - 0.5f * rx;            // exact: multiples of 5 m
        recLo = fminf(recLo, 0.5f * rx);
        recHi = fmaxf(recHi, 0.5f * rx);
#pragma unroll
        for (int p = 0; p < PIX; ++p) {
            const float d2 = fmaf(dx, dx, z2[p]);
            const float inv = rsqrtf(d2);
            tr[r][p] = sqrtf(d2) * scale[p];
            wr[r][p] = z[p] * inv * sqrtf(inv);
        }
    }

    // Bounds for skipping a whole group of traces per warp.
    const float xLo = warpX * DX, xHi = (warpX + 7) * DX;

    float sum[PIX];
#pragma unroll
    for (int p = 0; p < PIX; ++p) sum[p] = 0.0f;

    const float* shot = survey.traces + (size_t)r0 * NT;
    for (int s = 0; s < NSRC; ++s, shot += (size_t)NREC * NT) {
        const float sx = __ldg(survey.srcX + s);
        const float half = 0.5f * sx;
        if (xLo - (half + recHi) > APERTURE || (half + recLo) - xHi > APERTURE) continue;

        const float dx = x - sx;
        float ts[PIX], part[PIX];
#pragma unroll
        for (int p = 0; p < PIX; ++p) {
            ts[p] = sqrtf(fmaf(dx, dx, z2[p])) * scale[p];
            part[p] = 0.0f;
        }
#pragma unroll
        for (int r = 0; r < RG; ++r) {
            const bool inside = fabsf(off[r] - half) <= APERTURE;
            const float* trace = shot + r * NT;
#pragma unroll
            for (int p = 0; p < PIX; ++p) {
                const float sample = ts[p] + tr[r][p];
                // floor without the slow conversion instructions
                const float whole = __fadd_rd(sample, FLOOR_MAGIC);
                const int it = __float_as_int(whole) - 0x4b000000;
                const float frac = sample - (whole - FLOOR_MAGIC);
                const int at = min(it, NT - 2);
                const float a = __ldg(trace + at);
                const float b = __ldg(trace + at + 1);
                const float w = inside && it < NT - 1 ? wr[r][p] : 0.0f;
                part[p] = fmaf(w, fmaf(frac, b - a, a), part[p]);
            }
        }
#pragma unroll
        for (int p = 0; p < PIX; ++p) {
            const float inv = rsqrtf(fmaf(dx, dx, z2[p]));
            sum[p] = fmaf(z[p] * inv * sqrtf(inv), part[p], sum[p]);
        }
    }
#pragma unroll
    for (int p = 0; p < PIX; ++p)
        partial[(size_t)blockIdx.z * NX * NZ + (iz0 + 8 * p) * NX + ix] = sum[p];
}

__global__ void __launch_bounds__(128)
addGroups(const float4* __restrict__ partial, float4* __restrict__ image)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= NX * NZ / 4) return;
    float4 sum = partial[i];
#pragma unroll
    for (int g = 1; g < GROUPS; ++g) {
        const float4 v = partial[g * (NX * NZ / 4) + i];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    image[i] = sum;
}

static void runMigration(const Survey& survey, float* d_image)
{
    float* d_partial;
    check(cudaMalloc(&d_partial, (size_t)GROUPS * NX * NZ * sizeof(float)), "malloc");
    migrateGroup<<<dim3(NX / TILE_X, NZ / TILE_Z, GROUPS), THREADS>>>(survey, d_partial);
    addGroups<<<(NX * NZ / 4 + 127) / 128, 128>>>(reinterpret_cast<const float4*>(d_partial),
                                                  reinterpret_cast<float4*>(d_image));
    check(cudaGetLastError(), "migrate");
    check(cudaDeviceSynchronize(), "migrate");
    check(cudaFree(d_partial), "free");
}

// Point scatterers plus band-less noise.
static void makeTraces(std::vector<float>& traces, const std::vector<float>& srcX,
                       const std::vector<float>& recX, const std::vector<float>& vrms)
{
    const float scatX[5] = {600.0f, 1300.0f, 1900.0f, 2600.0f, 3200.0f};
    const int   scatZ[5] = {60, 120, 180, 90, 220};
    uint32_t state = 2024u;
    for (float& a : traces) {
        state = state * 1664525u + 1013904223u;
        a = ((state >> 16) / 65536.0f - 0.5f) * 0.5f;
    }
    for (int s = 0; s < NSRC; ++s)
        for (int r = 0; r < NREC; ++r)
            for (int k = 0; k < 5; ++k) {
                const float z = (scatZ[k] + 1) * DZ;
                const float t = (hypotf(scatX[k] - srcX[s], z) + hypotf(scatX[k] - recX[r], z))
                                / vrms[scatZ[k]];
                const int centre = (int)(t / DT);
                for (int i = centre - 30; i <= centre + 30; ++i) {
                    if (i < 0 || i >= NT) continue;
                    const float u = 3.14159265f * 25.0f * (i * DT - t);
                    traces[((size_t)s * NREC + r) * NT + i] += (1.0f - 2.0f * u * u) * expf(-u * u);
                }
            }
}

int main()
{
    std::vector<float> srcX(NSRC), recX(NREC), vrms(NZ);
    for (int s = 0; s < NSRC; ++s) srcX[s] = 30.0f + 60.0f * s;
    for (int r = 0; r < NREC; ++r) recX[r] = 20.0f + 40.0f * r;
    for (int i = 0; i < NZ; ++i) vrms[i] = 1800.0f + 0.5f * (i + 1) * DZ;
    std::vector<float> traces((size_t)NSRC * NREC * NT);
    makeTraces(traces, srcX, recX, vrms);

    float *d_src, *d_rec, *d_v, *d_traces, *d_image;
    check(cudaMalloc(&d_src, NSRC * sizeof(float)), "malloc");
    check(cudaMalloc(&d_rec, NREC * sizeof(float)), "malloc");
    check(cudaMalloc(&d_v, NZ * sizeof(float)), "malloc");
    check(cudaMalloc(&d_traces, traces.size() * sizeof(float)), "malloc");
    check(cudaMalloc(&d_image, NX * NZ * sizeof(float)), "malloc");
    check(cudaMemcpy(d_src, srcX.data(), NSRC * sizeof(float), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_rec, recX.data(), NREC * sizeof(float), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_v, vrms.data(), NZ * sizeof(float), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_traces, traces.data(), traces.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");

    Survey survey{d_src, d_rec, d_v, d_traces};
    runMigration(survey, d_image);

    std::vector<float> image(NX * NZ);
    check(cudaMemcpy(image.data(), d_image, image.size() * sizeof(float), cudaMemcpyDeviceToHost), "copy");

    double energy = 0.0, weighted = 0.0, peak = 0.0;
    double band[4] = {0, 0, 0, 0}, strip[4] = {0, 0, 0, 0};
    for (int iz = 0; iz < NZ; ++iz)
        for (int ix = 0; ix < NX; ++ix) {
            const double a = std::fabs((double)image[iz * NX + ix]);
            energy += a * a;
            weighted += a * (1 + (ix * 7 + iz * 3) % 11);
            if (a > peak) peak = a;
            band[iz / (NZ / 4)] += a;
            strip[ix / (NX / 4)] += a;
        }
    std::printf("energy   %.4e\n", energy);
    std::printf("weighted %.4e\n", weighted);
    std::printf("peak     %.4e\n", peak);
    for (int k = 0; k < 4; ++k)
        std::printf("band %d %.4e  strip %d %.4e\n", k, band[k], k, strip[k]);

    cudaFree(d_src);
    cudaFree(d_rec);
    cudaFree(d_v);
    cudaFree(d_traces);
    cudaFree(d_image);
    check(cudaGetLastError(), "end");
    return 0;
}
