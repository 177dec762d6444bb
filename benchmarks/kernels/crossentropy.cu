// crossentropy: the loss of every row of logits: the logarithm of the sum of their exponentials, less the logit of the
// row's target class; one thread a row.
//
//   crossentropy [rows classes]      default 8192 4096, large 16384 16384
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

__global__ void crossEntropy(const float *logits, const int *targets, float *loss, int rows, int classes) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    const float *x = logits + (size_t)row * classes;
    float maximum = x[0];
    for (int j = 1; j < classes; ++j) {
      if (x[j] > maximum)
        maximum = x[j];
    }
    float sum = 0.0f;
    for (int j = 0; j < classes; ++j)
      sum += expf(x[j] - maximum);
    loss[row] = logf(sum) + maximum - x[targets[row]];
  }
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 8192;
  int classes = argc > 2 ? atoi(argv[2]) : 4096;
  if (argc > 3 || rows < 1 || rows > 100000000 || classes < 1 || classes > 100000000) {
    fprintf(stderr, "usage: %s [rows classes]   each from 1 to 1e8\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t count = (size_t)rows * classes;

  std::vector<float> logits(count), loss(rows);
  std::vector<int> targets(rows);
  for (int i = 0; i < rows; ++i) {
    float offset = 5.0f * (i % 9 - 4); // between -20 and 20
    for (int j = 0; j < classes; ++j)
      logits[(size_t)i * classes + j] =
          offset + (float)(hash((unsigned)i * classes + j) >> 8) / 1677721.6f - 5.0f; // offset +- 5
    targets[i] = (int)(hash(0x80000000u + i) % classes);
  }

  float *dLogits, *dLoss;
  int *dTargets;
  CUDA_CHECK(cudaMalloc(&dLogits, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dTargets, rows * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&dLoss, rows * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dLogits, logits.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dTargets, targets.data(), rows * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dLoss, 0xff, rows * sizeof(float))); // NaN, so that a loss that is not written shows

  const int threads = 128;
  crossEntropy<<<(rows + threads - 1) / threads, threads>>>(dLogits, dTargets, dLoss, rows, classes);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(loss.data(), dLoss, rows * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dLogits));
  CUDA_CHECK(cudaFree(dTargets));
  CUDA_CHECK(cudaFree(dLoss));

  // All rows, or of many the first, the last and others anywhere, 3e7 logits together. The bound allows for rounding of
  // numbers up to about 30 and of the sum; NaN fails.
  const int checked = (int)std::min<size_t>(rows, std::max<size_t>(1000, 30000000 / classes));
  int wrong = 0;
  for (int s = 0; s < checked; ++s) {
    int row = checked == rows ? s : s == 0 ? 0 : s == 1 ? rows - 1 : (int)(hash(s) % rows);
    const float *x = &logits[(size_t)row * classes];
    double maximum = x[0], sum = 0;
    for (int j = 1; j < classes; ++j)
      maximum = x[j] > maximum ? x[j] : maximum;
    for (int j = 0; j < classes; ++j)
      sum += exp(x[j] - maximum);
    double want = log(sum) + maximum - x[targets[row]];
    if (!(fabs(loss[row] - want) <= 1e-5 * (1 + want)) && wrong++ < 3)
      fprintf(stderr, "loss[%d] = %g, want %g\n", row, loss[row], want);
  }
  printf("%s crossentropy rows=%d classes=%d\n", wrong ? "FAIL" : "PASS", rows, classes);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
