// Loops of launches that look like a thread's affair and are not: the launches have different threads, planes
// or buffers overlap, there are more turns than a list holds, another stream. All of this is seen when they are due.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s < %t.paths
#include <cstdio>
#include <vector>

static float *filled(size_t n) {
  std::vector<float> host(n);
  for (size_t i = 0; i < n; i++)
    host[i] = float(i % 29);
  float *memory;
  cudaMalloc(&memory, n * sizeof(float));
  cudaMemcpy(memory, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  return memory;
}
static void show(const char *what, const float *device, size_t n) {
  std::vector<float> host(n);
  cudaMemcpy(host.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += double(host[i]) * (i % 13 + 1);
  printf("%s %.9g\n", what, sum);
}

// CHECK-DAG: OptiML: wider_fused{{[0-9]*}}: 0 optimized, 1 original launches
__global__ void wider(float *x, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i] * 0.5f + by;
}
// CHECK-DAG: OptiML: shifted_fused{{[0-9]*}}: 0 optimized, 1 original launches
__global__ void shifted(float *out, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = out[i] * 0.5f + by;
}
// CHECK-DAG: OptiML: alias_fused{{[0-9]*}}: 0 optimized, 1 original launches
__global__ void alias(float *out, const float *in, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i + 1 < n ? i + 1 : 0] * 0.5f + by;
}
// CHECK-DAG: OptiML: many_fused{{[0-9]*}}: 0 optimized, 1 original launches
__global__ void many(float *x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] * 0.9f + by;
}
// CHECK-DAG: OptiML: uneven_fused{{[0-9]*}}: 0 optimized, 1 original launches
__global__ void uneven(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    sum[i] += in[i];
}
// CHECK-DAG: OptiML: deep_fused{{[0-9]*}}: 0 optimized, 1 original launches
__global__ void deep(float *x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&x[i], by);
}

int main() {
  float steps[300];
  for (int k = 0; k < 300; k++)
    steps[k] = k * 0.25f;
  float *x = filled(512);
  for (int k = 1; k < 5; k++)
    wider<<<k, 64>>>(x, steps[k]);
  show("wider", x, 512);
  for (int k = 0; k < 5; k++) // planes that overlap
    shifted<<<2, 64>>>(x + k * 50, steps[k], 100);
  show("shifted", x, 512);
  std::vector<float *> in = {x, x + 3, x + 200};
  for (int k = 0; k < 4; k++) // a turn reads what the one before has written
    alias<<<2, 64>>>(x + 100 + k * 100, x + k * 100, steps[k], 100);
  show("alias", x, 512);
  for (int k = 0; k < 300; k++)
    many<<<2, 64>>>(x, steps[k], 100);
  show("many", x, 512);
  float *sum = filled(100);
  for (size_t k = 0; k < in.size(); k++)
    uneven<<<2, 64>>>(sum, in[k], 100);
  show("uneven", sum, 100);
  for (int k = 0; k < 4; k++) // along an axis that the kernel does not look at
    deep<<<dim3(2, 3), 64>>>(x, steps[k], 100);
  show("deep", x, 512);
  return 0;
}
