// Arrays that are members of records in memory: X[i].m[k] lies in element i of X, whatever k is.
// RUN: %plan --passes='thread-per-iteration[invertAll]' %s | %check=INVERT
// RUN: %plan --passes='thread-per-iteration[rotate]' %s | %check=ROTATE
// RUN: %plan --passes='qualify-pointers[invertAll]' %s | %check=QUALIFY
// RUN: %plan --passes='thread-per-iteration[trace]' %s | %check=TRACE
// RUN: %refused --passes='loop-to-grid[shift/k]' %s 2>&1 | %check=SHIFT
// RUN: optiml-opt --emit --passes='thread-per-iteration[invertAll];block-shape[invertAll]{x=32,y=1};stage-slices[invertAll:from+to];thread-per-iteration[trace];qualify-pointers[trace];qualify-pointers[rotate]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
// RUN: optiml-opt --fuse-launches %s > %t.fused.cu
// RUN: grep -q 'invertAll_trace_fused' %t.fused.cu
// RUN: %verify=%t.fused.cu %s | %check=SAME
#include <cstdio>

template <typename T, int R, int C> struct Matrix {
  T m[R][C];
  __device__ T &at(int r, int c) { return m[r][c]; }
  __device__ const T &at(int r, int c) const { return m[r][c]; }
};
struct Frame {
  Matrix<float, 3, 3> turn;
  float place[3];
  int id;
};

// INVERT: <<<(max(1, ceildiv(count, block.x)), grid.y, grid.z)
// INVERT: when disjoint(from, 52 * count, to, 52 * count)
// QUALIFY: const Frame *__restrict__ from, Frame *__restrict__ to
__global__ void invertAll(const Frame *from, Frame *to, unsigned count) {
  for (unsigned f = blockIdx.x * blockDim.x + threadIdx.x; f < count; f += gridDim.x * blockDim.x) {
    for (int r = 0; r < 3; ++r) {
      float moved = 0;
      for (int c = 0; c < 3; ++c) {
        to[f].turn.at(c, r) = from[f].turn.at(r, c);
        moved -= from[f].turn.at(c, r) * from[f].place[c];
      }
      to[f].place[r] = moved;
    }
    to[f].id = from[f].id;
  }
}

// TRACE: <<<(max(1, ceildiv(count, block.x)), grid.y, grid.z)
__global__ void trace(const Frame *frames, float *sums, unsigned count) {
  for (unsigned f = blockIdx.x * blockDim.x + threadIdx.x; f < count; f += gridDim.x * blockDim.x) {
    const Frame *own = frames + f;
    float sum = 0;
    for (int k = 0; k < 3; ++k)
      sum += own->turn.at(k, k);
    sums[f] = sum + own->place[2];
  }
}

// What an iteration reads is another's element: more threads than there were are not asked for.
// ROTATE: <<<(grid.x, grid.y, grid.z)
// ROTATE: when count <= grid.x * block.x
__global__ void rotate(Frame *ring, unsigned count) {
  for (unsigned f = blockIdx.x * blockDim.x + threadIdx.x; f < count; f += gridDim.x * blockDim.x)
    if (f % 2)
      for (int k = 0; k < 3; ++k)
        ring[f].place[k] = ring[f - 1].place[k];
}

// SHIFT: iterations may meet in 'line'
__global__ void shift(Frame *line, unsigned count) {
  unsigned f = blockIdx.x * blockDim.x + threadIdx.x;
  if (f >= count)
    return;
  for (int k = 1; k < 3; ++k)
    line[f].place[k] = line[f].place[k - 1];
}

int main() {
  const unsigned count = 1000;
  static Frame frames[count], inverted[count];
  static float sums[count];
  for (unsigned f = 0; f < count; ++f) {
    for (int k = 0; k < 9; ++k)
      frames[f].turn.m[k / 3][k % 3] = float((f * 7 + unsigned(k) * 5) % 23) - 11;
    for (int k = 0; k < 3; ++k)
      frames[f].place[k] = float((f + unsigned(k)) % 9);
    frames[f].id = int(f);
  }
  Frame *from, *to;
  float *traces;
  cudaMalloc(&from, sizeof frames);
  cudaMalloc(&to, sizeof frames);
  cudaMalloc(&traces, sizeof sums);
  cudaMemcpy(from, frames, sizeof frames, cudaMemcpyHostToDevice);
  invertAll<<<3, 64>>>(from, to, count);
  trace<<<3, 64>>>(to, traces, count);
  rotate<<<16, 64>>>(to, count);
  shift<<<16, 64>>>(to, count);
  cudaMemcpy(inverted, to, sizeof frames, cudaMemcpyDeviceToHost);
  cudaMemcpy(sums, traces, sizeof sums, cudaMemcpyDeviceToHost);
  double total = 0;
  for (unsigned f = 0; f < count; ++f)
    total += sums[f] + inverted[f].place[f % 3] * (f % 7) + inverted[f].turn.m[f % 3][1] + inverted[f].id % 5;
  printf("%g\n", total);
  return 0;
}
