// Batch normalisation in training mode (NCHW), followed by ReLU.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

constexpr int THREADS = 256;

constexpr int SPLIT = 16;          // blocks per channel

// Sum and sum of squares of (x - shift) in one pass; shift = first value of the channel, so that
// nothing cancels. One double atomic per block.
__global__ void __launch_bounds__(THREADS)
channelStats(const float *__restrict__ x, double *__restrict__ stats, int N, int C, int HW)
{
    __shared__ double part[2][THREADS / 32];
    const int c = blockIdx.x;
    const int n0 = (int)((long long)N * blockIdx.y / SPLIT);
    const int n1 = (int)((long long)N * (blockIdx.y + 1) / SPLIT);
    const int q = HW / 4;
    const float shift = x[(size_t)c * HW];
    float s = 0.0f, ss = 0.0f;
    for (int n = n0; n < n1; n++) {
        const float4 *src = (const float4 *)(x + ((size_t)n * C + c) * HW);
#pragma unroll 4
        for (int p = threadIdx.x; p < q; p += THREADS) {
            float4 v = src[p];
            v.x -= shift; v.y -= shift; v.z -= shift; v.w -= shift;
            s += (v.x + v.y) + (v.z + v.w);
            ss += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
        }
    }
    double ds = s, dss = ss;
    for (int o = 16; o > 0; o /= 2) {
        ds += __shfl_down_sync(0xffffffffu, ds, o);
        dss += __shfl_down_sync(0xffffffffu, dss, o);
    }
    if ((threadIdx.x & 31) == 0) {
        part[0][threadIdx.x / 32] = ds;
        part[1][threadIdx.x / 32] = dss;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        double sum = 0.0;
        for (int w = 0; w < THREADS / 32; w++) sum += part[threadIdx.x][w];
        atomicAdd(&stats[2 * c + threadIdx.x], sum);
    }
}

// Normalise + ReLU in one pass as y = max(a x + b, 0). The images are visited from the last one
// back, because the last ones read by channelStats are still in L2.
__global__ void __launch_bounds__(THREADS)
normalizeRelu(const float *__restrict__ x, float *__restrict__ y, const double *__restrict__ stats,
              const float *__restrict__ gamma, const float *__restrict__ beta,
              float *runMean, float *runVar, float eps, float momentum, int N, int C, int HW)
{
    __shared__ float coef[2];
    const int c = blockIdx.x;
    if (threadIdx.x == 0) {
        const double count = (double)N * HW;
        const double m = stats[2 * c] / count;
        const double var = stats[2 * c + 1] / count - m * m;
        const double mean = m + x[(size_t)c * HW];
        const float a = gamma[c] * rsqrtf((float)var + eps);
        coef[0] = a;
        coef[1] = beta[c] - (float)mean * a;
        if (blockIdx.y == 0) {
            runMean[c] = (1.0f - momentum) * runMean[c] + momentum * (float)mean;
            runVar[c] = (1.0f - momentum) * runVar[c] + momentum * (float)(var * count / (count - 1.0));
        }
    }
    __syncthreads();
    const float a = coef[0], b = coef[1];
    const int part = SPLIT - 1 - blockIdx.y;
    const int n0 = (int)((long long)N * part / SPLIT);
    const int n1 = (int)((long long)N * (part + 1) / SPLIT);
    const int q = HW / 4;
    for (int n = n1 - 1; n >= n0; n--) {
        const float4 *src = (const float4 *)(x + ((size_t)n * C + c) * HW);
        float4 *dst = (float4 *)(y + ((size_t)n * C + c) * HW);
#pragma unroll 4
        for (int p = threadIdx.x; p < q; p += THREADS) {
            float4 v = src[p];
            v.x = fmaxf(a * v.x + b, 0.0f);
            v.y = fmaxf(a * v.y + b, 0.0f);
            v.z = fmaxf(a * v.z + b, 0.0f);
            v.w = fmaxf(a * v.w + b, 0.0f);
            __stcs(dst + p, v);
        }
    }
}

class BatchNorm2d {
public:
    BatchNorm2d(int channels, float eps = 1e-5f, float momentum = 0.1f)
        : C(channels), eps(eps), momentum(momentum)
    {
        size_t b = C * sizeof(float);
        cudaMalloc(&gamma, b); cudaMalloc(&beta, b);
        cudaMalloc(&stats, 2 * C * sizeof(double));
        cudaMalloc(&runMean, b); cudaMalloc(&runVar, b);
        std::vector<float> ones(C, 1.0f);
        cudaMemset(runMean, 0, b);
        cudaMemcpy(runVar, ones.data(), b, cudaMemcpyHostToDevice);
    }
    ~BatchNorm2d()
    {
        cudaFree(gamma); cudaFree(beta); cudaFree(stats);
        cudaFree(runMean); cudaFree(runVar);
    }
    void setParameters(const std::vector<float> &g, const std::vector<float> &b)
    {
        cudaMemcpy(gamma, g.data(), C * sizeof(float), cudaMemcpyHostToDevice);
        cudaMemcpy(beta, b.data(), C * sizeof(float), cudaMemcpyHostToDevice);
    }
    void forwardRelu(const float *x, float *y, int N, int H, int W)
    {
        int HW = H * W;
        cudaMemset(stats, 0, 2 * C * sizeof(double));
        dim3 grid(C, SPLIT);
        channelStats<<<grid, THREADS>>>(x, stats, N, C, HW);
        normalizeRelu<<<grid, THREADS>>>(x, y, stats, gamma, beta, runMean, runVar, eps, momentum, N, C, HW);
    }
    void running(std::vector<float> &m, std::vector<float> &v)
    {
        cudaMemcpy(m.data(), runMean, C * sizeof(float), cudaMemcpyDeviceToHost);
        cudaMemcpy(v.data(), runVar, C * sizeof(float), cudaMemcpyDeviceToHost);
    }
private:
    int C;
    float eps, momentum;
    float *gamma, *beta, *runMean, *runVar;
    double *stats;
};

int main()
{
    const int N = 64, C = 128, H = 56, W = 56;
    static_assert(H * W % 4 == 0, "float4");
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
