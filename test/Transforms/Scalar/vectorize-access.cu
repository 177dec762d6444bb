// One thread for several neighbouring elements, in accesses of 8 or 16 bytes.
//
// RUN: %plan --passes='block-shape[copyMatrix]{x=32,y=8};vectorize-access[copyMatrix]{width=4}' %s | %check=ROWS
// RUN: %plan --passes='block-shape[scale]{x=128,y=1};vectorize-access[scale]{width=2}' %s | %check=TAIL
// RUN: %opt --passes='block-shape[mixed]{x=128,y=1};vectorize-access[mixed]{width=4}' %s | %check=MIXED
// RUN: %plan --passes='block-shape[later]{x=128,y=1};vectorize-access[later]{width=4}' %s | %check=LATER
// RUN: %opt --passes='block-shape[loops]{x=128,y=1};vectorize-access[loops]{width=4};qualify-pointers[loops]' %s | %check=LOOPS
// RUN: optiml-opt --emit %s --passes='block-shape[copyMatrix]{x=32,y=8};vectorize-access[copyMatrix]{width=4};block-shape[scale]{x=128,y=1};vectorize-access[scale]{width=2};block-shape[mixed]{x=128,y=1};vectorize-access[mixed]{width=4};block-shape[later]{x=128,y=1};vectorize-access[later]{width=4};block-shape[loops]{x=128,y=1};vectorize-access[loops]{width=4}' > %t.cu
// RUN: %nvcc -arch=sm_90 -std=c++17 -ptx %t.cu -o %t.ptx
// RUN: FileCheck --check-prefix=PTX %s < %t.ptx
// RUN: %verify=%t.cu %s -- 29 52
//
// RUN: %refused --passes='vectorize-access[scale]{width=4}' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[scale]{x=128,y=1};vectorize-access[scale]{width=3}' %s 2>&1 | %check=WIDTH
// RUN: %refused --passes='block-shape[apart]{x=128,y=1};vectorize-access[apart]{width=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[shifted]{x=128,y=1};vectorize-access[shifted]{width=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[perhaps]{x=128,y=1};vectorize-access[perhaps]{width=4}' %s 2>&1 | %check=NONE
// RUN: %opt --passes='block-shape[counts]{x=128,y=1};vectorize-access[counts]{width=4}' %s | %check=ATOMICS
// RUN: %refused --passes='block-shape[uneven]{x=128,y=1};vectorize-access[uneven]{width=4}' %s 2>&1 | %check=BOUND
// RUN: %plan --passes='block-shape[gathers]{x=128,y=1};vectorize-access[gathers]{width=4}' %s | %check=GATHERS
// SHAPE: the block shape is not fixed yet
// WIDTH: the width must be 2, 4, 8 or 16
// NONE: no array is accessed at neighbouring elements by neighbouring threads
// BOUND: the kernel's work does not stand under one bound of its index
// GATHERS: when apart(table, y)
#include <cstdio>
#include <cstdlib>

// Rows must begin on a vector's boundary, and so hold whole vectors: there is no tail.
// ROWS: (ceildiv(grid.x * block.x, 128), ceildiv(grid.y * block.y, 8), 1), (32, 8, 1)
// ROWS: when cols % 4 == 0
// ROWS: when aligned(in, 16)
// ROWS: when aligned(out, 16)
// ROWS: int col = blockIdx.x * 128 + threadIdx.x * 4;
// ROWS: if (row < rows && col < cols) {
// ROWS-NEXT: size_t i = (size_t)row * cols + col;
// ROWS-NEXT: const float4 in_vector = *(const float4 *)&in[i];
// ROWS-NEXT: const float in_lanes[4] = {in_vector.x, in_vector.y, in_vector.z, in_vector.w};
// ROWS-NEXT: float out_lanes[4];
// ROWS-NEXT: #pragma unroll
// ROWS-NEXT: for (int lane = 0; lane < 4; ++lane) {
// ROWS-NEXT: out_lanes[lane] = in_lanes[lane];
// ROWS-NEXT: }
// ROWS-NEXT: *(float4 *)&out[i] = make_float4(out_lanes[0], out_lanes[1], out_lanes[2], out_lanes[3]);
// ROWS-NEXT: }
// PTX: copyMatrix_optiml
// PTX: ld.global{{.*}}.v4.f32
// PTX: st.global.v4.f32
__global__ void copyMatrix(const float *in, float *out, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) {
    size_t i = (size_t)row * cols + col;
    out[i] = in[i];
  }
}

// An array that is read and written stays in the lanes between; the last elements go one by one.
// TAIL: when aligned(x, 16)
// TAIL: if (i + 1 < n) {
// TAIL-NEXT: const double2 x_vector = *(const double2 *)&x[i];
// TAIL-NEXT: double x_lanes[2] = {x_vector.x, x_vector.y};
// TAIL: x_lanes[lane] *= f;
// TAIL: *(double2 *)&x[i] = make_double2(x_lanes[0], x_lanes[1]);
// TAIL-NEXT: } else {
// TAIL-NEXT: #pragma unroll 1
// TAIL-NEXT: for (int lane = 0; lane < 2; ++lane) {
// TAIL-NEXT: if (i + lane < n) {
// TAIL-NEXT: x[i + lane] *= f;
// PTX: scale_optiml
// PTX: ld.global.v2.f64
// PTX: st.global.v2.f64
__global__ void scale(double *x, double f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
}

// What is not next to each other, or not accessed for sure, is accessed lane by lane.
// MIXED: const int4 key_vector = *(const int4 *)&key[i];
// MIXED: if (key_lanes[lane] > 0) {
// MIXED: sometimes[i + lane] = in[2 * (i + lane)] + in[2 * (i + lane) + 1];
// MIXED: bytes_lanes[lane] = key_lanes[lane] & 7;
// MIXED: *(uchar4 *)&bytes[i] = make_uchar4(bytes_lanes[0], bytes_lanes[1], bytes_lanes[2], bytes_lanes[3]);
__global__ void mixed(const int *key, const float *in, float *sometimes, unsigned char *bytes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  if (key[i] > 0)
    sometimes[i] = in[2 * i] + in[2 * i + 1];
  bytes[i] = key[i] & 7;
}

// A load after a store moves before it: they must not overlap.
// LATER: when disjoint(a, 4 * n, c, 4 * n)
// LATER-NOT: disjoint(b
__global__ void later(const float *__restrict__ b, const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = b[i];
    c[i] = x;
    c[i] += a[i];
  }
}

// LOOPS: for (int k = 0; k < m; ++k) {
// LOOPS-NEXT: s += x_lanes[lane] * w[k];
__global__ void loops(const float *x, const float *w, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = x[i];
    for (int k = 0; k < m; ++k)
      s += x[i] * w[k];
    y[i] = s;
  }
}

__global__ void apart(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[3 * i] = x[2 * i];
}
__global__ void shifted(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i + 1] = x[i + 2];
}
__global__ void perhaps(const float *x, float *y, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    if (f > 0)
      y[i] = x[i];
}
// ATOMICS: const int x_lanes[4] = {x_vector.x, x_vector.y, x_vector.z, x_vector.w};
// ATOMICS: atomicAdd(&y[x_lanes[lane]], 1);
__global__ void counts(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&y[x[i]], 1);
}
__global__ void uneven(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i / 2 < n)
    y[i] = x[i];
}
__global__ void gathers(const int *index, const float *table, float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = 1.0f;
    z[i] = table[index[i]];
  }
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 29, cols = argc > 2 ? atoi(argv[2]) : 52, n = rows * cols - 3;
  char *in, *out;
  cudaMalloc(&in, 16 * rows * cols);
  cudaMalloc(&out, 16 * rows * cols);
  float *host = (float *)malloc(16 * rows * cols);
  for (int i = 0; i < 4 * rows * cols; ++i)
    host[i] = float(i % 37) - 9.0f;
  cudaMemcpy(in, host, 16 * rows * cols, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, 16 * rows * cols);
  auto show = [&] {
    cudaMemcpy(host, out, 16 * rows * cols, cudaMemcpyDeviceToHost);
    printf("%g %g\n", host[0], host[n - 1]);
  };
  dim3 block(32, 8), grid((cols + 31) / 32, (rows + 7) / 8);
  int blocks = (n + 127) / 128;
  float *x = (float *)in, *y = (float *)out;
  copyMatrix<<<grid, block>>>(x, y, rows, cols), show();
  scale<<<blocks, 128>>>((double *)out, 2.0, n), show();
  mixed<<<blocks, 128>>>((const int *)in, x, y, (unsigned char *)(y + n + 3), n), show();
  later<<<blocks, 128>>>(x, x + rows * cols, y, n), show();
  later<<<blocks, 128>>>(x, y, y, n), show(); // overlaps: the original
  loops<<<blocks, 128>>>(x, x + 5, y, n, 3), show();
  return 0;
}
