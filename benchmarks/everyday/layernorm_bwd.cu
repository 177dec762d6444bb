// Layer normalization, backward pass: dx, dgamma, dbeta
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

struct Shape {
    int rows;
    int cols;
};

__device__ float xhat(const float *x, float mean, float rstd, int row, int col, Shape s)
{
    return (x[row * s.cols + col] - mean) * rstd;
}

__global__ void row_stats(const float *x, float *mean, float *rstd, Shape s)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= s.rows) return;
    float m = 0.0f;
    for (int j = 0; j < s.cols; j++) m += x[row * s.cols + j];
    m = m / s.cols;
    float v = 0.0f;
    for (int j = 0; j < s.cols; j++) {
        float d = x[row * s.cols + j] - m;
        v += d * d;
    }
    v = v / s.cols;
    mean[row] = m;
    rstd[row] = 1.0f / sqrtf(v + 1e-5f);
}

__global__ void backward_dx(const float *x, const float *dy, const float *gamma,
                            const float *mean, const float *rstd, float *dx, Shape s)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= s.rows) return;
    float sum1 = 0.0f, sum2 = 0.0f;
    for (int j = 0; j < s.cols; j++) {
        float g = dy[row * s.cols + j] * gamma[j];
        sum1 += g;
        sum2 += g * xhat(x, mean[row], rstd[row], row, j, s);
    }
    sum1 /= s.cols;
    sum2 /= s.cols;
    for (int j = 0; j < s.cols; j++) {
        float g = dy[row * s.cols + j] * gamma[j];
        float h = xhat(x, mean[row], rstd[row], row, j, s);
        dx[row * s.cols + j] = rstd[row] * (g - sum1 - h * sum2);
    }
}

__global__ void backward_params(const float *x, const float *dy, const float *mean,
                                const float *rstd, float *dgamma, float *dbeta, Shape s)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= s.cols) return;
    float dg = 0.0f, db = 0.0f;
    for (int r = 0; r < s.rows; r++) {
        dg += dy[r * s.cols + col] * xhat(x, mean[r], rstd[r], r, col, s);
        db += dy[r * s.cols + col];
    }
    dgamma[col] = dg;
    dbeta[col] = db;
}

static unsigned int seed = 12345u;
static float rnd()
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) / 16777216.0f;
}

int main()
{
    Shape s;
    s.rows = 8192;
    s.cols = 1024;
    size_t n = (size_t)s.rows * s.cols;
    float *x = (float *)malloc(n * sizeof(float));
    float *dy = (float *)malloc(n * sizeof(float));
    float *gamma = (float *)malloc(s.cols * sizeof(float));
    for (size_t i = 0; i < n; i++) x[i] = 4.0f * rnd() - 1.0f;
    for (size_t i = 0; i < n; i++) dy[i] = rnd() - 0.4f;
    for (int i = 0; i < s.cols; i++) gamma[i] = 0.5f + rnd();

    float *d_x, *d_dy, *d_gamma, *d_mean, *d_rstd, *d_dx, *d_dgamma, *d_dbeta;
    cudaMalloc(&d_x, n * sizeof(float));
    cudaMalloc(&d_dy, n * sizeof(float));
    cudaMalloc(&d_dx, n * sizeof(float));
    cudaMalloc(&d_gamma, s.cols * sizeof(float));
    cudaMalloc(&d_dgamma, s.cols * sizeof(float));
    cudaMalloc(&d_dbeta, s.cols * sizeof(float));
    cudaMalloc(&d_mean, s.rows * sizeof(float));
    cudaMalloc(&d_rstd, s.rows * sizeof(float));
    cudaMemcpy(d_x, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_dy, dy, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_gamma, gamma, s.cols * sizeof(float), cudaMemcpyHostToDevice);

    int threads = 128;
    row_stats<<<(s.rows + threads - 1) / threads, threads>>>(d_x, d_mean, d_rstd, s);
    backward_dx<<<(s.rows + threads - 1) / threads, threads>>>(d_x, d_dy, d_gamma, d_mean, d_rstd, d_dx, s);
    backward_params<<<(s.cols + threads - 1) / threads, threads>>>(d_x, d_dy, d_mean, d_rstd, d_dgamma, d_dbeta, s);

    float *dx = (float *)malloc(n * sizeof(float));
    float *dgamma = (float *)malloc(s.cols * sizeof(float));
    float *dbeta = (float *)malloc(s.cols * sizeof(float));
    cudaMemcpy(dx, d_dx, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(dgamma, d_dgamma, s.cols * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(dbeta, d_dbeta, s.cols * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { printf("cuda error\n"); return 1; }

    double a = 0, b = 0, c = 0;
    for (size_t i = 0; i < n; i++) a += fabs((double)dx[i]);
    for (int i = 0; i < s.cols; i++) { b += fabs((double)dgamma[i]); c += dbeta[i]; }
    printf("sum |dx| %.4e  sum |dgamma| %.4e  sum dbeta %.4e\n", a, b, c);
    printf("dx[5] %.4e dx[last] %.4e dbeta[17] %.4e\n", dx[5], dx[n - 1], dbeta[17]);
    return 0;
}
