// RUN: %plan --passes='block-shape[blur]{x=32,y=8};stage-window[blur:in+w]' %s | FileCheck %s
// RUN: %opt --passes='block-shape[blur]{x=16,y=16};coarsen[blur]{x=4,y=1,style=blocked};stage-window[blur:in+w]' %s | %check=COARSE
// RUN: %opt --passes='block-shape[cross]{x=32,y=8};stage-window[cross:u]' %s | %check=CROSS
// RUN: %opt --passes='block-shape[flipped]{x=64,y=1};stage-window[flipped:in+w]{pad=1}' %s | %check=FLIPPED
// RUN: optiml-opt --list-sites --passes='block-shape[blur]{x=32,y=8}' %s | %check=SITES
// RUN: %refused --passes='stage-window[blur:in]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[open]{x=64,y=1};stage-window[open:in]' %s 2>&1 | %check=OPEN
// RUN: %refused --passes='block-shape[early]{x=64,y=1};stage-window[early:in]' %s 2>&1 | %check=EARLY
// RUN: %refused --passes='block-shape[masked]{x=64,y=1};stage-window[masked:in]' %s 2>&1 | %check=MASKED
// RUN: %refused --passes='block-shape[mine]{x=64,y=1};stage-window[mine:in]' %s 2>&1 | %check=MINE
// RUN: %refused --passes='block-shape[copy]{x=64,y=1};stage-window[copy:in]' %s 2>&1 | %check=ONCE
// RUN: %refused --passes='block-shape[inplace]{x=64,y=1};stage-window[inplace:x]' %s 2>&1 | %check=INPLACE
// RUN: %refused --passes='block-shape[apart]{x=64,y=1};stage-window[apart:in]' %s 2>&1 | %check=LARGE
// RUN: optiml-opt --emit --passes='block-shape[blur]{x=16,y=16};coarsen[blur]{x=4,y=2,style=blocked};stage-window[blur:in+w];unroll[blur/i/j]{factor=full}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o

// The copy stands before what only some threads do; threads beyond the image take part in it. Loaded is what the
// original reads, the rows of the window are a multiple of 16 bytes.
// CHECK: when width - 4 >= 0
// CHECK: when width >= 0
// CHECK: when disjoint(in, 4 * (height * width), out,
// CHECK: __shared__ __align__(16) float in_window[12][36];
// CHECK-NEXT: __shared__ __align__(16) float w_window[25];
// CHECK-NEXT: const int tid = threadIdx.x + threadIdx.y * 32;
// CHECK: const int r = e / 36;
// CHECK-NEXT: const int c = e % 36;
// CHECK-NEXT: in_window[r][c] = {{.*}}(int)blockIdx.y * 8 + r < height{{.*}} ? in[(blockIdx.y * 8 + r) * width + (blockIdx.x * 32 + c)] : 0.0f;
// CHECK: if (tid < 25) {
// CHECK: w_window[c1] = {{.*}} ? w[c1] : 0.0f;
// CHECK: __syncthreads();
// CHECK-NEXT: if (x < width - 4 && y < height - 4) {
// CHECK: s += in_window[i + threadIdx.y][j + threadIdx.x] * w_window[i * 5 + j];

// Where all operands are staged, threads without a result compute one from zeros, and need no guard.
// COARSE: __shared__ __align__(16) float in_window[20][68];
// COARSE: for (int j = 0; j < 5; ++j) {
// COARSE-NEXT: #pragma unroll
// COARSE-NEXT: for (int ix = 0; ix < 4; ++ix) {
// COARSE-NEXT: s[ix] += in_window[i + threadIdx.y][ix + j + threadIdx.x * 4] * w_window[i * 5 + j];

// SITES: stage-window[blur:in+w]{{$}}
// SITES: stage-window[blur:in]{{$}}
// SITES: stage-window[blur:w]{{$}}
// SHAPE: the block shape is not fixed yet
__global__ void blur(const float *in, const float *w, float *out, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width - 4 || y >= height - 4)
    return;
  float s = 0;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j)
      s += in[(y + i) * width + (x + j)] * w[i * 5 + j];
  out[y * (width - 5 + 1) + x] = s;
}

// The corners of the box are read by no thread: a line and a column, each with what lies between its ends.
// CROSS: __shared__ __align__(16) float u_window[10][36];
// CROSS: u_window[r][c] = {{.*}} || {{.*}} ? u[(blockIdx.y * 8 + r - 1) * nx + (blockIdx.x * 32 + c - 1)] : 0.0f;
// CROSS: next[i] = 0.25f * (u_window[threadIdx.y + 1][threadIdx.x] + u_window[threadIdx.y + 1][threadIdx.x + 2] + u_window[threadIdx.y][threadIdx.x + 1] + u_window[threadIdx.y + 2][threadIdx.x + 1]);
__global__ void cross(const float *u, float *next, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
    int i = y * nx + x;
    next[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx]);
  }
}

// An index may run backwards, in steps, and from below zero.
// FLIPPED: __shared__ __align__(16) float in_window[69];
// FLIPPED: __shared__ __align__(16) float w_window[6];
// FLIPPED: s += in_window[k + threadIdx.x] * w_window[4 - k];
__global__ void flipped(const float *in, const float *w, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < 2 || x >= n - 2)
    return;
  float s = 0;
  for (int k = -2; k < 3; ++k)
    s += in[x + k] * w[2 - k];
  out[x] = s;
}

// OPEN: an inner loop around in has no constant trip count
__global__ void open(const float *in, float *out, int n, int taps) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  float s = 0;
  for (int k = 0; k < taps; ++k)
    s += in[x + k];
  out[x] = s;
}

// Nobody knows which elements are read, and whether the others exist.
// EARLY: the loop around in may be left early
__global__ void early(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  float s = 0;
  for (int k = 0; k < 9; ++k) {
    if (k > x)
      break;
    s += in[x + k];
  }
  out[x] = s;
}

// MASKED: the condition around in is not affine
__global__ void masked(const int *use, const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  float s = 0;
  for (int k = 0; k < 9; ++k)
    if (use[k])
      s += in[x + k];
  out[x] = s;
}

// A thread may not decide by its own value what another one needs.
// MINE: which elements of in are read depends on 'v', which differs between threads
__global__ void mine(const int *use, const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  int v = use[x];
  float s = 0;
  for (int k = 0; k < 9; ++k)
    if (v > 3)
      s += in[x + k];
  out[x] = s;
}

// ONCE: the block reads hardly an element of in more than once
__global__ void copy(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < n)
    out[x] = in[x];
}

// INPLACE: x is written
__global__ void inplace(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n)
    x[i] = x[i - 1] + x[i];
}

// LARGE: bytes of shared memory are too many
__global__ void apart(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  float s = 0;
  for (int k = 0; k < 20000; ++k)
    s += in[x + k];
  out[x] = s;
}

int main() {
  blur<<<dim3(1, 1), dim3(32, 8)>>>(nullptr, nullptr, nullptr, 0, 0);
}
