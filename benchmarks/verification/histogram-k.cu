//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// hist[b] = number of keys equal to b, 0 <= b < k; keys out of range are skipped
#define DIV_UP(a, b) (((a) + (b) - 1) / (b))
//--- original
__global__ void hist_kernel(const int *keys, int n, unsigned *hist, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int b = keys[i];
    if (b >= 0 && b < k)
      atomicAdd(&hist[b], 1u);
  }
}

void run(const int *keys, int n, unsigned *hist, int k) {
  if (k <= 0)
    return;
  cudaMemset(hist, 0, k * sizeof(unsigned));
  if (n <= 0)
    return;
  hist_kernel<<<DIV_UP(n, 128), 128>>>(keys, n, hist, k);
}
//--- shared-privatized
// COPIES sub-histograms per block, one for each group of warps; row stride k + 1 against bank conflicts
template <int COPIES, bool VEC>
__global__ void hist_shared(const int *__restrict__ keys, int n, unsigned *hist, unsigned k) {
  extern __shared__ unsigned bins[];
  const unsigned pitch = k + 1;
  for (unsigned j = threadIdx.x; j < COPIES * pitch; j += blockDim.x)
    bins[j] = 0;
  __syncthreads();
  unsigned *mine = bins + (threadIdx.x / 32 % COPIES) * pitch;
  auto count = [&](int key) {
    if ((unsigned)key < k)
      atomicAdd(mine + key, 1u);
  };
  const int tid = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  if (VEC) {
    const int4 *keys4 = reinterpret_cast<const int4 *>(keys);
    for (int i = tid; i < n / 4; i += stride) {
      const int4 q = __ldg(keys4 + i);
      count(q.x);
      count(q.y);
      count(q.z);
      count(q.w);
    }
    const int rest = n / 4 * 4 + tid;
    if (rest < n)
      count(keys[rest]);
  } else {
    for (int i = tid; i < n; i += stride)
      count(keys[i]);
  }
  __syncthreads();
  for (unsigned b = threadIdx.x; b < k; b += blockDim.x) {
    unsigned sum = 0;
#pragma unroll
    for (int c = 0; c < COPIES; ++c)
      sum += bins[c * pitch + b];
    if (sum)
      atomicAdd(hist + b, sum);
  }
}

// Many bins: lanes with the same key elect a leader that adds for all of them.
__global__ void hist_aggregated(const int *__restrict__ keys, int n, unsigned *hist, int k) {
  const int lane = threadIdx.x & 31;
  const int first = blockIdx.x * blockDim.x + threadIdx.x - lane; // same for the whole warp
  for (int base = first; base < n; base += gridDim.x * blockDim.x) {
    const int key = base + lane < n ? keys[base + lane] : -1;
    const unsigned peers = __match_any_sync(0xffffffffu, key);
    if (key >= 0 && key < k && lane == __ffs(peers) - 1)
      atomicAdd(&hist[key], (unsigned)__popc(peers));
    __syncwarp();
  }
}

template <int COPIES> static void launch_shared(const int *keys, int n, unsigned *hist, int k) {
  int blocks = DIV_UP(n, 2048);
  if (blocks > 256)
    blocks = 256;
  const size_t smem = COPIES * (k + 1) * sizeof(unsigned);
  if ((uintptr_t)keys % 16 == 0)
    hist_shared<COPIES, true><<<blocks, 256, smem>>>(keys, n, hist, k);
  else
    hist_shared<COPIES, false><<<blocks, 256, smem>>>(keys, n, hist, k);
}

void run(const int *keys, int n, unsigned *hist, int k) {
  if (k <= 0)
    return;
  cudaMemset(hist, 0, k * sizeof(unsigned));
  if (n <= 0)
    return;
  if (k <= 256)
    launch_shared<8>(keys, n, hist, k);
  else if (k <= 4096)
    launch_shared<1>(keys, n, hist, k);
  else
    hist_aggregated<<<(DIV_UP(n, 256) > 512 ? 512 : DIV_UP(n, 256)), 256>>>(keys, n, hist, k);
}
//--- partials-then-merge
typedef unsigned int uint;
struct Params {
  const int *keys;
  int n, k;
  uint *partial; // [blocks][k]
};

// Few bins: counters live in registers, the compares are unrolled.
template <int KMAX> __global__ void hist_tiny(Params p) {
  __shared__ uint sh[4][KMAX];
  uint c[KMAX];
#pragma unroll
  for (int b = 0; b < KMAX; b++)
    c[b] = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < p.n; i += gridDim.x * 128) {
    int key = p.keys[i];
#pragma unroll
    for (int b = 0; b < KMAX; b++)
      c[b] += key == b;
  }
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int b = 0; b < KMAX; b++) {
    for (int d = 16; d; d /= 2)
      c[b] += __shfl_xor_sync(0xffffffffu, c[b], d);
    if (lane == 0)
      sh[warp][b] = c[b];
  }
  __syncthreads();
  int b = threadIdx.x;
  if (b < p.k)
    p.partial[blockIdx.x * p.k + b] = sh[0][b] + sh[1][b] + sh[2][b] + sh[3][b];
}

// blockIdx.y selects a range of 1024 bins, blockIdx.x a slice of the keys
__global__ void hist_range(Params p) {
  __shared__ uint sh[1024];
  const int lo = blockIdx.y * 1024, width = min(1024, p.k - lo);
  for (int b = threadIdx.x; b < 1024; b += blockDim.x)
    sh[b] = 0;
  __syncthreads();
  const int per = DIV_UP(p.n, (int)gridDim.x), begin = blockIdx.x * per;
  const int end = min(begin + per, p.n);
  int i = begin + threadIdx.x;
  for (; i + 3 * (int)blockDim.x < end; i += 4 * blockDim.x) {
    int q[4];
#pragma unroll
    for (int u = 0; u < 4; u++)
      q[u] = p.keys[i + u * blockDim.x] - lo;
#pragma unroll
    for (int u = 0; u < 4; u++)
      if (q[u] >= 0 && q[u] < width)
        atomicAdd(&sh[q[u]], 1u);
  }
  for (; i < end; i += blockDim.x) {
    int q = p.keys[i] - lo;
    if (q >= 0 && q < width)
      atomicAdd(&sh[q], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < width; b += blockDim.x)
    p.partial[(size_t)blockIdx.x * p.k + lo + b] = sh[b];
}

__global__ void hist_merge(const uint *partial, int blocks, uint *hist, int k) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= k)
    return;
  uint sum = 0;
  for (int j = 0; j < blocks; j++)
    sum += partial[(size_t)j * k + b];
  hist[b] = sum;
}

__global__ void hist_direct(Params p, uint *hist) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += gridDim.x * blockDim.x)
    if ((uint)p.keys[i] < (uint)p.k)
      atomicAdd(hist + p.keys[i], 1u);
}

void run(const int *keys, int n, unsigned *hist, int k) {
  if (k <= 0)
    return;
  if (n <= 0 || k > 65536) {
    cudaMemset(hist, 0, k * sizeof(uint));
    Params p = {keys, n, k, nullptr};
    if (n > 0)
      hist_direct<<<(DIV_UP(n, 512) < 1024 ? DIV_UP(n, 512) : 1024), 256>>>(p, hist);
    return;
  }
  int blocks = DIV_UP(n, 4096);
  if (blocks > 64)
    blocks = 64;
  Params p = {keys, n, k, nullptr};
  cudaMalloc(&p.partial, (size_t)blocks * k * sizeof(uint));
  if (k <= 4)
    hist_tiny<4><<<blocks, 128>>>(p);
  else if (k <= 8)
    hist_tiny<8><<<blocks, 128>>>(p);
  else if (k <= 16)
    hist_tiny<16><<<blocks, 128>>>(p);
  else
    hist_range<<<dim3(blocks, DIV_UP(k, 1024)), 256>>>(p);
  hist_merge<<<DIV_UP(k, 128), 128>>>(p.partial, blocks, hist, k);
  cudaFree(p.partial);
}
//--- main
// usage: prog [n] [k] [element offset of keys]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 6000, k = argc > 2 ? atoi(argv[2]) : 256;
  int off = argc > 3 ? atoi(argv[3]) : 0;
  if (n < 0 || k < 0 || off < 0)
    return 1;
  int *hk = (int *)malloc((n + 1) * sizeof(int));
  unsigned *hh = (unsigned *)malloc((k + 1) * sizeof(unsigned));
  unsigned s = 777u;
  for (int i = 0; i < n; i++) {
    s = s * 1103515245u + 12345u;
    int span = k + 6, a = (int)((s >> 8) % (unsigned)span);
    s = s * 1103515245u + 12345u;
    int b = (int)((s >> 8) % (unsigned)span);
    hk[i] = (i % 3 ? (a < b ? a : b) : a) - 3; // uneven, some out of range on both sides
  }
  for (int b = 0; b <= k; b++)
    hh[b] = 99;
  int *dk;
  unsigned *dh;
  cudaMalloc(&dk, (n + off + 1) * sizeof(int));
  cudaMalloc(&dh, (k + 1) * sizeof(unsigned));
  cudaMemcpy(dk + off, hk, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(dh, hh, (k + 1) * sizeof(unsigned), cudaMemcpyHostToDevice);
  run(dk + off, n, dh, k);
  cudaMemcpy(hh, dh, (k + 1) * sizeof(unsigned), cudaMemcpyDeviceToHost);
  unsigned long long total = 0, weighted = 0, sq = 0;
  for (int b = 0; b < k; b++) {
    total += hh[b];
    weighted += (unsigned long long)hh[b] * (b + 1);
    sq += (unsigned long long)hh[b] * hh[b];
  }
  printf("n %d k %d total %llu weighted %llu sq %llu guard %u\n", n, k, total, weighted, sq, hh[k]);
  for (int b = 0; b < k; b += k / 7 + 1)
    printf("bin %d: %u\n", b, hh[b]);
  free(hk);
  free(hh);
  return cudaDeviceSynchronize() != cudaSuccess;
}
