/*
 * Glacier surface displacement by image matching (offset tracking).
 *
 * For every chip of a regular grid in the reference scene, the chip is
 * correlated (normalised cross correlation) with all positions of a search
 * area in the second scene; the position of the peak, refined by a parabola,
 * is the displacement of the surface.
 */
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define IMG_W   2048
#define IMG_H   2048
#define CHIP    32                    /* chip size in pixels            */
#define SEARCH  8                     /* +- search range in pixels      */
#define NDISP   (2 * SEARCH + 1)
#define STEP    24                    /* spacing of the grid            */
#define GRID_X  ((IMG_W - CHIP - 2 * SEARCH) / STEP + 1)
#define GRID_Y  ((IMG_H - CHIP - 2 * SEARCH) / STEP + 1)
#define NCHIPS  (GRID_X * GRID_Y)

#define CHECK(x)                                                              \
    do {                                                                      \
        cudaError_t e_ = (x);                                                 \
        if (e_ != cudaSuccess) {                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                \
                    cudaGetErrorString(e_));                                  \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

typedef unsigned short dn_t;          /* digital number of the sensor   */

struct Offset {
    float dx, dy, peak;
};

/* one block per chip, one thread per displacement */
__global__ void correlate(const dn_t *ref, const dn_t *sec, float *corr)
{
    int chip_x = blockIdx.x * STEP + SEARCH;
    int chip_y = blockIdx.y * STEP + SEARCH;
    int sx = chip_x + (int)threadIdx.x - SEARCH;
    int sy = chip_y + (int)threadIdx.y - SEARCH;

    float mean_a = 0.0f, mean_b = 0.0f;
    for (int y = 0; y < CHIP; y++) {
        for (int x = 0; x < CHIP; x++) {
            mean_a += ref[(chip_y + y) * IMG_W + chip_x + x];
            mean_b += sec[(sy + y) * IMG_W + sx + x];
        }
    }
    mean_a /= CHIP * CHIP;
    mean_b /= CHIP * CHIP;

    float sab = 0.0f, saa = 0.0f, sbb = 0.0f;
    for (int y = 0; y < CHIP; y++) {
        for (int x = 0; x < CHIP; x++) {
            float a = ref[(chip_y + y) * IMG_W + chip_x + x] - mean_a;
            float b = sec[(sy + y) * IMG_W + sx + x] - mean_b;
            sab += a * b;
            saa += a * a;
            sbb += b * b;
        }
    }

    float den = sqrtf(saa * sbb);
    int chip = blockIdx.y * GRID_X + blockIdx.x;
    corr[(chip * NDISP + threadIdx.y) * NDISP + threadIdx.x] =
        den > 0.0f ? sab / den : 0.0f;
}

__device__ float parabola(float cm, float c0, float cp)
{
    float d = cm - 2.0f * c0 + cp;
    if (d == 0.0f)
        return 0.0f;
    return 0.5f * (cm - cp) / d;
}

/* one thread per chip */
__global__ void find_peak(const float *corr, Offset *out)
{
    int chip = blockIdx.x * blockDim.x + threadIdx.x;
    if (chip >= NCHIPS)
        return;
    const float *c = corr + chip * NDISP * NDISP;

    int best = 0;
    for (int i = 1; i < NDISP * NDISP; i++)
        if (c[i] > c[best])
            best = i;

    int bx = best % NDISP;
    int by = best / NDISP;
    Offset o;
    o.dx = bx - SEARCH;
    o.dy = by - SEARCH;
    o.peak = c[best];
    if (bx > 0 && bx < NDISP - 1)
        o.dx += parabola(c[best - 1], c[best], c[best + 1]);
    if (by > 0 && by < NDISP - 1)
        o.dy += parabola(c[best - NDISP], c[best], c[best + NDISP]);
    out[chip] = o;
}

/* ------------------------------------------------------------------ */

static unsigned rng_state = 12345u;
static unsigned rng(void)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return rng_state >> 8;
}

static void make_scenes(std::vector<dn_t> &ref, std::vector<dn_t> &sec)
{
    std::vector<dn_t> noise(IMG_W * IMG_H);
    for (size_t i = 0; i < noise.size(); i++)
        noise[i] = rng() & 511;

    /* texture: 3x3 sums of noise, scenes wrap around at the borders */
    for (int y = 0; y < IMG_H; y++) {
        const dn_t *r0 = &noise[((y + IMG_H - 1) % IMG_H) * IMG_W];
        const dn_t *r1 = &noise[y * IMG_W];
        const dn_t *r2 = &noise[((y + 1) % IMG_H) * IMG_W];
        for (int x = 0; x < IMG_W; x++) {
            int xm = (x + IMG_W - 1) % IMG_W, xp = (x + 1) % IMG_W;
            ref[y * IMG_W + x] = r0[xm] + r0[x] + r0[xp] + r1[xm] + r1[x] +
                                 r1[xp] + r2[xm] + r2[x] + r2[xp];
        }
    }

    /* second scene: moved by a smooth field, with sensor noise */
    std::vector<float> mx(IMG_H), my(IMG_W);
    for (int y = 0; y < IMG_H; y++)
        mx[y] = 1.5f + 3.0f * sinf(6.2831853f * y / 1900.0f);
    for (int x = 0; x < IMG_W; x++)
        my[x] = -1.0f + 2.5f * cosf(6.2831853f * x / 1500.0f);
    for (int y = 0; y < IMG_H; y++) {
        for (int x = 0; x < IMG_W; x++) {
            float fx = x - mx[y] + IMG_W, fy = y - my[x] + IMG_H;
            int ix = (int)fx, iy = (int)fy;
            float wx = fx - ix, wy = fy - iy;
            int x0 = ix % IMG_W, x1 = (ix + 1) % IMG_W;
            int y0 = iy % IMG_H, y1 = (iy + 1) % IMG_H;
            float v = (1 - wy) * ((1 - wx) * ref[y0 * IMG_W + x0] +
                                  wx * ref[y0 * IMG_W + x1]) +
                      wy * ((1 - wx) * ref[y1 * IMG_W + x0] +
                            wx * ref[y1 * IMG_W + x1]);
            sec[y * IMG_W + x] = (dn_t)(v + 20.0f + (rng() & 127));
        }
    }
}

int main()
{
    std::vector<dn_t> ref(IMG_W * IMG_H), sec(IMG_W * IMG_H);
    make_scenes(ref, sec);

    dn_t *d_ref, *d_sec;
    float *d_corr;
    Offset *d_out;
    size_t img_bytes = sizeof(dn_t) * IMG_W * IMG_H;
    CHECK(cudaMalloc(&d_ref, img_bytes));
    CHECK(cudaMalloc(&d_sec, img_bytes));
    CHECK(cudaMalloc(&d_corr, sizeof(float) * NCHIPS * NDISP * NDISP));
    CHECK(cudaMalloc(&d_out, sizeof(Offset) * NCHIPS));
    CHECK(cudaMemcpy(d_ref, ref.data(), img_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_sec, sec.data(), img_bytes, cudaMemcpyHostToDevice));

    dim3 grid(GRID_X, GRID_Y);
    dim3 block(NDISP, NDISP);
    correlate<<<grid, block>>>(d_ref, d_sec, d_corr);
    CHECK(cudaGetLastError());
    find_peak<<<(NCHIPS + 127) / 128, 128>>>(d_corr, d_out);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    std::vector<Offset> out(NCHIPS);
    CHECK(cudaMemcpy(out.data(), d_out, sizeof(Offset) * NCHIPS,
                     cudaMemcpyDeviceToHost));

    double speed = 0, peak = 0, wdx = 0, wdy = 0, quad[4] = {0, 0, 0, 0};
    float lo = 2.0f, hi = -2.0f, maxd = 0.0f;
    for (int i = 0; i < NCHIPS; i++) {
        const Offset &o = out[i];
        int gx = i % GRID_X, gy = i / GRID_X;
        float s = sqrtf(o.dx * o.dx + o.dy * o.dy);
        speed += s;
        peak += o.peak;
        wdx += (1 + gx % 7) * (o.dx + SEARCH);
        wdy += (1 + gy % 5) * (o.dy + SEARCH);
        quad[(gy >= GRID_Y / 2) * 2 + (gx >= GRID_X / 2)] += s;
        if (o.peak < lo) lo = o.peak;
        if (o.peak > hi) hi = o.peak;
        if (s > maxd) maxd = s;
    }
    printf("chips %d  mean speed %.4f px  max %.3f px\n", NCHIPS,
           speed / NCHIPS, maxd);
    printf("peak: mean %.5f  min %.4f  max %.4f\n", peak / NCHIPS, lo, hi);
    printf("weighted dx %.1f  dy %.1f\n", wdx, wdy);
    printf("quadrants %.2f %.2f %.2f %.2f\n", quad[0], quad[1], quad[2],
           quad[3]);
    for (int i = 500; i < NCHIPS; i += 2111)
        printf("chip %d: %.3f %.3f %.4f\n", i, out[i].dx + SEARCH,
               out[i].dy + SEARCH, out[i].peak);

    cudaFree(d_ref);
    cudaFree(d_sec);
    cudaFree(d_corr);
    cudaFree(d_out);
    return 0;
}
