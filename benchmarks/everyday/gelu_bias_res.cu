// y = residual + gelu(x + bias), three elementwise kernels as in a first PyTorch-like port
#include <iostream>
#include <vector>
#include <cstdio>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

template <typename T>
__global__ void addBias(T* data, const T* bias, size_t nRows, size_t nCols)
{
    size_t idx = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < nRows * nCols)
    {
        size_t col = idx % nCols;
        data[idx] = data[idx] + bias[col];
    }
}

template <typename T>
__device__ T geluTanh(T v)
{
    const T k = T(0.7978845608028654);
    return T(0.5) * v * (T(1) + tanhf(k * (v + T(0.044715) * v * v * v)));
}

template <typename T>
__global__ void gelu(const T* in, T* out, size_t n)
{
    size_t idx = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n)
    {
        out[idx] = geluTanh<T>(in[idx]);
    }
}

template <typename T>
__global__ void addResidual(const T* in, const T* residual, T* out, size_t n)
{
    size_t idx = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n)
    {
        out[idx] = in[idx] + residual[idx];
    }
}

struct Lcg
{
    uint64_t state;
    explicit Lcg(uint64_t s) : state(s) {}
    float next()
    {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (float)(state >> 40) / (float)(1 << 24);
    }
};

int main()
{
    const size_t nRows = 4096, nCols = 3072;
    const size_t n = nRows * nCols;
    std::vector<float> x(n), res(n), bias(nCols), y(n);
    Lcg g(42);
    for (auto& v : x) v = 6.0f * g.next() - 3.0f;
    for (auto& v : res) v = g.next();
    for (auto& v : bias) v = g.next() - 0.5f;

    float *dX, *dTmp, *dRes, *dBias, *dY;
    cudaMalloc(&dX, n * sizeof(float));
    cudaMalloc(&dTmp, n * sizeof(float));
    cudaMalloc(&dRes, n * sizeof(float));
    cudaMalloc(&dY, n * sizeof(float));
    cudaMalloc(&dBias, nCols * sizeof(float));
    cudaMemcpy(dX, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dRes, res.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dBias, bias.data(), nCols * sizeof(float), cudaMemcpyHostToDevice);

    const int block = 256;
    const int grid = (int)((n + block - 1) / block);
    addBias<float><<<grid, block>>>(dX, dBias, nRows, nCols);
    gelu<float><<<grid, block>>>(dX, dTmp, n);
    addResidual<float><<<grid, block>>>(dTmp, dRes, dY, n);

    cudaMemcpy(y.data(), dY, n * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { std::cerr << "CUDA error\n"; return 1; }

    double sum = 0, sumAbs = 0;
    for (float v : y) { sum += v; sumAbs += std::fabs(v); }
    printf("sum %.5e  sumabs %.5e\n", sum, sumAbs);
    printf("%.4e %.4e %.4e\n", y[0], y[n / 2 + 1], y[n - 1]);
    cudaFree(dX); cudaFree(dTmp); cudaFree(dRes); cudaFree(dY); cudaFree(dBias);
    return 0;
}
