// softmaxloss: the last layer of a classifier as it is first written, a kernel for each formula: the softmax of every
// row of logits (maximum, exponentials, sum, quotient), the cross-entropy of the row's target class, and the gradient.
//
//   softmaxloss [rows classes]      default 8192 1024
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

__global__ void rowMaximum(const float *logits, float *maximum, int rows, int classes) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float m = logits[row * classes];
    for (int c = 1; c < classes; ++c)
      m = fmaxf(m, logits[row * classes + c]);
    maximum[row] = m;
  }
}

__global__ void exponentials(const float *logits, const float *maximum, float *p, int rows, int classes) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && c < classes)
    p[row * classes + c] = expf(logits[row * classes + c] - maximum[row]);
}

__global__ void rowSum(const float *p, float *sum, int rows, int classes) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float s = 0.0f;
    for (int c = 0; c < classes; ++c)
      s += p[row * classes + c];
    sum[row] = s;
  }
}

__global__ void divideBySum(float *p, const float *sum, int count, int classes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    p[i] /= sum[i / classes];
}

__global__ void crossEntropy(const float *p, const int *targets, float *loss, int rows, int classes) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows)
    loss[row] = -logf(p[row * classes + targets[row]]);
}

__global__ void gradient(const float *p, const int *targets, float *dLogits, int count, int rows, int classes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    int row = i / classes, c = i % classes;
    dLogits[i] = (p[i] - (c == targets[row] ? 1.0f : 0.0f)) / rows;
  }
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 8192;
  int classes = argc > 2 ? atoi(argv[2]) : 1024;
  if (argc > 3 || rows < 1 || classes < 1 || (long long)rows * classes > 1000000000) {
    fprintf(stderr, "usage: %s [rows classes]   each at least 1, 1e9 logits at most\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int count = rows * classes;

  std::vector<float> logits(count), loss(rows), dLogits(count);
  std::vector<int> targets(rows);
  for (int i = 0; i < rows; ++i) {
    float offset = 5.0f * (i % 9 - 4); // between -20 and 20
    for (int c = 0; c < classes; ++c)
      logits[i * classes + c] = offset + (float)(hash(i * classes + c) >> 8) / 1677721.6f - 5.0f; // offset +- 5
    targets[i] = (int)(hash(0x80000000u + i) % classes);
  }

  float *dx, *dMaximum, *dp, *dSum, *dLoss, *dGradient;
  int *dTargets;
  CUDA_CHECK(cudaMalloc(&dx, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dMaximum, rows * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dp, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dSum, rows * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dLoss, rows * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dGradient, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dTargets, rows * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(dx, logits.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dTargets, targets.data(), rows * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dLoss, 0xff, rows * sizeof(float))); // NaN, so that what is not written shows
  CUDA_CHECK(cudaMemset(dGradient, 0xff, count * sizeof(float)));

  const int threads = 256, rowBlocks = (rows + threads - 1) / threads, blocks = (count + threads - 1) / threads;
  const dim3 block(32, 8), grid((classes + 31) / 32, (rows + 7) / 8);
  rowMaximum<<<rowBlocks, threads>>>(dx, dMaximum, rows, classes);
  exponentials<<<grid, block>>>(dx, dMaximum, dp, rows, classes);
  CUDA_CHECK(cudaGetLastError());
  rowSum<<<rowBlocks, threads>>>(dp, dSum, rows, classes);
  divideBySum<<<blocks, threads>>>(dp, dSum, count, classes);
  CUDA_CHECK(cudaGetLastError());
  crossEntropy<<<rowBlocks, threads>>>(dp, dTargets, dLoss, rows, classes);
  gradient<<<blocks, threads>>>(dp, dTargets, dGradient, count, rows, classes);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(loss.data(), dLoss, rows * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(dLogits.data(), dGradient, count * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dMaximum));
  CUDA_CHECK(cudaFree(dp));
  CUDA_CHECK(cudaFree(dSum));
  CUDA_CHECK(cudaFree(dLoss));
  CUDA_CHECK(cudaFree(dGradient));
  CUDA_CHECK(cudaFree(dTargets));

  // All rows, or of many the first, the last and others anywhere, 3e7 logits together. A float sum of n terms is off by
  // some roundings; the loss, a difference of numbers up to about 20, by some more. NaN fails.
  const int checked = std::min(rows, std::max(1000, 30000000 / classes));
  const double relative = 1e-6 * (4 + std::sqrt((double)classes));
  int wrong = 0;
  for (int s = 0; s < checked; ++s) {
    int row = checked == rows ? s : s == 0 ? 0 : s == 1 ? rows - 1 : (int)(hash(s) % rows);
    const float *x = &logits[row * classes], *got = &dLogits[row * classes];
    double maximum = x[0], sum = 0;
    for (int c = 1; c < classes; ++c)
      maximum = x[c] > maximum ? x[c] : maximum;
    for (int c = 0; c < classes; ++c)
      sum += exp(x[c] - maximum);
    double want = log(sum) + maximum - x[targets[row]];
    if (!(fabs(loss[row] - want) <= 1e-5 * (1 + want)) && wrong++ < 3)
      fprintf(stderr, "loss[%d] = %g, want %g\n", row, loss[row], want);
    for (int c = 0; c < classes; ++c) {
      double p = exp(x[c] - maximum) / sum, isTarget = c == targets[row] ? 1 : 0, slope = (p - isTarget) / rows;
      if (!(fabs(got[c] - slope) <= relative * (p + isTarget) / rows) && wrong++ < 3)
        fprintf(stderr, "gradient[%d][%d] = %g, want %g\n", row, c, got[c], slope);
    }
  }
  printf("%s softmaxloss rows=%d classes=%d\n", wrong ? "FAIL" : "PASS", rows, classes);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
