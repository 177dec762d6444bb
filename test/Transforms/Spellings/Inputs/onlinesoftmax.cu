// Running maximum and rescaled sum of exponentials in one pass over every row; then the softmax
// of the row, or its log-sum-exp. Twelve spellings.
#include <cuda_runtime.h>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// softmax (the textbook form, unconditional rescale)
__global__ void osm_01_textbook(const float* x, float* y, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float m = -INFINITY;
  float d = 0.0f;
  for (int j = 0; j < n; j++) {
    float v = x[row * n + j];
    float m_new = fmaxf(m, v);
    d = d * expf(m - m_new) + expf(v - m_new);
    m = m_new;
  }
  for (int j = 0; j < n; j++) y[row * n + j] = expf(x[row * n + j] - m) / d;
}

// softmax (if / else: rescale only when the maximum grows)
__global__ void osm_02_if_else(const float* x, float* y, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float maxval = -FLT_MAX;
  float sum = 0.f;
  for (int j = 0; j < n; ++j) {
    float v = x[row * n + j];
    if (v > maxval) {
      sum = sum * expf(maxval - v) + 1.0f;
      maxval = v;
    } else {
      sum += expf(v - maxval);
    }
  }
  const float inv = 1.0f / sum;
  for (int j = 0; j < n; ++j) y[row * n + j] = expf(x[row * n + j] - maxval) * inv;
}

// log-sum-exp (peeled first element, pointer walked)
__global__ void osm_03_lse_peeled(const float* x, float* lse, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    const float* p = x + (size_t)row * n;
    const float* const end = p + n;
    float mx = *p++;
    float s = 1.0f;
    while (p < end) {
      const float old = mx;
      mx = fmaxf(old, *p);
      s *= expf(old - mx);
      s += expf(*p - mx);
      ++p;
    }
    lse[row] = mx + logf(s);
  }
}

// softmax (rescale first in an if, then always add)
__global__ void osm_04_rescale_then_add(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
  const unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= (unsigned)rows) return;
  const float* in = x + row * n;
  float* out = y + row * n;
  float prev_max = -INFINITY, norm = 0.f;
  for (int i = 0; i < n; i++) {
    const float cur = in[i];
    if (prev_max < cur) {
      norm *= expf(prev_max - cur);
      prev_max = cur;
    }
    norm += expf(cur - prev_max);
  }
  for (int i = 0; i < n; i++) out[i] = expf(in[i] - prev_max) / norm;
}

struct MD {
  float m;
  float d;
};

__device__ __forceinline__ MD merge(MD a, MD b) {
  const bool a_bigger = a.m > b.m;
  const MD big = a_bigger ? a : b;
  const MD small = a_bigger ? b : a;
  MD r;
  r.d = big.d + small.d * __expf(small.m - big.m);
  r.m = big.m;
  return r;
}

// softmax (pairs merged by a helper, fast exponentials)
__global__ void osm_05_pair_merge(const float* x, float* y, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  MD run;
  run.m = -FLT_MAX;
  run.d = 0.0f;
  for (int j = 0; j < n; j++) {
    MD one;
    one.m = x[row * n + j];
    one.d = 1.0f;
    run = merge(run, one);
  }
  const float scale = __fdividef(1.0f, run.d);
  for (int j = 0; j < n; j++) y[row * n + j] = __expf(x[row * n + j] - run.m) * scale;
}

// log-sum-exp (base two: log2(e) is folded into the inputs)
__global__ void osm_06_lse_base2(const float* x, float* lse, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float kLog2e = 1.4426950408889634f;
  const float kLn2 = 0.6931471805599453f;
  float m2 = -INFINITY, l = 0.0f;
  for (int j = 0; j < n; ++j) {
    const float s = x[row * n + j] * kLog2e;
    const float mn = max(m2, s);
    const float alpha = exp2f(m2 - mn);
    const float p = exp2f(s - mn);
    l = fmaf(l, alpha, p);
    m2 = mn;
  }
  lse[row] = (m2 + log2f(l)) * kLn2;
}

// log-sum-exp (state kept in the outputs)
__global__ void osm_07_lse_global_state(const float* x, float* mx, float* lse, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  mx[row] = x[row * n];
  lse[row] = 1.0f;
  for (int j = 1; j < n; j++) {
    float v = x[row * n + j];
    if (v <= mx[row]) {
      lse[row] += expf(v - mx[row]);
      continue;
    }
    lse[row] = 1.0f + lse[row] * expf(mx[row] - v);
    mx[row] = v;
  }
  lse[row] = logf(lse[row]) + mx[row];
}

// softmax (ternaries, the columns walked downwards by a while loop)
__global__ void osm_08_downwards(const float* x, float* y, int rows, int n) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += blockDim.x * gridDim.x) {
    float m = -1e30f, z = 0.0f;
    int j = n - 1;
    while (j >= 0) {
      const float v = x[row * n + j];
      const bool up = v > m;
      const float e = expf(up ? m - v : v - m);
      z = up ? z * e + 1.0f : z + e;
      m = up ? v : m;
      --j;
    }
    for (j = 0; j < n; ++j) y[row * n + j] = expf(x[row * n + j] - m) / z;
  }
}

template <typename T>
class OnlineSoftmax {
 public:
  __device__ OnlineSoftmax() : max_(-INFINITY), sum_(0) {}
  __device__ void add(const T& v) {
    const T before = max_;
    max_ = before < v ? v : before;
    sum_ = sum_ * exp(before - max_) + exp(v - max_);
  }
  __device__ T operator()(T v) const { return exp(v - max_) / sum_; }

 private:
  T max_, sum_;
};

// softmax (a class template with the state inside, in double)
template <typename Acc>
__global__ void osm_09_class(const float* x, float* y, int rows, int n) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  OnlineSoftmax<Acc> acc;
  for (int64_t j = 0; j < n; j++) acc.add(static_cast<Acc>(x[row * n + j]));
  for (int64_t j = 0; j < n; j++) y[row * n + j] = static_cast<float>(acc(x[row * n + j]));
}

#define STEP(v)                            \
  {                                        \
    const float hi_ = fmaxf(big, (v));     \
    const float lo_ = fminf(big, (v));     \
    const float e_ = expf(lo_ - hi_);      \
    tot = (v) > big ? tot * e_ + 1.f       \
                    : tot + e_;            \
    big = hi_;                             \
  }

// softmax (a macro with one exponential; x and y are stored by columns)
__global__ void osm_10_macro_cols(const float* xt, float* yt, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float big = xt[row], tot = 1.f;
  for (int at = row + rows; at < n * rows; at += rows) STEP(xt[at])
  for (int at = row; at < n * rows; at += rows) yt[at] = expf(xt[at] - big) / tot;
}

// softmax (lambda, nothing to rescale on the first one by a guard against -inf)
__global__ void osm_11_lambda_guard(const float* x, float* y, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float m = -INFINITY, s = 0.f;
  auto feed = [&m, &s](float v) {
    float m_prev = m;
    m = fmaxf(m, v);
    float corr = m_prev == -INFINITY ? 0.f : expf(m_prev - m);
    s = corr * s;
    s = s + expf(v - m);
  };
  for (auto p = x + row * n, e = p + n; p != e; ++p) feed(*p);
  for (int j = 0; j < n; j++) y[row * n + j] = expf(x[row * n + j] - m) / s;
}

// log-sum-exp (do loop; scale and term are chosen first, one update after the if)
__global__ void osm_12_lse_do(const float* x, float* lse, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float mm = -FLT_MAX, ss = 0.0f;
  unsigned left = n;
  const float* src = &x[row * n];
  do {
    float v = *src++;
    float scale = 1.0f, term = 1.0f;
    if (v > mm) {
      scale = expf(mm - v);
      mm = v;
    } else {
      term = expf(v - mm);
    }
    ss = ss * scale + term;
  } while (--left);
  lse[row] = logf(ss) + mm;
}

static const int R = 96, N = 200;

static uint32_t seed = 4242u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

int main() {
  std::vector<float> h(R * N), ht(R * N);
  std::vector<double> sm(R * N), ls(R);
  for (int r = 0; r < R; r++)
    for (int j = 0; j < N; j++) {
      float v = ((int)(lcg() % 200) - 100) * 0.0625f;
      h[r * N + j] = v;
      ht[j * R + r] = v;
    }
  for (int r = 0; r < R; r++) {
    double m = -1e300, s = 0;
    for (int j = 0; j < N; j++) m = std::fmax(m, h[r * N + j]);
    for (int j = 0; j < N; j++) s += std::exp(h[r * N + j] - m);
    for (int j = 0; j < N; j++) sm[r * N + j] = std::exp(h[r * N + j] - m) / s;
    ls[r] = m + std::log(s);
  }
  float *x, *xt, *y, *z;
  cudaMalloc((void**)&x, R * N * sizeof(float));
  cudaMalloc((void**)&xt, R * N * sizeof(float));
  cudaMalloc((void**)&y, R * N * sizeof(float));
  cudaMalloc((void**)&z, R * sizeof(float));
  cudaMemcpy(x, h.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(xt, ht.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  int bad = 0;
  auto reset = [&] {
    cudaMemset(y, 0xff, R * N * sizeof(float));
    cudaMemset(z, 0xff, R * sizeof(float));
  };
  auto report = [&](const char* name, bool ok) {
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  auto check_softmax = [&](const char* name, bool cols) {
    std::vector<float> v(R * N);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(v.data(), y, R * N * sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++)
      for (int j = 0; j < N; j++) {
        double got = v[cols ? j * R + r : r * N + j], want = sm[r * N + j];
        if (!(std::fabs(got - want) <= 1e-7 + 2e-5 * want)) ok = false;
      }
    report(name, ok);
  };
  auto check_lse = [&](const char* name) {
    std::vector<float> v(R);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(v.data(), z, R * sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++)
      if (!(std::fabs(v[r] - ls[r]) <= 2e-5 * (1 + std::fabs(ls[r])))) ok = false;
    report(name, ok);
  };
  const int B = 64, G = (R + B - 1) / B;
  reset(); osm_01_textbook<<<G, B>>>(x, y, R, N); check_softmax("osm_01_textbook", false);
  reset(); osm_02_if_else<<<G, B>>>(x, y, R, N); check_softmax("osm_02_if_else", false);
  reset(); osm_03_lse_peeled<<<G, B>>>(x, z, R, N); check_lse("osm_03_lse_peeled");
  reset(); osm_04_rescale_then_add<<<G, B>>>(x, y, R, N); check_softmax("osm_04_rescale_then_add", false);
  reset(); osm_05_pair_merge<<<G, B>>>(x, y, R, N); check_softmax("osm_05_pair_merge", false);
  reset(); osm_06_lse_base2<<<G, B>>>(x, z, R, N); check_lse("osm_06_lse_base2");
  reset(); osm_07_lse_global_state<<<G, B>>>(x, y, z, R, N); check_lse("osm_07_lse_global_state");
  reset(); osm_08_downwards<<<G, B>>>(x, y, R, N); check_softmax("osm_08_downwards", false);
  reset(); osm_09_class<double><<<G, B>>>(x, y, R, N); check_softmax("osm_09_class", false);
  reset(); osm_10_macro_cols<<<G, B>>>(xt, y, R, N); check_softmax("osm_10_macro_cols", true);
  reset(); osm_11_lambda_guard<<<G, B>>>(x, y, R, N); check_softmax("osm_11_lambda_guard", false);
  reset(); osm_12_lse_do<<<G, B>>>(x, z, R, N); check_lse("osm_12_lse_do");
  cudaFree(x);
  cudaFree(xt);
  cudaFree(y);
  cudaFree(z);
  return bad ? 1 : 0;
}
