// Monte Carlo price of an Asian call: every thread simulates 32 paths of 16 steps with its own xorshift
// generator and Box-Muller normals. By hand: hardware log, sine, cosine and exponential on logarithms to
// base 2, uniforms by bit pattern, and one atomic a block after shuffle and shared-memory reductions.
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

struct Option {
    float spot, strike, rate, volatility, years;
};

constexpr int STEPS = 16, PATHS = 32, THREADS = 256;

__device__ __forceinline__ unsigned seed_of(unsigned id)
{
    unsigned h = id * 2654435761u + 0x9e3779b9u;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    return h | 1u;
}

__device__ __forceinline__ unsigned advance(unsigned& state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (state >> 9) | 0x3f800000u;  // the bits of 1 + (state >> 9) / 2^23
}

__global__ void __launch_bounds__(THREADS) simulate(Option opt, double* sums)
{
    __shared__ double parts[2][THREADS / 32];
    constexpr float LOG2E = 1.4426950408889634f;
    unsigned state = seed_of(blockIdx.x * THREADS + threadIdx.x);
    const float dt = opt.years * (1.0f / STEPS);
    const float drift = LOG2E * (opt.rate - 0.5f * opt.volatility * opt.volatility) * dt;
    // radius * diffusion = sqrt(-2 ln(u) dt) * volatility * log2(e), with one root for all factors
    const float factor = -2.0f * dt * (opt.volatility * LOG2E) * (opt.volatility * LOG2E);
    const float scale = opt.spot * (1.0f / STEPS);

    double payoffs = 0.0, squares = 0.0;
    for (int p = 0; p < PATHS; p++) {
        float height = 0.0f, total = 0.0f;
#pragma unroll
        for (int step = 0; step < STEPS; step += 2) {
            const float u = __uint_as_float(advance(state)) - (1.0f - 1.0f / 16777216.0f);
            const float v = __uint_as_float(advance(state)) - (1.5f - 1.0f / 16777216.0f);  // shifted by a half turn
            const float square = fmaxf(factor * __logf(u), 1e-20f);
            const float radius = -square * rsqrtf(square);  // the sign undoes the half turn
            float sine, cosine;
            __sincosf(6.2831853f * v, &sine, &cosine);
            height = fmaf(radius, cosine, height + drift);
            total += exp2f(height);
            height = fmaf(radius, sine, height + drift);
            total += exp2f(height);
        }
        const float payoff = fmaxf(fmaf(total, scale, -opt.strike), 0.0f);
        payoffs += payoff;
        squares += payoff * payoff;
    }

#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        payoffs += __shfl_xor_sync(0xffffffffu, payoffs, o);
        squares += __shfl_xor_sync(0xffffffffu, squares, o);
    }
    if ((threadIdx.x & 31) == 0) {
        parts[0][threadIdx.x >> 5] = payoffs;
        parts[1][threadIdx.x >> 5] = squares;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        double sum = 0.0;
        for (int w = 0; w < THREADS / 32; w++)
            sum += parts[threadIdx.x][w];
        atomicAdd(&sums[threadIdx.x], sum);
    }
}

int main()
{
    Option opt = {100.0f, 102.0f, 0.04f, 0.3f, 1.5f};
    const int blocks = 512;

    double* d_sums;
    cudaMalloc(&d_sums, 2 * sizeof(double));
    cudaMemset(d_sums, 0, 2 * sizeof(double));

    simulate<<<blocks, THREADS>>>(opt, d_sums);

    double sums[2];
    cudaError_t err = cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost);
    if (err != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(err));
        return 1;
    }
    double count = (double)blocks * THREADS * PATHS;
    double mean = sums[0] / count;
    printf("payoff sum %.6e\n", sums[0]);
    printf("price %.6e\n", mean * exp(-opt.rate * opt.years));
    printf("deviation %.6e\n", sqrt(sums[1] / count - mean * mean));
    cudaFree(d_sums);
    return 0;
}
