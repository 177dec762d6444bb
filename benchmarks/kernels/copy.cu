// copy: copies a matrix, one thread an element.
//
//   copy [rows cols]      default 8192 8192, large 16384 16384
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

__global__ void copyMatrix(const float *in, float *out, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) {
    size_t i = (size_t)row * cols + col;
    out[i] = in[i];
  }
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 8192;
  int cols = argc > 2 ? atoi(argv[2]) : 8192;
  if (argc > 3 || rows < 1 || rows > 1000000 || cols < 1 || cols > 1000000) {
    fprintf(stderr, "usage: %s [rows cols]   each from 1 to 1000000\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t count = (size_t)rows * cols, bytes = count * sizeof(float);

  std::vector<float> in(count), out(count);
  unsigned state = 5;
  float *value = in.data();
  for (size_t i = 0; i < count; ++i) { // between -100 and 100
    state = state * 1664525u + 1013904223u;
    value[i] = (float)(state >> 8) / 83886.08f - 100.0f;
  }

  float *dIn, *dOut;
  CUDA_CHECK(cudaMalloc(&dIn, bytes));
  CUDA_CHECK(cudaMalloc(&dOut, bytes));
  CUDA_CHECK(cudaMemcpy(dIn, in.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOut, 0xff, bytes)); // NaN, so that an element that is not written shows

  dim3 block(16, 16);
  dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  copyMatrix<<<grid, block>>>(dIn, dOut, rows, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dOut, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dOut));

  size_t wrong = 0;
  const float *got = out.data(), *want = in.data();
  for (size_t i = 0; i < count; ++i)
    if (!(got[i] == want[i]) && wrong++ < 3)
      fprintf(stderr, "out[%zu][%zu] = %g, want %g\n", i / cols, i % cols, got[i], want[i]);
  printf("%s copy rows=%d cols=%d\n", wrong ? "FAIL" : "PASS", rows, cols);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
