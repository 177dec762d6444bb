// Number of elements of every row that satisfy a predicate. Twelve spellings.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// how many lie in (lo, hi): one if with a joined predicate
__global__ void countif_01_joined(const float* x, int* cnt, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int c = 0;
  for (int j = 0; j < n; j++) {
    if (x[row * n + j] > lo && x[row * n + j] < hi) c++;
  }
  cnt[row] = c;
}

// the same, the truth value is added
__global__ void countif_02_add_bool(const float* __restrict__ x, int* __restrict__ cnt, int rows, int n, float lo,
                                    float hi) {
  const unsigned row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row < (unsigned)rows) {
    const float* r = x + row * n;
    int c = 0;
    for (int j = 0; j != n; ++j) c += (lo < r[j]) & (r[j] < hi);
    cnt[row] = c;
  }
}

// the same, negated conditions and early continues
__global__ void countif_03_continue(const float* x, int* cnt, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  unsigned found = 0u;
  for (size_t j = 0; j < (size_t)n; ++j) {
    const float v = x[(size_t)row * n + j];
    if (v <= lo) continue;
    if (!(v < hi)) continue;
    ++found;
  }
  cnt[row] = (int)found;
}

// the same, a ternary in a loop over a pointer that goes down
__global__ void countif_04_ternary_down(const float* x, int* cnt, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* const first = x + row * n;
  const float* p = first + n;
  int c = 0;
  while (p != first) {
    --p;
    c = (*p > lo && *p < hi) ? c + 1 : c;
  }
  cnt[row] = c;
}

// the same, the count is kept in the output; nested ifs
__global__ void countif_05_global_state(const float* x, int* cnt, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  cnt[row] = 0;
  int j = 0;
  while (j < n) {
    float v = x[row * n + j];
    if (v > lo) {
      if (hi > v) cnt[row]++;
    }
    j++;
  }
}

// the same, counted by exclusion from n
__global__ void countif_06_exclusion(const float* x, int* cnt, int rows, int n, float lo, float hi) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {
    int left = n;
    for (int j = 0; j < n; j++)
      if (x[row * n + j] <= lo || x[row * n + j] >= hi) left--;
    cnt[row] = left;
  }
}

// two counters at once (positive, negative), else if
__global__ void countif_07_two_counters(const float* x, int* pos, int* neg, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int p = 0, m = 0;
  for (int j = 0; j < n; j++) {
    const auto v = x[row * n + j];
    if (v > 0.0f)
      p++;
    else if (v < 0.0f)
      m++;
  }
  pos[row] = p;
  neg[row] = m;
}

// count and sum of those in (lo, hi)
__global__ void countif_08_count_and_sum(const float* x, int* cnt, float* sum, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float s = 0.0f;
  int c = 0;
  for (int j = 0; j < n; ++j) {
    const float v = x[row * n + j];
    const bool in = v > lo && v < hi;
    if (!in) continue;
    s += v;
    c += 1;
  }
  cnt[row] = c;
  sum[row] = s;
}

template <typename T, typename Pred>
__device__ int count_if(const T* first, const T* last, Pred pred) {
  int k = 0;
  for (; first != last; ++first)
    if (pred(*first)) ++k;
  return k;
}

// in (lo, hi): a template with a lambda
__global__ void countif_09_template(const float* x, int* cnt, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* r = x + (int64_t)row * n;
  cnt[row] = count_if(r, r + n, [lo, hi](const float& v) { return v > lo && v < hi; });
}

// how many are not below the one before: neighbours, previous one kept
__global__ void countif_10_neighbours(const float* x, int* cnt, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float prev = x[row * n];
  int ups = 0;
  for (int j = 1; j < n; j++) {
    float cur = x[row * n + j];
    if (!(cur < prev)) ups++;
    prev = cur;
  }
  cnt[row] = ups;
}

struct Stats {
  int inside;
  int outside;
  double sum;
};

#define TALLY(st, v, lo, hi)                 \
  if ((v) > (lo) && (v) < (hi)) {            \
    (st).inside++;                           \
    (st).sum += (v);                         \
  } else {                                   \
    (st).outside++;                          \
  }

// in (lo, hi) and the rest, and the sum: struct and macro; x stored by columns; do loop
__global__ void countif_11_struct_cols(const float* xt, int* in, int* out, float* sum, int rows, int n, float lo,
                                       float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  Stats st = {0, 0, 0.0};
  int j = 0;
  do {
    TALLY(st, xt[j * rows + row], lo, hi)
  } while (++j != n);
  in[row] = st.inside;
  out[row] = st.outside;
  sum[row] = (float)st.sum;
}

__device__ __forceinline__ float indicator(bool b) { return b ? 1.0f : 0.0f; }

// fraction in (lo, hi) or equal to zero: a float counter and a helper
__global__ void countif_12_float_fraction(const float* x, float* frac, int rows, int n, float lo, float hi) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float hits = 0.0f;
  for (long long j = 0, at = (long long)row * n; j < n; ++j, ++at) {
    const float v = x[at];
    hits += indicator(v == 0.0f || (v > lo && v < hi));
  }
  frac[row] = hits / n;
}

static const int R = 96, N = 200;
static const float LO = 1.5f, HI = 9.25f;

static uint32_t seed = 555u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

int main() {
  std::vector<float> h(R * N), ht(R * N);
  std::vector<double> inside(R), outside(R), sum(R), pos(R), neg(R), ups(R), frac(R);
  for (int r = 0; r < R; r++)
    for (int j = 0; j < N; j++) {
      float v = ((int)(lcg() % 100) - 50) * 0.25f + (r % 8 == 0 ? 20.0f : 0.0f);
      h[r * N + j] = v;
      ht[j * R + r] = v;
      bool in = v > LO && v < HI;
      (in ? inside : outside)[r]++;
      if (in) sum[r] += v;
      if (v > 0) pos[r]++;
      if (v < 0) neg[r]++;
      if (j > 0 && v >= h[r * N + j - 1]) ups[r]++;
      if (in || v == 0) frac[r] += 1.0 / N;
    }
  float *x, *xt, *f;
  int *a, *b;
  cudaMalloc((void**)&x, R * N * sizeof(float));
  cudaMalloc((void**)&xt, R * N * sizeof(float));
  cudaMalloc((void**)&f, R * sizeof(float));
  cudaMalloc((void**)&a, R * sizeof(int));
  cudaMalloc((void**)&b, R * sizeof(int));
  cudaMemcpy(x, h.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(xt, ht.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  int bad = 0;
  auto reset = [&] {
    cudaMemset(a, 0xff, R * sizeof(int));
    cudaMemset(b, 0xff, R * sizeof(int));
    cudaMemset(f, 0xff, R * sizeof(float));
  };
  using Ref = const std::vector<double>*;
  auto check = [&](const char* name, Ref ra, Ref rb, Ref rf) {
    std::vector<int> ga(R), gb(R);
    std::vector<float> gf(R);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(ga.data(), a, R * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(gb.data(), b, R * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(gf.data(), f, R * sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++) {
      if (ra && ga[r] != (*ra)[r]) ok = false;
      if (rb && gb[r] != (*rb)[r]) ok = false;
      if (rf && !(std::fabs(gf[r] - (*rf)[r]) <= 1e-5 * (1 + std::fabs((*rf)[r])))) ok = false;
    }
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (R + B - 1) / B;
  Ref in = &inside, no = nullptr;
  reset(); countif_01_joined<<<G, B>>>(x, a, R, N, LO, HI); check("countif_01_joined", in, no, no);
  reset(); countif_02_add_bool<<<G, B>>>(x, a, R, N, LO, HI); check("countif_02_add_bool", in, no, no);
  reset(); countif_03_continue<<<G, B>>>(x, a, R, N, LO, HI); check("countif_03_continue", in, no, no);
  reset(); countif_04_ternary_down<<<G, B>>>(x, a, R, N, LO, HI); check("countif_04_ternary_down", in, no, no);
  reset(); countif_05_global_state<<<G, B>>>(x, a, R, N, LO, HI); check("countif_05_global_state", in, no, no);
  reset(); countif_06_exclusion<<<G, B>>>(x, a, R, N, LO, HI); check("countif_06_exclusion", in, no, no);
  reset(); countif_07_two_counters<<<G, B>>>(x, a, b, R, N); check("countif_07_two_counters", &pos, &neg, no);
  reset(); countif_08_count_and_sum<<<G, B>>>(x, a, f, R, N, LO, HI); check("countif_08_count_and_sum", in, no, &sum);
  reset(); countif_09_template<<<G, B>>>(x, a, R, N, LO, HI); check("countif_09_template", in, no, no);
  reset(); countif_10_neighbours<<<G, B>>>(x, a, R, N); check("countif_10_neighbours", &ups, no, no);
  reset(); countif_11_struct_cols<<<G, B>>>(xt, a, b, f, R, N, LO, HI);
  check("countif_11_struct_cols", in, &outside, &sum);
  reset(); countif_12_float_fraction<<<G, B>>>(x, f, R, N, LO, HI); check("countif_12_float_fraction", no, no, &frac);
  cudaFree(x);
  cudaFree(xt);
  cudaFree(f);
  cudaFree(a);
  cudaFree(b);
  return bad ? 1 : 0;
}
