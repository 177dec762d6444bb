// Mean and M2 (or a variance) of every row by Welford's update. Twelve spellings.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// mean, M2
__global__ void welford_01_textbook(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float mean = 0.0f;
  float m2 = 0.0f;
  int count = 0;
  for (int j = 0; j < n; j++) {
    float v = x[row * n + j];
    count++;
    float delta = v - mean;
    mean += delta / count;
    float delta2 = v - mean;
    m2 += delta * delta2;
  }
  mean_out[row] = mean;
  m2_out[row] = m2;
}

// mean, population variance (the count is the loop counter plus one)
__global__ void welford_02_counter(const float* x, float* mean_out, float* var_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float mu = 0.f, s = 0.f;
  for (int j = 0; j < n; ++j) {
    const float d = x[row * n + j] - mu;
    mu += d / (float)(j + 1);
    s += d * (x[row * n + j] - mu);
  }
  mean_out[row] = mu;
  var_out[row] = s / n;
}

// mean, sample variance (Knuth: first element peeled, old and new mean)
__global__ void welford_03_knuth(const float* x, float* mean_out, float* var_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    const float* a = x + (size_t)row * n;
    float old_m = a[0], old_s = 0.0f, new_m = a[0], new_s = 0.0f;
    for (int k = 2; k <= n; k++) {
      new_m = old_m + (a[k - 1] - old_m) / k;
      new_s = old_s + (a[k - 1] - old_m) * (a[k - 1] - new_m);
      old_m = new_m;
      old_s = new_s;
    }
    mean_out[row] = new_m;
    var_out[row] = n > 1 ? new_s / (n - 1) : 0.0f;
  }
}

struct WelfordState {
  float mean;
  float m2;
  float n;
};

__device__ void welford_push(WelfordState* w, float v) {
  w->n += 1.0f;
  float d = v - w->mean;
  w->mean = w->mean + d / w->n;
  w->m2 = w->m2 + d * (v - w->mean);
}

// mean, M2 (struct by pointer, float count)
__global__ void welford_04_struct(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {
    WelfordState w = {0.f, 0.f, 0.f};
    for (int j = 0; j < n; ++j) welford_push(&w, x[row * n + j]);
    mean_out[row] = w.mean;
    m2_out[row] = w.m2;
  }
}

// mean, M2 (state kept in the outputs)
__global__ void welford_05_global_state(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  mean_out[row] = 0.0f;
  m2_out[row] = 0.0f;
  for (int j = 0; j < n; j++) {
    float before = x[row * n + j] - mean_out[row];
    mean_out[row] += before / (j + 1);
    float after = x[row * n + j] - mean_out[row];
    m2_out[row] += before * after;
  }
}

// mean, M2 (M2 by delta^2 * (c - 1) / c, before the mean moves)
__global__ void welford_06_factor(const float* __restrict__ x, float* __restrict__ mean_out,
                                  float* __restrict__ m2_out, int rows, int n) {
  const unsigned row = threadIdx.x + blockIdx.x * blockDim.x;
  if (row >= (unsigned)rows) return;
  float mean = 0.f, m2 = 0.f;
  for (unsigned c = 1; c <= (unsigned)n; ++c) {
    const float v = x[row * n + c - 1];
    const float delta = v - mean;
    const float r = 1.0f / (float)c;
    m2 += delta * delta * (float)(c - 1) * r;
    mean += delta * r;
  }
  mean_out[row] = mean;
  m2_out[row] = m2;
}

// mean, M2 (double accumulators, pointer walked by a while loop)
__global__ void welford_07_double_ptr(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* p = x + (int64_t)row * n;
  const float* stop = p + n;
  double avg = 0.0, acc = 0.0;
  long long seen = 0;
  while (p != stop) {
    const double v = *p++;
    const double d1 = v - avg;
    avg += d1 / ++seen;
    acc += d1 * (v - avg);
  }
  mean_out[row] = (float)avg;
  m2_out[row] = (float)acc;
}

// mean, M2 (counts down; same set of elements, other order)
__global__ void welford_08_downwards(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float m = 0, q = 0, c = 0;
  for (int j = n; j-- > 0;) {
    float v = x[row * n + j];
    float next = m + (v - m) / (c += 1.0f);
    q = q + (v - m) * (v - next);
    m = next;
  }
  mean_out[row] = m;
  m2_out[row] = q;
}

template <typename T>
struct Moments {
  T mu = T(0);
  T ss = T(0);
  int k = 0;
  __device__ Moments& operator+=(const T& v) {
    const T d = v - mu;
    mu += d / T(++k);
    ss += d * (v - mu);
    return *this;
  }
  __device__ T var() const { return k > 0 ? ss / T(k) : T(0); }
};

// mean, population variance (operator += of a class template)
__global__ void welford_09_operator(const float* x, float* mean_out, float* var_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  Moments<float> acc;
  for (int j = 0; j < n; j++) acc += x[row * n + j];
  mean_out[row] = acc.mu;
  var_out[row] = acc.var();
}

// mean, M2 (lambda and fmaf, do loop)
__global__ void welford_10_lambda_fma(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float mean = 0.f, m2 = 0.f;
  int j = 0;
  auto step = [&](float v) {
    const float delta = v - mean;
    mean = fmaf(delta, __frcp_rn((float)(j + 1)), mean);
    m2 = fmaf(delta, v - mean, m2);
  };
  do {
    step(x[row * n + j]);
  } while (++j < n);
  mean_out[row] = mean;
  m2_out[row] = m2;
}

#define WELFORD(v, cnt, mean, m2)          \
  do {                                     \
    const float d_ = (v) - (mean);         \
    (cnt)++;                               \
    (mean) += d_ / (cnt);                  \
    (m2) += d_ * ((v) - (mean));           \
  } while (0)

// mean, sample variance of the non-negative elements only (macro, continue, x stored by columns)
__global__ void welford_11_masked_cols(const float* xt, float* mean_out, float* var_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int cnt = 0;
  float mean = 0.f, m2 = 0.f;
  for (int j = 0; j < n; j++) {
    float v = xt[j * rows + row];
    if (v < 0.0f) continue;
    WELFORD(v, cnt, mean, m2);
  }
  mean_out[row] = mean;
  var_out[row] = cnt < 2 ? 0.f : m2 / (cnt - 1);
}

// mean, M2 (state in a three-element local array, merged with a one-element state)
__global__ void welford_12_merge_array(const float* x, float* mean_out, float* m2_out, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float s[3] = {x[row * n], 0.0f, 1.0f};
  for (int j = 1; j < n; ++j) {
    const float mean_b = x[row * n + j], m2_b = 0.0f, n_b = 1.0f;
    const float delta = mean_b - s[0];
    const float total = s[2] + n_b;
    s[0] = s[0] + delta * n_b / total;
    s[1] = s[1] + m2_b + delta * delta * s[2] * n_b / total;
    s[2] = total;
  }
  mean_out[row] = s[0];
  m2_out[row] = s[1];
}

static const int R = 96, N = 200;

static uint32_t seed = 99u;
static uint32_t lcg() { return (seed = seed * 1664525u + 1013904223u) >> 8; }

int main() {
  std::vector<float> h(R * N), ht(R * N);
  for (int r = 0; r < R; r++)
    for (int j = 0; j < N; j++) {
      float v = ((int)(lcg() % 400) - 150) * 0.03125f;
      h[r * N + j] = v;
      ht[j * R + r] = v;
    }
  // kinds: 0 = M2, 1 = population variance, 2 = sample variance, 3 = sample variance, non-negative only
  std::vector<double> rm[2], rs[4];
  for (auto& v : rm) v.assign(R, 0);
  for (auto& v : rs) v.assign(R, 0);
  for (int r = 0; r < R; r++)
    for (int mask = 0; mask < 2; mask++) {
      double s = 0, q = 0;
      int c = 0;
      for (int j = 0; j < N; j++)
        if (!mask || h[r * N + j] >= 0) s += h[r * N + j], c++;
      double mean = s / c;
      for (int j = 0; j < N; j++)
        if (!mask || h[r * N + j] >= 0) q += (h[r * N + j] - mean) * (h[r * N + j] - mean);
      rm[mask][r] = mean;
      if (mask) {
        rs[3][r] = q / (c - 1);
      } else {
        rs[0][r] = q;
        rs[1][r] = q / c;
        rs[2][r] = q / (c - 1);
      }
    }
  float *x, *xt, *a, *b;
  cudaMalloc((void**)&x, R * N * sizeof(float));
  cudaMalloc((void**)&xt, R * N * sizeof(float));
  cudaMalloc((void**)&a, R * sizeof(float));
  cudaMalloc((void**)&b, R * sizeof(float));
  cudaMemcpy(x, h.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(xt, ht.data(), R * N * sizeof(float), cudaMemcpyHostToDevice);
  int bad = 0;
  auto reset = [&] {
    cudaMemset(a, 0xff, R * sizeof(float));
    cudaMemset(b, 0xff, R * sizeof(float));
  };
  auto check = [&](const char* name, int kind) {
    std::vector<float> m(R), s(R);
    bool ok = cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(m.data(), a, R * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(s.data(), b, R * sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < R; r++) {
      double wm = rm[kind == 3][r], ws = rs[kind][r];
      if (!(std::fabs(m[r] - wm) <= 1e-4 * (1 + std::fabs(wm)))) ok = false;
      if (!(std::fabs(s[r] - ws) <= 1e-4 * (1 + std::fabs(ws)))) ok = false;
    }
    printf("%s %s\n", name, ok ? "ok" : "WRONG");
    if (!ok) bad++;
  };
  const int B = 64, G = (R + B - 1) / B;
  reset(); welford_01_textbook<<<G, B>>>(x, a, b, R, N); check("welford_01_textbook", 0);
  reset(); welford_02_counter<<<G, B>>>(x, a, b, R, N); check("welford_02_counter", 1);
  reset(); welford_03_knuth<<<G, B>>>(x, a, b, R, N); check("welford_03_knuth", 2);
  reset(); welford_04_struct<<<G, B>>>(x, a, b, R, N); check("welford_04_struct", 0);
  reset(); welford_05_global_state<<<G, B>>>(x, a, b, R, N); check("welford_05_global_state", 0);
  reset(); welford_06_factor<<<G, B>>>(x, a, b, R, N); check("welford_06_factor", 0);
  reset(); welford_07_double_ptr<<<G, B>>>(x, a, b, R, N); check("welford_07_double_ptr", 0);
  reset(); welford_08_downwards<<<G, B>>>(x, a, b, R, N); check("welford_08_downwards", 0);
  reset(); welford_09_operator<<<G, B>>>(x, a, b, R, N); check("welford_09_operator", 1);
  reset(); welford_10_lambda_fma<<<G, B>>>(x, a, b, R, N); check("welford_10_lambda_fma", 0);
  reset(); welford_11_masked_cols<<<G, B>>>(xt, a, b, R, N); check("welford_11_masked_cols", 3);
  reset(); welford_12_merge_array<<<G, B>>>(x, a, b, R, N); check("welford_12_merge_array", 0);
  cudaFree(x);
  cudaFree(xt);
  cudaFree(a);
  cudaFree(b);
  return bad ? 1 : 0;
}
