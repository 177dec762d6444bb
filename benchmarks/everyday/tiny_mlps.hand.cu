// Inference for many small neural networks ("one tiny MLP per cell of the scene").
// Tuned version: one block per network, parameters in shared memory, all layers
// fused with the activations in registers, two points per thread.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(expr)                                                            \
    do {                                                                       \
        const cudaError_t status = (expr);                                     \
        if (status != cudaSuccess) {                                           \
            std::fprintf(stderr, "%s: %s\n", #expr, cudaGetErrorString(status)); \
            std::exit(1);                                                      \
        }                                                                      \
    } while (0)

constexpr int kNets = 384;
constexpr int kPoints = 384;        // per network
constexpr int kFrequencies = 2;     // -> 2 coordinates * 2 frequencies * (sin, cos) = 8 features
constexpr float kPi = 3.14159265f;

struct LeakyRelu {
    float slope;
    __device__ float operator()(float v) const { return v > 0.0f ? v : slope * v; }
};

struct Sigmoid {
    __device__ float operator()(float v) const { return 1.0f / (1.0f + expf(-v)); }
};

// Fully connected layer; weights are stored [net][out][in] as exported from PyTorch.
struct LayerShape {
    int in, out;
    std::size_t weightOffset, biasOffset;   // into the shared parameter buffer
};

constexpr int kFeatures = 4 * kFrequencies;
constexpr int kHidden = 32;
constexpr int kOut = 4;
constexpr int kThreads = 192;       // two points per thread
static_assert(2 * kThreads == kPoints, "a block covers the batch of one network");

struct DevLayer { const float *weights, *bias; };

// y = act(W x + b) for two points at once. W is in shared memory and read as
// broadcast float4, the activations of both points live in registers.
template <int IN, int OUT, class Activation>
__device__ __forceinline__ void dense(const float* w, const float* b, const float (&x0)[IN],
                                      const float (&x1)[IN], float (&y0)[OUT], float (&y1)[OUT],
                                      Activation act)
{
#pragma unroll
    for (int o = 0; o < OUT; ++o) {
        float s0 = b[o], s1 = b[o];
#pragma unroll
        for (int i = 0; i < IN; i += 4) {
            const float4 v = *reinterpret_cast<const float4*>(w + o * IN + i);
            s0 = fmaf(v.x, x0[i], s0);
            s1 = fmaf(v.x, x1[i], s1);
            s0 = fmaf(v.y, x0[i + 1], s0);
            s1 = fmaf(v.y, x1[i + 1], s1);
            s0 = fmaf(v.z, x0[i + 2], s0);
            s1 = fmaf(v.z, x1[i + 2], s1);
            s0 = fmaf(v.w, x0[i + 3], s0);
            s1 = fmaf(v.w, x1[i + 3], s1);
        }
        y0[o] = act(s0);
        y1[o] = act(s1);
    }
}

__device__ __forceinline__ void encode(float2 xy, float (&f)[kFeatures])
{
#pragma unroll
    for (int k = 0; k < kFrequencies; ++k) {
        const float w = kPi * (1 << k);
        sincosf(w * xy.x, &f[4 * k + 0], &f[4 * k + 1]);
        sincosf(w * xy.y, &f[4 * k + 2], &f[4 * k + 3]);
    }
}

template <int N>
__device__ __forceinline__ void stage(float* dst, const float* __restrict__ src)
{
    static_assert(N % 4 == 0, "float4 copies");
    for (int i = threadIdx.x; i < N / 4; i += kThreads)
        reinterpret_cast<float4*>(dst)[i] = reinterpret_cast<const float4*>(src)[i];
}

// One block evaluates one complete network for its whole batch.
__global__ void __launch_bounds__(kThreads)
evaluateNetworks(DevLayer l0, DevLayer l1, DevLayer l2, DevLayer l3,
                 const float2* __restrict__ points, float4* __restrict__ output)
{
    __shared__ __align__(16) float w0[kHidden * kFeatures], w1[kHidden * kHidden];
    __shared__ __align__(16) float w2[kHidden * kHidden], w3[kOut * kHidden];
    __shared__ __align__(16) float b0[kHidden], b1[kHidden], b2[kHidden], b3[kOut];
    const std::size_t net = blockIdx.x;
    stage<kHidden * kFeatures>(w0, l0.weights + net * kHidden * kFeatures);
    stage<kHidden * kHidden>(w1, l1.weights + net * kHidden * kHidden);
    stage<kHidden * kHidden>(w2, l2.weights + net * kHidden * kHidden);
    stage<kOut * kHidden>(w3, l3.weights + net * kOut * kHidden);
    stage<kHidden>(b0, l0.bias + net * kHidden);
    stage<kHidden>(b1, l1.bias + net * kHidden);
    stage<kHidden>(b2, l2.bias + net * kHidden);
    stage<kOut>(b3, l3.bias + net * kOut);
    __syncthreads();

    const std::size_t p0 = net * kPoints + threadIdx.x, p1 = p0 + kThreads;
    float f0[kFeatures], f1[kFeatures];
    encode(points[p0], f0);
    encode(points[p1], f1);

    const LeakyRelu relu{0.1f};
    float a0[kHidden], a1[kHidden], c0[kHidden], c1[kHidden], r0[kOut], r1[kOut];
    dense(w0, b0, f0, f1, a0, a1, relu);
    dense(w1, b1, a0, a1, c0, c1, relu);
    dense(w2, b2, c0, c1, a0, a1, relu);
    dense(w3, b3, a0, a1, r0, r1, Sigmoid());
    output[p0] = make_float4(r0[0], r0[1], r0[2], r0[3]);
    output[p1] = make_float4(r1[0], r1[1], r1[2], r1[3]);
}

class Random {
public:
    explicit Random(unsigned seed) : state_(seed) {}
    float uniform(float lo, float hi)
    {
        state_ = state_ * 1664525u + 1013904223u;
        return lo + (hi - lo) * (state_ >> 8) * (1.0f / 16777216.0f);
    }

private:
    unsigned state_;
};

int main()
{
    const std::vector<int> widths = {kFeatures, kHidden, kHidden, kHidden, kOut};

    // Lay out the parameters of all layers in one buffer
    std::vector<LayerShape> layers;
    std::size_t total = 0;
    for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
        LayerShape s{widths[l], widths[l + 1], total, 0};
        s.biasOffset = total + (std::size_t)kNets * s.in * s.out;
        total = s.biasOffset + (std::size_t)kNets * s.out;
        layers.push_back(s);
    }
    Random rng(2024u);
    std::vector<float> params(total);
    for (const LayerShape& s : layers) {
        float bound = std::sqrt(3.0f / s.in);
        for (std::size_t i = s.weightOffset; i < s.biasOffset; ++i) params[i] = rng.uniform(-bound, bound);
        for (int i = 0; i < kNets * s.out; ++i) params[s.biasOffset + i] = rng.uniform(-0.1f, 0.1f);
    }
    std::vector<float2> points(kNets * kPoints);
    for (float2& p : points) {
        p.x = rng.uniform(-1.0f, 1.0f);
        p.y = rng.uniform(-1.0f, 1.0f);
    }

    float* dParams;
    float2* dPoints;
    float4* dOut;
    const std::size_t rows = (std::size_t)kNets * kPoints;
    CHECK(cudaMalloc(&dParams, total * sizeof(float)));
    CHECK(cudaMalloc(&dPoints, rows * sizeof(float2)));
    CHECK(cudaMalloc(&dOut, rows * sizeof(float4)));
    CHECK(cudaMemcpy(dParams, params.data(), total * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dPoints, points.data(), rows * sizeof(float2), cudaMemcpyHostToDevice));

    DevLayer dl[4];
    for (int l = 0; l < 4; ++l) dl[l] = {dParams + layers[l].weightOffset, dParams + layers[l].biasOffset};
    evaluateNetworks<<<kNets, kThreads>>>(dl[0], dl[1], dl[2], dl[3], dPoints, dOut);
    CHECK(cudaGetLastError());

    std::vector<float> rgba(rows * 4);
    CHECK(cudaMemcpy(rgba.data(), dOut, rgba.size() * sizeof(float), cudaMemcpyDeviceToHost));

    double sum[4] = {}, square = 0.0;
    float lo = 1.0f, hi = 0.0f;
    for (std::size_t i = 0; i < rgba.size(); ++i) {
        sum[i % 4] += rgba[i];
        square += (double)rgba[i] * rgba[i];
        lo = std::fmin(lo, rgba[i]);
        hi = std::fmax(hi, rgba[i]);
    }
    for (int c = 0; c < 4; ++c) std::printf("channel %d sum %.6g\n", c, sum[c]);
    std::printf("rms %.5g\n", std::sqrt(square / rgba.size()));
    std::printf("range %.4g %.4g\n", lo, hi);
    std::printf("net 0 point 0:    %.4g %.4g %.4g %.4g\n", rgba[0], rgba[1], rgba[2], rgba[3]);
    const float* last = &rgba[(rows - 1) * 4];
    std::printf("net %d point %d: %.4g %.4g %.4g %.4g\n", kNets - 1, kPoints - 1, last[0], last[1], last[2], last[3]);

    CHECK(cudaFree(dParams));
    CHECK(cudaFree(dPoints));
    CHECK(cudaFree(dOut));
    return 0;
}
