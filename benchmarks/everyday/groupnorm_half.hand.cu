// Group normalisation + SiLU on half precision NCHW activations (diffusion U-Net style block).
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                  \
  do {                                                                            \
    cudaError_t status = (x);                                                     \
    if (status != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

namespace cfg {
constexpr int N = 32;
constexpr int C = 256;
constexpr int H = 56;
constexpr int W = 56;
constexpr int G = 32;
constexpr int HW = H * W;
constexpr int CPG = C / G;              // channels per group
constexpr int GROUP_SIZE = CPG * HW;    // elements per group
constexpr float EPS = 1e-5f;
}  // namespace cfg

constexpr int BLOCK = 512;
constexpr int WARPS = BLOCK / 32;
constexpr int VEC = 8;                                    // halves per 16 byte access
constexpr int GROUP_VECS = cfg::GROUP_SIZE / VEC;
constexpr int CHANNEL_VECS = cfg::HW / VEC;
constexpr int PER_THREAD = (GROUP_VECS + BLOCK - 1) / BLOCK;
static_assert(cfg::HW % VEC == 0, "a 16 byte vector must stay inside one channel");

union Vec8 {
  uint4 raw;
  __half2 h[4];
  __device__ Vec8() : raw(make_uint4(0u, 0u, 0u, 0u)) {}
};

__device__ __forceinline__ float blockSum(float v, float* scratch) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
  __syncthreads();
  float s = 0.f;
  #pragma unroll
  for (int w = 0; w < WARPS; ++w) s += scratch[w];
  return s;
}

// One block per (image, group).  The whole group lives in registers between the
// mean, the variance and the output pass: one read, one write of global memory.
__global__ void __launch_bounds__(BLOCK)
groupNormSilu(const half* __restrict__ x, const float* __restrict__ gamma,
              const float* __restrict__ beta, half* __restrict__ y,
              float* __restrict__ mean, float* __restrict__ var) {
  __shared__ float red[2][WARPS];
  const uint4* p = reinterpret_cast<const uint4*>(x + (size_t)blockIdx.x * cfg::GROUP_SIZE);
  uint4* q = reinterpret_cast<uint4*>(y + (size_t)blockIdx.x * cfg::GROUP_SIZE);

  Vec8 d[PER_THREAD];
  float s = 0.f;
  #pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int i = threadIdx.x + k * BLOCK;
    if (i < GROUP_VECS) d[k].raw = p[i];
  }
  #pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {                  // missing vectors are zero
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float2 f = __half22float2(d[k].h[e]);
      s += f.x + f.y;
    }
  }
  const float m = blockSum(s, red[0]) / cfg::GROUP_SIZE;

  s = 0.f;
  #pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    if ((int)threadIdx.x + k * BLOCK < GROUP_VECS) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 f = __half22float2(d[k].h[e]);
        s += (f.x - m) * (f.x - m) + (f.y - m) * (f.y - m);
      }
    }
  }
  const float v = blockSum(s, red[1]) / cfg::GROUP_SIZE;
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = m;
    var[blockIdx.x] = v;
  }

  const float inv = 1.0f / sqrtf(v + cfg::EPS);
  const int c0 = (blockIdx.x % cfg::G) * cfg::CPG;
  #pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int i = threadIdx.x + k * BLOCK;
    if (i < GROUP_VECS) {
      const int c = c0 + i / CHANNEL_VECS;
      const float a = inv * gamma[c];
      const float b = beta[c] - m * a;
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        float2 f = __half22float2(d[k].h[e]);
        f.x = f.x * a + b;
        f.y = f.y * a + b;
        f.x = __fdividef(f.x, 1.0f + __expf(-f.x));
        f.y = __fdividef(f.y, 1.0f + __expf(-f.y));
        d[k].h[e] = __float22half2_rn(f);
      }
      q[i] = d[k].raw;
    }
  }
}

int main() {
  constexpr int total = cfg::N * cfg::C * cfg::HW;

  // inputs come from a table of 1024 half values
  std::vector<half> table(1024);
  for (int i = 0; i < 1024; ++i) table[i] = __float2half((i - 400) * 0.004f);
  std::vector<half> x(total), y(total);
  uint32_t lcg = 99u;
  for (int i = 0; i < total; ++i) {
    lcg = lcg * 22695477u + 1u;
    x[i] = table[(lcg >> 22) * ((i / cfg::HW) % 4 + 1) / 4];
  }
  std::vector<float> gamma(cfg::C), beta(cfg::C);
  for (int c = 0; c < cfg::C; ++c) {
    gamma[c] = 0.5f + 0.01f * (c % 100);
    beta[c] = 0.02f * (c % 31) - 0.2f;
  }

  half *dx, *dy;
  float *dmean, *dvar, *dgamma, *dbeta;
  CHECK(cudaMalloc(&dx, total * sizeof(half)));
  CHECK(cudaMalloc(&dy, total * sizeof(half)));
  CHECK(cudaMalloc(&dmean, cfg::N * cfg::G * sizeof(float)));
  CHECK(cudaMalloc(&dvar, cfg::N * cfg::G * sizeof(float)));
  CHECK(cudaMalloc(&dgamma, cfg::C * sizeof(float)));
  CHECK(cudaMalloc(&dbeta, cfg::C * sizeof(float)));
  CHECK(cudaMemcpy(dx, x.data(), total * sizeof(half), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dgamma, gamma.data(), cfg::C * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dbeta, beta.data(), cfg::C * sizeof(float), cudaMemcpyHostToDevice));

  groupNormSilu<<<cfg::N * cfg::G, BLOCK>>>(dx, dgamma, dbeta, dy, dmean, dvar);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());

  std::vector<float> mean(cfg::N * cfg::G), var(cfg::N * cfg::G);
  CHECK(cudaMemcpy(y.data(), dy, total * sizeof(half), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(mean.data(), dmean, mean.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(var.data(), dvar, var.size() * sizeof(float), cudaMemcpyDeviceToHost));

  double sum = 0, weighted = 0, means = 0, vars = 0;
  float hi = -1e30f;
  for (int i = 0; i < total; ++i) {
    float v = __half2float(y[i]);
    sum += v;
    weighted += v * (i % 13) * ((i / cfg::HW) % 3);
    if (v > hi) hi = v;
  }
  for (size_t i = 0; i < mean.size(); ++i) {
    means += mean[i] * (1 + i % 4);
    vars += var[i] * (1 + i % 5);
  }
  std::printf("sum %.3e\nweighted %.3e\nmax %.2f\nmeans %.3e\nvars %.3e\n", sum, weighted, hi, means, vars);

  CHECK(cudaFree(dx));
  CHECK(cudaFree(dy));
  CHECK(cudaFree(dmean));
  CHECK(cudaFree(dvar));
  CHECK(cudaFree(dgamma));
  CHECK(cudaFree(dbeta));
  return 0;
}
