// American option pricing on a Cox-Ross-Rubinstein binomial lattice.
// A batch of calls and puts with different parameters, one lattice per option;
// one kernel launch per time step walks all lattices backwards.
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

const int NUM_OPTIONS = 4001;
const int STEPS = 500;

struct Option {
    float spot;
    float strike;
    float rate;
    float dividend;
    float vol;
    float maturity;
    int isPut;
};

// per option lattice constants
struct Lattice {
    float sdt;  // log of the up factor
    float pu;   // discounted up probability
    float pd;   // discounted down probability
};

__device__ float exercise(const Option& o, const Lattice& l, int exponent)
{
    float s = o.spot * expf((float)exponent * l.sdt);
    float gain = o.isPut ? o.strike - s : s - o.strike;
    return fmaxf(gain, 0.0f);
}

__global__ void setup_lattices(const Option* options, Lattice* lattices, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    Option o = options[id];
    double dt = (double)o.maturity / STEPS;
    double sdt = (double)o.vol * sqrt(dt);
    double u = exp(sdt);
    double d = exp(-sdt);
    double disc = exp(-(double)o.rate * dt);
    double p = (exp(((double)o.rate - (double)o.dividend) * dt) - d) / (u - d);
    Lattice l;
    l.sdt = (float)sdt;
    l.pu = (float)(disc * p);
    l.pd = (float)(disc * (1.0 - p));
    lattices[id] = l;
}

// values at maturity
__global__ void init_leaves(const Option* options, const Lattice* lattices, float* values)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int id = blockIdx.y;
    if (j > STEPS) return;
    values[id * (STEPS + 1) + j] = exercise(options[id], lattices[id], 2 * j - STEPS);
}

// values at time step "step" from the values at step + 1
__global__ void step_back(const Option* options, const Lattice* lattices,
                          const float* next, float* cur, int step)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int id = blockIdx.y;
    if (j > step) return;
    Lattice l = lattices[id];
    const float* v = next + id * (STEPS + 1);
    float cont = l.pu * v[j + 1] + l.pd * v[j];
    float ex = exercise(options[id], l, 2 * j - step);
    cur[id * (STEPS + 1) + j] = fmaxf(cont, ex);
}

// option delta from the two nodes of step 1
__global__ void compute_delta(const Option* options, const Lattice* lattices,
                              const float* values, float* delta, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    float up = options[id].spot * expf(lattices[id].sdt);
    float down = options[id].spot * expf(-lattices[id].sdt);
    const float* v = values + id * (STEPS + 1);
    delta[id] = (v[1] - v[0]) / (up - down);
}

__global__ void collect_prices(const float* values, float* price, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    price[id] = values[id * (STEPS + 1)];
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
    Lattice* d_lattices;
    float *d_a, *d_b, *d_price, *d_delta;
    size_t valueBytes = (size_t)NUM_OPTIONS * (STEPS + 1) * sizeof(float);
    CHECK(cudaMalloc(&d_options, NUM_OPTIONS * sizeof(Option)));
    CHECK(cudaMalloc(&d_lattices, NUM_OPTIONS * sizeof(Lattice)));
    CHECK(cudaMalloc(&d_a, valueBytes));
    CHECK(cudaMalloc(&d_b, valueBytes));
    CHECK(cudaMalloc(&d_price, NUM_OPTIONS * sizeof(float)));
    CHECK(cudaMalloc(&d_delta, NUM_OPTIONS * sizeof(float)));
    CHECK(cudaMemcpy(d_options, options.data(), NUM_OPTIONS * sizeof(Option),
                     cudaMemcpyHostToDevice));

    int threads = 128;
    int blocksPerBatch = (NUM_OPTIONS + threads - 1) / threads;

    setup_lattices<<<blocksPerBatch, threads>>>(d_options, d_lattices, NUM_OPTIONS);
    CHECK(cudaGetLastError());

    dim3 leafGrid((STEPS + 1 + threads - 1) / threads, NUM_OPTIONS);
    init_leaves<<<leafGrid, threads>>>(d_options, d_lattices, d_a);
    CHECK(cudaGetLastError());

    float* next = d_a;
    float* cur = d_b;
    for (int step = STEPS - 1; step >= 0; step--) {
        dim3 grid((step + 1 + threads - 1) / threads, NUM_OPTIONS);
        step_back<<<grid, threads>>>(d_options, d_lattices, next, cur, step);
        CHECK(cudaGetLastError());
        if (step == 1) {
            compute_delta<<<blocksPerBatch, threads>>>(d_options, d_lattices, cur, d_delta,
                                                       NUM_OPTIONS);
            CHECK(cudaGetLastError());
        }
        float* t = next;
        next = cur;
        cur = t;
    }
    collect_prices<<<blocksPerBatch, threads>>>(next, d_price, NUM_OPTIONS);
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
    CHECK(cudaFree(d_lattices));
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_price));
    CHECK(cudaFree(d_delta));
    return 0;
}
