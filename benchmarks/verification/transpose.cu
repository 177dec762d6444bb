//--- common
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* out[c * rows + r] = in[r * cols + c] */
//--- original
__global__ void transpose_kernel(const float *in, float *out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols)
    out[c * rows + r] = in[r * cols + c];
}

void run(const float *in, float *out, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  dim3 block(16, 16);
  dim3 grid((cols + 15) / 16, (rows + 15) / 16);
  transpose_kernel<<<grid, block>>>(in, out, rows, cols);
}
//--- padded-tile-diagonal
#define TILE 32
#define STRIP 8

/* Diagonal block order keeps concurrently running blocks on different memory partitions. Only worth it (and only
   simple) for square grids; other grids use the cartesian order. */
template <bool DIAGONAL>
__global__ void __launch_bounds__(TILE *STRIP)
    transpose_tile(const float *__restrict__ in, float *__restrict__ out, int rows, int cols) {
  __shared__ float tile[TILE][TILE + 1];
  unsigned bx = blockIdx.x, by = blockIdx.y;
  if (DIAGONAL) {
    by = blockIdx.x;
    bx = (blockIdx.x + blockIdx.y) % gridDim.x;
  }
  const int c0 = bx * TILE, r0 = by * TILE;
  const int tx = threadIdx.x, ty = threadIdx.y;

  if (c0 + TILE <= cols && r0 + TILE <= rows) { /* interior: no guards */
    const float *src = in + (size_t)(r0 + ty) * cols + c0 + tx;
#pragma unroll
    for (int j = 0; j < TILE; j += STRIP)
      tile[ty + j][tx] = src[(size_t)j * cols];
    __syncthreads();
    float *dst = out + (size_t)(c0 + ty) * rows + r0 + tx;
#pragma unroll
    for (int j = 0; j < TILE; j += STRIP)
      dst[(size_t)j * rows] = tile[tx][ty + j];
    return;
  }
  for (int j = ty; j < TILE; j += STRIP)
    if (r0 + j < rows && c0 + tx < cols)
      tile[j][tx] = in[(size_t)(r0 + j) * cols + c0 + tx];
  __syncthreads();
  for (int j = ty; j < TILE; j += STRIP)
    if (c0 + j < cols && r0 + tx < rows)
      out[(size_t)(c0 + j) * rows + r0 + tx] = tile[tx][j];
}

void run(const float *in, float *out, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  if (rows == 1 || cols == 1) { /* same order in memory */
    cudaMemcpyAsync(out, in, sizeof(float) * (size_t)rows * cols, cudaMemcpyDeviceToDevice, 0);
    return;
  }
  dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE), block(TILE, STRIP);
  if (grid.x == grid.y && grid.x > 1)
    transpose_tile<true><<<grid, block>>>(in, out, rows, cols);
  else
    transpose_tile<false><<<grid, block>>>(in, out, rows, cols);
}
//--- vector-4x4-and-thin
/* both sizes multiples of 4: each thread moves one 4x4 block through registers; a block of 16 x 16 threads covers
   64 x 64 elements, staged as float4 in shared memory so that both sides are coalesced */
__global__ void transpose_vec(const float4 *__restrict__ in, float4 *__restrict__ out, int rows, int cols) {
  __shared__ float4 stage[64][17];
  const int cols4 = cols >> 2, rows4 = rows >> 2;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int c4 = blockIdx.x * 16 + tx;    /* column group read by this thread */
  const int r = blockIdx.y * 64 + ty * 4; /* first of its 4 rows */
  if (c4 < cols4 && r < rows) {
    const float4 *p = in + (size_t)r * cols4 + c4;
    float4 a = __ldg(p), b = __ldg(p + cols4), c = __ldg(p + 2 * (size_t)cols4), d = __ldg(p + 3 * (size_t)cols4);
    stage[4 * tx + 0][ty] = make_float4(a.x, b.x, c.x, d.x);
    stage[4 * tx + 1][ty] = make_float4(a.y, b.y, c.y, d.y);
    stage[4 * tx + 2][ty] = make_float4(a.z, b.z, c.z, d.z);
    stage[4 * tx + 3][ty] = make_float4(a.w, b.w, c.w, d.w);
  }
  __syncthreads();
  const int r4 = blockIdx.y * 16 + tx; /* now tx runs along the rows of the input */
  if (r4 >= rows4)
    return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int local = ty + 16 * i, c = blockIdx.x * 64 + local;
    if (c < cols)
      out[(size_t)c * rows4 + r4] = stage[local][tx];
  }
}

/* N columns, any number of rows: a thread reads one short row and writes N coalesced streams */
template <int N> __global__ void transpose_tall(const float *__restrict__ in, float *__restrict__ out, int rows) {
  for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x) {
    float v[N];
#pragma unroll
    for (int j = 0; j < N; ++j)
      v[j] = in[(size_t)r * N + j];
#pragma unroll
    for (int j = 0; j < N; ++j)
      out[(size_t)j * rows + r] = v[j];
  }
}

/* few rows, any number of columns: N coalesced reads, one short contiguous write */
template <int N> __global__ void transpose_wide(const float *__restrict__ in, float *__restrict__ out, int cols) {
  for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < cols; c += gridDim.x * blockDim.x) {
    float v[N];
#pragma unroll
    for (int j = 0; j < N; ++j)
      v[j] = in[(size_t)j * cols + c];
#pragma unroll
    for (int j = 0; j < N; ++j)
      out[(size_t)c * N + j] = v[j];
  }
}

/* everything else: persistent blocks walk over 16 x 64 tiles */
__global__ void transpose_walk(const float *__restrict__ in, float *__restrict__ out, unsigned rows, unsigned cols) {
  __shared__ float t[16][65];
  const unsigned tc = (cols + 63) / 64, tiles = tc * ((rows + 15) / 16);
  for (unsigned w = blockIdx.x; w < tiles; w += gridDim.x) {
    const unsigned r0 = w / tc * 16, c0 = w % tc * 64;
    for (unsigned e = threadIdx.x; e < 16 * 64; e += blockDim.x) {
      unsigned r = e / 64, c = e % 64;
      if (r0 + r < rows && c0 + c < cols)
        t[r][c] = in[(size_t)(r0 + r) * cols + c0 + c];
    }
    __syncthreads();
    for (unsigned e = threadIdx.x; e < 16 * 64; e += blockDim.x) {
      unsigned c = e / 16, r = e % 16;
      if (r0 + r < rows && c0 + c < cols)
        out[(size_t)(c0 + c) * rows + r0 + r] = t[r][c];
    }
    __syncthreads();
  }
}

void run(const float *in, float *out, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
#define THIN(KERNEL, COUNT, LEN)                                                                                       \
  {                                                                                                                    \
    int g = ((LEN) + 127) / 128;                                                                                       \
    if (g > 64)                                                                                                        \
      g = 64;                                                                                                          \
    switch (COUNT) {                                                                                                   \
    case 1: KERNEL<1><<<g, 128>>>(in, out, LEN); return;                                                               \
    case 2: KERNEL<2><<<g, 128>>>(in, out, LEN); return;                                                               \
    case 3: KERNEL<3><<<g, 128>>>(in, out, LEN); return;                                                               \
    case 4: KERNEL<4><<<g, 128>>>(in, out, LEN); return;                                                               \
    case 5: KERNEL<5><<<g, 128>>>(in, out, LEN); return;                                                               \
    default: break;                                                                                                    \
    }                                                                                                                  \
  }
  if (cols <= 5)
    THIN(transpose_tall, cols, rows)
  if (rows <= 5)
    THIN(transpose_wide, rows, cols)
  if (rows % 4 == 0 && cols % 4 == 0 && (((uintptr_t)in | (uintptr_t)out) & 15) == 0) {
    dim3 grid((cols + 63) / 64, (rows + 63) / 64);
    transpose_vec<<<grid, dim3(16, 16)>>>((const float4 *)in, (float4 *)out, rows, cols);
    return;
  }
  int tiles = ((cols + 63) / 64) * ((rows + 15) / 16);
  transpose_walk<<<(tiles < 8 ? tiles : 8), 256>>>(in, out, rows, cols);
}
//--- main
int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 72;
  int cols = argc > 2 ? atoi(argv[2]) : 100;
  size_t count = (size_t)rows * cols, i;
  float *h = (float *)malloc((count + 1) * sizeof(float)), *g = (float *)malloc((count + 1) * sizeof(float));
  float *din, *dout;
  uint32_t state = 2463534242u;
  for (i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    h[i] = (float)(int)(state % 20001u) / 100.0f - 100.0f;
  }
  cudaMalloc((void **)&din, (count + 1) * sizeof(float));
  cudaMalloc((void **)&dout, (count + 1) * sizeof(float));
  cudaMemcpy(din, h, count * sizeof(float), cudaMemcpyHostToDevice);
  run(din, dout, rows, cols);
  cudaMemcpy(g, dout, count * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0.0, pos = 0.0;
  for (i = 0; i < count; i++) {
    sum += g[i];
    pos += g[i] * (double)(i % 101);
  }
  printf("transpose %d x %d sum %.4f position-weighted %.4f\n", rows, cols, sum, pos);
  for (i = 0; i < count; i += count / 5 + 1)
    printf("out[%lu] = %.4f\n", (unsigned long)i, g[i]);
  cudaFree(din);
  cudaFree(dout);
  free(h);
  free(g);
  return 0;
}
