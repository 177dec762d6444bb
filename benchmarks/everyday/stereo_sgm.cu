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

/* 9x7 census, 62 bits */
__global__ void census_kernel(const unsigned char *img, unsigned long long *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int dx, dy;
    unsigned long long bits = 0;
    unsigned char c;

    if (x >= W || y >= H)
        return;
    c = img[y * W + x];
    for (dy = -3; dy <= 3; dy++) {
        for (dx = -4; dx <= 4; dx++) {
            int xx = CLAMP(x + dx, 0, W - 1);
            int yy = CLAMP(y + dy, 0, H - 1);
            if (dx == 0 && dy == 0)
                continue;
            bits = (bits << 1) | (img[yy * W + xx] < c ? 1ull : 0ull);
        }
    }
    out[y * W + x] = bits;
}

__global__ void cost_kernel(const unsigned long long *cl,
                            const unsigned long long *cr,
                            unsigned char *cost)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y;
    int d = blockIdx.z;

    if (x >= W)
        return;
    if (x - d >= 0)
        cost[(y * W + x) * D + d] =
            (unsigned char)__popcll(cl[y * W + x] ^ cr[y * W + x - d]);
    else
        cost[(y * W + x) * D + d] = COST_OUT;
}

/* one block of D threads walks one path */
__global__ void aggregate_kernel(const unsigned char *cost, unsigned short *sum,
                                 int dx, int dy)
{
    __shared__ int prev[D + 2];
    __shared__ int red[D];
    int d = threadIdx.x;
    int x, y, n, i, s;

    if (dx != 0) {
        x = dx > 0 ? 0 : W - 1;
        y = blockIdx.x;
        n = W;
    } else {
        x = blockIdx.x;
        y = dy > 0 ? 0 : H - 1;
        n = H;
    }

    if (d == 0) {
        prev[0] = 100000;
        prev[D + 1] = 100000;
    }

    for (i = 0; i < n; i++) {
        int idx = (y * W + x) * D + d;
        int l = cost[idx];

        if (i > 0) {
            int m, best;
            red[d] = prev[d + 1];
            __syncthreads();
            for (s = D / 2; s > 0; s >>= 1) {
                if (d < s)
                    red[d] = min(red[d], red[d + s]);
                __syncthreads();
            }
            m = red[0];
            best = prev[d + 1];
            best = min(best, prev[d] + P1);
            best = min(best, prev[d + 2] + P1);
            best = min(best, m + P2);
            l += best - m;
        }
        __syncthreads();
        prev[d + 1] = l;
        sum[idx] += l;
        __syncthreads();
        x += dx;
        y += dy;
    }
}

__global__ void wta_kernel(const unsigned short *sum, float *disp,
                           unsigned short *minsum)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int d, best = 0;
    const unsigned short *s;
    float r;

    if (x >= W || y >= H)
        return;
    s = sum + (y * W + x) * D;
    for (d = 1; d < D; d++)
        if (s[d] < s[best])
            best = d;
    r = (float)best;
    if (best > 0 && best < D - 1) {
        int a = s[best - 1], b = s[best], c = s[best + 1];
        int den = a - 2 * b + c;
        if (den > 0)
            r += 0.5f * (float)(a - c) / (float)den;
    }
    disp[y * W + x] = r;
    minsum[y * W + x] = s[best];
}

static void stereo(const unsigned char *d_left, const unsigned char *d_right,
                   float *d_disp, unsigned short *d_min)
{
    unsigned long long *d_cl, *d_cr;
    unsigned char *d_cost;
    unsigned short *d_sum;
    dim3 blk(16, 16), grd((W + 15) / 16, (H + 15) / 16);

    CUCHECK(cudaMalloc(&d_cl, NPIX * sizeof(*d_cl)));
    CUCHECK(cudaMalloc(&d_cr, NPIX * sizeof(*d_cr)));
    CUCHECK(cudaMalloc(&d_cost, (size_t)NPIX * D));
    CUCHECK(cudaMalloc(&d_sum, (size_t)NPIX * D * sizeof(*d_sum)));
    CUCHECK(cudaMemset(d_sum, 0, (size_t)NPIX * D * sizeof(*d_sum)));

    census_kernel<<<grd, blk>>>(d_left, d_cl);
    census_kernel<<<grd, blk>>>(d_right, d_cr);
    cost_kernel<<<dim3((W + 127) / 128, H, D), 128>>>(d_cl, d_cr, d_cost);
    aggregate_kernel<<<H, D>>>(d_cost, d_sum, 1, 0);
    aggregate_kernel<<<H, D>>>(d_cost, d_sum, -1, 0);
    aggregate_kernel<<<W, D>>>(d_cost, d_sum, 0, 1);
    aggregate_kernel<<<W, D>>>(d_cost, d_sum, 0, -1);
    wta_kernel<<<grd, blk>>>(d_sum, d_disp, d_min);
    CUCHECK(cudaGetLastError());
    CUCHECK(cudaDeviceSynchronize());

    CUCHECK(cudaFree(d_cl));
    CUCHECK(cudaFree(d_cr));
    CUCHECK(cudaFree(d_cost));
    CUCHECK(cudaFree(d_sum));
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
