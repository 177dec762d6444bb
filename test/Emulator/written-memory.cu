// A load needs no record where its launch writes nothing. Every way in which a kernel may come to what it writes
// counts: each of these has one race, and the last has none.
// RUN: optiml-run --check=verify --no-run -o %t %s
// RUN: not %t parameter 2>&1 | FileCheck %s
// RUN: not %t offset 2>&1 | FileCheck %s
// RUN: not %t member 2>&1 | FileCheck %s
// RUN: not %t changedMember 2>&1 | FileCheck %s
// RUN: not %t table 2>&1 | FileCheck %s
// RUN: not %t chosen 2>&1 | FileCheck %s
// RUN: not %t localTable 2>&1 | FileCheck %s
// RUN: not %t variable 2>&1 | FileCheck %s
// RUN: not %t memberOfMany 2>&1 | FileCheck %s
// RUN: not %t copied 2>&1 | FileCheck %s
// RUN: not %t counted 2>&1 | FileCheck %s
// RUN: not %t exchanged 2>&1 | FileCheck %s
// RUN: not %t recursive 2>&1 | FileCheck %s
// RUN: not %t integer 2>&1 | FileCheck %s
// RUN: %t apart
// CHECK: data race in global memory: {{load unordered with a|store unordered with a|atomic operation unordered with a}}
// REQUIRES: optiml-run
#include <cstdint>
#include <cstdio>
#include <cstring>

struct Buffers {
  const float *in;
  float *out;
  float *many[3];
};

__device__ float shared[64];
__device__ float *indirect;

// `in` and `out` are one buffer: thread i reads what thread i + 1 writes.
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x
__global__ void parameter(const float *in, float *out) {
  INDEX;
  out[i] = in[i + 1] + 1;
}
__global__ void offset(const float *in, float *out) {
  INDEX;
  *(out + i - 64) = in[i + 1] + 1;
}
__global__ void member(Buffers b) {
  INDEX;
  b.out[i] = b.in[i + 1] + 1;
}
__global__ void changedMember(Buffers b, float *in) {
  INDEX;
  if (i % 2)
    b.out = b.many[1];
  b.out[i] = in[i + 1] + 1;
}
__global__ void table(const float *in, float **rows) {
  INDEX;
  rows[i / 32][i % 32] = in[i + 1] + 1;
}
__global__ void chosen(const float *in, float *out, float *other, int n) {
  INDEX;
  float *to = i < n ? out : other;
  to[i] = in[i + 1] + 1;
}
__global__ void localTable(const float *in, float *out, float *other, int n) {
  INDEX;
  float *to[4] = {other, other, out, other};
  for (int k = 0; k < n % 3; ++k)
    to[k] = to[k + 1];
  to[n & 3][i] = in[i + 1] + 1;
}
__global__ void variable(const float *in) {
  INDEX;
  shared[i] = in[i + 1] + 1;
}
__global__ void memberOfMany(Buffers b, int n) {
  INDEX;
  b.many[n][i] = b.in[i + 1] + 1;
}
__global__ void copied(const float *in, float *out) {
  INDEX;
  float next = in[4 * i + 4];
  memcpy(out + 4 * i, in + 128, 16);
  if (next > 5)
    out[4 * i] = next;
}
__global__ void counted(const float *in, float *out) {
  INDEX;
  float next = in[i + 1];
  atomicAdd(out + i, next);
}
__global__ void exchanged(const unsigned *in, unsigned *out) {
  INDEX;
  unsigned next = in[i + 1];
  atomicCAS(out + i, 0u, next + 1);
}
__device__ __noinline__ void fill(float *out, float value, int n) {
  if (n > 0)
    fill(out, value + 1, n - 1);
  else
    *out = value;
}
__global__ void recursive(const float *in, float *out) {
  INDEX;
  fill(out + i, in[i + 1], i % 3);
}
__global__ void integer(const float *in, uint64_t out) {
  INDEX;
  reinterpret_cast<float *>(out)[i] = in[i + 1] + 1;
}
__global__ void apart(const float *in, float *out) {
  INDEX;
  out[i] = in[i + 1] + in[i] + __ldg(in + i);
}

int main(int argc, char **argv) {
  float *a, *b, **rows, *variables;
  cudaMalloc(&a, 4096), cudaMalloc(&b, 4096), cudaMalloc(&rows, 64);
  cudaMemset(a, 0, 4096);
  cudaGetSymbolAddress((void **)&variables, shared);
  float *addresses[2] = {a, a + 32};
  cudaMemcpy(rows, addresses, sizeof addresses, cudaMemcpyHostToDevice);
  Buffers members = {a, a, {b, a, b}};
  auto is = [&](const char *name) { return !strcmp(argv[1], name); };
  if (is("parameter"))
    parameter<<<1, 64>>>(a, a);
  if (is("offset"))
    offset<<<1, 64>>>(a, a + 64);
  if (is("member"))
    member<<<1, 64>>>(members);
  if (is("changedMember"))
    changedMember<<<1, 64>>>({b, b, {b, a, b}}, a);
  if (is("table"))
    table<<<1, 64>>>(a, rows);
  if (is("chosen"))
    chosen<<<1, 64>>>(a, b, a, 20);
  if (is("localTable"))
    localTable<<<1, 64>>>(a, a, b, 2);
  if (is("variable"))
    variable<<<1, 63>>>(variables);
  if (is("memberOfMany"))
    memberOfMany<<<1, 64>>>(members, 1);
  if (is("copied"))
    copied<<<1, 32>>>(a, a);
  if (is("counted"))
    counted<<<1, 64>>>(a, a);
  if (is("exchanged"))
    exchanged<<<1, 64>>>((unsigned *)a, (unsigned *)a);
  if (is("recursive"))
    recursive<<<1, 64>>>(a, a);
  if (is("integer"))
    integer<<<1, 64>>>(a, (uint64_t)a);
  if (is("apart"))
    apart<<<1, 64>>>(a, b);
  return cudaDeviceSynchronize() != cudaSuccess;
}
