// Molecular dynamics: Lennard-Jones mixture of two species, full neighbour lists,
// periodic box, a few leapfrog steps.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define MAXN 80               // neighbour slots per atom
#define CUTOFF 2.5f

__constant__ float c_eps[2][2];
__constant__ float c_sigma[2][2];

#define LANES 8               // lanes that share one atom
#define BLOCK 128

// Forces and leapfrog step in one kernel (positions ping-pong, since neighbours still need the old
// ones).  8 lanes share an atom: the list is read in whole sectors, sums go by shuffle.
template <bool WRITE_FORCE>
__global__ void __launch_bounds__(BLOCK)
forceAndMove(const float4* __restrict__ pos,      // x, y, z, species
             float4* __restrict__ posOut,
             float4* __restrict__ vel,
             const int* __restrict__ neighbours,  // MAXN per atom
             const int* __restrict__ counts,
             float4* __restrict__ force,          // fx, fy, fz, potential energy
             float dt, float box, float invBox, int n)
{
    const int t = blockIdx.x * BLOCK + threadIdx.x;
    const int lane = t % LANES;
    const int i = t / LANES;
    const bool active = i < n;

    float4 p = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float fx = 0.0f, fy = 0.0f, fz = 0.0f, energy = 0.0f;
    if (active) {
        p = pos[i];
        // parameters against species 0 and 1 of the partner
        const int ti = p.w != 0.0f;
        const float e0 = c_eps[ti][0], e1 = c_eps[ti][1];
        const float q0 = c_sigma[ti][0] * c_sigma[ti][0], q1 = c_sigma[ti][1] * c_sigma[ti][1];
        const int* list = neighbours + (size_t)i * MAXN;
        const int count = counts[i];
        #pragma unroll 4
        for (int k = lane; k < count; k += LANES) {
            const float4 o = pos[list[k]];
            float dx = p.x - o.x;
            float dy = p.y - o.y;
            float dz = p.z - o.z;
            dx -= box * rintf(dx * invBox);
            dy -= box * rintf(dy * invBox);
            dz -= box * rintf(dz * invBox);
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < CUTOFF * CUTOFF) {
                const float e = o.w == 0.0f ? e0 : e1;
                const float q = o.w == 0.0f ? q0 : q1;
                const float inv = 1.0f / r2;
                const float sr2 = q * inv;
                const float sr6 = sr2 * sr2 * sr2;
                const float sr12 = sr6 * sr6;
                const float f = 24.0f * e * (2.0f * sr12 - sr6) * inv;
                fx += f * dx;
                fy += f * dy;
                fz += f * dz;
                if (WRITE_FORCE) energy += 2.0f * e * (sr12 - sr6);
            }
        }
    }
    #pragma unroll
    for (int o = LANES / 2; o > 0; o >>= 1) {
        fx += __shfl_xor_sync(0xffffffffu, fx, o);
        fy += __shfl_xor_sync(0xffffffffu, fy, o);
        fz += __shfl_xor_sync(0xffffffffu, fz, o);
        if (WRITE_FORCE) energy += __shfl_xor_sync(0xffffffffu, energy, o);
    }
    if (!active || lane != 0) return;

    if (WRITE_FORCE) force[i] = make_float4(fx, fy, fz, energy);
    const float kick = (p.w == 0.0f ? 1.0f : 0.5f) * dt;
    float4 v = vel[i];
    v.x += fx * kick;
    v.y += fy * kick;
    v.z += fz * kick;
    p.x += v.x * dt;
    p.y += v.y * dt;
    p.z += v.z * dt;
    if (p.x < 0.0f) p.x += box;
    if (p.y < 0.0f) p.y += box;
    if (p.z < 0.0f) p.z += box;
    if (p.x >= box) p.x -= box;
    if (p.y >= box) p.y -= box;
    if (p.z >= box) p.z -= box;
    posOut[i] = p;
    vel[i] = v;
}

static unsigned g_seed = 1234567u;
static float uniform()
{
    g_seed = g_seed * 1664525u + 1013904223u;
    return (g_seed >> 8) * (1.0f / 16777216.0f);
}

int main()
{
    const int side = 44;
    const int n = side * side * side;
    const float spacing = 1.12f;
    const float box = side * spacing;
    const float dt = 0.002f;
    const int steps = 4;

    std::vector<float4> pos(n), vel(n), force(n);
    for (int z = 0; z < side; z++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                int i = (z * side + y) * side + x;
                pos[i].x = (x + 0.5f) * spacing + 0.1f * (uniform() - 0.5f);
                pos[i].y = (y + 0.5f) * spacing + 0.1f * (uniform() - 0.5f);
                pos[i].z = (z + 0.5f) * spacing + 0.1f * (uniform() - 0.5f);
                pos[i].w = (float)((x + y + 2 * z) % 5 == 0);
                vel[i].x = uniform() - 0.5f;
                vel[i].y = uniform() - 0.5f;
                vel[i].z = uniform() - 0.5f;
                vel[i].w = 0.0f;
            }

    // neighbour list: lattice neighbours up to distance sqrt(6) cells; a few entries are left
    // out (vacant bonds) so that the counts differ
    std::vector<int> neighbours((size_t)n * MAXN, 0), counts(n, 0);
    for (int dz = -2; dz <= 2; dz++)
        for (int dy = -2; dy <= 2; dy++)
            for (int dx = -2; dx <= 2; dx++) {
                int d2 = dx * dx + dy * dy + dz * dz;
                if (d2 == 0 || d2 > 6) continue;
                for (int z = 0; z < side; z++)
                    for (int y = 0; y < side; y++)
                        for (int x = 0; x < side; x++) {
                            int i = (z * side + y) * side + x;
                            if (d2 == 6 && i % 7 == 3) continue;
                            int xx = (x + dx + side) % side;
                            int yy = (y + dy + side) % side;
                            int zz = (z + dz + side) % side;
                            neighbours[(size_t)i * MAXN + counts[i]++] = (zz * side + yy) * side + xx;
                        }
            }

    float eps[2][2] = {{1.0f, 0.8f}, {0.8f, 0.6f}};
    float sigma[2][2] = {{1.0f, 0.95f}, {0.95f, 0.9f}};
    cudaMemcpyToSymbol(c_eps, eps, sizeof(eps));
    cudaMemcpyToSymbol(c_sigma, sigma, sizeof(sigma));

    float4 *d_pos, *d_pos2, *d_vel, *d_force;
    int *d_neighbours, *d_counts;
    cudaMalloc(&d_pos, n * sizeof(float4));
    cudaMalloc(&d_pos2, n * sizeof(float4));
    cudaMalloc(&d_vel, n * sizeof(float4));
    cudaMalloc(&d_force, n * sizeof(float4));
    cudaMalloc(&d_neighbours, neighbours.size() * sizeof(int));
    cudaMalloc(&d_counts, n * sizeof(int));
    cudaMemcpy(d_pos, pos.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemcpy(d_vel, vel.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemcpy(d_neighbours, neighbours.data(), neighbours.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_counts, counts.data(), n * sizeof(int), cudaMemcpyHostToDevice);

    const int blocks = (n * LANES + BLOCK - 1) / BLOCK;
    for (int s = 0; s < steps; s++) {
        if (s + 1 == steps)
            forceAndMove<true><<<blocks, BLOCK>>>(d_pos, d_pos2, d_vel, d_neighbours, d_counts, d_force,
                                                  dt, box, 1.0f / box, n);
        else
            forceAndMove<false><<<blocks, BLOCK>>>(d_pos, d_pos2, d_vel, d_neighbours, d_counts, d_force,
                                                   dt, box, 1.0f / box, n);
        std::swap(d_pos, d_pos2);
    }

    cudaMemcpy(pos.data(), d_pos, n * sizeof(float4), cudaMemcpyDeviceToHost);
    cudaMemcpy(vel.data(), d_vel, n * sizeof(float4), cudaMemcpyDeviceToHost);
    cudaMemcpy(force.data(), d_force, n * sizeof(float4), cudaMemcpyDeviceToHost);
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) {
        fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(err));
        return 1;
    }

    double potential = 0, kinetic = 0, forceAbs = 0, where = 0;
    for (int i = 0; i < n; i++) {
        double mass = pos[i].w == 0.0f ? 1.0 : 2.0;
        potential += force[i].w;
        kinetic += 0.5 * mass * (vel[i].x * vel[i].x + vel[i].y * vel[i].y + vel[i].z * vel[i].z);
        forceAbs += fabs(force[i].x) + 2 * fabs(force[i].y) + 3 * fabs(force[i].z);
        where += pos[i].x * (i % 3) + pos[i].y * (i % 5) + pos[i].z * (i % 7);
    }
    printf("potential %.3e\nkinetic   %.3e\nforces    %.3e\npositions %.3e\n", potential, kinetic, forceAbs, where);

    cudaFree(d_pos);
    cudaFree(d_pos2);
    cudaFree(d_vel);
    cudaFree(d_force);
    cudaFree(d_neighbours);
    cudaFree(d_counts);
    return 0;
}
