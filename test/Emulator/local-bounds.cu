// Accesses beside a thread's own arrays, of which optimization would leave nothing.
// RUN: not optiml-run %s 2>&1 -- 5 | FileCheck %s
// RUN: not optiml-run --check=verify %s 2>&1 -- 5 | FileCheck %s
// RUN: not optiml-run -DPLACE=20 %s 2>&1 -- 4 | FileCheck %s --check-prefix=KNOWN
// RUN: not optiml-run -DPLACE=-1 %s 2>&1 -- 4 | FileCheck %s --check-prefix=BEFORE
// RUN: not optiml-run -DPLACE=20 --check=verify %s 2>&1 -- 4 | FileCheck %s --check-prefix=KNOWN
// RUN: optiml-run %s -- 4 | FileCheck %s --check-prefix=GOOD
// CHECK: error: out-of-bounds store of 4 bytes
// CHECK: source: {{.*}}local-bounds.cu:[[# @LINE + 20]]
// CHECK: thread: (0, 0, 0) of block (0, 0, 0)
// CHECK: it is at offset 80 of a variable of the thread's own, which has 80 bytes
// KNOWN: error: out-of-bounds store of 4 bytes
// KNOWN: it is at offset 80 of a variable of the thread's own, which has 80 bytes
// BEFORE: error: out-of-bounds store of 4 bytes
// GOOD: 70

#include <cstdio>
#include <cstdlib>

#ifndef PLACE
#define PLACE 19
#endif

__global__ void sums(const float *in, float *out, int rows) {
  float tile[5][4];
  float sum = 0;
  for (int i = 0; i <= rows; ++i)
    for (int j = 0; j < 4; ++j)
      tile[i][j] = in[threadIdx.x + i];
  if (rows < 0 || in[0] == 0)
    (&tile[0][0])[PLACE] = tile[4][3];
  for (int i = 0; i < 5; ++i)
    sum += tile[i][i % 4] + 0 * i;
  out[threadIdx.x] = sum;
}

int main(int, char **argv) {
  float host[64], *in, *out;
  for (int i = 0; i < 64; ++i)
    host[i] = i < 8 ? i : 0;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  sums<<<1, 32>>>(in, out, std::atoi(argv[1]));
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  float total = 0;
  for (int i = 0; i < 4; ++i)
    total += host[i];
  std::printf("%g\n", total);
}
