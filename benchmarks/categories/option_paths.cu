// Monte Carlo price of an Asian call: every thread simulates 32 paths of 16 steps with its own xorshift
// generator and Box-Muller normals, and adds its payoffs and their squares to global sums.
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

struct Option {
    float spot, strike, rate, volatility, years;
    int steps;
};

__device__ unsigned seed_of(unsigned id)
{
    unsigned h = id * 2654435761u + 0x9e3779b9u;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    return h | 1u;
}

__device__ float uniform(unsigned& state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return ((state >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

__global__ void simulate(Option opt, int paths, double* sums)
{
    unsigned state = seed_of(blockIdx.x * blockDim.x + threadIdx.x);
    float dt = opt.years / opt.steps;
    float drift = (opt.rate - 0.5f * opt.volatility * opt.volatility) * dt;
    float diffusion = opt.volatility * sqrtf(dt);

    double payoffs = 0.0, squares = 0.0;
    for (int p = 0; p < paths; p++) {
        float price = opt.spot, total = 0.0f;
        for (int step = 0; step < opt.steps; step += 2) {
            float u = uniform(state);
            float v = uniform(state);
            float radius = sqrtf(-2.0f * logf(u));
            float angle = 6.2831853f * v;
            price *= expf(drift + diffusion * radius * cosf(angle));
            total += price;
            price *= expf(drift + diffusion * radius * sinf(angle));
            total += price;
        }
        float payoff = fmaxf(total / opt.steps - opt.strike, 0.0f);
        payoffs += payoff;
        squares += payoff * payoff;
    }
    atomicAdd(&sums[0], payoffs);
    atomicAdd(&sums[1], squares);
}

int main()
{
    Option opt = {100.0f, 102.0f, 0.04f, 0.3f, 1.5f, 16};
    const int threads = 256, blocks = 512, paths = 32;

    double* d_sums;
    cudaMalloc(&d_sums, 2 * sizeof(double));
    cudaMemset(d_sums, 0, 2 * sizeof(double));

    simulate<<<blocks, threads>>>(opt, paths, d_sums);

    double sums[2];
    cudaError_t err = cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost);
    if (err != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(err));
        return 1;
    }
    double count = (double)blocks * threads * paths;
    double mean = sums[0] / count;
    printf("payoff sum %.6e\n", sums[0]);
    printf("price %.6e\n", mean * exp(-opt.rate * opt.years));
    printf("deviation %.6e\n", sqrt(sums[1] / count - mean * mean));
    cudaFree(d_sums);
    return 0;
}
