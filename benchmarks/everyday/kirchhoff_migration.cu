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

__device__ inline float distanceTo(float dx, float z)
{
    return sqrtf(dx * dx + z * z);
}

__global__ void migrate(Survey survey, float* image)
{
    const int ix = blockIdx.x * blockDim.x + threadIdx.x;
    const int iz = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix >= NX || iz >= NZ) return;

    const float x = ix * DX;
    const float z = (iz + 1) * DZ;
    const float v = survey.vrms[iz];

    float sum = 0.0f;
    for (int s = 0; s < NSRC; ++s) {
        for (int r = 0; r < NREC; ++r) {
            const float sx = survey.srcX[s];
            const float rx = survey.recX[r];
            const float midpoint = 0.5f * (sx + rx);
            if (fabsf(x - midpoint) > APERTURE) continue;

            const float ds = distanceTo(x - sx, z);
            const float dr = distanceTo(x - rx, z);
            const float sample = (ds + dr) / v / DT;
            const int it = (int)sample;
            if (it + 1 >= NT) continue;

            const float* trace = survey.traces + (s * NREC + r) * NT;
            const float frac = sample - it;
            const float amp = (1.0f - frac) * trace[it] + frac * trace[it + 1];
            // obliquity and spreading
            const float weight = (z / ds) * (z / dr) / sqrtf(ds * dr);
            sum += weight * amp;
        }
    }
    image[iz * NX + ix] = sum;
}

static void runMigration(const Survey& survey, float* d_image)
{
    dim3 threads(16, 16);
    dim3 blocks((NX + threads.x - 1) / threads.x, (NZ + threads.y - 1) / threads.y);
    migrate<<<blocks, threads>>>(survey, d_image);
    check(cudaGetLastError(), "migrate");
    check(cudaDeviceSynchronize(), "migrate");
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
