// matmul: C = A * B for row-major matrices (A is m x k, B is k x n), one thread an element of C.
//
//   matmul [m n k]      default 1024 1024 1024, large 4096 4096 4096
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

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int p = 0; p < k; ++p)
      sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = sum;
  }
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static void fill(std::vector<float> &values, unsigned seed) { // between -1 and 1
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (float)(hash((unsigned)i + seed) >> 8) / 8388608.0f - 1.0f;
}

// The s-th element of a large matrix to look at: the corners, then points of the edges and points anywhere by turns.
static void pick(unsigned s, int rows, int cols, int *row, int *col) {
  *row = s < 4 ? (s & 1) * (rows - 1) : s % 8 == 4 ? 0 : s % 8 == 5 ? rows - 1 : (int)(hash(2 * s) % rows);
  *col = s < 4 ? (s >> 1) * (cols - 1) : s % 8 == 6 ? 0 : s % 8 == 7 ? cols - 1 : (int)(hash(2 * s + 1) % cols);
}

int main(int argc, char **argv) {
  int m = 1024, n = 1024, k = 1024;
  if (argc == 4) {
    m = atoi(argv[1]);
    n = atoi(argv[2]);
    k = atoi(argv[3]);
  }
  if ((argc != 1 && argc != 4) || m < 1 || n < 1 || k < 1 || m > 32768 || n > 32768 || k > 32768) {
    fprintf(stderr, "usage: %s [m n k]   each from 1 to 32768\n", argv[0]);
    return EXIT_FAILURE;
  }

  std::vector<float> a((size_t)m * k), b((size_t)k * n), c((size_t)m * n);
  fill(a, 1);
  fill(b, 0x80000000u);

  float *da, *db, *dc;
  CUDA_CHECK(cudaMalloc(&da, a.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&db, b.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dc, c.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dc, 0xff, c.size() * sizeof(float))); // NaN, so that an element that is not written shows

  dim3 block(16, 16);
  dim3 grid((n + block.x - 1) / block.x, (m + block.y - 1) / block.y);
  matmul<<<grid, block>>>(da, db, dc, m, n, k);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(da));
  CUDA_CHECK(cudaFree(db));
  CUDA_CHECK(cudaFree(dc));

  // The whole product, or of a large one as many elements as 3e7 multiplications allow. Rounding is relative to the sum
  // of the absolute products, and one of up to 10000 products is far more than the bound. NaN fails.
  const size_t budget = std::max<size_t>(2000, 30000000 / k);
  const bool all = c.size() <= budget;
  const unsigned samples = (unsigned)(all ? c.size() : budget);
  int wrong = 0;
  for (unsigned s = 0; s < samples; ++s) {
    int row = s / n, col = s % n;
    if (!all)
      pick(s, m, n, &row, &col);
    double want = 0, magnitude = 0;
    for (int p = 0; p < k; ++p) {
      double product = (double)a[(size_t)row * k + p] * b[(size_t)p * n + col];
      want += product;
      magnitude += fabs(product);
    }
    float got = c[(size_t)row * n + col];
    if (!(fabs(got - want) <= 1e-5 * magnitude) && wrong++ < 3)
      fprintf(stderr, "c[%d][%d] = %g, want %g\n", row, col, got, want);
  }
  printf("%s matmul m=%d n=%d k=%d\n", wrong ? "FAIL" : "PASS", m, n, k);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
