/*
 * Full-revaluation VaR of a bond portfolio.
 *
 * Every bond is priced on every scenario zero curve (linear interpolation of
 * the zero rates, continuous compounding, issuer spread on top), the prices
 * are summed per trading book, and the host turns the book values into
 * profit-and-loss figures, VaR and expected shortfall.
 * Scenario 0 is today's curve.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <algorithm>
#include <vector>

#define NUM_SCENARIOS  3072
#define NUM_BOOKS      8
#define BONDS_PER_BOOK 256
#define NUM_BONDS      (NUM_BOOKS * BONDS_PER_BOOK)
#define NUM_PILLARS    16

#define CUDA_CHECK(x)                                                       \
    do {                                                                    \
        cudaError_t e_ = (x);                                               \
        if (e_ != cudaSuccess) {                                            \
            fprintf(stderr, "CUDA error %s, line %d\n",                     \
                    cudaGetErrorString(e_), __LINE__);                      \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

struct Bond {
    float notional;
    float coupon;       /* yearly rate */
    float spread;       /* over the zero curve */
    float first;        /* years until the first coupon */
    int   freq;         /* coupons per year: 1, 2 or 4 */
    int   num_coupons;  /* at most 120 */
};

/*
 * Which curve segment a cash flow falls into and its interpolation weight do
 * not depend on the scenario.  They are worked out once, and the exponent
 * becomes A * z[i] + B * z[i + 1] (base 2), with the issuer spread folded into
 * the amount.  The flows of a chunk of bonds are sorted by segment, so that
 * the pricing loop keeps both curve points of four scenarios in registers:
 * per flow and scenario one FMUL, two FFMA and one EX2, and one broadcast
 * 16-byte shared load for the four.  Prices of single bonds are never stored.
 */
#define CHUNK_BONDS   8
#define NUM_CHUNKS    (NUM_BONDS / CHUNK_BONDS)
#define CHUNKS_PER_BOOK (BONDS_PER_BOOK / CHUNK_BONDS)
#define MAX_COUPONS   120
#define CHUNK_FLOWS   (CHUNK_BONDS * MAX_COUPONS)
#define NUM_SEGMENTS  (NUM_PILLARS - 1)
#define THREADS       128
#define SCEN_PER_BLOCK (THREADS * 4)
#define LOG2E         1.4426950408889634f

static_assert(NUM_SCENARIOS % SCEN_PER_BLOCK == 0, "scenario tiles");
static_assert(BONDS_PER_BOOK % CHUNK_BONDS == 0, "chunks do not span books");
static_assert(NUM_PILLARS * CHUNK_BONDS == THREADS, "one counter per thread");
static_assert(MAX_COUPONS <= THREADS, "one thread per coupon");

__device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* curves[s][p] -> curves_t[p][s] */
__global__ void __launch_bounds__(THREADS)
transpose_curves(const float4 *__restrict__ curves, float *__restrict__ curves_t)
{
    int s = blockIdx.x * THREADS + threadIdx.x;   /* grid covers exactly */
#pragma unroll
    for (int q = 0; q < NUM_PILLARS / 4; q++) {
        float4 v = curves[s * (NUM_PILLARS / 4) + q];
        curves_t[(4 * q + 0) * NUM_SCENARIOS + s] = v.x;
        curves_t[(4 * q + 1) * NUM_SCENARIOS + s] = v.y;
        curves_t[(4 * q + 2) * NUM_SCENARIOS + s] = v.z;
        curves_t[(4 * q + 3) * NUM_SCENARIOS + s] = v.w;
    }
}

/* Cash flows of one chunk of bonds, counting-sorted by curve segment. */
__global__ void __launch_bounds__(THREADS)
build_flows(const Bond *__restrict__ bonds, const float *__restrict__ pillars,
            float4 *__restrict__ flows, int *__restrict__ seg_end)
{
    __shared__ float pil[NUM_PILLARS];
    __shared__ int count[THREADS];      /* [segment][bond] */
    __shared__ int first_pos[THREADS];  /* place of the first such flow, less its coupon number */
    __shared__ int warp_total[THREADS / 32];

    int tid = threadIdx.x;
    int lane = tid & 31, warp = tid >> 5;
    if (tid < NUM_PILLARS)
        pil[tid] = pillars[tid];
    count[tid] = 0;
    __syncthreads();

    int seg[CHUNK_BONDS];
    float4 flow[CHUNK_BONDS];
#pragma unroll
    for (int b = 0; b < CHUNK_BONDS; b++) {
        Bond bond = bonds[blockIdx.x * CHUNK_BONDS + b];
        seg[b] = -1;
        if (tid < bond.num_coupons) {
            float t = bond.first + (float)tid / (float)bond.freq;
            float amount = bond.notional * bond.coupon / (float)bond.freq;
            if (tid == bond.num_coupons - 1)
                amount += bond.notional;
            int i = 0;
            float w;
            if (t <= pil[0]) {
                w = 0.0f;
            } else if (t >= pil[NUM_PILLARS - 1]) {
                i = NUM_SEGMENTS - 1;
                w = 1.0f;
            } else {
                while (t > pil[i + 1])
                    i++;
                w = (t - pil[i]) / (pil[i + 1] - pil[i]);
            }
            seg[b] = i;
            flow[b].x = -t * LOG2E * (1.0f - w);
            flow[b].y = -t * LOG2E * w;
            flow[b].z = amount * expf(-bond.spread * t);
            flow[b].w = 0.0f;
            atomicAdd(&count[i * CHUNK_BONDS + b], 1);
        }
    }
    __syncthreads();

    /* Prefix sum over the counters in (segment, bond) order. */
    int c = count[tid];
    int incl = c;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int o = __shfl_up_sync(0xffffffffu, incl, d);
        if (lane >= d)
            incl += o;
    }
    if (lane == 31)
        warp_total[warp] = incl;
    __syncthreads();
    for (int w = 0; w < warp; w++)
        incl += warp_total[w];

    /* Times ascend within a bond, so its flows before this segment are known. */
    int before = 0;
    for (int e = tid - CHUNK_BONDS; e >= 0; e -= CHUNK_BONDS)
        before += count[e];
    first_pos[tid] = incl - c - before;
    if (tid % CHUNK_BONDS == CHUNK_BONDS - 1)
        seg_end[blockIdx.x * NUM_PILLARS + tid / CHUNK_BONDS] = incl;
    __syncthreads();

#pragma unroll
    for (int b = 0; b < CHUNK_BONDS; b++)
        if (seg[b] >= 0)
            flows[blockIdx.x * CHUNK_FLOWS + first_pos[seg[b] * CHUNK_BONDS + b] + tid] = flow[b];
}

/* Four neighbouring scenarios per thread, one chunk of bonds per block. */
__global__ void __launch_bounds__(THREADS)
price_chunks(const float4 *__restrict__ curves_t, const float4 *__restrict__ flows,
             const int *__restrict__ seg_end, float4 *__restrict__ partial)
{
    __shared__ float4 flow[CHUNK_FLOWS];
    __shared__ int end_of[NUM_PILLARS];

    int tid = threadIdx.x;
    int chunk = blockIdx.y;
    int s4 = blockIdx.x * THREADS + tid;

    int total = seg_end[chunk * NUM_PILLARS + NUM_PILLARS - 1];
    if (tid < NUM_PILLARS)
        end_of[tid] = seg_end[chunk * NUM_PILLARS + tid];
    for (int i = tid; i < total; i += THREADS)
        flow[i] = flows[chunk * CHUNK_FLOWS + i];
    float4 a = curves_t[s4];
    float4 b = curves_t[NUM_SCENARIOS / 4 + s4];
    __syncthreads();

    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int i = 0;
    for (int seg = 0; seg < NUM_SEGMENTS; seg++) {
        /* the next curve point travels while this segment is priced */
        int next = seg + 2 < NUM_PILLARS ? seg + 2 : NUM_PILLARS - 1;
        float4 n = curves_t[next * (NUM_SCENARIOS / 4) + s4];
        int end = end_of[seg];
#pragma unroll 4
        for (; i < end; i++) {
            float4 f = flow[i];
            acc.x = fmaf(f.z, ex2(fmaf(f.x, a.x, f.y * b.x)), acc.x);
            acc.y = fmaf(f.z, ex2(fmaf(f.x, a.y, f.y * b.y)), acc.y);
            acc.z = fmaf(f.z, ex2(fmaf(f.x, a.z, f.y * b.z)), acc.z);
            acc.w = fmaf(f.z, ex2(fmaf(f.x, a.w, f.y * b.w)), acc.w);
        }
        a = b;
        b = n;
    }
    partial[chunk * (NUM_SCENARIOS / 4) + s4] = acc;
}

__global__ void __launch_bounds__(THREADS)
sum_chunks(const float *__restrict__ partial, float *__restrict__ book_value)
{
    int s = blockIdx.x * THREADS + threadIdx.x;   /* grid covers exactly */
    int k = blockIdx.y;
    float sum = 0.0f;
#pragma unroll 8
    for (int c = 0; c < CHUNKS_PER_BOOK; c++)
        sum += partial[(k * CHUNKS_PER_BOOK + c) * NUM_SCENARIOS + s];
    book_value[s * NUM_BOOKS + k] = sum;
}

static void value_books(const Bond *d_bonds, const float *d_curves,
                        const float *d_pillars, float *d_book_value)
{
    float *d_curves_t, *d_partial;
    float4 *d_flows;
    int *d_seg_end;
    CUDA_CHECK(cudaMalloc(&d_curves_t, sizeof(float) * NUM_SCENARIOS * NUM_PILLARS));
    CUDA_CHECK(cudaMalloc(&d_partial, sizeof(float) * NUM_CHUNKS * NUM_SCENARIOS));
    CUDA_CHECK(cudaMalloc(&d_flows, sizeof(float4) * NUM_CHUNKS * CHUNK_FLOWS));
    CUDA_CHECK(cudaMalloc(&d_seg_end, sizeof(int) * NUM_CHUNKS * NUM_PILLARS));

    transpose_curves<<<NUM_SCENARIOS / THREADS, THREADS>>>((const float4 *)d_curves, d_curves_t);
    build_flows<<<NUM_CHUNKS, THREADS>>>(d_bonds, d_pillars, d_flows, d_seg_end);
    price_chunks<<<dim3(NUM_SCENARIOS / SCEN_PER_BLOCK, NUM_CHUNKS), THREADS>>>(
        (const float4 *)d_curves_t, d_flows, d_seg_end, (float4 *)d_partial);
    sum_chunks<<<dim3(NUM_SCENARIOS / THREADS, NUM_BOOKS), THREADS>>>(d_partial, d_book_value);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaFree(d_curves_t));
    CUDA_CHECK(cudaFree(d_partial));
    CUDA_CHECK(cudaFree(d_flows));
    CUDA_CHECK(cudaFree(d_seg_end));
}

/* ---------------------------------------------------------------- host -- */

static unsigned int rng_state = 12345u;

static unsigned int next_u32(void)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return rng_state >> 8;
}

static float uniform(void)
{
    return (float)(next_u32() & 0xffff) / 65536.0f;
}

static float normal(void)
{
    float s = 0.0f;
    for (int i = 0; i < 12; i++)
        s += uniform();
    return s - 6.0f;
}

int main(void)
{
    const float pillars[NUM_PILLARS] = {0.25f, 0.5f, 0.75f, 1, 1.5f, 2, 3, 4,
                                        5, 7, 10, 12, 15, 20, 25, 30};
    std::vector<Bond> bonds(NUM_BONDS);
    for (int b = 0; b < NUM_BONDS; b++) {
        Bond &x = bonds[b];
        x.freq = 1 << (next_u32() % 3);
        x.num_coupons = 1 + (int)(next_u32() % (unsigned)(30 * x.freq));
        x.first = (float)(1 + next_u32() % 89) / (90.0f * (float)x.freq);
        x.notional = 1.0f + (float)(next_u32() % 90) * 0.1f;
        x.coupon = 0.01f + 0.05f * uniform();
        x.spread = 0.002f + 0.02f * uniform();
    }

    std::vector<float> curves(NUM_SCENARIOS * NUM_PILLARS);
    for (int s = 0; s < NUM_SCENARIOS; s++) {
        float level = s ? 0.0060f * normal() : 0.0f;
        float slope = s ? 0.0040f * normal() : 0.0f;
        for (int p = 0; p < NUM_PILLARS; p++) {
            float x = pillars[p] / 30.0f;
            float base = 0.020f + 0.018f * sqrtf(x);
            float noise = s ? 0.0005f * normal() : 0.0f;
            curves[s * NUM_PILLARS + p] = base + level + slope * (x - 0.3f) + noise;
        }
    }

    Bond *d_bonds;
    float *d_curves, *d_pillars, *d_book_value;
    CUDA_CHECK(cudaMalloc(&d_bonds, sizeof(Bond) * NUM_BONDS));
    CUDA_CHECK(cudaMalloc(&d_curves, sizeof(float) * NUM_SCENARIOS * NUM_PILLARS));
    CUDA_CHECK(cudaMalloc(&d_pillars, sizeof(float) * NUM_PILLARS));
    CUDA_CHECK(cudaMalloc(&d_book_value, sizeof(float) * NUM_SCENARIOS * NUM_BOOKS));
    CUDA_CHECK(cudaMemcpy(d_bonds, bonds.data(), sizeof(Bond) * NUM_BONDS, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_curves, curves.data(), sizeof(float) * NUM_SCENARIOS * NUM_PILLARS,
                          cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_pillars, pillars, sizeof(pillars), cudaMemcpyHostToDevice));

    value_books(d_bonds, d_curves, d_pillars, d_book_value);

    std::vector<float> value(NUM_SCENARIOS * NUM_BOOKS);
    CUDA_CHECK(cudaMemcpy(value.data(), d_book_value, sizeof(float) * value.size(), cudaMemcpyDeviceToHost));

    double checksum = 0.0;
    std::vector<double> pnl(NUM_SCENARIOS, 0.0), rms(NUM_BOOKS, 0.0);
    for (int s = 0; s < NUM_SCENARIOS; s++) {
        for (int k = 0; k < NUM_BOOKS; k++) {
            double v = value[s * NUM_BOOKS + k];
            double d = v - value[k];
            pnl[s] += d;
            rms[k] += d * d;
            checksum += v * (1.0 + 0.1 * ((s * NUM_BOOKS + k) % 13));
        }
    }
    double base = 0.0;
    for (int k = 0; k < NUM_BOOKS; k++)
        base += value[k];
    std::sort(pnl.begin(), pnl.end());
    int tail = NUM_SCENARIOS / 40;
    double es = 0.0;
    for (int i = 0; i < tail; i++)
        es -= pnl[i];

    printf("portfolio value today  %.5g\n", base);
    printf("VaR 99%%                %.4g\n", -pnl[NUM_SCENARIOS / 100]);
    printf("ES 97.5%%               %.4g\n", es / tail);
    printf("best scenario          %.4g\n", pnl[NUM_SCENARIOS - 1]);
    for (int k = 0; k < NUM_BOOKS; k++)
        printf("book %d rms P&L         %.4g\n", k, sqrt(rms[k] / NUM_SCENARIOS));
    printf("checksum               %.5g\n", checksum);

    CUDA_CHECK(cudaFree(d_bonds));
    CUDA_CHECK(cudaFree(d_curves));
    CUDA_CHECK(cudaFree(d_pillars));
    CUDA_CHECK(cudaFree(d_book_value));
    return 0;
}
