// Causal multi-head self attention (forward only), plain version:
//   scores = Q K^T / sqrt(d)  ->  softmax over keys  ->  out = P V
// Tensors are stored as [batch][seq][head][dim], the score matrix as [batch*head][query][key].
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                   \
    do {                                                                              \
        cudaError_t err_ = (call);                                                    \
        if (err_ != cudaSuccess) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

constexpr int BATCH = 3;
constexpr int HEADS = 12;
constexpr int SEQ = 650;
constexpr int DIM = 64;

// offset of element (b, s, h, 0) in a [batch][seq][head][dim] tensor
__device__ size_t token_offset(int b, int s, int h)
{
    return (((size_t)b * SEQ + s) * HEADS + h) * DIM;
}

// one thread per (query, key) pair of one (batch, head)
__global__ void scores_kernel(const float *Q, const float *K, float *scores)
{
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    int bh = blockIdx.z;
    if (key >= SEQ || query >= SEQ)
        return;

    size_t out = ((size_t)bh * SEQ + query) * SEQ + key;
    if (key > query) {              // causal mask
        scores[out] = -1e30f;
        return;
    }
    int b = bh / HEADS, h = bh % HEADS;
    size_t qo = token_offset(b, query, h);
    size_t ko = token_offset(b, key, h);
    float sum = 0.0f;
    for (int d = 0; d < DIM; d++)
        sum += Q[qo + d] * K[ko + d];
    scores[out] = sum / sqrtf((float)DIM);
}

// one thread per row of the score matrix, in place
__global__ void softmax_kernel(float *scores, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float *s = scores + (size_t)row * SEQ;
    float m = s[0];
    for (int k = 1; k < SEQ; k++)
        m = fmaxf(m, s[k]);
    float total = 0.0f;
    for (int k = 0; k < SEQ; k++) {
        float e = expf(s[k] - m);
        s[k] = e;
        total += e;
    }
    for (int k = 0; k < SEQ; k++)
        s[k] /= total;
}

// one thread per output element
__global__ void weighted_sum_kernel(const float *probs, const float *V, float *out)
{
    int d = threadIdx.x;
    int query = blockIdx.x * blockDim.y + threadIdx.y;
    int bh = blockIdx.y;
    if (query >= SEQ)
        return;
    int b = bh / HEADS, h = bh % HEADS;
    const float *p = probs + ((size_t)bh * SEQ + query) * SEQ;
    float sum = 0.0f;
    for (int key = 0; key < SEQ; key++)
        sum += p[key] * V[token_offset(b, key, h) + d];
    out[token_offset(b, query, h) + d] = sum;
}

static uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352dU;
    x ^= x >> 15; x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

int main()
{
    const size_t n = (size_t)BATCH * SEQ * HEADS * DIM;
    const size_t ns = (size_t)BATCH * HEADS * SEQ * SEQ;
    std::vector<float> q(n), k(n), v(n), out(n);
    for (size_t i = 0; i < n; i++) {
        q[i] = hash32((uint32_t)i * 3 + 0) * (2.0f / 4294967296.0f) - 1.0f;      // [-1, 1)
        k[i] = hash32((uint32_t)i * 3 + 1) * (4.0f / 4294967296.0f) - 2.0f;      // [-2, 2)
        v[i] = hash32((uint32_t)i * 3 + 2) * (1.0f / 4294967296.0f) + 0.25f;     // [0.25, 1.25)
    }

    float *dq, *dk, *dv, *ds, *dout;
    CHECK(cudaMalloc(&dq, n * sizeof(float)));
    CHECK(cudaMalloc(&dk, n * sizeof(float)));
    CHECK(cudaMalloc(&dv, n * sizeof(float)));
    CHECK(cudaMalloc(&dout, n * sizeof(float)));
    CHECK(cudaMalloc(&ds, ns * sizeof(float)));
    CHECK(cudaMemcpy(dq, q.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dk, k.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dv, v.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((SEQ + 15) / 16, (SEQ + 15) / 16, BATCH * HEADS);
    scores_kernel<<<grid, block>>>(dq, dk, ds);
    CHECK(cudaGetLastError());

    int rows = BATCH * HEADS * SEQ;
    softmax_kernel<<<(rows + 127) / 128, 128>>>(ds, rows);
    CHECK(cudaGetLastError());

    dim3 block2(DIM, 4);
    dim3 grid2((SEQ + 3) / 4, BATCH * HEADS);
    weighted_sum_kernel<<<grid2, block2>>>(ds, dv, dout);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaMemcpy(out.data(), dout, n * sizeof(float), cudaMemcpyDeviceToHost));

    double sum = 0.0, sumsq = 0.0, maxv = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += out[i];
        sumsq += (double)out[i] * out[i];
        if (out[i] > maxv) maxv = out[i];
    }
    printf("sum %.7e\n", sum);
    printf("sumsq %.7e\n", sumsq);
    printf("max %.7e\n", maxv);
    for (int h = 0; h < HEADS; h += 3) {            // per-head sums
        double s = 0.0;
        for (size_t t = 0; t < (size_t)BATCH * SEQ; t++)
            for (int d = 0; d < DIM; d++)
                s += out[(t * HEADS + h) * DIM + d];
        printf("head_sum %.7e\n", s);
    }
    for (int i = 0; i < 8; i++) {
        size_t at = (size_t)i * (n - 1) / 7;
        printf("sample %.7e\n", out[at]);
    }

    CHECK(cudaFree(dq)); CHECK(cudaFree(dk)); CHECK(cudaFree(dv));
    CHECK(cudaFree(ds)); CHECK(cudaFree(dout));
    return 0;
}
