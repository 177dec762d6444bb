// Moving average crossover: sweep over all (fast, slow) window pairs on a universe of assets.
// All money is in integer ticks, so results are exact.
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

// generic grid launcher: one thread per index
template <typename F>
__global__ void forEachKernel(int n, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

template <typename F>
void forEach(int n, F f)
{
    const int block = 256;
    forEachKernel<<<(n + block - 1) / block, block>>>(n, f);
    CHECK(cudaGetLastError());
}

// sum of the last cWindow[w] prices up to and including bar t (0 while the window is not full)
struct RollingSum {
    const int* price;
    long long* sums;   // [window][asset][bar]

    __device__ void operator()(int i) const
    {
        int t = i % kBars;
        int a = (i / kBars) % kAssets;
        int w = i / (kBars * kAssets);
        int len = cWindow[w];
        long long s = 0;
        if (t >= len - 1) {
            for (int k = 0; k < len; ++k) s += price[a * kBars + t - k];
        }
        sums[i] = s;
    }
};

// run one strategy on one asset
struct Backtest {
    const int* price;
    const long long* sums;
    Result* results;

    __device__ void operator()(int i) const
    {
        int asset = i / kPairs;
        int pair = i % kPairs;
        // decode pair -> (fast, slow)
        int fast = 0;
        int rest = pair;
        while (rest >= kWindows - 1 - fast) {
            rest -= kWindows - 1 - fast;
            ++fast;
        }
        int slow = fast + 1 + rest;

        const int* p = price + asset * kBars;
        const long long* fs = sums + ((long long)fast * kAssets + asset) * kBars;
        const long long* ss = sums + ((long long)slow * kAssets + asset) * kBars;
        long long fastLen = cWindow[fast];
        long long slowLen = cWindow[slow];

        long long equity = 0, peak = 0, maxDd = 0;
        int pos = 0, trades = 0;
        for (int t = kMaxWindow - 1; t < kBars - 1; ++t) {
            // fast mean > slow mean, without division
            int want = fs[t] * slowLen > ss[t] * fastLen ? 1 : -1;
            if (want != pos) {
                equity -= kCost * abs(want - pos);
                pos = want;
                ++trades;
            }
            equity += pos * (p[t + 1] - p[t]);
            if (equity > peak) peak = equity;
            if (peak - equity > maxDd) maxDd = peak - equity;
        }
        Result r;
        r.pnl = equity;
        r.maxDrawdown = maxDd;
        r.trades = trades;
        r.pad = 0;
        results[i] = r;
    }
};

// best pair of an asset by profit
struct PickBest {
    const Result* results;
    int* best;

    __device__ void operator()(int a) const
    {
        int b = 0;
        for (int p = 1; p < kPairs; ++p)
            if (results[a * kPairs + p].pnl > results[a * kPairs + b].pnl) b = p;
        best[a] = b;
    }
};

struct Sweep {
    int* dPrice = nullptr;
    long long* dSums = nullptr;

    Sweep()
    {
        CHECK(cudaMalloc(&dPrice, sizeof(int) * kAssets * kBars));
        CHECK(cudaMalloc(&dSums, sizeof(long long) * kWindows * kAssets * kBars));
    }
    ~Sweep()
    {
        cudaFree(dPrice);
        cudaFree(dSums);
    }
    void setPrices(const std::vector<int>& px)
    {
        CHECK(cudaMemcpy(dPrice, px.data(), px.size() * sizeof(int), cudaMemcpyHostToDevice));
    }
    void run(Result* results, int* best)
    {
        forEach(kWindows * kAssets * kBars, RollingSum{dPrice, dSums});
        forEach(kAssets * kPairs, Backtest{dPrice, dSums, results});
        forEach(kAssets, PickBest{results, best});
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
