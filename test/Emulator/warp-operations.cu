// Shuffles, votes, matches and reductions over a warp give each lane what the PTX manual says.
// RUN: optiml-run %s | FileCheck %s
// RUN: optiml-run --check=verify %s | FileCheck %s
#include <cstdio>
#include <cuda_runtime.h>

__global__ void warps(int *out) {
  unsigned full = 0xffffffffu;
  int lane = threadIdx.x % 32;
  int up = __shfl_up_sync(full, lane, 1), down = __shfl_down_sync(full, lane, 2, 8);
  int other = __shfl_xor_sync(full, lane, 16), fifth = __shfl_sync(full, lane * 10, 5);
  double d = __shfl_sync(full, lane + 0.5, 3);
  unsigned odd = __ballot_sync(full, lane & 1);
  int all = __all_sync(full, lane < 32), any = __any_sync(full, lane == 77);
  unsigned same = __match_any_sync(full, lane / 4);
  unsigned sum = __reduce_add_sync(full, unsigned(lane));
  int least = __reduce_min_sync(full, lane - 7);
  if (threadIdx.x == 37) { // lane 5 of the second warp
    int r[] = {up, down, other, fifth, int(d * 2), int(odd == 0xaaaaaaaau), all, any, int(same), int(sum), least};
    for (int i = 0; i < 11; ++i)
      out[i] = r[i];
  }
  if (lane >= 16) { // half a warp by itself
    int v = lane;
    for (int o = 8; o > 0; o /= 2)
      v += __shfl_down_sync(0xffff0000u, v, o, 16);
    if (threadIdx.x == 16)
      out[11] = v;
  }
}

int main() {
  int *out, h[12];
  cudaMalloc(&out, sizeof h);
  warps<<<1, 64>>>(out);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  for (int v : h)
    printf("%d ", v);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
// CHECK: 4 7 21 50 7 1 1 0 240 496 -7 376 no error
