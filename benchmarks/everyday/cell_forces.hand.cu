// Short-range particle forces with a cell list (counting sort), 27 neighbour cells
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

typedef struct { float x, y, z; float charge; float fx, fy, fz; float pot; } Particle;

#define NC    32
#define NCELL (NC*NC*NC)
#define NP    400000
#define RC    1.0f

__device__ __forceinline__ int clampi(int v) { return min(max(v, 0), NC - 1); }

// cell and rank of each particle within its cell
__global__ void __launch_bounds__(256)
count_cells(const float4 *__restrict__ p, int *__restrict__ count, int2 *__restrict__ where, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float4 q = __ldg(p + 2 * i);
    int c = (clampi((int)(q.z / RC)) * NC + clampi((int)(q.y / RC))) * NC + clampi((int)(q.x / RC));
    where[i] = make_int2(c, atomicAdd(&count[c], 1));
}

// exclusive scan of the 32768 counts, one block, 32 counts a thread
__global__ void __launch_bounds__(1024)
scan_cells(const int4 *__restrict__ count, int4 *__restrict__ start)
{
    __shared__ int wsum[32];
    const int t = threadIdx.x, lane = t & 31, w = t >> 5;
    int4 v[8];
    int s = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) { v[k] = count[t * 8 + k]; s += v[k].x + v[k].y + v[k].z + v[k].w; }
    int inc = s;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) { int y = __shfl_up_sync(~0u, inc, o); if (lane >= o) inc += y; }
    if (lane == 31) wsum[w] = inc;
    __syncthreads();
    if (w == 0) {
        int x = wsum[lane], z = x;
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) { int y = __shfl_up_sync(~0u, z, o); if (lane >= o) z += y; }
        wsum[lane] = z - x;
    }
    __syncthreads();
    int run = wsum[w] + inc - s;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int4 o;
        o.x = run; run += v[k].x;
        o.y = run; run += v[k].y;
        o.z = run; run += v[k].z;
        o.w = run; run += v[k].w;
        start[t * 8 + k] = o;
    }
    if (t == 1023) ((int *)start)[NCELL] = run;
}

__global__ void __launch_bounds__(256)
reorder(const float4 *__restrict__ p, const int2 *__restrict__ where, const int *__restrict__ start,
        float4 *__restrict__ sorted, int2 *__restrict__ info, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    int2 w = where[i];
    int d = __ldg(start + w.x) + w.y;
    sorted[d] = __ldg(p + 2 * i);
    info[d] = make_int2(i, w.x);
}

// particles in cell order: the lanes of a warp share their neighbour cells, so the loads
// are nearly broadcasts; three cells adjacent in x are one contiguous range
__global__ void __launch_bounds__(128)
forces(const float4 *__restrict__ sorted, const int2 *__restrict__ info, const int *__restrict__ start,
       float4 *__restrict__ out, int n)
{
    int s = blockIdx.x * 128 + threadIdx.x;
    if (s >= n) return;
    const float4 me = sorted[s];
    const int2 w = info[s];
    const int cx = w.y % NC, cy = (w.y / NC) % NC, cz = w.y / (NC * NC);
    const int x0 = max(cx - 1, 0), x1 = min(cx + 1, NC - 1);
    const int y0 = max(cy - 1, 0), y1 = min(cy + 1, NC - 1);
    const int z0 = max(cz - 1, 0), z1 = min(cz + 1, NC - 1);
    float fx = 0.f, fy = 0.f, fz = 0.f, pot = 0.f;
    for (int z = z0; z <= z1; z++)
        for (int y = y0; y <= y1; y++) {
            const int row = (z * NC + y) * NC;
            const int b = __ldg(start + row + x0), e = __ldg(start + row + x1 + 1);
#pragma unroll 4
            for (int j = b; j < e; j++) {
                const float4 o = __ldg(sorted + j);
                const float rx = me.x - o.x, ry = me.y - o.y, rz = me.z - o.z;
                const float r2 = rx * rx + ry * ry + rz * rz + 1e-6f;
                if (r2 < RC * RC && j != s) {
                    const float ir = rsqrtf(r2);
                    const float r = r2 * ir;
                    const float wgt = o.w * (1.0f - r / RC);
                    const float wr = wgt * ir;
                    fx += wr * rx;
                    fy += wr * ry;
                    fz += wr * rz;
                    pot += wgt * (RC - r);
                }
            }
        }
    out[2 * w.x + 1] = make_float4(me.w * fx, me.w * fy, me.w * fz, 0.5f * me.w * pot);
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
    int *count, *start;
    int2 *where, *info;
    float4 *sorted;
    cudaMalloc(&p, NP * sizeof(Particle));
    cudaMalloc(&count, NCELL * sizeof(int));
    cudaMalloc(&start, (NCELL + 4) * sizeof(int));
    cudaMalloc(&where, NP * sizeof(int2));
    cudaMalloc(&info, NP * sizeof(int2));
    cudaMalloc(&sorted, NP * sizeof(float4));
    cudaMemcpy(p, h, NP * sizeof(Particle), cudaMemcpyHostToDevice);

    // a Particle is two float4: (x, y, z, charge) and (fx, fy, fz, pot)
    float4 *p4 = (float4 *)p;
    cudaMemsetAsync(count, 0, NCELL * sizeof(int));
    count_cells<<<(NP + 255) / 256, 256>>>(p4, count, where, NP);
    scan_cells<<<1, 1024>>>((const int4 *)count, (int4 *)start);
    reorder<<<(NP + 255) / 256, 256>>>(p4, where, start, sorted, info, NP);
    forces<<<(NP + 127) / 128, 128>>>(sorted, info, start, p4, NP);

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
