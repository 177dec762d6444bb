// Denoise a float image: 3x3 median (salt and pepper), then a bilateral filter.
#include <cstdio>
#include <cmath>
#include <cstdlib>

typedef struct {
    int width;
    int height;
    float *pixels;
} Image;

#define RADIUS 4
#define SIGMA_S 2.5f
#define SIGMA_R 0.15f

// Both filters in one kernel: a 64 x 32 tile, the medians (with a halo of 4) only in shared memory.
#define TX 64
#define TY 32
#define THREADS 256
#define MW (TX + 2 * RADIUS)        // 72 x 40 medians
#define MH (TY + 2 * RADIUS)
#define IW (MW + 2)                 // 74 x 42 input pixels
#define IH (MH + 2)
#define RUN 8                       // rows per thread
#define OUTSIDE 1e15f               // its weight underflows to exactly 0

static_assert(THREADS * RUN == TX * TY && MH % RUN == 0, "runs");

struct Triple { float lo, mid, hi; };

__device__ __forceinline__ Triple sort3(float a, float b, float c)
{
    float lo = fminf(a, b), hi = fmaxf(a, b);
    Triple t;
    t.lo = fminf(lo, c);
    t.hi = fmaxf(hi, c);
    t.mid = fmaxf(lo, fminf(hi, c));
    return t;
}

__device__ __forceinline__ float median9(Triple a, Triple b, Triple c)
{
    float x = fmaxf(fmaxf(a.lo, b.lo), c.lo);
    float y = sort3(a.mid, b.mid, c.mid).mid;
    float z = fminf(fminf(a.hi, b.hi), c.hi);
    return sort3(x, y, z).mid;
}

// pixels are kept multiplied by sqrt(log2(e) / (2 sigmaR^2)), so the weight of a tap is
// exp2(spatial - d * d)
__global__ void __launch_bounds__(THREADS)
medianBilateral(Image in, Image out, float spatial, float scale, float invScale)
{
    __shared__ float sIn[IH][IW];
    __shared__ float sMed[MH][MW];
    const int tid = threadIdx.x;
    const int w = in.width, h = in.height;
    const int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY;

    for (int i = tid; i < IW * IH; i += THREADS) {
        int r = i / IW, c = i % IW;
        int y = min(max(y0 - RADIUS - 1 + r, 0), h - 1);
        int x = min(max(x0 - RADIUS - 1 + c, 0), w - 1);
        sIn[r][c] = in.pixels[(size_t)y * w + x];
    }
    __syncthreads();

    // a run of 8 medians down a column, every row of three is sorted once
    for (int i = tid; i < MW * (MH / RUN); i += THREADS) {
        int c = i % MW, r0 = (i / MW) * RUN;
        Triple a = sort3(sIn[r0][c], sIn[r0][c + 1], sIn[r0][c + 2]);
        Triple b = sort3(sIn[r0 + 1][c], sIn[r0 + 1][c + 1], sIn[r0 + 1][c + 2]);
        int x = x0 - RADIUS + c;
#pragma unroll
        for (int r = 0; r < RUN; r++) {
            Triple d = sort3(sIn[r0 + r + 2][c], sIn[r0 + r + 2][c + 1], sIn[r0 + r + 2][c + 2]);
            int y = y0 - RADIUS + r0 + r;
            bool inside = x >= 0 && x < w && y >= 0 && y < h;
            sMed[r0 + r][c] = inside ? median9(a, b, d) * scale : OUTSIDE;
            a = b;
            b = d;
        }
    }
    __syncthreads();

    // eight outputs of a column per thread, each loaded value serves up to eight of them
    const int tx = tid % TX, r0 = (tid / TX) * RUN;
    float center[RUN], sum[RUN], norm[RUN];
#pragma unroll
    for (int r = 0; r < RUN; r++) {
        center[r] = sMed[r0 + r + RADIUS][tx + RADIUS];
        sum[r] = 0.0f;
        norm[r] = 0.0f;
    }
#pragma unroll 1
    for (int dx = 0; dx <= 2 * RADIUS; dx++) {
        const float ex = spatial * (float)((dx - RADIUS) * (dx - RADIUS));
        float es[RADIUS + 1];
#pragma unroll
        for (int d = 0; d <= RADIUS; d++) es[d] = ex + spatial * (float)(d * d);
#pragma unroll
        for (int k = 0; k < RUN + 2 * RADIUS; k++) {
            const float p = sMed[r0 + k][tx + dx];
#pragma unroll
            for (int r = 0; r < RUN; r++) {
                const int dy = k - r - RADIUS;
                if (dy < -RADIUS || dy > RADIUS) continue;
                const float d = p - center[r];
                const float wgt = exp2f(es[dy < 0 ? -dy : dy] - d * d);
                sum[r] += wgt * p;
                norm[r] += wgt;
            }
        }
    }
    const int x = x0 + tx;
    if (x >= w) return;
#pragma unroll
    for (int r = 0; r < RUN; r++) {
        const int y = y0 + r0 + r;
        if (y < h) out.pixels[(size_t)y * w + x] = sum[r] / norm[r] * invScale;
    }
}

static unsigned long lcgNext(unsigned long *s)
{
    *s = (*s * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return *s >> 8;
}

int main(void)
{
    const int width = 3000, height = 2000;
    const size_t bytes = (size_t)width * height * sizeof(float);
    float *h = (float *)malloc(bytes);
    unsigned long s = 4242;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float base = 0.5f + 0.3f * sinf(x * 0.01f) * cosf(y * 0.013f);
            if (((x / 100) + (y / 80)) % 3 == 0) base += 0.2f;
            float noise = (lcgNext(&s) % 1000) / 1000.0f * 0.1f - 0.05f;
            float value = base + noise;
            unsigned long r = lcgNext(&s) % 100;
            if (r < 3) value = 0.0f;
            if (r > 96) value = 1.0f;
            h[y * width + x] = value;
        }

    Image src = {width, height, NULL};
    Image dst = {width, height, NULL};
    cudaMalloc((void **)&src.pixels, bytes);
    cudaMalloc((void **)&dst.pixels, bytes);
    cudaMemcpy(src.pixels, h, bytes, cudaMemcpyHostToDevice);

    const double log2e = 1.4426950408889634;
    const float spatial = (float)(-log2e / (2.0 * SIGMA_S * SIGMA_S));
    const double scale = sqrt(log2e / (2.0 * SIGMA_R * SIGMA_R));
    dim3 blocks((width + TX - 1) / TX, (height + TY - 1) / TY);
    medianBilateral<<<blocks, THREADS>>>(src, dst, spatial, (float)scale, (float)(1.0 / scale));

    if (cudaMemcpy(h, dst.pixels, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    double sum = 0, sq = 0, tv = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float v = h[y * width + x];
            sum += v;
            sq += (double)v * v;
            if (x + 1 < width) tv += fabsf(h[y * width + x + 1] - v);
        }
    printf("mean %.4e\nsquares %.4e\nvariation %.3e\n", sum / ((double)width * height), sq, tv);

    cudaFree(src.pixels);
    cudaFree(dst.pixels);
    free(h);
    return 0;
}
