// A Walsh-Hadamard transform of each row and back, a launch for each stage.
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int LENGTH = 256;

__global__ void stage(int *x, int half) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int *own = x + blockIdx.y * LENGTH;
  if (t < LENGTH / 2) {
    int at = t / half * half * 2 + t % half;
    int a = own[at], b = own[at + half];
    own[at] = a + b;
    own[at + half] = a - b;
  }
}

int main(int argc, char **argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 512;
  std::vector<int> host(rows * LENGTH), twice(rows * LENGTH);
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = int(i * 37 % 101) - 50;
  int *x;
  cudaMalloc(&x, host.size() * sizeof(int));
  cudaMemcpy(x, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice);
  for (int turn = 0; turn < 2; ++turn)
    for (int half = 1; half < LENGTH; half *= 2)
      stage<<<dim3(LENGTH / 2 / 64, rows), 64>>>(x, half);
  cudaMemcpy(twice.data(), x, host.size() * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (size_t i = 0; i < host.size(); ++i) // twice is LENGTH times the identity
    if (twice[i] != LENGTH * host[i]) {
      printf("FAIL\n");
      return 1;
    }
  printf("PASS\n");
  return 0;
}
