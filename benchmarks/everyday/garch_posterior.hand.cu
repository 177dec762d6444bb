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

/*
 * One block per series, everything fused: moments, likelihood and posterior.
 * Squared residuals, in units of the series variance, live in shared memory and
 * are read as float4 broadcasts; each thread runs three grid points at once.
 * The two logarithms and the division of a day are
 *   -1/2 log h - (nu+1)/2 log(1 + e2/(k h))
 *     = nu/2 log h + (nu+1)/2 log k - (nu+1)/2 log(k h + e2),   k = nu - 2,
 * and products over 8 days go into one log2 each.
 * Range in units of the variance: 0.01 <= h, and e2 <= NDAYS, so
 * (k h + e2)^8 < (5 * 640)^8 ~ 1e28 and h^8 >= 1e-16.
 */
#define NTHR 128
#define PPT  (NGRID / NTHR)
#define NWARP (NTHR / 32)
#define LN2  0.69314718055994531f

static_assert(NGRID % NTHR == 0, "grid points per thread");
static_assert(NDAYS % 8 == 0 && NDAYS % NTHR == 0, "days");

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__global__ void __launch_bounds__(NTHR) garch_fused(const float *__restrict__ ret, Posterior *__restrict__ post)
{
    __shared__ float4 e2s[NDAYS / 4];
    __shared__ float red[6][NWARP];
    float *e2 = reinterpret_cast<float *>(e2s);
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const float *r = ret + (size_t)blockIdx.x * NDAYS;

    float x[NDAYS / NTHR];
    float m = 0.0f;
#pragma unroll
    for (int i = 0; i < NDAYS / NTHR; i++) {
        x[i] = r[tid + i * NTHR];
        m += x[i];
    }
    m = warp_sum(m);
    if (lane == 0) red[0][warp] = m;
    __syncthreads();
    m = 0.0f;
#pragma unroll
    for (int i = 0; i < NWARP; i++) m += red[0][i];
    m *= 1.0f / NDAYS;

    float v = 0.0f;
#pragma unroll
    for (int i = 0; i < NDAYS / NTHR; i++) {
        x[i] -= m;
        x[i] *= x[i];
        v += x[i];
    }
    v = warp_sum(v);
    if (lane == 0) red[1][warp] = v;
    __syncthreads();
    v = 0.0f;
#pragma unroll
    for (int i = 0; i < NWARP; i++) v += red[1][i];
    v *= 1.0f / (NDAYS - 1);
    const float inv = 1.0f / v;
#pragma unroll
    for (int i = 0; i < NDAYS / NTHR; i++) e2[tid + i * NTHR] = x[i] * inv;
    __syncthreads();

    const float K = NU - 2.0f;
    float al[PPT], be[PPT], om[PPT], h[PPT], lh[PPT], lq[PPT];
#pragma unroll
    for (int j = 0; j < PPT; j++) {
        int g = tid + j * NTHR;
        al[j] = grid_alpha(g);
        float p = grid_pers(g);
        be[j] = p - al[j];
        om[j] = 1.0f - p;
        h[j] = 1.0f;
        lh[j] = lq[j] = 0.0f;
    }

    for (int t = 0; t < NDAYS / 4; t += 2) {
        const float4 u = e2s[t], w = e2s[t + 1];
        const float q[8] = {u.x, u.y, u.z, u.w, w.x, w.y, w.z, w.w};
        float ph[PPT], pq[PPT];
#pragma unroll
        for (int j = 0; j < PPT; j++) ph[j] = pq[j] = 1.0f;
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int j = 0; j < PPT; j++) {
                ph[j] *= h[j];
                pq[j] *= fmaf(K, h[j], q[k]);
                h[j] = fmaf(be[j], h[j], fmaf(al[j], q[k], om[j]));
            }
        }
#pragma unroll
        for (int j = 0; j < PPT; j++) {
            lh[j] += __log2f(ph[j]);
            lq[j] += __log2f(pq[j]);
        }
    }

    /* back to the scale of the data: sum of -1/2 log h gains -NDAYS/2 log v */
    const float shift = NDAYS * (0.5f * (NU + 1.0f) * logf(K) - 0.5f * logf(v));
    float ll[PPT];
    float best = -1e30f;
#pragma unroll
    for (int j = 0; j < PPT; j++) {
        ll[j] = LN2 * (0.5f * NU * lh[j] - 0.5f * (NU + 1.0f) * lq[j]) + shift
              + log_prior(al[j], al[j] + be[j]);
        best = fmaxf(best, ll[j]);
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, o));
    if (lane == 0) red[0][warp] = best;      /* red[0] was last read before two barriers */
    __syncthreads();
#pragma unroll
    for (int i = 0; i < NWARP; i++) best = fmaxf(best, red[0][i]);

    float z = 0.0f, a = 0.0f, b = 0.0f, f = 0.0f;
#pragma unroll
    for (int j = 0; j < PPT; j++) {
        float w = __expf(ll[j] - best);
        z += w;
        a += w * al[j];
        b += w * be[j];
        f += w * h[j];
    }
    z = warp_sum(z);
    a = warp_sum(a);
    b = warp_sum(b);
    f = warp_sum(f);
    if (lane == 0) {
        red[2][warp] = z;
        red[3][warp] = a;
        red[4][warp] = b;
        red[5][warp] = f;
    }
    __syncthreads();
    if (tid == 0) {
        z = a = b = f = 0.0f;
        for (int i = 0; i < NWARP; i++) {
            z += red[2][i];
            a += red[3][i];
            b += red[4][i];
            f += red[5][i];
        }
        Posterior p;
        p.alpha = a / z;
        p.beta = b / z;
        p.forecast = v * f / z;
        p.evidence = best + logf(z / NGRID);
        post[blockIdx.x] = p;
    }
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
    garch_fused<<<NSERIES, NTHR>>>(d_ret, d_post);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "kernels");
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
