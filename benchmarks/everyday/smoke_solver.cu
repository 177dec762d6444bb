// Two-dimensional incompressible flow with buoyant smoke ("stable fluids"), double precision.
// Each time step: semi-Lagrangian advection, buoyancy, divergence, Jacobi pressure iterations, projection.
// Plain version: one kernel per operation, one thread per cell.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(expr)                                                              \
    if (cudaError_t status = (expr); status != cudaSuccess) {                         \
        printf("CUDA failure at line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
        exit(EXIT_FAILURE);                                                           \
    }

constexpr int NX = 1111;
constexpr int NY = 777;
constexpr int STEPS = 8;
constexpr int JACOBI_ITERATIONS = 20;
constexpr double DT = 0.8;
constexpr double BUOYANCY = 0.05;

__device__ int clampi(int v, int lo, int hi)
{
    return v < lo ? lo : (v > hi ? hi : v);
}

// value of a field with the index clamped to the domain
__device__ double at(const double *f, int i, int j)
{
    return f[clampi(j, 0, NY - 1) * NX + clampi(i, 0, NX - 1)];
}

__device__ double interpolate(const double *f, double x, double y)
{
    x = fmin(fmax(x, 0.0), NX - 1.0);
    y = fmin(fmax(y, 0.0), NY - 1.0);
    int i = (int)x, j = (int)y;
    double fx = x - i, fy = y - j;
    double low = (1.0 - fx) * at(f, i, j) + fx * at(f, i + 1, j);
    double high = (1.0 - fx) * at(f, i, j + 1) + fx * at(f, i + 1, j + 1);
    return (1.0 - fy) * low + fy * high;
}

__global__ void advect(const double *field, const double *u, const double *v, double *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= NX || j >= NY) return;
    int c = j * NX + i;
    out[c] = interpolate(field, i - DT * u[c], j - DT * v[c]);
}

__global__ void add_buoyancy(double *v, const double *smoke)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= NX || j >= NY) return;
    v[j * NX + i] += DT * BUOYANCY * smoke[j * NX + i];
}

__global__ void divergence(const double *u, const double *v, double *div)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= NX || j >= NY) return;
    div[j * NX + i] = 0.5 * (at(u, i + 1, j) - at(u, i - 1, j) + at(v, i, j + 1) - at(v, i, j - 1));
}

__global__ void jacobi(const double *p, const double *div, double *p_new)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= NX || j >= NY) return;
    double sum = at(p, i - 1, j) + at(p, i + 1, j) + at(p, i, j - 1) + at(p, i, j + 1);
    p_new[j * NX + i] = 0.25 * (sum - div[j * NX + i]);
}

__global__ void project(double *u, double *v, const double *p)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= NX || j >= NY) return;
    int c = j * NX + i;
    if (i == 0 || j == 0 || i == NX - 1 || j == NY - 1) {      // walls
        u[c] = 0.0;
        v[c] = 0.0;
        return;
    }
    u[c] -= 0.5 * (p[c + 1] - p[c - 1]);
    v[c] -= 0.5 * (p[c + NX] - p[c - NX]);
}

static uint64_t lcg_state = 88172645463325252ULL;
static double lcg()                                            // [0, 1)
{
    lcg_state = lcg_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(lcg_state >> 11) * (1.0 / 9007199254740992.0);
}

int main()
{
    const int cells = NX * NY;
    const size_t bytes = (size_t)cells * sizeof(double);

    // a few vortices and smoke puffs at random places
    std::vector<double> u(cells, 0.0), v(cells, 0.0), smoke(cells, 0.0), p(cells, 0.0);
    for (int n = 0; n < 24; n++) {
        double cx = (0.1 + 0.8 * lcg()) * NX, cy = (0.1 + 0.8 * lcg()) * NY;
        double radius = 20.0 + 40.0 * lcg();
        double spin = (lcg() - 0.4) * 6.0 / radius;
        int j0 = std::max(1, (int)(cy - 2 * radius)), j1 = std::min(NY - 2, (int)(cy + 2 * radius));
        int i0 = std::max(1, (int)(cx - 2 * radius)), i1 = std::min(NX - 2, (int)(cx + 2 * radius));
        for (int j = j0; j <= j1; j++)
            for (int i = i0; i <= i1; i++) {
                double dx = i - cx, dy = j - cy;
                double s = 1.0 - (dx * dx + dy * dy) / (4.0 * radius * radius);
                if (s <= 0.0) continue;
                u[j * NX + i] -= spin * dy * s * s;
                v[j * NX + i] += spin * dx * s * s;
                smoke[j * NX + i] += s * s;
            }
    }

    double *d_u, *d_v, *d_smoke, *d_u2, *d_v2, *d_smoke2, *d_p, *d_p2, *d_div;
    CUDA_CHECK(cudaMalloc(&d_u, bytes));
    CUDA_CHECK(cudaMalloc(&d_v, bytes));
    CUDA_CHECK(cudaMalloc(&d_smoke, bytes));
    CUDA_CHECK(cudaMalloc(&d_u2, bytes));
    CUDA_CHECK(cudaMalloc(&d_v2, bytes));
    CUDA_CHECK(cudaMalloc(&d_smoke2, bytes));
    CUDA_CHECK(cudaMalloc(&d_p, bytes));
    CUDA_CHECK(cudaMalloc(&d_p2, bytes));
    CUDA_CHECK(cudaMalloc(&d_div, bytes));
    CUDA_CHECK(cudaMemcpy(d_u, u.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_v, v.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_smoke, smoke.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_p, 0, bytes));

    dim3 block(16, 16);
    dim3 grid((NX + block.x - 1) / block.x, (NY + block.y - 1) / block.y);
    for (int step = 0; step < STEPS; step++) {
        advect<<<grid, block>>>(d_u, d_u, d_v, d_u2);
        advect<<<grid, block>>>(d_v, d_u, d_v, d_v2);
        advect<<<grid, block>>>(d_smoke, d_u, d_v, d_smoke2);
        std::swap(d_u, d_u2);
        std::swap(d_v, d_v2);
        std::swap(d_smoke, d_smoke2);
        add_buoyancy<<<grid, block>>>(d_v, d_smoke);
        divergence<<<grid, block>>>(d_u, d_v, d_div);
        for (int it = 0; it < JACOBI_ITERATIONS; it++) {
            jacobi<<<grid, block>>>(d_p, d_div, d_p2);
            std::swap(d_p, d_p2);
        }
        project<<<grid, block>>>(d_u, d_v, d_p);
        CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaDeviceSynchronize());

    CUDA_CHECK(cudaMemcpy(u.data(), d_u, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(v.data(), d_v, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(smoke.data(), d_smoke, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(p.data(), d_p, bytes, cudaMemcpyDeviceToHost));

    double kinetic = 0.0, top_speed = 0.0, smoke_sum = 0.0, smoke_max = 0.0, p_abs = 0.0, height = 0.0;
    for (int j = 0; j < NY; j++)
        for (int i = 0; i < NX; i++) {
            int c = j * NX + i;
            double e = u[c] * u[c] + v[c] * v[c];
            kinetic += 0.5 * e;
            top_speed = std::max(top_speed, std::sqrt(e));
            smoke_sum += smoke[c];
            smoke_max = std::max(smoke_max, smoke[c]);
            height += smoke[c] * j;
            p_abs += std::fabs(p[c]);
        }
    printf("kinetic energy   %.8e\n", kinetic);
    printf("top speed        %.8e\n", top_speed);
    printf("smoke            %.8e\n", smoke_sum);
    printf("smoke maximum    %.8e\n", smoke_max);
    printf("smoke height     %.8e\n", height / smoke_sum);
    printf("sum abs pressure %.8e\n", p_abs);
    for (int k = 1; k <= 6; k++) {                             // smoke and kinetic energy of vertical bands
        double s = 0.0, e = 0.0;
        for (int j = 0; j < NY; j++)
            for (int i = (k - 1) * NX / 6; i < k * NX / 6; i++) {
                s += smoke[j * NX + i];
                e += u[j * NX + i] * u[j * NX + i] + v[j * NX + i] * v[j * NX + i];
            }
        printf("band %.8e %.8e\n", s, e);
    }

    cudaFree(d_u); cudaFree(d_v); cudaFree(d_smoke);
    cudaFree(d_u2); cudaFree(d_v2); cudaFree(d_smoke2);
    cudaFree(d_p); cudaFree(d_p2); cudaFree(d_div);
    return 0;
}
