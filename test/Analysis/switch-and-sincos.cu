// A switch whose cases end by themselves is read as an if; sincosf and its like as two assignments.
// RUN: %opt --passes='block-shape[filter]{x=128}' %s | FileCheck %s
// RUN: %opt --passes='block-shape[operate]{x=128}' %s | %check=HELPER
// RUN: %opt --passes='block-shape[rotate]{x=128}' %s | %check=ROTATE
// RUN: %refused --passes='block-shape[falls]{x=128}' %s 2>&1 | %check=KEPT
// RUN: %refused --passes='block-shape[leaves]{x=128}' %s 2>&1 | %check=KEPT
// RUN: %refused --passes='block-shape[moves]{x=128}' %s 2>&1 | %check=KEPT
// RUN: optiml-opt --emit --passes='block-shape[filter]{x=96};block-shape[operate]{x=96};block-shape[rotate]{x=96};coarsen[rotate]{x=2}' %s >%t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 37 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 200 | %check=SAME
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 37 2>&1 | %check=RAN
// RAN-DAG: filter: 1 optimized, 0 original launches
// RAN-DAG: operate: 3 optimized, 0 original launches
// RAN-DAG: rotate: 1 optimized, 0 original launches
// KEPT: the kernel's threads work together, or wait for each other: 
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// CHECK: unsigned char code = text[i * 4 + k];
// CHECK-NEXT: if (code == 65 || code == 97) {
// CHECK-NEXT: total += 1;
// CHECK: if (code == 78) {
// CHECK-NEXT: total += 100;
// CHECK: total *= 2;
// The labels of a choice that takes a load are compared with a copy of it.
// CHECK: int chosen = text[i];
// CHECK-NEXT: if (chosen == 90) {
// CHECK-NEXT: total = -total;
__global__ void filter(const unsigned char *text, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int total = 0;
  for (int k = 0; k < 4; k++) {
    unsigned char code = text[i * 4 + k];
    switch (code) {
    case 'A':
    case 'a':
      total += 1;
      break;
    default: {
      for (int j = 0; j < 9; j++) {
        if (total > 5)
          break;
        total += j;
      }
      break;
    }
    case 'N':
      total += 100;
    }
    total *= 2;
  }
  switch (text[i]) {
  case 'Z':
    total = -total;
  }
  out[i] = total;
}

enum class Op : unsigned char { Add, Sub, Mul };
__device__ float apply(Op op, float a, const float *b) {
  switch (op) {
  case Op::Add:
    return a + b[0];
  case Op::Sub: {
    float d = a - b[0];
    return d;
  }
  default:
    break;
  }
  return a * b[0];
}
// HELPER: if ((int)op == 0) {
// HELPER: result = a_1 + b[i];
// HELPER: if ((int)op == 1) {
// HELPER: } else {
// HELPER-NEXT: result = a_1 * b[i];
__global__ void operate(const float *a, const float *b, float *c, int n, Op op) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = apply(op, a[i], b + i);
}

// ROTATE: float s = sinf(t);
// ROTATE-NEXT: float c = cosf(t);
// What the first store changes, the second value does not see.
// ROTATE: double angle = d;
// ROTATE-NEXT: d = sin(angle);
// ROTATE-NEXT: double e = cos(angle);
// ROTATE: z[i].y = sinpif(t);
// ROTATE-NEXT: z[i].x = cospif(t);
__global__ void rotate(float *out, float2 *z, int n, float w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float t = w * i, s, c;
  sincosf(t, &s, &c);
  double d = s, e;
  sincos(d, &d, &e);
  sincospif(t, &z[i].y, &z[i].x);
  out[i] = s * c + d * e;
}

__global__ void falls(int *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  switch (m) {
  case 0:
    out[i] = 1;
  case 1:
    out[i] += 2;
    break;
  }
}

__global__ void leaves(int *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  switch (m) {
  case 0:
    if (n > 5)
      break;
    out[i] = 1;
    break;
  case 1:
    out[i] = 2;
  }
}

// Where the cosine goes is for the sine to decide.
__global__ void moves(float *out, const int *place, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    sincosf(2.0f * i, &out[i], &out[place[i]]);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100;
  unsigned char *text;
  int *totals;
  float *a, *b, *c;
  float2 *z;
  cudaMallocManaged(&text, 4 * n);
  cudaMallocManaged(&totals, n * sizeof(int));
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  cudaMallocManaged(&c, n * sizeof(float));
  cudaMallocManaged(&z, n * sizeof(float2));
  for (int i = 0; i < 4 * n; i++)
    text[i] = "AaNZqAA"[i % 7];
  for (int i = 0; i < n; i++)
    a[i] = i * 0.5f, b[i] = 3.0f - i;
  int blocks = (n + 31) / 32;
  double sum = 0;
  filter<<<blocks, 32>>>(text, totals, n);
  for (Op op : {Op::Add, Op::Sub, Op::Mul}) {
    operate<<<blocks, 32>>>(a, b, c, n, op);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++)
      sum += c[i];
  }
  rotate<<<blocks, 32>>>(c, z, n, 0.1f);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; i++)
    sum += totals[i] + c[i] + z[i].x - z[i].y;
  printf("%g\n", sum);
}
