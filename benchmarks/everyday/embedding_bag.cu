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

__global__ void bagForward(Bags bags, const float *table, float *out)
{
    i64 idx = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= (i64)bags.nBags * DIM) return;
    int bag = (int)(idx / DIM);
    int d   = (int)(idx % DIM);
    float sum = 0.0f;
    for (int s = bags.offsets[bag]; s < bags.offsets[bag + 1]; s++)
        sum += bags.weights[s] * table[(i64)bags.indices[s] * DIM + d];
    out[idx] = sum;
}

__global__ void lossGradient(const float *out, const float *target, float *gout, i64 n)
{
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gout[i] = out[i] - target[i];
}

__global__ void findBagOfSample(Bags bags, int *bagOf)
{
    int bag = blockIdx.x * blockDim.x + threadIdx.x;
    if (bag >= bags.nBags) return;
    for (int s = bags.offsets[bag]; s < bags.offsets[bag + 1]; s++)
        bagOf[s] = bag;
}

// gradient of the per sample weights
__global__ void weightGradient(Bags bags, const int *bagOf, const float *table,
                               const float *gout, float *gweight)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= bags.nSamples) return;
    const float *row = table + (i64)bags.indices[s] * DIM;
    const float *g   = gout + (i64)bagOf[s] * DIM;
    float sum = 0.0f;
    for (int d = 0; d < DIM; d++) sum += row[d] * g[d];
    gweight[s] = sum;
}

__global__ void tableGradient(Bags bags, const int *bagOf, const float *gout, float *gtable)
{
    i64 idx = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= (i64)bags.nSamples * DIM) return;
    int s = (int)(idx / DIM);
    int d = (int)(idx % DIM);
    atomicAdd(&gtable[(i64)bags.indices[s] * DIM + d], bags.weights[s] * gout[(i64)bagOf[s] * DIM + d]);
}

__global__ void sgd(float *table, const float *gtable, float lr, i64 n)
{
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[i] -= lr * gtable[i];
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

    int *dIndices = toDevice(indices), *dOffsets = toDevice(offsets), *dBagOf;
    float *dTable = toDevice(table), *dTarget = toDevice(target), *dWeights = toDevice(weights);
    float *dOut, *dGout, *dGweight, *dGtable;
    CUDA_TRY(cudaMalloc(&dBagOf, samples * sizeof(int)));
    CUDA_TRY(cudaMalloc(&dOut, (size_t)BAGS * DIM * sizeof(float)));
    CUDA_TRY(cudaMalloc(&dGout, (size_t)BAGS * DIM * sizeof(float)));
    CUDA_TRY(cudaMalloc(&dGweight, samples * sizeof(float)));
    CUDA_TRY(cudaMalloc(&dGtable, (size_t)VOCAB * DIM * sizeof(float)));
    CUDA_TRY(cudaMemset(dGtable, 0, (size_t)VOCAB * DIM * sizeof(float)));

    Bags bags{dIndices, dWeights, dOffsets, BAGS, samples};
    const int T = 256;
    const i64 nOut = (i64)BAGS * DIM, nTable = (i64)VOCAB * DIM, nScatter = (i64)samples * DIM;
    bagForward<<<(unsigned)((nOut + T - 1) / T), T>>>(bags, dTable, dOut);
    lossGradient<<<(unsigned)((nOut + T - 1) / T), T>>>(dOut, dTarget, dGout, nOut);
    findBagOfSample<<<(BAGS + T - 1) / T, T>>>(bags, dBagOf);
    weightGradient<<<(samples + T - 1) / T, T>>>(bags, dBagOf, dTable, dGout, dGweight);
    tableGradient<<<(unsigned)((nScatter + T - 1) / T), T>>>(bags, dBagOf, dGout, dGtable);
    sgd<<<(unsigned)((nTable + T - 1) / T), T>>>(dTable, dGtable, 0.05f, nTable);
    CUDA_TRY(cudaGetLastError());

    printf("samples %d\n", samples);
    printf("out     %.4e\n", sumAbs(dOut, (size_t)nOut));
    printf("gweight %.4e\n", sumAbs(dGweight, samples));
    printf("table   %.4e\n", sumAbs(dTable, (size_t)nTable));

    cudaFree(dIndices); cudaFree(dOffsets); cudaFree(dBagOf); cudaFree(dTable); cudaFree(dTarget);
    cudaFree(dWeights); cudaFree(dOut); cudaFree(dGout); cudaFree(dGweight); cudaFree(dGtable);
    return 0;
}
