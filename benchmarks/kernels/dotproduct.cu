// dotproduct: the sum of a[i] * b[i] in double precision; every thread adds its product to the result.
//
//   dotproduct [n]      default 16777216, large 67108864
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void dot(const float *a, const float *b, double *result, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double product = (double)a[i] * (double)b[i];
  atomicAdd(result, product);
}

static void fill(std::vector<float> &values, unsigned seed) { // between -1 and 1
  for (float &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1LL << 31)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^31\n", argv[0]);
    return EXIT_FAILURE;
  }
  const unsigned n = (unsigned)count;
  const size_t bytes = (size_t)n * sizeof(float);

  std::vector<float> a(n), b(n);
  fill(a, 1);
  fill(b, 2);

  float *da, *db;
  double *dResult;
  CUDA_CHECK(cudaMalloc(&da, bytes));
  CUDA_CHECK(cudaMalloc(&db, bytes));
  CUDA_CHECK(cudaMalloc(&dResult, sizeof(double)));
  CUDA_CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dResult, 0, sizeof(double)));

  const unsigned threads = 256;
  dot<<<(n + threads - 1) / threads, threads>>>(da, db, dResult, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  double got;
  CUDA_CHECK(cudaMemcpy(&got, dResult, sizeof(double), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(da));
  CUDA_CHECK(cudaFree(db));
  CUDA_CHECK(cudaFree(dResult));

  double want = 0, magnitude = 0;
  for (unsigned i = 0; i < n; ++i) {
    double product = (double)a[i] * b[i];
    want += product;
    magnitude += fabs(product);
  }
  // Far above the rounding of any order of summation (about 1e-16 * sqrt(n) of the magnitude), far below one product.
  bool good = fabs(got - want) <= 1e-12 * magnitude; // false for NaN
  if (!good)
    fprintf(stderr, "dot product = %.17g, want %.17g\n", got, want);
  printf("%s dotproduct n=%u\n", good ? "PASS" : "FAIL", n);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
