// transpose: out[c][r] = in[r][c], one thread an element.
//
//   transpose [rows cols]      default 4096 4096, large 8192 8192
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

__global__ void transpose(const float *in, float *out, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || col >= cols)
    return;
  out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 4096;
  int cols = argc > 2 ? atoi(argv[2]) : 4096;
  if (argc > 3 || rows < 1 || rows > 1000000 || cols < 1 || cols > 1000000) {
    fprintf(stderr, "usage: %s [rows cols]   each from 1 to 1000000\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t count = (size_t)rows * cols, bytes = count * sizeof(float);

  std::vector<float> in(count), out(count);
  unsigned state = 17;
  for (float &value : in) { // between -1 and 1
    state = state * 1664525u + 1013904223u;
    value = (float)(state >> 8) / 8388608.0f - 1.0f;
  }

  float *dIn, *dOut;
  CUDA_CHECK(cudaMalloc(&dIn, bytes));
  CUDA_CHECK(cudaMalloc(&dOut, bytes));
  CUDA_CHECK(cudaMemcpy(dIn, in.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOut, 0xff, bytes)); // NaN, so that an element that is not written shows

  dim3 block(16, 16);
  dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  transpose<<<grid, block>>>(dIn, dOut, rows, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dOut, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dOut));

  size_t wrong = 0;
  for (int c = 0; c < cols; ++c) {
    for (int r = 0; r < rows; ++r) {
      float got = out[(size_t)c * rows + r], want = in[(size_t)r * cols + c];
      if (!(got == want) && wrong++ < 3)
        fprintf(stderr, "out[%d][%d] = %g, want %g\n", c, r, got, want);
    }
  }
  printf("%s transpose rows=%d cols=%d\n", wrong ? "FAIL" : "PASS", rows, cols);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
