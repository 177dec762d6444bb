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

/*
 * One block per chip, one warp per vertical displacement, one lane per chip
 * row.  A lane correlates its row with all 17 horizontal displacements from a
 * sliding register window; the row sums are added up across the warp.
 * Sums and squares of the moving window come from column sums that all
 * displacements share.  Everything is taken relative to a local grey value,
 * which keeps the one-pass variance well conditioned.
 */
#define AREA    (CHIP + 2 * SEARCH)   /* 48 */
#define TP      36                    /* pitches: conflict-free float4 rows */
#define SP      52
#define NWARPS  NDISP
#define NTHR    (NWARPS * 32)
#define FULL    0xffffffffu

static_assert(CHIP == 32 && SEARCH == 8, "mapping is made for these sizes");
static_assert((STEP * sizeof(dn_t)) % 16 == 0, "16-byte loads");
static_assert((SEARCH * sizeof(dn_t)) % 16 == 0, "16-byte loads");
static_assert((IMG_W * sizeof(dn_t)) % 16 == 0, "16-byte loads");

__device__ __forceinline__ float parabola(float cm, float c0, float cp)
{
    float d = cm - 2.0f * c0 + cp;
    if (d == 0.0f)
        return 0.0f;
    return 0.5f * (cm - cp) / d;
}

__device__ __forceinline__ float lo16(unsigned v) { return (float)(v & 0xffffu); }
__device__ __forceinline__ float hi16(unsigned v) { return (float)(v >> 16); }

__device__ __forceinline__ void store8(float *dst, uint4 v, float off)
{
    float4 a = make_float4(lo16(v.x) - off, hi16(v.x) - off,
                           lo16(v.y) - off, hi16(v.y) - off);
    float4 b = make_float4(lo16(v.z) - off, hi16(v.z) - off,
                           lo16(v.w) - off, hi16(v.w) - off);
    reinterpret_cast<float4 *>(dst)[0] = a;
    reinterpret_cast<float4 *>(dst)[1] = b;
}

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int m = 16; m; m >>= 1)
        v += __shfl_xor_sync(FULL, v, m);
    return v;
}

/* one halving step: 2*H values per lane become H, lanes differing in bit 2*H */
template <int H>
__device__ __forceinline__ void halve(float *a, int lane)
{
    bool up = lane & (2 * H);
#pragma unroll
    for (int i = 0; i < H; i++) {
        float give = up ? a[i] : a[i + H];
        float keep = up ? a[i + H] : a[i];
        a[i] = keep + __shfl_xor_sync(FULL, give, 2 * H);
    }
}

/* 16 values per lane, summed over the warp; lane l gets the sum of value l/2 */
__device__ __forceinline__ float warp_sum16(float *a, int lane)
{
    halve<8>(a, lane);
    halve<4>(a, lane);
    halve<2>(a, lane);
    halve<1>(a, lane);
    return a[0] + __shfl_xor_sync(FULL, a[0], 1);
}

__global__ void __launch_bounds__(NTHR, 2)
track(const dn_t *__restrict__ ref, const dn_t *__restrict__ sec,
      Offset *__restrict__ out)
{
    __shared__ __align__(16) float st[CHIP * TP];
    __shared__ __align__(16) float ss[AREA * SP];
    __shared__ float2 core[AREA];
    __shared__ float2 head[NDISP][AREA];
    __shared__ float2 tail[NDISP][AREA];
    __shared__ float2 tstat;
    __shared__ float surf[NDISP * NDISP];

    const int tid = threadIdx.x, lane = tid & 31, dy = tid >> 5;
    const int ax = blockIdx.x * STEP, ay = blockIdx.y * STEP;   /* area  */
    const int cx = ax + SEARCH, cy = ay + SEARCH;               /* chip  */

    /* stage both windows: 48 x 6 and 32 x 4 loads of 8 pixels */
    if (tid < AREA * 6) {
        int y = tid / 6, c = tid % 6;
        float off = (float)sec[(ay + AREA / 2) * IMG_W + ax + AREA / 2];
        uint4 v = *reinterpret_cast<const uint4 *>(
            sec + (ay + y) * IMG_W + ax + 8 * c);
        store8(ss + y * SP + 8 * c, v, off);
    } else if (tid < AREA * 6 + CHIP * 4) {
        int i = tid - AREA * 6;
        int y = i >> 2, c = i & 3;
        float off = (float)ref[(cy + CHIP / 2) * IMG_W + cx + CHIP / 2];
        uint4 v = *reinterpret_cast<const uint4 *>(
            ref + (cy + y) * IMG_W + cx + 8 * c);
        store8(st + y * TP + 8 * c, v, off);
    }
    __syncthreads();

    /* column sums: rows 16..31 are common to all windows, the rows above are
       needed from dy on, those below up to dy+31 */
    if (tid < 3 * AREA) {
        int part = tid / AREA, c = tid % AREA;
        float s = 0.0f, q = 0.0f;
        if (part == 0) {
#pragma unroll
            for (int y = 16; y < 32; y++) {
                float v = ss[y * SP + c];
                s += v;
                q = fmaf(v, v, q);
            }
            core[c] = make_float2(s, q);
        } else if (part == 1) {
            head[16][c] = make_float2(0.0f, 0.0f);
#pragma unroll
            for (int y = 15; y >= 0; y--) {
                float v = ss[y * SP + c];
                s += v;
                q = fmaf(v, v, q);
                head[y][c] = make_float2(s, q);
            }
        } else {
            tail[0][c] = make_float2(0.0f, 0.0f);
#pragma unroll
            for (int y = 32; y < 48; y++) {
                float v = ss[y * SP + c];
                s += v;
                q = fmaf(v, v, q);
                tail[y - 31][c] = make_float2(s, q);
            }
        }
    }

    /* cross products: row `lane` of the chip against row lane+dy of the area */
    float acc[NDISP], s[20];
    const float4 *tp = reinterpret_cast<const float4 *>(st + lane * TP);
    const float4 *sp = reinterpret_cast<const float4 *>(ss + (lane + dy) * SP);
#pragma unroll
    for (int d = 0; d < NDISP; d++)
        acc[d] = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float4 v = sp[i];
        s[4 * i] = v.x, s[4 * i + 1] = v.y, s[4 * i + 2] = v.z, s[4 * i + 3] = v.w;
    }
#pragma unroll
    for (int x = 0; x < CHIP / 4; x++) {
        float4 v = sp[x + 4];
        s[16] = v.x, s[17] = v.y, s[18] = v.z, s[19] = v.w;
        float4 t4 = tp[x];
        float t[4] = {t4.x, t4.y, t4.z, t4.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int d = 0; d < NDISP; d++)
                acc[d] = fmaf(t[i], s[i + d], acc[d]);
#pragma unroll
        for (int i = 0; i < 16; i++)
            s[i] = s[i + 4];
    }
    float last = warp_sum(acc[16]);
    float half = warp_sum16(acc, lane);
    float cross = __shfl_sync(FULL, half, (2 * lane) & 31);
    if (lane == 16)
        cross = last;                  /* lane = dx index, 0..16 */

    if (dy == NWARPS - 1) {            /* sums of the chip itself */
        float a = 0.0f, q = 0.0f;
#pragma unroll
        for (int x = 0; x < CHIP / 4; x++) {
            float4 t = tp[x];
            a += (t.x + t.y) + (t.z + t.w);
            q = fmaf(t.x, t.x, fmaf(t.y, t.y, fmaf(t.z, t.z, fmaf(t.w, t.w, q))));
        }
        a = warp_sum(a);
        q = warp_sum(q);
        if (lane == 0)
            tstat = make_float2(a, q);
    }
    __syncthreads();

    /* window sums for dx = lane: first window plus a scan of the changes */
    {
        float2 c = core[lane], h = head[dy][lane], t = tail[dy][lane];
        float v0 = c.x + h.x + t.x, q0 = c.y + h.y + t.y;
        float dv = 0.0f, dq = 0.0f;
        if (lane < 16) {
            c = core[lane + 32], h = head[dy][lane + 32], t = tail[dy][lane + 32];
            dv = (c.x + h.x + t.x) - v0;
            dq = (c.y + h.y + t.y) - q0;
        }
        float ws = warp_sum(v0), wq = warp_sum(q0);
#pragma unroll
        for (int o = 1; o < 16; o <<= 1) {
            float a = __shfl_up_sync(FULL, dv, o);
            float b = __shfl_up_sync(FULL, dq, o);
            if (lane >= o) {
                dv += a;
                dq += b;
            }
        }
        float ev = __shfl_up_sync(FULL, dv, 1);
        float eq = __shfl_up_sync(FULL, dq, 1);
        if (lane > 0) {
            ws += ev;
            wq += eq;
        }
        if (lane < NDISP) {
            const float inv_n = 1.0f / (CHIP * CHIP);
            float2 ts = tstat;
            float sab = cross - ts.x * ws * inv_n;
            float saa = ts.y - ts.x * ts.x * inv_n;
            float sbb = wq - ws * ws * inv_n;
            float den = sqrtf(saa * sbb);
            surf[dy * NDISP + lane] = den > 0.0f ? sab / den : 0.0f;
        }
    }
    __syncthreads();

    if (dy == 0) {
        float best = surf[lane];
        int at = lane;
        for (int i = lane + 32; i < NDISP * NDISP; i += 32)
            if (surf[i] > best) {
                best = surf[i];
                at = i;
            }
#pragma unroll
        for (int m = 16; m; m >>= 1) {
            float ob = __shfl_xor_sync(FULL, best, m);
            int oa = __shfl_xor_sync(FULL, at, m);
            if (ob > best || (ob == best && oa < at)) {
                best = ob;
                at = oa;
            }
        }
        if (lane == 0) {
            int bx = at % NDISP, by = at / NDISP;
            Offset o;
            o.dx = bx - SEARCH;
            o.dy = by - SEARCH;
            o.peak = best;
            if (bx > 0 && bx < NDISP - 1)
                o.dx += parabola(surf[at - 1], best, surf[at + 1]);
            if (by > 0 && by < NDISP - 1)
                o.dy += parabola(surf[at - NDISP], best, surf[at + NDISP]);
            out[blockIdx.y * GRID_X + blockIdx.x] = o;
        }
    }
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
    Offset *d_out;
    size_t img_bytes = sizeof(dn_t) * IMG_W * IMG_H;
    CHECK(cudaMalloc(&d_ref, img_bytes));
    CHECK(cudaMalloc(&d_sec, img_bytes));
    CHECK(cudaMalloc(&d_out, sizeof(Offset) * NCHIPS));
    CHECK(cudaMemcpy(d_ref, ref.data(), img_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_sec, sec.data(), img_bytes, cudaMemcpyHostToDevice));

    dim3 grid(GRID_X, GRID_Y);
    track<<<grid, NTHR>>>(d_ref, d_sec, d_out);
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
    cudaFree(d_out);
    return 0;
}
