// bubblesort: sorts n integers by odd-even transposition, the parallel form of bubble sort: n launches, which compare
// and exchange the pairs (0,1), (2,3), ... and (1,2), (3,4), ... by turns.
//
//   bubblesort [n]      default 8192, large 65536
#include <algorithm>
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

__global__ void exchangePairs(int *data, int n, int phase) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + phase % 2;
  if (i + 1 < n && data[i] > data[i + 1]) {
    int t = data[i];
    data[i] = data[i + 1];
    data[i + 1] = t;
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 8192;
  if (argc > 2 || n < 1 || n > 10000000) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 10000000\n", argv[0]);
    return EXIT_FAILURE;
  }

  std::vector<int> data(n), want(n);
  unsigned state = 77;
  for (int i = 0; i < n; ++i) { // also negative ones, and some twice
    state = state * 1664525u + 1013904223u;
    data[i] = (int)(state >> 8) % (4 * n) - 2 * n;
  }
  want = data;
  std::sort(want.begin(), want.end());

  int *dData;
  CUDA_CHECK(cudaMalloc(&dData, n * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(dData, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  const int threads = 256;
  const int pairs = (n + 1) / 2;
  for (int phase = 0; phase < n; ++phase)
    exchangePairs<<<(pairs + threads - 1) / threads, threads>>>(dData, n, phase);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(data.data(), dData, n * sizeof(int), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dData));

  int wrong = 0;
  for (int i = 0; i < n; ++i)
    if (data[i] != want[i] && wrong++ < 3)
      fprintf(stderr, "data[%d] = %d, want %d\n", i, data[i], want[i]);
  printf("%s bubblesort n=%d\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
