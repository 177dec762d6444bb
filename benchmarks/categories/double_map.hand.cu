// Prices European calls and puts for 8M (spot, strike, maturity) triples with the Black-Scholes formula.
// By hand: float functions throughout, four options a thread with float4 accesses, a polynomial for the
// normal distribution evaluated once for each of d1 and d2, and put from the same two values.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define RATE 0.03f
#define VOLATILITY 0.25f

// Abramowitz and Stegun 26.2.17, absolute error below 1e-7.
__device__ __forceinline__ float normal_cdf(float d)
{
    const float t = __fdividef(1.0f, fmaf(0.2316419f, fabsf(d), 1.0f));
    float poly = fmaf(1.330274429f, t, -1.821255978f);
    poly = fmaf(poly, t, 1.781477937f);
    poly = fmaf(poly, t, -0.356563782f);
    poly = fmaf(poly, t, 0.31938153f);
    const float tail = 0.3989422804f * __expf(-0.5f * d * d) * poly * t;
    return d > 0.0f ? 1.0f - tail : tail;
}

__device__ __forceinline__ float2 price_one(float s, float k, float t)
{
    const float inv = rsqrtf(t);
    const float spread = VOLATILITY * t * inv;
    const float drift = (RATE + 0.5f * VOLATILITY * VOLATILITY) * t;
    const float d1 = (logf(__fdividef(s, k)) + drift) * (inv * (1.0f / VOLATILITY));
    const float n1 = normal_cdf(d1);
    const float n2 = normal_cdf(d1 - spread);
    const float discounted = k * __expf(-RATE * t);
    return make_float2(s * n1 - discounted * n2, discounted * (1.0f - n2) - s * (1.0f - n1));
}

__global__ void __launch_bounds__(256) price(const float4* __restrict__ spot, const float4* __restrict__ strike,
                                             const float4* __restrict__ years, float4* __restrict__ call,
                                             float4* __restrict__ put)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 s = __ldcs(spot + i), k = __ldcs(strike + i), t = __ldcs(years + i);
    const float2 a = price_one(s.x, k.x, t.x);
    const float2 b = price_one(s.y, k.y, t.y);
    const float2 c = price_one(s.z, k.z, t.z);
    const float2 d = price_one(s.w, k.w, t.w);
    call[i] = make_float4(a.x, b.x, c.x, d.x);
    put[i] = make_float4(a.y, b.y, c.y, d.y);
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

    float4 *d_spot, *d_strike, *d_years, *d_call, *d_put;
    cudaMalloc((void**)&d_spot, bytes);
    cudaMalloc((void**)&d_strike, bytes);
    cudaMalloc((void**)&d_years, bytes);
    cudaMalloc((void**)&d_call, bytes);
    cudaMalloc((void**)&d_put, bytes);
    cudaMemcpy(d_spot, spot.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_strike, strike.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_years, years.data(), bytes, cudaMemcpyHostToDevice);

    price<<<(unsigned)(n / 4 / 256), 256>>>(d_spot, d_strike, d_years, d_call, d_put);

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
