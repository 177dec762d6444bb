// Normalizes each row of a 1024 x 512 matrix to zero mean and unit variance, then scales and
// shifts every column by its own parameters. By hand: a warp a row over 128 blocks, the row is
// read once as float4 and stays in registers, mean and variance are shuffle reductions.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cmath>
#include <cuda_runtime.h>

constexpr int ROWS = 1024;
constexpr int COLS = 512;
constexpr int VECS = COLS / 128;  // float4 values a lane holds
constexpr int WARPS = 8;

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

__global__ void __launch_bounds__(WARPS * 32)
normalize_rows(const float4* __restrict__ x, const float4* __restrict__ gamma,
               const float4* __restrict__ beta, float4* __restrict__ y, float eps)
{
    const int lane = threadIdx.x & 31;
    const int row = blockIdx.x * WARPS + (threadIdx.x >> 5);
    const float4* src = x + row * (COLS / 4);
    float4* dst = y + row * (COLS / 4);

    float4 v[VECS], g[VECS], b[VECS];
#pragma unroll
    for (int i = 0; i < VECS; i++)
        v[i] = src[lane + 32 * i];
#pragma unroll
    for (int i = 0; i < VECS; i++) {
        g[i] = gamma[lane + 32 * i];
        b[i] = beta[lane + 32 * i];
    }

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS; i++)
        sum += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    const float mean = warp_sum(sum) * (1.0f / COLS);

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS; i++) {
        v[i].x -= mean;
        v[i].y -= mean;
        v[i].z -= mean;
        v[i].w -= mean;
        squares += (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
    }
    const float inv = rsqrtf(warp_sum(squares) * (1.0f / COLS) + eps);

#pragma unroll
    for (int i = 0; i < VECS; i++)
        dst[lane + 32 * i] = make_float4(v[i].x * inv * g[i].x + b[i].x, v[i].y * inv * g[i].y + b[i].y,
                                         v[i].z * inv * g[i].z + b[i].z, v[i].w * inv * g[i].w + b[i].w);
}

static unsigned state = 20240501u;

static float next_float()
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) * (1.0f / 16777216.0f);
}

int main()
{
    std::vector<float> x(ROWS * COLS), y(ROWS * COLS), gamma(COLS), beta(COLS);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            x[r * COLS + c] = 0.01f * (r % 100) + (1.0f + 0.1f * (r % 7)) * next_float();
    for (int c = 0; c < COLS; c++) {
        gamma[c] = 0.5f + next_float();
        beta[c] = next_float();
    }

    float4 *dx, *dgamma, *dbeta, *dy;
    cudaMalloc(&dx, x.size() * sizeof(float));
    cudaMalloc(&dy, y.size() * sizeof(float));
    cudaMalloc(&dgamma, COLS * sizeof(float));
    cudaMalloc(&dbeta, COLS * sizeof(float));
    cudaMemcpy(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dgamma, gamma.data(), COLS * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dbeta, beta.data(), COLS * sizeof(float), cudaMemcpyHostToDevice);

    normalize_rows<<<ROWS / WARPS, WARPS * 32>>>(dx, dgamma, dbeta, dy, 1e-5f);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        fprintf(stderr, "kernel failed\n");
        return 1;
    }

    cudaMemcpy(y.data(), dy, y.size() * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0.0, squares = 0.0, weighted = 0.0;
    for (size_t i = 0; i < y.size(); i++) {
        sum += y[i];
        squares += (double)y[i] * y[i];
        weighted += fabs(y[i]) * (1 + i % 13);
    }
    printf("sum %.6e\nsquares %.6e\nweighted %.6e\n", sum, squares, weighted);
    cudaFree(dx);
    cudaFree(dy);
    cudaFree(dgamma);
    cudaFree(dbeta);
    return 0;
}
