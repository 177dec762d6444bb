// Cross entropy with softmax: loss of each row and gradient of the logits
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cmath>
#include <cuda_runtime.h>

using index_t = int64_t;

#define IGNORE_INDEX (-100)

constexpr int VOCAB4 = 10000 / 4;
constexpr int TPB = 512;
constexpr int PER = (VOCAB4 + TPB - 1) / TPB;      // 5 float4 a thread hold the whole row

template <bool MAX>
__device__ __forceinline__ float block_reduce(float v, float *sm)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        const float w = __shfl_xor_sync(0xffffffffu, v, o);
        v = MAX ? fmaxf(v, w) : v + w;
    }
    if ((threadIdx.x & 31) == 0) sm[threadIdx.x >> 5] = v;
    __syncthreads();
    v = sm[threadIdx.x & 15];
#pragma unroll
    for (int o = 8; o > 0; o >>= 1) {
        const float w = __shfl_xor_sync(0xffffffffu, v, o);
        v = MAX ? fmaxf(v, w) : v + w;
    }
    return v;
}

// one block a row; logits read once, gradient written once
__global__ void __launch_bounds__(TPB, 4)
cross_entropy(const float4 *__restrict__ logits, const int *__restrict__ target, float *__restrict__ loss,
              float4 *__restrict__ grad, float inv_rows)
{
    __shared__ float sm[2][TPB / 32];
    __shared__ float zt;
    const int r = blockIdx.x, tid = threadIdx.x;
    const float4 *z = logits + (size_t)r * VOCAB4;
    float4 *g = grad + (size_t)r * VOCAB4;
    const int t = __ldg(target + r);
    if (t == IGNORE_INDEX) {
        if (tid == 0) loss[r] = 0.0f;
        for (int j = tid; j < VOCAB4; j += TPB) __stcs(g + j, make_float4(0.f, 0.f, 0.f, 0.f));
        return;
    }
    float4 v[PER];
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int j = tid + i * TPB;
        v[i] = (j < VOCAB4) ? __ldcs(z + j) : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    }
    if (tid == 0) zt = __ldg((const float *)z + t);
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < PER; ++i) m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    m = block_reduce<true>(m, sm[0]);
    float d = 0.0f;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        v[i].x = __expf(v[i].x - m); v[i].y = __expf(v[i].y - m);
        v[i].z = __expf(v[i].z - m); v[i].w = __expf(v[i].w - m);
        d += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    }
    d = block_reduce<false>(d, sm[1]);
    if (tid == 0) loss[r] = logf(d) + m - zt;
    const float k = inv_rows / d;
    const int t4 = t >> 2, tc = t & 3;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int j = tid + i * TPB;
        if (j < VOCAB4) {
            float4 o = make_float4(v[i].x * k, v[i].y * k, v[i].z * k, v[i].w * k);
            if (j == t4) {
                if (tc == 0) o.x -= inv_rows;
                else if (tc == 1) o.y -= inv_rows;
                else if (tc == 2) o.z -= inv_rows;
                else o.w -= inv_rows;
            }
            __stcs(g + j, o);
        }
    }
}

int main()
{
    const index_t rows = 2048, vocab = 10000;
    std::vector<float> logits(rows * vocab), grad(rows * vocab), loss(rows);
    std::vector<int> target(rows);
    uint32_t s = 20240607u;
    for (auto &v : logits) {
        s = s * 747796405u + 2891336453u;
        v = (s >> 8) * (8.0f / 16777216.0f) - 4.0f;
    }
    for (index_t r = 0; r < rows; ++r) {
        s = s * 747796405u + 2891336453u;
        target[r] = (r % 37 == 5) ? IGNORE_INDEX : (int)((s >> 4) % vocab);
    }

    float *d_logits, *d_loss, *d_grad;
    int *d_target;
    cudaMalloc(&d_logits, logits.size() * sizeof(float));
    cudaMalloc(&d_grad, grad.size() * sizeof(float));
    cudaMalloc(&d_loss, rows * sizeof(float));
    cudaMalloc(&d_target, rows * sizeof(int));
    cudaMemcpy(d_logits, logits.data(), logits.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_target, target.data(), rows * sizeof(int), cudaMemcpyHostToDevice);

    cross_entropy<<<(unsigned)rows, TPB>>>((const float4 *)d_logits, d_target, d_loss, (float4 *)d_grad, 1.0f / rows);

    cudaMemcpy(loss.data(), d_loss, rows * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(grad.data(), d_grad, grad.size() * sizeof(float), cudaMemcpyDeviceToHost);

    double total = 0, ga = 0;
    for (float v : loss) total += v;
    for (float v : grad) ga += std::fabs((double)v);
    printf("mean loss %.4e  sum|grad| %.4e\n", total / rows, ga);
    printf("loss[0] %.4e loss[5] %.4e loss[2047] %.4e grad[0] %.3e grad[last] %.3e\n",
           loss[0], loss[5], loss[2047], grad[0], grad[grad.size() - 1]);
    return 0;
}
