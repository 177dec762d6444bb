// AdamW training steps on a set of tensors, with clipping by the global gradient norm.
// The loss is a toy: pull every weight towards its target.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

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

// All tensors live in one pool. A step is one pass: recompute the gradient from w and target, clip
// with the norm found earlier, update, and collect the norm of the next step's gradient on the way.
const int THREADS = 256;

__device__ __forceinline__ float gradient(float w, float target)
{
    float diff = w - target;
    return 2.0f * diff + 0.1f * diff * diff * diff;
}

__device__ void blockSumTo(float s, double *result)
{
    __shared__ double part[THREADS / 32];
    double v = (double)s;
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0.0;
        for (int o = THREADS / 64; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
        if (threadIdx.x == 0) atomicAdd(result, v);
    }
}

__global__ void __launch_bounds__(THREADS)
firstNorm(const float4 *__restrict__ w, const float4 *__restrict__ target, double *norm2, int n4)
{
    float s = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n4; i += gridDim.x * THREADS) {
        float4 a = w[i], b = target[i];
        float g0 = gradient(a.x, b.x), g1 = gradient(a.y, b.y);
        float g2 = gradient(a.z, b.z), g3 = gradient(a.w, b.w);
        s += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3);
    }
    blockSumTo(s, norm2);
}

// one element; returns the squared gradient after the update
__device__ __forceinline__ float adamElement(float &w, float target, float &m, float &v,
                                             const AdamConfig &cfg, float scale, float c1, float c2)
{
    float g = gradient(w, target) * scale;
    m = cfg.beta1 * m + (1.0f - cfg.beta1) * g;
    v = cfg.beta2 * v + (1.0f - cfg.beta2) * g * g;
    float denom = sqrtf(v * c2) + cfg.eps;
    w -= cfg.lr * (__fdividef(m * c1, denom) + cfg.weightDecay * w);
    float next = gradient(w, target);
    return next * next;
}

__global__ void __launch_bounds__(THREADS)
adamStep(float4 *__restrict__ w, const float4 *__restrict__ target, float4 *__restrict__ m,
         float4 *__restrict__ v, AdamConfig cfg, float c1, float c2,
         const double *norm2, double *nextNorm2, int n4)
{
    const float norm = (float)sqrt(*norm2);
    const float scale = norm > cfg.maxNorm ? cfg.maxNorm / (norm + 1e-6f) : 1.0f;
    float s = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n4; i += gridDim.x * THREADS) {
        float4 a = w[i], b = target[i], mm = m[i], vv = v[i];
        float s0 = adamElement(a.x, b.x, mm.x, vv.x, cfg, scale, c1, c2);
        float s1 = adamElement(a.y, b.y, mm.y, vv.y, cfg, scale, c1, c2);
        float s2 = adamElement(a.z, b.z, mm.z, vv.z, cfg, scale, c1, c2);
        float s3 = adamElement(a.w, b.w, mm.w, vv.w, cfg, scale, c1, c2);
        w[i] = a;
        m[i] = mm;
        v[i] = vv;
        s += (s0 + s1) + (s2 + s3);
    }
    blockSumTo(s, nextNorm2);
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

    size_t total = 0;
    for (int k = 0; k < count; k++) total += sizes[k];          // every size is a multiple of 4
    float *dW, *dTarget, *dM, *dV;
    double *dNorm2;
    gpuCheck(cudaMalloc(&dW, total * sizeof(float)));
    gpuCheck(cudaMalloc(&dTarget, total * sizeof(float)));
    gpuCheck(cudaMalloc(&dM, total * sizeof(float)));
    gpuCheck(cudaMalloc(&dV, total * sizeof(float)));
    gpuCheck(cudaMalloc(&dNorm2, (STEPS + 1) * sizeof(double)));
    size_t offset = 0;
    for (int k = 0; k < count; k++) {
        size_t n = sizes[k];
        std::vector<float> w(n), target(n);
        for (size_t i = 0; i < n; i++) w[i] = 2.0f * lcg_float() - 1.0f;
        for (size_t i = 0; i < n; i++) target[i] = 3.0f * lcg_float() - 1.0f;
        gpuCheck(cudaMemcpy(dW + offset, w.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        gpuCheck(cudaMemcpy(dTarget + offset, target.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        offset += n;
    }
    gpuCheck(cudaMemset(dM, 0, total * sizeof(float)));
    gpuCheck(cudaMemset(dV, 0, total * sizeof(float)));
    gpuCheck(cudaMemset(dNorm2, 0, (STEPS + 1) * sizeof(double)));

    const int blocks = 132 * 6, n4 = (int)(total / 4);
    firstNorm<<<blocks, THREADS>>>((const float4 *)dW, (const float4 *)dTarget, dNorm2, n4);
    for (int step = 1; step <= STEPS; step++) {
        float c1 = 1.0f / (1.0f - powf(cfg.beta1, (float)step));
        float c2 = 1.0f / (1.0f - powf(cfg.beta2, (float)step));
        adamStep<<<blocks, THREADS>>>((float4 *)dW, (const float4 *)dTarget, (float4 *)dM, (float4 *)dV,
                                      cfg, c1, c2, dNorm2 + step - 1, dNorm2 + step, n4);
    }
    gpuCheck(cudaGetLastError());

    double norm2[STEPS + 1];
    gpuCheck(cudaMemcpy(norm2, dNorm2, sizeof(norm2), cudaMemcpyDeviceToHost));
    for (int step = 1; step <= STEPS; step++)
        printf("step %d grad norm %.4e\n", step, (float)sqrt(norm2[step - 1]));

    double sw = 0, sv = 0, sm = 0;
    std::vector<float> h(total);
    gpuCheck(cudaMemcpy(h.data(), dW, total * sizeof(float), cudaMemcpyDeviceToHost));
    for (float x : h) sw += fabs(x);
    gpuCheck(cudaMemcpy(h.data(), dM, total * sizeof(float), cudaMemcpyDeviceToHost));
    for (float x : h) sm += fabs(x);
    gpuCheck(cudaMemcpy(h.data(), dV, total * sizeof(float), cudaMemcpyDeviceToHost));
    for (float x : h) sv += x;
    printf("sum |w| %.4e\nsum |m| %.4e\nsum v %.4e\n", sw, sm, sv);

    cudaFree(dW); cudaFree(dTarget); cudaFree(dM); cudaFree(dV); cudaFree(dNorm2);
    return 0;
}
