// attention: multi-head self-attention, softmax(Q K^T / sqrt(d)) V for every head, in three kernels: the scores, the
// softmax of their rows, and the weighted sums of V's rows. Q, K, V and the output are [heads][n][d].
//
//   attention [heads n d]      default 8 1024 64, large 16 4096 128
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

// scores[h][i][j] = (row i of Q) . (row j of K) / sqrt(d), one thread an element.
__global__ void attentionScores(const float *q, const float *k, float *scores, int n, int d) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int h = blockIdx.z;
  if (i >= n || j >= n)
    return;
  const float *qRow = q + ((size_t)h * n + i) * d;
  const float *kRow = k + ((size_t)h * n + j) * d;
  float dot = 0.0f;
  for (int c = 0; c < d; ++c)
    dot += qRow[c] * kRow[c];
  scores[((size_t)h * n + i) * n + j] = dot / sqrtf((float)d);
}

// In place, one thread a row.
__global__ void softmaxRows(float *scores, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float *s = scores + (size_t)row * n;
  float maximum = s[0];
  for (int j = 1; j < n; ++j)
    maximum = fmaxf(maximum, s[j]);
  float sum = 0.0f;
  for (int j = 0; j < n; ++j) {
    s[j] = expf(s[j] - maximum);
    sum += s[j];
  }
  for (int j = 0; j < n; ++j)
    s[j] /= sum;
}

// out[h][i][c] = the sum over j of weights[h][i][j] * v[h][j][c], one thread an element.
__global__ void weightedSum(const float *weights, const float *v, float *out, int n, int d) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int h = blockIdx.z;
  if (i >= n || c >= d)
    return;
  float sum = 0.0f;
  for (int j = 0; j < n; ++j)
    sum += weights[((size_t)h * n + i) * n + j] * v[((size_t)h * n + j) * d + c];
  out[((size_t)h * n + i) * d + c] = sum;
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static void fill(std::vector<float> &values, unsigned seed, float range) { // between -range and range
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = range * ((float)(hash((unsigned)i + seed) >> 8) / 8388608.0f - 1.0f);
}

int main(int argc, char **argv) {
  int heads = 8, n = 1024, d = 64;
  if (argc == 4) {
    heads = atoi(argv[1]);
    n = atoi(argv[2]);
    d = atoi(argv[3]);
  }
  if ((argc != 1 && argc != 4) || heads < 1 || heads > 4096 || n < 1 || n > 65536 || d < 1 || d > 4096) {
    fprintf(stderr, "usage: %s [heads n d]   heads and d from 1 to 4096, n from 1 to 65536\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int rows = heads * n;
  const size_t count = (size_t)rows * d, bytes = count * sizeof(float), scoreBytes = (size_t)rows * n * sizeof(float);

  std::vector<float> q(count), k(count), v(count), out(count);
  fill(q, 0, 3.0f);
  fill(k, 0x40000000u, 1.5f);
  fill(v, 0x80000000u, 1.0f);

  float *dq, *dk, *dv, *dScores, *dOut;
  CUDA_CHECK(cudaMalloc(&dq, bytes));
  CUDA_CHECK(cudaMalloc(&dk, bytes));
  CUDA_CHECK(cudaMalloc(&dv, bytes));
  CUDA_CHECK(cudaMalloc(&dScores, scoreBytes));
  CUDA_CHECK(cudaMalloc(&dOut, bytes));
  CUDA_CHECK(cudaMemcpy(dq, q.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dk, k.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dv, v.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dScores, 0xff, scoreBytes)); // NaN, so that an element that is not written shows
  CUDA_CHECK(cudaMemset(dOut, 0xff, bytes));

  dim3 block(16, 16);
  dim3 scoreGrid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y, heads);
  attentionScores<<<scoreGrid, block>>>(dq, dk, dScores, n, d);
  CUDA_CHECK(cudaGetLastError());
  softmaxRows<<<(rows + 127) / 128, 128>>>(dScores, rows, n);
  CUDA_CHECK(cudaGetLastError());
  dim3 outGrid((d + block.x - 1) / block.x, (n + block.y - 1) / block.y, heads);
  weightedSum<<<outGrid, block>>>(dScores, dv, dOut, n, d);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dOut, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dq));
  CUDA_CHECK(cudaFree(dk));
  CUDA_CHECK(cudaFree(dv));
  CUDA_CHECK(cudaFree(dScores));
  CUDA_CHECK(cudaFree(dOut));

  // All rows, or of many the first and the last of every head and others anywhere, as many as 5e7 multiplications
  // allow.
  const size_t fit = 50000000 / ((size_t)2 * n * d), least = 2 * heads + 1000 / d + 1;
  const int checked = (int)std::min<size_t>(rows, std::max(fit, least));
  int wrong = 0;
  std::vector<double> weights(n), want(d), magnitude(d);
  for (int s = 0; s < checked; ++s) {
    int row = s;
    if (checked < rows)
      row = s < 2 * heads ? s / 2 * n + s % 2 * (n - 1) : (int)(hash(s) % rows);
    const size_t head = (size_t)(row / n) * n;
    double maximum = -INFINITY, sum = 0;
    for (int j = 0; j < n; ++j) {
      double dot = 0;
      for (int c = 0; c < d; ++c)
        dot += (double)q[(size_t)row * d + c] * k[(head + j) * d + c];
      weights[j] = dot / sqrt((double)d);
      maximum = std::max(maximum, weights[j]);
    }
    for (int j = 0; j < n; ++j)
      sum += weights[j] = exp(weights[j] - maximum);
    for (int c = 0; c < d; ++c)
      want[c] = magnitude[c] = 0;
    for (int j = 0; j < n; ++j) {
      double weight = weights[j] / sum;
      for (int c = 0; c < d; ++c) {
        double term = weight * v[(head + j) * d + c];
        want[c] += term;
        magnitude[c] += fabs(term);
      }
    }
    // Rounding is relative to the sum of the absolute terms; that of a score (the more the larger d) changes its
    // weight. NaN fails.
    double relative = 1e-5 + 2 * FLT_EPSILON * sqrt((double)d);
    for (int c = 0; c < d; ++c) {
      float got = out[(size_t)row * d + c];
      if (!(fabs(got - want[c]) <= relative * magnitude[c]) && wrong++ < 3)
        fprintf(stderr, "out[%d][%d][%d] = %g, want %g\n", row / n, row % n, c, got, want[c]);
    }
  }
  printf("%s attention heads=%d n=%d d=%d\n", wrong ? "FAIL" : "PASS", heads, n, d);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
