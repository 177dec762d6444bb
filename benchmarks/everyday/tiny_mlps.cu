// Inference for many small neural networks ("one tiny MLP per cell of the scene").
// Every network sees its own batch of 2-D sample points; points are expanded with
// sine/cosine features and sent through a stack of dense layers.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
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

__global__ void encodePoints(const float2* points, float* features)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    int net = blockIdx.y;
    if (p >= kPoints) return;
    std::size_t row = (std::size_t)net * kPoints + p;
    float2 xy = points[row];
    float* f = features + row * 4 * kFrequencies;
    for (int k = 0; k < kFrequencies; ++k) {
        float w = kPi * (1 << k);
        f[4 * k + 0] = sinf(w * xy.x);
        f[4 * k + 1] = cosf(w * xy.x);
        f[4 * k + 2] = sinf(w * xy.y);
        f[4 * k + 3] = cosf(w * xy.y);
    }
}

template <class Activation>
__global__ void denseLayer(const float* weights, const float* bias, const float* input,
                           float* output, int nIn, int nOut, Activation act)
{
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    int p = blockIdx.y * blockDim.y + threadIdx.y;
    int net = blockIdx.z;
    if (o >= nOut || p >= kPoints) return;

    const float* w = weights + ((std::size_t)net * nOut + o) * nIn;
    const float* x = input + ((std::size_t)net * kPoints + p) * nIn;
    float sum = bias[net * nOut + o];
    for (int i = 0; i < nIn; ++i) sum += w[i] * x[i];
    output[((std::size_t)net * kPoints + p) * nOut + o] = act(sum);
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
    const std::vector<int> widths = {4 * kFrequencies, 32, 32, 32, 4};

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

    float *dParams, *dA, *dB;
    float2* dPoints;
    const std::size_t rows = (std::size_t)kNets * kPoints;
    CHECK(cudaMalloc(&dParams, total * sizeof(float)));
    CHECK(cudaMalloc(&dPoints, rows * sizeof(float2)));
    CHECK(cudaMalloc(&dA, rows * 32 * sizeof(float)));
    CHECK(cudaMalloc(&dB, rows * 32 * sizeof(float)));
    CHECK(cudaMemcpy(dParams, params.data(), total * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dPoints, points.data(), rows * sizeof(float2), cudaMemcpyHostToDevice));

    encodePoints<<<dim3((kPoints + 127) / 128, kNets), 128>>>(dPoints, dA);

    float *in = dA, *out = dB;
    for (std::size_t l = 0; l < layers.size(); ++l) {
        const LayerShape& s = layers[l];
        const float* w = dParams + s.weightOffset;
        const float* b = dParams + s.biasOffset;
        dim3 block(s.out < 32 ? s.out : 32, 8);
        dim3 grid((s.out + block.x - 1) / block.x, (kPoints + block.y - 1) / block.y, kNets);
        if (l + 1 < layers.size())
            denseLayer<<<grid, block>>>(w, b, in, out, s.in, s.out, LeakyRelu{0.1f});
        else
            denseLayer<<<grid, block>>>(w, b, in, out, s.in, s.out, Sigmoid());
        std::swap(in, out);
    }
    CHECK(cudaGetLastError());

    std::vector<float> rgba(rows * 4);
    CHECK(cudaMemcpy(rgba.data(), in, rgba.size() * sizeof(float), cudaMemcpyDeviceToHost));

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
    CHECK(cudaFree(dA));
    CHECK(cudaFree(dB));
    return 0;
}
