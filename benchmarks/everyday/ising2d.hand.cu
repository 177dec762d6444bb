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

// Working layout: one array per colour. Entry (row, h) of colour c is the site
// (row, 2h + ((row + c) & 1)). Spins are 0/1 bytes, four to a word; the four
// neighbours of (row, h) in the other colour are (row +- 1, h), (row, h) and
// (row, h + 1) or (row, h - 1), depending on the parity of row + c.
constexpr int kHalf  = kL / 2;        // sites of a colour per row
constexpr int kWords = kHalf / 4;     // words of a colour per row
static_assert(kWords % 128 == 0 && kL % 4 == 0, "tile sizes");

// 8 sites of a row -> 4 of each colour
__global__ void __launch_bounds__(256)
split(const int8_t* __restrict__ spins, const uint32_t* __restrict__ rng,
      uint32_t* __restrict__ s0, uint32_t* __restrict__ s1,
      uint4* __restrict__ r0, uint4* __restrict__ r1)
{
    const int t = blockIdx.x * 256 + threadIdx.x;
    const int row = t / kWords;
    const uint2 b = reinterpret_cast<const uint2*>(spins)[t];
    const uint4 a = reinterpret_cast<const uint4*>(rng)[2 * (size_t)t];
    const uint4 c = reinterpret_cast<const uint4*>(rng)[2 * (size_t)t + 1];
    // +1 = 0x01, -1 = 0xff: the sign bit tells
    uint32_t even = __byte_perm(b.x, b.y, 0x6420);
    uint32_t odd  = __byte_perm(b.x, b.y, 0x7531);
    even = (~even >> 7) & 0x01010101u;
    odd  = (~odd >> 7) & 0x01010101u;
    const uint4 re = make_uint4(a.x, a.z, c.x, c.z);
    const uint4 ro = make_uint4(a.y, a.w, c.y, c.w);
    const bool swap = row & 1;        // colour 0 owns the odd columns of odd rows
    s0[t] = swap ? odd : even;
    s1[t] = swap ? even : odd;
    r0[t] = swap ? ro : re;
    r1[t] = swap ? re : ro;
}

__global__ void __launch_bounds__(256)
merge(const uint32_t* __restrict__ s0, const uint32_t* __restrict__ s1, int8_t* __restrict__ spins)
{
    const int t = blockIdx.x * 256 + threadIdx.x;
    const int row = t / kWords;
    const uint32_t a = s0[t], b = s1[t];
    uint32_t even = (row & 1) ? b : a, odd = (row & 1) ? a : b;
    even = __vsub4(even << 1, 0x01010101u);     // 0/1 -> -1/+1
    odd  = __vsub4(odd << 1, 0x01010101u);
    reinterpret_cast<uint2*>(spins)[t] =
        make_uint2(__byte_perm(even, odd, 0x5140), __byte_perm(even, odd, 0x7362));
}

// A thread updates 4 words (one per row) of 4 sites. For the second colour
// the observables come along: every bond has one end of that colour, and the
// word "same" visits every site of the other colour once.
template <bool kMeasure>
__global__ void __launch_bounds__(128)
updateColour(uint32_t* __restrict__ mine, const uint32_t* __restrict__ other,
             uint4* __restrict__ rng, int colour, Observables* obs)
{
    const int w    = blockIdx.x * 128 + threadIdx.x;
    const int row0 = blockIdx.y * 4;
    const uint32_t t4 = c_threshold[0], t8 = c_threshold[1];

    uint4    r[4];
    uint32_t s[4], o[6], side[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int at = (row0 + k) * kWords + w;
        r[k] = rng[at];
        s[k] = mine[at];
    }
#pragma unroll
    for (int k = 0; k < 6; ++k)
        o[k] = other[((row0 + k + kL - 1) & (kL - 1)) * kWords + w];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        // row0 is even: parity of the row is that of k
        const bool right = (k + colour) & 1;
        const int  ws = (right ? w + 1 : w + kWords - 1) & (kWords - 1);
        const uint32_t n = other[(row0 + k) * kWords + ws];
        side[k] = right ? __byte_perm(o[k + 1], n, 0x4321)    // h + 1
                        : __byte_perm(n, o[k + 1], 0x6543);   // h - 1
    }

    int mag = 0, ene = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const uint32_t nb = o[k] + o[k + 1] + o[k + 2] + side[k];   // 0..4 per byte
        uint32_t v = s[k];
        // neighbours that agree with the site
        const uint32_t mask = v * 0xffu;                            // ff where up
        const uint32_t agree = (nb & mask) | ((0x04040404u - nb) & ~mask);
        uint32_t q[4] = {r[k].x, r[k].y, r[k].z, r[k].w};
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            q[b] = q[b] * kLcgMul + kLcgAdd;
            const uint32_t a = (agree >> (8 * b)) & 0xffu;
            const uint32_t thr = a == 3 ? t4 : t8;
            if (a <= 2 || q[b] < thr) v ^= 1u << (8 * b);
        }
        const int at = (row0 + k) * kWords + w;
        rng[at] = make_uint4(q[0], q[1], q[2], q[3]);
        mine[at] = v;
        if (kMeasure) {
            const uint32_t m2 = v * 0xffu;
            const uint32_t ag = (nb & m2) | ((0x04040404u - nb) & ~m2);
            mag += 2 * (__popc(v) + __popc(o[k + 1])) - 8;
            // energy of a site: -(agree - disagree) = 4 - 2 * agree
            ene += 16 - 2 * (int)__dp4a(ag, 0x01010101u, 0u);
        }
    }
    if (kMeasure) {
        mag = __reduce_add_sync(0xffffffffu, mag);
        ene = __reduce_add_sync(0xffffffffu, ene);
        __shared__ int sm[4], se[4];
        if ((threadIdx.x & 31) == 0) {
            sm[threadIdx.x >> 5] = mag;
            se[threadIdx.x >> 5] = ene;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            const long long m = sm[0] + sm[1] + sm[2] + sm[3];
            const long long e = se[0] + se[1] + se[2] + se[3];
            atomicAdd((unsigned long long*)&obs->magnetization, (unsigned long long)m);
            atomicAdd((unsigned long long*)&obs->energy, (unsigned long long)e);
        }
    }
}

// spins (+1/-1) and generator states, row major on the device; obs in managed memory
void simulate(int8_t* spins, uint32_t* rng, Observables* obs)
{
    const size_t words = (size_t)kL * kWords;
    uint32_t* s[2];
    uint4* r[2];
    for (int c = 0; c < 2; ++c) {
        ISING_CHECK(cudaMalloc(&s[c], words * sizeof(uint32_t)));
        ISING_CHECK(cudaMalloc(&r[c], words * sizeof(uint4)));
    }
    const unsigned lin = (unsigned)(words / 256);
    dim3 grid(kWords / 128, kL / 4);
    split<<<lin, 256>>>(spins, rng, s[0], s[1], r[0], r[1]);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
        updateColour<false><<<grid, 128>>>(s[0], s[1], r[0], 0, nullptr);
        updateColour<true><<<grid, 128>>>(s[1], s[0], r[1], 1, obs + sweep);
    }
    merge<<<lin, 256>>>(s[0], s[1], spins);
    ISING_CHECK(cudaGetLastError());
    ISING_CHECK(cudaDeviceSynchronize());
    for (int c = 0; c < 2; ++c) {
        ISING_CHECK(cudaFree(s[c]));
        ISING_CHECK(cudaFree(r[c]));
    }
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
