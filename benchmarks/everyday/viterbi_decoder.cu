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

__device__ int branch_cost(int reg, int ra, int rb)
{
    int a = __popc(reg & POLY_A) & 1;
    int b = __popc(reg & POLY_B) & 1;
    return (a ? SOFT_MAX - ra : ra) + (b ? SOFT_MAX - rb : rb);
}

/* One block per frame, one thread per trellis state. */
__global__ void forward_pass(const u8 *symbols, u8 *decisions, int *final_cost)
{
    __shared__ int cost[2][STATES];

    int frame = blockIdx.x;
    int state = threadIdx.x;
    int bit = state & 1;
    int prev0 = state >> 1;
    int prev1 = prev0 + STATES / 2;
    int cur = 0;

    cost[0][state] = state == 0 ? 0 : UNREACHABLE;
    __syncthreads();

    for (int t = 0; t < STEPS; t++) {
        int ra = symbols[(frame * STEPS + t) * 2];
        int rb = symbols[(frame * STEPS + t) * 2 + 1];
        int c0 = cost[cur][prev0] + branch_cost(prev0 << 1 | bit, ra, rb);
        int c1 = cost[cur][prev1] + branch_cost(prev1 << 1 | bit, ra, rb);
        int take1 = c1 < c0;
        cost[cur ^ 1][state] = take1 ? c1 : c0;
        decisions[((size_t)frame * STEPS + t) * STATES + state] = (u8)take1;
        __syncthreads();
        cur ^= 1;
    }
    if (state == 0)
        final_cost[frame] = cost[cur][0];
}

/* One thread per frame walks the decisions backwards. */
__global__ void trace_back(const u8 *decisions, u8 *bits)
{
    int frame = blockIdx.x * blockDim.x + threadIdx.x;
    if (frame >= FRAMES)
        return;

    int state = 0;
    for (int t = STEPS - 1; t >= 0; t--) {
        bits[frame * STEPS + t] = (u8)(state & 1);
        int d = decisions[((size_t)frame * STEPS + t) * STATES + state];
        state = (state >> 1) | (d << 5);
    }
}

static void decode(const u8 *d_symbols, u8 *d_bits, int *d_cost)
{
    u8 *d_decisions;
    CK(cudaMalloc((void **)&d_decisions, (size_t)FRAMES * STEPS * STATES));
    forward_pass<<<FRAMES, STATES>>>(d_symbols, d_decisions, d_cost);
    trace_back<<<(FRAMES + 127) / 128, 128>>>(d_decisions, d_bits);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    CK(cudaFree(d_decisions));
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
