// Quantised linear layer:  Y = dequant( int8(X) * W ) + bias
// X [M,K] float is quantised with one scale per row, W [K,N] is int8 with one scale per column.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cmath>
#include <vector>

#define TILE 16

static const int M = 1024;
static const int K = 2048;
static const int N = 2048;

#define CHECK_CUDA(x) do { cudaError_t err_ = (x); if (err_ != cudaSuccess) { \
    printf("error: %s\n", cudaGetErrorString(err_)); return 1; } } while (0)

// each thread quantises one row
__global__ void quantizeRows(const float *x, int8_t *q, float *scale, int m, int k)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) return;
    float amax = 0.0f;
    for (int i = 0; i < k; i++)
        amax = fmaxf(amax, fabsf(x[row * k + i]));
    float s = amax / 127.0f;
    if (s == 0.0f) s = 1.0f;
    scale[row] = s;
    for (int i = 0; i < k; i++)
        q[row * k + i] = (int8_t)rintf(x[row * k + i] / s);
}

__global__ void matmulInt8(const int8_t *A, const int8_t *B, int32_t *C, int m, int n, int k)
{
    __shared__ int8_t As[TILE][TILE];
    __shared__ int8_t Bs[TILE][TILE];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    int32_t acc = 0;

    for (int t = 0; t < (k + TILE - 1) / TILE; t++) {
        int ka = t * TILE + tx;
        int kb = t * TILE + ty;
        As[ty][tx] = (row < m && ka < k) ? A[row * k + ka] : 0;
        Bs[ty][tx] = (col < n && kb < k) ? B[kb * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            acc += (int32_t)As[ty][i] * (int32_t)Bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) C[row * n + col] = acc;
}

__global__ void dequantize(const int32_t *acc, const float *rowScale, const float *colScale,
                           const float *bias, float *y, int m, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && col < n)
        y[row * n + col] = (float)acc[row * n + col] * rowScale[row] * colScale[col] + bias[col];
}

static uint32_t seed_ = 1u;
static uint32_t rnd() { seed_ = seed_ * 22695477u + 1u; return seed_ >> 12; }

int main()
{
    std::vector<float> x(M * K), wScale(N), bias(N), y(M * N);
    std::vector<int8_t> w(K * N);
    for (auto &v : x) v = (float)(rnd() % 20001) / 10000.0f - 0.9f;
    for (auto &v : w) v = (int8_t)((int)(rnd() % 255) - 127);
    for (auto &v : wScale) v = 0.001f + (float)(rnd() % 1000) * 1e-5f;
    for (auto &v : bias) v = (float)(rnd() % 1000) / 100.0f;

    float *dX, *dRowScale, *dColScale, *dBias, *dY;
    int8_t *dQ, *dW;
    int32_t *dAcc;
    CHECK_CUDA(cudaMalloc(&dX, M * K * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dQ, M * K));
    CHECK_CUDA(cudaMalloc(&dW, K * N));
    CHECK_CUDA(cudaMalloc(&dAcc, M * N * sizeof(int32_t)));
    CHECK_CUDA(cudaMalloc(&dRowScale, M * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dColScale, N * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dBias, N * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dY, M * N * sizeof(float)));
    CHECK_CUDA(cudaMemcpy(dX, x.data(), M * K * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dW, w.data(), K * N, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dColScale, wScale.data(), N * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dBias, bias.data(), N * sizeof(float), cudaMemcpyHostToDevice));

    quantizeRows<<<(M + 127) / 128, 128>>>(dX, dQ, dRowScale, M, K);
    dim3 block(TILE, TILE);
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    matmulInt8<<<grid, block>>>(dQ, dW, dAcc, M, N, K);
    dequantize<<<grid, block>>>(dAcc, dRowScale, dColScale, dBias, dY, M, N);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(y.data(), dY, M * N * sizeof(float), cudaMemcpyDeviceToHost));

    double s = 0, sa = 0, sq = 0;
    for (size_t i = 0; i < y.size(); i++) {
        s += y[i];
        sa += std::fabs(y[i]) * (double)(1 + i % 3);
        sq += (double)y[i] * y[i];
    }
    printf("sum %.4e\nweighted abs %.4e\nsquares %.4e\n", s, sa, sq);

    cudaFree(dX); cudaFree(dQ); cudaFree(dW); cudaFree(dAcc);
    cudaFree(dRowScale); cudaFree(dColScale); cudaFree(dBias); cudaFree(dY);
    return 0;
}
