// Calls and verbatim text that any thread may run, whatever memory they write, stay as they are in the loop.
// RUN: %opt --passes='grid-stride[wheel]{x=256,blocks=4}' %s | %check=WHEEL
// RUN: %opt --passes='grid-stride[walk]{x=128,blocks=2}' %s | %check=WALK
// RUN: %opt --passes='grid-stride[pairs]{x=64,blocks=4}' %s | %check=PAIRS
// RUN: %refused --passes='grid-stride[asks]{x=64,blocks=4}' %s 2>&1 | %check=ASKS
// RUN: %refused --passes='grid-stride[exchange]{x=64,blocks=4}' %s 2>&1 | %check=EXCHANGE
// RUN: %refused --passes='grid-stride[locks]{x=64,blocks=4}' %s 2>&1 | %check=LOCKS
// RUN: %refused --passes='grid-stride[leaves]{x=64,blocks=4}' %s 2>&1 | %check=LEAVES
// RUN: %refused --passes='block-shape[wheel]{x=256,y=1};coarsen[wheel]{x=2,y=1}' %s 2>&1 | %check=COPIES
// RUN: optiml-opt --reread --emit --passes='grid-stride[wheel]{x=256,blocks=4};grid-stride[walk]{x=128,blocks=2};grid-stride[pairs]{x=64,blocks=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// RUN: %verify=%t.cu %s -- 77 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

// A helper with a table of its own, which another helper fills; it writes where its pointer leads.
__device__ void fill(int table[8][3], int r, int g, int b, int at) {
  table[at][0] = r;
  table[at][1] = g;
  table[at][2] = b;
}
__device__ void paint(int angle, unsigned char *pixel) {
  static_assert(sizeof(int) == 4, "angles have 32 bits");
  int table[8][3], at = 0;
  for (int i = 0; i < 4; i++)
    fill(table, 255, 60 * i, 0, at++);
  for (int i = 0; i < 4; i++)
    fill(table, 0, 255 - 60 * i, 30 * i, at++);
  int first = angle / 128 % 8, second = (first + 1) % 8, share = angle % 128;
  for (int c = 0; c < 3; c++)
    pixel[c] = (unsigned char)(((128 - share) * table[first][c] + share * table[second][c]) / 128);
}
// WHEEL: for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1024) {
// WHEEL: paint(i, {{.*}});
__global__ void wheel(unsigned char *pixels, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    paint(i, pixels + 3 * i);
}

// The state of each thread's generator lies in memory.
__device__ float drawn(unsigned *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)(*seed >> 8) / 16777216.0f;
}
// WALK: for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 256) {
__global__ void walk(float *x, unsigned *seeds, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float at = x[i];
  for (int s = 0; s < steps; s++)
    if (drawn(&seeds[i]) * drawn(&seeds[i]) < 0.3f)
      at += drawn(seeds + i) - 0.5f;
  x[i] = at;
}

// What lies in memory as one thing is read and written as another.
// PAIRS: for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 256) {
__global__ void pairs(const float *a, float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float2 *to = reinterpret_cast<float2 *>(b) + i;
    union {
      float2 pair;
      float numbers[2];
    } v;
    v.pair = reinterpret_cast<const float2 *>(a)[i];
    v.numbers[1] += v.numbers[0];
    *to = v.pair;
  }
}

__device__ void place(int *to) { *to = threadIdx.x; }
// ASKS: the kernel uses more than its global index along x
__global__ void asks(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    place(out + i);
}

__device__ void pass(int *to, int x) { *to = __shfl_xor_sync(0xffffffffu, x, 1); }
// EXCHANGE: a call of '__shfl_xor_sync'
__global__ void exchange(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    pass(out + i, i);
}

__device__ void locked(int *lock, int *total, int x) {
  while (atomicCAS(lock, 0, 1))
    ;
  *total += x;
  atomicExch(lock, 0);
}
// LOCKS: a call of 'atomicCAS'
__global__ void locks(int *lock, int *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    locked(lock, total, i);
}

// LEAVES: text that is kept as it is
__global__ void leaves(const int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (int x = a[i]; x < 0)
      goto end;
    out[i] = a[i];
  }
end:;
}

// COPIES: a call of 'paint'

int main(int argc, char **argv) {
  const int n = atoi(argv[1]);
  std::vector<float> h(2 * n, 1.5f);
  std::vector<unsigned> s(n);
  for (int i = 0; i < n; ++i)
    s[i] = 77u * i + 5u, h[2 * i] = float(i % 13);
  unsigned char *pixels;
  float *a, *b;
  unsigned *seeds;
  int *out;
  cudaMalloc(&pixels, 3 * n);
  cudaMalloc(&a, 2 * n * sizeof(float));
  cudaMalloc(&b, 2 * n * sizeof(float));
  cudaMalloc(&seeds, n * sizeof(unsigned));
  cudaMalloc(&out, (n + 2) * sizeof(int));
  cudaMemset(out, 0, (n + 2) * sizeof(int));
  cudaMemcpy(a, h.data(), 2 * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(seeds, s.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
  const int blocks = (n + 127) / 128;
  wheel<<<blocks, 128>>>(pixels, n);
  pairs<<<blocks, 128>>>(a, b, n);
  walk<<<blocks, 128>>>(b, seeds, n, 9);
  asks<<<blocks, 128>>>(out, n);
  exchange<<<1, 32>>>(out, 32 < n ? 32 : n);
  leaves<<<blocks, 128>>>(out, out, n);
  std::vector<unsigned char> p(3 * n);
  std::vector<int> o(n + 2);
  cudaMemcpy(p.data(), pixels, 3 * n, cudaMemcpyDeviceToHost);
  cudaMemcpy(h.data(), b, 2 * n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(o.data(), out, (n + 2) * sizeof(int), cudaMemcpyDeviceToHost);
  double total = 0;
  for (int i = 0; i < n; ++i)
    total += p[3 * i] + 2 * p[3 * i + 1] + 3 * p[3 * i + 2] + h[2 * i] * (1 + i % 3) + h[2 * i + 1] + o[i];
  printf("%.4f\n", total + o[n] + o[n + 1]);
  return 0;
}
