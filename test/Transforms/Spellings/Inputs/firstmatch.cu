// Index of the first element of every row that exceeds a threshold. Twelve spellings.
#include <cuda_runtime.h>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// -1 if none (break)
__global__ void first_01_break(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int at = -1;
  for (int j = 0; j < n; j++) {
    if (x[row * n + j] > t) {
      at = j;
      break;
    }
  }
  out[row] = at;
}

// -1 if none (a flag, the loop runs to the end)
__global__ void first_02_flag(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  bool found = false;
  int where = -1;
  for (int j = 0; j < n; ++j) {
    if (!found && x[row * n + j] > t) {
      found = true;
      where = j;
    }
  }
  out[row] = where;
}

// n if none (minimum of the matching indices)
__global__ void first_03_min(const float* __restrict__ x, int* __restrict__ out, int rows, int n, float t) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < (unsigned)rows) {
    int first = n;
    for (int j = 0; j < n; ++j)
      if (t < x[row * n + j]) first = min(first, j);
    out[row] = first;
  }
}

// n if none (all in the condition of a while)
__global__ void first_04_while_cond(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* r = x + (size_t)row * n;
  int j = 0;
  while (j < n && !(r[j] > t)) ++j;
  out[row] = j;
}

// -1 if none (goes down and overwrites)
__global__ void first_05_descending(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int idx = -1;
  for (int j = n - 1; j >= 0; --j)
    if (x[row * n + j] > t) idx = j;
  out[row] = idx;
}

// -1 if none (returns from within the loop, early continue)
__global__ void first_06_return(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  for (int j = 0; j < n; j++) {
    if (x[row * n + j] <= t) continue;
    out[row] = j;
    return;
  }
  out[row] = -1;
}

// -1 if none (answer kept in the output, set once)
__global__ void first_07_global_state(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  out[row] = -1;
  for (int j = 0; j < n; j++)
    if (x[row * n + j] > t)
      if (out[row] < 0) out[row] = j;
}

// n if none (ternary chain over unsigned indices, x stored by columns)
__global__ void first_08_ternary_cols(const float* xt, int* out, unsigned rows, unsigned n, float t) {
  for (unsigned row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += blockDim.x * gridDim.x) {
    unsigned first = UINT_MAX;
    for (unsigned j = 0; j < n; j++) {
      const bool hit = xt[j * rows + row] > t;
      first = first != UINT_MAX ? first : hit ? j : UINT_MAX;
    }
    out[row] = first == UINT_MAX ? (int)n : (int)first;
  }
}

template <typename T, typename Pred>
__device__ const T* find_if(const T* first, const T* last, Pred pred) {
  for (; first != last; ++first)
    if (pred(*first)) return first;
  return last;
}

// n if none (a helper like std::find_if with a lambda)
__global__ void first_09_find_if(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const auto begin = x + (int64_t)row * n;
  const auto hit = find_if(begin, begin + n, [=](const float& v) { return v > t; });
  out[row] = static_cast<int>(hit - begin);
}

// -1 if none (flag in the loop condition, do loop)
__global__ void first_10_do_flag(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int j = -1;
  bool searching = true;
  do {
    ++j;
    if (x[row * n + j] > t) searching = false;
  } while (searching && j + 1 < n);
  out[row] = searching ? -1 : j;
}

struct Hit {
  int index;
  float value;
  bool valid;
};

#define CONSIDER(h, v, j, t)           \
  do {                                 \
    if ((h).valid) break;              \
    if ((v) > (t)) {                   \
      (h).valid = true;                \
      (h).index = (j);                 \
      (h).value = (v);                 \
    }                                  \
  } while (0)

// -1 if none (struct and macro; the value of the match is written as well, or the threshold)
__global__ void first_11_struct_value(const float* x, int* out, float* val, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  Hit h{-1, t, false};
  for (int j = 0; j < n; j++) CONSIDER(h, x[row * n + j], j, t);
  out[row] = h.index;
  val[row] = h.value;
}

// n if none (counts how many come before the first match)
__global__ void first_12_count_before(const float* x, int* out, int rows, int n, float t) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int before = 0;
  int alive = 1;
  const float* p = &x[row * n];
  for (int left = n; left > 0; --left, ++p) {
    alive &= !(*p > t);
    before += alive;
  }
  out[row] = before;
}

static const int R = 96, N = 200;
static const float T = 40.0f;

static uint32_t seed = 8080u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

int main() {
  std::vector<float> h(R * N), ht(R * N);
  std::vector<int> ref(R, N);
  for (int r = 0; r < R; r++)
    for (int j = 0; j < N; j++) {
      // rows of three kinds: many matches, few, none
      int span = r % 4 == 0 ? 81 : r % 4 == 1 ? 200 : 83;
      float v = (float)(lcg() % span) * 0.5f;
      if (r == 6) v = j == 0 ? 50.0f : 1.0f;
      if (r == 7) v = j == N - 1 ? 50.0f : 40.0f;
      h[r * N + j] = v;
      ht[j * R + r] = v;
      if (v > T && ref[r] == N) ref[r] = j;
    }
  float *x, *xt, *val;
  int* out;
  cudaMalloc((void**)&x, R * N * sizeof(float));
  cudaMalloc((void**)&xt, R * N * sizeof(float));
  cudaMalloc((void**)&val, R * sizeof(float));
  cudaMalloc((void**)&out, R * sizeof(int));
  cudaMemcpy(x, h.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(xt, ht.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  int bad = 0;
  auto reset = [&] {
    cudaMemset(out, 0xee, R * sizeof(int));
    cudaMemset(val, 0xff, R * sizeof(float));
  };
  auto check = [&](const char* name, int none, bool with_value) {
    std::vector<int> got(R);
    std::vector<float> gv(R);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(got.data(), out, R * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(gv.data(), val, R * sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++) {
      if (got[r] != (ref[r] == N ? none : ref[r])) ok = false;
      if (with_value && gv[r] != (ref[r] == N ? T : h[r * N + ref[r]])) ok = false;
    }
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (R + B - 1) / B;
  reset(); first_01_break<<<G, B>>>(x, out, R, N, T); check("first_01_break", -1, false);
  reset(); first_02_flag<<<G, B>>>(x, out, R, N, T); check("first_02_flag", -1, false);
  reset(); first_03_min<<<G, B>>>(x, out, R, N, T); check("first_03_min", N, false);
  reset(); first_04_while_cond<<<G, B>>>(x, out, R, N, T); check("first_04_while_cond", N, false);
  reset(); first_05_descending<<<G, B>>>(x, out, R, N, T); check("first_05_descending", -1, false);
  reset(); first_06_return<<<G, B>>>(x, out, R, N, T); check("first_06_return", -1, false);
  reset(); first_07_global_state<<<G, B>>>(x, out, R, N, T); check("first_07_global_state", -1, false);
  reset(); first_08_ternary_cols<<<G, B>>>(xt, out, R, N, T); check("first_08_ternary_cols", N, false);
  reset(); first_09_find_if<<<G, B>>>(x, out, R, N, T); check("first_09_find_if", N, false);
  reset(); first_10_do_flag<<<G, B>>>(x, out, R, N, T); check("first_10_do_flag", -1, false);
  reset(); first_11_struct_value<<<G, B>>>(x, out, val, R, N, T); check("first_11_struct_value", -1, true);
  reset(); first_12_count_before<<<G, B>>>(x, out, R, N, T); check("first_12_count_before", N, false);
  cudaFree(x);
  cudaFree(xt);
  cudaFree(val);
  cudaFree(out);
  return bad ? 1 : 0;
}
