// Batch normalisation in training mode (NCHW), followed by ReLU.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

constexpr int THREADS = 256;

// One block per channel: sum over n, h, w.
__global__ void channelMean(const float *x, float *mean, int N, int C, int HW)
{
    __shared__ float s[THREADS];
    int c = blockIdx.x;
    int t = threadIdx.x;
    float acc = 0.0f;
    int total = N * HW;
    for (int i = t; i < total; i += blockDim.x) {
        int n = i / HW;
        int p = i % HW;
        acc += x[(n * C + c) * HW + p];
    }
    s[t] = acc;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) mean[c] = s[0] / total;
}

__global__ void channelVar(const float *x, const float *mean, float *var, int N, int C, int HW)
{
    __shared__ float s[THREADS];
    int c = blockIdx.x;
    int t = threadIdx.x;
    float acc = 0.0f;
    int total = N * HW;
    for (int i = t; i < total; i += blockDim.x) {
        int n = i / HW;
        int p = i % HW;
        float d = x[(n * C + c) * HW + p] - mean[c];
        acc += d * d;
    }
    s[t] = acc;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) var[c] = s[0] / total;
}

__global__ void updateRunning(float *runMean, float *runVar, const float *mean, const float *var,
                              float momentum, int C, int count)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= C) return;
    float unbiased = var[c] * count / (count - 1);
    runMean[c] = (1.0f - momentum) * runMean[c] + momentum * mean[c];
    runVar[c] = (1.0f - momentum) * runVar[c] + momentum * unbiased;
}

__global__ void normalize(const float *x, float *y, const float *mean, const float *var,
                          const float *gamma, const float *beta, float eps, int N, int C, int HW)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= N * C * HW) return;
    int c = (idx / HW) % C;
    y[idx] = gamma[c] * (x[idx] - mean[c]) / sqrtf(var[c] + eps) + beta[c];
}

__global__ void relu(float *y, int n)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    if (y[idx] < 0.0f) y[idx] = 0.0f;
}

class BatchNorm2d {
public:
    BatchNorm2d(int channels, float eps = 1e-5f, float momentum = 0.1f)
        : C(channels), eps(eps), momentum(momentum)
    {
        size_t b = C * sizeof(float);
        cudaMalloc(&gamma, b); cudaMalloc(&beta, b);
        cudaMalloc(&mean, b);  cudaMalloc(&var, b);
        cudaMalloc(&runMean, b); cudaMalloc(&runVar, b);
        std::vector<float> ones(C, 1.0f);
        cudaMemset(runMean, 0, b);
        cudaMemcpy(runVar, ones.data(), b, cudaMemcpyHostToDevice);
    }
    ~BatchNorm2d()
    {
        cudaFree(gamma); cudaFree(beta); cudaFree(mean);
        cudaFree(var); cudaFree(runMean); cudaFree(runVar);
    }
    void setParameters(const std::vector<float> &g, const std::vector<float> &b)
    {
        cudaMemcpy(gamma, g.data(), C * sizeof(float), cudaMemcpyHostToDevice);
        cudaMemcpy(beta, b.data(), C * sizeof(float), cudaMemcpyHostToDevice);
    }
    void forwardRelu(const float *x, float *y, int N, int H, int W)
    {
        int HW = H * W;
        int n = N * C * HW;
        channelMean<<<C, THREADS>>>(x, mean, N, C, HW);
        channelVar<<<C, THREADS>>>(x, mean, var, N, C, HW);
        updateRunning<<<(C + 127) / 128, 128>>>(runMean, runVar, mean, var, momentum, C, N * HW);
        normalize<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, y, mean, var, gamma, beta, eps, N, C, HW);
        relu<<<(n + THREADS - 1) / THREADS, THREADS>>>(y, n);
    }
    void running(std::vector<float> &m, std::vector<float> &v)
    {
        cudaMemcpy(m.data(), runMean, C * sizeof(float), cudaMemcpyDeviceToHost);
        cudaMemcpy(v.data(), runVar, C * sizeof(float), cudaMemcpyDeviceToHost);
    }
private:
    int C;
    float eps, momentum;
    float *gamma, *beta, *mean, *var, *runMean, *runVar;
};

int main()
{
    const int N = 64, C = 128, H = 56, W = 56;
    const size_t n = (size_t)N * C * H * W;
    std::vector<float> x(n), gamma(C), beta(C), m(C), v(C);

    unsigned int s = 2468;
    auto rnd = [&s]() { s = s * 1664525u + 1013904223u; return (float)(s >> 8) / 16777216.0f; };
    for (int c = 0; c < C; c++) { gamma[c] = 0.5f + rnd(); beta[c] = rnd() - 0.5f; }
    for (int b = 0; b < N; b++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < H * W; p++)
                x[((size_t)b * C + c) * H * W + p] = (1.0f + 0.01f * c) * (rnd() + rnd()) + 0.02f * c;

    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);

    BatchNorm2d bn(C);
    bn.setParameters(gamma, beta);
    bn.forwardRelu(dx, dy, N, H, W);

    cudaMemcpy(x.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    bn.running(m, v);
    if (cudaGetLastError() != cudaSuccess) { fprintf(stderr, "CUDA error\n"); return 1; }

    double sy = 0, syy = 0, sm = 0, sv = 0;
    for (size_t i = 0; i < n; i++) { sy += x[i]; syy += (double)x[i] * x[i]; }
    for (int c = 0; c < C; c++) { sm += m[c]; sv += v[c]; }
    printf("y: sum %.4e sumsq %.4e\n", sy, syy);
    printf("running mean %.4e var %.4e\n", sm, sv);

    cudaFree(dx); cudaFree(dy);
    return 0;
}
