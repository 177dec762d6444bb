//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// C (m x n) = alpha * A (m x k) * B (k x n) + beta * C, all row-major
static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }
//--- original
__global__ void gemm_naive(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && col < n) {
    float acc = 0.0f;
    for (int p = 0; p < k; ++p)
      acc += A[row * k + p] * B[p * n + col];
    C[row * n + col] = alpha * acc + beta * C[row * n + col];
  }
}
void run(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C) {
  if (m <= 0 || n <= 0)
    return;
  dim3 block(16, 16);
  dim3 grid(ceil_div(n, 16), ceil_div(m, 16));
  gemm_naive<<<grid, block>>>(m, n, k, alpha, A, B, beta, C);
}
//--- register-tile-double-buffer
constexpr int BM = 64, BN = 64, BK = 8, TM = 4, TN = 4;

template <bool VEC>
__device__ __forceinline__ float4 fetch4(const float *__restrict__ P, int rows, int cols, int r, int c) {
  float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
  if (r >= rows || c >= cols)
    return v;
  const float *q = P + (size_t)r * cols + c;
  if (VEC)
    return __ldg(reinterpret_cast<const float4 *>(q));
  v.x = __ldg(q);
  if (c + 1 < cols)
    v.y = __ldg(q + 1);
  if (c + 2 < cols)
    v.z = __ldg(q + 2);
  if (c + 3 < cols)
    v.w = __ldg(q + 3);
  return v;
}

template <bool VEC>
__global__ void __launch_bounds__(256) gemm_regtile(int m, int n, int k, float alpha, const float *__restrict__ A,
                                                    const float *__restrict__ B, float beta, float *__restrict__ C) {
  __shared__ __align__(16) float As[2][BK][BM + 4];
  __shared__ __align__(16) float Bs[2][BK][BN + 4];
  const int tid = threadIdx.x;
  const int bm = blockIdx.y * BM, bn = blockIdx.x * BN;
  const bool loadsA = tid < 128; // first half stages A, second half stages B
  const int l = tid & 127;
  const int ar = l >> 1, ac = (l & 1) * 4;  // 64 x 8 tile of A
  const int br = l >> 4, bc = (l & 15) * 4; // 8 x 64 tile of B
  const int tr = (tid >> 4) * TM, tc = (tid & 15) * TN;
  float acc[TM][TN] = {};

  auto fetch = [&](int k0) {
    return loadsA ? fetch4<VEC>(A, m, k, bm + ar, k0 + ac) : fetch4<VEC>(B, k, n, k0 + br, bn + bc);
  };
  auto stage = [&](int buf, float4 v) {
    if (loadsA) {
      As[buf][ac + 0][ar] = v.x;
      As[buf][ac + 1][ar] = v.y;
      As[buf][ac + 2][ar] = v.z;
      As[buf][ac + 3][ar] = v.w;
    } else {
      *reinterpret_cast<float4 *>(&Bs[buf][br][bc]) = v;
    }
  };
  const int tiles = (k + BK - 1) / BK;
  if (tiles > 0)
    stage(0, fetch(0));
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    const int cur = t & 1;
    float4 next;
    if (t + 1 < tiles)
      next = fetch((t + 1) * BK);
#pragma unroll
    for (int p = 0; p < BK; ++p) {
      const float4 a4 = *reinterpret_cast<const float4 *>(&As[cur][p][tr]);
      const float4 b4 = *reinterpret_cast<const float4 *>(&Bs[cur][p][tc]);
      const float a[TM] = {a4.x, a4.y, a4.z, a4.w};
      const float b[TN] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
          acc[i][j] += a[i] * b[j];
    }
    if (t + 1 < tiles)
      stage(cur ^ 1, next);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int r = bm + tr + i, c = bn + tc;
    if (r >= m)
      break;
    float *dst = C + (size_t)r * n + c;
    if (VEC) {
      if (c < n) {
        float4 o = *reinterpret_cast<float4 *>(dst);
        o.x = alpha * acc[i][0] + beta * o.x;
        o.y = alpha * acc[i][1] + beta * o.y;
        o.z = alpha * acc[i][2] + beta * o.z;
        o.w = alpha * acc[i][3] + beta * o.w;
        *reinterpret_cast<float4 *>(dst) = o;
      }
    } else {
#pragma unroll
      for (int j = 0; j < TN; ++j)
        if (c + j < n)
          dst[j] = alpha * acc[i][j] + beta * dst[j];
    }
  }
}

// small outputs: a 64x64 tile would leave most of the block idle
__global__ void gemm_small(int m, int n, int k, float alpha, const float *__restrict__ A, const float *__restrict__ B,
                           float beta, float *__restrict__ C) {
  __shared__ float a[16][17], b[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int r = blockIdx.y * 16 + ty, c = blockIdx.x * 16 + tx;
  float s = 0.f;
  for (int k0 = 0; k0 < k; k0 += 16) {
    a[ty][tx] = (r < m && k0 + tx < k) ? A[r * k + k0 + tx] : 0.f;
    b[ty][tx] = (c < n && k0 + ty < k) ? B[(k0 + ty) * n + c] : 0.f;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 16; ++p)
      s += a[ty][p] * b[p][tx];
    __syncthreads();
  }
  if (r < m && c < n)
    C[r * n + c] = alpha * s + beta * C[r * n + c];
}

void run(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C) {
  if (m <= 0 || n <= 0)
    return;
  if (m <= 32 && n <= 32) {
    gemm_small<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(m, n, k, alpha, A, B, beta, C);
    return;
  }
  const uintptr_t bits = (uintptr_t)A | (uintptr_t)B | (uintptr_t)C;
  const dim3 grid(ceil_div(n, BN), ceil_div(m, BM));
  if (n % 4 == 0 && k % 4 == 0 && bits % 16 == 0)
    gemm_regtile<true><<<grid, 256>>>(m, n, k, alpha, A, B, beta, C);
  else
    gemm_regtile<false><<<grid, 256>>>(m, n, k, alpha, A, B, beta, C);
}
//--- split-k-and-gemv
#define TS 32
#define RPT 4 /* rows of C per thread, block is 32 x 8 */
#define GROUP 4

// one 32x32 tile of C over k in [kbeg, kend); 1-D grid swizzled so that GROUP tile rows share B tiles
template <bool SPLIT>
__global__ void gemm_tile32(int m, int n, int k, int kslice, float alpha, const float *__restrict__ A,
                            const float *__restrict__ B, float beta, float *C, float *__restrict__ part) {
  __shared__ float sa[TS][TS + 1];
  __shared__ float sb[TS][TS];
  const int gx = (n + TS - 1) / TS, gy = (m + TS - 1) / TS;
  const int per_group = GROUP * gx;
  const int group = blockIdx.x / per_group;
  const int first = group * GROUP;
  const int height = min(GROUP, gy - first);
  const int within = blockIdx.x - group * per_group;
  const int row0 = (first + within % height) * TS, col0 = (within / height) * TS;
  const int kbeg = SPLIT ? (int)blockIdx.y * kslice : 0;
  const int kend = SPLIT ? min(k, kbeg + kslice) : k;
  const int tx = threadIdx.x, ty = threadIdx.y;
  float acc[RPT] = {0.f, 0.f, 0.f, 0.f};

  for (int k0 = kbeg; k0 < kend; k0 += TS) {
#pragma unroll
    for (int i = 0; i < RPT; i++) {
      int r = ty + 8 * i;
      sa[r][tx] = (row0 + r < m && k0 + tx < kend) ? A[(size_t)(row0 + r) * k + k0 + tx] : 0.f;
      sb[r][tx] = (k0 + r < kend && col0 + tx < n) ? B[(size_t)(k0 + r) * n + col0 + tx] : 0.f;
    }
    __syncthreads();
#pragma unroll 8
    for (int p = 0; p < TS; p++) {
      float b = sb[p][tx];
#pragma unroll
      for (int i = 0; i < RPT; i++)
        acc[i] = fmaf(sa[ty + 8 * i][p], b, acc[i]);
    }
    __syncthreads();
  }
  if (col0 + tx >= n)
    return;
  for (int i = 0; i < RPT; i++) {
    int r = row0 + ty + 8 * i;
    if (r >= m)
      return;
    size_t o = (size_t)r * n + col0 + tx;
    if (SPLIT)
      part[(size_t)blockIdx.y * m * n + o] = acc[i];
    else
      C[o] = alpha * acc[i] + beta * C[o];
  }
}

__global__ void combine_slices(size_t count, int slices, float alpha, const float *__restrict__ part, float beta,
                               float *C) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    float s = 0.f;
    for (int q = 0; q < slices; q++)
      s += part[q * count + i];
    C[i] = alpha * s + beta * C[i];
  }
}

__global__ void gemv_warp(int m, int k, float alpha, const float *__restrict__ A, const float *__restrict__ x,
                          float beta, float *y) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= m)
    return;
  float s = 0.f;
  for (int p = lane; p < k; p += 32)
    s += A[(size_t)row * k + p] * x[p];
  for (int d = 16; d; d >>= 1)
    s += __shfl_down_sync(0xffffffffu, s, d);
  if (lane == 0)
    y[row] = alpha * s + beta * y[row];
}

void run(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C) {
  if (m <= 0 || n <= 0)
    return;
  if (n == 1) {
    gemv_warp<<<ceil_div(m, 4), 128>>>(m, k, alpha, A, B, beta, C);
    return;
  }
  dim3 block(TS, TS / RPT);
  int tiles = ceil_div(m, TS) * ceil_div(n, TS);
  if (tiles <= 8 && k >= 128) { // too few tiles to fill the machine: cut k
    int slices = k / 64 < 8 ? k / 64 : 8;
    int kslice = ceil_div(ceil_div(k, slices), TS) * TS;
    slices = ceil_div(k, kslice);
    float *part = nullptr;
    cudaMalloc(&part, sizeof(float) * (size_t)slices * m * n);
    gemm_tile32<true><<<dim3(tiles, slices), block>>>(m, n, k, kslice, alpha, A, B, beta, C, part);
    combine_slices<<<ceil_div(m * n, 256), 256>>>((size_t)m * n, slices, alpha, part, beta, C);
    cudaFree(part);
  } else {
    gemm_tile32<false><<<tiles, block>>>(m, n, k, k, alpha, A, B, beta, C, nullptr);
  }
}
//--- main
int main(int argc, char **argv) {
  int m = argc > 1 ? atoi(argv[1]) : 70, n = argc > 2 ? atoi(argv[2]) : 60, k = argc > 3 ? atoi(argv[3]) : 52;
  float alpha = argc > 4 ? (float)atof(argv[4]) : 1.25f, beta = argc > 5 ? (float)atof(argv[5]) : -0.5f;
  std::vector<float> A((size_t)m * k), B((size_t)k * n), C((size_t)m * n);
  unsigned s = 12345u;
  auto rnd = [&s]() {
    s = s * 1664525u + 1013904223u;
    return (int)(s >> 16) % 2001 / 1000.0f - 1.0f;
  };
  for (auto &v : A)
    v = rnd();
  for (auto &v : B)
    v = rnd();
  for (auto &v : C)
    v = rnd();
  float *dA, *dB, *dC;
  cudaMalloc(&dA, (A.size() + 1) * sizeof(float));
  cudaMalloc(&dB, (B.size() + 1) * sizeof(float));
  cudaMalloc(&dC, (C.size() + 1) * sizeof(float));
  cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dB, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dC, C.data(), C.size() * sizeof(float), cudaMemcpyHostToDevice);
  run(m, n, k, alpha, dA, dB, beta, dC);
  cudaMemcpy(C.data(), dC, C.size() * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0, wsum = 0;
  for (size_t i = 0; i < C.size(); ++i) {
    sum += C[i];
    wsum += C[i] * (double)(i % 17 + 1);
  }
  printf("gemm %d %d %d sum %.5f weighted %.5f\n", m, n, k, sum, wsum);
  for (size_t i = 0; i < C.size(); i += C.size() / 7 + 1)
    printf("C[%zu] = %.5f\n", i, C[i]);
  cudaFree(dA);
  cudaFree(dB);
  cudaFree(dC);
  return 0;
}
