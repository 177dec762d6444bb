//--- common
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// y = alpha * A x + beta * y, A in CSR with rows of very uneven length (some empty, some long)
struct Csr {
  int rows, cols;
  const int *ptr, *col;
  const double *val;
};
//--- original
__global__ void spmv(Csr A, double alpha, const double *x, double beta, double *y) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= A.rows)
    return;
  double s = 0.0;
  for (int e = A.ptr[r]; e < A.ptr[r + 1]; e++)
    s += A.val[e] * x[A.col[e]];
  y[r] = alpha * s + beta * y[r];
}
void run(Csr A, double alpha, const double *x, double beta, double *y) {
  if (A.rows <= 0)
    return;
  spmv<<<(A.rows + 127) / 128, 128>>>(A, alpha, x, beta, y);
}
//--- subwarp-by-mean-length
// LANES neighbouring threads share a row. Rows longer than kLong are only noted here; a second kernel gives a block to
// each.
constexpr int kLong = 192;

template <int LANES>
__global__ void __launch_bounds__(128)
    rows_subwarp(int rows, const int *__restrict__ ptr, const int *__restrict__ col, const double *__restrict__ val,
                 double alpha, const double *__restrict__ x, double beta, double *__restrict__ y,
                 int *__restrict__ longRows, int *longCount) {
  const int sub = threadIdx.x % LANES;
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) / LANES, stride = gridDim.x * blockDim.x / LANES;
  // the trip count is made equal for the whole block so that every lane takes part in the shuffles
  const int trips = (rows + stride - 1) / stride;
  for (int t = 0, r = first; t < trips; ++t, r += stride) {
    int b = 0, e = 0;
    if (r < rows) {
      b = __ldg(ptr + r);
      e = __ldg(ptr + r + 1);
    }
    const bool isLong = e - b > kLong;
    double s = 0.0;
    if (!isLong)
      for (int k = b + sub; k < e; k += LANES)
        s += __ldg(val + k) * __ldg(x + __ldg(col + k));
#pragma unroll
    for (int d = LANES / 2; d > 0; d >>= 1)
      s += __shfl_down_sync(0xffffffffu, s, d, LANES);
    if (sub != 0 || r >= rows)
      continue;
    if (isLong)
      longRows[atomicAdd(longCount, 1)] = r;
    else
      y[r] = alpha * s + beta * y[r];
  }
}

__global__ void __launch_bounds__(128)
    rows_block(const int *__restrict__ ptr, const int *__restrict__ col, const double *__restrict__ val, double alpha,
               const double *__restrict__ x, double beta, double *__restrict__ y, const int *__restrict__ longRows,
               const int *__restrict__ longCount) {
  __shared__ double part[4];
  const int count = *longCount;
  for (int q = blockIdx.x; q < count; q += gridDim.x) {
    const int r = longRows[q], e = ptr[r + 1];
    double s0 = 0.0, s1 = 0.0;
    int k = ptr[r] + threadIdx.x;
    for (; k + 128 < e; k += 256) {
      s0 += val[k] * x[col[k]];
      s1 += val[k + 128] * x[col[k + 128]];
    }
    if (k < e)
      s0 += val[k] * x[col[k]];
    double s = s0 + s1;
    for (int d = 16; d > 0; d >>= 1)
      s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0)
      part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
      y[r] = alpha * ((part[0] + part[1]) + (part[2] + part[3])) + beta * y[r];
    __syncthreads();
  }
}

template <int LANES>
static void launch(const Csr &A, double alpha, const double *x, double beta, double *y, int *list, int *count) {
  const long long threads = (long long)A.rows * LANES;
  int grid = (int)((threads + 127) / 128);
  if (grid > 24)
    grid = 24; // grid-stride
  rows_subwarp<LANES><<<grid, 128>>>(A.rows, A.ptr, A.col, A.val, alpha, x, beta, y, list, count);
}

void run(Csr A, double alpha, const double *x, double beta, double *y) {
  if (A.rows <= 0)
    return;
  int nnz = 0, *work = nullptr;
  cudaMemcpy(&nnz, A.ptr + A.rows, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMalloc(&work, sizeof(int) * (A.rows + 1));
  cudaMemset(work, 0, sizeof(int));
  int *count = work, *list = work + 1;
  const int mean = nnz / A.rows;
  if (mean < 2)
    launch<1>(A, alpha, x, beta, y, list, count);
  else if (mean < 4)
    launch<2>(A, alpha, x, beta, y, list, count);
  else if (mean < 8)
    launch<4>(A, alpha, x, beta, y, list, count);
  else if (mean < 16)
    launch<8>(A, alpha, x, beta, y, list, count);
  else if (mean < 32)
    launch<16>(A, alpha, x, beta, y, list, count);
  else
    launch<32>(A, alpha, x, beta, y, list, count);
  rows_block<<<(A.rows < 8 ? A.rows : 8), 128>>>(A.ptr, A.col, A.val, alpha, x, beta, y, list, count);
  cudaFree(work);
}
//--- stream-vector-and-segments
/* Blocks own ROWS consecutive rows. Products of a light block are streamed into shared memory and reduced there. A
   heavy block walks its rows with one warp each; rows above SEG entries are cut into segments handled by a second
   kernel. */
#define ROWS 64
#define CAP 768
#define SEG 256

__device__ __forceinline__ double dot_warp(const Csr &A, const double *__restrict__ x, int b, int e) {
  double s = 0.0;
  for (int k = b + (int)(threadIdx.x & 31); k < e; k += 32)
    s += A.val[k] * x[A.col[k]];
#pragma unroll
  for (int d = 16; d; d >>= 1)
    s += __shfl_xor_sync(~0u, s, d);
  return s;
}

__global__ void __launch_bounds__(128)
    stream(Csr A, double alpha, const double *__restrict__ x, double beta, double *y) {
  __shared__ double prod[CAP];
  __shared__ int off[ROWS + 1];
  const int t = threadIdx.x, r0 = blockIdx.x * ROWS, nr = min(ROWS, A.rows - r0);
  for (int i = t; i <= nr; i += blockDim.x)
    off[i] = A.ptr[r0 + i];
  __syncthreads();
  const int base = off[0], total = off[nr] - base;
  if (total <= CAP) {
    for (int k = t; k < total; k += blockDim.x)
      prod[k] = A.val[base + k] * x[A.col[base + k]];
    __syncthreads();
    if (t < nr) {
      double s = 0.0;
      for (int k = off[t] - base; k < off[t + 1] - base; ++k)
        s += prod[k];
      y[r0 + t] = alpha * s + beta * y[r0 + t];
    }
    return;
  }
  for (int i = t >> 5; i < nr; i += blockDim.x >> 5) {
    if (off[i + 1] - off[i] > SEG)
      continue; /* left to the segment kernels */
    double s = dot_warp(A, x, off[i], off[i + 1]);
    if ((t & 31) == 0)
      y[r0 + i] = alpha * s + beta * y[r0 + i];
  }
}

/* one block per row slot: leaves at once unless the row is long and in a heavy block; segments in a fixed order */
__global__ void __launch_bounds__(128)
    segments(Csr A, double alpha, const double *__restrict__ x, double beta, double *y) {
  __shared__ double seg[32];
  __shared__ double carry;
  const int r = blockIdx.x, g0 = r / ROWS * ROWS, g1 = min(g0 + ROWS, A.rows);
  const int b = A.ptr[r], e = A.ptr[r + 1];
  if (e - b <= SEG || A.ptr[g1] - A.ptr[g0] <= CAP)
    return;
  const int n = (e - b + SEG - 1) / SEG;
  if (threadIdx.x == 0)
    carry = 0.0;
  for (int s0 = 0; s0 < n; s0 += 32) {
    for (int q = s0 + (threadIdx.x >> 5); q < min(n, s0 + 32); q += 4) {
      double s = dot_warp(A, x, b + q * SEG, min(e, b + (q + 1) * SEG));
      if ((threadIdx.x & 31) == 0)
        seg[q - s0] = s;
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (int q = s0; q < min(n, s0 + 32); ++q)
        carry += seg[q - s0];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    y[r] = alpha * carry + beta * y[r];
}

__global__ void scalar_rows(Csr A, double alpha, const double *__restrict__ x, double beta, double *y) {
  const unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= (unsigned)A.rows)
    return;
  const int b = A.ptr[r], e = A.ptr[r + 1];
  double s[4] = {0.0, 0.0, 0.0, 0.0};
  int k = b;
  for (; k + 4 <= e; k += 4) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      s[j] += A.val[k + j] * x[A.col[k + j]];
  }
  for (; k < e; ++k)
    s[0] += A.val[k] * x[A.col[k]];
  y[r] = alpha * ((s[0] + s[1]) + (s[2] + s[3])) + beta * y[r];
}

void run(Csr A, double alpha, const double *x, double beta, double *y) {
  if (A.rows <= 0)
    return;
  if (A.rows < 48) { /* not worth two launches */
    scalar_rows<<<(A.rows + 31) / 32, 32>>>(A, alpha, x, beta, y);
    return;
  }
  stream<<<(A.rows + ROWS - 1) / ROWS, 128>>>(A, alpha, x, beta, y);
  segments<<<A.rows, 128>>>(A, alpha, x, beta, y);
}
//--- main
int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 1000, cols = argc > 2 ? atoi(argv[2]) : 700,
      width = argc > 3 ? atoi(argv[3]) : 6;
  if (width < 0)
    width = 0;
  unsigned s = 2025u;
  auto rnd = [&s]() {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    return s;
  };
  auto real = [&]() { return (double)(rnd() % 8001u) / 4000.0 - 1.0; };
  std::vector<int> ptr(1, 0), col;
  std::vector<double> val, x(cols + 1), y(rows + 1);
  for (int r = 0; r < rows; r++) {
    int len = r % 7 == 3 ? 0 : (int)(rnd() % (2u * width + 1u)); // 0 .. 2 width, every seventh row empty
    if (r % 250 == 101)
      len = 40 * width + 90; // and a few long ones
    if (cols <= 0)
      len = 0;
    for (int e = 0; e < len; e++) {
      col.push_back((int)(rnd() % (unsigned)cols));
      val.push_back(real());
    }
    ptr.push_back((int)col.size());
  }
  for (auto &v : x)
    v = real();
  for (auto &v : y)
    v = real();
  const size_t nnz = val.size();
  int *dptr, *dcol;
  double *dval, *dx, *dy;
  cudaMalloc(&dptr, ptr.size() * sizeof(int));
  cudaMalloc(&dcol, (nnz + 1) * sizeof(int));
  cudaMalloc(&dval, (nnz + 1) * sizeof(double));
  cudaMalloc(&dx, x.size() * sizeof(double));
  cudaMalloc(&dy, y.size() * sizeof(double));
  cudaMemcpy(dptr, ptr.data(), ptr.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(dcol, col.data(), nnz * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(dval, val.data(), nnz * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(dx, x.data(), x.size() * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(dy, y.data(), y.size() * sizeof(double), cudaMemcpyHostToDevice);
  run(Csr{rows, cols, dptr, dcol, dval}, 1.5, dx, -0.75, dy);
  cudaMemcpy(y.data(), dy, y.size() * sizeof(double), cudaMemcpyDeviceToHost);
  double sum = 0, w = 0;
  for (int r = 0; r < rows; r++) {
    sum += y[r];
    w += y[r] * (r % 15 + 1);
  }
  printf("csr %d x %d nnz %zu: sum %.9f weighted %.9f\n", rows, cols, nnz, sum, w);
  for (int r = 0; r < rows; r += rows / 6 + 1)
    printf("y[%d] = %.9f\n", r, y[r]);
  if (rows > 101)
    printf("y[101] = %.9f\n", y[101]);
  cudaFree(dptr);
  cudaFree(dcol);
  cudaFree(dval);
  cudaFree(dx);
  cudaFree(dy);
  return 0;
}
