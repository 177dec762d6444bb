// RUN: %plan --passes='qualify-pointers[copy]' %s | FileCheck %s
// RUN: %plan --passes='qualify-pointers[gather]' %s | %check=GATHER
// RUN: %refused --passes='qualify-pointers[done]' %s 2>&1 | %check=DONE
// RUN: %plan --passes='qualify-pointers[borders]' %s | %check=BORDERS

// CHECK: when disjoint(from, 4 * n, to, 4 * n)
// CHECK: copy_optiml{{[0-9]*}}(const float *__restrict__ from, float *__restrict__ to, int n)
__global__ void copy(float *from, float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[i];
}

// No index leads out of an allocation.
// GATHER: when apart(from, to)
// GATHER: when disjoint(index, 4 * n, to, 4 * n)
// GATHER: gather_optiml{{[0-9]*}}(const float *__restrict__ from, const int *__restrict__ index,
__global__ void gather(float *from, const int *index, float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[index[i]];
}

// DONE: every pointer parameter is __restrict__ already
__global__ void done(const float *__restrict__ from, float *__restrict__ to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[i];
}

// A shift that is unknown by itself is bounded by the conditions; no condition asks a size to be negative.
// BORDERS-NOT: {{- 1 >= 0}}
// BORDERS: when disjoint(in, 4 * {{.*}}, out, 4 * {{.*}})
// BORDERS: float *__restrict__ out
struct Window {
  int width, height, k;
};
__global__ void borders(const float *in, float *out, Window w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w.width || y >= w.height)
    return;
  float sum = 0;
  for (int dy = 0; dy < w.k; ++dy) {
    int row = y + dy - w.k / 2;
    if (row < 0 || row >= w.height)
      continue;
    for (int dx = 0; dx < w.k; ++dx) {
      int column = x + dx - w.k / 2;
      if (column < 0 || column >= w.width)
        continue;
      sum += in[row * w.width + column];
    }
  }
  out[y * w.width + x] = sum;
}
