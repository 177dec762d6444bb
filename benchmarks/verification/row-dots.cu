//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// out[r] = sum over c of a[r * cols + c] * b[r * cols + c]
//--- original
__global__ void row_dot(const float *a, const float *b, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float sum = 0.0f;
  for (int c = 0; c < cols; c++)
    sum += a[(size_t)r * cols + c] * b[(size_t)r * cols + c];
  out[r] = sum;
}

void run(const float *a, const float *b, float *out, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  row_dot<<<(rows + 127) / 128, 128>>>(a, b, out, rows, cols);
}
//--- thread-group-warp-block
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

static inline bool aligned16(const void *p) { return (uintptr_t)p % 16 == 0; }

template <int COLS>
__global__ void dot_thread(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out,
                           int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  const size_t o = (size_t)r * COLS;
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < COLS; ++c)
    sum = fmaf(a[o + c], b[o + c], sum);
  out[r] = sum;
}

// G lanes work on one row; V floats at a time
template <int G, int V>
__global__ void dot_group(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out, int rows,
                          int cols) {
  const auto tile = cg::tiled_partition<G>(cg::this_thread_block());
  const int groups = blockDim.x / G * gridDim.x;
  for (int r = blockIdx.x * (blockDim.x / G) + threadIdx.x / G; r < rows; r += groups) {
    const float *ra = a + (size_t)r * cols, *rb = b + (size_t)r * cols;
    float sum = 0.0f;
    if constexpr (V == 4) {
      const float4 *a4 = reinterpret_cast<const float4 *>(ra), *b4 = reinterpret_cast<const float4 *>(rb);
      for (int c = tile.thread_rank(); c < cols / 4; c += G) {
        const float4 x = __ldg(a4 + c), y = __ldg(b4 + c);
        sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
      }
    } else {
      for (int c = tile.thread_rank(); c < cols; c += G)
        sum = fmaf(__ldg(ra + c), __ldg(rb + c), sum);
    }
    for (int d = G / 2; d > 0; d /= 2)
      sum += tile.shfl_down(sum, d);
    if (tile.thread_rank() == 0)
      out[r] = sum;
  }
}

__global__ void __launch_bounds__(256)
    dot_block(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out, int rows, int cols) {
  __shared__ float part[8];
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    const float *ra = a + (size_t)r * cols, *rb = b + (size_t)r * cols;
    float s0 = 0.0f, s1 = 0.0f;
    int c = threadIdx.x;
    for (; c + 256 < cols; c += 512) {
      s0 = fmaf(ra[c], rb[c], s0);
      s1 = fmaf(ra[c + 256], rb[c + 256], s1);
    }
    if (c < cols)
      s0 = fmaf(ra[c], rb[c], s0);
    s0 += s1;
    for (int d = 16; d > 0; d >>= 1)
      s0 += __shfl_xor_sync(0xffffffffu, s0, d);
    if (threadIdx.x % 32 == 0)
      part[threadIdx.x / 32] = s0;
    __syncthreads();
    if (threadIdx.x < 32) {
      float s = threadIdx.x < 8 ? part[threadIdx.x] : 0.0f;
      for (int d = 4; d > 0; d >>= 1)
        s += __shfl_xor_sync(0xffffffffu, s, d);
      if (threadIdx.x == 0)
        out[r] = s;
    }
    __syncthreads();
  }
}

template <int G> static void launch_group(const float *a, const float *b, float *out, int rows, int cols) {
  const int per_block = 128 / G;
  int blocks = (rows - 1) / per_block + 1;
  if (blocks > 4096)
    blocks = 4096;
  if (cols % 4 == 0 && aligned16(a) && aligned16(b))
    dot_group<G, 4><<<blocks, 128>>>(a, b, out, rows, cols);
  else
    dot_group<G, 1><<<blocks, 128>>>(a, b, out, rows, cols);
}

void run(const float *a, const float *b, float *out, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  const int g = (rows - 1) / 256 + 1;
  switch (cols) {
  case 1: dot_thread<1><<<g, 256>>>(a, b, out, rows); return;
  case 2: dot_thread<2><<<g, 256>>>(a, b, out, rows); return;
  case 3: dot_thread<3><<<g, 256>>>(a, b, out, rows); return;
  case 4: dot_thread<4><<<g, 256>>>(a, b, out, rows); return;
  default: break;
  }
  if (cols <= 64)
    launch_group<8>(a, b, out, rows, cols);
  else if (cols <= 1024)
    launch_group<32>(a, b, out, rows, cols);
  else
    dot_block<<<(rows > 65535 ? 65535 : rows), 256>>>(a, b, out, rows, cols);
}
//--- staged-tiles-split-columns
enum { TR = 64, TC = 16, NT = 128, PER = TR * TC / NT, SPLIT = 1024 };

__global__ void dot_narrow(const float *a, const float *b, float *out, unsigned rows, unsigned cols) {
  for (unsigned r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x) {
    const float *pa = a + (size_t)r * cols, *pb = b + (size_t)r * cols;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    unsigned c = 0;
    for (; c + 4 <= cols; c += 4) {
      s0 += pa[c] * pb[c];
      s1 += pa[c + 1] * pb[c + 1];
      s2 += pa[c + 2] * pb[c + 2];
      s3 += pa[c + 3] * pb[c + 3];
    }
    switch (cols - c) {
    case 3: s2 += pa[c + 2] * pb[c + 2]; // fall through
    case 2: s1 += pa[c + 1] * pb[c + 1]; // fall through
    case 1: s0 += pa[c] * pb[c];
    }
    out[r] = (s0 + s1) + (s2 + s3);
  }
}

__device__ static void fetch_products(const float *a, const float *b, int rows, int cols, int r0, int c0,
                                      float v[PER]) {
#pragma unroll
  for (int k = 0; k < PER; k++) {
    int j = k * NT + threadIdx.x, r = r0 + j / TC, c = c0 + j % TC;
    v[k] = 0.0f;
    if (r < rows && c < cols)
      v[k] = a[(size_t)r * cols + c] * b[(size_t)r * cols + c];
  }
}

// 64 rows per block; products staged through two padded tiles, two threads sum each row
__global__ void dot_staged(const float *__restrict__ a, const float *__restrict__ b, float *out, int rows, int cols) {
  __shared__ float tile[2][TR][TC + 1];
  const int r0 = blockIdx.x * TR, my = threadIdx.x >> 1, half = (threadIdx.x & 1) * (TC / 2);
  float v[PER], sum = 0.0f;
  int buf = 0;
  fetch_products(a, b, rows, cols, r0, 0, v);
  for (int c0 = 0; c0 < cols; c0 += TC, buf ^= 1) {
#pragma unroll
    for (int k = 0; k < PER; k++) {
      int j = k * NT + threadIdx.x;
      tile[buf][j / TC][j % TC] = v[k];
    }
    __syncthreads();
    if (c0 + TC < cols)
      fetch_products(a, b, rows, cols, r0, c0 + TC, v);
#pragma unroll
    for (int k = 0; k < TC / 2; k++)
      sum += tile[buf][my][half + k];
  }
  sum += __shfl_down_sync(0xffffffffu, sum, 1);
  if (half == 0 && r0 + my < rows)
    out[r0 + my] = sum;
}

__global__ void dot_split(const float *a, const float *b, float *part, int cols) {
  __shared__ float sh[NT];
  const size_t row = (size_t)blockIdx.y * cols;
  const int end = min(cols, (int)(blockIdx.x + 1) * SPLIT);
  float sum = 0.0f;
  for (int c = blockIdx.x * SPLIT + threadIdx.x; c < end; c += NT)
    sum += a[row + c] * b[row + c];
  sh[threadIdx.x] = sum;
  __syncthreads();
  for (int w = NT / 2; w; w >>= 1) {
    if (threadIdx.x < w)
      sh[threadIdx.x] += sh[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    part[blockIdx.y * gridDim.x + blockIdx.x] = sh[0];
}

__global__ void dot_combine(const float *part, float *out, int rows, int chunks) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float sum = 0.0f;
  for (int k = 0; k < chunks; k++)
    sum += part[r * chunks + k];
  out[r] = sum;
}

void run(const float *a, const float *b, float *out, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  if (cols < 16) {
    int blocks = (rows - 1) / 128 + 1;
    dot_narrow<<<(blocks < 512 ? blocks : 512), 128>>>(a, b, out, rows, cols);
  } else if (rows <= 64 && cols >= 2048) {
    int chunks = (cols - 1) / SPLIT + 1;
    float *part;
    cudaMalloc(&part, (size_t)rows * chunks * sizeof(float));
    dot_split<<<dim3(chunks, rows), NT>>>(a, b, part, cols);
    dot_combine<<<(rows + 31) / 32, 32>>>(part, out, rows, chunks);
    cudaFree(part);
  } else {
    dot_staged<<<(rows - 1) / TR + 1, NT>>>(a, b, out, rows, cols);
  }
}
//--- main
// usage: prog [rows] [cols] [element offset of b]
int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 200, cols = argc > 2 ? atoi(argv[2]) : 36;
  int off = argc > 3 ? atoi(argv[3]) : 0;
  if (rows < 0 || cols < 0 || off < 0)
    return 1;
  size_t n = (size_t)rows * cols;
  float *ha = (float *)malloc((n + 1) * 4), *hb = (float *)malloc((n + 1) * 4), *ho = (float *)calloc(rows + 1, 4);
  unsigned s = 4242u;
  for (size_t i = 0; i < n; i++) {
    s = s * 22695477u + 1u;
    ha[i] = (float)((int)(s >> 12) - 524288) / 262144.0f;
    s = s * 22695477u + 1u;
    hb[i] = (float)((int)(s >> 12) - 500000) / 524288.0f;
  }
  float *a, *b, *o;
  cudaMalloc(&a, (n + 1) * 4);
  cudaMalloc(&b, (n + off + 1) * 4);
  cudaMalloc(&o, (rows + 1) * 4);
  cudaMemset(o, 0, (rows + 1) * 4);
  cudaMemcpy(a, ha, n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(b + off, hb, n * 4, cudaMemcpyHostToDevice);
  run(a, b + off, o, rows, cols);
  cudaMemcpy(ho, o, (rows + 1) * 4, cudaMemcpyDeviceToHost);
  double sum = 0, weighted = 0;
  for (int r = 0; r < rows; r++) {
    sum += ho[r];
    weighted += ho[r] * (1.0 + r % 9);
  }
  printf("%d x %d sum %.3f weighted %.2f guard %g\n", rows, cols, sum, weighted, ho[rows]);
  for (int r = 0; r < rows; r += rows / 6 + 1)
    printf("row %d: %.3f\n", r, ho[r]);
  if (rows)
    printf("last %.3f\n", ho[rows - 1]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
