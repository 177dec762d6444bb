// exclusive prefix sum of a large int array and stream compaction, both in one pass (decoupled look-back)
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define N (1 << 24)
#define BS 256
#define VEC 4                       /* int4 a thread */
#define TILE (BS * VEC * 4)         /* 4096 elements a block */
#define NT (N / TILE)

typedef unsigned long long u64;
/* tile word: bits 62..63 status (1 aggregate, 2 inclusive prefix), 32..61 kept, 0..31 sum.
   sum and kept are added together as one 64-bit number: the total sum stays below 2^32 */
#define ST_AGG (1ull << 62)
#define ST_INC (2ull << 62)
#define VALUE(w) ((w) & ((1ull << 62) - 1))

__device__ __forceinline__ bool keep(int v) { return v % 3 == 0 && v > 10; }

__device__ __forceinline__ u64 pack(int v) { return (u64)(unsigned)v + (keep(v) ? (1ull << 32) : 0ull); }

__global__ void __launch_bounds__(BS)
scan_compact(const int4 *__restrict__ in, int4 *__restrict__ prefix, int *__restrict__ packed,
             u64 *state, int *ticket, int *total)
{
    __shared__ int s_tile;
    __shared__ u64 s_warp[VEC][BS / 32];
    __shared__ u64 s_base;
    __shared__ int s_keep[TILE];
    const int t = threadIdx.x, lane = t & 31, w = t >> 5;
    if (t == 0) s_tile = atomicAdd(ticket, 1);
    __syncthreads();
    const int tile = s_tile;

    /* element order in the tile: (vector k, thread t, component) */
    int4 v[VEC];
    u64 inc[VEC], own[VEC];
#pragma unroll
    for (int k = 0; k < VEC; k++) v[k] = __ldcs(in + (size_t)tile * (TILE / 4) + k * BS + t);
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        own[k] = pack(v[k].x) + pack(v[k].y) + pack(v[k].z) + pack(v[k].w);
        u64 x = own[k];
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) {
            u64 y = __shfl_up_sync(~0u, x, o);
            if (lane >= o) x += y;
        }
        inc[k] = x;
        if (lane == 31) s_warp[k][w] = x;
    }
    __syncthreads();
    if (w == 0) {
        /* scan of the 32 warp totals, in element order (k, w) */
        u64 a = s_warp[lane / (BS / 32)][lane % (BS / 32)], x = a;
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) {
            u64 y = __shfl_up_sync(~0u, x, o);
            if (lane >= o) x += y;
        }
        s_warp[lane / (BS / 32)][lane % (BS / 32)] = x - a;
        const u64 agg = __shfl_sync(~0u, x, 31);
        u64 base = 0;
        if (tile == 0) {
            if (lane == 0) atomicExch(&state[0], ST_INC | agg);
        } else {
            if (lane == 0) atomicExch(&state[tile], ST_AGG | agg);
            int at = tile - 1;
            while (true) {
                const int idx = at - lane;
                u64 word = ST_INC;
                do {
                    if (idx >= 0) word = *(volatile u64 *)&state[idx];
                } while (__any_sync(~0u, (word >> 62) == 0));
                const unsigned done = __ballot_sync(~0u, (word >> 62) == 2);
                const int first = done ? __ffs(done) - 1 : 31;
                u64 c = (lane <= first) ? VALUE(word) : 0ull;
#pragma unroll
                for (int o = 16; o > 0; o >>= 1) c += __shfl_xor_sync(~0u, c, o);
                base += c;
                if (done) break;
                at -= 32;
            }
            if (lane == 0) atomicExch(&state[tile], ST_INC | (base + agg));
        }
        if (lane == 0) {
            s_base = base;
            if (tile == NT - 1) *total = (int)((base + agg) >> 32);
        }
        if (lane == 31) s_tile = (int)(agg >> 32);
    }
    __syncthreads();
    const u64 base = s_base;
    const int kept = s_tile;
    const int sum0 = (int)(unsigned)base, pos0 = (int)(base >> 32);
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        const u64 e = s_warp[k][w] + inc[k] - own[k];
        int run = sum0 + (int)(unsigned)e;
        int q = (int)(e >> 32);
        int4 o;
        o.x = run; run += v[k].x; if (keep(v[k].x)) s_keep[q++] = v[k].x;
        o.y = run; run += v[k].y; if (keep(v[k].y)) s_keep[q++] = v[k].y;
        o.z = run; run += v[k].z; if (keep(v[k].z)) s_keep[q++] = v[k].z;
        o.w = run;                if (keep(v[k].w)) s_keep[q++] = v[k].w;
        __stcs(prefix + (size_t)tile * (TILE / 4) + k * BS + t, o);
    }
    __syncthreads();
    for (int i = t; i < kept; i += BS) __stcs(packed + pos0 + i, s_keep[i]);
}

int main()
{
    int *h = (int *)malloc(N * sizeof(int));
    unsigned int s = 31415u;
    for (int i = 0; i < N; i++) {
        s = s * 1664525u + 1013904223u;
        h[i] = (s >> 10) % 100;
    }
    int *in, *prefix, *packed, *ctl;
    u64 *state;
    cudaMalloc(&in, N * sizeof(int));
    cudaMalloc(&prefix, N * sizeof(int));
    cudaMalloc(&packed, N * sizeof(int));
    cudaMalloc(&state, (NT + 1) * sizeof(u64));      /* last word: ticket, total */
    ctl = (int *)(state + NT);
    cudaMemcpy(in, h, N * sizeof(int), cudaMemcpyHostToDevice);

    cudaMemsetAsync(state, 0, (NT + 1) * sizeof(u64));
    scan_compact<<<NT, BS>>>((const int4 *)in, (int4 *)prefix, packed, state, ctl, ctl + 1);

    int count = 0;
    cudaMemcpy(&count, ctl + 1, sizeof(int), cudaMemcpyDeviceToHost);
    int *hp = (int *)malloc(N * sizeof(int));
    int *hc = (int *)malloc(count * sizeof(int));
    cudaMemcpy(hp, prefix, N * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(hc, packed, count * sizeof(int), cudaMemcpyDeviceToHost);

    unsigned long long hash = 0, hash2 = 0;
    for (int i = 0; i < N; i++) hash = hash * 31 + (unsigned)hp[i];
    for (int i = 0; i < count; i++) hash2 = hash2 * 31 + (unsigned)hc[i];
    printf("prefix[1]=%d prefix[mid]=%d prefix[last]=%d hash %llx\n", hp[1], hp[N / 2], hp[N - 1], hash);
    printf("kept %d, first %d last %d hash %llx\n", count, hc[0], hc[count - 1], hash2);
    return 0;
}
