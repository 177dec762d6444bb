// Softmax of every row of an 8192 x 1024 matrix. By hand: a warp a row, the row is read once into
// registers as float4, maximum and sum are shuffle reductions, and the result is written once.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                              \
  do {                                                                           \
    cudaError_t e_ = (call);                                                     \
    if (e_ != cudaSuccess) {                                                     \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

template <int COLS, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
row_softmax(const float4* __restrict__ logits, float4* __restrict__ probs) {
  constexpr int VECS = COLS / 128;
  constexpr float LOG2E = 1.4426950408889634f;
  const int lane = threadIdx.x & 31;
  const size_t row = static_cast<size_t>(blockIdx.x) * WARPS + (threadIdx.x >> 5);
  const float4* in = logits + row * (COLS / 4) + lane;
  float4* out = probs + row * (COLS / 4) + lane;

  float4 v[VECS];
#pragma unroll
  for (int i = 0; i < VECS; ++i) v[i] = __ldcs(in + 32 * i);

  float largest = v[0].x;
#pragma unroll
  for (int i = 0; i < VECS; ++i)
    largest = fmaxf(largest, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));

  const float shift = largest * LOG2E;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < VECS; ++i) {
    v[i].x = exp2f(fmaf(v[i].x, LOG2E, -shift));
    v[i].y = exp2f(fmaf(v[i].y, LOG2E, -shift));
    v[i].z = exp2f(fmaf(v[i].z, LOG2E, -shift));
    v[i].w = exp2f(fmaf(v[i].w, LOG2E, -shift));
    sum += (v[i].x + v[i].y) + (v[i].z + v[i].w);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);

  const float scale = 1.0f / sum;
#pragma unroll
  for (int i = 0; i < VECS; ++i)
    out[32 * i] = make_float4(v[i].x * scale, v[i].y * scale, v[i].z * scale, v[i].w * scale);
}

int main() {
  constexpr int rows = 8192, cols = 1024, warps = 4;
  constexpr size_t count = static_cast<size_t>(rows) * cols;
  std::vector<float> logits(count), probs(count);
  unsigned long long lcg = 42;
  for (auto& v : logits) {
    lcg = lcg * 6364136223846793005ull + 1442695040888963407ull;
    v = static_cast<float>(static_cast<unsigned>(lcg >> 40)) / 16777216.0f * 12.0f - 6.0f;
  }

  float4 *d_logits = nullptr, *d_probs = nullptr;
  CHECK(cudaMalloc(&d_logits, count * sizeof(float)));
  CHECK(cudaMalloc(&d_probs, count * sizeof(float)));
  CHECK(cudaMemcpy(d_logits, logits.data(), count * sizeof(float), cudaMemcpyHostToDevice));

  row_softmax<cols, warps><<<rows / warps, warps * 32>>>(d_logits, d_probs);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(probs.data(), d_probs, count * sizeof(float), cudaMemcpyDeviceToHost));

  double sum = 0, weighted = 0, entropy = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += probs[i];
    weighted += static_cast<double>(probs[i]) * (i % cols);
    entropy += static_cast<double>(probs[i]) * probs[i];
  }
  std::printf("softmax sum=%.6e weighted=%.6e squares=%.6e\n", sum, weighted, entropy);
  CHECK(cudaFree(d_logits));
  CHECK(cudaFree(d_probs));
  return 0;
}
