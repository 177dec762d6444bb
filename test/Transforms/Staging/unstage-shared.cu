// unstage-shared: tiles that a programmer has put into shared memory go, and what is left is the kernel as it was
// before them.
// RUN: %plan --block=16x16x1 --passes='unstage-shared[checked]' %s | FileCheck %s
// RUN: %plan --block=16x16x1 --passes='unstage-shared[branches<16>]' --scalar=rowsA=37 --scalar=rowsC=37 %s | %check=BRANCHES
// RUN: %opt --block=16x16x1 --passes='unstage-shared[branches<16>]' %s | %check=APART
// RUN: %plan --block=16x16x1 --passes='unstage-shared[whole]' %s | %check=WHOLE
// RUN: %opt --block=16x16x1 --passes='unstage-shared[whole]' --scalar=n=40 %s | %check=STRIPS
// RUN: %plan --block=16x16x1 --passes='unstage-shared[offsets<16>]' %s | %check=OFFSETS
// RUN: %opt --block=16x16x1 --passes='unstage-shared[pointers]' %s | %check=POINTERS
// RUN: %opt --block=16x16x1 --passes='unstage-shared[dynamic]' %s | %check=DYNAMIC
// RUN: %opt --block=64x1x1 --passes='unstage-shared[matvec]' %s | %check=MATVEC
// RUN: %plan --block=256x1x1 --passes='unstage-shared[oneAxis]' %s | %check=SPLIT
// RUN: %opt --block=16x4x1 --passes='unstage-shared[turned]' %s | %check=TURNED
// RUN: %opt --block=16x16x1 --fp=strict --passes='unstage-shared[checked]' %s | %check=STRICT

// RUN: optiml-opt --reread --emit --block=16x16x1 --passes='unstage-shared[checked];unstage-shared[branches<16>];unstage-shared[whole];unstage-shared[offsets<16>];unstage-shared[pointers];unstage-shared[dynamic]' %s > %t.cu
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 48 48 48 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 37 51 29 | %check=SAME
// RUN: optiml-opt --reread --emit --block=64x1x1 --passes='unstage-shared[matvec]' %s > %t.matvec.cu
// RUN: optiml-run --coverage=6 --verify=%t.matvec.cu %s -- 37 51 29 | %check=SAME
// RUN: optiml-opt --reread --emit --block=256x1x1 --passes='unstage-shared[oneAxis];swap-thread-axes[oneAxis]{with=y};block-shape[oneAxis]{x=32,y=8}' %s > %t.split.cu
// RUN: optiml-run --coverage=6 --verify=%t.split.cu %s -- 64 32 48 | %check=SAME
// RUN: optiml-opt --reread --emit --block=16x4x1 --passes='unstage-shared[turned]' %s > %t.turned.cu
// RUN: optiml-run --coverage=6 --verify=%t.turned.cu %s -- 37 51 29 | %check=SAME
// RUN: optiml-opt --reread --emit --block=16x16x1 --passes='unstage-shared[checked];block-shape[checked]{x=16,y=8};coarsen[checked]{x=4,y=4};stage-shared[checked/p:a+b]{tile=8}' %s > %t.tiles.cu
// RUN: optiml-run --coverage=6 --verify=%t.tiles.cu %s -- 37 51 29 | %check=SAME
// SAME: the same results

// RUN: %refused --passes='unstage-shared[checked]' %s 2>&1 | %check=SHAPE
// RUN: %refused --block=16x16x1 --passes='unstage-shared[plain]' %s 2>&1 | %check=PLAIN
// RUN: %refused --block=16x16x1 --passes='block-shape[checked]{x=16,y=16};unstage-shared[checked]' %s 2>&1 | %check=FIXED
// RUN: %refused --block=32x16x1 --passes='unstage-shared[checked]' %s 2>&1 | %check=WIDE
// RUN: %refused --block=64x1x1 --passes='unstage-shared[unguarded]' %s 2>&1 | %check=UNSTORED
// RUN: %refused --block=64x1x1 --passes='unstage-shared[beyond]' %s 2>&1 | %check=UNSTORED
// RUN: %refused --block=64x1x1 --passes='unstage-shared[scan]' %s 2>&1 | %check=UPDATED
// RUN: %refused --block=64x1x1 --passes='unstage-shared[noBarrier]' %s 2>&1 | %check=WAITS
// RUN: %refused --block=64x1x1 --passes='unstage-shared[buffers]' %s 2>&1 | %check=WAITS
// RUN: %refused --block=64x1x1 --passes='unstage-shared[leaves]' %s 2>&1 | %check=LEAVES
// RUN: %refused --block=64x1x1 --passes='unstage-shared[several]' %s 2>&1 | %check=SEVERAL
// RUN: %refused --block=64x1x1 --passes='unstage-shared[gathered]' %s 2>&1 | %check=WHO
// RUN: %refused --block=64x1x1 --passes='unstage-shared[changes]' %s 2>&1 | %check=CHANGES
// RUN: %refused --block=64x1x1 --passes='unstage-shared[ordered]' %s 2>&1 | %check=ORDERED
// RUN: %refused --block=64x1x1 --passes='unstage-shared[running]' %s 2>&1 | %check=RUNNING
// RUN: %refused --block=64x1x1 --passes='unstage-shared[hidden]' %s 2>&1 | %check=HIDDEN
// SHAPE: the shape of the block is not known
// PLAIN: the kernel has no shared memory
// FIXED: the block shape is fixed already
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// The loop over tiles and that within a tile become one, which ends where only zeros are left; the guard at the end
// stands around everything, so that nothing of those in the tiles is left.
// CHECK: when block.x == 16
// CHECK: when block.y == 16
// CHECK: when block.z == 1
// CHECK: when disjoint(a, 4 * (k * m), c, 4 * (m * n))
// CHECK: when disjoint(b, 4 * (k * n), c, 4 * (m * n))
// CHECK: int row = blockIdx.y * blockDim.y + threadIdx.y;
// CHECK-NEXT: int col = blockIdx.x * blockDim.x + threadIdx.x;
// CHECK-NEXT: if (row < m && col < n) {
// CHECK-NEXT: float sum = 0.0f;
// CHECK-NEXT: for (int p = 0; p < k; ++p) {
// CHECK-NEXT: sum += a[row * k + p] * b[n * p + col];
// CHECK-NEXT: }
// CHECK-NEXT: c[row * n + col] = alpha * sum + beta * c[row * n + col];
// CHECK-NOT: __syncthreads
// Adding zeros may change the sign of one: not under --fp=strict,
// where the loop runs over whole tiles, or over k when it is one.
// STRICT: for (int p = 0; p < k; ++p) {
__global__ void checked(int m, int n, int k, float alpha, const float *a, const float *b, float beta, float *c) {
  __shared__ float as[16][16], bs[16][16];
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < (k + 15) / 16; t++) {
    as[threadIdx.y][threadIdx.x] = (row < m && t * 16 + threadIdx.x < k) ? a[row * k + t * 16 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = (t * 16 + threadIdx.y < k && col < n) ? b[(t * 16 + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 16; p++)
      sum += as[threadIdx.y][p] * bs[p][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n)
    c[row * n + col] = alpha * sum + beta * c[row * n + col];
}

// A size of one guard and a size of another that are equal in all launches: that becomes a condition, here of the rows.
// BRANCHES: when rowsC <= rowsA
// BRANCHES: if (row < rowsC && col < n) {
// BRANCHES: for (int p = 0; p < k; ++p) {
// BRANCHES-NEXT: sum += a[row * k + p] * b[n * p + col];
// Where nothing is known of them, the guard stays.
// APART: if (row < rowsC && col < n) {
// APART: sum += (row < rowsA ? a[row * k + p] : 0.0f) * b[n * p + col];
template <int T>
__global__ void branches(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int rowsA,
                         int rowsC, int n, int k) {
  __shared__ float as[T][T + 1];
  __shared__ float bs[T][T];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
  float sum = 0;
  for (int t = 0; t < (k - 1) / T + 1; ++t) {
    int column = t * T + tx, line = t * T + ty;
    if (row < rowsA && column < k)
      as[tx][ty] = a[row * k + column]; // transposed
    else
      as[tx][ty] = 0.0f;
    bs[ty][tx] = 0.0f;
    if (line < k && col < n)
      bs[ty][tx] = b[line * n + col];
    __syncthreads();
    for (int p = 0; p < T; ++p)
      sum += as[p][ty] * bs[p][tx];
    __syncthreads();
  }
  if (row < rowsC && col < n)
    c[row * n + col] = sum;
}

// Without guards the loop covers the whole tiles of n: all of it when that is a multiple.
// WHOLE: when block.x == 16
// WHOLE: when n % 16 == 0
// WHOLE: for (int p = 0; p < n; ++p) {
// WHOLE-NEXT: sum += a[row * n + p] * b[n * p + col];
// STRIPS: for (int p = 0; p < n / 16 * 16; ++p) {
__global__ void whole(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int t = 0; t < n / 16; ++t) {
    as[ty][tx] = a[row * n + t * 16 + tx];
    bs[ty][tx] = b[(t * 16 + ty) * n + col];
    __syncthreads();
    for (int p = 0; p < 16; ++p)
      sum += as[ty][p] * bs[p][tx];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// Offsets that run with the loop are functions of its counter,
// and sums of products of blocks and threads global indices.
// OFFSETS: when widthA % 16 == 0
// OFFSETS: when disjoint(a, 4 * (block.y * grid.y * widthA), c, 4 * (block.x * grid.x + block.y * grid.y * widthB - widthB))
// OFFSETS: for (int p = 0; p < widthA; ++p) {
// OFFSETS-NEXT: sum += a[(blockIdx.y * blockDim.y + threadIdx.y) * widthA + p] * b[p * widthB + (blockIdx.x * blockDim.x + threadIdx.x)];
// OFFSETS-NEXT: }
// OFFSETS-NEXT: c[(blockIdx.y * blockDim.y + threadIdx.y) * widthB + (blockIdx.x * blockDim.x + threadIdx.x)] = sum;
template <int SIZE> __global__ void offsets(float *c, float *a, float *b, int widthA, int widthB) {
  int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int first = widthA * SIZE * by, last = first + widthA - 1, step = SIZE;
  int firstB = SIZE * bx, stepB = SIZE * widthB;
  float sum = 0;
  for (int i = first, j = firstB; i <= last; i += step, j += stepB) {
    __shared__ float as[SIZE][SIZE], bs[SIZE][SIZE];
    as[ty][tx] = a[i + widthA * ty + tx];
    bs[ty][tx] = b[j + widthB * ty + tx];
    __syncthreads();
#pragma unroll
    for (int p = 0; p < SIZE; ++p)
      sum += as[ty][p] * bs[p][tx];
    __syncthreads();
  }
  c[widthB * SIZE * by + SIZE * bx + widthB * ty + tx] = sum;
}

// The same with pointers.
// POINTERS: for (int p = 0; p < k; ++p) {
// POINTERS-NEXT: sum += a[(long long)(blockIdx.y * blockDim.y + threadIdx.y) * k + p] * b[(long long)blockIdx.x * blockDim.x + threadIdx.x + (long long)n * p];
__global__ void pointers(int n, int k, const float *__restrict__ a, const float *__restrict__ b,
                         float *__restrict__ c) {
  __shared__ float as[256], bs[256];
  const int column = threadIdx.x, line = threadIdx.y;
  a += blockIdx.y * 16 * k;
  b += blockIdx.x * 16;
  c += blockIdx.y * 16 * n + blockIdx.x * 16;
  float sum = 0.0f;
  for (int t = 0; t < k; t += 16) {
    as[line * 16 + column] = a[line * k + column];
    bs[line * 16 + column] = b[line * n + column];
    __syncthreads();
    a += 16;
    b += 16 * n;
    for (int p = 0; p < 16; ++p)
      sum += as[line * 16 + p] * bs[p * 16 + column];
    __syncthreads();
  }
  c[line * n + column] = sum;
}

// Two tiles in one array of dynamic size, and the guard at the end as a return.
// DYNAMIC: if (row < m && col < n) {
// DYNAMIC: for (int p = 0; p < k; ++p) {
// DYNAMIC-NEXT: sum = fmaf(a[row * k + p], b[n * p + col], sum);
__global__ void dynamic(const float *a, const float *b, float *c, int m, int n, int k) {
  extern __shared__ float tiles[];
  float *as = tiles, *bs = tiles + blockDim.x * blockDim.y;
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < k; t += blockDim.x) {
    int column = t + threadIdx.x, line = t + threadIdx.y;
    as[threadIdx.y * blockDim.x + threadIdx.x] = row < m && column < k ? a[row * k + column] : 0.0f;
    bs[threadIdx.y * blockDim.x + threadIdx.x] = line < k && col < n ? b[line * n + col] : 0.0f;
    __syncthreads();
    for (int p = 0; p < blockDim.x; ++p)
      sum = fmaf(as[threadIdx.y * blockDim.x + p], bs[p * blockDim.x + threadIdx.x], sum);
    __syncthreads();
  }
  if (row >= m || col >= n)
    return;
  c[row * n + col] = sum;
}

// One thread index that is taken apart: two axes, so that each goes with a block index. Those of the block's own shape
// are kept as expressions, for the shape is still free.
// SPLIT: plan oneAxis: oneAxis_{{.*}}<<<(grid.x, grid.y, grid.z), (block.x / 16, block.x / 16, block.z), shared>>>
// SPLIT: when block.x == 256
// SPLIT: when block.y == 1
// SPLIT: when disjoint(a, 4 * ({{.*}}block.x / 16{{.*}}grid.x{{.*}}), c, {{.*}})
// SPLIT: for (int p = 0; p < k; ++p) {
// SPLIT-NEXT: sum += a[row * k + p] * b[n * p + col];
__global__ void oneAxis(const float *a, const float *b, float *c, int n, int k) {
  __shared__ float as[256], bs[256];
  const unsigned line = threadIdx.x / 16, column = threadIdx.x % 16;
  int row = blockIdx.x * 16 + line, col = blockIdx.y * 16 + column;
  float sum = 0.0f;
  for (int t = 0; t < k; t += 16) {
    as[line * 16 + column] = a[row * k + t + column];
    bs[threadIdx.x] = b[(t + line) * n + col];
    __syncthreads();
    for (int p = 0; p < 16; ++p)
      sum += as[line * 16 + p] * bs[p * 16 + column];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// A tile of one operand; the other one's guard stands in the loop.
// MATVEC: if (row < m) {
// MATVEC: for (int p = 0; p < k; ++p) {
// MATVEC-NEXT: sum += a[row * k + p] * x[p];
__global__ void matvec(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int m, int k) {
  __shared__ float xs[64];
  int row = blockIdx.x * 64 + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < k; t += 64) {
    if (t + threadIdx.x < k)
      xs[threadIdx.x] = x[t + threadIdx.x];
    else
      xs[threadIdx.x] = 0.0f;
    __syncthreads();
    if (row < m)
      for (int p = 0; p < 64; ++p)
        if (t + p < k)
          sum += a[row * k + t + p] * xs[p];
    __syncthreads();
  }
  if (row < m)
    y[row] = sum;
}

// A tile that each thread fills at four places, and that is read across.
// TURNED: for (int j = 0; j < 16; j += 4) {
// TURNED-NEXT: to[(blockIdx.x * 16 + threadIdx.y + j) * h + blockIdx.y * 16 + threadIdx.x] = from[(blockIdx.y * 16 + threadIdx.x) * w + blockIdx.x * 16 + threadIdx.y + j];
__global__ void turned(const float *__restrict__ from, float *__restrict__ to, int w, int h) {
  __shared__ float tile[16][17];
  for (int i = 0; i < 16; i += 4)
    tile[threadIdx.x][threadIdx.y + i] = from[(blockIdx.y * 16 + threadIdx.x) * w + blockIdx.x * 16 + threadIdx.y + i];
  __syncthreads();
  for (int j = 0; j < 16; j += 4)
    to[(blockIdx.x * 16 + threadIdx.y + j) * h + blockIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void plain(float *x) { x[threadIdx.x] = 0; }

// 32 threads along x reach beyond rows of 16.
// WIDE: which cells of 'as' are accessed is not understood

// UNSTORED: may not have been stored
__global__ void unguarded(const float *__restrict__ x, float *__restrict__ y, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n)
    s[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = s[63 - (int)threadIdx.x];
}
__global__ void beyond(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x + 1];
}
// UPDATED: 's' is updated in place
__global__ void scan(float *__restrict__ y) {
  __shared__ float s[64];
  s[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  s[threadIdx.x] += 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// WAITS: 's' is not filled before a barrier and read after it
__global__ void noBarrier(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[63 - (int)threadIdx.x];
}
// What one iteration stores the next one reads.
__global__ void buffers(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ float s[64];
  float sum = 0;
  s[threadIdx.x] = x[threadIdx.x];
  for (int t = 0; t < 8; ++t) {
    __syncthreads();
    sum += s[63 - (int)threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = x[t * 64 + threadIdx.x];
  }
  y[threadIdx.x] = sum;
}
// LEAVES: not all threads of a block go the same way
__global__ void leaves(const float *__restrict__ x, float *__restrict__ y, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n)
    return;
  s[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = s[63 - (int)threadIdx.x];
}
// SEVERAL: what 's' holds is stored by several threads at once
__global__ void several(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ float s[1];
  s[0] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[0];
}
// WHO: which thread has stored a cell of 's' is not understood
__global__ void gathered(const float *__restrict__ x, const int *__restrict__ at, float *__restrict__ y) {
  __shared__ float s[64];
  s[at[threadIdx.x]] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// CHANGES: what is staged of 'x' may change before it is used
__global__ void changes(float *x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[63 - (int)threadIdx.x];
}
// ORDERED: barriers may order accesses to 'z'
__global__ void ordered(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  z[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - (int)threadIdx.x] + z[63 - (int)threadIdx.x];
}
// RUNNING: is computed from 'v', which may change
__global__ void running(const float *__restrict__ x, float *__restrict__ y, int n) {
  __shared__ float s[64];
  float v = x[threadIdx.x], sum = 0;
  for (int t = 0; t < n; ++t) {
    v *= 2;
    s[threadIdx.x] = v;
    __syncthreads();
    sum += s[63 - (int)threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
// HIDDEN: 's' is used in a way that hides what is accessed
__global__ void hidden(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ __align__(16) float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float4 v = *(float4 *)&s[threadIdx.x / 4 * 4];
  y[threadIdx.x] = v.x;
}

int main(int argc, char **argv) {
  int m = argc > 3 ? atoi(argv[1]) : 64, n = argc > 3 ? atoi(argv[2]) : 32, k = argc > 3 ? atoi(argv[3]) : 48;
  int most = (m > n ? m > k ? m : k : n > k ? n : k) + 64, size = most * most;
  float *a, *b, *c;
  cudaMallocManaged(&a, sizeof(float) * size);
  cudaMallocManaged(&b, sizeof(float) * size);
  cudaMallocManaged(&c, sizeof(float) * size);
  for (int i = 0; i < size; ++i) {
    a[i] = i * 37 % 101 * 0.01f - 0.5f;
    b[i] = i * 53 % 97 * 0.01f - 0.5f;
    c[i] = 1;
  }
  dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16), tiles(n / 16, m / 16);
  checked<<<grid, block>>>(m, n, k, 1.5f, a, b, 0.5f, c);
  branches<16><<<grid, block>>>(a, b, c, m - 3, m, n, k);
  dynamic<<<grid, block, 2 * 16 * 16 * sizeof(float)>>>(a, b, c, m, n, k);
  offsets<16><<<tiles, block>>>(c, a, b, k, n);
  if (k % 16 == 0)
    pointers<<<tiles, block>>>(n, k, a, b, c);
  if (m == n && n == k)
    whole<<<tiles, block>>>(a, b, c, n);
  if (k % 16 == 0)
    oneAxis<<<dim3(m / 16, n / 16), 256>>>(a, b, c, n, k);
  matvec<<<(m + 63) / 64, 64>>>(a, b, c, m, k);
  turned<<<tiles, dim3(16, 4)>>>(a, c, n, m);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < size; ++i)
    sum += c[i] * (i % 7 + 1);
  printf("%.6g\n", sum);
}
