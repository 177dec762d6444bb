// A counter that a declaration or a condition moves on belongs to each copy where the statement does.
// RUN: optiml-opt --emit --passes='block-shape[ranks]{x=64,y=1};coarsen[ranks]{style=strided,x=2,y=1};block-shape[every_third]{x=64,y=1};coarsen[every_third]{style=blocked,x=2,y=1}' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <vector>
// CHECK: int k = count[ix]++;
__global__ void ranks(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int sorted[9];
  int count = 0;
  for (int d = 0; d < 9; ++d) {
    int v = in[i + d];
    int k = count++;
    while (k > 0 && sorted[k - 1] > v) {
      sorted[k] = sorted[k - 1];
      --k;
    }
    sorted[k] = v;
  }
  out[i] = sorted[count / 2];
}
// CHECK: if (count[ix]++ % 3 == 0)
// CHECK: if (place[ix]++ % 2 == 0)
__global__ void every_third(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int count = 0, sum = 0;
  for (int d = 0; d < 9; ++d)
    if (in[i + d] > 50)
      if (count++ % 3 == 0)
        sum += in[i + d];
  int place = 0;
  for (int d = 0; d < 9; ++d)
    if (place++ % 2 == 0)
      sum += in[i + d] * place;
  out[i] = sum;
}
int main(int argc, char **argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::vector<int> host(n + 8);
  for (int i = 0; i < n + 8; ++i)
    host[i] = i * 37 % 101;
  int *in, *out;
  cudaMalloc(&in, (n + 8) * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMemcpy(in, host.data(), (n + 8) * sizeof(int), cudaMemcpyHostToDevice);
  for (int kernel = 0; kernel < 2; ++kernel) {
    if (kernel)
      every_third<<<(n + 63) / 64, 64>>>(in, out, n);
    else
      ranks<<<(n + 63) / 64, 64>>>(in, out, n);
    cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost);
    long sum = 0;
    for (int i = 0; i < n; ++i)
      sum += long(host[i]) * (i % 7 + 1);
    std::printf("%ld\n", sum);
  }
}
