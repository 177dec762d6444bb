// Moving average crossover: sweep over all (fast, slow) window pairs on a universe of assets.
// All money is in integer ticks, so results are exact.
// H200 version: one block per asset, one kernel.  Prefix sums of the prices in shared memory
// replace the rolling sums (no 128 MB intermediate); a warp runs one pair, its 32 lanes
// take 32 consecutive stretches of time, joined by the associative (sum, max, min, drawdown)
// operator; the stretch length is odd, so all shared reads are free of bank conflicts.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "CUDA error at line %d: %s\n", line, cudaGetErrorString(e));
        exit(EXIT_FAILURE);
    }
}
#define CHECK(x) check((x), __LINE__)

constexpr int kAssets = 256;
constexpr int kBars = 4096;
constexpr int kWindows = 16;
constexpr int kPairs = kWindows * (kWindows - 1) / 2;   // fast < slow
constexpr int kMaxWindow = 200;
constexpr int kCost = 3;                                // ticks per unit of turnover

__constant__ int cWindow[kWindows] = {3,  5,  8,  10, 13, 16,  20,  25,
                                      32, 40, 50, 65, 80, 110, 150, kMaxWindow};

struct Result {
    long long pnl;          // in ticks
    long long maxDrawdown;  // in ticks
    int trades;
    int pad;
};

constexpr int kThreads = 640;                               // 20 warps, 6 pairs each
constexpr int kWarps = kThreads / 32;
constexpr int kFirst = kMaxWindow - 1;                      // first decision
constexpr int kSteps = kBars - 1 - kFirst;                  // 3896
constexpr int kStretch = ((kSteps + 31) / 32) | 1;          // 123, odd
constexpr int kChunk = (kBars + kThreads - 1) / kThreads;   // prefix sum: bars per thread (7, odd)
static_assert(kPairs % kWarps == 0, "pairs per warp");
static_assert(kStretch * 32 >= kSteps, "stretches cover the time line");

struct Path {   // prefixes include the empty one
    int sum, hi, lo, dd, trades;
};

__device__ __forceinline__ Path join(const Path& a, const Path& b)
{
    Path r;
    r.sum = a.sum + b.sum;
    r.hi = max(a.hi, a.sum + b.hi);
    r.lo = min(a.lo, a.sum + b.lo);
    r.dd = max(max(a.dd, b.dd), a.hi - (a.sum + b.lo));
    r.trades = a.trades + b.trades;
    return r;
}

// Prices are at most 100000 ticks: a prefix sum of 4096 of them fits 32 bits.
__global__ void __launch_bounds__(kThreads, 2)
sweepKernel(const int* __restrict__ price, Result* __restrict__ results, int* __restrict__ best)
{
    __shared__ int sPrice[kBars];
    __shared__ int sCum[kBars + 1];        // sCum[t] = sum of prices before bar t
    __shared__ int sWarp[kWarps];
    __shared__ int sPnl[kPairs];

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int asset = blockIdx.x;

    const int4* src = reinterpret_cast<const int4*>(price + (size_t)asset * kBars);
    for (int i = tid; i < kBars / 4; i += kThreads) reinterpret_cast<int4*>(sPrice)[i] = __ldg(src + i);
    __syncthreads();

    // block-wide prefix sum, kChunk bars per thread
    {
        int v[kChunk];
        int total = 0;
#pragma unroll
        for (int k = 0; k < kChunk; ++k) {
            int t = tid * kChunk + k;
            v[k] = t < kBars ? sPrice[t] : 0;
            total += v[k];
        }
        int inc = total;
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) {
            int u = __shfl_up_sync(0xffffffffu, inc, o);
            if (lane >= o) inc += u;
        }
        if (lane == 31) sWarp[warp] = inc;
        __syncthreads();
        if (warp == 0) {
            int x = lane < kWarps ? sWarp[lane] : 0;
#pragma unroll
            for (int o = 1; o < 32; o <<= 1) {
                int u = __shfl_up_sync(0xffffffffu, x, o);
                if (lane >= o) x += u;
            }
            if (lane < kWarps) sWarp[lane] = x;
        }
        __syncthreads();
        int run = inc - total + (warp > 0 ? sWarp[warp - 1] : 0);
#pragma unroll
        for (int k = 0; k < kChunk; ++k) {
            int t = tid * kChunk + k;
            run += v[k];
            if (t < kBars) sCum[t + 1] = run;
        }
        if (tid == 0) sCum[0] = 0;
    }
    __syncthreads();

    const int begin = kFirst + lane * kStretch;
    const int end = min(begin + kStretch, kBars - 1);

    for (int pair = warp; pair < kPairs; pair += kWarps) {
        int fast = 0, rest = pair;
        while (rest >= kWindows - 1 - fast) {
            rest -= kWindows - 1 - fast;
            ++fast;
        }
        const int fl = cWindow[fast];
        const int sl = cWindow[fast + 1 + rest];

        Path me = {0, 0, 0, 0, 0};
        int pos = 0;
        if (lane > 0) {     // the position carried over from the bar before this stretch
            int c = sCum[begin];
            pos = (long long)(c - sCum[begin - fl]) * sl > (long long)(c - sCum[begin - sl]) * fl ? 1 : -1;
        }
        int p0 = sPrice[begin];
        for (int t = begin; t < end; ++t) {
            const int c = sCum[t + 1];
            const int p1 = sPrice[t + 1];
            const int want =
                (long long)(c - sCum[t + 1 - fl]) * sl > (long long)(c - sCum[t + 1 - sl]) * fl ? 1 : -1;
            const int turn = abs(want - pos);
            me.trades += turn != 0;
            me.sum -= kCost * turn;
            me.sum += want > 0 ? p1 - p0 : p0 - p1;
            pos = want;
            p0 = p1;
            me.hi = max(me.hi, me.sum);
            me.lo = min(me.lo, me.sum);
            me.dd = max(me.dd, me.hi - me.sum);
        }
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) {
            Path nx;
            nx.sum = __shfl_down_sync(0xffffffffu, me.sum, o);
            nx.hi = __shfl_down_sync(0xffffffffu, me.hi, o);
            nx.lo = __shfl_down_sync(0xffffffffu, me.lo, o);
            nx.dd = __shfl_down_sync(0xffffffffu, me.dd, o);
            nx.trades = __shfl_down_sync(0xffffffffu, me.trades, o);
            me = join(me, nx);          // lane 0 ends up with the whole line, in order
        }
        if (lane == 0) {
            Result r;
            r.pnl = me.sum;
            r.maxDrawdown = me.dd;
            r.trades = me.trades;
            r.pad = 0;
            results[asset * kPairs + pair] = r;
            sPnl[pair] = me.sum;
        }
    }
    __syncthreads();

    if (warp == 0) {
        int bp = sPnl[lane], bi = lane;
        for (int p = lane + 32; p < kPairs; p += 32)
            if (sPnl[p] > bp) { bp = sPnl[p]; bi = p; }
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) {
            int op = __shfl_down_sync(0xffffffffu, bp, o);
            int oi = __shfl_down_sync(0xffffffffu, bi, o);
            if (op > bp || (op == bp && oi < bi)) { bp = op; bi = oi; }
        }
        if (lane == 0) best[asset] = bi;
    }
}

struct Sweep {
    int* dPrice = nullptr;

    Sweep() { CHECK(cudaMalloc(&dPrice, sizeof(int) * kAssets * kBars)); }
    ~Sweep() { cudaFree(dPrice); }
    void setPrices(const std::vector<int>& px)
    {
        CHECK(cudaMemcpy(dPrice, px.data(), px.size() * sizeof(int), cudaMemcpyHostToDevice));
    }
    void run(Result* results, int* best)
    {
        sweepKernel<<<kAssets, kThreads>>>(dPrice, results, best);
        CHECK(cudaGetLastError());
    }
};

// xorshift64* so that the tape is the same everywhere
struct TapeRng {
    uint64_t s;
    explicit TapeRng(uint64_t seed) : s(seed) {}
    uint32_t next()
    {
        s ^= s >> 12;
        s ^= s << 25;
        s ^= s >> 27;
        return (uint32_t)((s * 2685821657736338717ull) >> 32);
    }
    int range(int lo, int hi) { return lo + (int)(next() % (uint32_t)(hi - lo + 1)); }
};

static std::vector<int> makeTape()
{
    std::vector<int> px((size_t)kAssets * kBars);
    TapeRng rng(0x9E3779B97F4A7C15ull);
    for (int a = 0; a < kAssets; ++a) {
        int p = rng.range(8000, 30000);
        int drift = 0;
        for (int t = 0; t < kBars; ++t) {
            if (rng.next() % 60u == 0u) drift = rng.range(-6, 6);
            p += drift + rng.range(-25, 25);
            if (p < 1000) p = 2000 - p;           // prices stay within [1000, 100000] ticks
            if (p > 100000) p = 200000 - p;
            px[(size_t)a * kBars + t] = p;
        }
    }
    return px;
}

int main()
{
    std::vector<int> px = makeTape();

    Sweep sweep;
    Result* results = nullptr;   // managed, [asset][pair]
    int* best = nullptr;         // managed, [asset]
    CHECK(cudaMallocManaged(&results, sizeof(Result) * kAssets * kPairs));
    CHECK(cudaMallocManaged(&best, sizeof(int) * kAssets));
    CHECK(cudaMemset(results, 0, sizeof(Result) * kAssets * kPairs));
    CHECK(cudaMemset(best, 0, sizeof(int) * kAssets));

    sweep.setPrices(px);
    sweep.run(results, best);
    CHECK(cudaDeviceSynchronize());

    double absPnl = 0, dd = 0, weighted = 0;
    long long trades = 0;
    for (int a = 0; a < kAssets; ++a) {
        for (int p = 0; p < kPairs; ++p) {
            const Result& r = results[a * kPairs + p];
            absPnl += std::fabs((double)r.pnl);
            dd += (double)r.maxDrawdown;
            trades += r.trades;
            weighted += std::fabs((double)r.pnl) * (1 + p % 13) + (double)r.maxDrawdown * (1 + a % 7);
        }
    }
    double bestPnl = 0, bestDd = 0;
    long long pairSum = 0;
    for (int a = 0; a < kAssets; ++a) {
        const Result& r = results[a * kPairs + best[a]];
        bestPnl += (double)r.pnl;
        bestDd += (double)r.maxDrawdown;
        pairSum += best[a] + 1;
    }
    const double n = (double)kAssets * kPairs;
    printf("mean |pnl| %.3f  mean drawdown %.3f  trades %lld\n", absPnl / n, dd / n, trades);
    printf("weighted %.3f\n", weighted / n);
    printf("best: mean pnl %.3f  mean drawdown %.3f  pair sum %lld\n", bestPnl / kAssets,
           bestDd / kAssets, pairSum);
    cudaFree(results);
    cudaFree(best);
    CHECK(cudaGetLastError());
    return 0;
}
