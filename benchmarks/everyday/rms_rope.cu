// RMS normalisation of every head vector, then rotary position embedding.
// q: [tokens, 32, 128]   k: [tokens, 8, 128]
#include <cstdio>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr size_t TOKENS  = 4096;
constexpr size_t Q_HEADS = 32;
constexpr size_t K_HEADS = 8;
constexpr size_t DIM     = 128;

template <typename T>
__device__ T square(T a) { return a * a; }

// one thread computes the rms of one vector
template <typename T>
__global__ void rowRms(const T *x, T *rms, size_t rows, size_t dim, T eps)
{
    size_t row = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    T s = 0;
    for (size_t d = 0; d < dim; ++d)
        s += square(x[row * dim + d]);
    rms[row] = sqrt(s / (T)dim + eps);
}

template <typename T>
__global__ void applyNorm(const T *x, const T *rms, const T *weight, T *y, size_t n, size_t dim)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    size_t row = i / dim;
    size_t d   = i % dim;
    y[i] = x[i] / rms[row] * weight[d];
}

// one thread per rotated pair (d, d + dim/2)
template <typename T>
__global__ void rope(T *x, size_t tokens, size_t heads, size_t dim, T base)
{
    size_t half = dim / 2;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= tokens * heads * half) return;
    size_t p     = i % half;
    size_t head  = (i / half) % heads;
    size_t token = i / (half * heads);

    T freq  = pow(base, -(T)(2 * p) / (T)dim);
    T angle = (T)token * freq;
    T c = cos(angle);
    T s = sin(angle);

    size_t o = (token * heads + head) * dim + p;
    T a = x[o];
    T b = x[o + half];
    x[o]        = a * c - b * s;
    x[o + half] = a * s + b * c;
}

template <typename T>
void normAndRotate(const T *in, const T *weight, T *rms, T *out, size_t heads)
{
    size_t rows = TOKENS * heads;
    size_t n    = rows * DIM;
    const int threads = 256;
    rowRms<T><<<(unsigned)((rows + threads - 1) / threads), threads>>>(in, rms, rows, DIM, (T)1e-5);
    applyNorm<T><<<(unsigned)((n + threads - 1) / threads), threads>>>(in, rms, weight, out, n, DIM);
    rope<T><<<(unsigned)((n / 2 + threads - 1) / threads), threads>>>(out, TOKENS, heads, DIM, (T)10000);
}

struct Lcg {
    uint64_t state;
    float next() {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (float)(state >> 40) / (float)(1 << 24);
    }
};

static void summary(const char *name, const std::vector<float> &v)
{
    double a = 0, b = 0;
    for (size_t i = 0; i < v.size(); ++i) {
        a += std::fabs(v[i]);
        b += (double)v[i] * v[i] * (1.0 + (double)(i % 7));
    }
    printf("%s abs %.4e weighted %.3e\n", name, a, b);
}

int main()
{
    const size_t nq = TOKENS * Q_HEADS * DIM, nk = TOKENS * K_HEADS * DIM;
    std::vector<float> q(nq), k(nk), wq(DIM), wk(DIM);
    Lcg rng{2024};
    for (auto &v : q) v = 2.0f * rng.next() - 0.8f;
    for (auto &v : k) v = 3.0f * rng.next() - 1.3f;
    for (auto &v : wq) v = 0.5f + rng.next();
    for (auto &v : wk) v = 0.5f + rng.next();

    float *dq, *dk, *dqo, *dko, *dwq, *dwk, *drms;
    cudaMalloc(&dq, nq * sizeof(float));
    cudaMalloc(&dk, nk * sizeof(float));
    cudaMalloc(&dqo, nq * sizeof(float));
    cudaMalloc(&dko, nk * sizeof(float));
    cudaMalloc(&dwq, DIM * sizeof(float));
    cudaMalloc(&dwk, DIM * sizeof(float));
    cudaMalloc(&drms, TOKENS * Q_HEADS * sizeof(float));
    cudaMemcpy(dq, q.data(), nq * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dk, k.data(), nk * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dwq, wq.data(), DIM * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dwk, wk.data(), DIM * sizeof(float), cudaMemcpyHostToDevice);

    normAndRotate<float>(dq, dwq, drms, dqo, Q_HEADS);
    normAndRotate<float>(dk, dwk, drms, dko, K_HEADS);

    cudaMemcpy(q.data(), dqo, nq * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(k.data(), dko, nk * sizeof(float), cudaMemcpyDeviceToHost);
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) {
        printf("CUDA error: %s\n", cudaGetErrorString(err));
        return 1;
    }
    summary("q", q);
    summary("k", k);

    cudaFree(dq); cudaFree(dk); cudaFree(dqo); cudaFree(dko);
    cudaFree(dwq); cudaFree(dwk); cudaFree(drms);
    return 0;
}
