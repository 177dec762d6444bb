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

/* kappa[lev] is the diffusivity at the interface above level lev; none above level 0 */
__global__ void build_system(const double *kappa, const double *temp, const double *flux, const double *heat,
                             double *a, double *b, double *c, double *d, double dt, double dz)
{
    int lev = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (lev < NLEV && col < NCOL) {
        long i = AT(col, lev);
        double up   = lev > 0        ? dt * kappa[i] / (dz * dz)     : 0.0;
        double down = lev < NLEV - 1 ? dt * kappa[i + 1] / (dz * dz) : 0.0;
        a[i] = -up;
        c[i] = -down;
        b[i] = 1.0 + up + down;
        d[i] = temp[i] + dt * heat[lev];
        if (lev == 0)
            d[i] += dt * flux[col] / dz;
    }
}

/* one thread per column */
__global__ void thomas(const double *a, const double *b, const double *c, const double *d,
                       double *cp, double *dp, double *temp)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= NCOL)
        return;

    cp[AT(col, 0)] = c[AT(col, 0)] / b[AT(col, 0)];
    dp[AT(col, 0)] = d[AT(col, 0)] / b[AT(col, 0)];
    for (int k = 1; k < NLEV; k++) {
        double m = b[AT(col, k)] - a[AT(col, k)] * cp[AT(col, k - 1)];
        cp[AT(col, k)] = c[AT(col, k)] / m;
        dp[AT(col, k)] = (d[AT(col, k)] - a[AT(col, k)] * dp[AT(col, k - 1)]) / m;
    }
    temp[AT(col, NLEV - 1)] = dp[AT(col, NLEV - 1)];
    for (int k = NLEV - 2; k >= 0; k--)
        temp[AT(col, k)] = dp[AT(col, k)] - cp[AT(col, k)] * temp[AT(col, k + 1)];
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

    double *d_temp, *d_kappa, *d_flux, *d_heat, *d_a, *d_b, *d_c, *d_d, *d_cp, *d_dp;
    check(cudaMalloc(&d_temp, bytes), "malloc");
    check(cudaMalloc(&d_kappa, bytes), "malloc");
    check(cudaMalloc(&d_flux, NCOL * sizeof(double)), "malloc");
    check(cudaMalloc(&d_heat, sizeof(heat)), "malloc");
    check(cudaMalloc(&d_a, bytes), "malloc");
    check(cudaMalloc(&d_b, bytes), "malloc");
    check(cudaMalloc(&d_c, bytes), "malloc");
    check(cudaMalloc(&d_d, bytes), "malloc");
    check(cudaMalloc(&d_cp, bytes), "malloc");
    check(cudaMalloc(&d_dp, bytes), "malloc");
    check(cudaMemcpy(d_temp, temp, bytes, cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_kappa, kappa, bytes, cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_flux, flux, NCOL * sizeof(double), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(d_heat, heat, sizeof(heat), cudaMemcpyHostToDevice), "copy");

    dim3 tb(32, 4), gb((NLEV + 31) / 32, (NCOL + 3) / 4);
    for (int step = 0; step < NSTEP; step++) {
        build_system<<<gb, tb>>>(d_kappa, d_temp, d_flux, d_heat, d_a, d_b, d_c, d_d, DT, DZ);
        thomas<<<(NCOL + 127) / 128, 128>>>(d_a, d_b, d_c, d_d, d_cp, d_dp, d_temp);
    }
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
    cudaFree(d_a);
    cudaFree(d_b);
    cudaFree(d_c);
    cudaFree(d_d);
    cudaFree(d_cp);
    cudaFree(d_dp);
    free(temp);
    free(kappa);
    free(flux);
    return 0;
}
