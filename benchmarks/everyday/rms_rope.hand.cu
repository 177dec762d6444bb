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

// Fused: one read and one write of q and k. 16 lanes own one head vector; the sine and cosine of
// a token are computed once for all 40 heads.
constexpr int TOK_PER_BLOCK = 4;
constexpr int LANES = 16;                       // 16 lanes x (float4 + float4) = 128 values
constexpr int GROUPS = 10;
constexpr int THREADS = GROUPS * LANES;         // 160
constexpr int HALF = DIM / 2;
constexpr int HEADS = Q_HEADS + K_HEADS;
static_assert(DIM == 128 && HEADS % GROUPS == 0 && TOKENS % TOK_PER_BLOCK == 0, "layout");

__device__ __forceinline__ float4 mul4(float4 a, float4 w, float s)
{
    return make_float4(a.x * s * w.x, a.y * s * w.y, a.z * s * w.z, a.w * s * w.w);
}

__global__ void __launch_bounds__(THREADS)
normRope(const float4 *__restrict__ q, const float4 *__restrict__ k,
         const float4 *__restrict__ wq, const float4 *__restrict__ wk,
         float4 *__restrict__ qOut, float4 *__restrict__ kOut, float eps, float base)
{
    __shared__ float4 sCos[TOK_PER_BLOCK * HALF / 4];
    __shared__ float4 sSin[TOK_PER_BLOCK * HALF / 4];
    const int token0 = blockIdx.x * TOK_PER_BLOCK;

    for (int i = threadIdx.x; i < TOK_PER_BLOCK * HALF; i += THREADS) {
        int p = i % HALF, t = i / HALF;
        float freq = powf(base, -(float)(2 * p) / (float)DIM);
        float angle = (float)(token0 + t) * freq;
        float s, c;
        sincosf(angle, &s, &c);
        ((float *)sCos)[i] = c;
        ((float *)sSin)[i] = s;
    }
    const int lane = threadIdx.x % LANES;
    const int group = threadIdx.x / LANES;
    const float4 wq0 = wq[lane], wq1 = wq[lane + LANES];
    const float4 wk0 = wk[lane], wk1 = wk[lane + LANES];
    __syncthreads();

    for (int t = 0; t < TOK_PER_BLOCK; t++) {
        const size_t token = token0 + t;
        const float4 c = sCos[t * LANES + lane];
        const float4 s = sSin[t * LANES + lane];
        float4 a[HEADS / GROUPS], b[HEADS / GROUPS];
#pragma unroll
        for (int r = 0; r < HEADS / GROUPS; r++) {
            int head = group + r * GROUPS;
            const float4 *src = head < (int)Q_HEADS ? q + (token * Q_HEADS + head) * (DIM / 4)
                                                    : k + (token * K_HEADS + head - Q_HEADS) * (DIM / 4);
            a[r] = src[lane];
            b[r] = src[lane + LANES];
        }
#pragma unroll
        for (int r = 0; r < HEADS / GROUPS; r++) {
            int head = group + r * GROUPS;
            bool isQ = head < (int)Q_HEADS;
            float ss = a[r].x * a[r].x + a[r].y * a[r].y + a[r].z * a[r].z + a[r].w * a[r].w
                     + b[r].x * b[r].x + b[r].y * b[r].y + b[r].z * b[r].z + b[r].w * b[r].w;
#pragma unroll
            for (int o = LANES / 2; o > 0; o /= 2) ss += __shfl_xor_sync(0xffffffffu, ss, o);
            float inv = rsqrtf(ss * (1.0f / DIM) + eps);
            float4 u = mul4(a[r], isQ ? wq0 : wk0, inv);
            float4 v = mul4(b[r], isQ ? wq1 : wk1, inv);
            float4 lo = make_float4(u.x * c.x - v.x * s.x, u.y * c.y - v.y * s.y,
                                    u.z * c.z - v.z * s.z, u.w * c.w - v.w * s.w);
            float4 hi = make_float4(u.x * s.x + v.x * c.x, u.y * s.y + v.y * c.y,
                                    u.z * s.z + v.z * c.z, u.w * s.w + v.w * c.w);
            float4 *dst = isQ ? qOut + (token * Q_HEADS + head) * (DIM / 4)
                              : kOut + (token * K_HEADS + head - Q_HEADS) * (DIM / 4);
            dst[lane] = lo;
            dst[lane + LANES] = hi;
        }
    }
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

    float *dq, *dk, *dqo, *dko, *dwq, *dwk;
    cudaMalloc(&dq, nq * sizeof(float));
    cudaMalloc(&dk, nk * sizeof(float));
    cudaMalloc(&dqo, nq * sizeof(float));
    cudaMalloc(&dko, nk * sizeof(float));
    cudaMalloc(&dwq, DIM * sizeof(float));
    cudaMalloc(&dwk, DIM * sizeof(float));
    cudaMemcpy(dq, q.data(), nq * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dk, k.data(), nk * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dwq, wq.data(), DIM * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dwk, wk.data(), DIM * sizeof(float), cudaMemcpyHostToDevice);

    normRope<<<(unsigned)(TOKENS / TOK_PER_BLOCK), THREADS>>>(
        (const float4 *)dq, (const float4 *)dk, (const float4 *)dwq, (const float4 *)dwk,
        (float4 *)dqo, (float4 *)dko, 1e-5f, 10000.0f);

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
    cudaFree(dwq); cudaFree(dwk);
    return 0;
}
