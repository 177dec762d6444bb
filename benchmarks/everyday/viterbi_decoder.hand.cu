/* Soft-decision Viterbi decoder for the rate 1/2, constraint length 7
 * convolutional code (generators 171 and 133 octal), many frames at once.
 * Each frame is terminated with six zero bits, so the trellis ends in state 0. */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
    FRAMES = 3072,
    STEPS = 1024,          /* trellis steps per frame, tail included */
    TAIL = 6,
    STATES = 64,
    POLY_A = 0x79,         /* 171 octal */
    POLY_B = 0x5b,         /* 133 octal */
    SOFT_MAX = 15,         /* a received symbol is 0 (sure 0) .. 15 (sure 1) */
    UNREACHABLE = 5000
};

#define CK(call) ck((call), #call)
static void ck(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(e));
        exit(1);
    }
}

/* ------------------------------------------------------------ device ---- */

/* One warp per frame. Lane j owns the old states j and j + 32; they lead to the
 * new states 2j and 2j + 1, whose costs it packs into the halves of a register
 * (costs stay below 1024 * 30 + 5000 + 30 < 65536, so nothing is normalised and
 * no half carries into the other). Both generators tap the first and the last
 * bit, so all four branches of the butterfly cost c or 30 - c. Two shuffles
 * hand the costs on; decisions leave as ballots, 8 bytes a step, and stay in
 * shared memory until the trace back, which the same warp does with loads that
 * do not depend on the state. No block barrier anywhere. */
enum { WARPS = 4, PAIR = 0x10001, FULL = 2 * SOFT_MAX };
#define ALL 0xffffffffu

static_assert(FRAMES % WARPS == 0 && STEPS % 32 == 0, "exact tiling");
static_assert(STEPS * FULL + UNREACHABLE + FULL < 65536, "16-bit costs");

__device__ __forceinline__ void trellis_step(u32 word, u32 taps, u32 sel, int from,
                                             u32 base, u32 &cost, uint2 *slot, int lane)
{
    /* c = cost of the branch from state j with input 0 */
    u32 c = (u32)__dp4a((int)word, (int)taps, (int)base);
    u32 bm_low = (FULL << 16) - c * 65535u;           /* c | (30 - c) << 16 */
    u32 bm_high = (u32)FULL * PAIR - bm_low;          /* (30 - c) | c << 16 */

    u32 low = __shfl_sync(ALL, cost, from);           /* holds state j */
    u32 high = __shfl_sync(ALL, cost, from + 16);     /* holds state j + 32 */
    u32 a = __byte_perm(low, low, sel) + bm_low;
    u32 b = __byte_perm(high, high, sel) + bm_high;
    bool keep_odd, keep_even;                         /* true: first predecessor */
    cost = __vibmin_u16x2(a, b, &keep_odd, &keep_even);
    u32 even = __ballot_sync(ALL, keep_even);
    u32 odd = __ballot_sync(ALL, keep_odd);
    if (lane == 0)
        *slot = make_uint2(even, odd);
}

__global__ void __launch_bounds__(WARPS * 32)
viterbi(const u8 *__restrict__ symbols, u8 *__restrict__ bits, int *__restrict__ final_cost)
{
    __shared__ uint2 kept[WARPS][STEPS];

    int lane = threadIdx.x & 31;
    int warp = threadIdx.x >> 5;
    int frame = blockIdx.x * WARPS + warp;
    uint2 *mine = kept[warp];

    /* cost of a code bit: r if it is 0, 15 - r if it is 1 */
    int reg = lane << 1;
    int pa = __popc(reg & POLY_A) & 1, pb = __popc(reg & POLY_B) & 1;
    u32 base = (u32)(SOFT_MAX * (pa + pb));
    u32 taps = (pa ? 0xffu : 0x01u) | (pb ? 0xffu : 0x01u) << 8;   /* signed bytes */
    u32 taps_hi = taps << 16;
    int from = lane >> 1;
    u32 sel = lane & 1 ? 0x3232u : 0x1010u;

    /* lane k holds the costs of states 2k (low half) and 2k + 1 (high half) */
    u32 cost = lane == 0 ? (u32)UNREACHABLE << 16 : (u32)UNREACHABLE * PAIR;

    /* 16 bytes are the symbols of 8 steps; the next ones are always on their way */
    const uint4 *in = (const uint4 *)(symbols + (size_t)frame * STEPS * 2);
    uint4 next = __ldg(in);
    for (int g = 0; g < STEPS / 8; g++) {
        uint4 w = next;
        if (g + 1 < STEPS / 8)
            next = __ldg(in + g + 1);
        uint2 *slot = mine + g * 8;
        trellis_step(w.x, taps, sel, from, base, cost, slot + 0, lane);
        trellis_step(w.x, taps_hi, sel, from, base, cost, slot + 1, lane);
        trellis_step(w.y, taps, sel, from, base, cost, slot + 2, lane);
        trellis_step(w.y, taps_hi, sel, from, base, cost, slot + 3, lane);
        trellis_step(w.z, taps, sel, from, base, cost, slot + 4, lane);
        trellis_step(w.z, taps_hi, sel, from, base, cost, slot + 5, lane);
        trellis_step(w.w, taps, sel, from, base, cost, slot + 6, lane);
        trellis_step(w.w, taps_hi, sel, from, base, cost, slot + 7, lane);
    }
    if (lane == 0)
        final_cost[frame] = (int)(cost & 0xffffu);
    __syncwarp();

    u32 state = 0;
    for (int t0 = STEPS - 32; t0 >= 0; t0 -= 32) {
        u32 my_bit = 0;
#pragma unroll
        for (int k = 31; k >= 0; k--) {
            uint2 w = mine[t0 + k];
            if (lane == k)
                my_bit = state & 1;
            u32 word = state & 1 ? w.y : w.x;
            u32 d = ~(word >> (state >> 1)) & 1;
            state = state >> 1 | d << 5;
        }
        bits[(size_t)frame * STEPS + t0 + lane] = (u8)my_bit;
    }
}

static void decode(const u8 *d_symbols, u8 *d_bits, int *d_cost)
{
    viterbi<<<FRAMES / WARPS, WARPS * 32>>>(d_symbols, d_bits, d_cost);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
}

/* -------------------------------------------------------------- host ---- */

static u64 seed = 88172645463325252ull;

static u64 rnd(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed ^ (seed >> 29);
}

static int parity(u32 x)
{
    x ^= x >> 4;
    x ^= x >> 2;
    x ^= x >> 1;
    return (int)(x & 1);
}

/* Sends one coded bit through a noisy channel and quantises it. */
static u8 channel(int coded)
{
    u64 r = rnd();
    int sum = (int)(r & 0xffff) + (int)(r >> 16 & 0xffff) + (int)(r >> 32 & 0xffff) + (int)(r >> 48);
    float noise = (float)(sum - 2 * 65535) / 65536.0f * 4.4f;
    float level = (coded ? 10.5f : 4.5f) + noise;
    int q = (int)(level + 0.5f);
    return (u8)(q < 0 ? 0 : q > SOFT_MAX ? SOFT_MAX : q);
}

int main(void)
{
    u8 *sent = (u8 *)malloc((size_t)FRAMES * STEPS);
    u8 *bits = (u8 *)malloc((size_t)FRAMES * STEPS);
    u8 *symbols = (u8 *)malloc((size_t)FRAMES * STEPS * 2);
    int *cost = (int *)malloc(FRAMES * sizeof(int));

    for (int f = 0; f < FRAMES; f++) {
        int reg = 0;
        for (int t = 0; t < STEPS; t++) {
            int i = f * STEPS + t;
            int b = t < STEPS - TAIL ? (int)(rnd() >> 40 & 1) : 0;
            sent[i] = (u8)b;
            reg = ((reg << 1) | b) & 127;
            symbols[2 * i] = channel(parity(reg & POLY_A));
            symbols[2 * i + 1] = channel(parity(reg & POLY_B));
        }
    }

    u8 *d_symbols, *d_bits;
    int *d_cost;
    CK(cudaMalloc((void **)&d_symbols, (size_t)FRAMES * STEPS * 2));
    CK(cudaMalloc((void **)&d_bits, (size_t)FRAMES * STEPS));
    CK(cudaMalloc((void **)&d_cost, FRAMES * sizeof(int)));
    CK(cudaMemcpy(d_symbols, symbols, (size_t)FRAMES * STEPS * 2, cudaMemcpyHostToDevice));

    decode(d_symbols, d_bits, d_cost);

    CK(cudaMemcpy(bits, d_bits, (size_t)FRAMES * STEPS, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(cost, d_cost, FRAMES * sizeof(int), cudaMemcpyDeviceToHost));

    long long ones = 0, bit_errors = 0, frame_errors = 0, cost_sum = 0, cost_mix = 0;
    u32 hash = 2166136261u;
    for (int f = 0; f < FRAMES; f++) {
        int wrong = 0;
        for (int t = 0; t < STEPS; t++) {
            int i = f * STEPS + t;
            wrong += bits[i] != sent[i];
            ones += bits[i];
            hash = (hash ^ bits[i]) * 16777619u;
        }
        bit_errors += wrong;
        frame_errors += wrong > 0;
        cost_sum += cost[f];
        cost_mix += (long long)cost[f] * (f % 17 + 1);
    }
    printf("decoded ones  %lld\n", ones);
    printf("bit errors    %lld\n", bit_errors);
    printf("frame errors  %lld of %d\n", frame_errors, (int)FRAMES);
    printf("path cost     %lld %lld\n", cost_sum, cost_mix);
    printf("bit hash      %u\n", hash);

    CK(cudaFree(d_symbols));
    CK(cudaFree(d_bits));
    CK(cudaFree(d_cost));
    free(sent);
    free(bits);
    free(symbols);
    free(cost);
    return 0;
}
