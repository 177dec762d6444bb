// thread-per-iteration: threads that take turns become threads of one iteration each, in a grid that is large enough.
// RUN: %plan --passes='thread-per-iteration[scale]' %s | %check=SCALE
// RUN: %plan --passes='thread-per-iteration[count]' %s | %check=COUNT
// RUN: %plan --passes='thread-per-iteration[text]' %s | %check=TEXT
// RUN: %plan --passes='thread-per-iteration[scaled]' %s | %check=SCALED
// RUN: %plan --passes='thread-per-iteration[rows]' %s | %check=ROWS
// RUN: %plan --passes='thread-per-iteration[product];block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=16}' %s | %check=PRODUCT
// RUN: optiml-opt --emit --passes='thread-per-iteration[scale];block-shape[scale]{x=128};vectorize-access[scale]{width=4};thread-per-iteration[count];grid-stride[count]{x=64,blocks=3};privatize-atomic[count:bins]{bins=64};thread-per-iteration[text];thread-per-iteration[rows];distribute-loop[rows]{threads=64};thread-per-iteration[product];block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 1000 2>&1 | %check=RAN
// RAN-COUNT-5: 1 optimized, 0 original launches
// REQUIRES: optiml-run
// RUN: %refused --passes='thread-per-iteration[sum]' %s 2>&1 | %check=SUM
// RUN: %refused --passes='thread-per-iteration[first]' %s 2>&1 | %check=FIRST
// RUN: %refused --passes='thread-per-iteration[seeded]' %s 2>&1 | %check=SEEDED
// RUN: %refused --passes='thread-per-iteration[plain]' %s 2>&1 | %check=PLAIN
// RUN: optiml-opt --kernels-only --print-plan --passes='thread-per-iteration[smooth]' %s | %check=SMOOTH
#include <cstdio>
#include <cstdlib>

__global__ void scale(const float *in, float *out, float f, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    if (in[i] < 0)
      continue;
    out[i] = in[i] * f;
  }
}
// SCALE: plan scale: {{.*}}<<<(max(1, ceildiv(n, block.x)), grid.y, grid.z), (block.x, block.y, block.z), shared>>>
// SCALE-DAG: when n >= 0
// SCALE-DAG: when n <= 2147482623
// SCALE-DAG: when disjoint(in, 4 * n, out, 4 * n)
// SCALE: int i = blockIdx.x * blockDim.x + threadIdx.x;
// SCALE-NEXT: if (i >= n) {
// SCALE-NEXT: return;
// SCALE-NEXT: }
// SCALE-NEXT: if (!(in[i] < 0)) {
// SCALE-NEXT: out[i] = in[i] * f;

// Updates commute. Numbers of such different types cannot be the same memory.
__global__ void count(const float *values, size_t n, int *bins) {
  size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  while (i < n) {
    atomicAdd(bins + (int)values[i], 1);
    i += stride;
  }
}
// COUNT: (max(1, ceildiv(n, block.x)), grid.y, grid.z)
// COUNT-NOT: disjoint
// COUNT: size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
// COUNT: atomicAdd(&bins[(int)values[i]], 1);

// Bytes may be those of the counters.
__global__ void text(const unsigned char *letters, int n, int *bins) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&bins[letters[i]], 1);
}
// A byte is below 256, so that it can be tested whether they are the same memory.
// TEXT: (max(1, ceildiv(n, block.x)), grid.y, grid.z)
// TEXT: when disjoint(bins, 4 * 256, letters, 1 * n)

// Where nothing bounds the counters, they must lie in an allocation of their own.
__global__ void scaled(const unsigned char *letters, int n, int *bins) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&bins[letters[i] * letters[0]], 1);
}
// SCALED: <<<(max(1, ceildiv(n, block.x)), grid.y, grid.z)
// SCALED: when apart(bins, letters)

// A row of its own for each iteration.
__global__ void rows(const float *m, float *out, int rows, int cols) {
  for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += blockDim.x * gridDim.x) {
    float sum = 0;
    for (int c = 0; c < cols; ++c)
      sum += m[r * cols + c];
    for (int c = 0; c < cols; ++c)
      out[r * cols + c] = m[r * cols + c] / sum;
  }
}
// ROWS: (max(1, ceildiv(rows, block.x)), grid.y, grid.z)

__global__ void product(const float *a, const float *b, float *c, int n) {
  for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < n; i += gridDim.y * blockDim.y)
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x) {
      float s = 0;
      for (int k = 0; k < n; ++k)
        s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}
// PRODUCT: <<<(ceildiv(max(1, ceildiv(n, block.x)) * block.x, 32), ceildiv(max(1, ceildiv(n, block.y)) * block.y, 32), 1), (16, 16, 1), shared>>>
// PRODUCT: a_tile

// What one iteration leaves for the next one.
__global__ void sum(const float *in, float *out, int n) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    s += in[i];
  atomicAdd(out, s * s);
}
// SUM: is not part of a loop whose iterations threads take in turns

__global__ void first(const float *in, float *out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    out[i] = in[i];
    if (in[i] < 0)
      break;
  }
}
// FIRST: leaves the loop

__global__ void seeded(unsigned *out, int n) {
  unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = id; i < n; i += blockDim.x * gridDim.x)
    out[i] = i * 3 + id;
}
// SEEDED: uses the thread's place otherwise than for its turns

__global__ void plain(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 1;
}
// PLAIN: threads do not take turns in a loop

// The next iteration of the same thread may read what this one wrote.
__global__ void smooth(float *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    x[i] = x[(i + 7) % n];
}
// SMOOTH: when n <= grid.x * block.x

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000, size = 24;
  float *in, *out;
  int *bins;
  unsigned char *letters;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMallocManaged(&out, n * sizeof(float));
  cudaMallocManaged(&bins, 256 * sizeof(int));
  cudaMallocManaged(&letters, n);
  for (int i = 0; i < n; ++i)
    in[i] = float(i * 7 % 64), out[i] = 0, letters[i] = (unsigned char)(i * 31);
  for (int i = 0; i < 256; ++i)
    bins[i] = 0;
  scale<<<2, 64>>>(in, out, 2.0f, n);
  count<<<3, 64>>>(in, n, bins);
  text<<<(n + 63) / 64, 64>>>(letters, n, bins);
  rows<<<1, 16>>>(in, out, n / 33, 33);
  product<<<dim3(1, 2), dim3(8, 4)>>>(in, in, out, size);
  cudaDeviceSynchronize();
  float total = 0;
  for (int i = 0; i < n; ++i)
    total += out[i];
  printf("%g %d %d\n", total, bins[0], bins[63]);
}
