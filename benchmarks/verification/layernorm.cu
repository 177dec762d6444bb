//--- common
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// out = (inp - mean) * rstd * weight + bias over rows of C channels; mean and rstd of each row are kept
#define LN_EPS 1e-5f
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))

//--- original
__global__ void layernorm_forward_kernel1(float *out, float *mean, float *rstd, const float *inp, const float *weight,
                                          const float *bias, int N, int C) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < N) {
    const float *x = inp + (size_t)idx * C;
    float m = 0.0f;
    for (int i = 0; i < C; i++)
      m += x[i];
    m = m / C;
    float v = 0.0f;
    for (int i = 0; i < C; i++)
      v += (x[i] - m) * (x[i] - m);
    v = v / C;
    float s = 1.0f / sqrtf(v + LN_EPS);
    for (int i = 0; i < C; i++)
      out[(size_t)idx * C + i] = s * (x[i] - m) * weight[i] + bias[i];
    mean[idx] = m;
    rstd[idx] = s;
  }
}

void run(float *out, float *mean, float *rstd, const float *inp, const float *weight, const float *bias, int N, int C) {
  if (N <= 0 || C <= 0)
    return;
  layernorm_forward_kernel1<<<CEIL_DIV(N, 64), 64>>>(out, mean, rstd, inp, weight, bias, N, C);
}

//--- llmc-warp-shared-block
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// one warp per row, two sweeps through global memory (the second comes from the cache)
__global__ void layernorm_warp(float *__restrict__ out, float *__restrict__ mean, float *__restrict__ rstd,
                               const float *__restrict__ inp, const float *__restrict__ weight,
                               const float *__restrict__ bias, int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N)
    return;
  const float *x = inp + (size_t)idx * C;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size())
    sum += x[i];
  float m = cg::reduce(warp, sum, cg::plus<float>{}) / C;
  sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size())
    sum += (x[i] - m) * (x[i] - m);
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float s = 1.0f / sqrtf(sum / C + LN_EPS);
  if (warp.thread_rank() == 0)
    mean[idx] = m, rstd[idx] = s;
  float *o = out + (size_t)idx * C;
  for (int c = warp.thread_rank(); c < C; c += warp.size())
    __stcs(o + c, s * (__ldcs(x + c) - m) * weight[c] + bias[c]);
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2)
    v += __shfl_xor_sync(0xFFFFFFFFu, v, offset);
  return v;
}

// blockDim = (32, warps); weight and bias are staged once a block, each warp keeps its row in shared memory
__global__ void layernorm_shared(float *out, float *mean, float *rstd, const float *inp, const float *weight,
                                 const float *bias, int N, int C) {
  extern __shared__ float4 smem4[];
  const int C4 = C / 4;
  float4 *s_w = smem4, *s_b = s_w + C4, *s_x = s_b + C4 + threadIdx.y * C4;
  for (int i = threadIdx.x + 32 * threadIdx.y; i < C4; i += 32 * blockDim.y) {
    s_w[i] = reinterpret_cast<const float4 *>(weight)[i];
    s_b[i] = reinterpret_cast<const float4 *>(bias)[i];
  }
  __syncthreads();
  for (int idx = blockIdx.x * blockDim.y + threadIdx.y; idx < N; idx += gridDim.x * blockDim.y) {
    const float4 *x = reinterpret_cast<const float4 *>(inp + (size_t)idx * C);
    float4 *o = reinterpret_cast<float4 *>(out + (size_t)idx * C);
    float sum = 0.0f, v = 0.0f;
    for (int i = threadIdx.x; i < C4; i += 32) {
      const float4 t = __ldg(x + i);
      sum += (t.x + t.y) + (t.z + t.w);
      s_x[i] = t;
    }
    const float m = warp_sum(sum) / C;
    for (int i = threadIdx.x; i < C4; i += 32) { // a lane reads only what it wrote itself
      const float4 t = s_x[i];
      v += (t.x - m) * (t.x - m) + (t.y - m) * (t.y - m) + (t.z - m) * (t.z - m) + (t.w - m) * (t.w - m);
    }
    const float s = 1.0f / sqrtf(warp_sum(v) / C + LN_EPS);
    for (int i = threadIdx.x; i < C4; i += 32) {
      const float4 t = s_x[i], w = s_w[i], b = s_b[i];
      o[i] = make_float4(s * (t.x - m) * w.x + b.x, s * (t.y - m) * w.y + b.y, s * (t.z - m) * w.z + b.z,
                         s * (t.w - m) * w.w + b.w);
    }
    if (threadIdx.x == 0)
      mean[idx] = m, rstd[idx] = s;
  }
}

__device__ float block_sum(float t, float *shared) {
  t = warp_sum(t);
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = t;
  __syncthreads();
  return warp_sum(threadIdx.x % 32 < 16 ? shared[threadIdx.x % 32] : 0.0f);
}

// wide rows: one block of 512 per row
__global__ void __launch_bounds__(512) layernorm_block(float *out, float *mean, float *rstd, const float *inp,
                                                       const float *weight, const float *bias, int C) {
  __shared__ float shared_sum[16], shared_var[16];
  const float *x = inp + (size_t)blockIdx.x * C;
  float t = 0.0f, v = 0.0f;
  for (int i = threadIdx.x; i < C; i += 512)
    t += x[i];
  const float m = block_sum(t, shared_sum) / C;
  for (int i = threadIdx.x; i < C; i += 512)
    v += (x[i] - m) * (x[i] - m);
  const float s = 1.0f / sqrtf(block_sum(v, shared_var) / C + LN_EPS);
  for (int i = threadIdx.x; i < C; i += 512)
    out[(size_t)blockIdx.x * C + i] = s * (x[i] - m) * weight[i] + bias[i];
  if (threadIdx.x == 0)
    mean[blockIdx.x] = m, rstd[blockIdx.x] = s;
}

void run(float *out, float *mean, float *rstd, const float *inp, const float *weight, const float *bias, int N, int C) {
  if (N <= 0 || C <= 0)
    return;
  const uintptr_t all = (uintptr_t)out | (uintptr_t)inp | (uintptr_t)weight | (uintptr_t)bias;
  const size_t smem = (size_t)(2 + 4) * C * sizeof(float);
  if (C > 128 && C % 4 == 0 && all % 16 == 0 && smem <= 48 * 1024) {
    int grid = CEIL_DIV(N, 4);
    layernorm_shared<<<(grid < 32 ? grid : 32), dim3(32, 4), smem>>>(out, mean, rstd, inp, weight, bias, N, C);
  } else if (C <= 1024) {
    layernorm_warp<<<CEIL_DIV(N, 4), 128>>>(out, mean, rstd, inp, weight, bias, N, C);
  } else {
    layernorm_block<<<N, 512>>>(out, mean, rstd, inp, weight, bias, C);
  }
}

//--- welford-vec-split
struct Welford {
  float mean, m2, n;
};
struct LnArgs {
  float *out, *mean, *rstd;
  const float *inp, *weight, *bias;
  int N, C;
};

__device__ __forceinline__ void push(Welford &w, float x) {
  w.n += 1.0f;
  const float d = x - w.mean;
  w.mean += d / w.n;
  w.m2 += d * (x - w.mean);
}

__device__ __forceinline__ Welford combine(Welford a, Welford b) {
  const float n = a.n + b.n;
  if (n == 0.0f)
    return a;
  const float d = b.mean - a.mean, f = b.n / n;
  return {a.mean + d * f, a.m2 + b.m2 + d * d * a.n * f, n};
}

template <int BS> __device__ Welford block_welford(Welford w) {
  for (int o = 16; o > 0; o >>= 1) {
    w = combine(w, {__shfl_down_sync(~0u, w.mean, o), __shfl_down_sync(~0u, w.m2, o), __shfl_down_sync(~0u, w.n, o)});
  }
  __shared__ Welford part[BS / 32];
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = w;
  __syncthreads();
  w = part[0];
#pragma unroll
  for (int i = 1; i < BS / 32; i++)
    w = combine(w, part[i]);
  return w;
}

// VEC floats at a time; rows of this block are one row, or a chunk of one (the moments then come from part)
template <int BS, int VEC> __global__ void ln_block(LnArgs a, const Welford *part, Welford *part_out, int chunk) {
  struct alignas(VEC * 4) Pack {
    float v[VEC];
  };
  const int first = blockIdx.y * chunk, last = min(a.C, first + chunk);
  const size_t row = (size_t)blockIdx.x * a.C;
  Welford w = {0.0f, 0.0f, 0.0f};
  if (part) {
    for (unsigned i = 0; i < gridDim.y; i++)
      w = combine(w, part[blockIdx.x * gridDim.y + i]);
  } else {
    for (int i = first + threadIdx.x * VEC; i < last; i += BS * VEC) {
      const Pack p = *reinterpret_cast<const Pack *>(a.inp + row + i);
#pragma unroll
      for (int j = 0; j < VEC; j++)
        push(w, p.v[j]);
    }
    w = block_welford<BS>(w);
  }
  if (part_out) {
    if (threadIdx.x == 0)
      part_out[blockIdx.x * gridDim.y + blockIdx.y] = w;
    return;
  }
  const float s = 1.0f / sqrtf(w.m2 / w.n + LN_EPS);
  for (int i = first + threadIdx.x * VEC; i < last; i += BS * VEC) {
    const Pack p = *reinterpret_cast<const Pack *>(a.inp + row + i);
    const Pack g = *reinterpret_cast<const Pack *>(a.weight + i), b = *reinterpret_cast<const Pack *>(a.bias + i);
    Pack o;
#pragma unroll
    for (int j = 0; j < VEC; j++)
      o.v[j] = s * (p.v[j] - w.mean) * g.v[j] + b.v[j];
    *reinterpret_cast<Pack *>(a.out + row + i) = o;
  }
  if (threadIdx.x == 0 && blockIdx.y == 0)
    a.mean[blockIdx.x] = w.mean, a.rstd[blockIdx.x] = s;
}

// C <= 32: 64 rows are staged in shared memory (padded), one thread has one row
__global__ void ln_narrow(LnArgs a) {
  __shared__ float tile[64][33];
  const int r0 = blockIdx.x * 64, rows = min(64, a.N - r0);
  const float *src = a.inp + (size_t)r0 * a.C;
  for (int i = threadIdx.x; i < rows * a.C; i += 64)
    tile[i / a.C][i % a.C] = src[i];
  __syncthreads();
  if ((int)threadIdx.x < rows) {
    float *t = tile[threadIdx.x];
    Welford w = {0.0f, 0.0f, 0.0f};
    for (int i = 0; i < a.C; i++)
      push(w, t[i]);
    const float s = 1.0f / sqrtf(w.m2 / a.C + LN_EPS);
    for (int i = 0; i < a.C; i++)
      t[i] = s * (t[i] - w.mean);
    a.mean[r0 + threadIdx.x] = w.mean, a.rstd[r0 + threadIdx.x] = s;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * a.C; i += 64) {
    const int c = i % a.C;
    a.out[(size_t)r0 * a.C + i] = tile[i / a.C][c] * a.weight[c] + a.bias[c];
  }
}

template <int BS> void launch(const LnArgs &a, bool vec, int chunks, const Welford *part, Welford *part_out) {
  const dim3 grid(a.N, chunks);
  const int chunk = CEIL_DIV(CEIL_DIV(a.C, chunks), 4) * 4;
  if (vec)
    ln_block<BS, 4><<<grid, BS>>>(a, part, part_out, chunk);
  else
    ln_block<BS, 1><<<grid, BS>>>(a, part, part_out, chunk);
}

void run(float *out, float *mean, float *rstd, const float *inp, const float *weight, const float *bias, int N, int C) {
  if (N <= 0 || C <= 0)
    return;
  const LnArgs a = {out, mean, rstd, inp, weight, bias, N, C};
  const uintptr_t all = (uintptr_t)out | (uintptr_t)inp | (uintptr_t)weight | (uintptr_t)bias;
  const bool vec = C % 4 == 0 && (all & 15) == 0;
  if (C <= 32) {
    ln_narrow<<<CEIL_DIV(N, 64), 64>>>(a);
  } else if (C >= 4096 && N <= 8) {
    Welford *part;
    cudaMalloc(&part, sizeof(Welford) * N * 8);
    launch<128>(a, vec, 8, nullptr, part);
    launch<128>(a, vec, 8, part, nullptr);
    cudaFree(part);
  } else if (C <= 256)
    launch<32>(a, vec, 1, nullptr, nullptr);
  else if (C <= 1024)
    launch<128>(a, vec, 1, nullptr, nullptr);
  else
    launch<256>(a, vec, 1, nullptr, nullptr);
}

//--- main
int main(int argc, char **argv) {
  int N = argc > 1 ? atoi(argv[1]) : 20;
  int C = argc > 2 ? atoi(argv[2]) : 160;
  if (N < 0 || C < 0)
    N = C = 0;
  size_t n = (size_t)N * C, total = n * 2 + 2 * C + 2 * N;
  float *h = (float *)calloc(total + 1, sizeof(float)), *d[6];
  float *hp[6] = {h, h + n, h + n + N, h + n + 2 * N, h + 2 * n + 2 * N, h + 2 * n + 2 * N + C};
  size_t len[6] = {n, (size_t)N, (size_t)N, n, (size_t)C, (size_t)C};
  unsigned long long state = 1337;
  for (size_t i = n + 2 * N; i < total; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    h[i] = (float)((int)(state >> 40 & 0xffff) - 30000) / 16384.0f;
  }
  for (int k = 0; k < 6; k++) {
    cudaMalloc((void **)&d[k], (len[k] + 1) * sizeof(float));
    cudaMemcpy(d[k], hp[k], len[k] * sizeof(float), cudaMemcpyHostToDevice);
  }
  run(d[0], d[1], d[2], d[3], d[4], d[5], N, C);
  for (int k = 0; k < 3; k++) {
    cudaMemcpy(hp[k], d[k], len[k] * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0.0, alt = 0.0;
    for (size_t i = 0; i < len[k]; i++)
      sum += hp[k][i], alt += hp[k][i] * (double)(i % 13 + 1);
    printf("%s: %.4f %.3f\n", k == 0 ? "out" : k == 1 ? "mean" : "rstd", sum, alt);
  }
  for (size_t i = 0; i < n; i += n / 6 + 1)
    printf("out[%zu] = %.4f\n", i, h[i]);
  return 0;
}
