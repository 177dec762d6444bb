// Sums of rows, by one thread each, so many times.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void sums(const float *in, float *out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float s = 0;
  for (int i = 0; i < n; ++i)
    s += in[row * n + i];
  out[row] = s;
}

int main(int argc, char **argv) {
  const int times = argc > 1 ? atoi(argv[1]) : 1;
  const int rows = 4096, n = 4096;
  std::vector<float> host(size_t(rows) * n);
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = float(i % 7);
  float *in, *out;
  cudaMalloc(&in, host.size() * sizeof(float));
  cudaMalloc(&out, rows * sizeof(float));
  cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  for (int i = 0; i < times; ++i) {
    sums<<<rows / 128, 128>>>(in, out, rows, n);
    cudaDeviceSynchronize();
  }
  std::vector<float> result(rows);
  cudaMemcpy(result.data(), out, rows * sizeof(float), cudaMemcpyDeviceToHost);
  double total = 0;
  for (float s : result)
    total += s;
  printf("total %.0f\n", total);
  return 0;
}
