// distribute-loop on loops that keep the k best values in a sorted array.
// RUN: %plan --passes='distribute-loop[largest]{threads=32,rows=8,entries=16}' %s | %check=WARP
// RUN: %plan --passes='distribute-loop[largest]{threads=128}' %s | %check=BLOCK
// RUN: %plan --passes='distribute-loop[smallest]{threads=64}' %s | %check=SMALLEST
// RUN: optiml-opt --reread --emit --passes='distribute-loop[largest]{threads=32,rows=8,entries=8};distribute-loop[smallest]{threads=64};distribute-loop[ranked]{threads=32,rows=8};distribute-loop[where]{threads=32,rows=2}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: optiml-opt --emit --passes='distribute-loop[largest]{threads=96};distribute-loop[ranked]{threads=128};distribute-loop[where]{threads=64}' %s > %t.block.cu
// RUN: %verify=%t.block.cu %s | %check=SAME
// RUN: optiml-opt --reread --emit --passes='distribute-loop[largest]{threads=32,rows=8,filter=1};distribute-loop[where]{threads=64,filter=1}' %s > %t.filter.cu
// RUN: %verify=%t.filter.cu %s | %check=SAME
// RUN: %opt --passes='distribute-loop[where]{threads=32,rows=2,filter=1}' %s | %check=FILTER
// FILTER: best_bound = fmaxf(best_bound, v
// FILTER: best_bound = fminf(best_bound, __shfl_xor_sync(0xffffffff, best_bound, 2));
// FILTER: if (v >= best_bound && v > best[15]) {
// RUN: %refused --passes='distribute-loop[sum]{threads=32,filter=1}' %s 2>&1 | %check=UNFILTERED
// UNFILTERED: it keeps no single sorted array whose values could be filtered
// SAME: the same results
// RUN: %refused --passes='distribute-loop[largest]{threads=32,entries=12}' %s 2>&1 | %check=POWER
// POWER: the number of entries must be a power of two from 2 to 32
// RUN: %refused --passes='distribute-loop[smallest]{threads=32,entries=4}' %s 2>&1 | %check=FEW
// FEW: 'least' may keep more than 4 elements
// RUN: %refused --passes='distribute-loop[sum]{threads=32,entries=4}' %s 2>&1 | %check=NONE
// NONE: it keeps no sorted array whose entries could be bounded
// RUN: %opt --passes='distribute-loop[where]{threads=32,rows=2}' %s | %check=WHERE
// RUN: %refused --passes='distribute-loop[later]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[backwards]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[twice]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[beyond]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[again]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[halves]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[opposite]' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='distribute-loop[unfilled]' %s 2>&1 | %check=REFUSED
// REFUSED: none of its loops can be shared out among threads: {{.*}} 'best'
// REQUIRES: optiml-run
#include <cmath>
#include <cstdio>

__global__ void largest(const float *x, float *y, int rows, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float best[20];
  for (int i = 0; i < k; i++)
    best[i] = -INFINITY;
  for (int j = 0; j < cols; j++) {
    float v = x[row * cols + j];
    if (v > best[k - 1]) {
      int place = k - 1;
      while (place > 0 && best[place - 1] < v) {
        best[place] = best[place - 1];
        place--;
      }
      best[place] = v;
    }
  }
  for (int i = 0; i < k; i++)
    y[row * k + i] = best[i];
}
// WARP: when k <= 16
// WARP: float best[16];
// WARP-NEXT: #pragma unroll
// WARP-NEXT: for (int i = 0; i < 16; i++) {
// WARP-NEXT: best[i] = -
// WARP: for (int j = threadIdx.x; j < cols; j += 32) {
// WARP-NEXT: float v = x[row * cols + j];
// WARP-NEXT: if (v > best[15]) {
// WARP-NEXT: #pragma unroll
// WARP-NEXT: for (int entry = 15; entry > 0; entry -= 1) {
// WARP-NEXT: best[entry] = fmaxf(best[entry], fminf(best[entry - 1], v));
// WARP-NEXT: }
// WARP-NEXT: best[0] = fmaxf(best[0], v);
// WARP: for (int lane_offset = 16; lane_offset > 0; lane_offset /= 2) {
// WARP: best_of_lane[entry] = __shfl_xor_sync(0xffffffff, best[15 - entry], lane_offset);
// WARP: best[entry] = fmaxf(best[entry], best_of_lane[entry]);
// WARP: for (int distance = 8; distance > 0; distance /= 2) {
// WARP: if ((entry & distance) == 0) {
// WARP-NEXT: float kept = fmaxf(best[entry], best[entry + distance]);
// WARP-NEXT: best[entry + distance] = fminf(best[entry], best[entry + distance]);
// WARP-NEXT: best[entry] = kept;
// One store for a row: every thread has one element.
// WARP: float best_of_thread = best[0];
// WARP: if (threadIdx.x == entry) {
// WARP-NEXT: best_of_thread = best[entry];
// WARP: for (int i = threadIdx.x; i < k; i += 32) {
// WARP-NEXT: y[row * k + i] = best_of_thread;

// The array's own extent bounds k: no condition.
// BLOCK-NOT: when k <= 32
// BLOCK: float best[32];
// BLOCK: __shared__ float best_of_warps[128];
// BLOCK: if (threadIdx.x % 32 == 0) {
// BLOCK: best_of_warps[threadIdx.x / 32 * 32 + entry] = best[entry];
// BLOCK: __syncthreads();
// BLOCK: best[entry] = best_of_warps[entry];
// BLOCK: for (int of_warp = 1; of_warp < 4; ++of_warp) {
// BLOCK: best[entry] = fmaxf(best[entry], best_of_warps[of_warp * 32 + 31 - entry]);

// The smallest numbers, without a name for the value, sides exchanged, equal ones moved too; read one by one.
__global__ void smallest(const unsigned *x, unsigned *y, unsigned *count, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  unsigned least[5], total = 0;
  for (int i = 0; i < 5; ++i)
    least[i] = 1000;
  for (int j = 0; j < cols; ++j) {
    total += x[row * cols + j];
    if (least[4] >= x[row * cols + j]) {
      unsigned at = 4;
      for (; at >= 1 && x[row * cols + j] <= least[at - 1]; at -= 1)
        least[at] = least[at - 1];
      least[at] = x[row * cols + j];
    }
  }
  y[row] = least[4] * 3 + least[0];
  count[row] = total;
}
// SMALLEST: unsigned int least[8];
// SMALLEST: unsigned int value = x[row * cols + j];
// SMALLEST-NEXT: if (value < least[7]) {
// SMALLEST: least[entry] = min(least[entry], max(least[entry - 1], value));
// SMALLEST: least[0] = min(least[0], value);
// SMALLEST: y[row] = least[4] * 3 + least[0];

__global__ void sum(const float *x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += x[row * n + j];
  y[row] = s;
}

#define INSERT(COMPARE, VALUE)                                                                                         \
  if ((VALUE) > best[k - 1]) {                                                                                         \
    int place = k - 1;                                                                                                 \
    while (place > 0 && best[place - 1] COMPARE (VALUE)) {                                                             \
      best[place] = best[place - 1];                                                                                   \
      place--;                                                                                                         \
    }                                                                                                                  \
    best[place] = VALUE;                                                                                               \
  }

// Where the values are counts too: among equal values the first column is kept.
// WHERE: best[i] = -
// WHERE-NEXT: column[i] = 0;
// WHERE: if (v > best[15]) {
// WHERE: if (v > best[entry - 1]) {
// WHERE-NEXT: best[entry] = best[entry - 1];
// WHERE-NEXT: column[entry] = column[entry - 1];
// WHERE-NEXT: } else {
// WHERE-NEXT: if (v > best[entry]) {
// WHERE-NEXT: best[entry] = v;
// WHERE-NEXT: column[entry] = j;
// WHERE: if (v > best[0]) {
// WHERE: column_of_lane[entry] = __shfl_xor_sync(0xffffffff, column[15 - entry], lane_offset);
// WHERE: if (best_of_lane[entry] > best[entry] || best_of_lane[entry] == best[entry] && column_of_lane[entry] < column[entry]) {
__global__ void where(const float *x, int *y, int rows, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float best[16];
  int column[16];
  for (int i = 0; i < k; ++i)
    best[i] = -3e38f;
  for (int j = 0; j < cols; ++j) {
    float v = x[row * cols + j];
    if (v > best[k - 1]) {
      int place = k - 1;
      while (place > 0 && best[place - 1] < v) {
        best[place] = best[place - 1];
        column[place] = column[place - 1];
        place--;
      }
      best[place] = v;
      column[place] = j;
    }
  }
  y[row] = best[0] > -3e38f ? column[0] : -1;
}

// The smallest, and where they are; both arrays are written.
__global__ void ranked(const unsigned *x, unsigned *y, long long *z, int rows, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  unsigned least[12];
  long long at[12];
  for (int i = 0; i < k; ++i) {
    at[i] = -1;
    least[i] = 0xffffffff;
  }
  for (int j = 0; j < cols; ++j) {
    unsigned v = x[row * cols + j] % 50;
    if (v < least[k - 1]) {
      int place = k - 1;
      for (; place > 0 && least[place - 1] > v; --place) {
        at[place] = at[place - 1];
        least[place] = least[place - 1];
      }
      at[place] = 2 * (row * cols + j);
      least[place] = v;
    }
  }
  for (int i = 0; i < k; ++i) {
    y[row * k + i] = least[i];
    z[row * k + i] = at[i];
  }
}

#define INSERT_AT(COMPARE, VALUE, PLACE)                                                                               \
  if ((VALUE) COMPARE best[k - 1]) {                                                                                   \
    int place = k - 1;                                                                                                 \
    while (place > 0 && (VALUE) COMPARE best[place - 1]) {                                                             \
      best[place] = best[place - 1];                                                                                   \
      column[place] = column[place - 1];                                                                               \
      place--;                                                                                                         \
    }                                                                                                                  \
    best[place] = VALUE;                                                                                               \
    column[place] = PLACE;                                                                                             \
  }

// Among equal values the last one comes first.
__global__ void later(const float *x, int *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  int column[16];
  for (int i = 0; i < k; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j) {
    INSERT_AT(>=, x[row * cols + j], j)
  }
  y[row] = column[0];
}

__global__ void backwards(const float *x, int *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  int column[16];
  for (int i = 0; i < k; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j) {
    INSERT_AT(>, x[row * cols + j], cols - j)
  }
  y[row] = column[0];
}

__global__ void twice(const float *x, int *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  int column[16];
  for (int i = 0; i < k; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j)
    for (int h = 0; h < 2; ++h) {
      INSERT_AT(>, x[row * cols + j] * h, j)
    }
  y[row] = column[0];
}

// What lies behind the k best is read.
__global__ void beyond(const float *x, float *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  for (int i = 0; i < 16; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j) {
    INSERT(<, x[row * cols + j])
  }
  y[row] = best[15];
}

__global__ void again(const float *x, float *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  for (int i = 0; i < k; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j) {
    INSERT(<, x[row * cols + j])
  }
  best[0] = 1;
  y[row] = best[0] + best[1];
}

// Not all values, and half the array is read on the way.
__global__ void halves(const float *x, float *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16], s = 0;
  for (int i = 0; i < k; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j) {
    INSERT(<, x[row * cols + j])
    s += best[0];
  }
  y[row] = s;
}

__global__ void opposite(const float *x, float *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  for (int i = 0; i < k; ++i)
    best[i] = 0;
  for (int j = 0; j < cols; ++j) {
    INSERT(>, x[row * cols + j])
  }
  y[row] = best[0];
}

__global__ void unfilled(const float *x, float *y, int cols, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float best[16];
  for (int i = 0; i < k; ++i)
    best[i] = x[row * cols + i];
  for (int j = 0; j < cols; ++j) {
    INSERT(<, x[row * cols + j])
  }
  y[row] = best[0];
}

int main() {
  const int rows = 5, cols = 150, k = 7;
  static float x[rows * cols], y[rows * k];
  static unsigned n[rows * cols], least[2 * rows];
  unsigned state = 1;
  for (int i = 0; i < rows * cols; ++i) {
    state = state * 1664525u + 1013904223u;
    x[i] = state % 11 == 0   ? NAN
           : state % 13 == 0 ? INFINITY
           : state % 7 == 0  ? -INFINITY
                             : (float)(int)(state >> 24) - 128.0f;
    n[i] = state >> 22;
  }
  for (int j = 0; j < cols; ++j)
    x[j] = j % 2 ? NAN : -INFINITY; // nothing to be kept
  float *dx, *dy;
  unsigned *dn, *dl;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof y);
  cudaMalloc(&dn, sizeof n);
  cudaMalloc(&dl, sizeof least);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  cudaMemcpy(dn, n, sizeof n, cudaMemcpyHostToDevice);
  largest<<<1, 32>>>(dx, dy, rows, cols, k);
  smallest<<<1, 32>>>(dn, dl, dl + rows, rows, cols);
  int *dw, w[rows];
  long long *dz, z[rows * k];
  unsigned *dr, r[rows * k];
  cudaMalloc(&dw, sizeof w);
  cudaMalloc(&dz, sizeof z);
  cudaMalloc(&dr, sizeof r);
  where<<<1, 32>>>(dx, dw, rows, cols, k);
  ranked<<<1, 32>>>(dn, dr, dz, rows, cols, k);
  cudaMemcpy(w, dw, sizeof w, cudaMemcpyDeviceToHost);
  cudaMemcpy(z, dz, sizeof z, cudaMemcpyDeviceToHost);
  cudaMemcpy(r, dr, sizeof r, cudaMemcpyDeviceToHost);
  for (int v : w)
    printf("%d\n", v);
  for (int i = 0; i < rows * k; ++i)
    printf("%u %lld\n", r[i], z[i]);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  cudaMemcpy(least, dl, sizeof least, cudaMemcpyDeviceToHost);
  for (float v : y)
    printf("%g\n", v);
  for (unsigned v : least)
    printf("%u\n", v);
}
