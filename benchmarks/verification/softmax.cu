//--- common
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// y[r, :] = softmax(x[r, :]); entries may be -INFINITY (masked), a row that is masked all over gives zeros
static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

//--- original
__global__ void softmax_rows(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  const float *xr = x + (size_t)r * cols;
  float *yr = y + (size_t)r * cols;
  float m = -INFINITY;
  for (int c = 0; c < cols; c++)
    m = fmaxf(m, xr[c]);
  if (m == -INFINITY) {
    for (int c = 0; c < cols; c++)
      yr[c] = 0.0f;
    return;
  }
  float s = 0.0f;
  for (int c = 0; c < cols; c++)
    s += expf(xr[c] - m);
  for (int c = 0; c < cols; c++)
    yr[c] = expf(xr[c] - m) / s;
}

void run(const float *x, float *y, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  softmax_rows<<<ceil_div(rows, 128), 128>>>(x, y, rows, cols);
}

//--- warp-block-online
struct MaxOp {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct SumOp {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <class Op> __device__ __forceinline__ float warp_reduce(float v, Op op) {
  for (int o = 16; o > 0; o >>= 1)
    v = op(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

template <class Op> __device__ float block_reduce(float v, Op op, float ident) {
  __shared__ float part[32];
  const int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
  v = warp_reduce(v, op);
  if (lane == 0)
    part[wid] = v;
  __syncthreads();
  v = lane < (int)(blockDim.x >> 5) ? part[lane] : ident;
  v = warp_reduce(v, op);
  __syncthreads();
  return v;
}

// one warp per row, the row lives in registers
template <int ELEMS> __global__ void softmax_warp(const float *x, float *y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  const float *src = x + (size_t)row * cols;
  float *dst = y + (size_t)row * cols;
  float v[ELEMS], m = -INFINITY, s = 0.0f;
#pragma unroll
  for (int i = 0; i < ELEMS; i++) {
    const int c = threadIdx.x + 32 * i;
    v[i] = c < cols ? src[c] : -INFINITY;
    m = fmaxf(m, v[i]);
  }
  m = warp_reduce(m, MaxOp());
  const bool dead = m == -INFINITY;
#pragma unroll
  for (int i = 0; i < ELEMS; i++)
    s += v[i] = dead ? 0.0f : expf(v[i] - m);
  s = warp_reduce(s, SumOp());
#pragma unroll
  for (int i = 0; i < ELEMS; i++)
    if (threadIdx.x + 32 * i < cols)
      dst[threadIdx.x + 32 * i] = dead ? 0.0f : v[i] / s;
}

// one block per row, the row is kept in shared memory
template <bool VEC> __global__ void softmax_smem(const float *x, float *y, int cols) {
  extern __shared__ __align__(16) float buf[];
  const float *src = x + (size_t)blockIdx.x * cols;
  float *dst = y + (size_t)blockIdx.x * cols;
  float m = -INFINITY, s = 0.0f;
  if (VEC) {
    for (int i = threadIdx.x; i < cols / 4; i += blockDim.x) {
      const float4 t = reinterpret_cast<const float4 *>(src)[i];
      reinterpret_cast<float4 *>(buf)[i] = t;
      m = fmaxf(fmaxf(m, fmaxf(t.x, t.y)), fmaxf(t.z, t.w));
    }
  } else {
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
      m = fmaxf(m, buf[i] = src[i]);
  }
  m = block_reduce(m, MaxOp(), -INFINITY);
  const bool dead = m == -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    s += buf[i] = dead ? 0.0f : expf(buf[i] - m);
  s = block_reduce(s, SumOp(), 0.0f);
  if (dead)
    s = 1.0f;
  if (VEC) {
    for (int i = threadIdx.x; i < cols / 4; i += blockDim.x) {
      float4 t = reinterpret_cast<const float4 *>(buf)[i];
      t.x /= s;
      t.y /= s;
      t.z /= s;
      t.w /= s;
      reinterpret_cast<float4 *>(dst)[i] = t;
    }
  } else {
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
      dst[i] = buf[i] / s;
  }
}

// rows too wide for shared memory: running maximum and sum, then one more sweep
__global__ void softmax_online(const float *x, float *y, int cols) {
  const float *src = x + (size_t)blockIdx.x * cols;
  float *dst = y + (size_t)blockIdx.x * cols;
  float m = -INFINITY, s = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    const float v = src[i];
    if (v > m) {
      s = s * expf(m - v) + 1.0f;
      m = v;
    } else if (m > -INFINITY) {
      s += expf(v - m);
    }
  }
  const float M = block_reduce(m, MaxOp(), -INFINITY);
  s = block_reduce(m == -INFINITY ? 0.0f : s * expf(m - M), SumOp(), 0.0f);
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    dst[i] = M == -INFINITY ? 0.0f : expf(src[i] - M) / s;
}

void run(const float *x, float *y, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  if (cols <= 1024) {
    const dim3 block(32, 4);
    const int grid = ceil_div(rows, 4);
    if (cols <= 32)
      softmax_warp<1><<<grid, block>>>(x, y, rows, cols);
    else if (cols <= 64)
      softmax_warp<2><<<grid, block>>>(x, y, rows, cols);
    else if (cols <= 128)
      softmax_warp<4><<<grid, block>>>(x, y, rows, cols);
    else if (cols <= 256)
      softmax_warp<8><<<grid, block>>>(x, y, rows, cols);
    else if (cols <= 512)
      softmax_warp<16><<<grid, block>>>(x, y, rows, cols);
    else
      softmax_warp<32><<<grid, block>>>(x, y, rows, cols);
  } else if (cols <= 8192) {
    const bool vec = cols % 4 == 0 && (((uintptr_t)x | (uintptr_t)y) & 15) == 0;
    if (vec)
      softmax_smem<true><<<rows, 256, cols * sizeof(float)>>>(x, y, cols);
    else
      softmax_smem<false><<<rows, 256, cols * sizeof(float)>>>(x, y, cols);
  } else {
    softmax_online<<<rows, 512>>>(x, y, cols);
  }
}

//--- tiles-peeled-vec4-split
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

#define CHUNK 2048
#define BLOCK 128

__device__ __forceinline__ float2 merge(float2 a, float2 b) { // (max, sum of exp relative to max)
  const float m = fmaxf(a.x, b.x);
  float s = 0.0f;
  if (a.x > -INFINITY)
    s += a.y * expf(a.x - m);
  if (b.x > -INFINITY)
    s += b.y * expf(b.x - m);
  return make_float2(m, s);
}

// 8 lanes per row, at most 64 columns
__global__ void softmax_tile8(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
  cg::thread_block_tile<8> g = cg::tiled_partition<8>(cg::this_thread_block());
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
  if (row >= rows)
    return;
  x += (size_t)row * cols;
  y += (size_t)row * cols;
  float m = -INFINITY, s = 0.0f, e[8];
  for (int c = g.thread_rank(); c < cols; c += 8)
    m = fmaxf(m, x[c]);
  for (int o = 4; o; o /= 2)
    m = fmaxf(m, g.shfl_xor(m, o));
  for (int c = g.thread_rank(), i = 0; c < cols; c += 8, i++)
    s += e[i] = m > -INFINITY ? expf(x[c] - m) : 0.0f;
  for (int o = 4; o; o /= 2)
    s += g.shfl_xor(s, o);
  for (int c = g.thread_rank(), i = 0; c < cols; c += 8, i++)
    y[c] = s > 0.0f ? e[i] / s : 0.0f;
}

__device__ float2 block_merge(float2 a) {
  __shared__ float2 sh[BLOCK];
  __syncthreads();
  sh[threadIdx.x] = a;
  __syncthreads();
  for (int o = BLOCK / 2; o > 0; o >>= 1) {
    if ((int)threadIdx.x < o)
      sh[threadIdx.x] = merge(sh[threadIdx.x], sh[threadIdx.x + o]);
    __syncthreads();
  }
  return sh[0];
}

// calls f(index) for a scalar head and tail, f4(float4 index, first index) for the aligned middle
template <class F, class F4> __device__ void sweep(const float *p, int n, F f, F4 f4) {
  const int head = min(n, (int)((16 - ((uintptr_t)p & 15)) & 15) / 4), n4 = (n - head) / 4;
  for (int i = threadIdx.x; i < head; i += BLOCK)
    f(i);
  for (int i = threadIdx.x; i < n4; i += BLOCK)
    f4(head + 4 * i);
  for (int i = head + 4 * n4 + threadIdx.x; i < n; i += BLOCK)
    f(i);
}

__device__ float2 row_stats(const float *p, int n) {
  float2 a = make_float2(-INFINITY, 0.0f);
  sweep(
      p, n, [&](int i) { a = merge(a, make_float2(p[i], 1.0f)); },
      [&](int i) {
        const float4 t = *(const float4 *)(p + i);
        a = merge(a, merge(merge(make_float2(t.x, 1.0f), make_float2(t.y, 1.0f)),
                           merge(make_float2(t.z, 1.0f), make_float2(t.w, 1.0f))));
      });
  return block_merge(a);
}

__device__ void row_write(const float *p, float *q, int n, float2 a) {
  auto one = [a](float v) { return a.x == -INFINITY ? 0.0f : expf(v - a.x) / a.y; };
  if ((((uintptr_t)p ^ (uintptr_t)q) & 15) != 0)
    for (int i = threadIdx.x; i < n; i += BLOCK)
      q[i] = one(p[i]);
  else
    sweep(
        p, n, [&](int i) { q[i] = one(p[i]); },
        [&](int i) {
          const float4 t = *(const float4 *)(p + i);
          *(float4 *)(q + i) = make_float4(one(t.x), one(t.y), one(t.z), one(t.w));
        });
}

__global__ void softmax_persistent(const float *x, float *y, int rows, int cols) {
  for (int r = blockIdx.x; r < rows; r += gridDim.x)
    row_write(x + (size_t)r * cols, y + (size_t)r * cols, cols, row_stats(x + (size_t)r * cols, cols));
}

__global__ void split_stats(const float *x, float2 *part, int cols) {
  const int first = blockIdx.x * CHUNK;
  const float2 a = row_stats(x + (size_t)blockIdx.y * cols + first, min(CHUNK, cols - first));
  if (threadIdx.x == 0)
    part[blockIdx.y * gridDim.x + blockIdx.x] = a;
}

__global__ void split_write(const float *x, float *y, const float2 *part, int cols) {
  const int first = blockIdx.x * CHUNK;
  float2 a = make_float2(-INFINITY, 0.0f);
  for (int i = threadIdx.x; i < (int)gridDim.x; i += BLOCK)
    a = merge(a, part[blockIdx.y * gridDim.x + i]);
  a = block_merge(a);
  const size_t at = (size_t)blockIdx.y * cols + first;
  row_write(x + at, y + at, min(CHUNK, cols - first), a);
}

void run(const float *x, float *y, int rows, int cols) {
  if (rows <= 0 || cols <= 0)
    return;
  if (cols <= 64) {
    softmax_tile8<<<ceil_div(rows, 16), 128>>>(x, y, rows, cols);
  } else if (cols > 2 * CHUNK && rows <= 16) {
    const int chunks = ceil_div(cols, CHUNK);
    float2 *part;
    cudaMalloc(&part, sizeof(float2) * rows * chunks);
    split_stats<<<dim3(chunks, rows), BLOCK>>>(x, part, cols);
    split_write<<<dim3(chunks, rows), BLOCK>>>(x, y, part, cols);
    cudaFree(part);
  } else {
    softmax_persistent<<<std::min(rows, 16), BLOCK>>>(x, y, rows, cols);
  }
}

//--- main
int main(int argc, char **argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 24, cols = argc > 2 ? atoi(argv[2]) : 150;
  const int mask = argc > 3 ? atoi(argv[3]) : 5; // every mask-th entry (about) is -INFINITY, 0: none
  const size_t n = (size_t)std::max(rows, 0) * std::max(cols, 0);
  std::vector<float> x(n), y(n, -1.0f);
  uint32_t seed = 12345;
  for (size_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = ((int)(seed >> 8 & 0xffff) - 32768) / 4096.0f;
    if (mask > 0 && ((seed >> 24) % mask == 0 || i / cols == 3))
      x[i] = -INFINITY;
  }
  float *dx, *dy;
  cudaMalloc(&dx, (n + 1) * sizeof(float)), cudaMalloc(&dy, (n + 1) * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  run(dx, dy, rows, cols);
  cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0, weighted = 0;
  for (size_t i = 0; i < n; i++)
    sum += y[i], weighted += y[i] * (double)(i % 97);
  printf("sum %.5f weighted %.4f\n", sum, weighted);
  for (size_t i = 0; i < n; i += n / 8 + 1)
    printf("%zu %.6f\n", i, y[i]);
  return 0;
}
