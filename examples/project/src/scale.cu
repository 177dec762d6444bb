#include "rows.h"
#include <cuda_runtime.h>

__global__ void scale(float *matrix, const float *factors, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols)
    matrix[(size_t)row * cols + col] *= factors[row];
}

void scaleRows(float *matrix, const float *factors, int rows, int cols) {
  dim3 block(16, 16), grid((cols + 15) / 16, (rows + 15) / 16);
  scale<<<grid, block>>>(matrix, factors, rows, cols);
}
