//--- common
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <vector>

// losses[i] = log(sum_j exp(logits[i][j])) - logits[i][labels[i]], 0 where the label is negative (ignored);
// mean[0] = mean of the losses that count, 0 when none does. Logits are half, sums are float.

//--- original
__global__ void row_losses(const __half *logits, const int *labels, float *losses, int N, int V) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N)
    return;
  int label = labels[i];
  losses[i] = 0.0f;
  if (label < 0)
    return;
  const __half *row = logits + (size_t)i * V;
  float m = -INFINITY, s = 0.0f;
  for (int j = 0; j < V; j++)
    m = fmaxf(m, __half2float(row[j]));
  for (int j = 0; j < V; j++)
    s += expf(__half2float(row[j]) - m);
  losses[i] = logf(s) + m - __half2float(row[label]);
}

__global__ void mean_loss(const float *losses, const int *labels, float *mean, int N) {
  float sum = 0.0f;
  int count = 0;
  for (int i = 0; i < N; i++) {
    if (labels[i] < 0)
      continue;
    sum += losses[i], count++;
  }
  *mean = count > 0 ? sum / count : 0.0f;
}

void run(const __half *logits, const int *labels, float *losses, float *mean, int N, int V) {
  if (N <= 0 || V <= 0)
    return;
  row_losses<<<(N + 63) / 64, 64>>>(logits, labels, losses, N, V);
  mean_loss<<<1, 1>>>(losses, labels, mean, N);
}

//--- warp-or-block-half2-lastblock
constexpr int kThreads = 256;

__device__ __forceinline__ void online(float &m, float &s, float x) {
  if (x > m)
    s = s * expf(m - x) + 1.0f, m = x;
  else if (m > -INFINITY)
    s += expf(x - m);
}

__device__ __forceinline__ void join(float &m, float &s, float m2, float s2) {
  const float M = fmaxf(m, m2);
  s = (m > -INFINITY ? s * expf(m - M) : 0.0f) + (m2 > -INFINITY ? s2 * expf(m2 - M) : 0.0f);
  m = M;
}

__device__ __forceinline__ void warp_join(float &m, float &s) {
  for (int o = 16; o > 0; o >>= 1) {
    const float m2 = __shfl_xor_sync(0xffffffffu, m, o), s2 = __shfl_xor_sync(0xffffffffu, s, o);
    join(m, s, m2, s2);
  }
}

__global__ void loss_warp(const __half *logits, const int *labels, float *losses, int N, int V) {
  const int i = (blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (i >= N)
    return;
  const int label = labels[i];
  const __half *row = logits + (size_t)i * V;
  float m = -INFINITY, s = 0.0f;
  if (label >= 0)
    for (int j = lane; j < V; j += 32)
      online(m, s, __half2float(row[j]));
  warp_join(m, s);
  if (lane == 0)
    losses[i] = label >= 0 ? logf(s) + m - __half2float(row[label]) : 0.0f;
}

template <bool kHalf2> __global__ void loss_block(const __half *logits, const int *labels, float *losses, int V) {
  __shared__ float sm[kThreads / 32], ss[kThreads / 32];
  const int label = labels[blockIdx.x], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (label < 0) { // the same for all threads of the block
    if (threadIdx.x == 0)
      losses[blockIdx.x] = 0.0f;
    return;
  }
  const __half *row = logits + (size_t)blockIdx.x * V;
  float m = -INFINITY, s = 0.0f;
  if constexpr (kHalf2) {
    const __half2 *row2 = reinterpret_cast<const __half2 *>(row);
    for (int j = threadIdx.x; j < V / 2; j += kThreads) {
      const float2 f = __half22float2(row2[j]);
      online(m, s, f.x), online(m, s, f.y);
    }
  } else {
    for (int j = threadIdx.x; j < V; j += kThreads)
      online(m, s, __half2float(row[j]));
  }
  warp_join(m, s);
  if (lane == 0)
    sm[warp] = m, ss[warp] = s;
  __syncthreads();
  if (warp == 0) {
    m = lane < kThreads / 32 ? sm[lane] : -INFINITY;
    s = lane < kThreads / 32 ? ss[lane] : 0.0f;
    warp_join(m, s);
    if (lane == 0)
      losses[blockIdx.x] = logf(s) + m - __half2float(row[label]);
  }
}

// every block leaves a partial sum and count, the last one to arrive adds them up
__global__ void mean_lastblock(const float *losses, const int *labels, float *mean, float2 *part, unsigned *done,
                               int N) {
  __shared__ float2 sh[kThreads];
  __shared__ bool last;
  float2 a = make_float2(0.0f, 0.0f);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N; i += gridDim.x * kThreads)
    if (labels[i] >= 0)
      a.x += losses[i], a.y += 1.0f;
  for (int pass = 0; pass < 2; pass++) {
    sh[threadIdx.x] = a;
    __syncthreads();
    for (int o = kThreads / 2; o > 0; o /= 2) {
      if ((int)threadIdx.x < o)
        sh[threadIdx.x].x += sh[threadIdx.x + o].x, sh[threadIdx.x].y += sh[threadIdx.x + o].y;
      __syncthreads();
    }
    if (pass == 1)
      break;
    if (threadIdx.x == 0) {
      part[blockIdx.x] = sh[0];
      __threadfence();
      last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
      __threadfence();
    }
    __syncthreads();
    if (!last)
      return;
    a = make_float2(0.0f, 0.0f);
    for (int i = threadIdx.x; i < (int)gridDim.x; i += kThreads) {
      const volatile float *p = reinterpret_cast<const volatile float *>(part + i);
      a.x += p[0], a.y += p[1];
    }
  }
  if (threadIdx.x == 0)
    *mean = sh[0].y > 0.0f ? sh[0].x / sh[0].y : 0.0f;
}

void run(const __half *logits, const int *labels, float *losses, float *mean, int N, int V) {
  if (N <= 0 || V <= 0)
    return;
  if (V <= 1024)
    loss_warp<<<(N + 7) / 8, kThreads>>>(logits, labels, losses, N, V);
  else if (V % 2 == 0 && (uintptr_t)logits % 4 == 0)
    loss_block<true><<<N, kThreads>>>(logits, labels, losses, V);
  else
    loss_block<false><<<N, kThreads>>>(logits, labels, losses, V);
  const int grid = std::min((N + kThreads - 1) / kThreads, 16);
  char *scratch;
  cudaMalloc(&scratch, 16 + 16 * sizeof(float2));
  cudaMemset(scratch, 0, 16);
  mean_lastblock<<<grid, kThreads>>>(losses, labels, mean, (float2 *)(scratch + 16), (unsigned *)scratch, N);
  cudaFree(scratch);
}

//--- fused-vec8-atomics
struct Accum {
  float sum;
  int count;
  unsigned rows;
};

__device__ float reduce_max(float v, float *sh) {
  for (int o = 16; o; o >>= 1)
    v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  if (threadIdx.x % 32 == 0)
    sh[threadIdx.x / 32] = v;
  __syncthreads();
  for (unsigned w = 0; w < blockDim.x / 32; w++)
    v = fmaxf(v, sh[w]);
  __syncthreads();
  return v;
}
__device__ float reduce_sum(float v, float *sh) {
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0)
    sh[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
  for (unsigned w = 0; w < blockDim.x / 32; w++)
    v += sh[w];
  __syncthreads();
  return v;
}

// adds what a block has found; whoever completes all N rows writes the mean
__device__ void finish(Accum *acc, float sum, int count, unsigned rows, unsigned N, float *mean) {
  if (count > 0)
    atomicAdd(&acc->sum, sum), atomicAdd(&acc->count, count);
  __threadfence();
  if (atomicAdd(&acc->rows, rows) + rows == N) {
    __threadfence();
    const int n = atomicAdd(&acc->count, 0);
    *mean = n > 0 ? atomicAdd(&acc->sum, 0.0f) / n : 0.0f;
  }
}

template <int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK) fused_block(const __half *__restrict__ logits, const int *__restrict__ labels,
                                                     float *losses, float *mean, Accum *acc, int V) {
  __shared__ float sh[BLOCK / 32];
  const int label = labels[blockIdx.x];
  const __half *row = logits + (size_t)blockIdx.x * V;
  float loss = 0.0f;
  if (label >= 0) {
    float m = -INFINITY, s = 0.0f;
    if (VEC == 8) {
      for (int j = threadIdx.x; j < V / 8; j += BLOCK) {
        const uint4 u = reinterpret_cast<const uint4 *>(row)[j];
        const __half2 *h = reinterpret_cast<const __half2 *>(&u);
        for (int e = 0; e < 4; e++)
          m = fmaxf(m, fmaxf(__low2float(h[e]), __high2float(h[e])));
      }
      m = reduce_max(m, sh);
      for (int j = threadIdx.x; j < V / 8; j += BLOCK) {
        const uint4 u = reinterpret_cast<const uint4 *>(row)[j];
        const __half2 *h = reinterpret_cast<const __half2 *>(&u);
        for (int e = 0; e < 4; e++)
          s += expf(__low2float(h[e]) - m) + expf(__high2float(h[e]) - m);
      }
    } else {
      for (int j = threadIdx.x; j < V; j += BLOCK)
        m = fmaxf(m, __half2float(row[j]));
      m = reduce_max(m, sh);
      for (int j = threadIdx.x; j < V; j += BLOCK)
        s += expf(__half2float(row[j]) - m);
    }
    s = reduce_sum(s, sh);
    loss = logf(s) + m - __half2float(row[label]);
  }
  if (threadIdx.x == 0) {
    losses[blockIdx.x] = loss;
    finish(acc, loss, label >= 0, 1, gridDim.x, mean);
  }
}

// few classes: a thread has a row, the block adds its losses before it touches the accumulator
__global__ void fused_thread(const __half *logits, const int *labels, float *losses, float *mean, Accum *acc, int N,
                             int V) {
  __shared__ float sh[4];
  const int i = blockIdx.x * 128 + threadIdx.x, label = i < N ? labels[i] : -1;
  float loss = 0.0f;
  if (label >= 0) {
    const __half *row = logits + (size_t)i * V;
    float m = __half2float(row[0]), s = 0.0f;
    for (int j = 1; j < V; j++)
      m = fmaxf(m, __half2float(row[j]));
    for (int j = 0; j < V; j++)
      s += expf(__half2float(row[j]) - m);
    loss = logf(s) + m - __half2float(row[label]);
  }
  if (i < N)
    losses[i] = loss;
  const int count = __syncthreads_count(label >= 0);
  loss = reduce_sum(loss, sh);
  if (threadIdx.x == 0)
    finish(acc, loss, count, min(128, N - (int)blockIdx.x * 128), N, mean);
}

void run(const __half *logits, const int *labels, float *losses, float *mean, int N, int V) {
  if (N <= 0 || V <= 0)
    return;
  Accum *acc;
  cudaMalloc(&acc, sizeof(Accum));
  cudaMemset(acc, 0, sizeof(Accum));
  const bool vec = V % 8 == 0 && ((uintptr_t)logits & 15) == 0;
  if (V <= 32)
    fused_thread<<<(N + 127) / 128, 128>>>(logits, labels, losses, mean, acc, N, V);
  else if (vec && V <= 1024)
    fused_block<64, 8><<<N, 64>>>(logits, labels, losses, mean, acc, V);
  else if (vec)
    fused_block<256, 8><<<N, 256>>>(logits, labels, losses, mean, acc, V);
  else if (V <= 512)
    fused_block<64, 1><<<N, 64>>>(logits, labels, losses, mean, acc, V);
  else
    fused_block<256, 1><<<N, 256>>>(logits, labels, losses, mean, acc, V);
  cudaFree(acc);
}

//--- main
int main(int argc, char **argv) {
  const int N = std::max(0, argc > 1 ? atoi(argv[1]) : 60), V = std::max(0, argc > 2 ? atoi(argv[2]) : 100);
  std::vector<__half> logits((size_t)N * V);
  std::vector<int> labels(N);
  std::vector<float> losses(N + 1, 0.0f); // the mean comes last
  uint32_t lcg = 7;
  auto next = [&lcg] { return (lcg = lcg * 747796405u + 2891336453u) >> 9; };
  for (auto &l : labels)
    l = V > 0 && next() % 6 ? (int)(next() % V) : -100;
  for (size_t i = 0; i < logits.size(); i++) {
    const float f = ((int)(next() % 8192) - 4096) / 640.0f;
    const bool masked = next() % 9 == 0 && labels[i / V] != (int)(i % V);
    logits[i] = __float2half(masked ? -INFINITY : f);
  }
  __half *dl;
  int *dt;
  float *out;
  cudaMalloc(&dl, logits.size() * 2 + 16), cudaMalloc(&dt, N * 4 + 4), cudaMalloc(&out, N * 4 + 4);
  cudaMemset(out, 0, N * 4 + 4);
  cudaMemcpy(dl, logits.data(), logits.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(dt, labels.data(), N * 4, cudaMemcpyHostToDevice);
  run(dl, dt, out, out + N, N, V);
  cudaMemcpy(losses.data(), out, N * 4 + 4, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < N; i++)
    sum += losses[i] * (1 + i % 3);
  printf("mean %.5f weighted sum %.4f\n", losses[N], sum);
  for (int i = 0; i < N; i += N / 8 + 1)
    printf("loss %d %.5f\n", i, losses[i]);
  return 0;
}
