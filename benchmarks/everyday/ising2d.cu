// 2D Ising model, checkerboard Metropolis updates with one LCG stream per site.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace ising {

constexpr int      kL       = 4096;   // periodic lattice, kL x kL
constexpr int      kSweeps  = 8;
constexpr float    kBeta    = 0.43f;
constexpr uint32_t kLcgMul  = 1664525u;
constexpr uint32_t kLcgAdd  = 1013904223u;

struct Observables {
    long long magnetization;
    long long energy;
};

__constant__ uint32_t c_threshold[2];   // acceptance of dE = 4 and dE = 8, times 2^32

inline void check(cudaError_t err, int line)
{
    if (err != cudaSuccess) {
        std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(err));
        std::exit(1);
    }
}
#define ISING_CHECK(call) ::ising::check((call), __LINE__)

__global__ void updateColour(int8_t* spins, uint32_t* rng, int colour)
{
    int half = blockIdx.x * blockDim.x + threadIdx.x;
    int row  = blockIdx.y * blockDim.y + threadIdx.y;
    if (half >= kL / 2 || row >= kL) return;
    int col = 2 * half + ((row + colour) & 1);

    int up    = (row + kL - 1) % kL;
    int down  = (row + 1) % kL;
    int left  = (col + kL - 1) % kL;
    int right = (col + 1) % kL;

    int s  = spins[row * kL + col];
    int nb = spins[up * kL + col] + spins[down * kL + col]
           + spins[row * kL + left] + spins[row * kL + right];
    int dE = 2 * s * nb;

    uint32_t r = rng[row * kL + col] * kLcgMul + kLcgAdd;
    rng[row * kL + col] = r;

    if (dE <= 0 || r < c_threshold[dE / 4 - 1])
        spins[row * kL + col] = -s;
}

__global__ void measure(const int8_t* spins, Observables* obs)
{
    __shared__ int mag[256];
    __shared__ int ene[256];
    int tid = threadIdx.x;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;

    int s = spins[row * kL + col];
    mag[tid] = s;
    ene[tid] = -s * (spins[row * kL + (col + 1) % kL] + spins[((row + 1) % kL) * kL + col]);
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (tid < step) {
            mag[tid] += mag[tid + step];
            ene[tid] += ene[tid + step];
        }
        __syncthreads();
    }
    if (tid == 0) {
        atomicAdd((unsigned long long*)&obs->magnetization, (unsigned long long)(long long)mag[0]);
        atomicAdd((unsigned long long*)&obs->energy, (unsigned long long)(long long)ene[0]);
    }
}

// spins (+1/-1) and generator states, row major on the device; obs in managed memory
void simulate(int8_t* spins, uint32_t* rng, Observables* obs)
{
    dim3 block(32, 8);
    dim3 grid(kL / 2 / 32, kL / 8);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
        updateColour<<<grid, block>>>(spins, rng, 0);
        updateColour<<<grid, block>>>(spins, rng, 1);
        measure<<<dim3(kL / 256, kL), 256>>>(spins, obs + sweep);
    }
    ISING_CHECK(cudaGetLastError());
    ISING_CHECK(cudaDeviceSynchronize());
}

} // namespace ising

int main()
{
    using namespace ising;
    const size_t n = (size_t)kL * kL;

    std::vector<int8_t> spins(n);
    std::vector<uint32_t> rng(n);
    uint64_t g = 88172645463325252ull;
    for (size_t i = 0; i < n; ++i) {
        g ^= g << 13;
        g ^= g >> 7;
        g ^= g << 17;
        rng[i] = (uint32_t)(g >> 16);
        spins[i] = (g >> 56) < 160 ? 1 : -1;      // partly magnetized start
    }
    uint32_t thr[2];
    for (int k = 0; k < 2; ++k)
        thr[k] = (uint32_t)(std::exp(-kBeta * 4.0 * (k + 1)) * 4294967296.0);
    ISING_CHECK(cudaMemcpyToSymbol(c_threshold, thr, sizeof(thr)));

    int8_t* d_spins;
    uint32_t* d_rng;
    Observables* obs;
    ISING_CHECK(cudaMalloc(&d_spins, n));
    ISING_CHECK(cudaMalloc(&d_rng, n * sizeof(uint32_t)));
    ISING_CHECK(cudaMallocManaged(&obs, kSweeps * sizeof(Observables)));
    ISING_CHECK(cudaMemset(obs, 0, kSweeps * sizeof(Observables)));
    ISING_CHECK(cudaMemcpy(d_spins, spins.data(), n, cudaMemcpyHostToDevice));
    ISING_CHECK(cudaMemcpy(d_rng, rng.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));

    simulate(d_spins, d_rng, obs);

    ISING_CHECK(cudaMemcpy(spins.data(), d_spins, n, cudaMemcpyDeviceToHost));
    for (int s = 0; s < kSweeps; ++s)
        std::printf("sweep %d: m = %.6f  e = %.6f\n", s + 1,
                    (double)obs[s].magnetization / n, (double)obs[s].energy / n);
    unsigned long long sum = 0;
    for (size_t i = 0; i < n; ++i)
        if (spins[i] > 0) sum += 1 + i % 1009;
    std::printf("final: up %llu  corner %d %d %d %d\n", sum, spins[0], spins[kL - 1],
                spins[n - kL], spins[n - 1]);

    ISING_CHECK(cudaFree(d_spins));
    ISING_CHECK(cudaFree(d_rng));
    ISING_CHECK(cudaFree(obs));
    return 0;
}
