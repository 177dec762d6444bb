// Wrong versions of rows.cu's kernel, one a mistake, and a right one. What they share is right.
// Right under every launch: a candidate may have threads along other axes, which have nothing to do here.
#define EVERY_ROW                                                                                                      \
  if (threadIdx.y + threadIdx.z + blockIdx.y + blockIdx.z == 0)                                                        \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
#define KERNEL(name) extern "C" __global__ void name(int n, int m, const float *a, float *out)

static __device__ float sum(int n, int m, const float *a, int i, float s) {
  for (int k = 0; k < m; ++k)
    s += a[k * n + i];
  return s;
}

KERNEL(good) {
  EVERY_ROW out[i] = sum(n, m, a, i, out[i]);
}

KERNEL(loops) {
  for (;;)
    __nanosleep(1000);
}

// Just beyond the end, where nobody else's data is.
KERNEL(outside) {
  EVERY_ROW out[i] = sum(n, m, a, i, out[i]);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    out[n + 64] = 1;
}

KERNEL(wild) {
  EVERY_ROW out[i] = sum(n, m, a, i, out[i]);
  *reinterpret_cast<volatile float *>(16) = 1;
}

KERNEL(trap) {
  __trap();
}

// Right, but launched with more shared memory than there is.
KERNEL(shared) {
  EVERY_ROW out[i] = sum(n, m, a, i, out[i]);
}

KERNEL(unwritten) {
  EVERY_ROW
    if (i < n - 16)
      out[i] = sum(n, m, a, i, out[i]);
}

// The results that the captured inputs have, whatever the inputs are.
KERNEL(cached) {
  EVERY_ROW {
    float s = 0;
    for (int k = 0; k < m; ++k)
      s += float((k * n + i) % 17);
    out[i] = s;
  }
}

// Within every tolerance, but never twice the same: what a race does.
KERNEL(varies) {
  EVERY_ROW {
    float s = sum(n, m, a, i, out[i]);
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    time ^= (unsigned long long)clock64() * 2654435761u;
    out[i] = (time * 0x9E3779B97F4A7C15ull) >> 63 ? __int_as_float(__float_as_int(s) + 1) : s;
  }
}
