// Weighted embedding bag: forward, gradient by scatter with atomics, SGD update of the table.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

typedef long long i64;

const int VOCAB = 200000;
const int DIM   = 64;
const int BAGS  = 20000;
const int MAX_LEN = 40;

struct Bags {
    const int   *indices;   // which table row
    const float *weights;   // per sample weight
    const int   *offsets;   // BAGS + 1
    int          nBags;
    int          nSamples;
};

#define CUDA_TRY(expr)                                                   \
    {                                                                    \
        cudaError_t s_ = (expr);                                         \
        if (s_ != cudaSuccess) {                                         \
            fprintf(stderr, "%s -> %s\n", #expr, cudaGetErrorString(s_)); \
            std::exit(2);                                                \
        }                                                                \
    }

// 16 lanes (float4 each) own a bag.
const int THREADS = 256;
const int LANES = DIM / 4;
const int BAGS_PER_BLOCK = THREADS / LANES;
static_assert(LANES == 16, "half a warp per row");

// forward, loss gradient and gradient of the sample weights (the rows are still in cache)
__global__ void __launch_bounds__(THREADS)
forwardAndWeights(Bags bags, const float4 *__restrict__ table, const float4 *__restrict__ target,
                  float4 *__restrict__ out, float4 *__restrict__ gout, float *__restrict__ gweight)
{
    const int lane = threadIdx.x % LANES;
    const int bag = blockIdx.x * BAGS_PER_BLOCK + threadIdx.x / LANES;
    if (bag >= bags.nBags) return;
    const unsigned mask = 0xffffu << (threadIdx.x & 16);
    const int begin = __ldg(bags.offsets + bag), end = __ldg(bags.offsets + bag + 1);

    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int s = begin; s < end; s++) {
        const float w = __ldg(bags.weights + s);
        const float4 v = __ldg(table + (size_t)__ldg(bags.indices + s) * LANES + lane);
        sum.x += w * v.x; sum.y += w * v.y; sum.z += w * v.z; sum.w += w * v.w;
    }
    const size_t o = (size_t)bag * LANES + lane;
    const float4 t = target[o];
    const float4 g = make_float4(sum.x - t.x, sum.y - t.y, sum.z - t.z, sum.w - t.w);
    out[o] = sum;
    gout[o] = g;

#pragma unroll 4
    for (int s = begin; s < end; s++) {
        const float4 v = __ldg(table + (size_t)__ldg(bags.indices + s) * LANES + lane);
        float d = (v.x * g.x + v.y * g.y) + (v.z * g.z + v.w * g.w);
#pragma unroll
        for (int k = LANES / 2; k > 0; k /= 2) d += __shfl_xor_sync(mask, d, k);
        if (lane == 0) gweight[s] = d;
    }
}

// SGD straight into the table: table[index] -= lr * weight * gout, 16-byte vector atomics
__global__ void __launch_bounds__(THREADS)
scatterUpdate(Bags bags, const float4 *__restrict__ gout, float4 *table, float lr)
{
    const int lane = threadIdx.x % LANES;
    const int bag = blockIdx.x * BAGS_PER_BLOCK + threadIdx.x / LANES;
    if (bag >= bags.nBags) return;
    const int begin = __ldg(bags.offsets + bag), end = __ldg(bags.offsets + bag + 1);
    const float4 g = gout[(size_t)bag * LANES + lane];
#pragma unroll 4
    for (int s = begin; s < end; s++) {
        const float w = -lr * __ldg(bags.weights + s);
        atomicAdd(table + (size_t)__ldg(bags.indices + s) * LANES + lane,
                  make_float4(w * g.x, w * g.y, w * g.z, w * g.w));
    }
}

struct Random {
    unsigned int s;
    unsigned int next() { s = s * 1664525u + 1013904223u; return s >> 8; }
    float unit() { return next() / 16777216.0f; }
};

template <typename T>
T *toDevice(const std::vector<T> &h)
{
    T *d;
    CUDA_TRY(cudaMalloc(&d, h.size() * sizeof(T)));
    CUDA_TRY(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
    return d;
}

static double sumAbs(const float *d, size_t n)
{
    std::vector<float> h(n);
    CUDA_TRY(cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost));
    double s = 0;
    for (size_t i = 0; i < n; i++) s += std::fabs(h[i]);
    return s;
}

int main()
{
    Random r{606};
    std::vector<float> table((size_t)VOCAB * DIM), target((size_t)BAGS * DIM), weights;
    std::vector<int> indices, offsets(1, 0);
    for (auto &v : table) v = r.unit() - 0.5f;
    for (auto &v : target) v = r.unit();
    for (int b = 0; b < BAGS; b++) {
        int len = 1 + r.next() % MAX_LEN;
        for (int k = 0; k < len; k++) {
            float u = r.unit();
            indices.push_back((int)(u * u * (VOCAB - 1)));   // some rows are popular
            weights.push_back(0.2f + r.unit());
        }
        offsets.push_back((int)indices.size());
    }
    const int samples = (int)indices.size();

    int *dIndices = toDevice(indices), *dOffsets = toDevice(offsets);
    float *dTable = toDevice(table), *dTarget = toDevice(target), *dWeights = toDevice(weights);
    float *dOut, *dGout, *dGweight;
    CUDA_TRY(cudaMalloc(&dOut, (size_t)BAGS * DIM * sizeof(float)));
    CUDA_TRY(cudaMalloc(&dGout, (size_t)BAGS * DIM * sizeof(float)));
    CUDA_TRY(cudaMalloc(&dGweight, samples * sizeof(float)));

    Bags bags{dIndices, dWeights, dOffsets, BAGS, samples};
    const i64 nOut = (i64)BAGS * DIM, nTable = (i64)VOCAB * DIM;
    const int blocks = (BAGS + BAGS_PER_BLOCK - 1) / BAGS_PER_BLOCK;
    forwardAndWeights<<<blocks, THREADS>>>(bags, (const float4 *)dTable, (const float4 *)dTarget,
                                           (float4 *)dOut, (float4 *)dGout, dGweight);
    scatterUpdate<<<blocks, THREADS>>>(bags, (const float4 *)dGout, (float4 *)dTable, 0.05f);
    CUDA_TRY(cudaGetLastError());

    printf("samples %d\n", samples);
    printf("out     %.4e\n", sumAbs(dOut, (size_t)nOut));
    printf("gweight %.4e\n", sumAbs(dGweight, samples));
    printf("table   %.4e\n", sumAbs(dTable, (size_t)nTable));

    cudaFree(dIndices); cudaFree(dOffsets); cudaFree(dTable); cudaFree(dTarget);
    cudaFree(dWeights); cudaFree(dOut); cudaFree(dGout); cudaFree(dGweight);
    return 0;
}
