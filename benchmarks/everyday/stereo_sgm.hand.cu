/*
 * stereo_sgm - dense stereo by census transform and semi-global matching
 *              (4 paths), winner takes all with sub-pixel interpolation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#define W        640
#define H        480
#define D        64
#define NPIX     (W * H)
#define P1       7
#define P2       86
#define COST_OUT 63   /* matching cost where x - d leaves the image */

#define CUCHECK(call)                                                        \
    do {                                                                     \
        cudaError_t e_ = (call);                                             \
        if (e_ != cudaSuccess) {                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,               \
                    cudaGetErrorString(e_));                                 \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

#define CLAMP(v, lo, hi) ((v) < (lo) ? (lo) : ((v) > (hi) ? (hi) : (v)))

/*=== device part ===*/

/* 9x7 census, 62 bits; both images in one launch, image tile staged in shared
 * memory, 32x8 pixels per block */
__global__ void __launch_bounds__(256)
census_kernel(const unsigned char *__restrict__ left,
              const unsigned char *__restrict__ right,
              unsigned long long *__restrict__ out_l,
              unsigned long long *__restrict__ out_r)
{
    __shared__ unsigned char tile[8 + 6][32 + 8];
    const unsigned char *img = blockIdx.z ? right : left;
    unsigned long long *out = blockIdx.z ? out_r : out_l;
    const int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8;
    const int tx = threadIdx.x & 31, ty = threadIdx.x >> 5;

    for (int i = threadIdx.x; i < 14 * 40; i += 256) {
        int r = i / 40, c = i - r * 40;
        int yy = CLAMP(y0 + r - 3, 0, H - 1);
        int xx = CLAMP(x0 + c - 4, 0, W - 1);
        tile[r][c] = img[yy * W + xx];
    }
    __syncthreads();

    const int c = tile[ty + 3][tx + 4];
    unsigned int hi = 0, lo = 0;      /* first 31 and last 31 bits */
    int n = 0;
#pragma unroll
    for (int r = 0; r < 7; r++) {
#pragma unroll
        for (int k = 0; k < 9; k++) {
            if (r == 3 && k == 4)
                continue;
            unsigned int bit = tile[ty + r][tx + k] < c ? 1u : 0u;
            if (n < 31)
                hi = (hi << 1) | bit;
            else
                lo = (lo << 1) | bit;
            n++;
        }
    }
    out[(y0 + ty) * W + x0 + tx] = ((unsigned long long)hi << 31) | lo;
}

/* 64 pixels of one row per block; a thread makes 16 disparities = one uint4 */
#define SLOT(i) ((i) + 4 * ((i) >> 4))   /* keeps the 4 groups of a pixel on other banks */

__global__ void __launch_bounds__(256)
cost_kernel(const unsigned long long *__restrict__ cl,
            const unsigned long long *__restrict__ cr, uint4 *__restrict__ cost)
{
    __shared__ unsigned long long rt[SLOT(126) + 1];
    const int x0 = blockIdx.x * 64, y = blockIdx.y;

    if (threadIdx.x < 127) {
        int xx = x0 - 63 + (int)threadIdx.x;
        rt[SLOT(threadIdx.x)] = xx >= 0 ? cr[y * W + xx] : 0ull;
    }
    __syncthreads();

    const int p = threadIdx.x >> 2, g = threadIdx.x & 3;
    const int x = x0 + p;
    const unsigned long long c = cl[y * W + x];
    unsigned int w[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        w[q] = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            int d = g * 16 + q * 4 + b;
            int i = p - d + 63;
            unsigned int v = (unsigned int)__popcll(c ^ rt[SLOT(i)]);
            if (x - d < 0)
                v = COST_OUT;
            w[q] |= v << (8 * b);
        }
    }
    cost[(y * W + x) * (D / 16) + g] = make_uint4(w[0], w[1], w[2], w[3]);
}

/* A warp walks one path; a lane holds two disparities as packed 16-bit values.
 * All four directions run in one launch, each into a byte volume of its own
 * (path costs stay below COST_OUT + P2 < 256). Costs are fetched PF steps ahead. */
#define PF    8
#define BIG   0x3fff3fffu
#define NPATH (2 * H + 2 * W)

__global__ void __launch_bounds__(64)
aggregate_kernel(const unsigned short *__restrict__ cost, unsigned short *__restrict__ vol)
{
    const int lane = threadIdx.x & 31;
    int path = blockIdx.x * 2 + (threadIdx.x >> 5);
    int start, step, n, dir;

    if (path < 2 * H) {               /* the long ones first */
        dir = path & 1;
        int y = path >> 1;
        n = W;
        start = dir ? y * W + W - 1 : y * W;
        step = dir ? -1 : 1;
    } else {
        path -= 2 * H;
        dir = path >= W;              /* neighbouring columns run side by side */
        int x = dir ? path - W : path;
        n = H;
        start = dir ? (H - 1) * W + x : x;
        step = dir ? -W : W;
        dir += 2;
    }
    step *= D / 2;
    const unsigned short *src = cost + start * (D / 2) + lane;
    unsigned short *dst = vol + (size_t)dir * NPIX * (D / 2) + start * (D / 2) + lane;

    unsigned int ahead[PF];
#pragma unroll
    for (int k = 0; k < PF; k++)
        ahead[k] = src[k * step];
    src += PF * step;

    unsigned int v = 0;
    for (int i = 0; i < n; i += PF) {
#pragma unroll
        for (int k = 0; k < PF; k++) {
            unsigned int b = ahead[k];
            unsigned int c = (b & 0xffu) | ((b & 0xff00u) << 8);
            if (i + PF < n)
                ahead[k] = src[k * step];
            /* with v = 0 everywhere (start) best and m are 0: L = C */
            unsigned int m = __reduce_min_sync(0xffffffffu, min(v & 0xffffu, v >> 16));
            unsigned int up = __shfl_up_sync(0xffffffffu, v, 1);
            unsigned int dn = __shfl_down_sync(0xffffffffu, v, 1);
            if (lane == 0)
                up = BIG;
            if (lane == 31)
                dn = BIG;
            unsigned int lo = __byte_perm(up, v, 0x5432);   /* L[d-1] */
            unsigned int hi = __byte_perm(v, dn, 0x5432);   /* L[d+1] */
            unsigned int best = __vminu2(lo, hi) + P1 * 0x10001u;
            best = __vminu2(best, v);
            best = __vminu2(best, (m + P2) * 0x10001u);
            v = c + best - m * 0x10001u;
            *dst = (unsigned short)((v & 0xffu) | ((v >> 8) & 0xff00u));
            dst += step;
        }
        src += PF * step;
    }
}

/* 4 lanes per pixel, 16 disparities each */
__global__ void __launch_bounds__(256)
wta_kernel(const uint4 *__restrict__ vol, float *__restrict__ disp,
           unsigned short *__restrict__ minsum)
{
    const int t = blockIdx.x * 256 + threadIdx.x;
    const int pix = t >> 2, g = t & 3;
    unsigned int ev[4] = {0, 0, 0, 0}, od[4] = {0, 0, 0, 0};

#pragma unroll
    for (int r = 0; r < 4; r++) {
        uint4 q = vol[(size_t)r * NPIX * (D / 16) + t];
        const unsigned int w[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            ev[k] += w[k] & 0x00ff00ffu;
            od[k] += (w[k] >> 8) & 0x00ff00ffu;
        }
    }
    unsigned int best = 0xffffffffu;            /* sum, then disparity */
#pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned int d = g * 16 + k * 4;
        best = min(best, ((ev[k] & 0xffffu) << 6) | d);
        best = min(best, ((od[k] & 0xffffu) << 6) | (d + 1));
        best = min(best, ((ev[k] >> 16) << 6) | (d + 2));
        best = min(best, ((od[k] >> 16) << 6) | (d + 3));
    }
    best = min(best, __shfl_xor_sync(0xffffffffu, best, 1));
    best = min(best, __shfl_xor_sync(0xffffffffu, best, 2));

    if (g == 0) {
        int d = best & 63, b = best >> 6;
        float r = (float)d;
        if (d > 0 && d < D - 1) {
            const unsigned char *bytes = (const unsigned char *)vol + (size_t)pix * D + d;
            int a = 0, c = 0;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                a += bytes[(size_t)k * NPIX * D - 1];
                c += bytes[(size_t)k * NPIX * D + 1];
            }
            int den = a - 2 * b + c;
            if (den > 0)
                r += 0.5f * (float)(a - c) / (float)den;
        }
        disp[pix] = r;
        minsum[pix] = (unsigned short)b;
    }
}

static void stereo(const unsigned char *d_left, const unsigned char *d_right,
                   float *d_disp, unsigned short *d_min)
{
    unsigned long long *d_cl, *d_cr;
    unsigned char *d_cost, *d_vol;

    CUCHECK(cudaMalloc(&d_cl, NPIX * sizeof(*d_cl)));
    CUCHECK(cudaMalloc(&d_cr, NPIX * sizeof(*d_cr)));
    CUCHECK(cudaMalloc(&d_cost, (size_t)NPIX * D));
    CUCHECK(cudaMalloc(&d_vol, (size_t)NPIX * D * 4));

    census_kernel<<<dim3(W / 32, H / 8, 2), 256>>>(d_left, d_right, d_cl, d_cr);
    cost_kernel<<<dim3(W / 64, H), 256>>>(d_cl, d_cr, (uint4 *)d_cost);
    aggregate_kernel<<<NPATH / 2, 64>>>((const unsigned short *)d_cost, (unsigned short *)d_vol);
    wta_kernel<<<NPIX * 4 / 256, 256>>>((const uint4 *)d_vol, d_disp, d_min);
    CUCHECK(cudaGetLastError());
    CUCHECK(cudaDeviceSynchronize());

    CUCHECK(cudaFree(d_cl));
    CUCHECK(cudaFree(d_cr));
    CUCHECK(cudaFree(d_cost));
    CUCHECK(cudaFree(d_vol));
}

/*=== host part ===*/

static unsigned int lcg_state = 12345u;

static unsigned int lcg(void)
{
    lcg_state = lcg_state * 1664525u + 1013904223u;
    return lcg_state >> 8;
}

static int true_disparity(int x, int y)
{
    int d = 10 + (x + 2 * y) / 80;                 /* slanted background */
    if (x > 150 && x < 330 && y > 90 && y < 300)
        d = 34;                                    /* fronto-parallel box */
    if ((x - 460) * (x - 460) + (y - 260) * (y - 260) < 110 * 110)
        d = 45 + (x - 460) / 12;                   /* slanted disc */
    return d;
}

int main(void)
{
    unsigned char *left = (unsigned char *)malloc(NPIX);
    unsigned char *right = (unsigned char *)malloc(NPIX);
    float *disp = (float *)malloc(NPIX * sizeof(float));
    unsigned short *mins = (unsigned short *)malloc(NPIX * sizeof(unsigned short));
    unsigned char *d_left, *d_right;
    float *d_disp;
    unsigned short *d_min;
    int x, y, i, good = 0;
    int band[8];
    double s = 0, ws = 0, ms = 0, wms = 0;

    for (y = 0; y < H; y++)
        for (x = 0; x < W; x++) {
            int tex = (int)(lcg() % 120u) + 40 + (x / 7 + y / 5) % 60;
            right[y * W + x] = (unsigned char)tex;
        }
    for (y = 0; y < H; y++)
        for (x = 0; x < W; x++) {
            int xr = CLAMP(x - true_disparity(x, y), 0, W - 1);
            int v = right[y * W + xr] + (int)(lcg() % 17u) - 8;
            left[y * W + x] = (unsigned char)CLAMP(v, 0, 255);
        }

    CUCHECK(cudaMalloc(&d_left, NPIX));
    CUCHECK(cudaMalloc(&d_right, NPIX));
    CUCHECK(cudaMalloc(&d_disp, NPIX * sizeof(float)));
    CUCHECK(cudaMalloc(&d_min, NPIX * sizeof(unsigned short)));
    CUCHECK(cudaMemcpy(d_left, left, NPIX, cudaMemcpyHostToDevice));
    CUCHECK(cudaMemcpy(d_right, right, NPIX, cudaMemcpyHostToDevice));

    stereo(d_left, d_right, d_disp, d_min);

    CUCHECK(cudaMemcpy(disp, d_disp, NPIX * sizeof(float), cudaMemcpyDeviceToHost));
    CUCHECK(cudaMemcpy(mins, d_min, NPIX * sizeof(unsigned short), cudaMemcpyDeviceToHost));

    for (i = 0; i < 8; i++)
        band[i] = 0;
    for (y = 0; y < H; y++)
        for (x = 0; x < W; x++) {
            i = y * W + x;
            s += disp[i];
            ws += disp[i] * (1 + i % 37);
            ms += mins[i];
            wms += (double)mins[i] * (1 + i % 41);
            band[CLAMP((int)(disp[i] + 0.5f) / 8, 0, 7)]++;
            if (fabsf(disp[i] - true_disparity(x, y)) <= 1.0f)
                good++;
        }
    printf("disparity mean %.4f weighted %.5e\n", s / NPIX, ws);
    printf("min cost mean %.4f weighted %.5e\n", ms / NPIX, wms);
    printf("within one pixel: %.2f %%\n", 100.0 * good / NPIX);
    printf("bands:");
    for (i = 0; i < 8; i++)
        printf(" %d", band[i]);
    printf("\n");

    CUCHECK(cudaFree(d_left));
    CUCHECK(cudaFree(d_right));
    CUCHECK(cudaFree(d_disp));
    CUCHECK(cudaFree(d_min));
    free(left);
    free(right);
    free(disp);
    free(mins);
    return 0;
}
