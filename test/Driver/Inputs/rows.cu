// Sums columns of a matrix into memory: a program that the search can make faster in a few seconds.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void rows(int n, int m, const float *a, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < m; ++k)
      out[i] += a[k * n + i];
}
int main(int argc, char **argv) {
  int n = argc > 2 ? atoi(argv[1]) : 2000, m = argc > 2 ? atoi(argv[2]) : 40;
  std::vector<float> a(n * m), out(n);
  for (int i = 0; i < n * m; ++i)
    a[i] = float(i % 17);
  float *da, *dout;
  cudaMalloc((void **)&da, a.size() * 4);
  cudaMalloc((void **)&dout, out.size() * 4);
  cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice);
  cudaMemset(dout, 0, out.size() * 4);
  rows<<<(n + 127) / 128, 128>>>(n, m, da, dout);
  cudaMemcpy(out.data(), dout, out.size() * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) {
    float want = 0;
    for (int k = 0; k < m; ++k)
      want += a[k * n + i];
    if (out[i] != want) {
      fprintf(stderr, "%s:%d: row %d is %g, want %g\n", __FILE__, __LINE__, i, out[i], want);
      return 1;
    }
  }
  puts("good");
}
