//--- common
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// batch of n x n row-major systems A x = b (no pivoting needed: diagonally dominant).
// On return A holds L (unit diagonal, below) and U (on and above the diagonal), b holds x.
//--- original
__global__ void lu_solve(double *A, double *b, int n, int batch) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= batch)
    return;
  double *a = A + (size_t)id * n * n;
  double *x = b + (size_t)id * n;
  for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++) {
      a[i * n + k] /= a[k * n + k];
      for (int j = k + 1; j < n; j++)
        a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
  for (int i = 1; i < n; i++)
    for (int j = 0; j < i; j++)
      x[i] -= a[i * n + j] * x[j];
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++)
      x[i] -= a[i * n + j] * x[j];
    x[i] /= a[i * n + i];
  }
}
void run(double *A, double *b, int n, int batch) {
  if (n <= 0 || batch <= 0)
    return;
  lu_solve<<<(batch + 63) / 64, 64>>>(A, b, n, batch);
}
//--- registers-warp-block
// N <= 4: the whole system in the registers of one thread
template <int N> __global__ void lu_thread(double *__restrict__ A, double *__restrict__ b, int batch) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= batch)
    return;
  double m[N][N], x[N];
  double *a = A + (size_t)id * (N * N), *rhs = b + (size_t)id * N;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    x[i] = rhs[i];
#pragma unroll
    for (int j = 0; j < N; ++j)
      m[i][j] = a[i * N + j];
  }
#pragma unroll
  for (int k = 0; k < N; ++k)
#pragma unroll
    for (int i = k + 1; i < N; ++i) {
      const double l = m[i][k] / m[k][k];
      m[i][k] = l;
#pragma unroll
      for (int j = k + 1; j < N; ++j)
        m[i][j] -= l * m[k][j];
      x[i] -= l * x[k]; // forward substitution rides along
    }
#pragma unroll
  for (int i = N - 1; i >= 0; --i) {
#pragma unroll
    for (int j = i + 1; j < N; ++j)
      x[i] -= m[i][j] * x[j];
    x[i] /= m[i][i];
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    rhs[i] = x[i];
#pragma unroll
    for (int j = 0; j < N; ++j)
      a[i * N + j] = m[i][j];
  }
}

// n <= CAP <= 32: one warp per system, lane i holds row i; rows and columns from n to CAP are padded with the identity
template <int CAP> __global__ void lu_warp(double *__restrict__ A, double *__restrict__ b, int n, int batch) {
  constexpr unsigned ALL = 0xffffffffu;
  const int lane = threadIdx.x % 32, id = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (id >= batch)
    return;
  double *a = A + (size_t)id * n * n + (size_t)lane * n;
  double row[CAP], x = lane < n ? b[(size_t)id * n + lane] : 0.0;
#pragma unroll
  for (int j = 0; j < CAP; ++j)
    row[j] = lane < n && j < n ? a[j] : (lane == j ? 1.0 : 0.0);
#pragma unroll
  for (int k = 0; k < CAP; ++k) {
    if (k >= n)
      break; // uniform
    const double pivot = __shfl_sync(ALL, row[k], k), xk = __shfl_sync(ALL, x, k);
    const bool below = lane > k;
    const double l = row[k] / pivot;
    if (below)
      row[k] = l, x -= l * xk;
#pragma unroll
    for (int j = k + 1; j < CAP; ++j) {
      const double u = __shfl_sync(ALL, row[j], k);
      if (below)
        row[j] -= l * u;
    }
  }
#pragma unroll
  for (int k = CAP - 1; k >= 0; --k) {
    if (k >= n)
      continue;
    if (lane == k)
      x /= row[k];
    const double xk = __shfl_sync(ALL, x, k);
    if (lane < k)
      x -= row[k] * xk;
  }
  if (lane >= n)
    return;
  b[(size_t)id * n + lane] = x;
#pragma unroll
  for (int j = 0; j < CAP; ++j)
    if (j < n)
      a[j] = row[j];
}

// larger: one block per system, pivot row and multipliers staged in shared memory, the rest stays in global memory
#define BIG_MAX 256
__global__ void lu_block(double *A, double *b, int n) {
  __shared__ double prow[BIG_MAX], mult[BIG_MAX], xs[BIG_MAX];
  double *a = A + (size_t)blockIdx.x * n * n, *x = b + (size_t)blockIdx.x * n;
  const int tx = threadIdx.x, ty = threadIdx.y, t = ty * blockDim.x + tx, nt = blockDim.x * blockDim.y;
  for (int i = t; i < n; i += nt)
    xs[i] = x[i];
  for (int k = 0; k < n; ++k) {
    for (int j = k + t; j < n; j += nt)
      prow[j] = a[k * n + j];
    __syncthreads();
    for (int i = k + 1 + t; i < n; i += nt) {
      const double l = a[i * n + k] / prow[k];
      mult[i] = l;
      a[i * n + k] = l;
      xs[i] -= l * xs[k];
    }
    __syncthreads();
    for (int i = k + 1 + ty; i < n; i += blockDim.y)
      for (int j = k + 1 + tx; j < n; j += blockDim.x)
        a[i * n + j] -= mult[i] * prow[j];
    __syncthreads();
  }
  for (int k = n - 1; k >= 0; --k) {
    if (t == 0)
      xs[k] /= a[k * n + k];
    __syncthreads();
    for (int i = t; i < k; i += nt)
      xs[i] -= a[i * n + k] * xs[k];
    __syncthreads();
  }
  for (int i = t; i < n; i += nt)
    x[i] = xs[i];
}
__global__ void lu_huge(double *A, double *b, int n, int batch) { // beyond BIG_MAX: plain
  const int id = blockIdx.x;
  double *a = A + (size_t)id * n * n, *x = b + (size_t)id * n;
  for (int k = 0; k < n; ++k) {
    for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
      const double l = a[(size_t)i * n + k] / a[(size_t)k * n + k];
      a[(size_t)i * n + k] = l;
      for (int j = k + 1; j < n; ++j)
        a[(size_t)i * n + j] -= l * a[(size_t)k * n + j];
      x[i] -= l * x[k];
    }
    __syncthreads();
  }
  for (int k = n - 1; k >= 0; --k) {
    if (threadIdx.x == 0)
      x[k] /= a[(size_t)k * n + k];
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x)
      x[i] -= a[(size_t)i * n + k] * x[k];
    __syncthreads();
  }
}
void run(double *A, double *b, int n, int batch) {
  if (n <= 0 || batch <= 0)
    return;
  const int warps = 4, wgrid = (batch + warps - 1) / warps, tgrid = (batch + 63) / 64;
  switch (n) {
  case 1: lu_thread<1><<<tgrid, 64>>>(A, b, batch); return;
  case 2: lu_thread<2><<<tgrid, 64>>>(A, b, batch); return;
  case 3: lu_thread<3><<<tgrid, 64>>>(A, b, batch); return;
  case 4: lu_thread<4><<<tgrid, 64>>>(A, b, batch); return;
  }
  if (n <= 8)
    lu_warp<8><<<wgrid, 32 * warps>>>(A, b, n, batch);
  else if (n <= 16)
    lu_warp<16><<<wgrid, 32 * warps>>>(A, b, n, batch);
  else if (n <= 32)
    lu_warp<32><<<wgrid, 32 * warps>>>(A, b, n, batch);
  else if (n <= BIG_MAX)
    lu_block<<<batch, dim3(16, 8)>>>(A, b, n);
  else
    lu_huge<<<batch, 128>>>(A, b, n, batch);
}
//--- interleaved-or-shared-panel
// Many tiny systems: repack so that element e of all systems is contiguous (stride = batch rounded up to a warp), then
// a thread per system with fully coalesced accesses, dot-product (Crout-like) order; unpack again.
__global__ void repack(const double *__restrict__ src, double *__restrict__ dst, int elems, int batch, int ld,
                       bool forward) {
  const size_t total = (size_t)elems * batch;
  for (size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x; t < total; t += (size_t)gridDim.x * blockDim.x) {
    const size_t sys = t / elems, e = t % elems;
    if (forward)
      dst[e * ld + sys] = src[t];
    else
      dst[t] = src[e * ld + sys];
  }
}
__global__ void lu_interleaved(double *__restrict__ A, double *__restrict__ b, int n, int batch, int ld) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= batch)
    return;
#define a(I, J) A[(size_t)((I) * n + (J)) * ld + id]
#define x(I) b[(size_t)(I) * ld + id]
  for (int i = 0; i < n; ++i) {
    double y = x(i);
    for (int j = 0; j < n; ++j) {
      double s = a(i, j);
      const int lim = i < j ? i : j;
      for (int k = 0; k < lim; ++k)
        s -= a(i, k) * a(k, j);
      if (j < i)
        s /= a(j, j), y -= s * x(j);
      a(i, j) = s;
    }
    x(i) = y;
  }
  for (int i = n - 1; i >= 0; --i) {
    double s = x(i);
    for (int j = i + 1; j < n; ++j)
      s -= a(i, j) * x(j);
    x(i) = s / a(i, i);
  }
#undef a
#undef x
}
// one block per system in dynamic shared memory, right-hand side kept as column n of a padded panel
__global__ void lu_panel(double *__restrict__ A, double *__restrict__ b, int n) {
  extern __shared__ double s[];
  const int ld = n + 1 + (n & 1), tid = threadIdx.x, nt = blockDim.x;
  double *a = A + (size_t)blockIdx.x * n * n, *x = b + (size_t)blockIdx.x * n;
  for (int e = tid; e < n * n; e += nt)
    s[e / n * ld + e % n] = a[e];
  for (int i = tid; i < n; i += nt)
    s[i * ld + n] = x[i];
  __syncthreads();
  for (int k = 0; k + 1 < n; ++k) {
    const int width = n - k, tall = n - k - 1; // columns k+1 .. n
    for (int i = k + 1 + tid; i < n; i += nt)
      s[i * ld + k] /= s[k * ld + k];
    __syncthreads();
    for (int e = tid; e < tall * width; e += nt) {
      const int i = k + 1 + e / width, j = k + 1 + e % width;
      s[i * ld + j] -= s[i * ld + k] * s[k * ld + j];
    }
    __syncthreads();
  }
  if (tid < 32) { // back substitution by one warp
    for (int i = n - 1; i >= 0; --i) {
      double p = 0.0;
      for (int j = i + 1 + tid; j < n; j += 32)
        p += s[i * ld + j] * s[j * ld + n];
      for (int d = 16; d > 0; d >>= 1)
        p += __shfl_down_sync(0xffffffffu, p, d);
      if (tid == 0)
        s[i * ld + n] = (s[i * ld + n] - p) / s[i * ld + i];
      __syncwarp();
    }
  }
  __syncthreads();
  for (int e = tid; e < n * n; e += nt)
    a[e] = s[e / n * ld + e % n];
  for (int i = tid; i < n; i += nt)
    x[i] = s[i * ld + n];
}
void run(double *A, double *b, int n, int batch) {
  if (n <= 0 || batch <= 0)
    return;
  const size_t panel = sizeof(double) * n * (n + 1 + (n & 1));
  if ((n > 12 || batch < 8) && panel <= 48 * 1024) {
    lu_panel<<<batch, (n <= 16 ? 64 : 128), panel>>>(A, b, n);
    return;
  }
  const int ld = (batch + 31) / 32 * 32;
  double *buf;
  cudaMalloc(&buf, sizeof(double) * ld * (size_t)(n * n + n));
  double *rhs = buf + (size_t)n * n * ld;
  repack<<<16, 128>>>(A, buf, n * n, batch, ld, true);
  repack<<<4, 128>>>(b, rhs, n, batch, ld, true);
  lu_interleaved<<<ld / 32, 32>>>(buf, rhs, n, batch, ld);
  repack<<<16, 128>>>(buf, A, n * n, batch, ld, false);
  repack<<<4, 128>>>(rhs, b, n, batch, ld, false);
  cudaFree(buf);
}
//--- main
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 12, batch = argc > 2 ? atoi(argv[2]) : 40;
  std::vector<double> A((size_t)n * n * batch + 1), b((size_t)n * batch + 1);
  unsigned long long s = 1234567ull;
  auto rnd = [&]() {
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(s >> 40) / 8388608.0 - 1.0;
  };
  for (auto &v : A)
    v = rnd();
  for (auto &v : b)
    v = 3.0 * rnd();
  for (int m = 0; m < batch; m++)
    for (int i = 0; i < n; i++)
      A[((size_t)m * n + i) * n + i] += (m + i) % 2 ? n + 1.0 : -(n + 1.0);
  double *dA, *db;
  cudaMalloc(&dA, A.size() * sizeof(double));
  cudaMalloc(&db, b.size() * sizeof(double));
  cudaMemcpy(dA, A.data(), A.size() * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * sizeof(double), cudaMemcpyHostToDevice);
  run(dA, db, n, batch);
  cudaMemcpy(A.data(), dA, A.size() * sizeof(double), cudaMemcpyDeviceToHost);
  cudaMemcpy(b.data(), db, b.size() * sizeof(double), cudaMemcpyDeviceToHost);
  double sa = 0, sx = 0;
  for (size_t i = 0; i + 1 < A.size(); i++)
    sa += A[i] * (double)(i % 7 + 1);
  for (size_t i = 0; i + 1 < b.size(); i++)
    sx += b[i] * (double)(i % 5 + 1);
  printf("lu n %d batch %d: factors %.8f solutions %.8f\n", n, batch, sa, sx);
  for (size_t i = 0; i + 1 < b.size(); i += b.size() / 6 + 1)
    printf("x[%zu] = %.10f\n", i, b[i]);
  cudaFree(dA);
  cudaFree(db);
  return 0;
}
