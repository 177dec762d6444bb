// y = A x for a sparse matrix in compressed row form: 262144 rows, 40 entries a row on average, a few rows
// much longer than the rest. One thread a row.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

struct Csr {
  int rows;
  const int* row_start;
  const int* column;
  const float* value;
};

__global__ void multiply(Csr m, const float* __restrict__ x, float* __restrict__ y) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < m.rows; row += gridDim.x * blockDim.x) {
    float dot = 0.0f;
    for (int j = m.row_start[row]; j < m.row_start[row + 1]; ++j) {
      dot += m.value[j] * x[m.column[j]];
    }
    y[row] = dot;
  }
}

int main() {
  const int rows = 262144;
  std::vector<int> row_start(rows + 1), column;
  std::vector<float> value, x(rows), y(rows);
  unsigned s = 777u;
  auto next = [&s]() {
    s = s * 1664525u + 1013904223u;
    return s >> 8;
  };
  for (int r = 0; r < rows; ++r) {
    int length = 8 + next() % 49;
    if (next() % 32 == 0) length += 256;
    for (int j = 0; j < length; ++j) {
      long long c = (long long)r + (j - length / 2) * 5 + next() % 5;
      column.push_back((int)((c + rows) % rows));
      value.push_back((next() & 0xffff) / 65536.0f - 0.25f);
    }
    row_start[r + 1] = (int)column.size();
    x[r] = (next() & 0xffff) / 65536.0f;
  }

  int *d_row_start, *d_column;
  float *d_value, *d_x, *d_y;
  cudaMalloc(&d_row_start, row_start.size() * sizeof(int));
  cudaMalloc(&d_column, column.size() * sizeof(int));
  cudaMalloc(&d_value, value.size() * sizeof(float));
  cudaMalloc(&d_x, rows * sizeof(float));
  cudaMalloc(&d_y, rows * sizeof(float));
  cudaMemcpy(d_row_start, row_start.data(), row_start.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_column, column.data(), column.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_value, value.data(), value.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_x, x.data(), rows * sizeof(float), cudaMemcpyHostToDevice);

  Csr m = {rows, d_row_start, d_column, d_value};
  multiply<<<(rows + 255) / 256, 256>>>(m, d_x, d_y);

  if (cudaMemcpy(y.data(), d_y, rows * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) {
    std::fprintf(stderr, "multiply failed\n");
    return 1;
  }
  double sum = 0, squares = 0, weighted = 0;
  for (int r = 0; r < rows; ++r) {
    sum += y[r];
    squares += (double)y[r] * y[r];
    weighted += std::fabs(y[r]) * (1 + r % 41);
  }
  std::printf("sum %.6e squares %.6e weighted %.6e\n", sum, squares, weighted);
  return 0;
}
