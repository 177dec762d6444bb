// prefixsum: the inclusive scan of n integers after Hillis and Steele: one launch for every distance 1, 2, 4, ..., from
// one buffer to another.
//
//   prefixsum [n]      default 1048576, large 16777216
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void scanStep(const int *in, int *out, int n, int distance) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (i >= distance)
      out[i] = in[i] + in[i - distance];
    else
      out[i] = in[i];
  }
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 1048576;
  if (argc > 2 || count < 1 || count > (1 << 26)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^26\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int n = (int)count;
  const size_t bytes = n * sizeof(int);

  std::vector<int> in(n), out(n);
  unsigned state = 3;
  for (int &value : in) { // from -100 to 155
    state = state * 1664525u + 1013904223u;
    value = (int)(state >> 24) - 100;
  }

  int *dIn, *dOut;
  CUDA_CHECK(cudaMalloc(&dIn, bytes));
  CUDA_CHECK(cudaMalloc(&dOut, bytes));
  CUDA_CHECK(cudaMemcpy(dIn, in.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOut, 0, bytes));

  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;
  for (int distance = 1; distance < n; distance *= 2) {
    scanStep<<<blocks, threads>>>(dIn, dOut, n, distance);
    CUDA_CHECK(cudaGetLastError());
    std::swap(dIn, dOut); // the newest sums are in dIn
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dIn, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dOut));

  int wrong = 0;
  int want = 0; // integers are exact, and the sums fit
  for (int i = 0; i < n; ++i) {
    want += in[i];
    if (out[i] != want && wrong++ < 3)
      fprintf(stderr, "out[%d] = %d, want %d\n", i, out[i], want);
  }
  printf("%s prefixsum n=%d\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
