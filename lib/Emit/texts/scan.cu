__global__ void __launch_bounds__(256)
    $P_scan(const $T *in, $T *out, int n, unsigned *control, $T *sums, $T *prefixes) {
  // control[0]: the next tile; control[1 + tile]: 1 when its sum is known, 2 when the sum of all up to it is.
  constexpr int perThread = 16, tileSize = 256 * perThread;
  constexpr unsigned all = 0xffffffffu;
  __shared__ $T tile[tileSize + tileSize / 16]; // a gap after each 16 elements keeps banks apart
  __shared__ $T warpTotals[8];
  __shared__ $T before;
  __shared__ int taken;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  if (thread == 0)
    taken = (int)atomicAdd(&control[0], 1u);
  __syncthreads();
  const int self = taken, base = self * tileSize;
#pragma unroll
  for (int k = 0; k < perThread; ++k) {
    int at = k * 256 + thread;
    tile[at + at / 16] = at < n - base ? in[base + at] : $T();
  }
  __syncthreads();

  $T own[perThread];
  own[0] = tile[17 * thread];
#pragma unroll
  for (int k = 1; k < perThread; ++k) {
    $T a = own[k - 1], b = tile[17 * thread + k];
    own[k] = $OP;
  }
  $T upTo = own[perThread - 1];
  for (int step = 1; step < 32; step *= 2) {
    $T a = __shfl_up_sync(all, upTo, step), b = upTo;
    if (lane >= step)
      upTo = $OP;
  }
  $T lower = __shfl_up_sync(all, upTo, 1);
  if (lane == 31)
    warpTotals[warp] = upTo;
  __syncthreads();

  if (warp == 0) {
    $T total = warpTotals[0];
    for (int w = 1; w < 8; ++w) {
      $T a = total, b = warpTotals[w];
      total = $OP;
    }
    if (self == 0) {
      if (lane == 0) {
        *(volatile $T *)&prefixes[0] = total;
        __threadfence();
        atomicExch(&control[1], 2u);
      }
    } else {
      if (lane == 0) {
        *(volatile $T *)&sums[self] = total;
        __threadfence();
        atomicExch(&control[1 + self], 1u);
      }
      $T prefix = $T();
      bool first = true;
      for (int look = self - 1;; look -= 32) {
        const int other = look - lane;
        unsigned state = 0;
        if (other >= 0)
          do
            state = *(volatile unsigned *)&control[1 + other];
          while (state == 0);
        __threadfence();
        $T value = $T();
        if (other >= 0)
          value = state == 2 ? *(volatile $T *)&prefixes[other] : *(volatile $T *)&sums[other];
        const unsigned known = __ballot_sync(all, state == 2);
        const int last = known ? __ffs(known) - 1 : 31; // tile 0 is known, so that no lane beyond it counts
        for (int step = 1; step < 32; step *= 2) {
          $T a = __shfl_down_sync(all, value, step), b = value;
          if (lane + step <= last)
            value = $OP;
        }
        $T a = __shfl_sync(all, value, 0), b = prefix;
        prefix = first ? a : $OP;
        first = false;
        if (known)
          break;
      }
      if (lane == 0) {
        $T a = prefix, b = total;
        *(volatile $T *)&prefixes[self] = $OP;
        __threadfence();
        atomicExch(&control[1 + self], 2u);
        before = prefix;
      }
    }
  }
  __syncthreads();

  bool some = self > 0;
  $T sum = some ? before : $T();
  for (int w = 0; w < warp; ++w) {
    $T a = sum, b = warpTotals[w];
    sum = some ? $OP : b;
    some = true;
  }
  if (lane > 0) {
    $T a = sum, b = lower;
    sum = some ? $OP : b;
    some = true;
  }
#pragma unroll
  for (int k = 0; k < perThread; ++k) {
    $T a = sum, b = own[k];
    tile[17 * thread + k] = some ? $OP : b;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < perThread; ++k) {
    int at = k * 256 + thread;
    if (at < n - base)
      out[base + at] = tile[at + at / 16];
  }
}
