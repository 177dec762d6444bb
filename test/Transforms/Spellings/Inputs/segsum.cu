// Sums of segments of an array. Twelve spellings.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

// CSR offsets, plain loop
__global__ void segsum_01_plain(const float* x, const int* off, float* out, int nseg) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg) return;
  float sum = 0.0f;
  for (int j = off[s]; j < off[s + 1]; j++) sum += x[j];
  out[s] = sum;
}

// CSR offsets, two pointers and a while loop
__global__ void segsum_02_pointers(const float* __restrict__ x, const int* __restrict__ off,
                                   float* __restrict__ out, int nseg) {
  const int s = threadIdx.x + blockIdx.x * blockDim.x;
  if (s < nseg) {
    const float* p = x + off[s];
    const float* const q = x + off[s + 1];
    float acc = 0.f;
    while (p != q) {
      acc = acc + *p;
      ++p;
    }
    out[s] = acc;
  }
}

// CSR offsets, the sum is kept in the output
__global__ void segsum_03_global_state(const float* x, const int* off, float* out, int nseg) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg) return;
  out[s] = 0;
  const int end = off[s + 1];
  for (int j = off[s]; j < end; ++j) out[s] += x[j];
}

// start and length in a struct, counted down
struct Segment {
  uint32_t start;
  uint32_t len;
};

__global__ void segsum_04_countdown(const float* x, const Segment* segs, float* out, uint32_t nseg) {
  const uint32_t s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg) return;
  const Segment g = segs[s];
  float total = 0.0f;
  for (uint32_t k = g.len; k > 0; --k) total += x[g.start + k - 1];
  out[s] = total;
}

// CSR row times vector
__global__ void segsum_05_spmv(const float* x, const int* col, const int* row_ptr, const float* vec, float* y,
                               int nrows) {
  for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < nrows; r += blockDim.x * gridDim.x) {
    float dot = 0;
    const int row_start = row_ptr[r];
    const int row_end = row_ptr[r + 1];
    for (int e = row_start; e < row_end; e++) dot += x[e] * vec[col[e]];
    y[r] = dot;
  }
}

// CSR offsets, first one peeled, do loop after an emptiness test
__global__ void segsum_06_peeled_do(const float* x, const int* off, float* out, int nseg) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg) return;
  int i = off[s];
  const int e = off[s + 1];
  if (i >= e) {
    out[s] = 0.0f;
    return;
  }
  float sum = x[i++];
  if (i < e) {
    do {
      sum += x[i];
      i++;
    } while (i < e);
  }
  out[s] = sum;
}

// keys, a chunk per thread, flushed when the key changes
__global__ void segsum_07_key_change(const float* x, const int* key, float* out, int n, int chunk) {
  int begin = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;
  if (begin >= n) return;
  int end = min(begin + chunk, n);
  int cur = key[begin];
  float sum = 0.0f;
  for (int i = begin; i < end; i++) {
    if (key[i] != cur) {
      atomicAdd(&out[cur], sum);
      cur = key[i];
      sum = 0.0f;
    }
    sum += x[i];
  }
  atomicAdd(&out[cur], sum);
}

// keys, one run after another by nested loops
__global__ void segsum_08_nested_runs(const float* x, const int* key, float* out, int n, int chunk) {
  int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * chunk;
  const int64_t end = i + chunk < n ? i + chunk : n;
  while (i < end) {
    const int k = key[i];
    float sum = x[i++];
    while (i < end && key[i] == k) sum += x[i++];
    atomicAdd(out + k, sum);
  }
}

// keys, sentinel key, a lambda flushes, the sum is restarted with the element itself
__global__ void segsum_09_lambda_flush(const float* x, const int* key, float* out, int n, int chunk) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int prev = -1;
  float sum = 0.f;
  auto flush = [&] {
    if (prev >= 0) atomicAdd(&out[prev], sum);
  };
  for (int k = 0; k < chunk; ++k) {
    const int i = t * chunk + k;
    if (i >= n) break;
    if (key[i] == prev) {
      sum += x[i];
      continue;
    }
    flush();
    prev = key[i];
    sum = x[i];
  }
  flush();
}

template <typename T, typename It>
__device__ T sum_range(It first, It last, T init) {
  for (; first != last; ++first) init += static_cast<T>(*first);
  return init;
}

// CSR offsets, helper template, double accumulator
__global__ void segsum_10_template(const float* x, const int* off, float* out, int nseg) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg) return;
  const auto first = x + off[s];
  const auto last = x + off[s + 1];
  out[s] = (float)sum_range(first, last, 0.0);
}

// padded rows with a length each; break at the length
__global__ void segsum_11_ragged(const float* padded, const int* len, float* out, int rows, int pitch) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float acc = 0;
  for (int j = 0; j < pitch; j++) {
    if (j == len[r]) break;
    const float& v = padded[r * pitch + j];
    acc += v;
  }
  out[r] = acc;
}

// keys in any order: every thread looks at all elements and takes its own
__global__ void segsum_12_masked(const float* x, const int* key, float* out, int nseg, int n) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg) return;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += key[i] == s ? x[i] : 0.0f;
  out[s] = sum;
}

static const int S = 96, PITCH = 56, CHUNK = 29, V = 40;

static uint32_t seed = 2024u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

template <typename T>
static T* upload(const std::vector<T>& h) {
  T* d;
  cudaMalloc((void**)&d, h.size() * sizeof(T));
  cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice);
  return d;
}

int main() {
  std::vector<int> off(S + 1), len(S), key, col;
  std::vector<float> x, vec(V), padded(S * PITCH, 1000.0f);
  std::vector<Segment> segs(S);
  std::vector<double> sums(S), spmv(S);
  for (auto& f : vec) f = (int)(lcg() % 17) - 8;
  for (int s = 0; s < S; s++) {
    off[s] = (int)x.size();
    len[s] = lcg() % 5 == 0 ? (s % 2 ? 0 : PITCH) : (int)(lcg() % PITCH);
    for (int k = 0; k < len[s]; k++) {
      float f = ((int)(lcg() % 200) - 90) * 0.125f;
      int c = (int)(lcg() % V);
      x.push_back(f);
      key.push_back(s);
      col.push_back(c);
      padded[s * PITCH + k] = f;
      sums[s] += f;
      spmv[s] += f * vec[c];
    }
    segs[s] = Segment{(uint32_t)off[s], (uint32_t)len[s]};
  }
  const int n = (int)x.size();
  off[S] = n;
  // shuffled copy, for the masked form
  std::vector<float> xs = x;
  std::vector<int> ks = key;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)(lcg() % (i + 1));
    std::swap(xs[i], xs[j]);
    std::swap(ks[i], ks[j]);
  }
  auto dx = upload(x), dvec = upload(vec), dpad = upload(padded), dxs = upload(xs);
  auto doff = upload(off), dlen = upload(len), dkey = upload(key), dcol = upload(col), dks = upload(ks);
  auto dsegs = upload(segs);
  float* out;
  cudaMalloc((void**)&out, S * sizeof(float));
  int bad = 0;
  auto poison = [&] { cudaMemset(out, 0xff, S * sizeof(float)); };
  auto zero = [&] { cudaMemset(out, 0, S * sizeof(float)); };
  auto check = [&](const char* name, const std::vector<double>& ref) {
    std::vector<float> got(S);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(got.data(), out, S * sizeof(float), cudaMemcpyDeviceToHost);
    for (int s = 0; s < S; s++)
      if (!(std::fabs(got[s] - ref[s]) <= 1e-4 * (1 + std::fabs(ref[s])))) ok = false;
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (S + B - 1) / B, GC = (n + B * CHUNK - 1) / (B * CHUNK);
  poison(); segsum_01_plain<<<G, B>>>(dx, doff, out, S); check("segsum_01_plain", sums);
  poison(); segsum_02_pointers<<<G, B>>>(dx, doff, out, S); check("segsum_02_pointers", sums);
  poison(); segsum_03_global_state<<<G, B>>>(dx, doff, out, S); check("segsum_03_global_state", sums);
  poison(); segsum_04_countdown<<<G, B>>>(dx, dsegs, out, S); check("segsum_04_countdown", sums);
  poison(); segsum_05_spmv<<<G, B>>>(dx, dcol, doff, dvec, out, S); check("segsum_05_spmv", spmv);
  poison(); segsum_06_peeled_do<<<G, B>>>(dx, doff, out, S); check("segsum_06_peeled_do", sums);
  zero(); segsum_07_key_change<<<GC, B>>>(dx, dkey, out, n, CHUNK); check("segsum_07_key_change", sums);
  zero(); segsum_08_nested_runs<<<GC, B>>>(dx, dkey, out, n, CHUNK); check("segsum_08_nested_runs", sums);
  zero(); segsum_09_lambda_flush<<<GC, B>>>(dx, dkey, out, n, CHUNK); check("segsum_09_lambda_flush", sums);
  poison(); segsum_10_template<<<G, B>>>(dx, doff, out, S); check("segsum_10_template", sums);
  poison(); segsum_11_ragged<<<G, B>>>(dpad, dlen, out, S, PITCH); check("segsum_11_ragged", sums);
  poison(); segsum_12_masked<<<G, B>>>(dxs, dks, out, S, n); check("segsum_12_masked", sums);
  cudaFree(dx);
  cudaFree(dvec);
  cudaFree(dpad);
  cudaFree(dxs);
  cudaFree(doff);
  cudaFree(dlen);
  cudaFree(dkey);
  cudaFree(dcol);
  cudaFree(dks);
  cudaFree(dsegs);
  cudaFree(out);
  return bad ? 1 : 0;
}
