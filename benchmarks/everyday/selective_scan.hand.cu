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

// One warp per channel; the time axis is processed in chunks of 256 steps with
// 8 consecutive steps per lane.  For each state the linear recurrence is run
// lane-locally, combined by a warp scan over (decay, value) pairs, and replayed
// from the right starting value; the state at the chunk's end is carried on
// (lane n keeps state n).  The decay of a lane's 8 steps is exp(A * sum dt).
constexpr unsigned kFull = 0xffffffffu;
constexpr int kSteps = 8;                 // per lane
constexpr int kChunk = 32 * kSteps;       // per warp
constexpr int kWarps = 4;                 // channels per block

static_assert(kLength % kChunk == 0, "whole chunks only");
static_assert(kChannels % kWarps == 0, "whole blocks only");
static_assert(kState <= 32, "one lane keeps one carried state");

__device__ __forceinline__ float ex2(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ void load8(float (&v)[kSteps], const float* __restrict__ p) {
    const float4 a = __ldg(reinterpret_cast<const float4*>(p));
    const float4 b = __ldg(reinterpret_cast<const float4*>(p) + 1);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

__device__ __forceinline__ void load8_once(float (&v)[kSteps], const float* __restrict__ p) {
    const float4 a = __ldcs(reinterpret_cast<const float4*>(p));
    const float4 b = __ldcs(reinterpret_cast<const float4*>(p) + 1);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

__global__ void __launch_bounds__(kWarps * 32) selective_scan_kernel(ScanParams p) {
    constexpr float kLog2e = 1.4426950408889634f;
    const int lane = threadIdx.x & 31;
    const int d = blockIdx.x * kWarps + (threadIdx.x >> 5);
    const int b = blockIdx.y;

    const size_t row = (size_t(b) * kChannels + d) * kLength;
    const float* __restrict__ B = p.B + size_t(b) * kState * kLength;
    const float* __restrict__ C = p.C + size_t(b) * kState * kLength;
    const float bias = __ldg(p.delta_bias + d);
    const float skip = __ldg(p.D + d);
    const float my_a = lane < kState ? __ldg(p.A + d * kState + lane) * kLog2e : 0.0f;

    float carry = 0.0f;                   // lane n: state n at the chunk's start

    for (int t0 = lane * kSteps; t0 < kLength; t0 += kChunk) {
        float dt[kSteps], du[kSteps], y[kSteps], z[kSteps];
        load8_once(du, p.u + row + t0);
        load8_once(dt, p.delta + row + t0);
        load8_once(z, p.z + row + t0);
        float dt_sum = 0.0f;
#pragma unroll
        for (int j = 0; j < kSteps; ++j) {
            const float x = dt[j] + bias;
            dt[j] = x > 20.0f ? x : log1pf(ex2(x * kLog2e));
            dt_sum += dt[j];
            y[j] = skip * du[j];
            du[j] *= dt[j];
        }

#pragma unroll 2
        for (int n = 0; n < kState; ++n) {
            float x[kSteps], c[kSteps], a[kSteps];
            load8(x, B + n * kLength + t0);
            load8(c, C + n * kLength + t0);
            const float an = __shfl_sync(kFull, my_a, n);
            const float start = __shfl_sync(kFull, carry, n);

#pragma unroll
            for (int j = 0; j < kSteps; ++j) {
                a[j] = ex2(dt[j] * an);
                x[j] *= du[j];
            }
            float h = x[0];
#pragma unroll
            for (int j = 1; j < kSteps; ++j) h = fmaf(a[j], h, x[j]);
            float decay = ex2(dt_sum * an);

            // inclusive scan of h' = decay * h + value over the lanes
#pragma unroll
            for (int o = 1; o < 32; o <<= 1) {
                const float ph = __shfl_up_sync(kFull, h, o);
                const float pd = __shfl_up_sync(kFull, decay, o);
                if (lane >= o) {
                    h = fmaf(decay, ph, h);
                    decay *= pd;
                }
            }
            const float end = fmaf(decay, start, h);   // state after this lane's steps
            float s = __shfl_up_sync(kFull, end, 1);
            if (lane == 0) s = start;
            const float fin = __shfl_sync(kFull, end, 31);
            if (lane == n) carry = fin;

#pragma unroll
            for (int j = 0; j < kSteps; ++j) {
                s = fmaf(a[j], s, x[j]);
                y[j] = fmaf(c[j], s, y[j]);
            }
        }

#pragma unroll
        for (int j = 0; j < kSteps; ++j)
            y[j] *= __fdividef(z[j], 1.0f + ex2(-kLog2e * z[j]));
        float4* o = reinterpret_cast<float4*>(p.out + row + t0);
        __stcs(o, make_float4(y[0], y[1], y[2], y[3]));
        __stcs(o + 1, make_float4(y[4], y[5], y[6], y[7]));
    }
}

void selective_scan(const ScanParams& p) {
    selective_scan_kernel<<<dim3(kChannels / kWarps, p.batch), kWarps * 32>>>(p);
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
