__global__ void __launch_bounds__(1024) $P_tiles(const $T *from, $T *to, int n) {
  __shared__ $T tile[2048];
  const int thread = threadIdx.x, base = blockIdx.x * 2048, count = min(2048, n - base);
  for (int at = thread; at < count; at += 1024)
    tile[at] = from[base + at];
  for (int run = 2; run / 2 < count; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      int low = thread / step * 2 * step + thread % step;
      int high = step == run / 2 ? low / run * run + run - 1 - low % run : low + step; // first against the mirror image
      __syncthreads();
      if (high < count && tile[high] < tile[low]) {
        $T t = tile[low];
        tile[low] = tile[high];
        tile[high] = t;
      }
    }
  }
  __syncthreads();
  for (int at = thread; at < count; at += 1024)
    to[base + at] = tile[at];
}

__global__ void __launch_bounds__(256) $P_merge(const $T *from, $T *to, int n, int run) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n)
    return;
  const int start = i / (2 * run) * (2 * run), middle = min(start + run, n), end = min(middle + run, n);
  const $T key = from[i];
  const bool left = i < middle;
  const int other = left ? middle : start;
  int low = other, high = left ? end : middle;
  while (low < high) { // how many of the other run come first
    int at = low + (high - low) / 2;
    if (left ? from[at] < key : !(key < from[at]))
      low = at + 1;
    else
      high = at;
  }
  to[start + (i - (left ? start : middle)) + (low - other)] = key;
}
