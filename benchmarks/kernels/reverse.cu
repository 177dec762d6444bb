// reverse: out[i] = in[n - 1 - i].
//
//   reverse [n]      default 16777216, large 67108864
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

__global__ void reverse(const float *in, float *out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[n - 1 - i];
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1LL << 31)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^31\n", argv[0]);
    return EXIT_FAILURE;
  }
  const unsigned n = (unsigned)count;
  const size_t bytes = (size_t)n * sizeof(float);

  std::vector<float> in(n), out(n);
  unsigned state = 99;
  for (float &value : in) { // 2^24 different values between -1 and 1
    state = state * 1664525u + 1013904223u;
    value = (float)(state >> 8) / 8388608.0f - 1.0f;
  }

  float *dIn, *dOut;
  CUDA_CHECK(cudaMalloc(&dIn, bytes));
  CUDA_CHECK(cudaMalloc(&dOut, bytes));
  CUDA_CHECK(cudaMemcpy(dIn, in.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOut, 0xff, bytes)); // NaN, so that an element that is not written shows

  const unsigned threads = 256;
  reverse<<<(n + threads - 1) / threads, threads>>>(dIn, dOut, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dOut, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dOut));

  unsigned wrong = 0;
  for (unsigned i = 0; i < n; ++i) {
    float want = in[n - 1 - i];
    if (!(out[i] == want) && wrong++ < 3)
      fprintf(stderr, "out[%u] = %g, want %g\n", i, out[i], want);
  }
  printf("%s reverse n=%u\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
