// topk: the k largest values of every row of a matrix in descending order; one thread a row, which keeps them in a
// small sorted list. A row with fewer columns than k is filled up with -infinity.
//
//   topk [rows cols [k]]      default 1024 4096 16, large 8192 16384 16
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define MAX_K 32

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void topk(const float *values, float *largest, int rows, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;

  float best[MAX_K];
  for (int i = 0; i < k; i++)
    best[i] = -INFINITY;

  for (int col = 0; col < cols; col++) {
    float value = values[(size_t)row * cols + col];
    if (value > best[k - 1]) {
      int place = k - 1;
      while (place > 0 && best[place - 1] < value) {
        best[place] = best[place - 1];
        place--;
      }
      best[place] = value;
    }
  }

  for (int i = 0; i < k; i++)
    largest[row * k + i] = best[i];
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 1024;
  int cols = argc > 2 ? atoi(argv[2]) : 4096;
  int k = argc > 3 ? atoi(argv[3]) : 16;
  if (argc > 4 || rows < 1 || rows > 10000000 || cols < 1 || cols > 100000000 || k < 1 || k > MAX_K) {
    fprintf(stderr, "usage: %s [rows cols [k]]   rows up to 1e7, cols up to 1e8, k up to %d\n", argv[0], MAX_K);
    return EXIT_FAILURE;
  }
  const size_t count = (size_t)rows * cols, results = (size_t)rows * k;

  std::vector<float> values(count), largest(results);
  for (size_t i = 0; i < count; i++) // multiples of 1/1024 between -32 and 32: some values occur twice
    values[i] = (float)(hash((unsigned)i) >> 16) / 1024.0f - 32.0f;

  float *dValues, *dLargest;
  CUDA_CHECK(cudaMalloc(&dValues, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dLargest, results * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dValues, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dLargest, 0xff, results * sizeof(float))); // NaN, so that a result that is not written shows

  const int threads = 64;
  topk<<<(rows + threads - 1) / threads, threads>>>(dValues, dLargest, rows, cols, k);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(largest.data(), dLargest, results * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dValues));
  CUDA_CHECK(cudaFree(dLargest));

  // Exact; NaN equals nothing. All rows, or of a large matrix the first, the last and others anywhere, 3e7 values
  // together.
  const int checked = (int)std::min<size_t>(rows, std::max<size_t>(1000, 30000000 / cols));
  int wrong = 0;
  std::vector<float> row(cols);
  for (int s = 0; s < checked; s++) {
    int r = checked == rows ? s : s == 0 ? 0 : s == 1 ? rows - 1 : (int)(hash(s) % rows);
    std::copy_n(&values[(size_t)r * cols], cols, row.begin());
    int found = std::min(k, cols);
    std::nth_element(row.begin(), row.begin() + (found - 1), row.end(), std::greater<float>());
    std::sort(row.begin(), row.begin() + found, std::greater<float>());
    for (int i = 0; i < k; i++) {
      float got = largest[(size_t)r * k + i], want = i < found ? row[i] : -INFINITY;
      if (!(got == want) && wrong++ < 3)
        fprintf(stderr, "row %d, place %d: %g, want %g\n", r, i, got, want);
    }
  }
  printf("%s topk rows=%d cols=%d k=%d\n", wrong ? "FAIL" : "PASS", rows, cols, k);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
