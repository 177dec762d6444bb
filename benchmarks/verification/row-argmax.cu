//--- common
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// idx[r] = smallest column that holds the largest value of row r, val[r] = that value. No NaNs.
//--- original
__global__ void argmax_rows(const float *m, int rows, int cols, int *idx, float *val) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  const float *row = m + (size_t)r * cols;
  int best = 0;
  for (int c = 1; c < cols; c++)
    if (row[c] > row[best])
      best = c;
  idx[r] = best;
  val[r] = row[best];
}

void run(const float *m, int rows, int cols, int *idx, float *val) {
  if (rows <= 0 || cols <= 0)
    return;
  argmax_rows<<<(rows + 63) / 64, 64>>>(m, rows, cols, idx, val);
}
//--- warp-or-block-per-row
struct Best {
  float v;
  int c;
  __device__ void take(float v2, int c2) {
    if (v2 > v || (v2 == v && c2 < c)) {
      v = v2;
      c = c2;
    }
  }
};

template <int W> __device__ __forceinline__ Best warp_best(Best b) {
#pragma unroll
  for (int d = W / 2; d > 0; d /= 2) {
    const float v = __shfl_down_sync(0xffffffffu, b.v, d, W);
    const int c = __shfl_down_sync(0xffffffffu, b.c, d, W);
    b.take(v, c);
  }
  return b;
}

template <bool VEC>
__device__ __forceinline__ Best scan_row(const float *__restrict__ row, int cols, int me, int step) {
  Best b = {-INFINITY, INT_MAX};
  if (VEC) {
    const float4 *q = reinterpret_cast<const float4 *>(row);
    for (int j = me; j < cols / 4; j += step) {
      const float4 t = __ldg(q + j);
      b.take(t.x, 4 * j);
      b.take(t.y, 4 * j + 1);
      b.take(t.z, 4 * j + 2);
      b.take(t.w, 4 * j + 3);
    }
  } else {
    for (int j = me; j < cols; j += step)
      b.take(__ldg(row + j), j);
  }
  return b;
}

// W lanes per row (W divides 32)
template <int W, bool VEC>
__global__ void argmax_warps(const float *__restrict__ m, int rows, int cols, int *__restrict__ idx,
                             float *__restrict__ val) {
  const int per = blockDim.x / W, sub = threadIdx.x / W, lane = threadIdx.x % W;
  for (int r0 = blockIdx.x * per; r0 < rows; r0 += gridDim.x * per) {
    const int r = r0 + sub;
    Best b = {-INFINITY, INT_MAX};
    if (r < rows)
      b = scan_row<VEC>(m + (size_t)r * cols, cols, lane, W);
    b = warp_best<W>(b);
    if (lane == 0 && r < rows) {
      idx[r] = b.c;
      val[r] = b.v;
    }
    __syncwarp();
  }
}

template <bool VEC>
__global__ void argmax_block(const float *__restrict__ m, int rows, int cols, int *__restrict__ idx,
                             float *__restrict__ val) {
  __shared__ Best part[8];
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    Best b = warp_best<32>(scan_row<VEC>(m + (size_t)r * cols, cols, threadIdx.x, 256));
    if (threadIdx.x % 32 == 0)
      part[threadIdx.x / 32] = b;
    __syncthreads();
    if (threadIdx.x < 8) {
      b = part[threadIdx.x];
#pragma unroll
      for (int d = 4; d > 0; d /= 2) {
        const float v = __shfl_down_sync(0xffu, b.v, d, 8);
        const int c = __shfl_down_sync(0xffu, b.c, d, 8);
        b.take(v, c);
      }
      if (threadIdx.x == 0) {
        idx[r] = b.c;
        val[r] = b.v;
      }
    }
    __syncthreads();
  }
}

void run(const float *m, int rows, int cols, int *idx, float *val) {
  if (rows <= 0 || cols <= 0)
    return;
  const bool vec = cols % 4 == 0 && (uintptr_t)m % 16 == 0;
  auto grid = [rows](int per) {
    const int g = (rows - 1) / per + 1;
    return g > 65535 ? 65535 : g;
  };
  if (cols <= 24) {
    argmax_warps<4, false><<<grid(32), 128>>>(m, rows, cols, idx, val);
  } else if (cols <= 768) {
    if (vec)
      argmax_warps<32, true><<<grid(4), 128>>>(m, rows, cols, idx, val);
    else
      argmax_warps<32, false><<<grid(4), 128>>>(m, rows, cols, idx, val);
  } else {
    if (vec)
      argmax_block<true><<<grid(1), 256>>>(m, rows, cols, idx, val);
    else
      argmax_block<false><<<grid(1), 256>>>(m, rows, cols, idx, val);
  }
}
//--- packed-key
typedef unsigned long long Key;

// order-preserving image of the value in the high word, complement of the column in the low word
__device__ static Key make_key(float x, unsigned col) {
  if (x != x)
    return 0;
  unsigned u = __float_as_uint(x == 0.0f ? 0.0f : x); // -0 and +0 tie
  u = (u & 0x80000000u) ? ~u : (u | 0x80000000u);
  return ((Key)u << 32) | (0xffffffffu - col);
}
__device__ static Key key_max(Key a, Key b) { return a > b ? a : b; }
__device__ static unsigned key_col(Key k) { return 0xffffffffu - (unsigned)k; }

#define NARROW 16
__global__ void argmax_narrow(const float *m, int rows, int cols, int *idx, float *val) {
  __shared__ float sh[64 * (NARROW + 1)]; // 64 rows, odd pitch
  const int r0 = blockIdx.x * 64, have = min(64, rows - r0), pitch = cols | 1;
  for (int j = threadIdx.x; j < have * cols; j += 64)
    sh[j / cols * pitch + j % cols] = m[(size_t)r0 * cols + j];
  __syncthreads();
  const int t = threadIdx.x;
  if (t >= have)
    return;
  float best = sh[t * pitch];
  int at = 0;
  for (int c = 1; c < cols; c++) {
    float x = sh[t * pitch + c];
    if (x > best) {
      best = x;
      at = c;
    }
  }
  idx[r0 + t] = at;
  val[r0 + t] = best;
}

__device__ static Key part_of_row(const float *row, unsigned begin, unsigned end, unsigned step) {
  Key k0 = 0, k1 = 0, k2 = 0, k3 = 0;
  unsigned c = begin + threadIdx.x;
  for (; c + 3 * step < end; c += 4 * step) {
    k0 = key_max(k0, make_key(row[c], c));
    k1 = key_max(k1, make_key(row[c + step], c + step));
    k2 = key_max(k2, make_key(row[c + 2 * step], c + 2 * step));
    k3 = key_max(k3, make_key(row[c + 3 * step], c + 3 * step));
  }
  for (; c < end; c += step)
    k0 = key_max(k0, make_key(row[c], c));
  return key_max(key_max(k0, k1), key_max(k2, k3));
}

__device__ static Key block_max(Key k, Key *sh) // blockDim.x == 128
{
  sh[threadIdx.x] = k;
  __syncthreads();
  for (unsigned w = 64; w >= 1; w /= 2) {
    if (threadIdx.x < w)
      sh[threadIdx.x] = key_max(sh[threadIdx.x], sh[threadIdx.x + w]);
    __syncthreads();
  }
  k = sh[0];
  __syncthreads();
  return k;
}

__global__ void argmax_mid(const float *m, int rows, int cols, int *idx, float *val) {
  __shared__ Key sh[128];
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    const float *row = m + (size_t)r * cols;
    Key k = block_max(part_of_row(row, 0, cols, 128), sh);
    if (threadIdx.x == 0) {
      idx[r] = (int)key_col(k);
      val[r] = row[key_col(k)];
    }
  }
}

__global__ void argmax_wide(const float *m, unsigned cols, unsigned piece, Key *keys) {
  __shared__ Key sh[128];
  const unsigned begin = blockIdx.x * piece, end = cols - begin < piece ? cols : begin + piece;
  Key k = block_max(part_of_row(m + (size_t)blockIdx.y * cols, begin, end, 128), sh);
  if (threadIdx.x == 0)
    atomicMax(keys + blockIdx.y, k);
}

__global__ void unpack(const float *m, int rows, int cols, const Key *keys, int *idx, float *val) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    idx[r] = (int)key_col(keys[r]);
    val[r] = m[(size_t)r * cols + key_col(keys[r])];
  }
}

void run(const float *m, int rows, int cols, int *idx, float *val) {
  if (rows <= 0 || cols <= 0)
    return;
  if (cols <= NARROW) {
    argmax_narrow<<<(rows + 63) / 64, 64>>>(m, rows, cols, idx, val);
  } else if (cols >= 4096 && rows <= 1024) {
    Key *keys;
    cudaMalloc(&keys, rows * sizeof(Key));
    cudaMemset(keys, 0, rows * sizeof(Key));
    const int piece = 1536, pieces = (cols - 1) / piece + 1;
    argmax_wide<<<dim3(pieces, rows), 128>>>(m, cols, piece, keys);
    unpack<<<(rows + 127) / 128, 128>>>(m, rows, cols, keys, idx, val);
    cudaFree(keys);
  } else {
    argmax_mid<<<(rows < 16384 ? rows : 16384), 128>>>(m, rows, cols, idx, val);
  }
}
//--- main
// usage: prog [rows] [cols] [distinct values] [element offset]
int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 120, cols = argc > 2 ? atoi(argv[2]) : 60;
  int distinct = argc > 3 ? atoi(argv[3]) : 41, off = argc > 4 ? atoi(argv[4]) : 0;
  if (rows < 0 || cols < 0 || distinct < 1 || off < 0)
    return 1;
  size_t n = (size_t)rows * cols;
  std::vector<float> h(n + 1), v(rows + 1);
  std::vector<int> ix(rows + 1);
  unsigned s = 60606u;
  for (size_t i = 0; i < n; i++) {
    s = s * 134775813u + 1u;
    h[i] = (float)((int)((s >> 10) % (unsigned)distinct) - distinct / 2 - (i / cols % 3 == 0 ? distinct : 0)) * 0.375f;
    if (h[i] == 0.0f && (s >> 30))
      h[i] = -0.0f;
  }
  float *m, *val;
  int *idx;
  cudaMalloc(&m, (n + off + 1) * sizeof(float));
  cudaMalloc(&val, (rows + 1) * sizeof(float));
  cudaMalloc(&idx, (rows + 1) * sizeof(int));
  cudaMemset(val, 0, (rows + 1) * sizeof(float));
  cudaMemset(idx, 0, (rows + 1) * sizeof(int));
  cudaMemcpy(m + off, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  run(m + off, rows, cols, idx, val);
  cudaMemcpy(v.data(), val, (rows + 1) * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(ix.data(), idx, (rows + 1) * sizeof(int), cudaMemcpyDeviceToHost);
  unsigned long long hash = 0;
  double sum = 0;
  for (int r = 0; r <= rows; r++) {
    hash = hash * 1000003u + (unsigned)ix[r];
    sum += v[r] * (1 + r % 6);
  }
  printf("%d x %d hash %016llx sum %.4f\n", rows, cols, hash, sum);
  for (int r = 0; r < rows; r += rows / 6 + 1)
    printf("row %d: col %d value %.3f\n", r, ix[r], v[r]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
