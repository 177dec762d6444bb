// k largest values of every row, sorted descending, with their columns. Twelve spellings.
#include <cuda_runtime.h>
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#define MAXK 16

// ties: first wins (local arrays, shift with a for loop, guard on the worst)
__global__ void kbest_01_shift_for(const float* x, float* vals, int* idx, int rows, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float bv[MAXK];
  int bi[MAXK];
  for (int t = 0; t < k; t++) {
    bv[t] = -INFINITY;
    bi[t] = -1;
  }
  for (int j = 0; j < n; j++) {
    float v = x[row * n + j];
    if (v > bv[k - 1]) {
      int p;
      for (p = k - 1; p > 0 && bv[p - 1] < v; p--) {
        bv[p] = bv[p - 1];
        bi[p] = bi[p - 1];
      }
      bv[p] = v;
      bi[p] = j;
    }
  }
  for (int t = 0; t < k; t++) {
    vals[row * k + t] = bv[t];
    idx[row * k + t] = bi[t];
  }
}

// ties: first wins (lists in global memory, shift with a while loop, early continue)
__global__ void kbest_02_global_while(const float* __restrict__ x, float* __restrict__ vals,
                                      int* __restrict__ idx, int rows, int n, int k) {
  const int row = threadIdx.x + blockDim.x * blockIdx.x;
  if (row < rows) {
    const float* in = x + (size_t)row * n;
    float* ov = vals + (size_t)row * k;
    int* oi = idx + (size_t)row * k;
    for (int t = 0; t != k; ++t) {
      ov[t] = -FLT_MAX;
      oi[t] = 0;
    }
    for (int j = 0; j < n; ++j) {
      const float cand = in[j];
      if (!(cand > ov[k - 1])) continue;
      int pos = k - 1;
      while (pos > 0) {
        if (ov[pos - 1] >= cand) break;
        ov[pos] = ov[pos - 1];
        oi[pos] = oi[pos - 1];
        --pos;
      }
      ov[pos] = cand;
      oi[pos] = j;
    }
  }
}

// ties: first wins (global memory; overwrite the last one, then swap upwards)
__global__ void kbest_03_global_bubble(const float* x, float* vals, int* idx, int rows, int n, int k) {
  unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= (unsigned)rows) return;
  vals += r * k;
  idx += r * k;
  x += r * n;
  int t = k;
  while (t-- > 0) {
    vals[t] = -INFINITY;
    idx[t] = -1;
  }
  for (int col = 0; col < n; col++) {
    if (x[col] <= vals[k - 1]) continue;
    vals[k - 1] = x[col];
    idx[k - 1] = col;
    for (int q = k - 1; q >= 1; q--) {
      if (vals[q] > vals[q - 1]) {
        float tv = vals[q];
        vals[q] = vals[q - 1];
        vals[q - 1] = tv;
        int ti = idx[q];
        idx[q] = idx[q - 1];
        idx[q - 1] = ti;
      } else {
        break;
      }
    }
  }
}

// ties: first wins (find the position from the front, then shift; local arrays, a count so far)
__global__ void kbest_04_find_then_shift(const float* x, float* vals, int* idx, int rows, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float top[MAXK];
  int where[MAXK];
  int have = 0;
  for (int j = 0; j < n; j++) {
    float v = x[(long long)row * n + j];
    int pos = 0;
    while (pos < have && top[pos] >= v) pos++;
    if (pos == k) continue;
    int last = have < k ? have : k - 1;
    for (int s = last; s > pos; s--) {
      top[s] = top[s - 1];
      where[s] = where[s - 1];
    }
    top[pos] = v;
    where[pos] = j;
    if (have < k) have++;
  }
  for (int t = 0; t < have; t++) {
    vals[row * k + t] = top[t];
    idx[row * k + t] = where[t];
  }
}

// ties: first wins (global memory, count so far, no sentinels)
__global__ void kbest_05_global_count(const float* x, float* vals, int* idx, int rows, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int base = row * k;
  int cnt = 0;
  for (int j = 0; j < n; j++) {
    float v = x[row * n + j];
    int p;
    if (cnt < k) {
      p = cnt++;
    } else if (v > vals[base + k - 1]) {
      p = k - 1;
    } else {
      continue;
    }
    for (; p > 0 && v > vals[base + p - 1]; --p) {
      vals[base + p] = vals[base + p - 1];
      idx[base + p] = idx[base + p - 1];
    }
    vals[base + p] = v;
    idx[base + p] = j;
  }
}

// ties: first wins, by comparing columns (template constant, the loser is carried down, no guard)
template <int K>
__global__ void kbest_06_carry(const float* x, float* vals, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float bv[K];
  int bi[K];
#pragma unroll
  for (int t = 0; t < K; ++t) bv[t] = -INFINITY, bi[t] = -1;
  for (int j = 0; j < n; ++j) {
    float cv = x[row * n + j];
    int ci = j;
#pragma unroll
    for (int t = 0; t < K; ++t) {
      if (cv > bv[t] || (cv == bv[t] && ci < bi[t])) {
        float hv = bv[t];
        int hi = bi[t];
        bv[t] = cv;
        bi[t] = ci;
        cv = hv;
        ci = hi;
      }
    }
  }
#pragma unroll
  for (int t = 0; t < K; ++t) {
    vals[row * K + t] = bv[t];
    idx[row * K + t] = bi[t];
  }
}

struct Entry {
  float score;
  int col;
};

struct TopList {
  Entry e[MAXK];
  int size;
  int cap;
};

__device__ inline bool beats(const Entry& a, const Entry& b) { return a.score > b.score; }

__device__ void push(TopList& l, const Entry& n) {
  if (l.size == l.cap && !beats(n, l.e[l.size - 1])) return;
  int i = l.size < l.cap ? l.size++ : l.size - 1;
  while (i > 0 && beats(n, l.e[i - 1])) {
    l.e[i] = l.e[i - 1];
    --i;
  }
  l.e[i] = n;
}

// ties: first wins (a struct of entries and a helper function)
__global__ void kbest_07_struct_push(const float* x, float* vals, int* idx, int rows, int n, int k) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {
    TopList list;
    list.size = 0;
    list.cap = k;
    for (int j = 0; j < n; ++j) push(list, Entry{x[row * n + j], j});
    for (int t = 0; t < list.size; ++t) {
      vals[row * k + t] = list.e[t].score;
      idx[row * k + t] = list.e[t].col;
    }
  }
}

// ties: first wins (global memory, interleaved by rows: element t at [t * rows + row]; lambda, do loop)
__global__ void kbest_08_global_strided(const float* x, float* vals, int* idx, int rows, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  auto at = [=](int t) { return t * rows + row; };
  for (int t = 0; t < k; t++) {
    vals[at(t)] = -INFINITY;
    idx[at(t)] = -1;
  }
  int j = 0;
  do {
    float v = x[row * n + j];
    int t = k - 1;
    if (vals[at(t)] < v) {
      while (t > 0 && vals[at(t - 1)] < v) {
        vals[at(t)] = vals[at(t - 1)];
        idx[at(t)] = idx[at(t - 1)];
        t--;
      }
      vals[at(t)] = v;
      idx[at(t)] = j;
    }
  } while (++j < n);
}

#define SWAP(T, a, b) \
  do {                \
    T tmp_ = (a);     \
    (a) = (b);        \
    (b) = tmp_;       \
  } while (0)

// ties: first wins (one slot more than k; no guard, bubble over the whole list by a macro)
template <unsigned K>
__global__ void kbest_09_spare_slot(const float* x, float* vals, int* idx, unsigned rows, unsigned n) {
  unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float v[K + 1];
  int c[K + 1];
  for (unsigned t = 0; t <= K; t++) {
    v[t] = -FLT_MAX;
    c[t] = -1;
  }
  const float* p = x + row * n;
  for (unsigned j = 0; j < n; j++, p++) {
    v[K] = *p;
    c[K] = (int)j;
    for (unsigned t = K; t > 0; t--)
      if (v[t - 1] < v[t]) {
        SWAP(float, v[t - 1], v[t]);
        SWAP(int, c[t - 1], c[t]);
      }
  }
  for (unsigned t = 0; t < K; t++) {
    vals[row * K + t] = v[t];
    idx[row * K + t] = c[t];
  }
}

// ties: last wins (global memory, position found by a loop with a break, then shift)
__global__ void kbest_10_global_find(const float* x, float* vals, int* idx, int rows, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* best = &vals[row * k];
  int* best_col = &idx[row * k];
  for (int t = 0; t < k; ++t) {
    best[t] = -1.0e30f;
    best_col[t] = -1;
  }
  for (int j = 0; j < n; ++j) {
    const float& v = x[row * n + j];
    int pos = -1;
    for (int t = 0; t < k; ++t) {
      if (v >= best[t]) {
        pos = t;
        break;
      }
    }
    if (pos >= 0) {
      for (int t = k - 1; t > pos; --t) {
        best[t] = best[t - 1];
        best_col[t] = best_col[t - 1];
      }
      best[pos] = v;
      best_col[pos] = j;
    }
  }
}

// ties: first wins, as the complemented column is the low half of the key (packed 64-bit keys)
__global__ void kbest_11_packed(const float* x, float* vals, int* idx, int rows, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  uint64_t keys[MAXK] = {0};
  for (int j = 0; j < n; j++) {
    uint32_t b = __float_as_uint(x[row * n + j]);
    b = (b & 0x80000000u) ? ~b : (b | 0x80000000u);
    uint64_t key = ((uint64_t)b << 32) | (uint32_t)~j;
    if (key < keys[k - 1]) continue;
    int p = k - 1;
    for (; p > 0; p--) {
      if (keys[p - 1] > key) break;
      keys[p] = keys[p - 1];
    }
    keys[p] = key;
  }
  for (int t = 0; t < k; t++) {
    uint32_t b = (uint32_t)(keys[t] >> 32);
    b = (b & 0x80000000u) ? (b & 0x7fffffffu) : ~b;
    vals[row * k + t] = __uint_as_float(b);
    idx[row * k + t] = (int)~(uint32_t)keys[t];
  }
}

// ties: first wins (global memory; only columns are kept, values looked up; columns walked downwards)
__global__ void kbest_12_global_cols(const float* x, float* vals, int* idx, int rows, int n, int k) {
  long row = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* r = x + row * n;
  int* top = idx + row * k;
  int cnt = 0;
  for (int j = n - 1; j >= 0; --j) {
    if (cnt == k && r[j] < r[top[k - 1]]) continue;
    int p = (cnt == k) ? k - 1 : cnt;
    while (p > 0 && !(r[top[p - 1]] > r[j])) {
      top[p] = top[p - 1];
      p--;
    }
    top[p] = j;
    if (cnt != k) ++cnt;
  }
  for (int t = 0; t < k; t++) vals[row * k + t] = r[top[t]];
}

static const int R = 96, N = 200, K = 8;

static uint32_t seed = 12345u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

int main() {
  std::vector<float> h(R * N);
  for (auto& v : h) v = ((int)(lcg() % 160) - 100) * 0.25f;
  std::vector<float> rv[2] = {std::vector<float>(R * K), std::vector<float>(R * K)};
  std::vector<int> ri[2] = {std::vector<int>(R * K), std::vector<int>(R * K)};
  for (int r = 0; r < R; r++)
    for (int last = 0; last < 2; last++) {
      std::vector<int> o(N);
      for (int j = 0; j < N; j++) o[j] = j;
      const float* p = &h[r * N];
      std::sort(o.begin(), o.end(), [&](int a, int b) {
        if (p[a] != p[b]) return p[a] > p[b];
        return last ? a > b : a < b;
      });
      for (int t = 0; t < K; t++) {
        rv[last][r * K + t] = p[o[t]];
        ri[last][r * K + t] = o[t];
      }
    }
  float *x, *vals;
  int* idx;
  cudaMalloc((void**)&x, R * N * sizeof(float));
  cudaMalloc((void**)&vals, R * K * sizeof(float));
  cudaMalloc((void**)&idx, R * K * sizeof(int));
  cudaMemcpy(x, h.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  int bad = 0;
  auto reset = [&] {
    cudaMemset(vals, 0xff, R * K * sizeof(float));
    cudaMemset(idx, 0xff, R * K * sizeof(int));
  };
  auto check = [&](const char* name, int last, bool strided) {
    std::vector<float> v(R * K);
    std::vector<int> i(R * K);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(v.data(), vals, R * K * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(i.data(), idx, R * K * sizeof(int), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++)
      for (int t = 0; t < K; t++) {
        int at = strided ? t * R + r : r * K + t;
        if (!(v[at] == rv[last][r * K + t]) || i[at] != ri[last][r * K + t]) ok = false;
      }
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (R + B - 1) / B;
  reset(); kbest_01_shift_for<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_01_shift_for", 0, false);
  reset(); kbest_02_global_while<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_02_global_while", 0, false);
  reset(); kbest_03_global_bubble<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_03_global_bubble", 0, false);
  reset(); kbest_04_find_then_shift<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_04_find_then_shift", 0, false);
  reset(); kbest_05_global_count<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_05_global_count", 0, false);
  reset(); kbest_06_carry<K><<<G, B>>>(x, vals, idx, R, N); check("kbest_06_carry", 0, false);
  reset(); kbest_07_struct_push<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_07_struct_push", 0, false);
  reset(); kbest_08_global_strided<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_08_global_strided", 0, true);
  reset(); kbest_09_spare_slot<K><<<G, B>>>(x, vals, idx, R, N); check("kbest_09_spare_slot", 0, false);
  reset(); kbest_10_global_find<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_10_global_find", 1, false);
  reset(); kbest_11_packed<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_11_packed", 0, false);
  reset(); kbest_12_global_cols<<<G, B>>>(x, vals, idx, R, N, K); check("kbest_12_global_cols", 0, false);
  cudaFree(x);
  cudaFree(vals);
  cudaFree(idx);
  return bad ? 1 : 0;
}
