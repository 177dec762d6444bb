// 50 Jacobi steps for the Poisson equation on a 1024 x 1024 grid with fixed border values.
#include <cstdio>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define IDX(y, x) ((y) * n + (x))

__global__ void jacobi_step(const float* u, const float* source, float* next, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) {
        next[IDX(y, x)] = u[IDX(y, x)];
        return;
    }
    next[IDX(y, x)] = 0.25f * (u[IDX(y, x - 1)] + u[IDX(y, x + 1)] + u[IDX(y - 1, x)] + u[IDX(y + 1, x)]
                               + source[IDX(y, x)]);
}

int main() {
    const int n = 1024, steps = 50;
    const size_t bytes = (size_t)n * n * sizeof(float);
    std::vector<float> u(n * n), source(n * n);
    unsigned s = 2463534242u;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            u[IDX(y, x)] = (s >> 8) / 16777216.0f + (y == 0 ? 3.0f : 0.0f) + (x == n - 1 ? 2.0f : 0.0f);
            source[IDX(y, x)] = 0.01f * (float)((x * 7 + y * 13) % 32) / 32.0f;
        }

    float *d_u, *d_next, *d_source;
    cudaMalloc(&d_u, bytes);
    cudaMalloc(&d_next, bytes);
    cudaMalloc(&d_source, bytes);
    cudaMemcpy(d_u, u.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_source, source.data(), bytes, cudaMemcpyHostToDevice);

    dim3 block(32, 8);
    dim3 grid(n / 32, n / 8);
    for (int step = 0; step < steps; step++) {
        jacobi_step<<<grid, block>>>(d_u, d_source, d_next, n);
        std::swap(d_u, d_next);
    }

    cudaMemcpy(u.data(), d_u, bytes, cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) {
        fprintf(stderr, "launch failed\n");
        return 1;
    }
    double sum = 0.0, squares = 0.0, weighted = 0.0;
    for (int i = 0; i < n * n; i++) {
        sum += u[i];
        squares += (double)u[i] * u[i];
        weighted += (double)u[i] * (1 + i % 19 + i / n);
    }
    printf("sum %.6e\nsquares %.6e\nweighted %.6e\n", sum, squares, weighted);
    cudaFree(d_u);
    cudaFree(d_next);
    cudaFree(d_source);
    return 0;
}
