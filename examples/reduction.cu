// reduction: the sum of n floats, accumulated in double precision: every block reduces what its threads collect in
// strides of the whole grid, and one last block adds the blocks' results. The number of threads need be no power of
// two.
//
//   reduction [n] [threads]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <typename Acc> __global__ void sumBlocks(const float *in, unsigned n, Acc *partial) {
  extern __shared__ unsigned char raw[];
  Acc *cache = reinterpret_cast<Acc *>(raw);

  Acc mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    mine += in[i];
  cache[threadIdx.x] = mine;
  __syncthreads();

  // Halve the active part until one is left; an odd part keeps its middle element.
  for (unsigned active = blockDim.x; active > 1;) {
    unsigned half = (active + 1) / 2;
    if (threadIdx.x < active / 2)
      cache[threadIdx.x] += cache[threadIdx.x + half];
    __syncthreads();
    active = half;
  }
  if (threadIdx.x == 0)
    partial[blockIdx.x] = cache[0];
}

template <typename Acc> __global__ void sumPartials(const Acc *partial, unsigned count, Acc *total) {
  Acc sum = 0;
  for (unsigned i = 0; i < count; ++i)
    sum += partial[i];
  *total = sum;
}

namespace {

bool failed(cudaError_t status, const char *step) {
  if (status == cudaSuccess)
    return false;
  std::fprintf(stderr, "reduction: %s: %s\n", step, cudaGetErrorString(status));
  return true;
}

} // namespace

int main(int argc, char **argv) {
  long n = argc > 1 ? std::atol(argv[1]) : 1000000;
  int threads = argc > 2 ? std::atoi(argv[2]) : 256;
  if (n < 1 || n > 2000000000L || threads < 1 || threads > 1024) {
    std::fprintf(stderr, "usage: %s [n] [threads]   with 1 <= n <= 2e9 and 1 <= threads <= 1024\n", argv[0]);
    return 2;
  }
  const unsigned blocks = 40;

  std::vector<float> values(n);
  unsigned state = 12345;
  for (float &value : values) {
    state = state * 1103515245u + 12345u;
    value = static_cast<float>((state >> 16) & 0x7fff) / 32768.0f + 0.125f;
  }

  float *in = nullptr;
  double *partial = nullptr, *total = nullptr;
  if (failed(cudaMalloc(&in, n * sizeof(float)), "allocation") ||
      failed(cudaMalloc(&partial, blocks * sizeof(double)), "allocation") ||
      failed(cudaMalloc(&total, sizeof(double)), "allocation") ||
      failed(cudaMemcpy(in, values.data(), n * sizeof(float), cudaMemcpyHostToDevice), "copy to the device"))
    return 2;

  sumBlocks<double><<<blocks, threads, threads * sizeof(double)>>>(in, static_cast<unsigned>(n), partial);
  sumPartials<double><<<1, 1>>>(partial, blocks, total);
  double got = 0;
  if (failed(cudaGetLastError(), "launch") ||
      failed(cudaMemcpy(&got, total, sizeof(double), cudaMemcpyDeviceToHost), "copy from the device"))
    return 2;

  double want = 0;
  for (float value : values)
    want += value;
  bool good = std::fabs(got - want) <= 1e-12 * want; // false for NaN
  cudaFree(in);
  cudaFree(partial);
  cudaFree(total);
  std::printf("%s reduction n=%ld threads=%d sum=%.9g\n", good ? "PASS" : "FAIL", n, threads, got);
  return good ? 0 : 1;
}
