/*
 * Implicit vertical mixing of temperature in ocean columns.
 * Every time step: build one tridiagonal system per column, solve it with the Thomas algorithm.
 * Arrays are [column][level], double precision.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#define NCOL   20000
#define NLEV   128
#define NSTEP  4

static const double DT = 3600.0;   /* s */
static const double DZ = 5.0;      /* m */

#define AT(col, lev) ((long)(col) * NLEV + (lev))

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
        exit(1);
    }
}

/*
 * One warp per column, four levels per lane, all time steps in registers.
 * Within a lane the rows are eliminated against the last level of the lane above (xp) and the
 * lane's own last level (x3); the remaining 32 equations for x3 are solved by parallel cyclic
 * reduction with shuffles.  The matrix is the same in every step, so only the right hand side
 * is worked on inside the time loop.
 */
#define WARPS 4
#define FULL 0xffffffffu
#if NLEV != 128
#error "four levels per lane: NLEV must be 128"
#endif

__global__ void __launch_bounds__(WARPS * 32)
mix_columns(const double *__restrict__ kappa, const double *__restrict__ flux, const double *__restrict__ heat,
            double *__restrict__ temp, double dt, double dz, int nsteps)
{
    const int lane = threadIdx.x & 31;
    const int col = blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (col >= NCOL)
        return;                                   /* whole warp */

    const double2 *gk = reinterpret_cast<const double2 *>(kappa + AT(col, 4 * lane));
    double2 *gt = reinterpret_cast<double2 *>(temp + AT(col, 4 * lane));
    const double2 *gh = reinterpret_cast<const double2 *>(heat + 4 * lane);
    const double2 k01 = gk[0], k23 = gk[1], t01 = gt[0], t23 = gt[1], h01 = gh[0], h23 = gh[1];

    const double r = dt / (dz * dz);
    double knext = __shfl_down_sync(FULL, k01.x, 1);
    const double up0 = lane > 0 ? r * k01.x : 0.0;
    const double dn3 = lane < 31 ? r * knext : 0.0;
    const double up[5] = {up0, r * k01.y, r * k23.x, r * k23.y, dn3};   /* up[j+1] = down of row j */

    double x[4] = {t01.x, t01.y, t23.x, t23.y};
    double src[4] = {dt * h01.x, dt * h01.y, dt * h23.x, dt * h23.y};
    if (lane == 0)
        src[0] += dt * flux[col] / dz;

    /* local factorisation: x[j] + l[j] xp + u[j] x3 = d[j]  (j < 3),  x3 + l[3] xp + c3 xnext0 = d[3] */
    double inv[4], ai[4], l[4], cp[4], u[3];
    inv[0] = 1.0 / (1.0 + up[0] + up[1]);
    ai[0] = 0.0;
    l[0] = -up[0] * inv[0];
    cp[0] = -up[1] * inv[0];
    #pragma unroll
    for (int j = 1; j < 4; j++) {
        const double a = -up[j];
        inv[j] = 1.0 / (1.0 + up[j] + up[j + 1] - a * cp[j - 1]);
        ai[j] = a * inv[j];
        l[j] = -ai[j] * l[j - 1];
        cp[j] = -up[j + 1] * inv[j];
    }
    u[2] = cp[2];
    l[1] = l[1] - cp[1] * l[2];
    u[1] = -cp[1] * u[2];
    l[0] = l[0] - cp[0] * l[1];
    u[0] = -cp[0] * u[1];

    /* reduced system A x3(lane-1) + x3 + C x3(lane+1) = D; A is 0 in lane 0, C in lane 31 */
    const double ln0 = __shfl_down_sync(FULL, l[0], 1);
    const double un0 = __shfl_down_sync(FULL, u[0], 1);
    const double iden = 1.0 / (1.0 - cp[3] * ln0);
    const double cden = cp[3] * iden;
    double A = l[3] * iden;
    double C = -cden * un0;
    double pa[5], pc[5], pi[5];
    #pragma unroll
    for (int s = 0; s < 5; s++) {
        const double Au = __shfl_up_sync(FULL, A, 1 << s), Cu = __shfl_up_sync(FULL, C, 1 << s);
        const double Ad = __shfl_down_sync(FULL, A, 1 << s), Cd = __shfl_down_sync(FULL, C, 1 << s);
        pi[s] = 1.0 / (1.0 - A * Cu - C * Ad);
        pa[s] = A * pi[s];
        pc[s] = C * pi[s];
        A = -pa[s] * Au;
        C = -pc[s] * Cd;
    }

    for (int step = 0; step < nsteps; step++) {
        double d[4];
        d[0] = (x[0] + src[0]) * inv[0];
        #pragma unroll
        for (int j = 1; j < 4; j++)
            d[j] = (x[j] + src[j]) * inv[j] - ai[j] * d[j - 1];
        d[1] -= cp[1] * d[2];
        d[0] -= cp[0] * d[1];

        const double dn0 = __shfl_down_sync(FULL, d[0], 1);
        double D = d[3] * iden - cden * dn0;
        #pragma unroll
        for (int s = 0; s < 5; s++) {
            const double Du = __shfl_up_sync(FULL, D, 1 << s);
            const double Dd = __shfl_down_sync(FULL, D, 1 << s);
            D = D * pi[s] - pa[s] * Du - pc[s] * Dd;
        }
        const double xp = __shfl_up_sync(FULL, D, 1);     /* l[] is 0 in lane 0 */
        x[3] = D;
        #pragma unroll
        for (int j = 0; j < 3; j++)
            x[j] = d[j] - l[j] * xp - u[j] * D;
    }

    gt[0] = make_double2(x[0], x[1]);
    gt[1] = make_double2(x[2], x[3]);
}

int main(void)
{
    const long n = (long)NCOL * NLEV;
    const size_t bytes = n * sizeof(double);
    double *temp = (double *)malloc(bytes);
    double *kappa = (double *)malloc(bytes);
    double *flux = (double *)malloc(NCOL * sizeof(double));
    double heat[NLEV], profile[NLEV];

    for (int k = 0; k < NLEV; k++) {
        heat[k] = 2.0e-6 * exp(-k * DZ / 20.0);
        profile[k] = 4.0 + 16.0 * exp(-k * DZ / 150.0);
    }
    unsigned int s = 31415u;
    for (int col = 0; col < NCOL; col++) {
        s = s * 1664525u + 1013904223u;
        flux[col] = 1.0e-4 * ((double)(s >> 8) / 16777216.0 - 0.4);
        int mixed = 5 + (int)((s >> 10) % 60);
        for (int k = 0; k < NLEV; k++) {
            s = s * 1664525u + 1013904223u;
            double r = (double)(s >> 8) / 16777216.0;
            temp[AT(col, k)] = profile[k] + 0.5 * r;
            kappa[AT(col, k)] = (k < mixed ? 1.0e-2 : 1.0e-4) * (0.5 + r);
        }
    }

    double *d_temp, *d_kappa, *d_flux, *d_heat;
    check(cudaMalloc(&d_temp, bytes), "malloc");
    check(cudaMalloc(&d_kappa, bytes), "malloc");
    check(cudaMalloc(&d_flux, NCOL * sizeof(double)), "malloc");
    check(cudaMalloc(&d_heat, sizeof(heat)), "malloc");
    check(cudaMemcpy(d_temp, temp, bytes, cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_kappa, kappa, bytes, cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_flux, flux, NCOL * sizeof(double), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_heat, heat, sizeof(heat), cudaMemcpyHostToDevice), "copy");

    mix_columns<<<(NCOL + WARPS - 1) / WARPS, WARPS * 32>>>(d_kappa, d_flux, d_heat, d_temp, DT, DZ, NSTEP);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaMemcpy(temp, d_temp, bytes, cudaMemcpyDeviceToHost), "copy");

    double sum = 0, surface = 0, gradient = 0, tmax = -1e300, tmin = 1e300, weighted = 0;
    for (int col = 0; col < NCOL; col++) {
        surface += temp[AT(col, 0)] * (1 + col % 4);
        for (int k = 0; k < NLEV; k++) {
            double t = temp[AT(col, k)];
            sum += t;
            weighted += t * ((k * 5 + col) % 13);
            if (k > 0) gradient += fabs(t - temp[AT(col, k - 1)]);
            if (t > tmax) tmax = t;
            if (t < tmin) tmin = t;
        }
    }
    printf("heat %.4e weighted %.4e surface %.4e gradient %.4e range %.3f %.3f\n",
           sum, weighted, surface, gradient, tmin, tmax);

    cudaFree(d_temp);
    cudaFree(d_kappa);
    cudaFree(d_flux);
    cudaFree(d_heat);
    free(temp);
    free(kappa);
    free(flux);
    return 0;
}
