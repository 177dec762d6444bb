// y = A x for a sparse matrix in compressed row form: 262144 rows, 40 entries a row on average, a few rows
// much longer than the rest. By hand: a block streams the entries of 64 rows coalesced, whatever the row
// lengths, leaves the products in shared memory, and four threads add up each row from there.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = 64;
constexpr int LANES = THREADS / ROWS_PER_BLOCK;
constexpr int CHUNK = 16 * THREADS;  // products in shared memory at a time
constexpr int UNROLL = 4;

struct Csr {
  int rows;
  const int* row_start;
  const int* column;
  const float* value;
};

__global__ void __launch_bounds__(THREADS) multiply(Csr m, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float product[CHUNK];
  const int* __restrict__ column = m.column;
  const float* __restrict__ value = m.value;
  const int first = blockIdx.x * ROWS_PER_BLOCK;
  const int row = first + threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const int begin = m.row_start[first], end = m.row_start[first + ROWS_PER_BLOCK];
  const int row_begin = m.row_start[row], row_end = m.row_start[row + 1];

  float dot = 0.0f;
  for (int base = begin; base < end; base += CHUNK) {
    const int stop = min(base + CHUNK, end);
    int j = base + threadIdx.x;
    for (; j + (UNROLL - 1) * THREADS < stop; j += UNROLL * THREADS) {
      int c[UNROLL];
      float v[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        c[u] = __ldcs(column + j + u * THREADS);
        v[u] = __ldcs(value + j + u * THREADS);
      }
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) product[j - base + u * THREADS] = v[u] * __ldg(x + c[u]);
    }
#pragma unroll
    for (int u = 0; u < UNROLL - 1; ++u, j += THREADS)
      if (j < stop) product[j - base] = __ldcs(value + j) * __ldg(x + __ldcs(column + j));
    __syncthreads();

    const int to = min(row_end, stop);
#pragma unroll 8
    for (int i = max(row_begin, base) + lane; i < to; i += LANES) dot += product[i - base];
    __syncthreads();
  }
#pragma unroll
  for (int o = 1; o < LANES; o <<= 1) dot += __shfl_xor_sync(0xffffffffu, dot, o);
  if (lane == 0) y[row] = dot;
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
  multiply<<<rows / ROWS_PER_BLOCK, THREADS>>>(m, d_x, d_y);

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
