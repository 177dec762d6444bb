// What loop-to-grid leaves alone, and why.
// RUN: not optiml-opt --passes='loop-to-grid[carried/j]' %s 2>&1 | FileCheck %s --check-prefix=CARRIED
// RUN: not optiml-opt --passes='loop-to-grid[after/j]' %s 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: not optiml-opt --passes='loop-to-grid[recurrence/j]' %s 2>&1 | FileCheck %s --check-prefix=RECURRENCE
// RUN: not optiml-opt --passes='loop-to-grid[reduction/j]' %s 2>&1 | FileCheck %s --check-prefix=REDUCTION
// RUN: not optiml-opt --passes='loop-to-grid[scatter/j]' %s 2>&1 | FileCheck %s --check-prefix=SCATTER
// RUN: not optiml-opt --passes='loop-to-grid[folded/j]' %s 2>&1 | FileCheck %s --check-prefix=FOLDED
// RUN: not optiml-opt --passes='loop-to-grid[wide/j]' %s 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not optiml-opt --passes='loop-to-grid[mirror/j]' %s 2>&1 | FileCheck %s --check-prefix=MIRROR
// RUN: not optiml-opt --passes='loop-to-grid[diagonal/j]' %s 2>&1 | FileCheck %s --check-prefix=DIAGONAL
// RUN: not optiml-opt --passes='loop-to-grid[summary/j]' %s 2>&1 | FileCheck %s --check-prefix=SUMMARY
// RUN: not optiml-opt --passes='loop-to-grid[softmax/i2]' %s 2>&1 | FileCheck %s --check-prefix=SOFTMAX
// RUN: not optiml-opt --passes='loop-to-grid[nested/j/k]' %s 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not optiml-opt --passes='loop-to-grid[sparse/j]' %s 2>&1 | FileCheck %s --check-prefix=SPARSE
// RUN: not optiml-opt --passes='loop-to-grid[search/j]' %s 2>&1 | FileCheck %s --check-prefix=SEARCH
// RUN: not optiml-opt --passes='loop-to-grid[signs/j]' %s 2>&1 | FileCheck %s --check-prefix=SIGNS
// RUN: not optiml-opt --passes='loop-to-grid[global/j]' %s 2>&1 | FileCheck %s --check-prefix=GLOBAL
// RUN: not optiml-opt --passes='loop-to-grid[waits/j]' %s 2>&1 | FileCheck %s --check-prefix=WAITS
// RUN: not optiml-opt --passes='loop-to-grid[tickets/j]' %s 2>&1 | FileCheck %s --check-prefix=TICKETS
// RUN: not optiml-opt --passes='loop-to-grid[twice/j]' %s 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not optiml-opt --passes='loop-to-grid[full/j]' %s 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: not optiml-opt --passes='block-shape[stored/j]{x=64};loop-to-grid[stored/j]' %s 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not optiml-opt --passes='loop-to-grid[tail/j]' %s 2>&1 | FileCheck %s --check-prefix=TAIL
// RUN: optiml-opt --kernels-only --print-plan --passes='loop-to-grid[padded/j]' %s | FileCheck %s --check-prefix=PADDED

#define ROW int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

__global__ void carried(const float *in, float *out, int n) {
  ROW;
  float last = 0;
  for (int j = 0; j < n; ++j) {
    out[i * n + j] = in[i * n + j] - last;
    last = in[i * n + j];
  }
}
// CARRIED: 'last' keeps its value from one iteration to the next, or after the loop

__global__ void after(const float *in, float *out, float *ends, int n) {
  ROW;
  float value = 0;
  for (int j = 0; j < n; ++j) {
    value = in[i * n + j];
    out[i * n + j] = value;
  }
  ends[i] = value;
}
// AFTER: 'value' keeps its value from one iteration to the next, or after the loop

__global__ void recurrence(float *x, int n) {
  ROW;
  for (int j = 1; j < n; ++j)
    x[i * n + j] += x[i * n + j - 1];
}
// RECURRENCE: iterations may meet in 'x'

__global__ void reduction(const float *in, float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i] += in[i * n + j];
}
// REDUCTION: iterations may meet in 'out'

__global__ void scatter(const int *where, float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[where[j]] = j;
}
// SCATTER: iterations may meet in 'out'

__global__ void folded(float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i * n + j / 2] = j;
}
// FOLDED: iterations may meet in 'out'

// Neighbouring iterations write one element in common.
__global__ void wide(float *out, int n) {
  ROW;
  for (int j = 0; j < n; j += 2)
    for (int k = 0; k < 3; ++k)
      out[i * 2 * n + j + k] = j;
}
// WIDE: iterations may meet in 'out'

// Element (j, i) is that of another iteration where the loop does not begin behind the diagonal.
__global__ void mirror(float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j) {
    out[j] = 1;
    out[n - 1 - j] = 2;
  }
}
// MIRROR: iterations may meet in 'out'

// The first store is to an element of the loop's.
__global__ void diagonal(float *out, int n) {
  ROW;
  out[i * n + i] = 1;
  for (int j = i; j < n; ++j)
    out[i * n + j] = 2;
}
// DIAGONAL: iterations may meet what stands outside of the loop in 'out'

// What stands behind the loop reads what it wrote.
__global__ void summary(float *out, float *ends, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i * n + j] = j;
  ends[i] = out[i * n];
}
// SUMMARY: iterations may meet what stands outside of the loop in 'out'

__global__ void softmax(const float *in, float *out, int n) {
  ROW;
  float sum = 0;
  for (int j = 0; j < n; ++j)
    sum += expf(in[i * n + j]);
  for (int i2 = 0; i2 < n; ++i2)
    out[i * n + i2] = expf(in[i * n + i2]) / sum;
}
// SOFTMAX: would be run again for every iteration

__global__ void nested(float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    for (int k = 0; k < n; ++k)
      out[(i * n + j) * n + k] = k;
}
// NESTED: the loop is part of another loop of the thread

__global__ void sparse(const int *begin, const float *values, float *out, int n) {
  ROW;
  for (int j = begin[i]; j < begin[i + 1]; ++j)
    out[j] = values[j];
}
// SPARSE: the loop's bounds are not known before the launch

__global__ void search(const float *in, float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j) {
    if (in[i * n + j] < 0)
      break;
    out[i * n + j] = 1;
  }
}
// SEARCH: leaves the loop

// -1 is larger than any unsigned number: the source runs no iteration at all.
__global__ void signs(float *out, int n, unsigned m) {
  ROW;
  for (int j = -1; j < m; ++j)
    out[i * 100 + j + 1] = 1;
}
// SIGNS: the loop's bounds are of different signedness, and may be negative

__device__ float factor;
__global__ void global(float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i * n + j] = factor;
}
// GLOBAL: 'factor' may be a variable that the loop writes

__global__ void waits(float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j) {
    out[i * n + j] = 1;
    __syncwarp();
  }
}
// WAITS: the kernel's threads work together, or wait for each other

__global__ void tickets(int *next, int *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i * n + j] = atomicAdd(next, 1);
}
// TICKETS: loop-to-grid[tickets/j]:

// The thread's first store changes what its own condition reads.
__global__ void twice(float *flag, float *out, int n) {
  ROW;
  if (flag[i] > 0)
    flag[i] = 0;
  if (flag[i] == 0)
    for (int j = 0; j < n; ++j)
      out[i * n + j] = 1;
}
// TWICE: reads 'flag', which is written outside of the loop too

__global__ void full(float *out, int n) {
  int i = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  for (int j = 0; j < n; ++j)
    out[i * n + j] = 1;
}
// FULL: the kernel looks at all axes of the grid already

__global__ void stored(float *out, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i * n + j] = 1;
}
// SHAPE: the block shape is fixed already

// A sum behind the loop would be computed again by the thread of each iteration.
__global__ void tail(const float *in, float *out, float *sums, int n) {
  ROW;
  for (int j = 0; j < n; ++j)
    out[i * n + j] = in[i * n + j];
  float sum = 0;
  for (int k = 0; k < n; ++k)
    sum += in[i * n + k];
  sums[i] = sum;
}
// TAIL: would be run again for every iteration

// Whether rows overlap is known at the launch.
__global__ void padded(float *out, int n, int rows, int width, int pitch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int j = 0; j < rows; ++j)
      for (int k = 0; k < width; ++k)
        out[(j * pitch + k) * n + i] = 1;
}
// PADDED: when {{pitch - width >= 0|-width \+ pitch >= 0|.*pitch.*width.* >= 0}}
