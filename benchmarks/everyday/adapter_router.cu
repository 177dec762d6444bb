// Routing layer of a mixture-of-adapters transformer block.
// Every token is RMS-normalised, scored against all experts, sent to its two
// best experts, and each expert applies a learned element-wise scale and shift
// (IA3-style adapter).  The result is added to the residual stream.  The usual
// load-balancing statistics are gathered on the way.
//
// Estimated kernel time on an H200: about 3 ms for all launches together.
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

struct RouterShape {
    int tokens;
    int dim;
    int experts;
    float eps;
};

struct Route {
    int first, second;
    float w_first, w_second;
};

// one block per token
__global__ void rms_norm(const float* x, const float* gain, float* h, RouterShape s)
{
    __shared__ float partial[256];
    const float* row = x + (size_t)blockIdx.x * s.dim;
    float* out = h + (size_t)blockIdx.x * s.dim;

    float sum = 0.0f;
    for (int d = threadIdx.x; d < s.dim; d += blockDim.x) sum += row[d] * row[d];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    float inv_rms = 1.0f / sqrtf(partial[0] / s.dim + s.eps);
    for (int d = threadIdx.x; d < s.dim; d += blockDim.x) out[d] = row[d] * inv_rms * gain[d];
}

// logits[t][e] = <h[t], w_gate[e]>, weights stored as in nn.Linear: [experts][dim]
__global__ void gate_logits(const float* h, const float* w_gate, float* logits, RouterShape s)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    int t = blockIdx.y * blockDim.y + threadIdx.y;
    if (e >= s.experts || t >= s.tokens) return;
    const float* row = h + (size_t)t * s.dim;
    const float* w = w_gate + (size_t)e * s.dim;
    float acc = 0.0f;
    for (int d = 0; d < s.dim; ++d) acc += row[d] * w[d];
    logits[(size_t)t * s.experts + e] = acc;
}

// softmax over the experts in place, then pick the best two
__global__ void softmax_top2(float* logits, Route* routes, RouterShape s)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= s.tokens) return;
    float* p = logits + (size_t)t * s.experts;

    float biggest = p[0];
    for (int e = 1; e < s.experts; ++e) biggest = fmaxf(biggest, p[e]);
    float total = 0.0f;
    for (int e = 0; e < s.experts; ++e) {
        p[e] = expf(p[e] - biggest);
        total += p[e];
    }
    for (int e = 0; e < s.experts; ++e) p[e] /= total;

    int first = 0;
    for (int e = 1; e < s.experts; ++e)
        if (p[e] > p[first]) first = e;
    int second = first == 0 ? 1 : 0;
    for (int e = 0; e < s.experts; ++e)
        if (e != first && p[e] > p[second]) second = e;

    float norm = p[first] + p[second];
    routes[t] = Route{first, second, p[first] / norm, p[second] / norm};
}

__global__ void balance_stats(const float* probs, const Route* routes, float* prob_sum,
                              int* load, float* confidence, RouterShape s)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= s.tokens) return;
    for (int e = 0; e < s.experts; ++e) atomicAdd(&prob_sum[e], probs[(size_t)t * s.experts + e]);
    Route r = routes[t];
    atomicAdd(&load[r.first], 1);
    atomicAdd(&load[r.second], 1);
    atomicAdd(confidence, r.w_first);
}

__device__ float adapter(float h, const float* scale, const float* shift, int expert, int d, int dim)
{
    return h * scale[expert * dim + d] + shift[expert * dim + d];
}

__global__ void apply_adapters(const float* x, const float* h, const Route* routes,
                               const float* scale, const float* shift, float* out, RouterShape s)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (size_t)s.tokens * s.dim) return;
    int t = i / s.dim;
    int d = i % s.dim;
    Route r = routes[t];
    float mixed = r.w_first * adapter(h[i], scale, shift, r.first, d, s.dim) +
                  r.w_second * adapter(h[i], scale, shift, r.second, d, s.dim);
    out[i] = x[i] + mixed;
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

    float *d_h, *d_logits, *d_out, *d_prob_sum, *d_confidence;
    int* d_load;
    Route* d_routes;
    CUDA_CHECK(cudaMalloc(&d_h, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_logits, (size_t)kTokens * kExperts * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_routes, kTokens * sizeof(Route)));
    CUDA_CHECK(cudaMalloc(&d_prob_sum, kExperts * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_load, kExperts * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&d_confidence, sizeof(float)));
    CUDA_CHECK(cudaMemset(d_prob_sum, 0, kExperts * sizeof(float)));
    CUDA_CHECK(cudaMemset(d_load, 0, kExperts * sizeof(int)));
    CUDA_CHECK(cudaMemset(d_confidence, 0, sizeof(float)));

    RouterShape shape{kTokens, kDim, kExperts, kEps};
    rms_norm<<<kTokens, 256>>>(d_x, d_gain, d_h, shape);
    dim3 gate_block(32, 8);
    dim3 gate_grid((kExperts + 31) / 32, (kTokens + 7) / 8);
    gate_logits<<<gate_grid, gate_block>>>(d_h, d_gate, d_logits, shape);
    softmax_top2<<<(kTokens + 127) / 128, 128>>>(d_logits, d_routes, shape);
    balance_stats<<<(kTokens + 127) / 128, 128>>>(d_logits, d_routes, d_prob_sum, d_load,
                                                  d_confidence, shape);
    apply_adapters<<<(unsigned)((n + 255) / 256), 256>>>(d_x, d_h, d_routes, d_scale, d_shift,
                                                         d_out, shape);
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
    CUDA_CHECK(cudaFree(d_h));
    CUDA_CHECK(cudaFree(d_logits));
    CUDA_CHECK(cudaFree(d_out));
    CUDA_CHECK(cudaFree(d_prob_sum));
    CUDA_CHECK(cudaFree(d_confidence));
    CUDA_CHECK(cudaFree(d_load));
    CUDA_CHECK(cudaFree(d_routes));
    return 0;
}
