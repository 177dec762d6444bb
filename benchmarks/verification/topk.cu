//--- common
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// the k (1..8) largest values of each row, largest first, with their columns; of equal values the lower column first.
// A row with fewer than k columns is filled up with value -INFINITY and column -1.
using u32 = unsigned int;
using u64 = unsigned long long;

//--- original
__global__ void topk_naive(const float *x, float *vals, int *idx, int rows, int cols, int k) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  const float *row = x + (size_t)r * cols;
  float prev_v = INFINITY;
  int prev_i = -1;
  for (int j = 0; j < k; j++) {
    float best_v = -INFINITY;
    int best_i = -1;
    for (int c = 0; c < cols; c++) {
      float v = row[c];
      bool after = v < prev_v || (v == prev_v && c > prev_i); // not chosen yet
      if (after && (best_i < 0 || v > best_v)) {
        best_v = v;
        best_i = c;
      }
    }
    vals[r * k + j] = best_v;
    idx[r * k + j] = best_i;
    prev_v = best_v;
    prev_i = best_i < 0 ? INT_MAX : best_i;
  }
}

void run(const float *x, float *vals, int *idx, int rows, int cols, int k) {
  if (rows <= 0 || k < 1 || k > 8)
    return;
  topk_naive<<<(rows + 63) / 64, 64>>>(x, vals, idx, rows, cols, k);
}

//--- private-lists-merge
// each lane keeps a sorted private list; lists are merged by rounds of "best head of all lanes"
template <int K> struct List {
  float v[K];
  int i[K]; // INT_MAX: empty

  static __device__ bool better(float va, int ia, float vb, int ib) { return va > vb || (va == vb && ia < ib); }

  __device__ void clear() {
    for (int j = 0; j < K; j++)
      v[j] = -INFINITY, i[j] = INT_MAX;
  }
  __device__ void push(float nv, int ni) {
    if (!better(nv, ni, v[K - 1], i[K - 1]))
      return;
    v[K - 1] = nv, i[K - 1] = ni;
#pragma unroll
    for (int j = K - 1; j > 0; j--) {
      if (better(v[j], i[j], v[j - 1], i[j - 1])) {
        float tv = v[j];
        v[j] = v[j - 1];
        v[j - 1] = tv;
        int ti = i[j];
        i[j] = i[j - 1];
        i[j - 1] = ti;
      }
    }
  }
  // all 32 lanes; afterwards out_v/out_i (written by lane 0) hold the best k <= K of the warp
  __device__ void warp_merge(float *out_v, int *out_i, int k) {
    for (int r = 0; r < k; r++) {
      float bv = v[0];
      int bi = i[0];
      for (int o = 16; o > 0; o >>= 1) {
        float ov = __shfl_xor_sync(0xffffffff, bv, o);
        int oi = __shfl_xor_sync(0xffffffff, bi, o);
        if (better(ov, oi, bv, bi))
          bv = ov, bi = oi;
      }
      if (bi == i[0]) { // columns are unique: only the winner pops (or everyone, if all is empty)
#pragma unroll
        for (int j = 0; j + 1 < K; j++)
          v[j] = v[j + 1], i[j] = i[j + 1];
        v[K - 1] = -INFINITY, i[K - 1] = INT_MAX;
      }
      if ((threadIdx.x & 31) == 0)
        out_v[r] = bv, out_i[r] = bi;
    }
  }
};

template <int K> __global__ void topk_warp(const float *x, float *vals, int *idx, int rows, int cols, int k) {
  __shared__ float sv[4][K];
  __shared__ int si[4][K];
  int w = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.x * 4 + w;
  if (r >= rows)
    return;
  List<K> l;
  l.clear();
  for (int c = lane; c < cols; c += 32)
    l.push(x[(size_t)r * cols + c], c);
  l.warp_merge(sv[w], si[w], k);
  __syncwarp();
  if (lane < k) {
    vals[r * k + lane] = sv[w][lane];
    idx[r * k + lane] = si[w][lane] == INT_MAX ? -1 : si[w][lane];
  }
}

template <int K, int WARPS> __global__ void topk_block(const float *x, float *vals, int *idx, int cols, int k) {
  __shared__ float sv[WARPS * K];
  __shared__ int si[WARPS * K];
  int w = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.x;
  List<K> l;
  l.clear();
  for (int c = threadIdx.x; c < cols; c += WARPS * 32)
    l.push(x[(size_t)r * cols + c], c);
  l.warp_merge(sv + w * k, si + w * k, k);
  __syncthreads();
  if (w != 0)
    return;
  l.clear();
  for (int e = lane; e < WARPS * k; e += 32)
    l.push(sv[e], si[e]);
  __syncwarp();
  l.warp_merge(sv, si, k);
  __syncwarp();
  if (lane < k) {
    vals[r * k + lane] = sv[lane];
    idx[r * k + lane] = si[lane] == INT_MAX ? -1 : si[lane];
  }
}

template <int K> void launch(const float *x, float *vals, int *idx, int rows, int cols, int k) {
  if (cols <= 512)
    topk_warp<K><<<(rows + 3) / 4, 128>>>(x, vals, idx, rows, cols, k);
  else if (cols <= 2048)
    topk_block<K, 4><<<rows, 128>>>(x, vals, idx, cols, k);
  else
    topk_block<K, 8><<<rows, 256>>>(x, vals, idx, cols, k);
}

void run(const float *x, float *vals, int *idx, int rows, int cols, int k) {
  if (rows <= 0)
    return;
  switch (k) {
  case 1: return launch<1>(x, vals, idx, rows, cols, k);
  case 2: return launch<2>(x, vals, idx, rows, cols, k);
  case 3:
  case 4: return launch<4>(x, vals, idx, rows, cols, k);
  case 5:
  case 6:
  case 7:
  case 8: return launch<8>(x, vals, idx, rows, cols, k);
  }
}

//--- packed-keys-two-pass
// (value, column) as one 64-bit key: greater key = greater value, then lower column; 0 is "nothing"
#define SEG 4096u

__device__ __forceinline__ u64 make_key(float v, u32 c) {
  if (v != v)
    return 0;
  u32 b = __float_as_uint(v == 0.0f ? 0.0f : v); // -0 and +0 are equal
  b = b & 0x80000000u ? ~b : b | 0x80000000u;
  return (u64)b << 32 | (0xffffffffu - c);
}
__device__ __forceinline__ u64 warp_max(u64 k) {
  for (int o = 16; o > 0; o >>= 1) {
    u64 t = __shfl_xor_sync(0xffffffffu, k, o);
    k = t > k ? t : k;
  }
  return k;
}
__device__ u64 block_max(u64 k) {
  __shared__ u64 sh[8];
  k = warp_max(k);
  if (threadIdx.x % 32 == 0)
    sh[threadIdx.x / 32] = k;
  __syncthreads();
  k = warp_max(threadIdx.x % 32 < blockDim.x / 32 ? sh[threadIdx.x % 32] : 0);
  __syncthreads();
  return k;
}
__device__ __forceinline__ void emit(const float *row, float *v, int *i, u64 key) {
  u32 c = 0xffffffffu - (u32)key;
  *v = key ? row[c] : -INFINITY;
  *i = key ? (int)c : -1;
}

// up to 256 columns: 8 keys a lane in registers
__global__ void keys_warp(const float *x, float *vals, int *idx, u32 rows, u32 cols, u32 k) {
  u32 r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows)
    return;
  const float *row = x + (size_t)r * cols;
  u64 key[8];
#pragma unroll
  for (u32 e = 0; e < 8; e++) {
    u32 c = e * 32 + threadIdx.x;
    key[e] = c < cols ? make_key(row[c], c) : 0;
  }
  for (u32 j = 0; j < k; j++) {
    u64 best = 0;
#pragma unroll
    for (u32 e = 0; e < 8; e++)
      best = key[e] > best ? key[e] : best;
    best = warp_max(best);
#pragma unroll
    for (u32 e = 0; e < 8; e++)
      key[e] = key[e] == best ? 0 : key[e];
    if (threadIdx.x == 0)
      emit(row, vals + r * k + j, idx + r * k + j, best);
  }
}

// a block takes one segment of a row into shared memory; the best k go to the result, or to part[row][segment][k]
__global__ void keys_block(const float *x, float *vals, int *idx, u32 cols, u32 k, u64 *part, bool vec) {
  extern __shared__ u64 keys[];
  const float *row = x + (size_t)blockIdx.x * cols;
  u32 first = blockIdx.y * SEG, n = min(SEG, cols - first);
  if (vec) {
    for (u32 i = threadIdx.x * 4; i < n; i += blockDim.x * 4) {
      float4 f = *reinterpret_cast<const float4 *>(row + first + i);
      keys[i] = make_key(f.x, first + i);
      keys[i + 1] = make_key(f.y, first + i + 1);
      keys[i + 2] = make_key(f.z, first + i + 2);
      keys[i + 3] = make_key(f.w, first + i + 3);
    }
  } else {
    for (u32 i = threadIdx.x; i < n; i += blockDim.x)
      keys[i] = make_key(row[first + i], first + i);
  }
  __syncthreads();
  u64 bound = ~0ull; // only keys below the last one chosen
  for (u32 j = 0; j < k; j++) {
    u64 best = 0;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x)
      if (keys[i] < bound && keys[i] > best)
        best = keys[i];
    bound = block_max(best);
    if (threadIdx.x != 0)
      continue;
    if (part)
      part[((size_t)blockIdx.x * gridDim.y + blockIdx.y) * k + j] = bound;
    else
      emit(row, vals + blockIdx.x * k + j, idx + blockIdx.x * k + j, bound);
  }
}

__global__ void keys_merge(const float *x, float *vals, int *idx, u32 cols, u32 k, const u64 *part, u32 n) {
  part += (size_t)blockIdx.x * n;
  u64 bound = ~0ull;
  for (u32 j = 0; j < k; j++) {
    u64 best = 0;
    for (u32 i = threadIdx.x; i < n; i += 32)
      if (part[i] < bound && part[i] > best)
        best = part[i];
    bound = warp_max(best);
    if (threadIdx.x == 0)
      emit(x + (size_t)blockIdx.x * cols, vals + blockIdx.x * k + j, idx + blockIdx.x * k + j, bound);
  }
}

void run(const float *x, float *vals, int *idx, int rows, int cols, int k) {
  if (rows <= 0 || k < 1 || k > 8)
    return;
  if (cols <= 256) {
    keys_warp<<<(rows + 3) / 4, dim3(32, 4)>>>(x, vals, idx, rows, cols, k);
    return;
  }
  bool vec = cols % 4 == 0 && (uintptr_t)x % 16 == 0;
  if (cols <= (int)SEG) {
    keys_block<<<rows, 128, cols * sizeof(u64)>>>(x, vals, idx, cols, k, nullptr, vec);
    return;
  }
  u32 segs = (cols + SEG - 1) / SEG;
  u64 *part;
  cudaMalloc(&part, sizeof(u64) * rows * segs * k);
  keys_block<<<dim3(rows, segs), 256, SEG * sizeof(u64)>>>(x, vals, idx, cols, k, part, vec);
  keys_merge<<<rows, 32>>>(x, vals, idx, cols, k, part, segs * k);
  cudaFree(part);
}

//--- main
int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 30, cols = argc > 2 ? atoi(argv[2]) : 90, k = argc > 3 ? atoi(argv[3]) : 5;
  if (rows < 0 || cols < 0)
    rows = cols = 0;
  if (k < 1 || k > 8)
    k = 8;
  size_t n = (size_t)rows * cols, m = (size_t)rows * k;
  std::vector<float> x(n), v(m);
  std::vector<int> p(m);
  u64 s = 99;
  for (auto &f : x) { // many equal values, some -INFINITY, some -0
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    f = ((int)(s >> 33 & 255) - 200) * ((s >> 50 & 1) ? 0.25f : -0.0625f);
    if ((s >> 55 & 15) == 3)
      f = -INFINITY;
  }
  float *dx, *dv;
  int *dp;
  cudaMalloc(&dx, n * 4 + 4), cudaMalloc(&dv, m * 4 + 4), cudaMalloc(&dp, m * 4 + 4);
  cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice);
  run(dx, dv, dp, rows, cols, k);
  cudaMemcpy(v.data(), dv, m * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(p.data(), dp, m * 4, cudaMemcpyDeviceToHost);
  double sum = 0;
  long long places = 0;
  for (size_t i = 0; i < m; i++)
    sum += std::isinf(v[i]) ? -1.0 : v[i] * (1 + i % 7), places += p[i] * (long long)(1 + i % 11);
  printf("values %.4f places %lld\n", sum, places);
  for (size_t i = 0; i < m; i += m / 9 + 1)
    printf("%zu: %g at %d\n", i, v[i], p[i]);
  return 0;
}
