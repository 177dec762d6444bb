// Routing layer of a mixture-of-adapters transformer block.
// Every token is RMS-normalised, scored against all experts, sent to its two
// best experts, and each expert applies a learned element-wise scale and shift
// (IA3-style adapter).  The result is added to the residual stream.  The usual
// load-balancing statistics are gathered on the way.
//
// Hand-tuned version: one persistent kernel, one read and one write of the tokens.
// Estimated kernel time on an H200: about 0.08 ms.
#include <cuda_runtime.h>
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

constexpr int kTokens = 33333;
constexpr int kDim = 896;
constexpr int kExperts = 20;
constexpr float kEps = 1e-6f;

constexpr int kVec = kDim / 4;            // float4 per row
constexpr int kVecPerLane = kVec / 32;    // float4 of a row held by one lane
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kSlots = 24;                // experts, sum of squares, padding
constexpr int kSumSq = kExperts;
constexpr unsigned kFull = 0xffffffffu;
static_assert(kVec % 32 == 0 && kDim % 4 == 0, "a row is split evenly over a warp");
static_assert(kExperts == 20, "the slot layout below assumes 20 experts");

constexpr size_t kTableVecs = (size_t)kExperts * kVec;
constexpr size_t kSharedBytes = 3 * kTableVecs * sizeof(float4) +
                                (size_t)2 * kWarps * (2 * kSlots + 1) * sizeof(float);

__device__ __forceinline__ float dot4(float4 a, float4 b, float acc)
{
    acc = fmaf(a.x, b.x, acc);
    acc = fmaf(a.y, b.y, acc);
    acc = fmaf(a.z, b.z, acc);
    return fmaf(a.w, b.w, acc);
}

// halve the number of values a lane holds: lanes with the bit set keep the upper
// half, the others the lower half, and both add what the partner lane held
template <int N>
__device__ __forceinline__ void fold(float (&v)[N], float (&r)[N / 2], int bit, int lane)
{
    const bool up = lane & bit;
#pragma unroll
    for (int j = 0; j < N / 2; ++j) {
        float keep = up ? v[N / 2 + j] : v[j];
        float give = up ? v[j] : v[N / 2 + j];
        r[j] = keep + __shfl_xor_sync(kFull, give, bit);
    }
}

__device__ __forceinline__ bool better(float a, int ia, float b, int ib)
{
    return a > b || (a == b && ia < ib);
}

// Everything in one pass over the tokens: a warp keeps two token rows in
// registers, all three expert tables (with the RMS gain folded in) stay in shared
// memory for the life of the block.
__global__ void __launch_bounds__(kThreads, 1)
route_and_apply(const float4* __restrict__ x, const float4* __restrict__ gain,
                const float4* __restrict__ gate, const float4* __restrict__ scale,
                const float4* __restrict__ shift, float4* __restrict__ out,
                float* __restrict__ prob_sum, int* __restrict__ load,
                float* __restrict__ confidence)
{
    extern __shared__ float4 smem[];
    float4* s_gate = smem;
    float4* s_scale = s_gate + kTableVecs;
    float4* s_shift = s_scale + kTableVecs;
    float* s_prob = reinterpret_cast<float*>(s_shift + kTableVecs);   // [2*kWarps][kSlots]
    int* s_load = reinterpret_cast<int*>(s_prob + 2 * kWarps * kSlots);
    float* s_conf = reinterpret_cast<float*>(s_load + 2 * kWarps * kSlots);

    for (int i = threadIdx.x; i < (int)kTableVecs; i += kThreads) {
        const float4 g = gain[i % kVec];
        const float4 w = gate[i];
        const float4 c = scale[i];
        s_gate[i] = make_float4(g.x * w.x, g.y * w.y, g.z * w.z, g.w * w.w);
        s_scale[i] = make_float4(g.x * c.x, g.y * c.y, g.z * c.z, g.w * c.w);
        s_shift[i] = shift[i];
    }
    __syncthreads();

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int half = lane >> 4;                       // which token of the pair
    const int first_slot = 3 * ((lane >> 1) & 7);     // slots this lane ends up with

    float prob_acc[3] = {0.0f, 0.0f, 0.0f};
    int load_acc[3] = {0, 0, 0};
    float conf_acc = 0.0f;

    for (int t0 = 2 * (blockIdx.x * kWarps + warp); t0 < kTokens; t0 += 2 * gridDim.x * kWarps) {
        const bool pair = t0 + 1 < kTokens;
        const float4* row_a = x + (size_t)t0 * kVec + lane;
        const float4* row_b = pair ? row_a + kVec : row_a;
        float4 a[kVecPerLane], b[kVecPerLane];
#pragma unroll
        for (int i = 0; i < kVecPerLane; ++i) {
            a[i] = __ldcs(row_a + 32 * i);
            b[i] = __ldcs(row_b + 32 * i);
        }

        float acc_a[kExperts + 1], acc_b[kExperts + 1];
        acc_a[kSumSq] = 0.0f;
        acc_b[kSumSq] = 0.0f;
#pragma unroll
        for (int i = 0; i < kVecPerLane; ++i) {
            acc_a[kSumSq] = dot4(a[i], a[i], acc_a[kSumSq]);
            acc_b[kSumSq] = dot4(b[i], b[i], acc_b[kSumSq]);
        }
#pragma unroll
        for (int e = 0; e < kExperts; ++e) {
            float pa = 0.0f, pb = 0.0f;
#pragma unroll
            for (int i = 0; i < kVecPerLane; ++i) {
                const float4 w = s_gate[e * kVec + lane + 32 * i];
                pa = dot4(a[i], w, pa);
                pb = dot4(b[i], w, pb);
            }
            acc_a[e] = pa;
            acc_b[e] = pb;
        }

        // lanes 0-15 take token a, lanes 16-31 token b; then fold 24 slots to 3 per lane pair
        float v24[kSlots], v12[12], v6[6], logit[3];
#pragma unroll
        for (int j = 0; j < kSlots; ++j) {
            if (j <= kSumSq) {
                float keep = half ? acc_b[j] : acc_a[j];
                float give = half ? acc_a[j] : acc_b[j];
                v24[j] = keep + __shfl_xor_sync(kFull, give, 16);
            } else {
                v24[j] = 0.0f;
            }
        }
        fold(v24, v12, 8, lane);
        fold(v12, v6, 4, lane);
        fold(v6, logit, 2, lane);
#pragma unroll
        for (int j = 0; j < 3; ++j) logit[j] += __shfl_xor_sync(kFull, logit[j], 1);

        // slot 20 is the third slot of lane 12 (and 28)
        const float sum_sq = __shfl_sync(kFull, logit[kSumSq % 3], (lane & 16) | (2 * (kSumSq / 3)));
        const float inv_rms = rsqrtf(sum_sq * (1.0f / kDim) + kEps);

        float v1 = -INFINITY, v2 = -INFINITY;
        int i1 = kSlots, i2 = kSlots;
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            const int e = first_slot + j;
            logit[j] = e < kExperts ? logit[j] * inv_rms : -INFINITY;
            if (logit[j] > v1) {
                v2 = v1;
                i2 = i1;
                v1 = logit[j];
                i1 = e;
            } else if (logit[j] > v2) {
                v2 = logit[j];
                i2 = e;
            }
        }
#pragma unroll
        for (int bit = 2; bit <= 8; bit *= 2) {
            const float o1 = __shfl_xor_sync(kFull, v1, bit);
            const float o2 = __shfl_xor_sync(kFull, v2, bit);
            const int p1 = __shfl_xor_sync(kFull, i1, bit);
            const int p2 = __shfl_xor_sync(kFull, i2, bit);
            if (better(o1, p1, v1, i1)) {
                const bool mine = better(v1, i1, o2, p2);
                v2 = mine ? v1 : o2;
                i2 = mine ? i1 : p2;
                v1 = o1;
                i1 = p1;
            } else if (better(o1, p1, v2, i2)) {
                v2 = o1;
                i2 = p1;
            }
        }

        float prob[3];
        float total = 0.0f;
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            prob[j] = __expf(logit[j] - v1);          // padding gives exactly 0
            total += prob[j];
        }
#pragma unroll
        for (int bit = 2; bit <= 8; bit *= 2) total += __shfl_xor_sync(kFull, total, bit);
        const float w1 = 1.0f / (1.0f + __expf(v2 - v1));
        if (half == 0 || pair) {
            const float inv_total = 1.0f / total;
#pragma unroll
            for (int j = 0; j < 3; ++j) {
                const int e = first_slot + j;
                prob_acc[j] = fmaf(prob[j], inv_total, prob_acc[j]);
                load_acc[j] += (e == i1) + (e == i2);
            }
            conf_acc += w1;
        }

#pragma unroll
        for (int which = 0; which < 2; ++which) {
            const int src = 16 * which;
            const int e1 = __shfl_sync(kFull, i1, src);
            const int e2 = __shfl_sync(kFull, i2, src);
            const float c1 = __shfl_sync(kFull, w1, src);
            const float c2 = 1.0f - c1;
            const float inv = __shfl_sync(kFull, inv_rms, src);
            const float s1 = c1 * inv, s2 = c2 * inv;
            if (which == 1 && !pair) break;
            float4* dst = out + (size_t)(t0 + which) * kVec + lane;
#pragma unroll
            for (int i = 0; i < kVecPerLane; ++i) {
                const float4 xi = which ? b[i] : a[i];
                const float4 m1 = s_scale[e1 * kVec + lane + 32 * i];
                const float4 m2 = s_scale[e2 * kVec + lane + 32 * i];
                const float4 h1 = s_shift[e1 * kVec + lane + 32 * i];
                const float4 h2 = s_shift[e2 * kVec + lane + 32 * i];
                float4 r;
                r.x = fmaf(xi.x, fmaf(s1, m1.x, fmaf(s2, m2.x, 1.0f)), fmaf(c1, h1.x, c2 * h2.x));
                r.y = fmaf(xi.y, fmaf(s1, m1.y, fmaf(s2, m2.y, 1.0f)), fmaf(c1, h1.y, c2 * h2.y));
                r.z = fmaf(xi.z, fmaf(s1, m1.z, fmaf(s2, m2.z, 1.0f)), fmaf(c1, h1.z, c2 * h2.z));
                r.w = fmaf(xi.w, fmaf(s1, m1.w, fmaf(s2, m2.w, 1.0f)), fmaf(c1, h1.w, c2 * h2.w));
                __stcs(dst + 32 * i, r);
            }
        }
    }

    // statistics: registers -> shared -> one atomic per expert and block
    const int part = 2 * warp + half;
    if ((lane & 1) == 0) {
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            s_prob[part * kSlots + first_slot + j] = prob_acc[j];
            s_load[part * kSlots + first_slot + j] = load_acc[j];
        }
    }
    if ((lane & 15) == 0) s_conf[part] = conf_acc;
    __syncthreads();
    if (threadIdx.x < kExperts) {
        float p = 0.0f;
        int l = 0;
        for (int k = 0; k < 2 * kWarps; ++k) {
            p += s_prob[k * kSlots + threadIdx.x];
            l += s_load[k * kSlots + threadIdx.x];
        }
        atomicAdd(&prob_sum[threadIdx.x], p);
        atomicAdd(&load[threadIdx.x], l);
    } else if (threadIdx.x == 32) {
        float c = 0.0f;
        for (int k = 0; k < 2 * kWarps; ++k) c += s_conf[k];
        atomicAdd(confidence, c);
    }
}

struct Random {
    uint32_t state;
    float uniform(float lo, float hi)
    {
        state = state * 1664525u + 1013904223u;
        return lo + (hi - lo) * (float)(state >> 8) * (1.0f / 16777216.0f);
    }
};

static std::vector<float> random_vector(size_t n, float lo, float hi, uint32_t seed)
{
    Random rng{seed};
    std::vector<float> v(n);
    for (auto& f : v) f = rng.uniform(lo, hi);
    return v;
}

static float* to_device(const std::vector<float>& v)
{
    float* d = nullptr;
    CUDA_CHECK(cudaMalloc(&d, v.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice));
    return d;
}

int main()
{
    const size_t n = (size_t)kTokens * kDim;
    std::vector<float> x = random_vector(n, -1.3f, 1.4f, 11u);
    float* d_x = to_device(x);
    float* d_gain = to_device(random_vector(kDim, 0.6f, 1.4f, 12u));
    float* d_gate = to_device(random_vector((size_t)kExperts * kDim, -0.085f, 0.087f, 13u));
    float* d_scale = to_device(random_vector((size_t)kExperts * kDim, -0.5f, 0.7f, 14u));
    float* d_shift = to_device(random_vector((size_t)kExperts * kDim, -0.2f, 0.3f, 15u));

    float *d_out, *d_prob_sum, *d_confidence;
    int* d_load;
    CUDA_CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_prob_sum, kExperts * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_load, kExperts * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&d_confidence, sizeof(float)));
    CUDA_CHECK(cudaMemset(d_prob_sum, 0, kExperts * sizeof(float)));
    CUDA_CHECK(cudaMemset(d_load, 0, kExperts * sizeof(int)));
    CUDA_CHECK(cudaMemset(d_confidence, 0, sizeof(float)));

    int device = 0, sms = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CUDA_CHECK(cudaFuncSetAttribute(route_and_apply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)kSharedBytes));
    route_and_apply<<<sms, kThreads, kSharedBytes>>>(
        reinterpret_cast<const float4*>(d_x), reinterpret_cast<const float4*>(d_gain),
        reinterpret_cast<const float4*>(d_gate), reinterpret_cast<const float4*>(d_scale),
        reinterpret_cast<const float4*>(d_shift), reinterpret_cast<float4*>(d_out), d_prob_sum,
        d_load, d_confidence);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    std::vector<float> out(n), prob_sum(kExperts);
    std::vector<int> load(kExperts);
    float confidence;
    CUDA_CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(prob_sum.data(), d_prob_sum, kExperts * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(load.data(), d_load, kExperts * sizeof(int), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&confidence, d_confidence, sizeof(float), cudaMemcpyDeviceToHost));

    double balance = 0.0, abs_sum = 0.0, square_sum = 0.0;
    int busiest = 0;
    for (int e = 0; e < kExperts; ++e) {
        balance += (double)kExperts * load[e] / (2.0 * kTokens) * prob_sum[e] / kTokens;
        if (load[e] > busiest) busiest = load[e];
    }
    for (float v : out) {
        abs_sum += std::fabs(v);
        square_sum += (double)v * v;
    }
    std::printf("balance loss      %.6g\n", balance);
    std::printf("busiest share     %.6g\n", busiest / (2.0 * kTokens));
    std::printf("mean top weight   %.6g\n", confidence / kTokens);
    std::printf("mean |out|        %.6g\n", abs_sum / n);
    std::printf("mean out^2        %.6g\n", square_sum / n);
    std::printf("out[7][100]       %.6g\n", out[7 * (size_t)kDim + 100]);
    std::printf("out[last][last]   %.6g\n", out[n - 1]);

    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_gain));
    CUDA_CHECK(cudaFree(d_gate));
    CUDA_CHECK(cudaFree(d_scale));
    CUDA_CHECK(cudaFree(d_shift));
    CUDA_CHECK(cudaFree(d_out));
    CUDA_CHECK(cudaFree(d_prob_sum));
    CUDA_CHECK(cudaFree(d_confidence));
    CUDA_CHECK(cudaFree(d_load));
    return 0;
}
