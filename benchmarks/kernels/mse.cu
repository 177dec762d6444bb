// mse: the mean squared error of n predictions; every thread adds its element's share to the result.
//
//   mse [n]      default 16777216, large 67108864
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

__global__ void meanSquaredError(const float *prediction, const float *target, int n, double *result) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double difference = (double)prediction[i] - target[i];
    atomicAdd(result, difference * difference / n);
  }
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1 << 30)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^30\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int n = (int)count;
  const size_t bytes = n * sizeof(float);

  std::vector<float> prediction(n), target(n);
  unsigned state = 4711;
  for (int i = 0; i < n; ++i) { // targets between -2 and 2, predictions up to 0.5 off
    state = state * 1664525u + 1013904223u;
    target[i] = (float)(state >> 8) / 4194304.0f - 2.0f;
    state = state * 1664525u + 1013904223u;
    prediction[i] = target[i] + (float)(state >> 8) / 16777216.0f - 0.5f;
  }

  float *dPrediction, *dTarget;
  double *dResult;
  CUDA_CHECK(cudaMalloc(&dPrediction, bytes));
  CUDA_CHECK(cudaMalloc(&dTarget, bytes));
  CUDA_CHECK(cudaMalloc(&dResult, sizeof(double)));
  CUDA_CHECK(cudaMemcpy(dPrediction, prediction.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dTarget, target.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dResult, 0, sizeof(double)));

  const int threads = 256;
  meanSquaredError<<<(n + threads - 1) / threads, threads>>>(dPrediction, dTarget, n, dResult);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  double got;
  CUDA_CHECK(cudaMemcpy(&got, dResult, sizeof(double), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dPrediction));
  CUDA_CHECK(cudaFree(dTarget));
  CUDA_CHECK(cudaFree(dResult));

  // In extended precision: one sum of 2^26 terms in double precision is 1.4e-11 off by itself.
  long double sum = 0;
  for (int i = 0; i < n; ++i) {
    double difference = (double)prediction[i] - target[i];
    sum += difference * difference;
  }
  // All terms are positive, and the bound is far above the rounding of one long sum on the GPU (1.4e-11 at 2^26, too:
  // it is biased) and far below the share of one element (1 / n).
  double want = (double)(sum / n);
  bool good = fabs(got - want) <= (1e-11 + n * 1e-18) * want; // false for NaN
  if (!good)
    fprintf(stderr, "mse = %.17g, want %.17g\n", got, want);
  printf("%s mse n=%d\n", good ? "PASS" : "FAIL", n);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
