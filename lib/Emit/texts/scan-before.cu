__global__ void $P_before(const $T *sums, $T *out, int n, int distance) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n)
    out[i] = i >= distance ? $T($UNDO) : sums[i];
}
