// Behler-Parrinello symmetry functions (radial G2 and angular G4) of a
// two-component system with periodic boundaries: the descriptors that feed a
// high-dimensional neural network potential.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int   NSIDE   = 32;                       // lattice sites per edge
constexpr int   NATOMS  = NSIDE * NSIDE * NSIDE;
constexpr float SPACING = 2.154f;                   // Angstrom
constexpr float BOX     = NSIDE * SPACING;
constexpr float RCUT    = 4.5f;
constexpr int   MAXNBR  = 128;

constexpr int NG2   = 4;                            // per neighbour species
constexpr int NG4   = 8;                            // per pair of species
constexpr int NFEAT = 2 * NG2 + 3 * NG4;            // 32

struct __align__(16) Atom {
    float x, y, z;
    int   type;                                 // 0 or 1
};

// One warp per atom.  The neighbours are staged once in shared memory as unit
// vectors with their distance and the factors fc(r) exp(-eta r^2), partitioned
// by species (0 from the front, 1 from the back), so that each of the three
// kinds of pairs is a loop of its own with its eight sums in registers.  Pairs
// are dealt out to the lanes by a running (row, column) index.  At the end the
// 32 features are summed across the warp by halving: lane k gets feature k.
//
// Angular parameters: eta {0.01, 0.06} x zeta {1, 4} x lambda {-1, +1}.
constexpr unsigned FULL = 0xffffffffu;
constexpr int WARPS = 4;
static_assert(NATOMS % WARPS == 0, "whole blocks");
static_assert(NFEAT == 32, "one feature per lane");

constexpr float LOG2E = 1.4426950408889634f;
constexpr float PI_RC = 3.14159265358979f / RCUT;
constexpr float K0 = -0.01f * LOG2E;
constexpr float K1 = -0.06f * LOG2E;

__device__ __forceinline__ float ex2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ float wrap(float d)
{
    return fmaf(-BOX, rintf(d * (1.0f / BOX)), d);
}

// adds one pair; v: unit vector and distance, w: fc exp(-eta r^2) for both etas
__device__ __forceinline__ void add_pair(float* g, float4 vj, float2 wj, float4 vk, float2 wk)
{
    float c = fmaf(vj.x, vk.x, fmaf(vj.y, vk.y, vj.z * vk.z));
    float r2 = fmaf(vj.w, vj.w, fmaf(vk.w, vk.w, -2.0f * vj.w * vk.w * c));
    if (r2 < RCUT * RCUT) {
        r2 = fmaxf(r2, 1e-12f);
        float r = r2 * rsqrtf(r2);
        float fc = fmaf(0.5f, __cosf(PI_RC * r), 0.5f);
        float w0 = wj.x * wk.x * fc * ex2(K0 * r2);
        float w1 = wj.y * wk.y * fc * ex2(K1 * r2);
        float m = fmaxf(1.0f - c, 0.0f), p = fmaxf(1.0f + c, 0.0f);
        float m2 = m * m, p2 = p * p;
        float m4 = 0.125f * m2 * m2, p4 = 0.125f * p2 * p2;
        g[0] = fmaf(w0, m, g[0]);
        g[1] = fmaf(w0, p, g[1]);
        g[2] = fmaf(w0, m4, g[2]);
        g[3] = fmaf(w0, p4, g[3]);
        g[4] = fmaf(w1, m, g[4]);
        g[5] = fmaf(w1, p, g[5]);
        g[6] = fmaf(w1, m4, g[6]);
        g[7] = fmaf(w1, p4, g[7]);
    }
}

// all pairs k < j of one list
__device__ __forceinline__ void same_species(float* g, const float4* v, const float2* w, int n, int lane)
{
    int j = 1, k = lane;
    while (j < n && k >= j) k -= j++;
    while (j < n) {
        add_pair(g, v[j], w[j], v[k], w[k]);
        k += 32;
        while (j < n && k >= j) k -= j++;
    }
}

// all pairs between two lists
__device__ __forceinline__ void cross_species(float* g, const float4* va, const float2* wa, int na,
                                              const float4* vb, const float2* wb, int nb, int lane)
{
    int j = 0, k = lane;
    while (j < na && k >= nb) { k -= nb; j++; }
    while (j < na) {
        add_pair(g, va[j], wa[j], vb[k], wb[k]);
        k += 32;
        while (j < na && k >= nb) { k -= nb; j++; }
    }
}

template <int H>
__device__ __forceinline__ void halve(float* a, int lane)
{
    const bool up = lane & H;
#pragma unroll
    for (int i = 0; i < H; i++) {
        float give = up ? a[i] : a[i + H];
        float keep = up ? a[i + H] : a[i];
        a[i] = keep + __shfl_xor_sync(FULL, give, H);
    }
}

__global__ void __launch_bounds__(WARPS * 32)
features(const Atom* __restrict__ atoms, const int* __restrict__ nbr,
         const int* __restrict__ count, float* __restrict__ feat)
{
    __shared__ float4 sv[WARPS][MAXNBR];
    __shared__ float2 sw[WARPS][MAXNBR];

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int i = blockIdx.x * WARPS + warp;
    float4* v = sv[warp];
    float2* w = sw[warp];

    const float4* __restrict__ pos = reinterpret_cast<const float4*>(atoms);
    const float4 ai = __ldg(pos + i);
    const int nn = __ldg(count + i);

    float g[NFEAT];
#pragma unroll
    for (int k = 0; k < NFEAT; k++) g[k] = 0.0f;

    int n0 = 0, n1 = 0;
    for (int base = 0; base < nn; base += 32) {
        const bool valid = base + lane < nn;
        int type = -1;
        float4 q = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float2 e = make_float2(0.0f, 0.0f);
        if (valid) {
            float4 aj = __ldg(pos + __ldg(nbr + i * MAXNBR + base + lane));
            type = __float_as_int(aj.w);
            float x = wrap(aj.x - ai.x), y = wrap(aj.y - ai.y), z = wrap(aj.z - ai.z);
            float r2 = fmaf(x, x, fmaf(y, y, z * z));
            float inv = rsqrtf(r2);
            float r = r2 * inv;
            q = make_float4(x * inv, y * inv, z * inv, r);
            float fc = r < RCUT ? fmaf(0.5f, __cosf(PI_RC * r), 0.5f) : 0.0f;
            e = make_float2(fc * ex2(K0 * r2), fc * ex2(K1 * r2));

            float s1 = r - 1.5f, s2 = r - 2.5f, s3 = r - 3.5f;
            float h0 = fc * ex2(-0.05f * LOG2E * r2);
            float h1 = fc * ex2(-0.5f * LOG2E * s1 * s1);
            float h2 = fc * ex2(-LOG2E * s2 * s2);
            float h3 = fc * ex2(-LOG2E * s3 * s3);
            const bool t0 = type == 0;
            g[0] += t0 ? h0 : 0.0f;
            g[1] += t0 ? h1 : 0.0f;
            g[2] += t0 ? h2 : 0.0f;
            g[3] += t0 ? h3 : 0.0f;
            g[4] += t0 ? 0.0f : h0;
            g[5] += t0 ? 0.0f : h1;
            g[6] += t0 ? 0.0f : h2;
            g[7] += t0 ? 0.0f : h3;
        }
        const unsigned m0 = __ballot_sync(FULL, type == 0);
        const unsigned m1 = __ballot_sync(FULL, type == 1);
        const unsigned below = (1u << lane) - 1u;
        if (valid) {
            int slot = type == 0 ? n0 + __popc(m0 & below)
                                 : MAXNBR - 1 - (n1 + __popc(m1 & below));
            v[slot] = q;
            w[slot] = e;
        }
        n0 += __popc(m0);
        n1 += __popc(m1);
    }
    __syncwarp();

    const float4* v1 = v + MAXNBR - n1;
    const float2* w1 = w + MAXNBR - n1;
    same_species(g + 8, v, w, n0, lane);
    __syncwarp();
    cross_species(g + 16, v, w, n0, v1, w1, n1, lane);
    __syncwarp();
    same_species(g + 24, v1, w1, n1, lane);
    __syncwarp();

    halve<16>(g, lane);
    halve<8>(g, lane);
    halve<4>(g, lane);
    halve<2>(g, lane);
    halve<1>(g, lane);
    feat[i * NFEAT + lane] = g[0];
}

void compute_features(const Atom* atoms, const int* nbr, const int* count, float* feat)
{
    features<<<NATOMS / WARPS, WARPS * 32>>>(atoms, nbr, count, feat);
}

void ok(cudaError_t e)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(e));
    exit(1);
}

unsigned long long seed = 88172645463325252ULL;

float rnd()
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 40) * (1.0f / 16777216.0f);
}

std::vector<Atom> make_atoms()
{
    std::vector<Atom> a;
    a.reserve(NATOMS);
    for (int z = 0; z < NSIDE; z++)
        for (int y = 0; y < NSIDE; y++)
            for (int x = 0; x < NSIDE; x++) {
                Atom t;
                t.x = (x + 0.5f) * SPACING + 0.8f * (rnd() - 0.5f);
                t.y = (y + 0.5f) * SPACING + 0.8f * (rnd() - 0.5f);
                t.z = (z + 0.5f) * SPACING + 0.8f * (rnd() - 0.5f);
                t.type = rnd() < 0.3333f ? 0 : 1;
                a.push_back(t);
            }
    return a;
}

// Full neighbour lists from a cell grid.
void make_neighbours(const std::vector<Atom>& a, std::vector<int>& nbr, std::vector<int>& count)
{
    const int nc = int(BOX / RCUT);
    auto cell1 = [&](float x) {
        int c = int(x / BOX * nc);
        return c < 0 ? 0 : (c >= nc ? nc - 1 : c);
    };
    std::vector<std::vector<int>> cells(nc * nc * nc);
    for (int i = 0; i < NATOMS; i++)
        cells[(cell1(a[i].z) * nc + cell1(a[i].y)) * nc + cell1(a[i].x)].push_back(i);

    for (int i = 0; i < NATOMS; i++) {
        int cx = cell1(a[i].x), cy = cell1(a[i].y), cz = cell1(a[i].z), n = 0;
        for (int dz = -1; dz <= 1; dz++)
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    int c = (((cz + dz + nc) % nc) * nc + (cy + dy + nc) % nc) * nc + (cx + dx + nc) % nc;
                    for (int j : cells[c]) {
                        if (j == i) continue;
                        float d[3] = {a[j].x - a[i].x, a[j].y - a[i].y, a[j].z - a[i].z};
                        float r2 = 0.0f;
                        for (float& v : d) {
                            if (v > 0.5f * BOX) v -= BOX;
                            if (v < -0.5f * BOX) v += BOX;
                            r2 += v * v;
                        }
                        if (r2 >= RCUT * RCUT) continue;
                        if (n == MAXNBR) {
                            fprintf(stderr, "too many neighbours\n");
                            exit(1);
                        }
                        nbr[size_t(i) * MAXNBR + n++] = j;
                    }
                }
        count[i] = n;
    }
}

}  // namespace

int main()
{
    std::vector<Atom> atoms = make_atoms();
    std::vector<int> nbr(size_t(NATOMS) * MAXNBR, 0), count(NATOMS);
    make_neighbours(atoms, nbr, count);
    long total = 0;
    for (int c : count) total += c;

    Atom* d_atoms;
    int *d_nbr, *d_count;
    float* d_feat;
    ok(cudaMalloc(&d_atoms, NATOMS * sizeof(Atom)));
    ok(cudaMalloc(&d_nbr, nbr.size() * sizeof(int)));
    ok(cudaMalloc(&d_count, NATOMS * sizeof(int)));
    ok(cudaMalloc(&d_feat, size_t(NATOMS) * NFEAT * sizeof(float)));
    ok(cudaMemcpy(d_atoms, atoms.data(), NATOMS * sizeof(Atom), cudaMemcpyHostToDevice));
    ok(cudaMemcpy(d_nbr, nbr.data(), nbr.size() * sizeof(int), cudaMemcpyHostToDevice));
    ok(cudaMemcpy(d_count, count.data(), NATOMS * sizeof(int), cudaMemcpyHostToDevice));

    compute_features(d_atoms, d_nbr, d_count, d_feat);
    ok(cudaGetLastError());
    ok(cudaDeviceSynchronize());

    std::vector<float> f(size_t(NATOMS) * NFEAT);
    ok(cudaMemcpy(f.data(), d_feat, f.size() * sizeof(float), cudaMemcpyDeviceToHost));

    printf("atoms %d, neighbours per atom %.2f\n", NATOMS, double(total) / NATOMS);
    for (int k = 0; k < NFEAT; k++) {
        double sum = 0, sq = 0, weighted = 0;
        float hi = 0;
        for (int i = 0; i < NATOMS; i++) {
            float v = f[size_t(i) * NFEAT + k];
            sum += v;
            sq += double(v) * v;
            weighted += v * (1 + i % 11);
            if (!(v <= hi)) hi = v;
        }
        printf("G%d[%2d] mean %.5g  rms %.5g  weighted %.5g  max %.4g\n", k < 2 * NG2 ? 2 : 4, k,
               sum / NATOMS, std::sqrt(sq / NATOMS), weighted / NATOMS, hi);
    }

    ok(cudaFree(d_atoms));
    ok(cudaFree(d_nbr));
    ok(cudaFree(d_count));
    ok(cudaFree(d_feat));
    return 0;
}
