// spmv: y = A x for a square sparse matrix in compressed rows, one thread a row. Rows differ in length; most lie near
// the diagonal, every eighth is spread over all columns.
//
//   spmv [rows [average entries of a row]]      default 1048576 16, large 4194304 32
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

__global__ void spmv(const int *rowStart, const int *column, const float *value, const float *x, float *y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int i = rowStart[row]; i < rowStart[row + 1]; i++)
      sum += value[i] * x[column[i]];
    y[row] = sum;
  }
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 1048576;
  int average = argc > 2 ? atoi(argv[2]) : 16;
  if (argc > 3 || rows < 1 || average < 1 || (double)rows * average > 5e8) {
    fprintf(stderr, "usage: %s [rows [average]]   each at least 1, their product 5e8 at most\n", argv[0]);
    return EXIT_FAILURE;
  }

  // Up to twice the average entries in a row, some rows have none. Columns ascend: one in each of as many equal parts
  // of the row's span.
  std::vector<int> rowStart(rows + 1), column;
  for (int row = 0; row < rows; row++) {
    int length = (int)std::min<long long>(hash(row) % (2 * average + 1), rows);
    rowStart[row + 1] = rowStart[row] + length;
  }
  const int entries = rowStart[rows];
  column.resize(entries);
  for (int row = 0; row < rows; row++) {
    int span = row % 8 == 7 ? rows : std::min(rows, std::max(1024, 4 * average));
    int first = std::min(std::max(0, row - span / 2), rows - span);
    long long length = rowStart[row + 1] - rowStart[row];
    for (int i = 0; i < length; i++)
      column[rowStart[row] + i] = first + (int)(((long long)i * span + hash(rowStart[row] + i) % span) / length);
  }
  std::vector<float> value(entries), x(rows), y(rows);
  for (int i = 0; i < entries; i++) // between -1 and 1
    value[i] = (float)(hash(0x80000000u + i) >> 8) / 8388608.0f - 1.0f;
  for (int i = 0; i < rows; i++)
    x[i] = (float)(hash(0x70000000u + i) >> 8) / 8388608.0f - 1.0f;

  int *dRowStart, *dColumn;
  float *dValue, *dx, *dy;
  CUDA_CHECK(cudaMalloc(&dRowStart, rowStart.size() * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&dColumn, std::max(entries, 1) * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&dValue, std::max(entries, 1) * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dx, rows * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dy, rows * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dRowStart, rowStart.data(), rowStart.size() * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dColumn, column.data(), entries * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dValue, value.data(), entries * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), rows * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dy, 0xff, rows * sizeof(float))); // NaN, so that an element that is not written shows

  const int threads = 128;
  spmv<<<(rows + threads - 1) / threads, threads>>>(dRowStart, dColumn, dValue, dx, dy, rows);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(y.data(), dy, rows * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dRowStart));
  CUDA_CHECK(cudaFree(dColumn));
  CUDA_CHECK(cudaFree(dValue));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dy));

  // Rounding is relative to the sum of the absolute products; rows without entries are exactly 0. NaN fails.
  int wrong = 0;
  for (int row = 0; row < rows; row++) {
    double want = 0, magnitude = 0;
    for (int i = rowStart[row]; i < rowStart[row + 1]; i++) {
      double product = (double)value[i] * x[column[i]];
      want += product;
      magnitude += fabs(product);
    }
    if (!(fabs(y[row] - want) <= 5e-6 * magnitude) && wrong++ < 3)
      fprintf(stderr, "y[%d] = %g, want %g\n", row, y[row], want);
  }
  printf("%s spmv rows=%d average=%d entries=%d\n", wrong ? "FAIL" : "PASS", rows, average, entries);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
