// Two kernels of a comparison: the second finds its results in place already.
#include <cstdio>
#include <vector>

__global__ void counted(const unsigned *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned v = in[i];
    int bits = 0;
    for (; v; v &= v - 1)
      ++bits;
    out[i] = bits;
  }
}

__global__ void asked(const unsigned *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = __popc(in[i]);
}

int main() {
  const int n = 1 << 24;
  std::vector<unsigned> host(n);
  for (int i = 0; i < n; ++i)
    host[i] = unsigned(i) * 2654435761u;
  unsigned *in;
  int *out;
  cudaMalloc(&in, n * sizeof(unsigned));
  cudaMalloc(&out, n * sizeof(int));
  cudaMemcpy(in, host.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
  counted<<<n / 256, 256>>>(in, out, n);
  asked<<<n / 256, 256>>>(in, out, n);
  std::vector<int> result(n);
  cudaMemcpy(result.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost);
  long long total = 0;
  for (int bits : result)
    total += bits;
  printf("total %lld\n", total);
  return 0;
}
