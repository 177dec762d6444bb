// Monte-Carlo pricing of Asian options (arithmetic and geometric average, several strikes) and a
// floating-strike lookback put under geometric Brownian motion, with an own counter-based generator.
// Tuned for H200 (sm_90): generation, simulation and payoffs fused in one kernel, nothing but the final
// sums touches memory.
//  * special functions on the MUFU unit (lg2, sqrt, sin, cos, ex2 approximations) in base-2 logarithms, so
//    that the time loop holds no conversions: x is log2(price / spot);
//  * the two normals of a Box-Muller pair feed two consecutive steps;
//  * payoffs are summed with warp shuffles, then in shared memory, then one double atomic per block and value.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

using u32 = uint32_t;

#define CUDA_OK(x) cuda_ok((x), #x, __LINE__)
static void cuda_ok(cudaError_t e, const char *expr, int line)
{
    if (e == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s -> %s\n", line, expr, cudaGetErrorString(e));
    std::exit(2);
}

constexpr int N_PATHS = 200003;
constexpr int N_STEPS = 90;      // even: normals come in pairs
constexpr int N_STRIKES = 6;
constexpr u32 SEED = 0x9e3779b9u;
constexpr int N_ACC = 3 * N_STRIKES + 2;
constexpr int BLOCK = 128;

struct Params {                  // everything the kernel needs, prepared on the host
    float spot;
    float drift2;                // drift and volatility of one step in base-2 logarithms; the volatility holds
    float vol2;                  // the factor sqrt(2 ln 2) of Box-Muller too
    float strikes[N_STRIKES];
};

__host__ __device__ inline u32 mix(u32 x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

__device__ __forceinline__ float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float fast_log2(float x)
{
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float fast_sqrt(float x)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
    return x;
}

__global__ void __launch_bounds__(BLOCK)
price_kernel(const Params p, double *__restrict__ acc)
{
    __shared__ float partial[BLOCK / 32][N_ACC];
    const int path = blockIdx.x * BLOCK + threadIdx.x;
    const bool live = path < N_PATHS;

    float x = 0.0f, log_sum = 0.0f, sum = 0.0f, top = 0.0f, rel = 1.0f;
    u32 counter = (u32)path * N_STEPS + SEED;
#pragma unroll 5
    for (int t = 0; t < N_STEPS / 2; t++) {
        const float u1 = (mix(counter) >> 8) * (1.0f / 16777216.0f) + (0.5f / 16777216.0f);
        // 2 pi u2 - pi, small enough for the fast sine and cosine; both change sign
        const float angle = (mix(counter + 1) >> 8) * (6.283185307f / 16777216.0f)
                            + (3.141592654f / 16777216.0f - 3.141592654f);
        counter += 2;
        const float radius = -p.vol2 * fast_sqrt(fmaxf(-fast_log2(u1), 0.0f));
        x += fmaf(radius, __cosf(angle), p.drift2);
        log_sum += x;
        top = fmaxf(top, x);
        sum += fast_exp2(x);
        x += fmaf(radius, __sinf(angle), p.drift2);
        log_sum += x;
        top = fmaxf(top, x);
        rel = fast_exp2(x);
        sum += rel;
    }
    const float arithmetic = p.spot * sum * (1.0f / N_STEPS);
    const float geometric = p.spot * fast_exp2(log_sum * (1.0f / N_STEPS));
    const float last = p.spot * rel;
    const float maximum = p.spot * fast_exp2(top);

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
#pragma unroll
    for (int k = 0; k < N_STRIKES; k++) {
        const float a = live ? fmaxf(arithmetic - p.strikes[k], 0.0f) : 0.0f;
        const float g = live ? fmaxf(geometric - p.strikes[k], 0.0f) : 0.0f;
        const float sa = warp_sum(a), sg = warp_sum(g), sq = warp_sum(a * a);
        if (lane == 0) {
            partial[warp][k] = sa;
            partial[warp][N_STRIKES + k] = sg;
            partial[warp][2 * N_STRIKES + k] = sq;
        }
    }
    const float lookback = warp_sum(live ? maximum - last : 0.0f);
    const float final_price = warp_sum(live ? last : 0.0f);
    if (lane == 0) {
        partial[warp][3 * N_STRIKES] = lookback;
        partial[warp][3 * N_STRIKES + 1] = final_price;
    }
    __syncthreads();
    if (threadIdx.x < N_ACC) {
        double s = 0.0;
#pragma unroll
        for (int w = 0; w < BLOCK / 32; w++) s += partial[w][threadIdx.x];
        atomicAdd(&acc[threadIdx.x], s);
    }
}

int main()
{
    const double spot = 100.0, rate = 0.03f, sigma = 0.25f, maturity = 1.0;
    const double dt = maturity / N_STEPS;
    Params p;
    p.spot = (float)spot;
    p.drift2 = (float)((rate - 0.5 * sigma * sigma) * dt / std::log(2.0));
    p.vol2 = (float)(sigma * std::sqrt(dt) * std::sqrt(2.0 * std::log(2.0)) / std::log(2.0));
    for (int k = 0; k < N_STRIKES; k++)          // 85 ... 110, slightly irregular
        p.strikes[k] = 85.0f + 5.0f * k + mix(k + 1) * (2.0f / 4294967296.0f);

    double *d_acc;
    CUDA_OK(cudaMalloc(&d_acc, N_ACC * sizeof(double)));
    CUDA_OK(cudaMemset(d_acc, 0, N_ACC * sizeof(double)));

    price_kernel<<<(N_PATHS + BLOCK - 1) / BLOCK, BLOCK>>>(p, d_acc);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    double acc[N_ACC];
    CUDA_OK(cudaMemcpy(acc, d_acc, sizeof(acc), cudaMemcpyDeviceToHost));
    const double discount = std::exp(-rate * maturity);
    for (int k = 0; k < N_STRIKES; k++) {
        double mean = acc[k] / N_PATHS;
        double var = acc[2 * N_STRIKES + k] / N_PATHS - mean * mean;
        std::printf("arithmetic, geometric, std error: %.7e %.7e %.7e\n", discount * mean,
                    discount * acc[N_STRIKES + k] / N_PATHS, discount * std::sqrt(var / N_PATHS));
    }
    std::printf("lookback: %.7e\n", discount * acc[3 * N_STRIKES] / N_PATHS);
    std::printf("mean final price: %.7e\n", acc[3 * N_STRIKES + 1] / N_PATHS);

    cudaFree(d_acc);
    return 0;
}
