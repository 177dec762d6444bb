// American option pricing on a Cox-Ross-Rubinstein binomial lattice, tuned for H200.
// One warp per option and the whole lattice in registers. A register slot stands for a fixed
// exponent of the up factor (not for a node number), so the exercise values of a slot never
// change: even time steps use the even exponents, odd steps the odd ones between them. A step
// is one shuffle plus K x (FMUL, FFMA, FMNMX). As the triangle shrinks, the live slots are
// respread over the warp with half as many slots per lane.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t err_ = (call);                                               \
        if (err_ != cudaSuccess) {                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                   \
                    cudaGetErrorString(err_));                                   \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr int NUM_OPTIONS = 4001;
constexpr int STEPS = 500;
constexpr int WARPS = 4;
constexpr unsigned FULL = 0xffffffffu;
static_assert(STEPS % 2 == 0 && STEPS <= 510 && STEPS > 254, "slot layout");

struct Option {
    float spot;
    float strike;
    float rate;
    float dividend;
    float vol;
    float maturity;
    int isPut;
};

struct Lattice {
    float spot, strike, sdt, pu, pd;
    bool isPut;
};

__device__ __forceinline__ float exercise(const Lattice& l, int exponent)
{
    float s = l.spot * expf((float)exponent * l.sdt);
    float gain = l.isPut ? l.strike - s : s - l.strike;
    return fmaxf(gain, 0.0f);
}

// Slot s of a lane stands for exponent 2 * (lane * K + s - 16 * K) at even steps and for that
// plus one at odd steps. Walks from even step "from" to even step "to" (from <= 32 * K - 2).
template <int K, bool FIRST>
__device__ __forceinline__ void walk(float (&v)[K], int from, int to, const Lattice& l, int lane)
{
    float payEven[K], payOdd[K];
#pragma unroll
    for (int s = 0; s < K; s++) {
        int e = 2 * (lane * K + s - 16 * K);
        payEven[s] = exercise(l, e);
        payOdd[s] = exercise(l, e + 1);
        if (FIRST) v[s] = payEven[s];
    }
    for (int i = from; i > to; i -= 2) {
        float above = __shfl_down_sync(FULL, v[0], 1);
#pragma unroll
        for (int s = 0; s < K; s++) {
            float up = s + 1 < K ? v[s + 1 < K ? s + 1 : 0] : above;
            v[s] = fmaxf(l.pu * up + l.pd * v[s], payOdd[s]);
        }
        float below = __shfl_up_sync(FULL, v[K - 1], 1);
#pragma unroll
        for (int s = K - 1; s >= 0; s--) {
            float down = s > 0 ? v[s > 0 ? s - 1 : 0] : below;
            v[s] = fmaxf(l.pu * v[s] + l.pd * down, payEven[s]);
        }
    }
}

// keep the middle half of the slots
template <int K>
__device__ __forceinline__ void respread(const float (&a)[K], float (&b)[K / 2], float* sm, int lane)
{
#pragma unroll
    for (int s = 0; s < K; s++) {
        int e = lane * K + s - 8 * K;
        if (e >= 0 && e < 16 * K) sm[e] = a[s];
    }
    __syncwarp();
#pragma unroll
    for (int s = 0; s < K / 2; s++) b[s] = sm[lane * (K / 2) + s];
    __syncwarp();
}

__global__ void __launch_bounds__(WARPS * 32)
price_options(const Option* __restrict__ options, float* __restrict__ price,
              float* __restrict__ delta, int n)
{
    __shared__ float exchange[WARPS][256];
    int lane = threadIdx.x & 31;
    int warp = threadIdx.x >> 5;
    int id = blockIdx.x * WARPS + warp;
    if (id >= n) return;  // whole warps only, no block barrier below
    float* sm = exchange[warp];

    Option o = options[id];
    double dt = (double)o.maturity / STEPS;
    double sdt = (double)o.vol * sqrt(dt);
    double u = exp(sdt);
    double d = exp(-sdt);
    double disc = exp(-(double)o.rate * dt);
    double p = (exp(((double)o.rate - (double)o.dividend) * dt) - d) / (u - d);
    Lattice l;
    l.spot = o.spot;
    l.strike = o.strike;
    l.sdt = (float)sdt;
    l.pu = (float)(disc * p);
    l.pd = (float)(disc * (1.0 - p));
    l.isPut = o.isPut != 0;

    float v16[16], v8[8], v4[4], v2[2], v1[1];
    walk<16, true>(v16, STEPS, 254, l, lane);
    respread<16>(v16, v8, sm, lane);
    walk<8, false>(v8, 254, 126, l, lane);
    respread<8>(v8, v4, sm, lane);
    walk<4, false>(v4, 126, 62, l, lane);
    respread<4>(v4, v2, sm, lane);
    walk<2, false>(v2, 62, 30, l, lane);
    respread<2>(v2, v1, sm, lane);
    walk<1, false>(v1, 30, 2, l, lane);

    // last two steps: step 1 has exponents -1 (lane 15) and +1 (lane 16), step 0 has lane 16
    float above = __shfl_down_sync(FULL, v1[0], 1);
    float step1 = fmaxf(l.pu * above + l.pd * v1[0], exercise(l, 2 * (lane - 16) + 1));
    float below = __shfl_up_sync(FULL, step1, 1);
    if (lane == 16) {
        price[id] = fmaxf(l.pu * step1 + l.pd * below, exercise(l, 0));
        float up = l.spot * expf(l.sdt);
        float down = l.spot * expf(-l.sdt);
        delta[id] = (step1 - below) / (up - down);
    }
}

static unsigned int lcg_state = 12345u;
static float uniform(float lo, float hi)
{
    lcg_state = lcg_state * 1664525u + 1013904223u;
    return lo + (hi - lo) * (float)(lcg_state >> 8) / 16777216.0f;
}

int main()
{
    std::vector<Option> options(NUM_OPTIONS);
    for (int i = 0; i < NUM_OPTIONS; i++) {
        options[i].spot = uniform(80.0f, 120.0f);
        options[i].strike = uniform(80.0f, 120.0f);
        options[i].rate = uniform(0.01f, 0.08f);
        options[i].dividend = uniform(0.0f, 0.06f);
        options[i].vol = uniform(0.15f, 0.5f);
        options[i].maturity = uniform(0.25f, 2.0f);
        options[i].isPut = (i % 3 != 0);
    }

    Option* d_options;
    float *d_price, *d_delta;
    CHECK(cudaMalloc(&d_options, NUM_OPTIONS * sizeof(Option)));
    CHECK(cudaMalloc(&d_price, NUM_OPTIONS * sizeof(float)));
    CHECK(cudaMalloc(&d_delta, NUM_OPTIONS * sizeof(float)));
    CHECK(cudaMemcpy(d_options, options.data(), NUM_OPTIONS * sizeof(Option),
                     cudaMemcpyHostToDevice));

    price_options<<<(NUM_OPTIONS + WARPS - 1) / WARPS, WARPS * 32>>>(d_options, d_price, d_delta,
                                                                     NUM_OPTIONS);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    std::vector<float> price(NUM_OPTIONS), delta(NUM_OPTIONS);
    CHECK(cudaMemcpy(price.data(), d_price, NUM_OPTIONS * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(delta.data(), d_delta, NUM_OPTIONS * sizeof(float), cudaMemcpyDeviceToHost));

    double putSum = 0, callSum = 0, putDelta = 0, callDelta = 0, maxPrice = 0;
    for (int i = 0; i < NUM_OPTIONS; i++) {
        if (options[i].isPut) {
            putSum += price[i];
            putDelta += delta[i];
        } else {
            callSum += price[i];
            callDelta += delta[i];
        }
        maxPrice = std::fmax(maxPrice, (double)price[i]);
    }
    printf("put sum %.8e\ncall sum %.8e\n", putSum, callSum);
    printf("put delta sum %.8e\ncall delta sum %.8e\n", putDelta, callDelta);
    printf("max price %.8e\n", maxPrice);
    for (int k = 0; k < 5; k++)
        printf("price %.8e\n", price[k * 799 + 3]);

    CHECK(cudaFree(d_options));
    CHECK(cudaFree(d_price));
    CHECK(cudaFree(d_delta));
    return 0;
}
