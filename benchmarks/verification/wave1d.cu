//--- common
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <utility>
#include <vector>
// 1-D wave equation, n points, variable squared Courant number k, zero outside the domain, damping d:
//   next[i] = (2 - d) cur[i] - (1 - d) prev[i] + k[i] (cur[i-1] - 2 cur[i] + cur[i+1])
// After `steps` steps cur holds the newest level and prev the one before it.
struct Wave {
  int n, steps;
  double d;
};
//--- original
__global__ void wave_step(double *prev, const double *cur, const double *k, int n, double d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double left = i > 0 ? cur[i - 1] : 0.0;
  double right = i < n - 1 ? cur[i + 1] : 0.0;
  prev[i] = (2.0 - d) * cur[i] - (1.0 - d) * prev[i] + k[i] * (left - 2.0 * cur[i] + right);
}
void run(double *prev, double *cur, const double *k, Wave w) {
  if (w.n <= 0 || w.steps <= 0)
    return;
  double *p = prev, *c = cur;
  int grid = (w.n + 255) / 256;
  for (int s = 0; s < w.steps; s++) {
    wave_step<<<grid, 256>>>(p, c, k, w.n, w.d);
    std::swap(p, c);
  }
  if (c != cur) { // odd number of steps: exchange the contents
    double *t;
    size_t bytes = w.n * sizeof(double);
    cudaMalloc(&t, bytes);
    cudaMemcpy(t, cur, bytes, cudaMemcpyDeviceToDevice);
    cudaMemcpy(cur, prev, bytes, cudaMemcpyDeviceToDevice);
    cudaMemcpy(prev, t, bytes, cudaMemcpyDeviceToDevice);
    cudaFree(t);
  }
}
//--- vector2-or-single-block
// n even and >= 2048: two points per thread with double2 accesses, neighbours from adjacent lanes, grid-stride over
// warps
__global__ void __launch_bounds__(128) wave_pairs(double2 *__restrict__ prev, const double2 *__restrict__ cur,
                                                  const double2 *__restrict__ k, int pairs, double d) {
  const int lane = threadIdx.x & 31;
  const double a = 2.0 - d, b = 1.0 - d;
  const int stride = gridDim.x * blockDim.x;
  for (int base = blockIdx.x * blockDim.x + (threadIdx.x & ~31); base < pairs; base += stride) { // uniform per warp
    const int i = base + lane;
    const bool on = i < pairs;
    const double2 c = on ? cur[i] : make_double2(0.0, 0.0);
    double left = __shfl_up_sync(0xffffffffu, c.y, 1);
    double right = __shfl_down_sync(0xffffffffu, c.x, 1);
    if (lane == 0)
      left = i > 0 ? cur[i - 1].y : 0.0;
    if (lane == 31)
      right = i + 1 < pairs ? cur[i + 1].x : 0.0;
    if (on) {
      const double2 q = __ldg(k + i);
      double2 p = prev[i];
      p.x = a * c.x - b * p.x + q.x * (left - 2.0 * c.x + c.y);
      p.y = a * c.y - b * p.y + q.y * (c.x - 2.0 * c.y + right);
      prev[i] = p;
    }
  }
}
// generic: four strided points per thread
template <int PER>
__global__ void wave_strided(double *__restrict__ prev, const double *__restrict__ cur, const double *__restrict__ k,
                             int n, double d) {
  const int first = blockIdx.x * blockDim.x * PER + threadIdx.x;
#pragma unroll
  for (int u = 0; u < PER; ++u) {
    const int i = first + u * blockDim.x;
    if (i >= n)
      return;
    const double c = cur[i], l = i ? cur[i - 1] : 0.0, r = i + 1 < n ? cur[i + 1] : 0.0;
    prev[i] = (2.0 - d) * c - (1.0 - d) * prev[i] + k[i] * (l - 2.0 * c + r);
  }
}
// n <= PTS * threads: the whole string lives in one block; each thread keeps prev and k of its PTS points in registers
template <int PTS>
__global__ void wave_block(double *__restrict__ prev, double *__restrict__ cur, const double *__restrict__ k, Wave w) {
  extern __shared__ double u[]; // [blockDim.x * PTS + 2], zero cells at both ends
  const int size = blockDim.x * PTS;
  double p[PTS], q[PTS], next[PTS];
#pragma unroll
  for (int j = 0; j < PTS; ++j) {
    const int i = threadIdx.x + j * blockDim.x;
    p[j] = i < w.n ? prev[i] : 0.0;
    q[j] = i < w.n ? k[i] : 0.0;
    u[i + 1] = i < w.n ? cur[i] : 0.0;
  }
  if (threadIdx.x == 0)
    u[0] = u[size + 1] = 0.0;
  __syncthreads();
  for (int s = 0; s < w.steps; ++s) {
#pragma unroll
    for (int j = 0; j < PTS; ++j) {
      const double *c = u + threadIdx.x + j * blockDim.x + 1;
      next[j] = (2.0 - w.d) * c[0] - (1.0 - w.d) * p[j] + q[j] * (c[-1] - 2.0 * c[0] + c[1]);
      p[j] = c[0];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < PTS; ++j) {
      const int i = threadIdx.x + j * blockDim.x;
      if (i < w.n)
        u[i + 1] = next[j]; // points outside stay zero
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < PTS; ++j) {
    const int i = threadIdx.x + j * blockDim.x;
    if (i >= w.n)
      break;
    prev[i] = p[j];
    cur[i] = u[i + 1];
  }
}
__global__ void exchange(double *__restrict__ a, double *__restrict__ b, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const double t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}
void run(double *prev, double *cur, const double *k, Wave w) {
  if (w.n <= 0 || w.steps <= 0)
    return;
  if (w.n <= 128)
    return wave_block<1><<<1, 128, 130 * sizeof(double)>>>(prev, cur, k, w);
  if (w.n <= 512)
    return wave_block<4><<<1, 128, 514 * sizeof(double)>>>(prev, cur, k, w);
  if (w.n <= 1024)
    return wave_block<4><<<1, 256, 1026 * sizeof(double)>>>(prev, cur, k, w);
  const uintptr_t bits = (uintptr_t)prev | (uintptr_t)cur | (uintptr_t)k;
  const bool pairs = w.n >= 2048 && w.n % 2 == 0 && bits % sizeof(double2) == 0;
  double *p = prev, *c = cur;
  for (int s = 0; s < w.steps; ++s) {
    if (pairs)
      wave_pairs<<<8, 128>>>((double2 *)p, (const double2 *)c, (const double2 *)k, w.n / 2, w.d);
    else
      wave_strided<4><<<(w.n + 511) / 512, 128>>>(p, c, k, w.n, w.d);
    std::swap(p, c);
  }
  if (w.steps % 2)
    exchange<<<8, 128>>>(prev, cur, w.n);
}
//--- temporal-blocking
// S steps per launch on a tile of shared memory with S ghost points on both sides (trapezoid: the valid part shrinks by
// one per step). Levels ping-pong between two pairs of buffers, since neighbours' old values must survive the launch.
enum { THREADS = 128, POINTS = 2, SPAN = THREADS * POINTS };

template <int S>
__global__ void wave_trapezoid(const double *__restrict__ prev, const double *__restrict__ cur,
                               const double *__restrict__ k, double *__restrict__ prevOut, double *__restrict__ curOut,
                               int n, double d) {
  __shared__ double lev[2][SPAN];
  const int core = SPAN - 2 * S, start = blockIdx.x * core - S;
  const bool interior = start >= 0 && start + SPAN <= n;
  double kk[POINTS];
#pragma unroll
  for (int j = 0; j < POINTS; ++j) {
    const int l = threadIdx.x + j * THREADS, g = start + l;
    const bool in = interior || (g >= 0 && g < n);
    lev[0][l] = in ? prev[g] : 0.0;
    lev[1][l] = in ? cur[g] : 0.0;
    kk[j] = in ? k[g] : 0.0;
  }
  __syncthreads();
#pragma unroll
  for (int s = 1; s <= S; ++s) {
    double *old = lev[(s - 1) & 1];
    const double *now = lev[s & 1];
#pragma unroll
    for (int j = 0; j < POINTS; ++j) {
      const int l = threadIdx.x + j * THREADS, g = start + l;
      if (l < s || l >= SPAN - s)
        continue;
      if (!interior && (g < 0 || g >= n))
        continue; // ghost cells outside the domain remain zero
      old[l] = (2.0 - d) * now[l] - (1.0 - d) * old[l] + kk[j] * (now[l - 1] - 2.0 * now[l] + now[l + 1]);
    }
    __syncthreads();
  }
  // newest level is in lev[(S - 1) & 1]
#pragma unroll
  for (int j = 0; j < POINTS; ++j) {
    const int l = threadIdx.x + j * THREADS, g = start + l;
    if (l < S || l >= SPAN - S || g >= n)
      continue;
    curOut[g] = lev[(S - 1) & 1][l];
    prevOut[g] = lev[S & 1][l];
  }
}
void run(double *prev, double *cur, const double *k, Wave w) {
  if (w.n <= 0 || w.steps <= 0)
    return;
  double *mem;
  cudaMalloc(&mem, 2 * sizeof(double) * w.n);
  double *src[2] = {prev, cur}, *dst[2] = {mem, mem + w.n};
  int left = w.steps;
  while (left > 0) {
    const int s = left >= 8 && w.n >= SPAN ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const int core = SPAN - 2 * s, grid = (w.n + core - 1) / core;
    switch (s) {
    case 8: wave_trapezoid<8><<<grid, THREADS>>>(src[0], src[1], k, dst[0], dst[1], w.n, w.d); break;
    case 4: wave_trapezoid<4><<<grid, THREADS>>>(src[0], src[1], k, dst[0], dst[1], w.n, w.d); break;
    case 2: wave_trapezoid<2><<<grid, THREADS>>>(src[0], src[1], k, dst[0], dst[1], w.n, w.d); break;
    default: wave_trapezoid<1><<<grid, THREADS>>>(src[0], src[1], k, dst[0], dst[1], w.n, w.d);
    }
    std::swap(src, dst);
    left -= s;
  }
  if (src[0] != prev) {
    cudaMemcpyAsync(prev, src[0], sizeof(double) * w.n, cudaMemcpyDeviceToDevice);
    cudaMemcpyAsync(cur, src[1], sizeof(double) * w.n, cudaMemcpyDeviceToDevice);
  }
  cudaFree(mem);
}
//--- main
int main(int argc, char **argv) {
  Wave w = {argc > 1 ? atoi(argv[1]) : 3000, argc > 2 ? atoi(argv[2]) : 11, 0.015};
  const int n = w.n;
  std::vector<double> p(n + 1), c(n + 1), k(n + 1);
  uint32_t s = 5u;
  for (int i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    c[i] = sin(0.05 * i) + 0.1 * ((double)(s >> 16) / 32768.0 - 1.0);
    p[i] = sin(0.05 * i - 0.02);
    k[i] = 0.2 + 0.6 * (double)((s >> 8) & 255) / 255.0;
  }
  double *dp, *dc, *dk;
  const size_t bytes = (size_t)n * sizeof(double);
  cudaMalloc(&dp, bytes + 8);
  cudaMalloc(&dc, bytes + 8);
  cudaMalloc(&dk, bytes + 8);
  cudaMemcpy(dp, p.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(dc, c.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(dk, k.data(), bytes, cudaMemcpyHostToDevice);
  run(dp, dc, dk, w);
  cudaMemcpy(p.data(), dp, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost);
  double a = 0, b = 0;
  for (int i = 0; i < n; i++) {
    a += c[i] * (i % 10 + 1);
    b += p[i] * (i % 12 + 1);
  }
  printf("wave n %d steps %d: cur %.9f prev %.9f\n", n, w.steps, a, b);
  for (int i = 0; i < n; i += n / 6 + 1)
    printf("u[%d] = %.10f %.10f\n", i, c[i], p[i]);
  cudaFree(dp);
  cudaFree(dc);
  cudaFree(dk);
  return 0;
}
