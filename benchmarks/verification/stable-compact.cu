//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

struct Item {
  int id;
  float w;
};

// kept in order: heavy items whose id is not a multiple of three; out beyond *count stays as it was
__host__ __device__ inline bool keep(const Item &t, float thr) { return t.w > thr && t.id % 3 != 0; }
//--- original
__global__ void mark(const Item *in, int n, float thr, int *flag) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    flag[i] = keep(in[i], thr) ? 1 : 0;
}

__global__ void positions(const int *flag, int n, int *pos, int *count) {
  int c = 0;
  for (int i = 0; i < n; i++) {
    pos[i] = c;
    c += flag[i];
  }
  *count = c;
}

__global__ void scatter(const Item *in, int n, const int *flag, const int *pos, Item *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && flag[i])
    out[pos[i]] = in[i];
}

void run(const Item *in, int n, float thr, Item *out, int *count) {
  cudaMemset(count, 0, sizeof(int));
  if (n <= 0)
    return;
  int *flag, *pos;
  cudaMalloc(&flag, 2 * (size_t)n * sizeof(int));
  pos = flag + n;
  mark<<<(n + 255) / 256, 256>>>(in, n, thr, flag);
  positions<<<1, 1>>>(flag, n, pos, count);
  scatter<<<(n + 255) / 256, 256>>>(in, n, flag, pos, out);
  cudaFree(flag);
}
//--- ballot-two-pass
constexpr unsigned FULL = 0xffffffffu;

// Exclusive rank of this thread among the kept ones of the block, and the block's total.
template <int WARPS> __device__ int block_rank(bool kept, int &total) {
  __shared__ int warp_cnt[WARPS];
  const unsigned lane = threadIdx.x & 31u, warp = threadIdx.x >> 5;
  const unsigned votes = __ballot_sync(FULL, kept);
  if (lane == 0)
    warp_cnt[warp] = __popc(votes);
  __syncthreads();
  if (warp == 0) {
    int c = lane < WARPS ? warp_cnt[lane] : 0;
#pragma unroll
    for (int d = 1; d < WARPS; d <<= 1) {
      const int u = __shfl_up_sync(FULL, c, d);
      if (lane >= d)
        c += u;
    }
    if (lane < WARPS)
      warp_cnt[lane] = c;
  }
  __syncthreads();
  total = warp_cnt[WARPS - 1];
  return (warp ? warp_cnt[warp - 1] : 0) + __popc(votes & ((1u << lane) - 1u));
}

__global__ void __launch_bounds__(1024)
    compact_one_block(const Item *__restrict__ in, int n, float thr, Item *__restrict__ out, int *count) {
  Item t = {0, 0.0f};
  const int i = threadIdx.x;
  bool kept = false;
  if (i < n) {
    t = in[i];
    kept = keep(t, thr);
  }
  int total;
  const int r = block_rank<32>(kept, total);
  if (kept)
    out[r] = t;
  if (i == 0)
    *count = total;
}

__global__ void count_blocks(const Item *__restrict__ in, int n, float thr, int *__restrict__ cnt) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int c = __syncthreads_count(i < n && keep(in[i], thr));
  if (threadIdx.x == 0)
    cnt[blockIdx.x] = c;
}

// in place exclusive scan by one block of 512, any m
__global__ void scan_counts(int *cnt, int m, int *count) {
  __shared__ int s[512];
  int carry = 0;
  for (int base = 0; base < m; base += 512) {
    const int i = base + threadIdx.x, v = i < m ? cnt[i] : 0;
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < 512; d *= 2) {
      const int u = threadIdx.x >= d ? s[threadIdx.x - d] : 0;
      __syncthreads();
      s[threadIdx.x] += u;
      __syncthreads();
    }
    if (i < m)
      cnt[i] = carry + s[threadIdx.x] - v;
    carry += s[511];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    *count = carry;
}

__global__ void scatter_blocks(const Item *__restrict__ in, int n, float thr, const int *__restrict__ first,
                               Item *__restrict__ out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const bool kept = i < n && keep(in[i], thr);
  int total;
  const int r = block_rank<8>(kept, total);
  if (kept)
    out[first[blockIdx.x] + r] = in[i];
}

void run(const Item *in, int n, float thr, Item *out, int *count) {
  if (n <= 0) {
    cudaMemset(count, 0, sizeof(int));
    return;
  }
  if (n <= 1024) {
    compact_one_block<<<1, 1024>>>(in, n, thr, out, count);
    return;
  }
  const int blocks = (n - 1) / 256 + 1;
  int *cnt;
  cudaMalloc(&cnt, blocks * sizeof(int));
  count_blocks<<<blocks, 256>>>(in, n, thr, cnt);
  scan_counts<<<1, 512>>>(cnt, blocks, count);
  scatter_blocks<<<blocks, 256>>>(in, n, thr, cnt, out);
  cudaFree(cnt);
}
//--- masks-eight-per-thread
#define IPT 8
#define BT 128
#define TILE_ITEMS (IPT * BT)

// eight consecutive items -> bit mask of the kept ones
template <bool VEC> __device__ unsigned load_mask(const Item *in, int n, int i, float thr, Item r[IPT]) {
  unsigned mask = 0;
  if (VEC && i + IPT <= n) {
    const float4 *q = (const float4 *)(in + i);
#pragma unroll
    for (int k = 0; k < IPT / 2; k++) {
      float4 f = q[k];
      r[2 * k].id = __float_as_int(f.x);
      r[2 * k].w = f.y;
      r[2 * k + 1].id = __float_as_int(f.z);
      r[2 * k + 1].w = f.w;
    }
#pragma unroll
    for (int k = 0; k < IPT; k++)
      mask |= (unsigned)keep(r[k], thr) << k;
  } else {
    for (int k = 0; k < IPT; k++) {
      if (i + k >= n)
        break;
      r[k] = in[i + k];
      if (keep(r[k], thr))
        mask |= 1u << k;
    }
  }
  return mask;
}

__device__ int exclusive_of(int c, int *sh, int *total) // Kogge-Stone over BT threads
{
  sh[threadIdx.x] = c;
  __syncthreads();
  for (int d = 1; d < BT; d <<= 1) {
    int u = (int)threadIdx.x >= d ? sh[threadIdx.x - d] : 0;
    __syncthreads();
    sh[threadIdx.x] += u;
    __syncthreads();
  }
  *total = sh[BT - 1];
  int e = sh[threadIdx.x] - c;
  __syncthreads();
  return e;
}

__global__ void compact_warp(const Item *in, int n, float thr, Item *out, int *count) {
  int lane = threadIdx.x;
  bool k = lane < n && keep(in[lane], thr);
  unsigned b = __ballot_sync(0xffffffffu, k);
  if (k)
    out[__popc(b << 1 << (31 - lane))] = in[lane];
  if (lane == 0)
    *count = __popc(b);
}

template <bool VEC>
__global__ void tile_masks(const Item *in, int n, float thr, unsigned char *masks, int *rank, int *tile_cnt) {
  __shared__ int sh[BT];
  Item r[IPT];
  int total, t = blockIdx.x * BT + threadIdx.x;
  unsigned mask = load_mask<VEC>(in, n, t * IPT, thr, r);
  masks[t] = (unsigned char)mask;
  rank[t] = exclusive_of(__popc(mask), sh, &total);
  if (threadIdx.x == 0)
    tile_cnt[blockIdx.x] = total;
}

__global__ void tile_write(const Item *in, const unsigned char *masks, const int *rank, const int *tile_cnt, Item *out,
                           int *count) {
  __shared__ int sh[BT];
  int before = 0, total, t = blockIdx.x * BT + threadIdx.x;
  for (int b = threadIdx.x; b < blockIdx.x; b += BT)
    before += tile_cnt[b];
  exclusive_of(before, sh, &total); // total = all tiles before mine
  int pos = total + rank[t];
  for (unsigned m = masks[t]; m; m &= m - 1)
    out[pos++] = in[t * IPT + __ffs(m) - 1];
  if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
    *count = total + tile_cnt[blockIdx.x];
}

void run(const Item *in, int n, float thr, Item *out, int *count) {
  if (n <= 0) {
    cudaMemset(count, 0, sizeof(int));
    return;
  }
  if (n <= 32) {
    compact_warp<<<1, 32>>>(in, n, thr, out, count);
    return;
  }
  const bool vec = ((uintptr_t)in & 15) == 0;
  int tiles = (n - 1) / TILE_ITEMS + 1;
  char *scratch; // ranks, tile counts, masks
  cudaMalloc(&scratch, (size_t)tiles * (BT * 4 + 4 + BT));
  int *rank = (int *)scratch, *tile_cnt = rank + tiles * BT;
  unsigned char *masks = (unsigned char *)(tile_cnt + tiles);
  if (vec)
    tile_masks<true><<<tiles, BT>>>(in, n, thr, masks, rank, tile_cnt);
  else
    tile_masks<false><<<tiles, BT>>>(in, n, thr, masks, rank, tile_cnt);
  tile_write<<<tiles, BT>>>(in, masks, rank, tile_cnt, out, count);
  cudaFree(scratch);
}
//--- main
// usage: prog [n] [threshold in percent] [item offset]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 4000, off = argc > 3 ? atoi(argv[3]) : 0;
  float thr = (argc > 2 ? atoi(argv[2]) : 35) / 50.0f - 1.0f;
  if (n < 0 || off < 0)
    return 1;
  std::vector<Item> h(n + 1), o(n + 1, Item{-7, -7.0f});
  unsigned s = 31337u;
  for (int i = 0; i < n; i++) {
    s = s * 747796405u + 2891336453u;
    h[i].id = (int)(s >> 16) - 30000;
    s = s * 747796405u + 2891336453u;
    h[i].w = (float)(s >> 8) / 8388608.0f - 1.0f;
  }
  Item *in, *out;
  int *count, c = -1;
  cudaMalloc(&in, (n + off + 1) * sizeof(Item));
  cudaMalloc(&out, (n + 1) * sizeof(Item));
  cudaMalloc(&count, sizeof(int));
  cudaMemcpy(in + off, h.data(), n * sizeof(Item), cudaMemcpyHostToDevice);
  cudaMemcpy(out, o.data(), (n + 1) * sizeof(Item), cudaMemcpyHostToDevice);
  run(in + off, n, thr, out, count);
  cudaMemcpy(o.data(), out, (n + 1) * sizeof(Item), cudaMemcpyDeviceToHost);
  cudaMemcpy(&c, count, sizeof(int), cudaMemcpyDeviceToHost);
  unsigned long long hash = 5381;
  double ws = 0;
  for (int i = 0; i <= n; i++) {
    hash = hash * 33 + (unsigned)o[i].id;
    ws += o[i].w * (1 + i % 5);
  }
  printf("n %d count %d hash %016llx weight %.5f\n", n, c, hash, ws);
  for (int i = 0; i < c; i += c / 5 + 1)
    printf("%d: %d %.5f\n", i, o[i].id, o[i].w);
  return cudaDeviceSynchronize() != cudaSuccess;
}
