// layernorm: normalizes every row of a matrix to mean 0 and variance 1, then scales and shifts each column by gamma and
// beta; one thread a row.
//
//   layernorm [rows cols]      default 4096 1024, large 8192 8192
#include <algorithm>
#include <cfloat>
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

__global__ void layernorm(const float *x, const float *gamma, const float *beta, float *out, int rows, int cols,
                          float epsilon) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  const float *in = x + (size_t)row * cols;
  float *result = out + (size_t)row * cols;

  float mean = 0.0f;
  for (int j = 0; j < cols; ++j)
    mean += in[j];
  mean /= cols;

  float variance = 0.0f;
  for (int j = 0; j < cols; ++j) {
    float d = in[j] - mean;
    variance += d * d;
  }
  variance /= cols;

  float scale = 1.0f / sqrtf(variance + epsilon);
  for (int j = 0; j < cols; ++j)
    result[j] = (in[j] - mean) * scale * gamma[j] + beta[j];
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static float uniform(unsigned counter) { return (float)(hash(counter) >> 8) / 16777216.0f; }

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 4096;
  int cols = argc > 2 ? atoi(argv[2]) : 1024;
  if (argc > 3 || rows < 1 || rows > 10000000 || cols < 1 || cols > 10000000) {
    fprintf(stderr, "usage: %s [rows cols]   each from 1 to 10000000\n", argv[0]);
    return EXIT_FAILURE;
  }
  const float epsilon = 1e-5f;
  const size_t count = (size_t)rows * cols;

  std::vector<float> x(count), gamma(cols), beta(cols), out(count);
  for (int i = 0; i < rows; ++i) // each row has a mean and a width of its own
    for (int j = 0; j < cols; ++j)
      x[(size_t)i * cols + j] = (1 + i % 3) * (2.0f * uniform((unsigned)i * cols + j) - 1.0f) + 0.25f * (i % 5 - 2);
  for (int j = 0; j < cols; ++j) {
    gamma[j] = 0.5f + uniform(0x90000000u + j);
    beta[j] = 2.0f * uniform(0xa0000000u + j) - 1.0f;
  }

  float *dx, *dGamma, *dBeta, *dOut;
  CUDA_CHECK(cudaMalloc(&dx, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dGamma, cols * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dBeta, cols * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dOut, count * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dGamma, gamma.data(), cols * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dBeta, beta.data(), cols * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOut, 0xff, count * sizeof(float))); // NaN, so that an element that is not written shows

  const int threads = 128;
  layernorm<<<(rows + threads - 1) / threads, threads>>>(dx, dGamma, dBeta, dOut, rows, cols, epsilon);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dOut, count * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dGamma));
  CUDA_CHECK(cudaFree(dBeta));
  CUDA_CHECK(cudaFree(dOut));

  // All rows, or of a large matrix the first, the last and others anywhere, 5e7 elements together.
  const int budget = (int)std::max<size_t>(100, 50000000 / cols);
  const int checked = std::min(rows, budget);
  int wrong = 0;
  for (int s = 0; s < checked; ++s) {
    int row = checked == rows ? s : s == 0 ? 0 : s == 1 ? rows - 1 : (int)(hash(s) % rows);
    const float *in = &x[(size_t)row * cols], *got = &out[(size_t)row * cols];
    double mean = 0, magnitude = 0, variance = 0;
    for (int j = 0; j < cols; ++j) {
      mean += in[j];
      magnitude += fabs(in[j]);
    }
    mean /= cols;
    magnitude /= cols;
    for (int j = 0; j < cols; ++j)
      variance += (in[j] - mean) * (in[j] - mean);
    double scale = 1.0 / sqrt(variance / cols + epsilon);
    // The mean is off by some roundings of the sum, which the scale magnifies; they also change the variance a little.
    double relative = 2e-6 + (2 + sqrt((double)cols)) * FLT_EPSILON * magnitude * scale;
    for (int j = 0; j < cols; ++j) {
      double normal = (in[j] - mean) * scale, want = normal * gamma[j] + beta[j];
      double bound = relative * (1 + fabs(normal)) * gamma[j] + FLT_EPSILON * fabs(beta[j]);
      if (!(fabs(got[j] - want) <= bound) && wrong++ < 3)
        fprintf(stderr, "out[%d][%d] = %g, want %g\n", row, j, got[j], want);
    }
  }
  printf("%s layernorm rows=%d cols=%d\n", wrong ? "FAIL" : "PASS", rows, cols);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
