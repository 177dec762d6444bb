// Softmax of every row of an 8192 x 1024 matrix, one thread a row.
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

template <typename T>
__global__ void row_softmax(const T* __restrict__ logits, T* __restrict__ probs, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const T* in = logits + static_cast<size_t>(row) * cols;
  T* out = probs + static_cast<size_t>(row) * cols;

  T largest = in[0];
  for (int c = 1; c < cols; ++c) {
    if (in[c] > largest) largest = in[c];
  }
  T sum = 0;
  for (int c = 0; c < cols; ++c) {
    const T e = exp(in[c] - largest);
    out[c] = e;
    sum += e;
  }
  for (int c = 0; c < cols; ++c) out[c] /= sum;
}

int main() {
  constexpr int rows = 8192, cols = 1024;
  constexpr size_t count = static_cast<size_t>(rows) * cols;
  std::vector<float> logits(count), probs(count);
  unsigned long long lcg = 42;
  for (auto& v : logits) {
    lcg = lcg * 6364136223846793005ull + 1442695040888963407ull;
    v = static_cast<float>(static_cast<unsigned>(lcg >> 40)) / 16777216.0f * 12.0f - 6.0f;
  }

  float *d_logits = nullptr, *d_probs = nullptr;
  CHECK(cudaMalloc(&d_logits, count * sizeof(float)));
  CHECK(cudaMalloc(&d_probs, count * sizeof(float)));
  CHECK(cudaMemcpy(d_logits, logits.data(), count * sizeof(float), cudaMemcpyHostToDevice));

  const int threads = 128;
  row_softmax<float><<<(rows + threads - 1) / threads, threads>>>(d_logits, d_probs, rows, cols);
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
