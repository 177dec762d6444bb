//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// y = A x (m values) and w = A^T z (n values); A is m x n, row-major, double
static inline unsigned blocks_for(size_t items, size_t per_block) {
  return (unsigned)((items + per_block - 1) / per_block);
}
//--- original
__global__ void ax(const double *A, int m, int n, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m)
    return;
  double s = 0.0;
  for (int j = 0; j < n; ++j)
    s += A[(size_t)i * n + j] * x[j];
  y[i] = s;
}
__global__ void atz(const double *A, int m, int n, const double *z, double *w) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= n)
    return;
  double s = 0.0;
  for (int i = 0; i < m; ++i)
    s += A[(size_t)i * n + j] * z[i];
  w[j] = s;
}
void run(const double *A, int m, int n, const double *x, const double *z, double *y, double *w) {
  if (m > 0)
    ax<<<blocks_for(m, 128), 128>>>(A, m, n, x, y);
  if (n > 0)
    atz<<<blocks_for(n, 128), 128>>>(A, m, n, z, w);
}
//--- warp-rows-column-chunks
constexpr int kWarp = 32;
__device__ __forceinline__ double warp_sum(double v) {
#pragma unroll
  for (int d = kWarp / 2; d > 0; d /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
// short rows: one thread per row, x in shared memory
__global__ void ax_short(const double *__restrict__ A, int m, int n, const double *__restrict__ x,
                         double *__restrict__ y) {
  __shared__ double xs[16];
  if (threadIdx.x < n)
    xs[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m)
    return;
  double s = 0.0;
#pragma unroll
  for (int j = 0; j < 16; ++j)
    if (j < n)
      s += A[(size_t)i * n + j] * xs[j];
  y[i] = s;
}
// medium rows: one warp per row, two doubles per load where rows are 16-byte aligned
template <bool PAIRS>
__global__ void ax_warp(const double *__restrict__ A, int m, int n, const double *__restrict__ x,
                        double *__restrict__ y) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  if (row >= m)
    return;
  const double *a = A + (size_t)row * n;
  double s0 = 0.0, s1 = 0.0;
  if (PAIRS) {
    const double2 *a2 = reinterpret_cast<const double2 *>(a), *x2 = reinterpret_cast<const double2 *>(x);
    for (int j = lane; j < n / 2; j += kWarp) {
      const double2 p = __ldg(a2 + j), q = __ldg(x2 + j);
      s0 += p.x * q.x;
      s1 += p.y * q.y;
    }
  } else {
    int j = lane;
    for (; j + kWarp < n; j += 2 * kWarp) {
      s0 += a[j] * x[j];
      s1 += a[j + kWarp] * x[j + kWarp];
    }
    if (j < n)
      s0 += a[j] * x[j];
  }
  const double s = warp_sum(s0 + s1);
  if (lane == 0)
    y[row] = s;
}
// long rows: one block per row
template <int THREADS>
__global__ void ax_block(const double *__restrict__ A, int n, const double *__restrict__ x, double *__restrict__ y) {
  __shared__ double part[THREADS / kWarp];
  const double *a = A + (size_t)blockIdx.x * n;
  double s = 0.0;
  for (int j = threadIdx.x; j < n; j += THREADS)
    s += a[j] * x[j];
  s = warp_sum(s);
  if (threadIdx.x % kWarp == 0)
    part[threadIdx.x / kWarp] = s;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    s = warp_sum(threadIdx.x < THREADS / kWarp ? part[threadIdx.x] : 0.0);
    if (threadIdx.x == 0)
      y[blockIdx.x] = s;
  }
}
// A^T z: 32 columns x one chunk of rows per block; partial[chunk][column]
constexpr int kChunk = 64, kRowsPar = 8;
__global__ void atz_chunk(const double *__restrict__ A, int m, int n, const double *__restrict__ z,
                          double *__restrict__ partial) {
  __shared__ double sh[kRowsPar][kWarp + 1];
  const int j = blockIdx.x * kWarp + threadIdx.x;
  const int i0 = blockIdx.y * kChunk, i1 = min(m, i0 + kChunk);
  double s = 0.0;
  if (j < n)
    for (int i = i0 + threadIdx.y; i < i1; i += kRowsPar)
      s += A[(size_t)i * n + j] * z[i];
  sh[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  for (int h = kRowsPar / 2; h > 0; h /= 2) {
    if (threadIdx.y < h)
      sh[threadIdx.y][threadIdx.x] += sh[threadIdx.y + h][threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.y == 0 && j < n)
    partial[(size_t)blockIdx.y * n + j] = sh[0][threadIdx.x];
}
__global__ void sum_chunks(const double *__restrict__ partial, int chunks, int n, double *__restrict__ w) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= n)
    return;
  double s = 0.0;
  for (int c = 0; c < chunks; ++c)
    s += partial[(size_t)c * n + j];
  w[j] = s;
}
void run(const double *A, int m, int n, const double *x, const double *z, double *y, double *w) {
  if (m > 0) {
    if (n <= 16)
      ax_short<<<blocks_for(m, 64), 64>>>(A, m, n, x, y);
    else if (n >= 512)
      ax_block<256><<<m, 256>>>(A, n, x, y);
    else if (n % 2 == 0 && (((uintptr_t)A | (uintptr_t)x) % 16) == 0)
      ax_warp<true><<<blocks_for(m, 4), 128>>>(A, m, n, x, y);
    else
      ax_warp<false><<<blocks_for(m, 4), 128>>>(A, m, n, x, y);
  }
  if (n <= 0)
    return;
  if (m <= 0) {
    cudaMemset(w, 0, sizeof(double) * n);
    return;
  }
  const int chunks = (m + kChunk - 1) / kChunk;
  const dim3 grid(blocks_for(n, kWarp), chunks), block(kWarp, kRowsPar);
  if (chunks == 1) {
    atz_chunk<<<grid, block>>>(A, m, n, z, w);
    return;
  }
  double *partial;
  cudaMalloc(&partial, sizeof(double) * (size_t)chunks * n);
  atz_chunk<<<grid, block>>>(A, m, n, z, partial);
  sum_chunks<<<blocks_for(n, 128), 128>>>(partial, chunks, n, w);
  cudaFree(partial);
}
//--- fused-one-pass
// A is read once: every block takes a 32 x 64 tile, forms its contribution to y and to w
struct Tiles {
  int m, n, tr, tc;
}; // tr, tc: number of tile rows and tile columns
enum { TR = 32, TC = 64 };

__global__ void both_tile(Tiles t, const double *__restrict__ A, const double *__restrict__ x,
                          const double *__restrict__ z, double *__restrict__ ypart, double *__restrict__ wpart) {
  __shared__ double colsum[4][TC];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5; // 4 warps, 8 rows each
  const int r0 = blockIdx.y * TR, c0 = blockIdx.x * TC;
  const int ca = c0 + lane, cb = ca + 32;
  double xa = 0.0, xb = 0.0, wa = 0.0, wb = 0.0;
  if (ca < t.n)
    xa = x[ca];
  if (cb < t.n)
    xb = x[cb];
  if (r0 + TR <= t.m && c0 + TC <= t.n) { // full tile
    const double *row = A + (size_t)(r0 + warp * 8) * t.n;
#pragma unroll
    for (int i = 0; i < 8; ++i, row += t.n) {
      const double a = row[ca], b = row[cb], zi = z[r0 + warp * 8 + i];
      wa += a * zi;
      wb += b * zi;
      double s = a * xa + b * xb;
      for (int d = 16; d; d >>= 1)
        s += __shfl_down_sync(0xffffffffu, s, d);
      if (lane == 0)
        ypart[(size_t)blockIdx.x * t.m + r0 + warp * 8 + i] = s;
    }
  } else {
    for (int i = 0; i < 8; ++i) {
      const int r = r0 + warp * 8 + i;
      if (r >= t.m)
        break; // same for the whole warp
      const double a = ca < t.n ? A[(size_t)r * t.n + ca] : 0.0, b = cb < t.n ? A[(size_t)r * t.n + cb] : 0.0;
      const double zi = z[r];
      wa += a * zi;
      wb += b * zi;
      double s = a * xa + b * xb;
      for (int d = 16; d; d >>= 1)
        s += __shfl_down_sync(0xffffffffu, s, d);
      if (lane == 0)
        ypart[(size_t)blockIdx.x * t.m + r] = s;
    }
  }
  colsum[warp][lane] = wa;
  colsum[warp][lane + 32] = wb;
  __syncthreads();
  if (threadIdx.x < TC && c0 + threadIdx.x < t.n) {
    const int c = threadIdx.x;
    wpart[(size_t)blockIdx.y * t.n + c0 + c] = (colsum[0][c] + colsum[1][c]) + (colsum[2][c] + colsum[3][c]);
  }
}
// entries [0, m) of the index space finish y, entries [m, m + n) finish w
__global__ void finish(Tiles t, const double *__restrict__ ypart, const double *__restrict__ wpart, double *y,
                       double *w) {
  for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < t.m + t.n; e += gridDim.x * blockDim.x) {
    double s = 0.0;
    if (e < t.m) {
      for (int b = 0; b < t.tc; ++b)
        s += ypart[(size_t)b * t.m + e];
      y[e] = s;
    } else {
      const int j = e - t.m;
      for (int b = 0; b < t.tr; ++b)
        s += wpart[(size_t)b * t.n + j];
      w[j] = s;
    }
  }
}
void run(const double *A, int m, int n, const double *x, const double *z, double *y, double *w) {
  if (m <= 0 || n <= 0) {
    if (m > 0)
      cudaMemset(y, 0, sizeof(double) * m);
    if (n > 0)
      cudaMemset(w, 0, sizeof(double) * n);
    return;
  }
  const Tiles t = {m, n, (m + TR - 1) / TR, (n + TC - 1) / TC};
  if (t.tr == 1 && t.tc == 1) { // one tile: its sums are the result
    both_tile<<<1, 128>>>(t, A, x, z, y, w);
    return;
  }
  double *scratch;
  const size_t ny = (size_t)t.tc * m, nw = (size_t)t.tr * n;
  cudaMalloc(&scratch, (ny + nw) * sizeof(double));
  both_tile<<<dim3(t.tc, t.tr), 128>>>(t, A, x, z, scratch, scratch + ny);
  finish<<<blocks_for(m + n, 256), 128>>>(t, scratch, scratch + ny, y, w);
  cudaFree(scratch);
}
//--- main
int main(int argc, char **argv) {
  const int m = argc > 1 ? atoi(argv[1]) : 130, n = argc > 2 ? atoi(argv[2]) : 90;
  std::vector<double> A((size_t)m * n + 1), x(n + 1), z(m + 1), y(m + 1), w(n + 1);
  uint64_t s = 88172645463325252ull;
  auto rnd = [&s] {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (double)(s % 4001) / 2000.0 - 1.0;
  };
  for (double &v : A)
    v = rnd();
  for (double &v : x)
    v = rnd();
  for (double &v : z)
    v = rnd();
  double *dA, *dx, *dz, *dy, *dw;
  cudaMalloc(&dA, A.size() * 8);
  cudaMalloc(&dx, x.size() * 8);
  cudaMalloc(&dz, z.size() * 8);
  cudaMalloc(&dy, y.size() * 8);
  cudaMalloc(&dw, w.size() * 8);
  cudaMemcpy(dA, A.data(), A.size() * 8, cudaMemcpyHostToDevice);
  cudaMemcpy(dx, x.data(), x.size() * 8, cudaMemcpyHostToDevice);
  cudaMemcpy(dz, z.data(), z.size() * 8, cudaMemcpyHostToDevice);
  run(dA, m, n, dx, dz, dy, dw);
  cudaMemcpy(y.data(), dy, (size_t)m * 8, cudaMemcpyDeviceToHost);
  cudaMemcpy(w.data(), dw, (size_t)n * 8, cudaMemcpyDeviceToHost);
  double sy = 0, sw = 0;
  for (int i = 0; i < m; ++i)
    sy += y[i] * (i % 13 + 1);
  for (int j = 0; j < n; ++j)
    sw += w[j] * (j % 11 + 1);
  printf("gemv %d x %d: y %.8f w %.8f\n", m, n, sy, sw);
  for (int i = 0; i < m; i += m / 3 + 1)
    printf("y[%d] = %.8f\n", i, y[i]);
  for (int j = 0; j < n; j += n / 3 + 1)
    printf("w[%d] = %.8f\n", j, w[j]);
  cudaFree(dA);
  cudaFree(dx);
  cudaFree(dz);
  cudaFree(dy);
  cudaFree(dw);
}
