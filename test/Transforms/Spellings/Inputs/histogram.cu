// Histograms in global memory by atomics. Twelve spellings.
#include <cuda_runtime.h>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// one thread per element, bin by integer division
__global__ void hist_01_divide(const int* v, int* hist, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&hist[v[i] / width], 1);
}

// one thread per element, scaled floats, clamped at both ends
__global__ void hist_02_clamp(const float* x, unsigned* hist, int n, float lo, float hi, int bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int b = (int)floorf((x[i] - lo) / (hi - lo) * bins);
  b = max(0, min(b, bins - 1));
  atomicAdd(hist + b, 1u);
}

// grid-stride over bytes
__global__ void hist_03_bytes(const unsigned char* __restrict__ data, unsigned int* __restrict__ hist, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  while (i < n) {
    atomicAdd(&hist[data[i]], 1u);
    i += stride;
  }
}

// four bytes packed in a word, taken apart by shifts
__global__ void hist_04_packed(const uint32_t* words, uint32_t* hist, int nwords) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < nwords; i += blockDim.x * gridDim.x) {
    uint32_t w = words[i];
    for (int k = 0; k < 4; ++k) {
      atomicAdd(&hist[w & 0xffu], 1u);
      w >>= 8;
    }
  }
}

// a contiguous chunk per thread, values out of range are skipped
__global__ void hist_05_chunk(const float* x, int* hist, int n, int per_thread, float lo, float step, int bins) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int begin = t * per_thread;
  const int end = min(begin + per_thread, n);
  for (int i = begin; i < end; i++) {
    const float f = x[i];
    if (f < lo) continue;
    int b = (int)((f - lo) / step);
    if (b >= bins) continue;
    atomicAdd(&hist[b], 1);
  }
}

// runs of one bin are counted in registers and flushed when the bin changes
__global__ void hist_06_runs(const int* v, int* hist, int n, int per_thread, int width) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
  int end = i + per_thread;
  if (end > n) end = n;
  int bin = -1, run = 0;
  for (; i < end; ++i) {
    const int b = v[i] / width;
    if (b == bin) {
      ++run;
    } else {
      if (run > 0) atomicAdd(&hist[bin], run);
      bin = b;
      run = 1;
    }
  }
  if (run > 0) atomicAdd(&hist[bin], run);
}

// private counts in a local array, added to the global ones at the end
template <int BINS>
__global__ void hist_07_private(const int* v, int* hist, int n) {
  int mine[BINS];
  for (int b = 0; b < BINS; b++) mine[b] = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) mine[v[i] % BINS]++;
  for (int b = 0; b < BINS; b++)
    if (mine[b] != 0) atomicAdd(hist + b, mine[b]);
}

__device__ int bin_of(const float* edges, int bins, float v) {
  int lo = 0, hi = bins;
  while (hi - lo > 1) {
    int mid = (lo + hi) >> 1;
    if (v < edges[mid])
      hi = mid;
    else
      lo = mid;
  }
  return lo;
}

// bin edges of any width, found by bisection in a helper; atomicInc
__global__ void hist_08_edges(const float* x, unsigned int* hist, const float* edges, int n, int bins) {
  const unsigned tid = threadIdx.x + blockDim.x * blockIdx.x;
  if (tid < (unsigned)n) {
    const float& v = x[tid];
    if (v >= edges[0] && v < edges[bins]) atomicInc(&hist[bin_of(edges, bins, v)], 0xffffffffu);
  }
}

// weights summed per bin, float atomics
__global__ void hist_09_weighted(const int* v, const float* w, float* hist, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float add = w[i];
  if (add == 0.0f) return;
  float* slot = &hist[v[i] / width];
  atomicAdd(slot, add);
}

template <typename F>
__device__ void for_each_stride(int n, F f) {
  const int step = blockDim.x * gridDim.x;
  for (int i = n - 1 - (int)(blockIdx.x * blockDim.x + threadIdx.x); i >= 0; i -= step) f(i);
}

// radix digits, 64-bit counters, a lambda called by a loop that goes down
__global__ void hist_10_radix(const uint32_t* keys, unsigned long long* hist, int n, int shift) {
  for_each_stride(n, [=](int i) {
    auto digit = (keys[i] >> shift) & 15u;
    atomicAdd(&hist[digit], 1ull);
  });
}

#define BUMP(h, c)                                                   \
  switch ((c) / 64) {                                                \
    case 0: atomicAdd(&(h)[0], 1); break;                            \
    case 1: atomicAdd(&(h)[1], 1); break;                            \
    case 2: atomicAdd(&(h)[2], 1); break;                            \
    default: atomicAdd(&(h)[3], 1); break;                           \
  }

// the four lanes of a vector load, a switch in a macro
__global__ void hist_11_uchar4(const uchar4* px, int* hist, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  const uchar4 p = px[i];
  BUMP(hist, p.x)
  BUMP(hist, p.y)
  BUMP(hist, p.z)
  BUMP(hist, p.w)
}

// two dimensions: (row class, value bin); a loop over the columns of a row, compare-and-swap by hand
__global__ void hist_12_joint_cas(const int* v, const int* cls, unsigned* hist, int rows, int cols, int bins,
                                  int width) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  unsigned* h = hist + cls[r] * bins;
  int c = 0;
  do {
    unsigned* a = h + v[r * cols + c] / width;
    unsigned seen = 0, expect;
    do {
      expect = seen;
      seen = atomicCAS(a, expect, expect + 1u);
    } while (seen != expect);
  } while (++c < cols);
}

static const int R = 96, C = 60, E = R * C, CHUNK = 23;
static const int BINS = 16, WIDTH = 16, CLASSES = 3;

static uint32_t seed = 31337u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

template <typename T>
static T* upload(const std::vector<T>& h) {
  T* d;
  cudaMalloc((void**)&d, h.size() * sizeof(T));
  cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice);
  return d;
}

int main() {
  std::vector<int> v(E), cls(R);
  std::vector<float> x(E), w(E), edges(BINS + 1);
  std::vector<unsigned char> bytes(E);
  std::vector<uint32_t> words(E / 4), keys(E);
  for (int i = 0; i < E; i++) {
    v[i] = (i > 0 && lcg() % 3 == 0) ? v[i - 1] : (int)(lcg() % 256);
    x[i] = (int)(lcg() % 1400) * 0.0078125f - 1.5f;
    w[i] = (float)(lcg() % 5);
    bytes[i] = (unsigned char)v[i];
    words[i / 4] |= (uint32_t)bytes[i] << (i % 4 * 8);
    keys[i] = lcg() * 2654435761u;
  }
  for (int r = 0; r < R; r++) cls[r] = (int)(lcg() % CLASSES);
  for (int b = 0; b <= BINS; b++) edges[b] = -1.0f + 0.03125f * b * b;
  const float lo = 0.0f, hi = 8.0f, step = 0.5f;

  auto dv = upload(v), dcls = upload(cls);
  auto dx = upload(x), dw = upload(w), dedges = upload(edges);
  auto dbytes = upload(bytes);
  auto dwords = upload(words), dkeys = upload(keys);
  void* dh;
  cudaMalloc(&dh, 256 * 8);
  int bad = 0;
  std::vector<double> ref(256);
  auto reset = [&] {
    cudaMemset(dh, 0, 256 * 8);
    for (auto& r : ref) r = 0;
  };
  auto check = [&](const char* name, auto zero) {
    std::vector<decltype(zero)> got(256);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(got.data(), dh, 256 * sizeof(zero), cudaMemcpyDeviceToHost);
    for (int b = 0; b < 256; b++)
      if ((double)got[b] != ref[b]) ok = false;
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (E + B - 1) / B, GC = (E / CHUNK + B) / B;
  int* hi32 = (int*)dh;
  unsigned* hu32 = (unsigned*)dh;

  reset();
  for (int i = 0; i < E; i++) ref[v[i] / WIDTH]++;
  hist_01_divide<<<G, B>>>(dv, hi32, E, WIDTH);
  check("hist_01_divide", 0);

  reset();
  for (int i = 0; i < E; i++) {
    int b = (int)std::floor((x[i] - lo) / (hi - lo) * BINS);
    ref[b < 0 ? 0 : b > BINS - 1 ? BINS - 1 : b]++;
  }
  hist_02_clamp<<<G, B>>>(dx, hu32, E, lo, hi, BINS);
  check("hist_02_clamp", 0u);

  reset();
  for (int i = 0; i < E; i++) ref[bytes[i]]++;
  hist_03_bytes<<<4, B>>>(dbytes, hu32, E);
  check("hist_03_bytes", 0u);

  reset();
  for (int i = 0; i < E; i++) ref[bytes[i]]++;
  hist_04_packed<<<5, B>>>(dwords, hu32, E / 4);
  check("hist_04_packed", 0u);

  reset();
  for (int i = 0; i < E; i++)
    if (x[i] >= lo && (int)((x[i] - lo) / step) < BINS) ref[(int)((x[i] - lo) / step)]++;
  hist_05_chunk<<<GC, B>>>(dx, hi32, E, CHUNK, lo, step, BINS);
  check("hist_05_chunk", 0);

  reset();
  for (int i = 0; i < E; i++) ref[v[i] / WIDTH]++;
  hist_06_runs<<<GC, B>>>(dv, hi32, E, CHUNK, WIDTH);
  check("hist_06_runs", 0);

  reset();
  for (int i = 0; i < E; i++) ref[v[i] % BINS]++;
  hist_07_private<BINS><<<3, B>>>(dv, hi32, E);
  check("hist_07_private", 0);

  reset();
  for (int i = 0; i < E; i++)
    for (int b = 0; b < BINS; b++)
      if (x[i] >= edges[b] && x[i] < edges[b + 1]) ref[b]++;
  hist_08_edges<<<G, B>>>(dx, hu32, dedges, E, BINS);
  check("hist_08_edges", 0u);

  reset();
  for (int i = 0; i < E; i++) ref[v[i] / WIDTH] += w[i];
  hist_09_weighted<<<G, B>>>(dv, dw, (float*)dh, E, WIDTH);
  check("hist_09_weighted", 0.0f);

  reset();
  for (int i = 0; i < E; i++) ref[(keys[i] >> 20) & 15]++;
  hist_10_radix<<<4, B>>>(dkeys, (unsigned long long*)dh, E, 20);
  check("hist_10_radix", 0ull);

  reset();
  for (int i = 0; i < E; i++) ref[bytes[i] / 64]++;
  hist_11_uchar4<<<(E / 4 + B - 1) / B, B>>>((const uchar4*)dbytes, hi32, E / 4);
  check("hist_11_uchar4", 0);

  reset();
  for (int i = 0; i < E; i++) ref[cls[i / C] * BINS + v[i] / WIDTH]++;
  hist_12_joint_cas<<<(R + B - 1) / B, B>>>(dv, dcls, hu32, R, C, BINS, WIDTH);
  check("hist_12_joint_cas", 0u);

  cudaFree(dv);
  cudaFree(dcls);
  cudaFree(dx);
  cudaFree(dw);
  cudaFree(dedges);
  cudaFree(dbytes);
  cudaFree(dwords);
  cudaFree(dkeys);
  cudaFree(dh);
  return bad ? 1 : 0;
}
