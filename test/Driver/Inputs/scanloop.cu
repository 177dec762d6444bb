// The running sum of n integers in log n launches; checked on the host.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

__global__ void addBefore(const int *from, int *to, int n, int reach) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = i < reach ? from[i] : from[i] + from[i - reach];
}

int main(int argc, char **argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 2500;
  std::vector<int> values(n), sums(n);
  for (int i = 0; i < n; ++i)
    values[i] = i * 37 % 101 - 50;
  int *now, *next;
  cudaMalloc(&now, n * sizeof(int));
  cudaMalloc(&next, n * sizeof(int));
  cudaMemcpy(now, values.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  for (int reach = 1; reach < n; reach <<= 1) {
    addBefore<<<(n + 255) / 256, 256>>>(now, next, n, reach);
    std::swap(now, next);
  }
  cudaMemcpy(sums.data(), now, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(now);
  cudaFree(next);
  int sum = 0, wrong = 0;
  for (int i = 0; i < n; ++i)
    wrong += sums[i] != (sum += values[i]);
  std::puts(wrong ? "FAIL" : "PASS");
  return wrong != 0;
}
