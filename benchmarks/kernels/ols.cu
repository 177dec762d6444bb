// ols: ordinary least squares with n samples of p features by the normal equations: one kernel computes X^T X and X^T
// y, one thread an entry, and one thread of another kernel solves the p x p system by Gaussian elimination.
//
//   ols [n [p]]      default 1048576 8 (p is n where n is less), large 4194304 16
#include <algorithm>
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

// The p x (p + 1) matrix of the normal equations, X^T y in its last column.
__global__ void normalEquations(const float *x, const float *y, double *system, int n, int p) {
  int entry = blockIdx.x * blockDim.x + threadIdx.x;
  if (entry >= p * (p + 1))
    return;
  int row = entry / (p + 1);
  int col = entry % (p + 1);

  double sum = 0.0;
  if (col < p) {
    for (int i = 0; i < n; ++i)
      sum += (double)x[i * p + row] * x[i * p + col];
  } else {
    for (int i = 0; i < n; ++i)
      sum += (double)x[i * p + row] * y[i];
  }
  system[entry] = sum;
}

// Gaussian elimination with partial pivoting, in place.
__global__ void solve(double *system, double *beta, int p) {
  if (blockIdx.x != 0 || threadIdx.x != 0)
    return;
  int width = p + 1;
  for (int k = 0; k < p; ++k) {
    int pivot = k;
    for (int r = k + 1; r < p; ++r)
      if (fabs(system[r * width + k]) > fabs(system[pivot * width + k]))
        pivot = r;
    if (pivot != k) {
      for (int c = k; c < width; ++c) {
        double t = system[k * width + c];
        system[k * width + c] = system[pivot * width + c];
        system[pivot * width + c] = t;
      }
    }
    for (int r = k + 1; r < p; ++r) {
      double factor = system[r * width + k] / system[k * width + k];
      for (int c = k; c < width; ++c)
        system[r * width + c] -= factor * system[k * width + c];
    }
  }
  for (int k = p - 1; k >= 0; --k) {
    double sum = system[k * width + p];
    for (int c = k + 1; c < p; ++c)
      sum -= system[k * width + c] * beta[c];
    beta[k] = sum / system[k * width + k];
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1048576;
  int p = argc > 2 ? atoi(argv[2]) : std::min(n, 8);
  if (argc > 3 || n < 1 || p < 1 || p > n || p > 1000 || (long long)n * p > 2000000000) {
    fprintf(stderr, "usage: %s [n [p]]   with 1 <= p <= n, p <= 1000, n * p <= 2e9\n", argv[0]);
    return EXIT_FAILURE;
  }

  // The first feature is constant, the others are between -1 and 1; y is a linear function of them with noise.
  std::vector<float> x((size_t)n * p), y(n);
  unsigned state = 42;
  for (int i = 0; i < n; ++i) {
    float value = 0.0f;
    for (int j = 0; j < p; ++j) {
      state = state * 1664525u + 1013904223u;
      float feature = j == 0 ? 1.0f : (float)(state >> 8) / 8388608.0f - 1.0f;
      x[(size_t)i * p + j] = feature;
      value += feature * (float)(1 + j % 5) * (j % 2 ? -0.5f : 0.5f);
    }
    state = state * 1664525u + 1013904223u;
    y[i] = value + 0.2f * ((float)(state >> 8) / 16777216.0f - 0.5f);
  }

  float *dx, *dy;
  double *dSystem, *dBeta;
  CUDA_CHECK(cudaMalloc(&dx, x.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dy, y.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dSystem, (size_t)p * (p + 1) * sizeof(double)));
  CUDA_CHECK(cudaMalloc(&dBeta, p * sizeof(double)));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dy, y.data(), y.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dSystem, 0xff, (size_t)p * (p + 1) * sizeof(double))); // NaN, so that a missing entry shows
  CUDA_CHECK(cudaMemset(dBeta, 0xff, p * sizeof(double)));

  const int threads = 64;
  normalEquations<<<(p * (p + 1) + threads - 1) / threads, threads>>>(dx, dy, dSystem, n, p);
  CUDA_CHECK(cudaGetLastError());
  solve<<<1, 1>>>(dSystem, dBeta, p);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<double> beta(p);
  CUDA_CHECK(cudaMemcpy(beta.data(), dBeta, p * sizeof(double), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dy));
  CUDA_CHECK(cudaFree(dSystem));
  CUDA_CHECK(cudaFree(dBeta));

  // The coefficients are right if and only if the residuals are orthogonal to every feature. Relative to the terms'
  // size, rounding in double precision leaves far less than the bound, and leaving out one sample far more.
  std::vector<double> gradient(p, 0.0), magnitude(p, 0.0);
  for (int i = 0; i < n; ++i) {
    const float *row = &x[(size_t)i * p];
    double residual = y[i], size = fabs(y[i]);
    for (int j = 0; j < p; ++j) {
      residual -= row[j] * beta[j];
      size += fabs(row[j] * beta[j]);
    }
    for (int j = 0; j < p; ++j) {
      gradient[j] += row[j] * residual;
      magnitude[j] += fabs(row[j]) * size;
    }
  }
  int wrong = 0;
  for (int j = 0; j < p; ++j) // NaN fails
    if (!(fabs(gradient[j]) <= 1e-11 * magnitude[j]) && wrong++ < 3)
      fprintf(stderr, "beta[%d] = %g: the gradient is %g of %g\n", j, beta[j], gradient[j], magnitude[j]);
  printf("%s ols n=%d p=%d\n", wrong ? "FAIL" : "PASS", n, p);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
