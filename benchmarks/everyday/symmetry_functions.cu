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

__constant__ float g2_eta[NG2] = {0.05f, 0.5f, 1.0f, 1.0f};
__constant__ float g2_rs[NG2]  = {0.0f, 1.5f, 2.5f, 3.5f};

__constant__ float g4_eta[NG4]    = {0.01f, 0.01f, 0.01f, 0.01f, 0.06f, 0.06f, 0.06f, 0.06f};
__constant__ float g4_zeta[NG4]   = {1.0f, 1.0f, 4.0f, 4.0f, 1.0f, 1.0f, 4.0f, 4.0f};
__constant__ float g4_lambda[NG4] = {-1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f};

__device__ float cutoff(float r)
{
    if (r >= RCUT) return 0.0f;
    return 0.5f * (cosf(3.14159265f * r / RCUT) + 1.0f);
}

__device__ float3 displacement(const Atom& a, const Atom& b)
{
    float3 d = make_float3(b.x - a.x, b.y - a.y, b.z - a.z);
    d.x -= BOX * rintf(d.x / BOX);
    d.y -= BOX * rintf(d.y / BOX);
    d.z -= BOX * rintf(d.z / BOX);
    return d;
}

__device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

__global__ void radial(const Atom* atoms, const int* nbr, const int* count, float* feat)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= NATOMS) return;

    float g[2 * NG2];
    for (int k = 0; k < 2 * NG2; k++) g[k] = 0.0f;

    Atom ai = atoms[i];
    for (int n = 0; n < count[i]; n++) {
        Atom aj = atoms[nbr[i * MAXNBR + n]];
        float3 d = displacement(ai, aj);
        float r = sqrtf(dot(d, d));
        for (int k = 0; k < NG2; k++) {
            float s = r - g2_rs[k];
            g[aj.type * NG2 + k] += expf(-g2_eta[k] * s * s) * cutoff(r);
        }
    }
    for (int k = 0; k < 2 * NG2; k++) feat[i * NFEAT + k] = g[k];
}

__global__ void angular(const Atom* atoms, const int* nbr, const int* count, float* feat)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= NATOMS) return;

    float g[3 * NG4];
    for (int k = 0; k < 3 * NG4; k++) g[k] = 0.0f;

    Atom ai = atoms[i];
    int nn = count[i];
    for (int m = 0; m < nn; m++) {
        Atom aj = atoms[nbr[i * MAXNBR + m]];
        float3 dj = displacement(ai, aj);
        float rj = sqrtf(dot(dj, dj));

        for (int n = m + 1; n < nn; n++) {
            Atom ak = atoms[nbr[i * MAXNBR + n]];
            float3 dk = displacement(ai, ak);
            float rk = sqrtf(dot(dk, dk));

            float3 djk = make_float3(dk.x - dj.x, dk.y - dj.y, dk.z - dj.z);
            float rjk2 = dot(djk, djk);
            float rjk = sqrtf(rjk2);
            if (rjk >= RCUT) continue;

            float costh = dot(dj, dk) / (rj * rk);
            float fc = cutoff(rj) * cutoff(rk) * cutoff(rjk);
            float r2 = rj * rj + rk * rk + rjk2;
            int pair = aj.type + ak.type;
            for (int q = 0; q < NG4; q++) {
                float base = fmaxf(1.0f + g4_lambda[q] * costh, 0.0f);
                float zeta = g4_zeta[q];
                g[pair * NG4 + q] += powf(2.0f, 1.0f - zeta) * powf(base, zeta) *
                                     expf(-g4_eta[q] * r2) * fc;
            }
        }
    }
    for (int k = 0; k < 3 * NG4; k++) feat[i * NFEAT + 2 * NG2 + k] = g[k];
}

void compute_features(const Atom* atoms, const int* nbr, const int* count, float* feat)
{
    const int block = 128;
    const int grid = (NATOMS + block - 1) / block;
    radial<<<grid, block>>>(atoms, nbr, count, feat);
    angular<<<grid, block>>>(atoms, nbr, count, feat);
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
