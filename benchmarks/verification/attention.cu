//--- common
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

// causal self attention; q, k, v, o: (BH, T, D), BH = batch times heads; o = softmax(q k^T * scale, keys <= query) v

//--- original
__global__ void preatt_kernel(float *att, const float *q, const float *k, int BH, int T, int D, float scale) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)BH * T * T)
    return;
  int t2 = i % T, t = i / T % T;
  size_t bh = i / ((size_t)T * T);
  float dot = 0.0f;
  for (int d = 0; d < D; d++)
    dot += q[(bh * T + t) * D + d] * k[(bh * T + t2) * D + d];
  att[i] = t2 <= t ? dot * scale : -INFINITY;
}

__global__ void softmax_kernel(float *att, int rows, int T) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float *a = att + (size_t)r * T, m = -INFINITY, s = 0.0f;
  for (int i = 0; i < T; i++)
    m = fmaxf(m, a[i]);
  for (int i = 0; i < T; i++)
    s += a[i] = expf(a[i] - m);
  for (int i = 0; i < T; i++)
    a[i] /= s;
}

__global__ void av_kernel(float *o, const float *att, const float *v, int BH, int T, int D) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)BH * T * D)
    return;
  size_t row = i / D, bh = row / T;
  float acc = 0.0f;
  for (int t2 = 0; t2 < T; t2++)
    acc += att[row * T + t2] * v[(bh * T + t2) * D + i % D];
  o[i] = acc;
}

void run(const float *q, const float *k, const float *v, float *o, int BH, int T, int D) {
  if (BH <= 0 || T <= 0 || D <= 0)
    return;
  float *att;
  size_t n = (size_t)BH * T * T;
  cudaMalloc(&att, n * sizeof(float));
  preatt_kernel<<<(unsigned)((n + 127) / 128), 128>>>(att, q, k, BH, T, D, 1.0f / sqrtf((float)D));
  softmax_kernel<<<(BH * T + 63) / 64, 64>>>(att, BH * T, T);
  av_kernel<<<(unsigned)(((size_t)BH * T * D + 127) / 128), 128>>>(o, att, v, BH, T, D);
  cudaFree(att);
}

//--- flash-tiles-or-row-blocks
// one thread per query, 32 queries a block, key and value tiles of 32 in shared memory, online softmax
template <int D>
__global__ void flash_kernel(const float *Q, const float *K, const float *V, float *O, int T, float scale) {
  const int BR = 32, BC = 32;
  __shared__ __align__(16) float Ks[BC * D], Vs[BC * D];
  const int tiles = (T + BR - 1) / BR, tile = blockIdx.x % tiles, t = tile * BR + threadIdx.x;
  const size_t base = (size_t)(blockIdx.x / tiles) * T * D;
  float q[D], acc[D], p[BC], m = -INFINITY, l = 0.0f;
  for (int d = 0; d < D; d += 4) {
    const float4 f = t < T ? *(const float4 *)(Q + base + (size_t)t * D + d) : make_float4(0, 0, 0, 0);
    q[d] = f.x, q[d + 1] = f.y, q[d + 2] = f.z, q[d + 3] = f.w;
    acc[d] = acc[d + 1] = acc[d + 2] = acc[d + 3] = 0.0f;
  }
  for (int jt = 0; jt <= tile; jt++) {
    const int n = min(BC, T - jt * BC);
    const float4 *k4 = (const float4 *)(K + base + (size_t)jt * BC * D);
    const float4 *v4 = (const float4 *)(V + base + (size_t)jt * BC * D);
    __syncthreads();
    for (int i = threadIdx.x; i < n * D / 4; i += BR)
      ((float4 *)Ks)[i] = k4[i], ((float4 *)Vs)[i] = v4[i];
    __syncthreads();
    const int keys = min(n, t - jt * BC + 1); // the causal bound
    if (t >= T)
      continue;
    float mt = m;
    for (int j = 0; j < keys; j++) {
      float s = 0.0f;
      for (int d = 0; d < D; d++)
        s += q[d] * Ks[j * D + d];
      p[j] = s * scale;
      mt = fmaxf(mt, p[j]);
    }
    const float corr = expf(m - mt);
    l *= corr;
    for (int d = 0; d < D; d++)
      acc[d] *= corr;
    for (int j = 0; j < keys; j++) {
      const float e = expf(p[j] - mt);
      l += e;
      for (int d = 0; d < D; d++)
        acc[d] += e * Vs[j * D + d];
    }
    m = mt;
  }
  if (t >= T)
    return;
  for (int d = 0; d < D; d += 4)
    *(float4 *)(O + base + (size_t)t * D + d) = make_float4(acc[d] / l, acc[d + 1] / l, acc[d + 2] / l, acc[d + 3] / l);
}

__device__ float block_reduce(float v, bool is_max) { // 128 threads
  __shared__ float s[4];
  for (int o = 16; o; o >>= 1) {
    const float u = __shfl_xor_sync(0xffffffff, v, o);
    v = is_max ? fmaxf(v, u) : v + u;
  }
  __syncthreads();
  if ((threadIdx.x & 31) == 0)
    s[threadIdx.x >> 5] = v;
  __syncthreads();
  return is_max ? fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3])) : (s[0] + s[1]) + (s[2] + s[3]);
}

// any head size: a block walks over queries; scores of one query in shared memory, or in scratch if they do not fit
__global__ void row_kernel(const float *Q, const float *K, const float *V, float *O, float *scratch, int BH, int T,
                           int D, float scale) {
  extern __shared__ float dyn[];
  float *sc = scratch ? scratch + (size_t)blockIdx.x * T : dyn;
  for (long long row = blockIdx.x; row < (long long)BH * T; row += gridDim.x) {
    const int t = row % T;
    const float *q = Q + row * D, *k = K + (row - t) * D, *v = V + (row - t) * D;
    float m = -INFINITY, l = 0.0f;
    for (int j = threadIdx.x; j <= t; j += blockDim.x) {
      float s = 0.0f;
      for (int d = 0; d < D; d++)
        s += q[d] * k[(size_t)j * D + d];
      sc[j] = s * scale;
      m = fmaxf(m, sc[j]);
    }
    m = block_reduce(m, true);
    for (int j = threadIdx.x; j <= t; j += blockDim.x)
      l += sc[j] = expf(sc[j] - m);
    l = block_reduce(l, false); // its barriers also make sc visible
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
      float a = 0.0f;
      for (int j = 0; j <= t; j++)
        a += sc[j] * v[(size_t)j * D + d];
      O[row * D + d] = a / l;
    }
    __syncthreads();
  }
}

void run(const float *q, const float *k, const float *v, float *o, int BH, int T, int D) {
  if (BH <= 0 || T <= 0 || D <= 0)
    return;
  const float scale = 1.0f / sqrtf((float)D);
  const int blocks = BH * ((T + 31) / 32);
  const bool aligned = (((uintptr_t)q | (uintptr_t)k | (uintptr_t)v | (uintptr_t)o) & 15) == 0;
  switch (aligned ? D : 0) {
  case 16: flash_kernel<16><<<blocks, 32>>>(q, k, v, o, T, scale); return;
  case 32: flash_kernel<32><<<blocks, 32>>>(q, k, v, o, T, scale); return;
  case 64: flash_kernel<64><<<blocks, 32>>>(q, k, v, o, T, scale); return;
  }
  float *scratch = NULL;
  if (T > 1024)
    cudaMalloc(&scratch, sizeof(float) * T * 48);
  row_kernel<<<(scratch ? 48 : BH * T), 128, (scratch ? 0 : T * sizeof(float))>>>(q, k, v, o, scratch, BH, T, D, scale);
  cudaFree(scratch);
}

//--- head-in-shared-or-split-keys
struct Params {
  const float *q, *k, *v;
  float *o;
  int BH, T, D;
  float scale;
  bool vec;
};
enum { WARPS = 4, CHUNK = 64 };

__device__ float wmax(float v) {
  for (int s = 16; s; s >>= 1)
    v = fmaxf(v, __shfl_xor_sync(~0u, v, s));
  return v;
}
__device__ float wsum(float v) {
  for (int s = 16; s; s >>= 1)
    v += __shfl_xor_sync(~0u, v, s);
  return v;
}

// T <= 64, D <= 64: all keys and values of one head in shared memory (rows padded), warps take queries in turn
__global__ void head_kernel(Params a) {
  extern __shared__ float sm[];
  __shared__ float prob[WARPS][64];
  const int ld = a.D + 1, w = threadIdx.y, lane = threadIdx.x;
  float *ks = sm, *vs = sm + a.T * ld;
  const size_t base = (size_t)blockIdx.x * a.T * a.D;
  for (int i = w * 32 + lane; i < a.T * a.D; i += WARPS * 32) {
    const int at = i / a.D * ld + i % a.D;
    ks[at] = a.k[base + i], vs[at] = a.v[base + i];
  }
  __syncthreads();
  for (int t = w; t < a.T; t += WARPS) {
    const float *q = a.q + base + t * a.D;
    float s0 = 0.0f, s1 = 0.0f;
    const bool on0 = lane <= t, on1 = lane + 32 <= t;
    for (int d = 0; d < a.D; d++) {
      if (on0)
        s0 += q[d] * ks[lane * ld + d];
      if (on1)
        s1 += q[d] * ks[(lane + 32) * ld + d];
    }
    s0 = on0 ? s0 * a.scale : -INFINITY, s1 = on1 ? s1 * a.scale : -INFINITY;
    const float m = wmax(fmaxf(s0, s1));
    s0 = expf(s0 - m), s1 = expf(s1 - m);
    const float l = wsum(s0 + s1);
    prob[w][lane] = s0 / l, prob[w][lane + 32] = s1 / l;
    __syncwarp();
    for (int d = lane; d < a.D; d += 32) {
      float acc = 0.0f;
      for (int j = 0; j <= t; j++)
        acc += prob[w][j] * vs[j * ld + d];
      a.o[base + t * a.D + d] = acc;
    }
    __syncwarp();
  }
}

// one warp per query and chunk of 64 keys, for any D: unnormalized output, its maximum and its sum
__global__ void split_kernel(Params a, float *po, float2 *pml) {
  __shared__ float prob[WARPS][CHUNK];
  const int w = threadIdx.y, lane = threadIdx.x, nc = (a.T + CHUNK - 1) / CHUNK, c = blockIdx.y;
  const long long row = (long long)blockIdx.x * WARPS + w;
  if (row >= (long long)a.BH * a.T)
    return;
  const int t = row % a.T, j0 = c * CHUNK, n = min(CHUNK, t + 1 - j0);
  if (n <= 0)
    return; // every key of the chunk lies after the query
  const float *q = a.q + row * a.D, *k = a.k + (row - t + j0) * a.D, *v = a.v + (row - t + j0) * a.D;
  float m = -INFINITY, l = 0.0f;
  for (int j = lane; j < n; j += 32) {
    float s = 0.0f;
    int d = 0;
    for (; a.vec && d < a.D; d += 4) {
      const float4 x = *(const float4 *)(q + d), y = *(const float4 *)(k + j * a.D + d);
      s += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
    }
    for (; d < a.D; d++)
      s += q[d] * k[j * a.D + d];
    prob[w][j] = s * a.scale;
    m = fmaxf(m, prob[w][j]);
  }
  m = wmax(m);
  for (int j = lane; j < n; j += 32)
    l += prob[w][j] = expf(prob[w][j] - m);
  l = wsum(l);
  __syncwarp();
  if (lane == 0)
    pml[row * nc + c] = make_float2(m, l);
  for (int d = lane; d < a.D; d += 32) {
    float acc = 0.0f;
    for (int j = 0; j < n; j++)
      acc += prob[w][j] * v[j * a.D + d];
    po[(row * nc + c) * a.D + d] = acc;
  }
}

__global__ void combine_kernel(Params a, const float *po, const float2 *pml) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, row = i / a.D;
  if (row >= (long long)a.BH * a.T)
    return;
  const int nc = (a.T + CHUNK - 1) / CHUNK, used = (int)(row % a.T) / CHUNK + 1;
  float m = -INFINITY, l = 0.0f, acc = 0.0f;
  for (int c = 0; c < used; c++)
    m = fmaxf(m, pml[row * nc + c].x);
  for (int c = 0; c < used; c++) {
    const float f = expf(pml[row * nc + c].x - m);
    l += f * pml[row * nc + c].y;
    acc += f * po[(row * nc + c) * a.D + i % a.D];
  }
  a.o[i] = acc / l;
}

void run(const float *q, const float *k, const float *v, float *o, int BH, int T, int D) {
  if (BH <= 0 || T <= 0 || D <= 0)
    return;
  const bool vec = D % 4 == 0 && (((uintptr_t)q | (uintptr_t)k) & 15) == 0;
  const Params a = {q, k, v, o, BH, T, D, 1.0f / sqrtf((float)D), vec};
  if (T <= 64 && D <= 64)
    return head_kernel<<<BH, dim3(32, WARPS), 2 * T *(D + 1) * sizeof(float)>>>(a);
  const int nc = (T + CHUNK - 1) / CHUNK;
  float *po;
  cudaMalloc(&po, sizeof(float) * BH * T * nc * (D + 2));
  float2 *pml = (float2 *)po; // maxima and sums come first
  split_kernel<<<dim3((BH * T + WARPS - 1) / WARPS, nc), dim3(32, WARPS)>>>(a, po + 2 * BH * T * nc, pml);
  combine_kernel<<<(BH * T * D + 127) / 128, 128>>>(a, po + 2 * BH * T * nc, pml);
  cudaFree(po);
}

//--- main
int main(int argc, char **argv) {
  int BH = argc > 1 ? atoi(argv[1]) : 3, T = argc > 2 ? atoi(argv[2]) : 40, D = argc > 3 ? atoi(argv[3]) : 16;
  if (BH < 0 || T < 0 || D < 0)
    BH = T = D = 0;
  size_t n = (size_t)BH * T * D, bytes = n * sizeof(float);
  std::vector<float> h(3 * n), out(n);
  uint32_t r = 2463534242u;
  for (auto &f : h) {
    r ^= r << 13, r ^= r >> 17, r ^= r << 5;
    f = ((int)(r % 4001) - 2000) / 1000.0f;
  }
  float *d[4];
  for (int i = 0; i < 4; i++)
    cudaMalloc(&d[i], bytes + 16);
  for (int i = 0; i < 3; i++)
    cudaMemcpy(d[i], h.data() + i * n, bytes, cudaMemcpyHostToDevice);
  run(d[0], d[1], d[2], d[3], BH, T, D);
  cudaMemcpy(out.data(), d[3], bytes, cudaMemcpyDeviceToHost);
  double sum = 0, sq = 0;
  for (size_t i = 0; i < n; i++)
    sum += out[i] * (1 + i % 5), sq += out[i] * out[i];
  printf("%zu values, weighted sum %.4f, squares %.4f\n", n, sum, sq);
  for (size_t i = 0; i < n; i += n / 7 + 1)
    printf("o[%zu] = %.5f\n", i, out[i]);
  return 0;
}
