// A program runs in a folder of its own, and finds there what its arguments name.
// RUN: rm -rf %t.d && mkdir -p "%t.d/my data" && echo 21 > "%t.d/my data/number.txt" && echo 4 > %t.d/out.txt
// RUN: cd %t.d && optiml-run %s -- "my data/number.txt" out.txt | FileCheck %s
// CHECK: 42
// RUN: grep 4 %t.d/out.txt
#include <cstdio>

__global__ void twice(int *x) { *x *= 2; }

int main(int argc, char **argv) {
  FILE *in = fopen(argv[1], "r"), *out = fopen(argv[2], "w");
  int value = 0, *x;
  if (!in || !out || fscanf(in, "%d", &value) != 1)
    return 1;
  cudaMalloc(&x, sizeof(int));
  cudaMemcpy(x, &value, sizeof(int), cudaMemcpyHostToDevice);
  twice<<<1, 1>>>(x);
  cudaMemcpy(&value, x, sizeof(int), cudaMemcpyDeviceToHost);
  fprintf(out, "%d\n", value);
  printf("%d\n", value);
}
