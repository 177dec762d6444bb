// Forward pass of a selective state space layer (Mamba style, inference).
//
//   dt    = softplus(delta + bias)
//   h_n   = exp(dt * A_n) * h_n + dt * B_n(t) * u(t)
//   y(t)  = sum_n C_n(t) * h_n + D * u(t)
//   out   = y(t) * silu(z(t))
//
// Tensors as they come from the framework: u, delta, z, out are
// (batch, channel, time); B and C are (batch, state, time); A is
// (channel, state).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

constexpr int kBatch = 4;
constexpr int kChannels = 768;
constexpr int kLength = 2048;
constexpr int kState = 16;

struct ScanParams {
    const float* u;
    const float* delta;
    const float* z;
    const float* A;
    const float* B;
    const float* C;
    const float* D;
    const float* delta_bias;
    float* out;
    int batch, channels, length;
};

__device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

__device__ inline float silu(float x) { return x / (1.0f + expf(-x)); }

// One thread runs the recurrence of one channel.
template <int N>
__global__ void selective_scan_kernel(ScanParams p) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    const int b = blockIdx.y;
    if (d >= p.channels) return;

    const size_t row = (size_t(b) * p.channels + d) * p.length;
    const float* B = p.B + size_t(b) * N * p.length;
    const float* C = p.C + size_t(b) * N * p.length;

    float h[N];
    for (int n = 0; n < N; ++n) h[n] = 0.0f;

    for (int t = 0; t < p.length; ++t) {
        const float u = p.u[row + t];
        const float dt = softplus(p.delta[row + t] + p.delta_bias[d]);
        float y = p.D[d] * u;
        for (int n = 0; n < N; ++n) {
            h[n] = expf(dt * p.A[d * N + n]) * h[n] + dt * B[n * p.length + t] * u;
            y += C[n * p.length + t] * h[n];
        }
        p.out[row + t] = y * silu(p.z[row + t]);
    }
}

void selective_scan(const ScanParams& p) {
    dim3 block(64);
    dim3 grid((p.channels + block.x - 1) / block.x, p.batch);
    selective_scan_kernel<kState><<<grid, block>>>(p);
}

static void check(cudaError_t err, const char* what) {
    if (err != cudaSuccess) {
        std::fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(err));
        std::exit(EXIT_FAILURE);
    }
}

class Random {
public:
    explicit Random(uint32_t seed) : s_(seed) {}
    float uniform(float lo, float hi) {
        s_ = s_ * 1664525u + 1013904223u;
        return lo + (hi - lo) * float(s_ >> 8) * (1.0f / 16777216.0f);
    }

private:
    uint32_t s_;
};

static float* upload(const std::vector<float>& v) {
    float* p = nullptr;
    check(cudaMalloc(&p, v.size() * sizeof(float)), "cudaMalloc");
    check(cudaMemcpy(p, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice), "upload");
    return p;
}

static std::vector<float> random_vector(size_t n, float lo, float hi, uint32_t seed) {
    Random rnd(seed);
    std::vector<float> v(n);
    for (auto& x : v) x = rnd.uniform(lo, hi);
    return v;
}

int main() {
    const size_t big = size_t(kBatch) * kChannels * kLength;
    const size_t bc = size_t(kBatch) * kState * kLength;

    std::vector<float> A = random_vector(size_t(kChannels) * kState, 0.5f, 1.5f, 4);
    for (int d = 0; d < kChannels; ++d)
        for (int n = 0; n < kState; ++n) A[size_t(d) * kState + n] *= -0.5f * float(n + 1);

    ScanParams p{};
    float* u = upload(random_vector(big, -1.0f, 1.0f, 1));
    float* delta = upload(random_vector(big, -3.0f, 0.5f, 2));
    float* z = upload(random_vector(big, -2.0f, 2.0f, 3));
    float* dA = upload(A);
    float* B = upload(random_vector(bc, -1.0f, 1.0f, 5));
    float* C = upload(random_vector(bc, -1.0f, 1.0f, 6));
    float* D = upload(random_vector(kChannels, 0.5f, 1.0f, 7));
    float* bias = upload(random_vector(kChannels, -1.5f, 0.0f, 8));
    float* out = nullptr;
    check(cudaMalloc(&out, big * sizeof(float)), "cudaMalloc");

    p.u = u;
    p.delta = delta;
    p.z = z;
    p.A = dA;
    p.B = B;
    p.C = C;
    p.D = D;
    p.delta_bias = bias;
    p.out = out;
    p.batch = kBatch;
    p.channels = kChannels;
    p.length = kLength;

    selective_scan(p);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "selective_scan");

    std::vector<float> y(big);
    check(cudaMemcpy(y.data(), out, big * sizeof(float), cudaMemcpyDeviceToHost), "download");

    constexpr int kSegments = 8;
    double batch_abs[kBatch] = {}, seg_abs[kSegments] = {}, squares = 0.0, last = 0.0;
    float top = 0.0f;
    for (int b = 0; b < kBatch; ++b) {
        for (int d = 0; d < kChannels; ++d) {
            const float* row = &y[(size_t(b) * kChannels + d) * kLength];
            for (int s = 0; s < kSegments; ++s) {
                double a = 0.0, q = 0.0;
                for (int t = s * (kLength / kSegments); t < (s + 1) * (kLength / kSegments); ++t) {
                    const float v = std::fabs(row[t]);
                    a += v;
                    q += double(v) * v;
                    if (!(v <= top)) top = v;
                }
                seg_abs[s] += a;
                batch_abs[b] += a;
                squares += q;
            }
            last += std::fabs(row[kLength - 1]) * (1 + d % 5);
        }
    }

    for (int b = 0; b < kBatch; ++b) std::printf("batch %d: sum |out| = %.6g\n", b, batch_abs[b]);
    for (int s = 0; s < kSegments; ++s) std::printf("segment %d: sum |out| = %.6g\n", s, seg_abs[s]);
    std::printf("rms = %.5f, max = %.4f, last step = %.5g\n", std::sqrt(squares / double(big)), top, last);
    for (size_t i = 0; i < 6; ++i) {
        const size_t at = (i * 1048583u + 2039u) % big;
        std::printf("out[%zu] + 4 = %.4f\n", at, y[at] + 4.0f);
    }

    for (float* q : {u, delta, z, dA, B, C, D, bias, out}) check(cudaFree(q), "cudaFree");
    return 0;
}
