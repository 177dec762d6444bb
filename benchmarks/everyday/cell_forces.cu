// Short-range particle forces with a cell list (linked lists), 27 neighbour cells
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

typedef struct { float x, y, z; float charge; float fx, fy, fz; float pot; } Particle;

#define NC    32
#define NCELL (NC*NC*NC)
#define NP    400000
#define RC    1.0f

__device__ int clampi(int v)
{
    if (v < 0) return 0;
    if (v > NC - 1) return NC - 1;
    return v;
}

__device__ int cell_of(Particle p)
{
    int cx = clampi((int)(p.x / RC));
    int cy = clampi((int)(p.y / RC));
    int cz = clampi((int)(p.z / RC));
    return (cz * NC + cy) * NC + cx;
}

__global__ void clear_cells(int *head)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < NCELL) head[c] = -1;
}

__global__ void build_list(Particle *p, int *head, int *next, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = cell_of(p[i]);
    next[i] = atomicExch(&head[c], i);
}

__global__ void forces(Particle *p, int *head, int *next, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    p[i].fx = 0; p[i].fy = 0; p[i].fz = 0; p[i].pot = 0;
    int c = cell_of(p[i]);
    int cx = c % NC, cy = (c / NC) % NC, cz = c / (NC * NC);
    for (int dz = -1; dz <= 1; dz++)
    for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
        int x = cx + dx, y = cy + dy, z = cz + dz;
        if (x < 0 || y < 0 || z < 0 || x >= NC || y >= NC || z >= NC) continue;
        int j = head[(z * NC + y) * NC + x];
        while (j >= 0) {
            if (j != i) {
                float rx = p[i].x - p[j].x;
                float ry = p[i].y - p[j].y;
                float rz = p[i].z - p[j].z;
                float r = sqrtf(rx * rx + ry * ry + rz * rz + 1e-6f);
                if (r < RC) {
                    // soft repulsion scaled by the charges
                    float w = p[i].charge * p[j].charge * (1.0f - r / RC);
                    p[i].fx += w * rx / r;
                    p[i].fy += w * ry / r;
                    p[i].fz += w * rz / r;
                    p[i].pot += 0.5f * w * (RC - r);
                }
            }
            j = next[j];
        }
    }
}

static unsigned long long st = 88172645463325252ULL;
static float uniform()
{
    st = st * 2862933555777941757ULL + 3037000493ULL;
    return (float)((st >> 40) * (1.0 / 16777216.0));
}

int main()
{
    Particle *h = (Particle *)malloc(NP * sizeof(Particle));
    for (int i = 0; i < NP; i++) {
        h[i].x = uniform() * NC * RC;
        h[i].y = uniform() * NC * RC;
        h[i].z = uniform() * NC * RC;
        h[i].charge = 0.5f + uniform();
        h[i].fx = h[i].fy = h[i].fz = h[i].pot = 0;
    }
    Particle *p;
    int *head, *next;
    cudaMalloc(&p, NP * sizeof(Particle));
    cudaMalloc(&head, NCELL * sizeof(int));
    cudaMalloc(&next, NP * sizeof(int));
    cudaMemcpy(p, h, NP * sizeof(Particle), cudaMemcpyHostToDevice);

    clear_cells<<<(NCELL + 127) / 128, 128>>>(head);
    build_list<<<(NP + 127) / 128, 128>>>(p, head, next, NP);
    forces<<<(NP + 127) / 128, 128>>>(p, head, next, NP);

    cudaMemcpy(h, p, NP * sizeof(Particle), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { printf("error\n"); return 1; }

    double pot = 0, f2 = 0;
    for (int i = 0; i < NP; i++) {
        pot += h[i].pot;
        f2 += sqrt((double)h[i].fx * h[i].fx + (double)h[i].fy * h[i].fy + (double)h[i].fz * h[i].fz);
    }
    printf("potential %.4e  sum |f| %.4e\n", pot, f2);
    printf("pot[0] %.4e pot[1234] %.4e pot[last] %.4e\n", h[0].pot, h[1234].pot, h[NP - 1].pot);
    return 0;
}
