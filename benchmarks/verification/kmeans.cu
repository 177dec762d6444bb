//--- common
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// iters rounds of: assign[i] = nearest centroid (squared distance, the lower number of equal ones), counts,
// centroids = mean of their points (a centroid without points stays where it is)
static int blocks_for(int n, int per) { return (n + per - 1) / per; }

//--- original
__global__ void assign_points(const float *pts, const float *cent, int *assign, int n, int k, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float best = INFINITY;
  int arg = 0;
  for (int c = 0; c < k; c++) {
    float d2 = 0.0f;
    for (int d = 0; d < dim; d++) {
      float t = pts[i * dim + d] - cent[c * dim + d];
      d2 += t * t;
    }
    if (d2 < best) {
      best = d2;
      arg = c;
    }
  }
  assign[i] = arg;
}

__global__ void count_points(const int *assign, int *counts, int n, int k) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= k)
    return;
  int m = 0;
  for (int i = 0; i < n; i++)
    m += assign[i] == c;
  counts[c] = m;
}

__global__ void update_centroids(const float *pts, float *cent, const int *assign, const int *counts, int n, int k,
                                 int dim) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= k * dim)
    return;
  int c = j / dim, d = j % dim;
  if (counts[c] == 0)
    return;
  float s = 0.0f;
  for (int i = 0; i < n; i++)
    if (assign[i] == c)
      s += pts[i * dim + d];
  cent[j] = s / counts[c];
}

void run(const float *pts, float *cent, int *assign, int *counts, int n, int k, int dim, int iters) {
  if (n <= 0 || k <= 0 || dim <= 0)
    return;
  for (int it = 0; it < iters; it++) {
    assign_points<<<blocks_for(n, 128), 128>>>(pts, cent, assign, n, k, dim);
    count_points<<<blocks_for(k, 64), 64>>>(assign, counts, n, k);
    update_centroids<<<blocks_for(k * dim, 64), 64>>>(pts, cent, assign, counts, n, k, dim);
  }
}

//--- fused-shared-accumulators
// assignment and accumulation in one kernel; DIM > 0: the point is in registers; SHARED: centroids, sums and counts of
// the block are in shared memory (2 * k * dim + k words), otherwise in global memory
template <int DIM, bool SHARED>
__global__ void assign_accumulate(const float *__restrict__ pts, const float *__restrict__ cent,
                                  int *__restrict__ assign, float *sums, int *counts, int n, int k, int dim_arg) {
  extern __shared__ float smem[];
  const int dim = DIM > 0 ? DIM : dim_arg, kd = k * dim;
  const float *cc = SHARED ? smem : cent;
  float *ss = SHARED ? smem + kd : sums;
  int *sn = SHARED ? reinterpret_cast<int *>(smem + 2 * kd) : counts;
  if (SHARED) {
    for (int j = threadIdx.x; j < kd; j += blockDim.x) {
      smem[j] = cent[j];
      ss[j] = 0.0f;
    }
    for (int j = threadIdx.x; j < k; j += blockDim.x)
      sn[j] = 0;
    __syncthreads();
  }
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float p[DIM > 0 ? DIM : 1];
    if constexpr (DIM == 4) {
      const float4 f = reinterpret_cast<const float4 *>(pts)[i];
      p[0] = f.x, p[1] = f.y, p[2] = f.z, p[3] = f.w;
    } else if constexpr (DIM == 2) {
      const float2 f = reinterpret_cast<const float2 *>(pts)[i];
      p[0] = f.x, p[1] = f.y;
    } else if constexpr (DIM > 0) {
      for (int d = 0; d < DIM; d++)
        p[d] = pts[(size_t)i * DIM + d];
    }
    auto coord = [&](int d) {
      if constexpr (DIM > 0)
        return p[d];
      else
        return pts[(size_t)i * dim + d];
    };
    float best = INFINITY;
    int arg = 0;
    for (int c = 0; c < k; c++) {
      float d2 = 0.0f;
#pragma unroll 4
      for (int d = 0; d < dim; d++) {
        const float t = coord(d) - cc[c * dim + d];
        d2 += t * t;
      }
      if (d2 < best)
        best = d2, arg = c;
    }
    assign[i] = arg;
    for (int d = 0; d < dim; d++)
      atomicAdd(ss + arg * dim + d, coord(d));
    atomicAdd(sn + arg, 1);
  }
  if (!SHARED)
    return;
  __syncthreads();
  for (int j = threadIdx.x; j < kd; j += blockDim.x)
    if (sn[j / dim] > 0)
      atomicAdd(sums + j, ss[j]);
  for (int j = threadIdx.x; j < k; j += blockDim.x)
    if (sn[j] > 0)
      atomicAdd(counts + j, sn[j]);
}

__global__ void finalize(float *cent, const float *sums, const int *counts, int k, int dim) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < k * dim && counts[j / dim] > 0)
    cent[j] = sums[j] / counts[j / dim];
}

void run(const float *pts, float *cent, int *assign, int *counts, int n, int k, int dim, int iters) {
  if (n <= 0 || k <= 0 || dim <= 0)
    return;
  float *sums;
  cudaMalloc(&sums, sizeof(float) * k * dim);
  const size_t smem = sizeof(float) * (2 * (size_t)k * dim + k);
  const int grid = std::min(blocks_for(n, 128), 16);
  const int small = smem <= 32 * 1024 && (uintptr_t)pts % 16 == 0 && dim <= 4 ? dim : 0;
  for (int it = 0; it < iters; it++) {
    cudaMemset(sums, 0, sizeof(float) * k * dim);
    cudaMemset(counts, 0, sizeof(int) * k);
#define GO(D, S) assign_accumulate<D, S><<<grid, 128, (S ? smem : 0)>>>(pts, cent, assign, sums, counts, n, k, dim)
    switch (small) {
    case 1: GO(1, true); break;
    case 2: GO(2, true); break;
    case 3: GO(3, true); break;
    case 4: GO(4, true); break;
    default:
      if (smem <= 32 * 1024)
        GO(0, true);
      else
        GO(0, false);
    }
#undef GO
    finalize<<<blocks_for(k * dim, 128), 128>>>(cent, sums, counts, k, dim);
  }
  cudaFree(sums);
}

//--- warp-or-tile-assign-cluster-blocks
constexpr int kTile = 32;    // centroids per shared tile
constexpr int kMaxDim = 32;  // points up to this size live in a private array
constexpr int kChunk = 1024; // points a cluster block looks at at a time

// dim <= 32: thread per point, centroid tiles double buffered in shared memory
__global__ void __launch_bounds__(64)
    assign_tiles(const float *pts, const float *cent, int *assign, int n, int k, int dim) {
  __shared__ float tile[2][kTile * kMaxDim];
  const int i = blockIdx.x * 64 + threadIdx.x, kd = k * dim, step = kTile * dim;
  float p[kMaxDim], best = INFINITY;
  int arg = 0;
#pragma unroll
  for (int d = 0; d < kMaxDim; d++)
    p[d] = i < n && d < dim ? pts[i * dim + d] : 0.0f;
  for (int j = threadIdx.x; j < min(step, kd); j += 64)
    tile[0][j] = cent[j];
  __syncthreads();
  for (int first = 0, cur = 0; first < k; first += kTile, cur ^= 1) {
    const int ahead = (first + kTile) * dim;
    for (int j = threadIdx.x; j < min(step, kd - ahead); j += 64)
      tile[cur ^ 1][j] = cent[ahead + j];
    for (int c = 0; c < min(kTile, k - first); c++) {
      float d2 = 0.0f;
#pragma unroll
      for (int d = 0; d < kMaxDim; d++)
        if (d < dim) {
          const float t = p[d] - tile[cur][c * dim + d];
          d2 += t * t;
        }
      if (d2 < best)
        best = d2, arg = first + c;
    }
    __syncthreads();
  }
  if (i < n)
    assign[i] = arg;
}

// dim > 32: warp per point, lanes share the coordinates
template <bool VEC>
__global__ void assign_warps(const float *pts, const float *cent, int *assign, int n, int k, int dim) {
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= n)
    return;
  const float *p = pts + (size_t)i * dim;
  float best = INFINITY;
  int arg = 0;
  for (int c = 0; c < k; c++) {
    const float *q = cent + (size_t)c * dim;
    float d2 = 0.0f;
    if (VEC) {
      for (int d = threadIdx.x; d < dim / 4; d += 32) {
        const float4 a = reinterpret_cast<const float4 *>(p)[d], b = reinterpret_cast<const float4 *>(q)[d];
        d2 += (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
        d2 += (a.z - b.z) * (a.z - b.z) + (a.w - b.w) * (a.w - b.w);
      }
    } else {
      for (int d = threadIdx.x; d < dim; d += 32)
        d2 += (p[d] - q[d]) * (p[d] - q[d]);
    }
    for (int o = 16; o > 0; o >>= 1)
      d2 += __shfl_xor_sync(0xffffffffu, d2, o);
    if (d2 < best)
      best = d2, arg = c;
  }
  if (threadIdx.x == 0)
    assign[i] = arg;
}

// a block (32 coordinates x 4) per cluster: lists its points chunk by chunk, then adds them up, no float atomics
__global__ void __launch_bounds__(128)
    update_cluster(const float *pts, float *cent, const int *assign, int *counts, int n, int dim) {
  __shared__ int list[kChunk], found;
  __shared__ float part[4][32];
  const int c = blockIdx.x, tid = threadIdx.y * 32 + threadIdx.x, d = blockIdx.y * 32 + threadIdx.x;
  float s = 0.0f;
  int total = 0;
  for (int first = 0; first < n; first += kChunk) {
    if (tid == 0)
      found = 0;
    __syncthreads();
    for (int i = first + tid; i < min(first + kChunk, n); i += 128)
      if (assign[i] == c)
        list[atomicAdd(&found, 1)] = i;
    __syncthreads();
    total += found;
    for (int j = threadIdx.y; d < dim && j < found; j += 4)
      s += pts[(size_t)list[j] * dim + d];
    __syncthreads();
  }
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y != 0)
    return;
  if (blockIdx.y == 0 && threadIdx.x == 0)
    counts[c] = total;
  if (d < dim && total > 0)
    cent[(size_t)c * dim + d] =
        (part[0][threadIdx.x] + part[1][threadIdx.x] + part[2][threadIdx.x] + part[3][threadIdx.x]) / total;
}

void run(const float *pts, float *cent, int *assign, int *counts, int n, int k, int dim, int iters) {
  if (n <= 0 || k <= 0 || dim <= 0)
    return;
  const bool vec = dim % 4 == 0 && (((uintptr_t)pts | (uintptr_t)cent) & 15) == 0;
  while (iters-- > 0) {
    if (dim <= kMaxDim)
      assign_tiles<<<blocks_for(n, 64), 64>>>(pts, cent, assign, n, k, dim);
    else if (vec)
      assign_warps<true><<<blocks_for(n, 4), dim3(32, 4)>>>(pts, cent, assign, n, k, dim);
    else
      assign_warps<false><<<blocks_for(n, 4), dim3(32, 4)>>>(pts, cent, assign, n, k, dim);
    update_cluster<<<dim3(k, blocks_for(dim, 32)), dim3(32, 4)>>>(pts, cent, assign, counts, n, dim);
  }
}

//--- main
int main(int argc, char **argv) { // points, centroids, dimensions, rounds
  int v[4] = {900, 6, 3, 2};
  for (int i = 0; i < 4 && i + 1 < argc; i++)
    v[i] = std::max(0, atoi(argv[i + 1]));
  const int n = v[0], k = v[1], dim = v[2], iters = v[3];
  std::vector<float> pts((size_t)n * dim), cent((size_t)k * dim);
  std::vector<int> assign(n, -1), counts(k, -1);
  uint64_t s = 88172645463325252ull;
  auto rnd = [&s] { return s ^= s << 13, s ^= s >> 7, s ^= s << 17, (int)(s >> 40 & 1023); };
  for (size_t i = 0; i < pts.size(); i++)
    pts[i] = (rnd() - 512) / 64.0f + (float)(i / dim % 3);
  for (auto &c : cent)
    c = (rnd() - 500) / 64.0f;
  for (int d = 0; d < dim && k > 2; d++)
    cent[d + dim] = 1000.0f, cent[d + 2 * dim] = cent[d]; // an empty one, a tie
  float *dp, *dc;
  int *da, *dn;
  cudaMalloc(&dp, pts.size() * 4 + 4), cudaMalloc(&dc, cent.size() * 4 + 4);
  cudaMalloc(&da, n * 4 + 4), cudaMalloc(&dn, k * 4 + 4);
  cudaMemcpy(dp, pts.data(), pts.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dc, cent.data(), cent.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(da, assign.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dn, counts.data(), k * 4, cudaMemcpyHostToDevice);
  run(dp, dc, da, dn, n, k, dim, iters);
  cudaMemcpy(assign.data(), da, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(counts.data(), dn, k * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(cent.data(), dc, cent.size() * 4, cudaMemcpyDeviceToHost);
  long long sa = 0, sn = 0;
  double sc = 0;
  for (int i = 0; i < n; i++)
    sa += assign[i] * (1 + i % 7);
  for (int c = 0; c < k; c++)
    sn += counts[c] * (1 + c % 7);
  for (size_t j = 0; j < cent.size(); j++)
    sc += cent[j] * (1 + j % 7);
  printf("assign %lld counts %lld centroids %.4f\n", sa, sn, sc);
  for (size_t j = 0; j < cent.size(); j += cent.size() / 8 + 1)
    printf("cent[%zu] %.5f\n", j, cent[j]);
  return 0;
}
