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

constexpr int BLOCK = 256;

// one block per (image, group)
__global__ void groupMean(const half* x, float* mean) {
  __shared__ float buf[BLOCK];
  const half* p = x + blockIdx.x * cfg::GROUP_SIZE;
  float s = 0.f;
  for (int i = threadIdx.x; i < cfg::GROUP_SIZE; i += BLOCK) s += __half2float(p[i]);
  buf[threadIdx.x] = s;
  __syncthreads();
  for (int step = BLOCK / 2; step > 0; step /= 2) {
    if ((int)threadIdx.x < step) buf[threadIdx.x] += buf[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) mean[blockIdx.x] = buf[0] / cfg::GROUP_SIZE;
}

__global__ void groupVar(const half* x, const float* mean, float* var) {
  __shared__ float buf[BLOCK];
  const half* p = x + blockIdx.x * cfg::GROUP_SIZE;
  float m = mean[blockIdx.x];
  float s = 0.f;
  for (int i = threadIdx.x; i < cfg::GROUP_SIZE; i += BLOCK) {
    float d = __half2float(p[i]) - m;
    s += d * d;
  }
  buf[threadIdx.x] = s;
  __syncthreads();
  for (int step = BLOCK / 2; step > 0; step /= 2) {
    if ((int)threadIdx.x < step) buf[threadIdx.x] += buf[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) var[blockIdx.x] = buf[0] / cfg::GROUP_SIZE;
}

__global__ void normalizeSilu(const half* x, const float* mean, const float* var,
                              const float* gamma, const float* beta, half* y, int total) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= total) return;
  int c = (idx / cfg::HW) % cfg::C;
  int n = idx / (cfg::HW * cfg::C);
  int ng = n * cfg::G + c / cfg::CPG;
  float v = (__half2float(x[idx]) - mean[ng]) / sqrtf(var[ng] + cfg::EPS);
  v = v * gamma[c] + beta[c];
  v = v / (1.0f + expf(-v));
  y[idx] = __float2half(v);
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

  groupMean<<<cfg::N * cfg::G, BLOCK>>>(dx, dmean);
  CHECK(cudaGetLastError());
  groupVar<<<cfg::N * cfg::G, BLOCK>>>(dx, dmean, dvar);
  CHECK(cudaGetLastError());
  normalizeSilu<<<(total + BLOCK - 1) / BLOCK, BLOCK>>>(dx, dmean, dvar, dgamma, dbeta, dy, total);
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
