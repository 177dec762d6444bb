//--- common
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// out[i] = in[0] + ... + in[i], 32-bit
static inline int blocks_for(int n, int per_block) { return (n - 1) / per_block + 1; }
//--- original
__global__ void hillis_steele_step(const int *src, int *dst, int n, int dist) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (i >= dist)
      dst[i] = src[i] + src[i - dist];
    else
      dst[i] = src[i];
  }
}

void run(const int *in, int *out, int n) {
  if (n <= 0)
    return;
  int *tmp;
  cudaMalloc(&tmp, n * sizeof(int));
  int *a = out, *b = tmp;
  cudaMemcpy(a, in, n * sizeof(int), cudaMemcpyDeviceToDevice);
  for (long long dist = 1; dist < n; dist *= 2) {
    hillis_steele_step<<<blocks_for(n, 256), 256>>>(a, b, n, (int)dist);
    int *t = a;
    a = b;
    b = t;
  }
  if (a != out)
    cudaMemcpy(out, a, n * sizeof(int), cudaMemcpyDeviceToDevice);
  cudaFree(tmp);
}
//--- recursive-tiles
constexpr int THREADS = 256, ITEMS = 4, TILE = THREADS * ITEMS;

__device__ __forceinline__ int warp_inclusive(int v) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int u = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d)
      v += u;
  }
  return v;
}

// Scans tiles of 1024; in and out may be the same array. sums == nullptr: total not wanted.
template <bool VEC> __global__ void scan_tiles(const int *in, int *out, int *sums, int n) {
  __shared__ int warp_total[THREADS / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int i = blockIdx.x * TILE + threadIdx.x * ITEMS;
  int4 v = make_int4(0, 0, 0, 0);
  if (VEC) {
    if (i < n)
      v = *reinterpret_cast<const int4 *>(in + i);
  } else {
    if (i < n)
      v.x = in[i];
    if (i + 1 < n)
      v.y = in[i + 1];
    if (i + 2 < n)
      v.z = in[i + 2];
    if (i + 3 < n)
      v.w = in[i + 3];
  }
  v.y += v.x;
  v.z += v.y;
  v.w += v.z;
  const int incl = warp_inclusive(v.w);
  if (lane == 31)
    warp_total[warp] = incl;
  __syncthreads();
  if (warp == 0) {
    int t = lane < THREADS / 32 ? warp_total[lane] : 0;
    t = warp_inclusive(t);
    if (lane < THREADS / 32)
      warp_total[lane] = t;
  }
  __syncthreads();
  const int before = incl - v.w + (warp ? warp_total[warp - 1] : 0);
  v.x += before;
  v.y += before;
  v.z += before;
  v.w += before;
  if (VEC) {
    if (i < n)
      *reinterpret_cast<int4 *>(out + i) = v;
  } else {
    if (i < n)
      out[i] = v.x;
    if (i + 1 < n)
      out[i + 1] = v.y;
    if (i + 2 < n)
      out[i + 2] = v.z;
    if (i + 3 < n)
      out[i + 3] = v.w;
  }
  if (sums && threadIdx.x == THREADS - 1)
    sums[blockIdx.x] = v.w;
}

__global__ void add_tile_offsets(int *out, const int *__restrict__ sums, int n) {
  const int add = sums[blockIdx.x]; // block b works on tile b + 1
  const int first = (blockIdx.x + 1) * TILE;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int i = first + k * THREADS + threadIdx.x;
    if (i < n)
      out[i] += add;
  }
}

static void scan_level(const int *in, int *out, int n) {
  const int tiles = blocks_for(n, TILE);
  const bool vec = n % 4 == 0 && ((size_t)in | (size_t)out) % 16 == 0;
  int *sums = nullptr;
  if (tiles > 1)
    cudaMalloc(&sums, tiles * sizeof(int));
  if (vec)
    scan_tiles<true><<<tiles, THREADS>>>(in, out, sums, n);
  else
    scan_tiles<false><<<tiles, THREADS>>>(in, out, sums, n);
  if (tiles == 1)
    return;
  scan_level(sums, sums, tiles);
  add_tile_offsets<<<tiles - 1, THREADS>>>(out, sums, n);
  cudaFree(sums);
}

void run(const int *in, int *out, int n) {
  if (n > 0)
    scan_level(in, out, n);
}
//--- lookback-chain
typedef unsigned long long u64;
enum { T = 128, K = 8, CHUNK = T * K };
#define FLAG_AGG (1ull << 32)
#define FLAG_PREFIX (2ull << 32)

__global__ void scan_warp(const int *in, int *out, int n) {
  int lane = threadIdx.x, v = lane < n ? in[lane] : 0;
  for (int d = 1; d < 32; d <<= 1) {
    int u = __shfl_up_sync(~0u, v, d);
    if (lane >= d)
      v += u;
  }
  if (lane < n)
    out[lane] = v;
}

// Scans one chunk staged in shared memory (padded: one word in 33) and returns its total.
__device__ int scan_chunk(const int *in, int n, int base, int *buf, int *wsum, int reg[K], int *excl) {
  for (int k = 0; k < K; k++) {
    int j = k * T + threadIdx.x;
    buf[j + j / 32] = base + j < n ? in[base + j] : 0;
  }
  __syncthreads();
  int sum = 0;
  for (int k = 0; k < K; k++) {
    int j = threadIdx.x * K + k;
    sum += buf[j + j / 32];
    reg[k] = sum;
  }
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, v = sum;
  for (int d = 1; d < 32; d <<= 1) {
    int u = __shfl_up_sync(~0u, v, d);
    if (lane >= d)
      v += u;
  }
  if (lane == 31)
    wsum[warp] = v;
  __syncthreads();
  int total = 0, before = 0;
  for (int w = 0; w < T / 32; w++) {
    if (w == warp)
      before = total;
    total += wsum[w];
  }
  *excl = before + v - sum;
  return total;
}

__device__ void store_chunk(int *out, int n, int base, int *buf, const int reg[K], int add) {
  for (int k = 0; k < K; k++) {
    int j = threadIdx.x * K + k;
    buf[j + j / 32] = reg[k] + add;
  }
  __syncthreads();
  for (int k = 0; k < K; k++) {
    int j = k * T + threadIdx.x;
    if (base + j < n)
      out[base + j] = buf[j + j / 32];
  }
}

__global__ void scan_one_block(const int *in, int *out, int n) {
  __shared__ int buf[CHUNK + CHUNK / 32], wsum[T / 32];
  int carry = 0;
  for (int base = 0; base < n; base += CHUNK) {
    int reg[K], excl;
    int total = scan_chunk(in, n, base, buf, wsum, reg, &excl);
    store_chunk(out, n, base, buf, reg, carry + excl);
    carry += total;
    __syncthreads();
  }
}

// state[t]: flag in the high half, value in the low half; state[chunks] is the ticket counter
__global__ void scan_lookback(const int *in, int *out, int n, u64 *state, int chunks) {
  __shared__ int buf[CHUNK + CHUNK / 32], wsum[T / 32], s_tile, s_prefix;
  if (threadIdx.x == 0)
    s_tile = (int)atomicAdd(&state[chunks], 1ull);
  __syncthreads();
  const int tile = s_tile;
  int reg[K], excl;
  int total = scan_chunk(in, n, tile * CHUNK, buf, wsum, reg, &excl);
  if (threadIdx.x == 0) {
    unsigned before = 0;
    if (tile > 0) {
      atomicExch(&state[tile], FLAG_AGG | (unsigned)total);
      for (int t = tile - 1; t >= 0;) {
        u64 s = atomicAdd(&state[t], 0ull);
        if (s >> 32 == 0)
          continue; // not published yet
        before += (unsigned)s;
        if (s & FLAG_PREFIX)
          break;
        t--;
      }
    }
    atomicExch(&state[tile], FLAG_PREFIX | (before + (unsigned)total));
    s_prefix = (int)before;
  }
  __syncthreads();
  store_chunk(out, n, tile * CHUNK, buf, reg, s_prefix + excl);
}

void run(const int *in, int *out, int n) {
  if (n <= 0)
    return;
  if (n <= 32) {
    scan_warp<<<1, 32>>>(in, out, n);
    return;
  }
  if (n < 4096) {
    scan_one_block<<<1, T>>>(in, out, n);
    return;
  }
  int chunks = blocks_for(n, CHUNK);
  u64 *state;
  cudaMalloc(&state, (chunks + 1) * sizeof(u64));
  cudaMemset(state, 0, (chunks + 1) * sizeof(u64));
  scan_lookback<<<chunks, T>>>(in, out, n, state, chunks);
  cudaFree(state);
}
//--- main
// usage: prog [n] [element offset of in]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 5000, off = argc > 2 ? atoi(argv[2]) : 0;
  if (n < 0 || off < 0)
    return 1;
  std::vector<int> x(n + 1), y(n + 1, 0);
  unsigned s = 2463534242u;
  for (int i = 0; i < n; ++i) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    x[i] = (int)(s % 2001u) - 980;
  }
  int *din, *dout;
  cudaMalloc(&din, (n + off + 1) * sizeof(int));
  cudaMalloc(&dout, (n + 1) * sizeof(int));
  cudaMemset(dout, 0, (n + 1) * sizeof(int));
  cudaMemcpy(din + off, x.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  run(din + off, dout, n);
  cudaMemcpy(y.data(), dout, (n + 1) * sizeof(int), cudaMemcpyDeviceToHost);
  unsigned long long h = 1469598103934665603ull;
  int bad = 0, acc = 0;
  for (int i = 0; i < n; ++i) {
    h = (h ^ (unsigned)y[i]) * 1099511628211ull;
    acc += x[i];
    bad += acc != y[i];
  }
  printf("n %d hash %016llx bad %d guard %d\n", n, h, bad, y[n]);
  for (int i = 0; i < n; i += n / 6 + 1)
    printf("%d: %d\n", i, y[i]);
  if (n)
    printf("last %d\n", y[n - 1]);
  cudaFree(din);
  cudaFree(dout);
  return cudaDeviceSynchronize() != cudaSuccess;
}
