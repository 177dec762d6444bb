/*
 * Grid posterior of a GARCH(1,1) model with Student-t innovations, for a panel
 * of daily return series (variance targeting, so only alpha and the persistence
 * p = alpha + beta are free).
 *
 *   h[0]   = s2
 *   h[t+1] = s2 (1 - p) + alpha e[t]^2 + beta h[t]
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#define NSERIES 4096
#define NDAYS   640
#define NALPHA  16
#define NPERS   24
#define NGRID   (NALPHA * NPERS)
#define NU      6.0f

#define ALPHA_LO 0.02f
#define ALPHA_HI 0.20f
#define PERS_LO  0.80f
#define PERS_HI  0.99f

typedef struct {
    float alpha;      /* posterior means */
    float beta;
    float forecast;   /* variance of the next day */
    float evidence;   /* log marginal likelihood, up to a constant */
} Posterior;

__host__ __device__ inline float grid_alpha(int g)
{
    return ALPHA_LO + (ALPHA_HI - ALPHA_LO) * (g / NPERS) / (NALPHA - 1);
}

__host__ __device__ inline float grid_pers(int g)
{
    return PERS_LO + (PERS_HI - PERS_LO) * (g % NPERS) / (NPERS - 1);
}

__device__ float log_prior(float alpha, float pers)
{
    return logf(alpha) - 8.0f * alpha + 4.0f * logf(pers) + 0.5f * logf(1.0f - pers);
}

__global__ void moments(const float *ret, float *mean, float *var)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= NSERIES) return;

    float m = 0.0f;
    for (int t = 0; t < NDAYS; t++)
        m += ret[s * NDAYS + t];
    m /= NDAYS;

    float v = 0.0f;
    for (int t = 0; t < NDAYS; t++) {
        float d = ret[s * NDAYS + t] - m;
        v += d * d;
    }
    mean[s] = m;
    var[s] = v / (NDAYS - 1);
}

__global__ void log_likelihood(const float *ret, const float *mean, const float *var,
                               float *loglik, float *hnext)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= NSERIES * NGRID) return;
    int s = idx / NGRID;
    int g = idx % NGRID;

    float alpha = grid_alpha(g);
    float pers = grid_pers(g);
    float beta = pers - alpha;
    float omega = var[s] * (1.0f - pers);

    float h = var[s];
    float ll = 0.0f;
    for (int t = 0; t < NDAYS; t++) {
        float e = ret[s * NDAYS + t] - mean[s];
        ll += -0.5f * logf(h) - 0.5f * (NU + 1.0f) * logf(1.0f + e * e / ((NU - 2.0f) * h));
        h = omega + alpha * e * e + beta * h;
    }
    loglik[idx] = ll + log_prior(alpha, pers);
    hnext[idx] = h;
}

__global__ void posterior(const float *loglik, const float *hnext, Posterior *post)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= NSERIES) return;

    float best = -1e30f;
    for (int g = 0; g < NGRID; g++)
        best = fmaxf(best, loglik[s * NGRID + g]);

    float z = 0.0f, a = 0.0f, b = 0.0f, f = 0.0f;
    for (int g = 0; g < NGRID; g++) {
        float w = expf(loglik[s * NGRID + g] - best);
        z += w;
        a += w * grid_alpha(g);
        b += w * (grid_pers(g) - grid_alpha(g));
        f += w * hnext[s * NGRID + g];
    }
    post[s].alpha = a / z;
    post[s].beta = b / z;
    post[s].forecast = f / z;
    post[s].evidence = best + logf(z / NGRID);
}

static void check(cudaError_t err, const char *what)
{
    if (err != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
        exit(EXIT_FAILURE);
    }
}

static void estimate(const float *d_ret, Posterior *d_post)
{
    float *d_mean, *d_var, *d_ll, *d_h;
    check(cudaMalloc(&d_mean, NSERIES * sizeof(float)), "malloc mean");
    check(cudaMalloc(&d_var, NSERIES * sizeof(float)), "malloc var");
    check(cudaMalloc(&d_ll, NSERIES * NGRID * sizeof(float)), "malloc ll");
    check(cudaMalloc(&d_h, NSERIES * NGRID * sizeof(float)), "malloc h");

    int threads = 128;
    moments<<<(NSERIES + threads - 1) / threads, threads>>>(d_ret, d_mean, d_var);
    log_likelihood<<<(NSERIES * NGRID + threads - 1) / threads, threads>>>(d_ret, d_mean, d_var, d_ll, d_h);
    posterior<<<(NSERIES + threads - 1) / threads, threads>>>(d_ll, d_h, d_post);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "kernels");

    cudaFree(d_mean);
    cudaFree(d_var);
    cudaFree(d_ll);
    cudaFree(d_h);
}

static unsigned int rng_state = 77u;

static float uniform01(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 17;
    rng_state ^= rng_state << 5;
    return (rng_state >> 8) * (1.0f / 16777216.0f);
}

int main(void)
{
    size_t bytes = (size_t)NSERIES * NDAYS * sizeof(float);
    float *ret = (float *)malloc(bytes);
    Posterior *post = (Posterior *)malloc(NSERIES * sizeof(Posterior));

    /* simulated returns in percent */
    for (int s = 0; s < NSERIES; s++) {
        float alpha = 0.04f + 0.10f * uniform01();
        float beta = 0.86f + 0.10f * uniform01() - alpha;
        float s2 = 0.3f + 3.0f * uniform01();
        float h = s2;
        for (int t = 0; t < NDAYS; t++) {
            float u = 0.0f;
            for (int k = 0; k < 4; k++) u += uniform01();
            float z = (u - 2.0f) * 1.7320508f;
            if (uniform01() < 0.02f) z *= 2.0f;
            float e = sqrtf(h) * z;
            ret[(size_t)s * NDAYS + t] = 0.05f + e;
            h = s2 * (1.0f - alpha - beta) + alpha * e * e + beta * h;
        }
    }

    float *d_ret;
    Posterior *d_post;
    check(cudaMalloc(&d_ret, bytes), "malloc returns");
    check(cudaMalloc(&d_post, NSERIES * sizeof(Posterior)), "malloc posterior");
    check(cudaMemcpy(d_ret, ret, bytes, cudaMemcpyHostToDevice), "copy in");

    estimate(d_ret, d_post);

    check(cudaMemcpy(post, d_post, NSERIES * sizeof(Posterior), cudaMemcpyDeviceToHost), "copy out");

    double a = 0, b = 0, f = 0, ev = 0, f2 = 0;
    for (int s = 0; s < NSERIES; s++) {
        a += post[s].alpha;
        b += post[s].beta;
        f += post[s].forecast;
        f2 += post[s].forecast * (double)post[s].forecast;
        ev += post[s].evidence;
    }
    printf("mean alpha     %.4f\n", a / NSERIES);
    printf("mean beta      %.4f\n", b / NSERIES);
    printf("mean forecast  %.4f  rms %.4f\n", f / NSERIES, sqrt(f2 / NSERIES));
    printf("mean evidence  %.3f\n", ev / NSERIES);
    for (int s = 5; s < NSERIES; s += 1361)
        printf("series %4d: alpha %.4f beta %.4f forecast %.4f evidence %.2f\n", s,
               post[s].alpha, post[s].beta, post[s].forecast, post[s].evidence);

    cudaFree(d_ret);
    cudaFree(d_post);
    free(ret);
    free(post);
    return 0;
}
