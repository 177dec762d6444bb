// Independent ridge regressions for many measurement sites.  Every site has its own
// small design matrix X (samples x features) and target y; we solve
//     (X'X + lambda I) w = X'y
// by a Cholesky factorisation and report the coefficient of determination.
//
// Estimated kernel time on an H200: about 1 ms for all launches together.
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                          \
    do {                                                                          \
        cudaError_t err_ = (call);                                                \
        if (err_ != cudaSuccess) {                                                \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,               \
                         cudaGetErrorString(err_));                               \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

constexpr int kSites = 36007;
constexpr int kSamples = 72;
constexpr int kFeatures = 15;
constexpr float kLambda = 0.5f;

// one block per site, one thread per matrix entry
__global__ void gram_matrix(const float* X, float* gram)
{
    size_t site = blockIdx.x;
    int row = threadIdx.y;
    int col = threadIdx.x;
    const float* x = X + site * kSamples * kFeatures;
    float sum = 0.0f;
    for (int s = 0; s < kSamples; ++s) sum += x[s * kFeatures + row] * x[s * kFeatures + col];
    if (row == col) sum += kLambda;
    gram[(site * kFeatures + row) * kFeatures + col] = sum;
}

__global__ void project_target(const float* X, const float* y, float* rhs)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (size_t)kSites * kFeatures) return;
    size_t site = i / kFeatures;
    int feature = i % kFeatures;
    const float* x = X + site * kSamples * kFeatures;
    float sum = 0.0f;
    for (int s = 0; s < kSamples; ++s) sum += x[s * kFeatures + feature] * y[site * kSamples + s];
    rhs[i] = sum;
}

// in-place Cholesky factor in the lower triangle, one thread per site
__global__ void cholesky(float* gram)
{
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= kSites) return;
    float* a = gram + (size_t)site * kFeatures * kFeatures;
    for (int j = 0; j < kFeatures; ++j) {
        float d = a[j * kFeatures + j];
        for (int k = 0; k < j; ++k) d -= a[j * kFeatures + k] * a[j * kFeatures + k];
        d = sqrtf(d);
        a[j * kFeatures + j] = d;
        for (int i = j + 1; i < kFeatures; ++i) {
            float v = a[i * kFeatures + j];
            for (int k = 0; k < j; ++k) v -= a[i * kFeatures + k] * a[j * kFeatures + k];
            a[i * kFeatures + j] = v / d;
        }
    }
}

// L z = rhs, then L' w = z, in place
__global__ void substitute(const float* gram, float* rhs)
{
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= kSites) return;
    const float* l = gram + (size_t)site * kFeatures * kFeatures;
    float* w = rhs + (size_t)site * kFeatures;
    for (int i = 0; i < kFeatures; ++i) {
        float v = w[i];
        for (int k = 0; k < i; ++k) v -= l[i * kFeatures + k] * w[k];
        w[i] = v / l[i * kFeatures + i];
    }
    for (int i = kFeatures - 1; i >= 0; --i) {
        float v = w[i];
        for (int k = i + 1; k < kFeatures; ++k) v -= l[k * kFeatures + i] * w[k];
        w[i] = v / l[i * kFeatures + i];
    }
}

__global__ void goodness_of_fit(const float* X, const float* y, const float* w, float* r_squared)
{
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= kSites) return;
    const float* target = y + (size_t)site * kSamples;
    const float* coef = w + (size_t)site * kFeatures;

    float mean = 0.0f;
    for (int s = 0; s < kSamples; ++s) mean += target[s];
    mean /= kSamples;

    float residual = 0.0f, total = 0.0f;
    for (int s = 0; s < kSamples; ++s) {
        const float* x = X + ((size_t)site * kSamples + s) * kFeatures;
        float prediction = 0.0f;
        for (int f = 0; f < kFeatures; ++f) prediction += x[f] * coef[f];
        float e = target[s] - prediction;
        residual += e * e;
        total += (target[s] - mean) * (target[s] - mean);
    }
    r_squared[site] = 1.0f - residual / total;
}

struct Random {
    uint32_t state;
    float operator()()   // uniform in [-1, 1)
    {
        state = state * 1664525u + 1013904223u;
        return (float)(state >> 8) * (2.0f / 16777216.0f) - 1.0f;
    }
};

static void make_sites(std::vector<float>& X, std::vector<float>& y)
{
    Random rnd{4711u};
    float truth[kFeatures];
    for (size_t site = 0; site < kSites; ++site) {
        for (float& t : truth) t = rnd();
        float noise = 0.6f + 0.4f * rnd();
        for (int s = 0; s < kSamples; ++s) {
            float* x = &X[(site * kSamples + s) * kFeatures];
            float common = rnd(), target = noise * (rnd() + rnd());
            for (int f = 0; f < kFeatures; ++f) {
                x[f] = f == 0 ? 1.0f : 0.3f * common + rnd();
                target += truth[f] * x[f];
            }
            y[site * kSamples + s] = target;
        }
    }
}

int main()
{
    std::vector<float> X((size_t)kSites * kSamples * kFeatures), y((size_t)kSites * kSamples);
    make_sites(X, y);

    float *d_X, *d_y, *d_gram, *d_w, *d_r2;
    CUDA_CHECK(cudaMalloc(&d_X, X.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_y, y.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_gram, (size_t)kSites * kFeatures * kFeatures * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_w, (size_t)kSites * kFeatures * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_r2, kSites * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_X, X.data(), X.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_y, y.data(), y.size() * sizeof(float), cudaMemcpyHostToDevice));

    const int threads = 128;
    const int site_blocks = (kSites + threads - 1) / threads;
    gram_matrix<<<kSites, dim3(kFeatures, kFeatures)>>>(d_X, d_gram);
    project_target<<<(kSites * kFeatures + threads - 1) / threads, threads>>>(d_X, d_y, d_w);
    cholesky<<<site_blocks, threads>>>(d_gram);
    substitute<<<site_blocks, threads>>>(d_gram, d_w);
    goodness_of_fit<<<site_blocks, threads>>>(d_X, d_y, d_w, d_r2);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    std::vector<float> w((size_t)kSites * kFeatures), r2(kSites);
    CUDA_CHECK(cudaMemcpy(w.data(), d_w, w.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(r2.data(), d_r2, r2.size() * sizeof(float), cudaMemcpyDeviceToHost));

    double mean_r2 = 0.0, abs_w = 0.0, square_w = 0.0;
    float worst = 1.0f;
    for (float v : r2) {
        mean_r2 += v;
        worst = std::min(worst, v);
    }
    for (float v : w) {
        abs_w += std::fabs(v);
        square_w += (double)v * v;
    }
    std::printf("mean R^2          %.6g\n", mean_r2 / kSites);
    std::printf("worst R^2         %.6g\n", worst);
    std::printf("mean |w|          %.6g\n", abs_w / w.size());
    std::printf("mean w^2          %.6g\n", square_w / w.size());
    std::printf("w[100][0..2]      %.6g %.6g %.6g\n", w[1500], w[1501], w[1502]);
    std::printf("R^2 of last site  %.6g\n", r2[kSites - 1]);

    CUDA_CHECK(cudaFree(d_X));
    CUDA_CHECK(cudaFree(d_y));
    CUDA_CHECK(cudaFree(d_gram));
    CUDA_CHECK(cudaFree(d_w));
    CUDA_CHECK(cudaFree(d_r2));
    return 0;
}
