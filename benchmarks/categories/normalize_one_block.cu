// Normalizes each row of a 1024 x 512 matrix to zero mean and unit variance, then scales and
// shifts every column by its own parameters. One block walks over all rows, one thread a row.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cmath>
#include <cuda_runtime.h>

__global__ void normalize_rows(const float* x, const float* gamma, const float* beta, float* y,
                               int rows, int cols, float eps)
{
    for (int r = threadIdx.x; r < rows; r += blockDim.x) {
        float mean = 0.0f;
        for (int c = 0; c < cols; c++)
            mean += x[r * cols + c];
        mean /= cols;

        float var = 0.0f;
        for (int c = 0; c < cols; c++) {
            float d = x[r * cols + c] - mean;
            var += d * d;
        }
        float inv = 1.0f / sqrtf(var / cols + eps);

        for (int c = 0; c < cols; c++)
            y[r * cols + c] = (x[r * cols + c] - mean) * inv * gamma[c] + beta[c];
    }
}

static unsigned state = 20240501u;

static float next_float()
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) * (1.0f / 16777216.0f);
}

int main()
{
    const int rows = 1024, cols = 512;
    std::vector<float> x(rows * cols), y(rows * cols), gamma(cols), beta(cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            x[r * cols + c] = 0.01f * (r % 100) + (1.0f + 0.1f * (r % 7)) * next_float();
    for (int c = 0; c < cols; c++) {
        gamma[c] = 0.5f + next_float();
        beta[c] = next_float();
    }

    float *dx, *dgamma, *dbeta, *dy;
    cudaMalloc(&dx, x.size() * sizeof(float));
    cudaMalloc(&dy, y.size() * sizeof(float));
    cudaMalloc(&dgamma, cols * sizeof(float));
    cudaMalloc(&dbeta, cols * sizeof(float));
    cudaMemcpy(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dgamma, gamma.data(), cols * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dbeta, beta.data(), cols * sizeof(float), cudaMemcpyHostToDevice);

    normalize_rows<<<1, 256>>>(dx, dgamma, dbeta, dy, rows, cols, 1e-5f);
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
