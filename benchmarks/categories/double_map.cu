// Prices European calls and puts for 8M (spot, strike, maturity) triples with the Black-Scholes formula.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define RATE 0.03
#define VOLATILITY 0.25

__device__ float normal_cdf(float d)
{
    return 0.5 * erfc(-d / sqrt(2.0));
}

__global__ void price(const float* spot, const float* strike, const float* years, float* call, float* put, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float s = spot[i];
        float k = strike[i];
        float t = years[i];
        float spread = VOLATILITY * sqrt(t);
        float d1 = (log(s / k) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * t) / spread;
        float d2 = d1 - spread;
        float discounted = k * exp(-RATE * t);
        call[i] = s * normal_cdf(d1) - discounted * normal_cdf(d2);
        put[i] = discounted * normal_cdf(-d2) - s * normal_cdf(-d1);
    }
}

static void fill(std::vector<float>& v, unsigned seed, float low, float high)
{
    for (size_t i = 0; i < v.size(); i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = low + (high - low) * (seed >> 8) / 16777216.0f;
    }
}

int main()
{
    const long long n = 8LL << 20;
    const size_t bytes = n * sizeof(float);
    std::vector<float> spot(n), strike(n), years(n), call(n), put(n);
    fill(spot, 1u, 40.0f, 60.0f);
    fill(strike, 2u, 35.0f, 65.0f);
    fill(years, 3u, 0.25f, 3.0f);

    float *d_spot, *d_strike, *d_years, *d_call, *d_put;
    cudaMalloc((void**)&d_spot, bytes);
    cudaMalloc((void**)&d_strike, bytes);
    cudaMalloc((void**)&d_years, bytes);
    cudaMalloc((void**)&d_call, bytes);
    cudaMalloc((void**)&d_put, bytes);
    cudaMemcpy(d_spot, spot.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_strike, strike.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_years, years.data(), bytes, cudaMemcpyHostToDevice);

    const int threads = 256;
    price<<<(unsigned)((n + threads - 1) / threads), threads>>>(d_spot, d_strike, d_years, d_call, d_put, n);

    cudaMemcpy(call.data(), d_call, bytes, cudaMemcpyDeviceToHost);
    if (cudaMemcpy(put.data(), d_put, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        fprintf(stderr, "pricing failed\n");
        return EXIT_FAILURE;
    }
    double calls = 0.0, puts = 0.0, weighted = 0.0;
    for (long long i = 0; i < n; i++) {
        calls += call[i];
        puts += put[i];
        weighted += (call[i] + 2.0 * put[i]) * (1 + i % 11);
    }
    printf("calls %.6e\nputs %.6e\nweighted %.6e\n", calls, puts, weighted);

    cudaFree(d_spot);
    cudaFree(d_strike);
    cudaFree(d_years);
    cudaFree(d_call);
    cudaFree(d_put);
    return EXIT_SUCCESS;
}
