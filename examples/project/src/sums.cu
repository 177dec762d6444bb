#include "elements.h"
#include "rows.h"

struct Inverse {
  __device__ float operator()(float x) const { return x != 0 ? 1 / x : 0; }
};

// One thread a row: simple, and slow where there are few rows.
__global__ void sumRows(const float *matrix, float *sums, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0;
  for (int col = 0; col < cols; ++col)
    sum += matrix[(size_t)row * cols + col];
  sums[row] = sum;
}

// Leaves 1 / sum of each row.
void rowSums(const float *matrix, float *sums, int rows, int cols) {
  sumRows<<<(rows + 127) / 128, 128>>>(matrix, sums, rows, cols);
  mapElements<<<(rows + 127) / 128, 128>>>(sums, sums, rows, Inverse());
}
