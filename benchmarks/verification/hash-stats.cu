//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

typedef unsigned long long u64;

// hash[i] = mix(x[i], i); over all i: set bits of x, wrapping sum, xor and minimum of the hashes
struct Stats {
  u64 bits, sum, xr, min;
};
#define GOLDEN 0x9e3779b97f4a7c15ull
//--- original
__global__ void init_stats(Stats *s) {
  s->bits = s->sum = s->xr = 0;
  s->min = ~0ull;
}

__global__ void hash_kernel(const unsigned *x, int n, u64 seed, u64 *hash, Stats *s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  u64 h = x[i] + seed + GOLDEN * (u64)(i + 1);
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9ull;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebull;
  h ^= h >> 31;
  hash[i] = h;
  int bits = 0;
  for (unsigned v = x[i]; v != 0; v >>= 1)
    bits += v & 1;
  atomicAdd(&s->bits, (u64)bits);
  atomicAdd(&s->sum, h);
  atomicXor(&s->xr, h);
  atomicMin(&s->min, h);
}

void run(const unsigned *x, int n, u64 seed, u64 *hash, Stats *stats) {
  init_stats<<<1, 1>>>(stats);
  if (n <= 0)
    return;
  hash_kernel<<<(n + 255) / 256, 256>>>(x, n, seed, hash, stats);
}
//--- block-reduce-atomics
struct Acc {
  unsigned bits = 0;
  u64 sum = 0, xr = 0, mn = ~0ull;

  __device__ u64 feed(unsigned v, u64 h) {
    bits += __popc(v);
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    h ^= h >> 31;
    sum += h;
    xr ^= h;
    if (h < mn)
      mn = h;
    return h;
  }
  __device__ void fold_warp() {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
      bits += __shfl_xor_sync(0xffffffffu, bits, d);
      sum += __shfl_xor_sync(0xffffffffu, sum, d);
      xr ^= __shfl_xor_sync(0xffffffffu, xr, d);
      const u64 o = __shfl_xor_sync(0xffffffffu, mn, d);
      mn = o < mn ? o : mn;
    }
  }
};

__device__ void finish_block(Acc &a, Stats *s) {
  __shared__ u64 b_bits, b_sum, b_xr, b_min;
  if (threadIdx.x == 0) {
    b_bits = b_sum = b_xr = 0;
    b_min = ~0ull;
  }
  __syncthreads();
  a.fold_warp();
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(&b_bits, (u64)a.bits);
    atomicAdd(&b_sum, a.sum);
    atomicXor(&b_xr, a.xr);
    atomicMin(&b_min, a.mn);
  }
  __syncthreads();
  switch (threadIdx.x) {
  case 0: atomicAdd(&s->bits, b_bits); break;
  case 1: atomicAdd(&s->sum, b_sum); break;
  case 2: atomicXor(&s->xr, b_xr); break;
  case 3: atomicMin(&s->min, b_min); break;
  }
}

__global__ void hash_scalar(const unsigned *__restrict__ x, int n, u64 seed, u64 *__restrict__ hash, Stats *s) {
  Acc a;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned v = __ldg(x + i);
    hash[i] = a.feed(v, v + seed + GOLDEN * (u64)(i + 1));
  }
  finish_block(a, s);
}

// uint4 in, ulonglong2 out; n % 4 == 0
__global__ void hash_vec4(const uint4 *__restrict__ x, int n4, u64 seed, ulonglong2 *__restrict__ hash, Stats *s) {
  Acc a;
  for (int q = blockIdx.x * blockDim.x + threadIdx.x; q < n4; q += gridDim.x * blockDim.x) {
    const uint4 v = __ldg(x + q);
    const u64 g = seed + GOLDEN * (4ull * q + 1);
    ulonglong2 lo, hi;
    lo.x = a.feed(v.x, g + v.x);
    lo.y = a.feed(v.y, g + GOLDEN + v.y);
    hi.x = a.feed(v.z, g + 2 * GOLDEN + v.z);
    hi.y = a.feed(v.w, g + 3 * GOLDEN + v.w);
    hash[2 * q] = lo;
    hash[2 * q + 1] = hi;
  }
  finish_block(a, s);
}

__global__ void reset_stats(Stats *s) {
  u64 *w = reinterpret_cast<u64 *>(s);
  if (threadIdx.x < 4)
    w[threadIdx.x] = threadIdx.x == 3 ? ~0ull : 0ull;
}

void run(const unsigned *x, int n, u64 seed, u64 *hash, Stats *stats) {
  reset_stats<<<1, 32>>>(stats);
  if (n <= 0)
    return;
  const bool vec = n % 4 == 0 && ((uintptr_t)x | (uintptr_t)hash) % 16 == 0;
  int blocks = ((vec ? n / 4 : n) + 255) / 256;
  if (blocks > 320)
    blocks = 320;
  if (vec)
    hash_vec4<<<blocks, 256>>>((const uint4 *)x, n / 4, seed, (ulonglong2 *)hash, stats);
  else
    hash_scalar<<<blocks, 256>>>(x, n, seed, hash, stats);
}
//--- partials-unrolled
#define MIX(h)                                                                                                         \
  do {                                                                                                                 \
    (h) ^= (h) >> 30;                                                                                                  \
    (h) *= 0xbf58476d1ce4e5b9ull;                                                                                      \
    (h) ^= (h) >> 27;                                                                                                  \
    (h) *= 0x94d049bb133111ebull;                                                                                      \
    (h) ^= (h) >> 31;                                                                                                  \
  } while (0)
#define MIN64(a, b) ((a) < (b) ? (a) : (b))

static __device__ void join(Stats *a, const Stats *b) {
  a->bits += b->bits;
  a->sum += b->sum;
  a->xr ^= b->xr;
  a->min = MIN64(a->min, b->min);
}

// tree over the block in shared memory, blockDim.x a power of two up to 128; result in sh[0]
static __device__ void tree(Stats mine, Stats *sh) {
  sh[threadIdx.x] = mine;
  for (unsigned w = blockDim.x / 2; w != 0; w >>= 1) {
    __syncthreads();
    if (threadIdx.x < w)
      join(&sh[threadIdx.x], &sh[threadIdx.x + w]);
  }
  __syncthreads();
}

// PER elements per thread in a blocked, interleaved order; the set bits of two words are counted at once
template <int PER> __global__ void hash_tiles(const unsigned *x, unsigned n, u64 seed, u64 *hash, Stats *part) {
  __shared__ Stats sh[128];
  const unsigned tile = blockDim.x * PER, base = blockIdx.x * tile + threadIdx.x;
  Stats a = {0, 0, 0, ~0ull};
  u64 odd = 0;
  if (blockIdx.x * tile + tile <= n) {
    unsigned v[PER];
#pragma unroll
    for (int k = 0; k < PER; k++)
      v[k] = x[base + k * blockDim.x];
#pragma unroll
    for (int k = 0; k < PER; k++) {
      u64 h = v[k] + seed + GOLDEN * ((u64)(base + k * blockDim.x) + 1);
      MIX(h);
      hash[base + k * blockDim.x] = h;
      a.sum += h;
      a.xr ^= h;
      a.min = MIN64(a.min, h);
      if (k % 2 == 0)
        odd = v[k];
      else
        a.bits += __popcll(odd << 32 | v[k]);
    }
    if (PER % 2 == 1)
      a.bits += __popcll(odd);
  } else {
    for (unsigned i = base; i < n; i += blockDim.x) {
      u64 h = x[i] + seed + GOLDEN * ((u64)i + 1);
      MIX(h);
      hash[i] = h;
      Stats one = {(u64)__popc(x[i]), h, h, h};
      join(&a, &one);
    }
  }
  tree(a, sh);
  if (threadIdx.x == 0)
    part[blockIdx.x] = sh[0];
}

__global__ void join_parts(const Stats *part, int m, Stats *out) {
  __shared__ Stats sh[128];
  Stats a = {0, 0, 0, ~0ull};
  for (int i = threadIdx.x; i < m; i += blockDim.x)
    join(&a, part + i);
  tree(a, sh);
  if (threadIdx.x == 0)
    *out = sh[0];
}

void run(const unsigned *x, int n, u64 seed, u64 *hash, Stats *stats) {
  if (n <= 0) {
    join_parts<<<1, 32>>>(nullptr, 0, stats);
    return;
  }
  if (n <= 128) { // one block writes the result itself
    int threads = 32;
    while (threads < n)
      threads *= 2;
    hash_tiles<1><<<1, threads>>>(x, n, seed, hash, stats);
    return;
  }
  int per = n >= 65536 ? 8 : n >= 4096 ? 4 : 1, blocks = (n - 1) / (128 * per) + 1;
  Stats *part;
  cudaMalloc(&part, blocks * sizeof(Stats));
  switch (per) {
  case 8: hash_tiles<8><<<blocks, 128>>>(x, n, seed, hash, part); break;
  case 4: hash_tiles<4><<<blocks, 128>>>(x, n, seed, hash, part); break;
  default: hash_tiles<1><<<blocks, 128>>>(x, n, seed, hash, part);
  }
  join_parts<<<1, 128>>>(part, blocks, stats);
  cudaFree(part);
}
//--- main
// usage: prog [n] [element offset of x]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 3500, off = argc > 2 ? atoi(argv[2]) : 0;
  if (n < 0 || off < 0)
    return 1;
  unsigned *hx = (unsigned *)malloc((n + 1) * sizeof(unsigned));
  u64 *hh = (u64 *)malloc((n + 1) * sizeof(u64));
  unsigned s = 17u;
  for (int i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    hx[i] = i % 4 == 0 ? s >> 20 : s ^ (s >> 13);
  }
  unsigned *x;
  u64 *hash;
  Stats *st, r;
  cudaMalloc(&x, (n + off + 1) * sizeof(unsigned));
  cudaMalloc(&hash, (n + 1) * sizeof(u64));
  cudaMalloc(&st, sizeof(Stats));
  cudaMemset(hash, 0, (n + 1) * sizeof(u64));
  cudaMemset(st, 0x5a, sizeof(Stats));
  cudaMemcpy(x + off, hx, n * sizeof(unsigned), cudaMemcpyHostToDevice);
  run(x + off, n, 0x1234567ull + n, hash, st);
  cudaMemcpy(hh, hash, (n + 1) * sizeof(u64), cudaMemcpyDeviceToHost);
  cudaMemcpy(&r, st, sizeof r, cudaMemcpyDeviceToHost);
  u64 f = 0;
  for (int i = 0; i <= n; i++)
    f = f * 31 + hh[i];
  printf("n %d bits %llu sum %016llx xor %016llx min %016llx all %016llx\n", n, r.bits, r.sum, r.xr, r.min, f);
  for (int i = 0; i < n; i += n / 4 + 1)
    printf("%d: %08x %016llx\n", i, hx[i], hh[i]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
