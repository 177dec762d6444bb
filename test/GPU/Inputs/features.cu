// Launches of every kind that a capture must see: templates, struct arguments, pointers inside structs and buffers,
// __device__ and __constant__ variables, dynamic shared memory, streams, asynchronous and managed memory, launches
// through cudaLaunchKernelEx.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t e = (call);                                                                                            \
    if (e != cudaSuccess) {                                                                                            \
      printf("%s: %s\n", #call, cudaGetErrorString(e));                                                                \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__constant__ float weights[8];
__device__ int launches;
static __device__ float bias = 0.5f;

struct View {
  const float *data;
  float *out;
  int n;
};

template <typename T> __global__ void scale(T *x, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= factor;
}

__global__ void filter(View v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= v.n)
    return;
  float sum = bias;
  for (int k = 0; k < 8; ++k)
    if (i + k < v.n)
      sum += weights[k] * v.data[i + k];
  v.out[i] = sum;
  if (i == 0)
    atomicAdd(&launches, 1);
}

__global__ void rows(float *const *table, int count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int r = 1; r < count; ++r)
      table[0][i] += table[r][i];
}

__global__ void reverse(const int *in, int *out, int n) {
  extern __shared__ int tile[];
  int base = blockIdx.x * blockDim.x;
  tile[threadIdx.x] = base + threadIdx.x < n ? in[base + threadIdx.x] : 0;
  __syncthreads();
  out[base + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

int main() {
  const int n = 1 << 16;
  std::vector<float> h(n), w(8);
  std::vector<int> ints(n);
  for (int i = 0; i < n; ++i) {
    h[i] = float(i % 1013) * 0.01f - 3;
    ints[i] = i * 7 % 4001;
  }
  for (int i = 0; i < 8; ++i)
    w[i] = 0.1f * float(i + 1);
  float *a, *b, *managed, *async, **table;
  int *in, *out;
  double *d;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&a, n * sizeof(float)));
  CHECK(cudaMalloc(&b, n * sizeof(float)));
  CHECK(cudaMalloc(&d, n * sizeof(double)));
  CHECK(cudaMalloc(&in, n * sizeof(int)));
  CHECK(cudaMalloc(&out, n * sizeof(int)));
  CHECK(cudaMalloc(&table, 3 * sizeof(float *)));
  CHECK(cudaMallocManaged(&managed, n * sizeof(float)));
  CHECK(cudaMallocAsync(&async, n * sizeof(float), stream));
  CHECK(cudaMemcpyToSymbol(weights, w.data(), sizeof weights));
  CHECK(cudaMemcpy(a, h.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(in, ints.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d, 0, n * sizeof(double)));
  CHECK(cudaMemcpyAsync(async, h.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < n; ++i)
    managed[i] = h[i];
  scale<<<n / 256, 256, 0, stream>>>(async, 2.0f, n);
  CHECK(cudaStreamSynchronize(stream));
  scale<<<n / 256, 256>>>(managed, 3.0f, n);
  scale<<<n / 128, 128>>>(d, 1.5, n);
  filter<<<(n + 255) / 256, 256>>>(View{a, b, n});
  reverse<<<n / 64, 64, 64 * sizeof(int)>>>(in, out, n);
  float *host[3] = {b, async, managed};
  CHECK(cudaMemcpy(table, host, sizeof host, cudaMemcpyHostToDevice));
  cudaLaunchConfig_t config = {};
  config.gridDim = n / 256;
  config.blockDim = 256;
  CHECK(cudaLaunchKernelEx(&config, rows, (float *const *)table, 3, n));
  for (int i = 0; i < 100; ++i) // a scalar that changes every time
    scale<<<n / 256, 256>>>(b, 1.0f + 0.0001f * float(i), n);
  CHECK(cudaDeviceSynchronize());
  int count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, launches, sizeof count));
  CHECK(cudaMemcpy(h.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(ints.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += h[i] + ints[i];
  printf("launches %d sum %.6g\n", count, sum);
  return 0;
}
