// Monte-Carlo pricing of Asian options (arithmetic and geometric average, several strikes) and a
// floating-strike lookback put under geometric Brownian motion, with an own counter-based generator.
// Plain version: (1) generate all normal numbers, (2) simulate the paths, (3) accumulate the payoffs.
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

const int N_PATHS = 200003;
const int N_STEPS = 90;          // even: normals come in pairs
const int N_STRIKES = 6;
const u32 SEED = 0x9e3779b9u;

struct Market {
    float spot;
    float rate;
    float sigma;
    float maturity;
    float strikes[N_STRIKES];
};

struct PathResult {
    float arithmetic;            // average of the prices at all steps
    float geometric;
    float maximum;
    float last;
};

__constant__ Market market;

__host__ __device__ inline u32 mix(u32 x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

// uniform number in the open interval (0, 1)
__device__ float uniform(u32 counter)
{
    return (mix(counter + SEED) >> 8) * (1.0f / 16777216.0f) + (0.5f / 16777216.0f);
}

// Box-Muller, one thread per pair of normals
__global__ void generate_normals(float *z, size_t n_pairs)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n_pairs) return;
    float u1 = uniform((u32)(2 * i));
    float u2 = uniform((u32)(2 * i + 1));
    float radius = sqrtf(-2.0f * logf(u1));
    float angle = 6.283185307f * u2;
    z[2 * i] = radius * cosf(angle);
    z[2 * i + 1] = radius * sinf(angle);
}

__global__ void simulate_paths(const float *z, PathResult *results)
{
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= N_PATHS) return;

    float dt = market.maturity / N_STEPS;
    float drift = (market.rate - 0.5f * market.sigma * market.sigma) * dt;
    float vol = market.sigma * sqrtf(dt);

    float x = 0.0f;              // log of the price relative to the spot
    float sum = 0.0f, log_sum = 0.0f;
    float price = market.spot;
    float highest = price;
    for (int t = 0; t < N_STEPS; t++) {
        x += drift + vol * z[(size_t)path * N_STEPS + t];
        price = market.spot * expf(x);
        sum += price;
        log_sum += x;
        if (price > highest) highest = price;
    }
    PathResult r;
    r.arithmetic = sum / N_STEPS;
    r.geometric = market.spot * expf(log_sum / N_STEPS);
    r.maximum = highest;
    r.last = price;
    results[path] = r;
}

__device__ float call_payoff(float s, float strike) { return s > strike ? s - strike : 0.0f; }

// acc: [0, N) arithmetic, [N, 2N) geometric, [2N, 3N) squared arithmetic payoffs, then lookback, last price
__global__ void accumulate_payoffs(const PathResult *results, double *acc)
{
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= N_PATHS) return;
    PathResult r = results[path];
    for (int k = 0; k < N_STRIKES; k++) {
        float a = call_payoff(r.arithmetic, market.strikes[k]);
        float g = call_payoff(r.geometric, market.strikes[k]);
        atomicAdd(&acc[k], (double)a);
        atomicAdd(&acc[N_STRIKES + k], (double)g);
        atomicAdd(&acc[2 * N_STRIKES + k], (double)a * a);
    }
    atomicAdd(&acc[3 * N_STRIKES], (double)(r.maximum - r.last));
    atomicAdd(&acc[3 * N_STRIKES + 1], (double)r.last);
}

int main()
{
    Market m;
    m.spot = 100.0f;
    m.rate = 0.03f;
    m.sigma = 0.25f;
    m.maturity = 1.0f;
    for (int k = 0; k < N_STRIKES; k++)          // 85 ... 110, slightly irregular
        m.strikes[k] = 85.0f + 5.0f * k + mix(k + 1) * (2.0f / 4294967296.0f);

    const size_t n_normals = (size_t)N_PATHS * N_STEPS;
    const int n_acc = 3 * N_STRIKES + 2;
    float *d_z;
    PathResult *d_results;
    double *d_acc;
    CUDA_OK(cudaMalloc(&d_z, n_normals * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_results, N_PATHS * sizeof(PathResult)));
    CUDA_OK(cudaMalloc(&d_acc, n_acc * sizeof(double)));
    CUDA_OK(cudaMemcpyToSymbol(market, &m, sizeof(m)));
    CUDA_OK(cudaMemset(d_acc, 0, n_acc * sizeof(double)));

    const int block = 256;
    const size_t n_pairs = n_normals / 2;
    generate_normals<<<(unsigned)((n_pairs + block - 1) / block), block>>>(d_z, n_pairs);
    CUDA_OK(cudaGetLastError());
    simulate_paths<<<(N_PATHS + block - 1) / block, block>>>(d_z, d_results);
    CUDA_OK(cudaGetLastError());
    accumulate_payoffs<<<(N_PATHS + block - 1) / block, block>>>(d_results, d_acc);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    double acc[n_acc];
    CUDA_OK(cudaMemcpy(acc, d_acc, sizeof(acc), cudaMemcpyDeviceToHost));
    const double discount = std::exp(-(double)m.rate * m.maturity);
    for (int k = 0; k < N_STRIKES; k++) {
        double mean = acc[k] / N_PATHS;
        double var = acc[2 * N_STRIKES + k] / N_PATHS - mean * mean;
        std::printf("arithmetic, geometric, std error: %.7e %.7e %.7e\n", discount * mean,
                    discount * acc[N_STRIKES + k] / N_PATHS, discount * std::sqrt(var / N_PATHS));
    }
    std::printf("lookback: %.7e\n", discount * acc[3 * N_STRIKES] / N_PATHS);
    std::printf("mean final price: %.7e\n", acc[3 * N_STRIKES + 1] / N_PATHS);

    cudaFree(d_z);
    cudaFree(d_results);
    cudaFree(d_acc);
    return 0;
}
