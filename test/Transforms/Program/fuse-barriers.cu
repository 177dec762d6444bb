// A kernel whose blocks fold something in shared memory takes part, where no other part needs what it does there.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.txt
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: optiml-run %t.cu > %t.after
// RUN: cmp %t.before %t.after
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTES < %t.txt
#include <cstdio>
#include <vector>

__global__ void gradient(const int *w, const int *target, int *g, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int d = w[i] - target[i];
    g[i] = 2 * d + d * d * d;
  }
}

// The two loops become one, and the value of g stays in a register.
// CHECK-LABEL: {{^}}__global__{{.*}} gradient_squares_fused{{[0-9]*}}(
// CHECK: __shared__ int buf[128];
// CHECK: int s = 0;
// CHECK: for (int i =
// CHECK: g[i] = [[G:g_value[0-9]*]];
// CHECK-NEXT: s += [[G]] * [[G]];
// CHECK-NEXT: }
// CHECK-NOT: for (int i
// CHECK: __syncthreads();
// CHECK: atomicAdd(
__global__ void squares(const int *g, unsigned long long *result, int n) {
  __shared__ int buf[128];
  int s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    s += g[i] * g[i];
  buf[threadIdx.x] = s;
  __syncthreads();
  for (int step = 1; step < blockDim.x; step <<= 1) {
    if (threadIdx.x % (2 * step) == 0)
      buf[threadIdx.x] += buf[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    atomicAdd(result, (unsigned long long)(unsigned)buf[0]);
}

// Threads beyond the end leave the first kernel early, and take part in the second.
// CHECK-LABEL: {{^}}__global__{{.*}} absolute_largest_fused{{[0-9]*}}(
// CHECK: if (i < n) {
// CHECK: y[i] =
// CHECK: __shfl_down_sync(
// CHECK: __syncthreads();
__global__ void absolute(const int *x, int *y, const int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[i] = x[i] < 0 ? -x[i] : x[i];
}
__global__ void largest(const int *y, int n, int *most) {
  __shared__ int ofWarp[4];
  const unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  int v = i < n ? y[i] : 0;
  for (int d = 16; d; d /= 2)
    v = max(v, __shfl_down_sync(0xffffffffu, v, d));
  if (tid % 32 == 0)
    ofWarp[tid / 32] = v;
  __syncthreads();
  if (tid == 0)
    most[blockIdx.x] = max(max(ofWarp[0], ofWarp[1]), max(ofWarp[2], ofWarp[3]));
}

// Two that fold, both in memory of their own. What both add to, or take a maximum into, they may do in any order.
// CHECK-LABEL: {{^}}__global__{{.*}} ones_evens{{[_a-z]*}}_fused{{[0-9]*}}(
// CHECK: __shared__ int count[128];
// CHECK: atomicMax(&out[2], count[0]);
// CHECK: __shared__ int [[OTHER:count[0-9]+]][128];
// CHECK: atomicMax(&out[2], [[OTHER]][0]);
__global__ void ones(const int *x, int n, int *out) {
  __shared__ int count[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  count[threadIdx.x] = (i < n && x[i] == 1) ? 1 : 0;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      count[threadIdx.x] += count[threadIdx.x + s];
    __syncthreads();
  }
  if (!threadIdx.x) {
    atomicAdd(&out[0], count[0]);
    atomicMax(&out[2], count[0]);
  }
}
__global__ void evens(const int *x, int n, int *out) {
  __shared__ int count[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  count[threadIdx.x] = (i < n && x[i] % 2 == 0) ? 1 : 0;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      count[threadIdx.x] += count[threadIdx.x + s];
    __syncthreads();
  }
  if (!threadIdx.x) {
    atomicAdd(&out[1], count[0]);
    atomicMax(&out[2], count[0]);
  }
}

// What one thread stored for its block, all of its threads need.
// NOTES-DAG: the launch is not fused with what stands before it: one thread may need what another did to 'most'
__global__ void relate(const int *y, const int *most, int *part, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    part[i] = 100 * y[i] / (most[blockIdx.x] + 1);
}

// Its neighbours' elements are another thread's.
// NOTES-DAG: the launch is not fused with what stands before it: one thread may need what another did to 'part'
__global__ void smooth(const int *part, int *out, int n) {
  __shared__ int tile[130];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x + 1] = i < n ? part[i] : 0;
  if (threadIdx.x == 0)
    tile[0] = i > 0 && i - 1 < n ? part[i - 1] : 0;
  if (threadIdx.x == blockDim.x - 1)
    tile[threadIdx.x + 2] = i + 1 < n ? part[i + 1] : 0;
  __syncthreads();
  if (i < n)
    out[i] = tile[threadIdx.x] + 2 * tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

// Not all threads of a block come to the barrier: what follows would be out of step.
// NOTES-DAG: the launch is not fused with what stands before it: not all threads of a block may meet at line [[#@LINE+7]]
__global__ void halves(const int *out, int *sums, int n) {
  __shared__ int pair[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 128 * 128)
    return;
  pair[threadIdx.x] = out[i];
  __syncthreads();
  if (threadIdx.x < 64)
    sums[blockIdx.x * 64 + threadIdx.x] = pair[threadIdx.x] + pair[threadIdx.x + 64];
}

__global__ void scale(int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] *= 2;
}
// A barrier that votes as well may stand under a condition that is not looked at.
// NOTES-DAG: the launch is not fused with what stands before it: its threads wait for each other
__global__ void voted(const int *y, int *sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int large = __syncthreads_count(i < n && y[i] > 2);
  if (threadIdx.x == 0)
    sums[blockIdx.x] += large;
}

int main() {
  const int n = 1000, blocks = (n + 127) / 128;
  std::vector<int> w(n), target(n), result(n);
  unsigned r = 5;
  for (int i = 0; i < n; ++i) {
    w[i] = int((r = r * 1664525u + 1013904223u) >> 20) % 17 - 8;
    target[i] = int((r = r * 1664525u + 1013904223u) >> 20) % 13 - 6;
  }
  int *dw, *dtarget, *g, *y, *most, *counts, *part, *out, *sums;
  unsigned long long *sum, total;
  for (int **p : {&dw, &dtarget, &g, &y, &most, &part, &out, &sums})
    cudaMalloc(p, n * sizeof(int));
  cudaMalloc(&counts, 3 * sizeof(int));
  cudaMalloc(&sum, sizeof(*sum));
  cudaMemset(sum, 0, sizeof(*sum));
  cudaMemset(counts, 0, 3 * sizeof(int));
  cudaMemset(sums, 0, n * sizeof(int));
  cudaMemcpy(dw, w.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(dtarget, target.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  gradient<<<3, 128>>>(dw, dtarget, g, n);
  squares<<<3, 128>>>(g, sum, n);
  cudaMemcpy(&total, sum, sizeof(total), cudaMemcpyDeviceToHost);
  cudaMemcpy(result.data(), g, n * sizeof(int), cudaMemcpyDeviceToHost);
  unsigned h = 0;
  for (int v : result)
    h = h * 31 + v;
  absolute<<<blocks, 128>>>(dw, y, n);
  largest<<<blocks, 128>>>(y, n, most);
  relate<<<blocks, 128>>>(y, most, part, n);
  smooth<<<blocks, 128>>>(part, out, n);
  halves<<<blocks, 128>>>(out, sums, n);
  cudaDeviceSynchronize();
  ones<<<blocks, 128>>>(dw, n, counts);
  evens<<<blocks, 128>>>(dw, n, counts);
  cudaDeviceSynchronize();
  scale<<<blocks, 128>>>(y, n);
  voted<<<blocks, 128>>>(y, sums, n);
  int both[3];
  cudaMemcpy(both, counts, sizeof(both), cudaMemcpyDeviceToHost);
  for (int *p : {y, most, part, out, sums}) {
    cudaMemcpy(result.data(), p, (p == most ? blocks : n) * sizeof(int), cudaMemcpyDeviceToHost);
    for (int v : result)
      h = h * 31 + v;
  }
  printf("%llu %d %d %d %u\n", total, both[0], both[1], both[2], h);
}
