// AdamW training steps on a set of tensors, with clipping by the global gradient norm.
// The loss is a toy: pull every weight towards its target.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

struct Tensor {
    int n;
    float *w;        // weights
    float *target;
    float *g;        // gradient
    float *m;        // first moment
    float *v;        // second moment
};

struct AdamConfig {
    float lr, beta1, beta2, eps, weightDecay, maxNorm;
};

#define gpuCheck(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

__global__ void computeGrad(const float *w, const float *target, float *g, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float diff = w[i] - target[i];
        g[i] = 2.0f * diff + 0.1f * diff * diff * diff;
    }
}

__global__ void sumSquares(const float *g, double *result, int n)
{
    __shared__ float buf[256];
    float s = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        s += g[i] * g[i];
    buf[threadIdx.x] = s;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step <<= 1) {
        if (threadIdx.x % (2 * step) == 0)
            buf[threadIdx.x] += buf[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(result, (double)buf[0]);
}

__global__ void scaleGrad(float *g, float scale, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        g[i] *= scale;
}

__global__ void adamStep(Tensor t, AdamConfig cfg, int step)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < t.n; i += gridDim.x * blockDim.x) {
        t.m[i] = cfg.beta1 * t.m[i] + (1.0f - cfg.beta1) * t.g[i];
        t.v[i] = cfg.beta2 * t.v[i] + (1.0f - cfg.beta2) * t.g[i] * t.g[i];
        float mhat = t.m[i] / (1.0f - powf(cfg.beta1, (float)step));
        float vhat = t.v[i] / (1.0f - powf(cfg.beta2, (float)step));
        t.w[i] -= cfg.lr * (mhat / (sqrtf(vhat) + cfg.eps) + cfg.weightDecay * t.w[i]);
    }
}

static unsigned lcg_state = 31337;
static float lcg_float()
{
    lcg_state = lcg_state * 1664525u + 1013904223u;
    return (lcg_state >> 8) / 16777216.0f;
}

int main()
{
    const int STEPS = 4;
    const int sizes[] = {4096 * 1024, 1024, 2048 * 2048, 2048, 1024 * 4096, 4096, 1000 * 512};
    const int count = sizeof(sizes) / sizeof(sizes[0]);
    AdamConfig cfg = {0.01f, 0.9f, 0.999f, 1e-8f, 0.01f, 1.0f};

    std::vector<Tensor> tensors;
    for (int k = 0; k < count; k++) {
        Tensor t;
        t.n = sizes[k];
        std::vector<float> w(t.n), target(t.n);
        for (int i = 0; i < t.n; i++) w[i] = 2.0f * lcg_float() - 1.0f;
        for (int i = 0; i < t.n; i++) target[i] = 3.0f * lcg_float() - 1.0f;
        size_t bytes = t.n * sizeof(float);
        gpuCheck(cudaMalloc(&t.w, bytes));
        gpuCheck(cudaMalloc(&t.target, bytes));
        gpuCheck(cudaMalloc(&t.g, bytes));
        gpuCheck(cudaMalloc(&t.m, bytes));
        gpuCheck(cudaMalloc(&t.v, bytes));
        gpuCheck(cudaMemcpy(t.w, w.data(), bytes, cudaMemcpyHostToDevice));
        gpuCheck(cudaMemcpy(t.target, target.data(), bytes, cudaMemcpyHostToDevice));
        gpuCheck(cudaMemset(t.m, 0, bytes));
        gpuCheck(cudaMemset(t.v, 0, bytes));
        tensors.push_back(t);
    }
    double *dNorm;
    gpuCheck(cudaMalloc(&dNorm, sizeof(double)));

    const int threads = 256, blocks = 1024;
    for (int step = 1; step <= STEPS; step++) {
        gpuCheck(cudaMemset(dNorm, 0, sizeof(double)));
        for (auto &t : tensors) {
            computeGrad<<<blocks, threads>>>(t.w, t.target, t.g, t.n);
            sumSquares<<<blocks, threads>>>(t.g, dNorm, t.n);
        }
        double sum;
        gpuCheck(cudaMemcpy(&sum, dNorm, sizeof(double), cudaMemcpyDeviceToHost));
        float norm = (float)sqrt(sum);
        printf("step %d grad norm %.4e\n", step, norm);
        if (norm > cfg.maxNorm) {
            float scale = cfg.maxNorm / (norm + 1e-6f);
            for (auto &t : tensors) scaleGrad<<<blocks, threads>>>(t.g, scale, t.n);
        }
        for (auto &t : tensors) adamStep<<<blocks, threads>>>(t, cfg, step);
        gpuCheck(cudaGetLastError());
    }

    double sw = 0, sv = 0, sm = 0;
    for (auto &t : tensors) {
        std::vector<float> h(t.n);
        gpuCheck(cudaMemcpy(h.data(), t.w, t.n * sizeof(float), cudaMemcpyDeviceToHost));
        for (float x : h) sw += fabs(x);
        gpuCheck(cudaMemcpy(h.data(), t.m, t.n * sizeof(float), cudaMemcpyDeviceToHost));
        for (float x : h) sm += fabs(x);
        gpuCheck(cudaMemcpy(h.data(), t.v, t.n * sizeof(float), cudaMemcpyDeviceToHost));
        for (float x : h) sv += x;
    }
    printf("sum |w| %.4e\nsum |m| %.4e\nsum v %.4e\n", sw, sm, sv);

    for (auto &t : tensors) {
        cudaFree(t.w); cudaFree(t.target); cudaFree(t.g); cudaFree(t.m); cudaFree(t.v);
    }
    cudaFree(dNorm);
    return 0;
}
