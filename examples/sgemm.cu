// sgemm: C = alpha * A * B + beta * C for row-major matrices (A is m x k, B is k x n), one thread an element of C.
//
//   sgemm [m n k]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status, const char *what, int line) {
  if (status == cudaSuccess)
    return;
  std::fprintf(stderr, "sgemm.cu:%d: %s: %s\n", line, what, cudaGetErrorString(status));
  std::exit(2);
}
#define CUDA(call) check((call), #call, __LINE__)

__global__ void sgemm(int m, int n, int k, float alpha, const float *a, const float *b, float beta, float *c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int p = 0; p < k; ++p)
      sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = alpha * sum + beta * c[row * n + col];
  }
}

static float *toDevice(const std::vector<float> &host) {
  float *device = nullptr;
  CUDA(cudaMalloc((void **)&device, host.size() * sizeof(float)));
  CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

static void fill(std::vector<float> &values, unsigned seed) {
  for (float &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
  }
}

// Compares with a double-precision product; the bound grows with the sum of the absolute terms. NaN is a failure. Of a
// large product about a million terms are looked at, spread over all of it.
static bool verify(int m, int n, int k, float alpha, const std::vector<float> &a, const std::vector<float> &b,
                   float beta, const std::vector<float> &c, const std::vector<float> &result) {
  size_t elements = (size_t)m * n, step = elements * k / 4000000 + 1;
  if (step > 1)
    step |= 1; // not the same columns of every row
  for (size_t at = 0; at < elements; at += step) {
    int i = (int)(at / n), j = (int)(at % n);
    double sum = 0, magnitude = 0;
    for (int p = 0; p < k; ++p) {
      double term = (double)a[(size_t)i * k + p] * b[(size_t)p * n + j];
      sum += term;
      magnitude += std::fabs(term);
    }
    double want = alpha * sum + beta * c[at];
    double bound = 1e-5 * (std::fabs(alpha) * magnitude + std::fabs(beta * c[at])) + 1e-7;
    if (!(std::fabs(result[at] - want) <= bound)) {
      std::fprintf(stderr, "c[%d][%d] = %g, want %g\n", i, j, result[at], want);
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  int m = 2048, n = 2048, k = 1024;
  if (argc == 4) {
    m = std::atoi(argv[1]);
    n = std::atoi(argv[2]);
    k = std::atoi(argv[3]);
  }
  if ((argc != 1 && argc != 4) || m < 1 || n < 1 || k < 1) {
    std::fprintf(stderr, "usage: %s [m n k]   each at least 1\n", argv[0]);
    return 2;
  }
  const float alpha = 1.5f, beta = 0.5f;

  std::vector<float> a((size_t)m * k), b((size_t)k * n), c((size_t)m * n);
  fill(a, 1);
  fill(b, 2);
  fill(c, 3);
  float *da = toDevice(a), *db = toDevice(b), *dc = toDevice(c);

  dim3 block(16, 16);
  dim3 grid((n + block.x - 1) / block.x, (m + block.y - 1) / block.y);
  sgemm<<<grid, block>>>(m, n, k, alpha, da, db, beta, dc);
  CUDA(cudaGetLastError());
  CUDA(cudaDeviceSynchronize());

  std::vector<float> result(c.size());
  CUDA(cudaMemcpy(result.data(), dc, result.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA(cudaFree(da));
  CUDA(cudaFree(db));
  CUDA(cudaFree(dc));

  bool good = verify(m, n, k, alpha, a, b, beta, c, result);
  std::printf("%s sgemm m=%d n=%d k=%d\n", good ? "PASS" : "FAIL", m, n, k);
  return good ? 0 : 1;
}
