//--- common
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// out[0] = sum of x, out[1] = max of x; untouched when n <= 0
//--- original
constexpr int kThreads = 256;

__global__ void sum_kernel(const float *x, int n, float *out) {
  __shared__ float s[kThreads];
  float acc = 0.0f;
  for (int i = threadIdx.x; i < n; i += kThreads)
    acc += x[i];
  s[threadIdx.x] = acc;
  __syncthreads();
  for (int w = kThreads / 2; w > 0; w /= 2) {
    if (threadIdx.x < w)
      s[threadIdx.x] += s[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[0] = s[0];
}

__global__ void max_kernel(const float *x, int n, float *out) {
  __shared__ float s[kThreads];
  float m = -INFINITY;
  for (int i = threadIdx.x; i < n; i += kThreads)
    m = fmaxf(m, x[i]);
  s[threadIdx.x] = m;
  __syncthreads();
  for (int w = kThreads / 2; w > 0; w /= 2) {
    if (threadIdx.x < w)
      s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + w]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[1] = s[0];
}

void run(const float *x, int n, float *out) {
  if (n <= 0)
    return;
  sum_kernel<<<1, kThreads>>>(x, n, out);
  max_kernel<<<1, kThreads>>>(x, n, out);
}
//--- two-stage-shuffle
constexpr int kThreads = 256;

struct SumMax {
  float sum, mx;
  __device__ SumMax() : sum(0.0f), mx(-INFINITY) {}
  __device__ void add(float v) {
    sum += v;
    mx = fmaxf(mx, v);
  }
  __device__ void merge(float s, float m) {
    sum += s;
    mx = fmaxf(mx, m);
  }
};

template <int THREADS> __device__ void block_reduce(SumMax &a) {
  __shared__ float2 part[THREADS / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int d = 16; d > 0; d >>= 1)
    a.merge(__shfl_down_sync(0xffffffffu, a.sum, d), __shfl_down_sync(0xffffffffu, a.mx, d));
  if (lane == 0)
    part[warp] = make_float2(a.sum, a.mx);
  __syncthreads();
  if (warp == 0) {
    float2 p = lane < THREADS / 32 ? part[lane] : make_float2(0.0f, -INFINITY);
    a.sum = p.x;
    a.mx = p.y;
#pragma unroll
    for (int d = THREADS / 64; d > 0; d >>= 1)
      a.merge(__shfl_down_sync(0xffffffffu, a.sum, d), __shfl_down_sync(0xffffffffu, a.mx, d));
  }
}

__global__ void reduce_one_block(const float *__restrict__ x, int n, float *__restrict__ out) {
  SumMax a;
  for (int i = threadIdx.x; i < n; i += kThreads)
    a.add(x[i]);
  block_reduce<kThreads>(a);
  if (threadIdx.x == 0) {
    out[0] = a.sum;
    out[1] = a.mx;
  }
}

template <bool VEC> __global__ void reduce_stage1(const float *__restrict__ x, int n, float2 *__restrict__ part) {
  SumMax a;
  const int tid = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  if (VEC) {
    const float4 *x4 = reinterpret_cast<const float4 *>(x);
    for (int i = tid; i < n / 4; i += stride) {
      const float4 v = __ldg(x4 + i);
      a.add(v.x);
      a.add(v.y);
      a.add(v.z);
      a.add(v.w);
    }
  } else {
    for (int i = tid; i < n; i += stride)
      a.add(__ldg(x + i));
  }
  block_reduce<kThreads>(a);
  if (threadIdx.x == 0)
    part[blockIdx.x] = make_float2(a.sum, a.mx);
}

__global__ void reduce_stage2(const float2 *__restrict__ part, int m, float *__restrict__ out) {
  SumMax a;
  for (int i = threadIdx.x; i < m; i += 128)
    a.merge(part[i].x, part[i].y);
  block_reduce<128>(a);
  if (threadIdx.x == 0) {
    out[0] = a.sum;
    out[1] = a.mx;
  }
}

void run(const float *x, int n, float *out) {
  if (n <= 0)
    return;
  if (n <= 1024) {
    reduce_one_block<<<1, kThreads>>>(x, n, out);
    return;
  }
  const bool vec = n % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
  const int work = vec ? n / 4 : n;
  int blocks = (work + 2 * kThreads - 1) / (2 * kThreads);
  blocks = blocks < 1 ? 1 : blocks > 512 ? 512 : blocks;
  float2 *part;
  cudaMalloc(&part, blocks * sizeof(float2));
  if (vec)
    reduce_stage1<true><<<blocks, kThreads>>>(x, n, part);
  else
    reduce_stage1<false><<<blocks, kThreads>>>(x, n, part);
  reduce_stage2<<<1, 128>>>(part, blocks, out);
  cudaFree(part);
}
//--- last-block-finishes
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ unsigned int g_blocks_done = 0;
#define MAX_BLOCKS 128
__device__ float g_part_sum[MAX_BLOCKS], g_part_max[MAX_BLOCKS];

__device__ static void group_reduce(const cg::thread_block_tile<32> &tile, float &s, float &m) {
  for (int d = tile.size() / 2; d > 0; d /= 2) {
    s += tile.shfl_xor(s, d);
    m = fmaxf(m, tile.shfl_xor(m, d));
  }
}

// All threads of the block call; thread 0 holds the result.
__device__ static void block_all(float &s, float &m, float *ss, float *sm) {
  cg::thread_block blk = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(blk);
  const unsigned warp = threadIdx.x / 32;
  group_reduce(tile, s, m);
  if (tile.thread_rank() == 0) {
    ss[warp] = s;
    sm[warp] = m;
  }
  blk.sync();
  if (warp == 0) {
    const unsigned nw = blk.size() / 32;
    s = tile.thread_rank() < nw ? ss[tile.thread_rank()] : 0.0f;
    m = tile.thread_rank() < nw ? sm[tile.thread_rank()] : -INFINITY;
    group_reduce(tile, s, m);
  }
}

template <unsigned UNROLL> __global__ void sum_max_fused(const float *__restrict__ x, unsigned n, float *out) {
  __shared__ float ss[32], sm[32];
  __shared__ bool last;
  float s = 0.0f, m = -INFINITY;
  const unsigned tile = blockDim.x * UNROLL;
  for (unsigned base = blockIdx.x * tile; base < n; base += gridDim.x * tile) {
    if (n - base >= tile) {
      float r[UNROLL];
#pragma unroll
      for (unsigned k = 0; k < UNROLL; ++k)
        r[k] = x[base + k * blockDim.x + threadIdx.x];
#pragma unroll
      for (unsigned k = 0; k < UNROLL; ++k) {
        s += r[k];
        m = fmaxf(m, r[k]);
      }
    } else {
      for (unsigned i = base + threadIdx.x; i < n; i += blockDim.x) {
        s += x[i];
        m = fmaxf(m, x[i]);
      }
    }
  }
  block_all(s, m, ss, sm);
  if (threadIdx.x == 0) {
    if (gridDim.x == 1) {
      out[0] = s;
      out[1] = m;
    }
    g_part_sum[blockIdx.x] = s;
    g_part_max[blockIdx.x] = m;
    __threadfence();
    last = atomicInc(&g_blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || gridDim.x == 1)
    return;
  __threadfence();
  volatile float *vs = g_part_sum, *vm = g_part_max;
  s = 0.0f;
  m = -INFINITY;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    s += vs[b];
    m = fmaxf(m, vm[b]);
  }
  block_all(s, m, ss, sm);
  if (threadIdx.x == 0) {
    out[0] = s;
    out[1] = m;
  }
}

void run(const float *x, int n, float *out) {
  if (n <= 0)
    return;
  if (n <= 32) {
    sum_max_fused<1><<<1, 32>>>(x, n, out);
  } else if (n < 65536) {
    unsigned blocks = (n + 511u) / 512u;
    sum_max_fused<2><<<(blocks > 64 ? 64 : blocks), 256>>>(x, n, out);
  } else {
    unsigned blocks = (n + 4095u) / 4096u;
    sum_max_fused<8><<<(blocks > MAX_BLOCKS ? MAX_BLOCKS : blocks), 512>>>(x, n, out);
  }
}
//--- main
// usage: prog [n] [element offset]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 10000;
  int off = argc > 2 ? atoi(argv[2]) : 0;
  if (n < 0 || off < 0)
    return 1;
  float *hx = new float[n + off + 1];
  uint64_t s = 88172645463325252ull;
  for (int i = 0; i < n + off; ++i) {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    hx[i] = (float)((int)(s % 20011) - 10500) / 512.0f;
  }
  for (int i = 0; i < off; ++i)
    hx[i] = 1e6f;
  float *dx, *dout, hout[2] = {-1.0f, -2.0f};
  cudaMalloc(&dx, (n + off + 1) * sizeof(float));
  cudaMalloc(&dout, sizeof hout);
  cudaMemcpy(dx, hx, (n + off) * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dout, hout, sizeof hout, cudaMemcpyHostToDevice);
  for (int rep = 0, len = n; rep < 3; ++rep, len = len * 2 / 3) {
    run(dx + off + (n - len), len, dout);
    cudaMemcpy(hout, dout, sizeof hout, cudaMemcpyDeviceToHost);
    printf("len %d sum %.3f max %.6f\n", len, hout[0], hout[1]);
  }
  cudaFree(dx);
  cudaFree(dout);
  delete[] hx;
  return cudaDeviceSynchronize() != cudaSuccess;
}
