// Gaussian blur (separable) of an RGB image, then grey, then Sobel edges.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define WIDTH   3840
#define HEIGHT  2160
#define RADIUS  5
#define TAPS    (2 * RADIUS + 1)
#define CLAMP(v, lo, hi) ((v) < (lo) ? (lo) : ((v) > (hi) ? (hi) : (v)))

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t e = (call);                                            \
        if (e != cudaSuccess) {                                            \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,              \
                    cudaGetErrorString(e));                                \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

__constant__ float c_gauss[TAPS];

// One block makes a 64 x 32 tile of the edge image, everything in between stays in shared memory.
#define TX 64
#define TY 32
#define THREADS 288
#define GW (TX + 2)                 // grey tile with a border of one pixel
#define GH (TY + 2)
#define IN_ROWS (GH + 2 * RADIUS)   // 44
#define IN_BYTES ((TX + 16) * 3)    // pixels x0 - 8 .. x0 + 71, keeps 8-byte alignment
#define HSTRIDE (GW * 3)
#define RUN 6                       // pixels of a row per work item in the row blur
#define VRUN 9                      // rows per work item in the column blur
#define GSTRIDE 68

static_assert(WIDTH % TX == 0 && (WIDTH * 3) % 8 == 0, "tile width");
static_assert(RADIUS == 5 && GW % RUN == 0, "halo layout");

__global__ void __launch_bounds__(THREADS)
blurGraySobel(const unsigned char *__restrict__ in, unsigned char *__restrict__ mag, int w, int h)
{
    __shared__ uint2 s_in2[IN_ROWS * IN_BYTES / 8];
    __shared__ float s_h[IN_ROWS * HSTRIDE];
    __shared__ unsigned char s_g[GH * GSTRIDE];
    unsigned char *s_in = (unsigned char *)s_in2;

    const int tid = threadIdx.x;
    const int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY;

    // 1. stage the bytes (rows y0 - 6 ..., columns x0 - 8 ...), clamped at the image border
    if (x0 >= 8 && x0 + TX + 8 <= w) {
        for (int i = tid; i < IN_ROWS * (IN_BYTES / 8); i += THREADS) {
            int r = i / (IN_BYTES / 8), c = i % (IN_BYTES / 8);
            int y = min(max(y0 - 1 - RADIUS + r, 0), h - 1);
            s_in2[i] = *(const uint2 *)(in + ((size_t)y * w + x0 - 8) * 3 + c * 8);
        }
    } else {
        for (int i = tid; i < IN_ROWS * (IN_BYTES / 3); i += THREADS) {
            int r = i / (IN_BYTES / 3), p = i % (IN_BYTES / 3);
            int y = min(max(y0 - 1 - RADIUS + r, 0), h - 1);
            int x = min(max(x0 - 8 + p, 0), w - 1);
            const unsigned char *src = in + ((size_t)y * w + x) * 3;
            unsigned char *dst = s_in + r * IN_BYTES + p * 3;
            dst[0] = src[0]; dst[1] = src[1]; dst[2] = src[2];
        }
    }
    __syncthreads();

    // 2. row blur: a run of 6 pixels per work item, sliding window in registers
    for (int i = tid; i < IN_ROWS * (GW / RUN); i += THREADS) {
        int r = i / (GW / RUN), g = i % (GW / RUN);
        const unsigned char *src = s_in + r * IN_BYTES + (g * RUN + 2) * 3;
        float *dst = s_h + r * HSTRIDE + g * RUN * 3;
#pragma unroll
        for (int c = 0; c < 3; c++) {
            float v[RUN + 2 * RADIUS];
#pragma unroll
            for (int k = 0; k < RUN + 2 * RADIUS; k++) v[k] = (float)src[k * 3 + c];
#pragma unroll
            for (int o = 0; o < RUN; o++) {
                float sum = 0.0f;
#pragma unroll
                for (int k = 0; k < TAPS; k++) sum += c_gauss[k] * v[o + k];
                dst[o * 3 + c] = sum;
            }
        }
    }
    __syncthreads();

    // 3. column blur, rounding to 8 bits, grey: a run of 9 rows per work item
    for (int i = tid; i < GW * ((GH + VRUN - 1) / VRUN); i += THREADS) {
        int x = i % GW, r0 = (i / GW) * VRUN;
        int gray[VRUN];
#pragma unroll
        for (int o = 0; o < VRUN; o++) gray[o] = 0;
#pragma unroll
        for (int c = 0; c < 3; c++) {
            const int weight = c == 0 ? 77 : (c == 1 ? 150 : 29);
            float v[VRUN + 2 * RADIUS];
#pragma unroll
            for (int k = 0; k < VRUN + 2 * RADIUS; k++)
                v[k] = s_h[min(r0 + k, IN_ROWS - 1) * HSTRIDE + x * 3 + c];
#pragma unroll
            for (int o = 0; o < VRUN; o++) {
                float sum = 0.0f;
#pragma unroll
                for (int k = 0; k < TAPS; k++) sum += c_gauss[k] * v[o + k];
                sum = fminf(sum + 0.5f, 255.0f);
                gray[o] += weight * (int)sum;
            }
        }
#pragma unroll
        for (int o = 0; o < VRUN; o++)
            if (r0 + o < GH) s_g[(r0 + o) * GSTRIDE + x] = (unsigned char)(gray[o] >> 8);
    }
    __syncthreads();

    // 4. Sobel, four pixels per work item, one 4-byte store
    for (int i = tid; i < (TX / 4) * TY; i += THREADS) {
        int q = i % (TX / 4), r = i / (TX / 4);
        int y = y0 + r;
        if (y >= h) continue;
        int a[3][6];
#pragma unroll
        for (int dy = 0; dy < 3; dy++)
#pragma unroll
            for (int dx = 0; dx < 6; dx++) a[dy][dx] = s_g[(r + dy) * GSTRIDE + q * 4 + dx];
        unsigned char res[4];
#pragma unroll
        for (int o = 0; o < 4; o++) {
            int x = x0 + q * 4 + o;
            int gx = (a[0][o + 2] - a[0][o]) + 2 * (a[1][o + 2] - a[1][o]) + (a[2][o + 2] - a[2][o]);
            int gy = (a[2][o] - a[0][o]) + 2 * (a[2][o + 1] - a[0][o + 1]) + (a[2][o + 2] - a[0][o + 2]);
            float m = fminf(sqrtf((float)(gx * gx + gy * gy)), 255.0f);
            bool border = x == 0 || y == 0 || x == w - 1 || y == h - 1;
            res[o] = border ? 0 : (unsigned char)m;
        }
        *(uchar4 *)(mag + (size_t)y * w + x0 + q * 4) = make_uchar4(res[0], res[1], res[2], res[3]);
    }
}

static unsigned int seed = 12345u;
static unsigned int lcg() { seed = seed * 1664525u + 1013904223u; return seed >> 8; }

int main()
{
    const int w = WIDTH, h = HEIGHT;
    const size_t npix = (size_t)w * h;
    std::vector<unsigned char> img(npix * 3), edges(npix);

    // checkered colour squares with noise
    unsigned char cols[64][3];
    for (int i = 0; i < 64; i++)
        for (int c = 0; c < 3; c++) cols[i][c] = (unsigned char)(20 + lcg() % 200);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int sq = ((x / 37) * 5 + (y / 29) * 11) & 63;
            for (int c = 0; c < 3; c++)
                img[((size_t)y * w + x) * 3 + c] = (unsigned char)(cols[sq][c] + lcg() % 32);
        }

    float gauss[TAPS], s = 0.0f;
    for (int k = -RADIUS; k <= RADIUS; k++) {
        gauss[k + RADIUS] = expf(-(float)(k * k) / (2.0f * 2.0f * 2.0f));
        s += gauss[k + RADIUS];
    }
    for (int k = 0; k < TAPS; k++) gauss[k] /= s;
    CHECK(cudaMemcpyToSymbol(c_gauss, gauss, sizeof(gauss)));

    unsigned char *d_img, *d_mag;
    CHECK(cudaMalloc(&d_img, npix * 3));
    CHECK(cudaMalloc(&d_mag, npix));
    CHECK(cudaMemcpy(d_img, img.data(), npix * 3, cudaMemcpyHostToDevice));

    dim3 grid(w / TX, (h + TY - 1) / TY);
    blurGraySobel<<<grid, THREADS>>>(d_img, d_mag, w, h);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(edges.data(), d_mag, npix, cudaMemcpyDeviceToHost));

    double total = 0.0, strong = 0.0, lower = 0.0;
    for (size_t i = 0; i < npix; i++) {
        total += edges[i];
        if (edges[i] > 50) strong += 1.0;
        if (i >= npix / 2) lower += edges[i];
    }
    printf("edge sum     %.3e\n", total);
    printf("strong edges %.2e\n", strong);
    printf("lower half   %.3e\n", lower);

    cudaFree(d_img); cudaFree(d_mag);
    return 0;
}
