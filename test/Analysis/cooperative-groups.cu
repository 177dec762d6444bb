// A block and its warps as cooperative groups are read as the ranks, barriers and shuffles that they come to, where
// they are used for nothing else.
// RUN: %opt --block=64x1 --passes='tree-to-shuffle[sums];coarsen-blocks[warps]{x=2}' %s | FileCheck %s
// RUN: optiml-opt --block=64x1 --emit --passes='tree-to-shuffle[sums];coarsen-blocks[warps]{x=2}' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: optiml-opt --emit --passes='coarsen-blocks[plane]{y=2}' %s > %t.plane.cu
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.plane.cu 2>&1 | %check=PLANE
// RUN: %verify=%t.plane.cu %s | %check=SAME
// RUN: %refused --passes='coarsen-blocks[passed]{x=2}' %s 2>&1 | %check=PASSED
// RUN: %refused --passes='coarsen-blocks[halves]{x=2}' %s 2>&1 | %check=HALVES
// RAN-DAG: sums: 1 optimized, 0 original launches
// RAN-DAG: warps: 1 optimized, 0 original launches
// PLANE: plane: 1 optimized, 0 original launches
// SAME: the same results
// PASSED: a call may ask for its block
// HALVES: a call may ask for its block
// REQUIRES: optiml-run
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void sums(const float *x, float *y) {
  cg::thread_block cta = cg::this_thread_block();
  __shared__ float s[64];
  unsigned t = cta.thread_rank();
  s[t] = x[blockIdx.x * 64 + t];
  cg::sync(cta);
  for (unsigned d = cta.size() / 2; d > 0; d >>= 1) {
    if (t < d)
      s[t] += s[t + d];
    cta.sync();
  }
  if (t == 0)
    y[blockIdx.x] = s[0];
}
// CHECK: sums_optiml
// CHECK: s_of_thread += __shfl_xor_sync

__global__ void warps(const float *x, float *y) {
  const auto block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  block.sync();
  float v = s[63 - block.thread_rank()];
  for (int d = warp.size() / 2; d > 0; d /= 2)
    v += warp.shfl_xor(v, d);
  warp.sync();
  if (warp.any(v < -100))
    v = warp.shfl(v, 3);
  if (warp.thread_rank() == 0)
    y[blockIdx.x * warp.meta_group_size() + warp.meta_group_rank()] = v;
}
// CHECK: warps_optiml
// CHECK: __syncthreads();
// CHECK: s[ix][63 - threadIdx.x]
// CHECK: v[ix] += __shfl_xor_sync(0xffffffff, v[ix], d);
// CHECK: __syncwarp();
// CHECK: __any_sync(0xffffffff, v[ix] < -100)
// CHECK: threadIdx.x % 32u == 0

// Blocks of several rows: the rank has all of its parts.
__global__ void plane(float *x) {
  cg::thread_block cta = cg::this_thread_block();
  __shared__ float s[64];
  s[cta.thread_rank()] = x[(blockIdx.y * gridDim.x + blockIdx.x) * 64 + cta.thread_rank()];
  cta.sync();
  x[(blockIdx.y * gridDim.x + blockIdx.x) * 64 + cta.thread_rank()] = s[63 - cta.thread_rank()];
}

__device__ __noinline__ float first(cg::thread_block cta, const float *s) {
  cta.sync();
  return s[cta.thread_rank() / 2];
}

__global__ void passed(float *x) {
  cg::thread_block cta = cg::this_thread_block();
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  x[blockIdx.x * 64 + threadIdx.x] = first(cta, s);
}

__global__ void halves(float *x) {
  auto half = cg::tiled_partition<16>(cg::this_thread_block());
  float v = x[blockIdx.x * 64 + threadIdx.x];
  x[blockIdx.x * 64 + threadIdx.x] = half.shfl_down(v, 1);
}

int main() {
  float *x, *y, *z;
  cudaMallocManaged(&x, 640 * sizeof(float));
  cudaMallocManaged(&y, 20 * sizeof(float));
  cudaMallocManaged(&z, 20 * sizeof(float));
  for (int i = 0; i < 640; ++i)
    x[i] = i % 17;
  sums<<<10, 64>>>(x, z);
  warps<<<10, 64>>>(x, y);
  plane<<<dim3(5, 2), dim3(8, 4, 2)>>>(x);
  passed<<<10, 64>>>(x);
  halves<<<10, 64>>>(x);
  cudaDeviceSynchronize();
  printf("%g %g %g %g\n", y[3], y[19], z[7], x[100]);
}
