//--- common
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// Batch norm in training, x: [N][C][HW]. Saves mean and 1 / sqrt(var + eps) per channel, moves the running statistics
// (unbiased variance, where there are at least two values) and normalizes.
struct BN {
  const float *x, *gamma, *beta;
  float *y, *save_mean, *save_rstd, *run_mean, *run_var;
  int n, c, hw;
  float eps, momentum;
};

//--- original
__global__ void bn_stats(BN p) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= p.c)
    return;
  float count = (float)p.n * p.hw, mean = 0.0f, var = 0.0f;
  for (int n = 0; n < p.n; n++)
    for (int i = 0; i < p.hw; i++)
      mean += p.x[(n * p.c + c) * p.hw + i];
  mean /= count;
  for (int j = 0; j < p.n * p.hw; j++) {
    float d = p.x[(j / p.hw * p.c + c) * p.hw + j % p.hw] - mean;
    var += d * d;
  }
  p.save_mean[c] = mean;
  p.save_rstd[c] = 1.0f / sqrtf(var / count + p.eps);
  p.run_mean[c] = (1.0f - p.momentum) * p.run_mean[c] + p.momentum * mean;
  p.run_var[c] = (1.0f - p.momentum) * p.run_var[c] + p.momentum * (var / (count > 1.0f ? count - 1.0f : 1.0f));
}

__global__ void bn_apply(BN p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.n * p.c * p.hw)
    return;
  int c = i / p.hw % p.c;
  p.y[i] = (p.x[i] - p.save_mean[c]) * p.save_rstd[c] * p.gamma[c] + p.beta[c];
}

void run(BN p) {
  if (p.n <= 0 || p.c <= 0 || p.hw <= 0)
    return;
  bn_stats<<<(p.c + 31) / 32, 32>>>(p);
  bn_apply<<<(p.n * p.c * p.hw + 127) / 128, 128>>>(p);
}

//--- welford-block-per-channel
template <int THREADS> __device__ void welford_merge(float &mean, float &m2, float &count) {
  __shared__ float smean[THREADS / 32], sm2[THREADS / 32], scount[THREADS / 32];
  auto join = [&](float mb, float qb, float cb) {
    const float total = count + cb;
    if (total == 0.0f)
      return;
    const float delta = mb - mean;
    mean += delta * (cb / total);
    m2 += qb + delta * delta * count * (cb / total);
    count = total;
  };
  for (int o = 16; o > 0; o >>= 1) {
    const float mb = __shfl_down_sync(~0u, mean, o), qb = __shfl_down_sync(~0u, m2, o);
    join(mb, qb, __shfl_down_sync(~0u, count, o));
  }
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0)
    smean[warp] = mean, sm2[warp] = m2, scount[warp] = count;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < THREADS / 32; w++)
      join(smean[w], sm2[w], scount[w]);
}

template <int THREADS, int VEC> __global__ void __launch_bounds__(THREADS) bn_stats_welford(BN p) {
  const int c = blockIdx.x, per = p.hw / VEC;
  float mean = 0.0f, m2 = 0.0f, count = 0.0f;
  for (int j = threadIdx.x; j < p.n * per; j += THREADS) {
    const size_t at = ((size_t)(j / per) * p.c + c) * p.hw + (size_t)(j % per) * VEC;
    float v[VEC];
    if (VEC == 4)
      *reinterpret_cast<float4 *>(v) = *reinterpret_cast<const float4 *>(p.x + at);
    else
      v[0] = p.x[at];
#pragma unroll
    for (int e = 0; e < VEC; e++) {
      count += 1.0f;
      const float d = v[e] - mean;
      mean += d / count;
      m2 += d * (v[e] - mean);
    }
  }
  welford_merge<THREADS>(mean, m2, count);
  if (threadIdx.x != 0)
    return;
  p.save_mean[c] = mean;
  p.save_rstd[c] = 1.0f / sqrtf(m2 / count + p.eps);
  p.run_mean[c] = (1.0f - p.momentum) * p.run_mean[c] + p.momentum * mean;
  p.run_var[c] = (1.0f - p.momentum) * p.run_var[c] + p.momentum * (m2 / fmaxf(count - 1.0f, 1.0f));
}

__global__ void bn_apply_vec4(BN p) { // one plane per block row, hw % 4 == 0
  for (int plane = blockIdx.y; plane < p.n * p.c; plane += gridDim.y) {
    const int c = plane % p.c;
    const float m = p.save_mean[c], r = p.save_rstd[c], g = p.gamma[c], b = p.beta[c];
    const float4 *src = reinterpret_cast<const float4 *>(p.x + (size_t)plane * p.hw);
    float4 *dst = reinterpret_cast<float4 *>(p.y + (size_t)plane * p.hw);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.hw / 4; i += gridDim.x * blockDim.x) {
      const float4 v = src[i];
      dst[i] = make_float4((v.x - m) * r * g + b, (v.y - m) * r * g + b, (v.z - m) * r * g + b, (v.w - m) * r * g + b);
    }
  }
}

__global__ void bn_apply_flat(BN p) {
  const unsigned total = (unsigned)p.n * p.c * p.hw;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const unsigned c = i / p.hw % p.c;
    p.y[i] = (p.x[i] - p.save_mean[c]) * p.save_rstd[c] * p.gamma[c] + p.beta[c];
  }
}

void run(BN p) {
  if (p.n <= 0 || p.c <= 0 || p.hw <= 0)
    return;
  const int total = p.n * p.c * p.hw, work = p.n * p.hw;
  const bool vec = p.hw % 4 == 0 && (((uintptr_t)p.x | (uintptr_t)p.y) & 15) == 0;
  if (vec && work >= 1024)
    bn_stats_welford<256, 4><<<p.c, 256>>>(p);
  else if (work >= 1024)
    bn_stats_welford<256, 1><<<p.c, 256>>>(p);
  else if (work > 64)
    bn_stats_welford<64, 1><<<p.c, 64>>>(p);
  else
    bn_stats_welford<32, 1><<<p.c, 32>>>(p);
  if (vec && p.hw >= 64)
    bn_apply_vec4<<<dim3((p.hw / 4 + 63) / 64, std::min(p.n * p.c, 64)), 64>>>(p);
  else
    bn_apply_flat<<<std::min((total + 127) / 128, 64), 128>>>(p);
}

//--- cached-columns-or-segments
enum { THREADS = 128, CACHE = 4096, SEGMENT = 2048 };

__device__ float block_sum(float v) {
  __shared__ float s[THREADS];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int o = THREADS / 2; o >= 32; o >>= 1) {
    if ((int)threadIdx.x < o)
      s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  v = s[threadIdx.x % 32];
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  __syncthreads();
  return v;
}

__device__ float finish_channel(const BN &p, int c, float mean, float m2) {
  const float count = (float)p.n * p.hw, rstd = 1.0f / sqrtf(m2 / count + p.eps);
  p.save_mean[c] = mean;
  p.save_rstd[c] = rstd;
  p.run_mean[c] = (1.0f - p.momentum) * p.run_mean[c] + p.momentum * mean;
  p.run_var[c] = (1.0f - p.momentum) * p.run_var[c] + p.momentum * (m2 / (count > 1.0f ? count - 1.0f : 1.0f));
  return rstd;
}

// one value per sample and channel: 32 channels by 8 samples at a time, channels along x
__global__ void bn_columns(BN p) {
  __shared__ float part[8][33];
  const int c = blockIdx.x * 32 + threadIdx.x, ty = threadIdx.y;
  auto column_sum = [&](float v) {
    part[ty][threadIdx.x] = v;
    __syncthreads();
    float s = 0.0f;
    for (int j = 0; j < 8; j++)
      s += part[j][threadIdx.x];
    __syncthreads();
    return s;
  };
  float s = 0.0f, q = 0.0f, rstd = 0.0f;
  for (int n = ty; c < p.c && n < p.n; n += 8)
    s += p.x[n * p.c + c];
  const float mean = column_sum(s) / (float)p.n;
  for (int n = ty; c < p.c && n < p.n; n += 8)
    q += (p.x[n * p.c + c] - mean) * (p.x[n * p.c + c] - mean);
  q = column_sum(q);
  if (c < p.c && ty == 0)
    part[0][threadIdx.x] = finish_channel(p, c, mean, q);
  __syncthreads();
  if (c < p.c)
    rstd = part[0][threadIdx.x];
  for (int n = ty; c < p.c && n < p.n; n += 8)
    p.y[n * p.c + c] = (p.x[n * p.c + c] - mean) * rstd * p.gamma[c] + p.beta[c];
}

// a channel fits in shared memory: read once, two sweeps there, write once
__global__ void bn_cached(BN p) {
  extern __shared__ float v[];
  __shared__ float s_rstd;
  const int c = blockIdx.x, total = p.n * p.hw;
  float s = 0.0f, q = 0.0f;
  for (int j = threadIdx.x; j < total; j += THREADS)
    s += v[j] = p.x[(j / p.hw * p.c + c) * p.hw + j % p.hw];
  const float mean = block_sum(s) / total;
  for (int j = threadIdx.x; j < total; j += THREADS)
    v[j] -= mean, q += v[j] * v[j];
  q = block_sum(q);
  if (threadIdx.x == 0)
    s_rstd = finish_channel(p, c, mean, q);
  __syncthreads();
  const float rstd = s_rstd, g = p.gamma[c], b = p.beta[c];
  for (int j = threadIdx.x; j < total; j += THREADS)
    p.y[(j / p.hw * p.c + c) * p.hw + j % p.hw] = v[j] * rstd * g + b;
}

// long channels: segments of 2048 values leave mean and squared deviation, the last segment of a channel merges them
__global__ void bn_segments(BN p, float2 *part, unsigned *arrived) {
  __shared__ bool last;
  const int c = blockIdx.y, total = p.n * p.hw, first = blockIdx.x * SEGMENT, len = min(SEGMENT, total - first);
  float r[SEGMENT / THREADS], s = 0.0f, q = 0.0f;
#pragma unroll
  for (int k = 0; k < SEGMENT / THREADS; k++) {
    const int j = first + k * THREADS + threadIdx.x;
    r[k] = j < first + len ? p.x[(j / p.hw * p.c + c) * p.hw + j % p.hw] : 0.0f;
    s += r[k];
  }
  const float mean = block_sum(s) / len;
#pragma unroll
  for (int k = 0; k < SEGMENT / THREADS; k++)
    if (k * THREADS + (int)threadIdx.x < len)
      q += (r[k] - mean) * (r[k] - mean);
  q = block_sum(q);
  if (threadIdx.x == 0) {
    part[c * gridDim.x + blockIdx.x] = make_float2(mean, q);
    __threadfence();
    last = atomicAdd(arrived + c, 1u) + 1 == gridDim.x;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0)
    return;
  __threadfence();
  const volatile float2 *f = part + c * gridDim.x;
  float m = 0.0f, m2 = 0.0f;
  for (unsigned i = 0; i < gridDim.x; i++)
    m += f[i].x * (float)min(SEGMENT, total - (int)i * SEGMENT);
  m /= total;
  for (unsigned i = 0; i < gridDim.x; i++) {
    const float d = f[i].x - m;
    m2 += f[i].y + d * d * (float)min(SEGMENT, total - (int)i * SEGMENT);
  }
  finish_channel(p, c, m, m2);
}

__global__ void bn_normalize(BN p) {
  const int c = blockIdx.y, total = p.n * p.hw;
  const float m = p.save_mean[c], r = p.save_rstd[c], g = p.gamma[c], b = p.beta[c];
  for (int j = blockIdx.x * THREADS + threadIdx.x; j < total; j += gridDim.x * THREADS) {
    const int at = (j / p.hw * p.c + c) * p.hw + j % p.hw;
    p.y[at] = (p.x[at] - m) * r * g + b;
  }
}

void run(BN p) {
  if (p.n <= 0 || p.c <= 0 || p.hw <= 0)
    return;
  const int total = p.n * p.hw, segments = (total + SEGMENT - 1) / SEGMENT;
  if (p.hw == 1)
    return bn_columns<<<(p.c + 31) / 32, dim3(32, 8)>>>(p);
  if (total <= CACHE)
    return bn_cached<<<p.c, THREADS, total * sizeof(float)>>>(p);
  char *scratch;
  const size_t bytes = sizeof(float2) * p.c * segments;
  cudaMalloc(&scratch, bytes + sizeof(unsigned) * p.c);
  cudaMemset(scratch + bytes, 0, sizeof(unsigned) * p.c);
  bn_segments<<<dim3(segments, p.c), THREADS>>>(p, (float2 *)scratch, (unsigned *)(scratch + bytes));
  bn_normalize<<<dim3(segments, p.c), THREADS>>>(p);
  cudaFree(scratch);
}

//--- main
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 3, c = argc > 2 ? atoi(argv[2]) : 5, hw = argc > 3 ? atoi(argv[3]) : 144;
  if (n < 0 || c < 0 || hw < 0)
    n = c = hw = 0;
  const size_t total = (size_t)n * c * hw,
               len[8] = {total, total, (size_t)c, (size_t)c, (size_t)c, (size_t)c, (size_t)c, (size_t)c};
  std::vector<float> h[8]; // y x mean rstd running-mean running-var gamma beta
  float *d[8];
  unsigned s = 4711;
  for (int k = 0; k < 8; k++) {
    h[k].assign(len[k], 0.0f);
    for (size_t i = 0; i < len[k] && k != 0 && k != 2 && k != 3; i++) {
      s = s * 1664525u + 1013904223u;
      h[k][i] = (k == 5 ? 0.5f : -1.0f + (k == 1 ? (float)(i / hw % c) : 0.0f)) + (s >> 16) / 30000.0f;
    }
    cudaMalloc(&d[k], len[k] * sizeof(float) + 4);
    cudaMemcpy(d[k], h[k].data(), len[k] * sizeof(float), cudaMemcpyHostToDevice);
  }
  run(BN{d[1], d[6], d[7], d[0], d[2], d[3], d[4], d[5], n, c, hw, 1e-5f, 0.1f});
  const char *names[] = {"y", "", "mean", "rstd", "running mean", "running var"};
  for (int k : {0, 2, 3, 4, 5}) {
    cudaMemcpy(h[k].data(), d[k], len[k] * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (size_t i = 0; i < len[k]; i++)
      sum += h[k][i] * (double)(1 + i % 11);
    printf("%s %.3f\n", names[k], sum);
  }
  for (size_t i = 0; i < total; i += total / 6 + 1)
    printf("y[%zu] %.4f\n", i, h[0][i]);
  return 0;
}
