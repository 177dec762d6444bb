// grid-stride: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='grid-stride[scale]{x=256,blocks=264}' %s | %check=SCALE
// RUN: %plan --passes='grid-stride[wide]{x=128,blocks=100}' %s | %check=WIDE
// RUN: %plan --passes='grid-stride[inner]{x=128,blocks=100}' %s | %check=INNER
// RUN: %opt --passes='grid-stride[scale]{x=256,blocks=264};unroll[scale/i]{factor=4}' %s | %check=UNROLL
// RUN: optiml-opt --emit --passes='grid-stride[scale];grid-stride[wide];grid-stride[inner]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %plan --passes='grid-stride[chunks]{x=128,blocks=10};privatize-atomic[chunks:total]' %s | %check=CHUNKS
// RUN: %plan --passes='grid-stride[pieces]{x=128,blocks=10}' %s | %check=PIECES
// RUN: %refused --passes='grid-stride[shifted]' %s 2>&1 | %check=SHIFTED
// RUN: optiml-opt --emit --passes='grid-stride[estimate]{x=128,blocks=2};privatize-atomic[estimate:total]' %benchmarks/montecarlo.cu > %t.montecarlo.cu
// RUN: %verify=%t.montecarlo.cu %benchmarks/montecarlo.cu -- 20001 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
// RUN: %refused --passes='grid-stride[unbounded]' %s 2>&1 | %check=UNBOUNDED
// RUN: %refused --passes='grid-stride[lanes]' %s 2>&1 | %check=LANES
// RUN: %opt --passes='grid-stride[ticket]' %s | %check=TICKET
// RUN: %refused --passes='grid-stride[scale]{x=2048}' %s 2>&1 | %check=LARGE
// LARGE: blocks of 2048 threads cannot be launched

__global__ void scale(float *x, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
}
// SCALE: <<<(min(264, ceildiv(grid.x * block.x, 256)), 1, 1), (256, 1, 1), shared>>>
// SCALE: when n <= 2147416063
// SCALE: when grid.y * block.y == 1
// SCALE: when n <= grid.x * block.x
// SCALE: __launch_bounds__(256)
// SCALE-NEXT: for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 67584) {
// SCALE-NEXT: x[i] *= f;
// SCALE-NEXT: }
// SCALE-NEXT: }
// UNROLL: int i = blockIdx.x * 256 + threadIdx.x;
// UNROLL: for (; i < n && n - i >= 202753; i += 270336) {
// UNROLL: x[i + u * 67584] *= f;
// UNROLL: for (; i < n; i += 67584) {

// 64 bits stay 64 bits; an early return becomes the loop's end.
__global__ void wide(const float *x, float *y, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i];
  y[i] = v * v;
}
// WIDE-NOT: when n <= 2147
// WIDE: for (size_t i = (size_t)blockIdx.x * 128 + threadIdx.x; i < n; i += 12800) {
// WIDE-NEXT: float v = x[i];

// A guard that is narrower than the launch's use of the index stays.
__global__ void inner(const float *x, float *y, int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    y[i] = x[i - 1] + x[i + 1];
}
// INNER: for (unsigned int i = blockIdx.x * 128 + threadIdx.x; i < {{.*}}n{{.*}}; i += 12800) {
// INNER-NEXT: if (i > 0 && i < n - 1) {

// Every thread has a piece of its own. The bound is one on its beginning, which must not wrap around.
__global__ void chunks(const float *x, float *total, unsigned n) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned first = thread * 8;
  if (first >= n)
    return;
  float sum = 0;
  for (unsigned k = first; k < first + 8 && k < n; ++k)
    sum += x[k];
  atomicAdd(total, sum);
}
// CHUNKS: when grid.x * block.x <= 268435454  (the scaled index does not overflow)
// CHUNKS: when n <= 2147483639  (rounding up does not overflow)
// CHUNKS: when ceildiv(n, 8) <= grid.x * block.x
// CHUNKS: float total_of_thread = 0.0f;
// CHUNKS-NEXT: for (unsigned int thread = blockIdx.x * 128 + threadIdx.x; thread < (n + 7) / 8; thread += 1280) {
// CHUNKS-NEXT: unsigned int first = thread * 8;
// CHUNKS-NEXT: float sum = 0;
// CHUNKS: total_of_thread += sum;
// CHUNKS: atomicAdd(total, total_of_thread);

// The guard says more: it stays.
__global__ void pieces(float *x, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n > 4 * i && i != m)
    x[4 * i] = 0;
}
// PIECES: for (int i = blockIdx.x * 128 + threadIdx.x; i < (n + 3) / 4; i += 1280) {
// PIECES-NEXT: if (n > 4 * i && i != m) {

// An offset could wrap around on its own.
__global__ void shifted(float *x, unsigned n) {
  unsigned first = 4 * (blockIdx.x * blockDim.x + threadIdx.x) + 5;
  if (first < n)
    x[first] = 0;
}
// SHIFTED: nothing bounds the global index of all that the kernel does

__global__ void unbounded(float *x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = 0;
}
// UNBOUNDED: nothing bounds the global index of all that the kernel does

__global__ void lanes(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = threadIdx.x;
}
// LANES: the kernel uses more than its global index along x

__global__ void ticket(int *next, int *order, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int place = atomicAdd(next, 1);
    order[i] = place;
  }
}
// Any order of the threads is one that the source may have.
// TICKET: for (int i =
// TICKET-NEXT: int place = atomicAdd(next, 1);
