// Cooperative groups: blocks, tiles, coalesced threads, group reductions.
// RUN: optiml-run %s | FileCheck %s
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void groups(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int v = block.thread_rank();
  for (int o = tile.size() / 2; o > 0; o /= 2)
    v += tile.shfl_down(v, o);
  if (tile.thread_rank() == 0)
    out[tile.meta_group_rank()] = v;
  int sum = cg::reduce(tile, int(block.thread_rank()), cg::plus<int>());
  auto half = cg::tiled_partition(block, 16);
  half.sync();
  block.sync();
  if (block.thread_rank() == 9)
    out[4] = sum * 1000 + half.thread_rank();
  if (block.thread_rank() % 3 == 0) {
    auto active = cg::coalesced_threads();
    if (block.thread_rank() == 6)
      out[5] = active.size() * 100 + active.thread_rank();
  }
  if (block.thread_rank() == 0)
    out[6] = tile.any(true) + block.group_dim().x;
}

int main() {
  int *out, h[7];
  cudaMalloc(&out, sizeof h);
  groups<<<1, 32>>>(out);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  for (int v : h)
    printf("%d ", v);
  printf("\n");
}
// CHECK: 28 92 156 220 92009 1102 33
