// Molecular dynamics: Lennard-Jones mixture of two species, full neighbour lists,
// periodic box, a few leapfrog steps.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define MAXN 80               // neighbour slots per atom
#define CUTOFF 2.5f

__constant__ float c_eps[2][2];
__constant__ float c_sigma[2][2];

__global__ void computeForces(const float4* __restrict__ pos,      // x, y, z, species
                              const int* __restrict__ neighbours,  // MAXN per atom
                              const int* __restrict__ counts,
                              float4* __restrict__ force,          // fx, fy, fz, potential energy
                              float box, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    float4 pi = pos[i];
    int ti = (int)pi.w;
    float fx = 0.0f, fy = 0.0f, fz = 0.0f, energy = 0.0f;

    for (int k = 0; k < counts[i]; k++) {
        int j = neighbours[i * MAXN + k];
        float4 pj = pos[j];
        int tj = (int)pj.w;

        float dx = pi.x - pj.x;
        float dy = pi.y - pj.y;
        float dz = pi.z - pj.z;
        dx -= box * rintf(dx / box);
        dy -= box * rintf(dy / box);
        dz -= box * rintf(dz / box);

        float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < CUTOFF * CUTOFF) {
            float sr2 = c_sigma[ti][tj] * c_sigma[ti][tj] / r2;
            float sr6 = sr2 * sr2 * sr2;
            float sr12 = sr6 * sr6;
            float f = 24.0f * c_eps[ti][tj] * (2.0f * sr12 - sr6) / r2;
            fx += f * dx;
            fy += f * dy;
            fz += f * dz;
            energy += 2.0f * c_eps[ti][tj] * (sr12 - sr6);   // half of the pair energy
        }
    }
    force[i] = make_float4(fx, fy, fz, energy);
}

__global__ void integrate(float4* pos, float4* vel, const float4* force, float dt, float box, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    float4 p = pos[i];
    float4 v = vel[i];
    float4 f = force[i];
    float invMass = p.w == 0.0f ? 1.0f : 0.5f;

    v.x += f.x * invMass * dt;
    v.y += f.y * invMass * dt;
    v.z += f.z * invMass * dt;
    p.x += v.x * dt;
    p.y += v.y * dt;
    p.z += v.z * dt;
    if (p.x < 0.0f) p.x += box;
    if (p.y < 0.0f) p.y += box;
    if (p.z < 0.0f) p.z += box;
    if (p.x >= box) p.x -= box;
    if (p.y >= box) p.y -= box;
    if (p.z >= box) p.z -= box;

    pos[i] = p;
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

    float4 *d_pos, *d_vel, *d_force;
    int *d_neighbours, *d_counts;
    cudaMalloc(&d_pos, n * sizeof(float4));
    cudaMalloc(&d_vel, n * sizeof(float4));
    cudaMalloc(&d_force, n * sizeof(float4));
    cudaMalloc(&d_neighbours, neighbours.size() * sizeof(int));
    cudaMalloc(&d_counts, n * sizeof(int));
    cudaMemcpy(d_pos, pos.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemcpy(d_vel, vel.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemcpy(d_neighbours, neighbours.data(), neighbours.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_counts, counts.data(), n * sizeof(int), cudaMemcpyHostToDevice);

    int threads = 128;
    int blocks = (n + threads - 1) / threads;
    for (int s = 0; s < steps; s++) {
        computeForces<<<blocks, threads>>>(d_pos, d_neighbours, d_counts, d_force, box, n);
        integrate<<<blocks, threads>>>(d_pos, d_vel, d_force, dt, box, n);
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
    cudaFree(d_vel);
    cudaFree(d_force);
    cudaFree(d_neighbours);
    cudaFree(d_counts);
    return 0;
}
