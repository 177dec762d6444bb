// What a turn changes may be a member, an element of an array, or a whole record: each turn's value counts.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run %s -- 300 > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu -- 300 > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s < %t.paths
// CHECK-DAG: decay_{{fused}}: 1 optimized, 0 original launches
// CHECK-DAG: mix_{{fused}}: 1 optimized, 0 original launches
// CHECK-DAG: kick_{{fused}}: 1 optimized, 0 original launches
// CHECK-DAG: push_{{fused}}: 1 optimized, 0 original launches
#include <cstdio>
#include <cstdlib>

struct Step {
  float t;
  int k;
  void advance(float by) {
    t += by;
    this->k = k + 1;
  }
};

__global__ void decay(float *x, Step s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] * 0.5f + s.t + s.k;
}
__global__ void mix(float *x, Step s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] * s.t + s.k;
}
__global__ void push(float *x, float weight, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += weight;
}
__global__ void kick(float *x, Step s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] -= s.t * s.k;
}

static Step after(Step s) {
  s.k ^= 3;
  return s;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  if (n < 1)
    return 1;
  float *x, *host = (float *)malloc(n * sizeof(float));
  for (int i = 0; i < n; ++i)
    host[i] = i % 7;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  const int blocks = (n + 127) / 128;
  Step s = {0.5f, 1};
  for (int turn = 0; turn < 5; ++turn) {
    s.t = turn * 0.5f;
    s.k ^= turn;
    decay<<<blocks, 128>>>(x, s, n);
  }
  cudaMemcpy(host, x, n * sizeof(float), cudaMemcpyDeviceToHost);
  Step other = {0.75f, 2};
  for (int turn = 0; turn < 4; ++turn) {
    other = after(other);
    mix<<<blocks, 128>>>(x, other, n);
  }
  cudaMemcpy(host, x, n * sizeof(float), cudaMemcpyDeviceToHost);
  float weights[2] = {1, 2};
  for (int turn = 0; turn < 4; ++turn) {
    weights[1] += 0.5f;
    push<<<blocks, 128>>>(x, weights[1], n);
  }
  cudaMemcpy(host, x, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int turn = 0; turn < 4; ++turn) {
    s.advance(turn * 0.25f);
    kick<<<blocks, 128>>>(x, s, n);
  }
  cudaMemcpy(host, x, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += host[i] * (i % 5);
  printf("%g\n", sum);
}
