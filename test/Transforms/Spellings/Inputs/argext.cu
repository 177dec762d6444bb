// Index and value of the maximum (or minimum) of every row. Twelve spellings.
#include <cuda_runtime.h>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// ties: first wins
__global__ void argmax_01_plain(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float best = -INFINITY;
  int bi = -1;
  for (int j = 0; j < n; j++) {
    float v = x[row * n + j];
    if (v > best) {
      best = v;
      bi = j;
    }
  }
  val[row] = best;
  idx[row] = bi;
}

// ties: first wins (peeled, only the index is kept)
__global__ void argmax_02_index_only(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* a = x + row * n;
  int m = 0;
  for (int j = 1; j < n; ++j)
    if (a[m] < a[j]) m = j;
  idx[row] = m;
  val[row] = a[m];
}

// ties: first wins (ternaries, peeled)
__global__ void argmin_03_ternary(const float* __restrict__ x, float* __restrict__ val, int* __restrict__ idx,
                                  int rows, int n) {
  const unsigned row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row < (unsigned)rows) {
    const float* r = x + (size_t)row * n;
    float lo = r[0];
    int where = 0;
    for (int j = 1; j != n; j++) {
      const float v = r[j];
      where = v < lo ? j : where;
      lo = v < lo ? v : lo;
    }
    val[row] = lo;
    idx[row] = where;
  }
}

// ties: last wins (>= in a while loop over a pointer)
__global__ void argmax_04_pointer(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* begin = &x[row * n];
  const float* end = begin + n;
  const float* best = begin;
  const float* p = begin + 1;
  while (p != end) {
    if (*p >= *best) best = p;
    ++p;
  }
  val[row] = *best;
  idx[row] = (int)(best - begin);
}

struct MaxLoc {
  float v;
  int i;
};

__device__ __forceinline__ MaxLoc better(MaxLoc a, MaxLoc b) {
  if (b.v > a.v) return b;
  return a;
}

// ties: first wins (struct folded by a helper)
__global__ void argmax_05_struct(const float* x, float* val, int* idx, int rows, int n) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += blockDim.x * gridDim.x) {
    MaxLoc acc = {-FLT_MAX, 0};
    for (int j = 0; j < n; ++j) acc = better(acc, MaxLoc{x[row * n + j], j});
    val[row] = acc.v;
    idx[row] = acc.i;
  }
}

// ties: last wins, as the loop goes down with a strict compare
__global__ void argmax_06_downwards(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int j = n;
  float best = 0.0f;
  int at = -1;
  while (j-- > 0) {
    if (at < 0 || x[row * n + j] > best) {
      at = j;
      best = x[row * n + j];
    }
  }
  val[row] = best;
  idx[row] = at;
}

// ties: first wins (state kept in the output, early continue)
__global__ void argmin_07_global_state(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  val[row] = FLT_MAX;
  idx[row] = -1;
  for (int j = 0; j < n; j++) {
    if (x[row * n + j] >= val[row]) continue;
    val[row] = x[row * n + j];
    idx[row] = j;
  }
}

// ties: first wins (flag for the first, do loop, x is stored by columns)
__global__ void argmax_08_flag_cols(const float* xt, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  bool seen = false;
  float best;
  int arg = 0, j = 0;
  do {
    float v = xt[j * rows + row];
    if (!seen) {
      best = v;
      arg = j;
      seen = true;
    } else if (!(v <= best)) {
      best = v;
      arg = j;
    }
    j++;
  } while (j < n);
  val[row] = best;
  idx[row] = arg;
}

// ties: last wins (fmaxf first, then compare with the new maximum)
__global__ void argmax_09_fmaxf(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float m = -INFINITY;
  int at = 0;
  for (int64_t j = 0; j < n; ++j) {
    float v = x[(int64_t)row * n + j];
    m = fmaxf(m, v);
    if (v == m) at = (int)j;
  }
  val[row] = m;
  idx[row] = at;
}

template <typename T, typename Cmp>
__device__ int arg_of(const T* a, int n, T& out, Cmp cmp) {
  int w = 0;
  T b = a[0];
  for (int j = 1; j < n; ++j) {
    const T& c = a[j];
    if (cmp(c, b)) {
      b = c;
      w = j;
    }
  }
  out = b;
  return w;
}

// ties: first wins (template with a lambda for the order)
__global__ void argmin_10_lambda(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  auto less = [](float a, float b) { return a < b; };
  float v;
  idx[row] = arg_of(x + row * n, n, v, less);
  val[row] = v;
}

// ties: first wins, written out: a smaller index wins among equals (loop goes down)
__global__ void argmax_11_tie_rule(const float* x, float* val, int* idx, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float best = -INFINITY;
  int bi = INT_MAX;
  for (int j = n - 1; j >= 0; j--) {
    const float v = x[row * n + j];
    if (v > best || (v == best && j < bi)) {
      best = v;
      bi = j;
    }
  }
  val[row] = best;
  idx[row] = bi;
}

#define KEEP_MAX(v, j, bv, bj)        \
  {                                   \
    const bool take_ = (bv) < (v);    \
    (bj) = take_ ? (j) : (bj);        \
    (bv) = max((bv), (v));            \
  }

// ties: first wins (macro, running offset as size_t)
__global__ void argmax_12_macro(const float* x, float* val, int* idx, int rows, int n) {
  const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (!(row < rows)) return;
  size_t off = (size_t)row * (size_t)n;
  float bv = x[off++];
  unsigned bj = 0;
  for (unsigned j = 1; j < (unsigned)n; ++j, ++off) {
    const float v = x[off];
    KEEP_MAX(v, j, bv, bj)
  }
  val[row] = bv;
  idx[row] = (int)bj;
}

static const int R = 96, N = 200;

static uint32_t seed = 777u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

int main() {
  std::vector<float> h(R * N), ht(R * N);
  for (int r = 0; r < R; r++)
    for (int j = 0; j < N; j++) {
      float v = ((int)(lcg() % 50) - (r % 3 == 0 ? 60 : 25)) * 0.5f;
      h[r * N + j] = v;
      ht[j * R + r] = v;
    }
  // [0] max first, [1] max last, [2] min first
  std::vector<int> ref[3];
  for (auto& v : ref) v.assign(R, 0);
  for (int r = 0; r < R; r++)
    for (int j = 1; j < N; j++) {
      const float* p = &h[r * N];
      if (p[j] > p[ref[0][r]]) ref[0][r] = j;
      if (p[j] >= p[ref[1][r]]) ref[1][r] = j;
      if (p[j] < p[ref[2][r]]) ref[2][r] = j;
    }
  float *x, *xt, *val;
  int* idx;
  cudaMalloc((void**)&x, R * N * sizeof(float));
  cudaMalloc((void**)&xt, R * N * sizeof(float));
  cudaMalloc((void**)&val, R * sizeof(float));
  cudaMalloc((void**)&idx, R * sizeof(int));
  cudaMemcpy(x, h.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(xt, ht.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  int bad = 0;
  auto reset = [&] {
    cudaMemset(val, 0xff, R * sizeof(float));
    cudaMemset(idx, 0xff, R * sizeof(int));
  };
  auto check = [&](const char* name, int which) {
    std::vector<float> v(R);
    std::vector<int> i(R);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(v.data(), val, R * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(i.data(), idx, R * sizeof(int), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++)
      if (i[r] != ref[which][r] || !(v[r] == h[r * N + ref[which][r]])) ok = false;
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (R + B - 1) / B;
  reset(); argmax_01_plain<<<G, B>>>(x, val, idx, R, N); check("argmax_01_plain", 0);
  reset(); argmax_02_index_only<<<G, B>>>(x, val, idx, R, N); check("argmax_02_index_only", 0);
  reset(); argmin_03_ternary<<<G, B>>>(x, val, idx, R, N); check("argmin_03_ternary", 2);
  reset(); argmax_04_pointer<<<G, B>>>(x, val, idx, R, N); check("argmax_04_pointer", 1);
  reset(); argmax_05_struct<<<G, B>>>(x, val, idx, R, N); check("argmax_05_struct", 0);
  reset(); argmax_06_downwards<<<G, B>>>(x, val, idx, R, N); check("argmax_06_downwards", 1);
  reset(); argmin_07_global_state<<<G, B>>>(x, val, idx, R, N); check("argmin_07_global_state", 2);
  reset(); argmax_08_flag_cols<<<G, B>>>(xt, val, idx, R, N); check("argmax_08_flag_cols", 0);
  reset(); argmax_09_fmaxf<<<G, B>>>(x, val, idx, R, N); check("argmax_09_fmaxf", 1);
  reset(); argmin_10_lambda<<<G, B>>>(x, val, idx, R, N); check("argmin_10_lambda", 2);
  reset(); argmax_11_tie_rule<<<G, B>>>(x, val, idx, R, N); check("argmax_11_tie_rule", 0);
  reset(); argmax_12_macro<<<G, B>>>(x, val, idx, R, N); check("argmax_12_macro", 0);
  cudaFree(x);
  cudaFree(xt);
  cudaFree(val);
  cudaFree(idx);
  return bad ? 1 : 0;
}
