#include <cstdio>
#include <vector>

namespace par {
template <typename Index, typename Body> __global__ void loop(Index n, Body body) {
  Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    body(i);
}
template <typename Body> void each(size_t n, Body body) {
  if (n)
    loop<size_t><<<unsigned((n + 127) / 128), 128>>>(n, body);
}
} // namespace par

// The function is a template, and so is the class.
template <typename T> void fill(T *p, size_t n, T v) {
  par::each(n, [=] __device__(size_t i) { p[i] = v; });
}

struct Grid {
  float *cells;
  int width, height;
  void scale(float by) {
    auto own = cells;
    par::each(size_t(width) * height, [own, by] __device__(size_t i) { own[i] *= by; });
  }
};

namespace app {
// A constant is no capture. The class stands in the namespace, and what is new in that of the kernel.
static void smooth(const float *in, float *out, int width, int height) {
  constexpr int radius = 2;
  const float weight = 1.0f / ((2 * radius + 1) * (2 * radius + 1));
  par::each(size_t(width) * height, [=] __host__ __device__(size_t at) -> void {
    int x = int(at % width), y = int(at / width);
    float sum = 0;
    for (int dy = -radius; dy <= radius; ++dy)
      for (int dx = -radius; dx <= radius; ++dx) {
        int u = min(max(x + dx, 0), width - 1), v = min(max(y + dy, 0), height - 1);
        sum += in[v * width + u];
      }
    out[at] = sum * weight;
  });
}
} // namespace app

template <typename T, typename Op>
__global__ void reduceRows(const T *x, T *out, int rows, int cols, Op op) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  T acc = x[(size_t)r * cols];
  for (int c = 1; c < cols; ++c)
    acc = op(acc, x[(size_t)r * cols + c]);
  out[r] = acc;
}

#define FOR_EACH(n, i, ...) par::each(n, [=] __device__(size_t i) __VA_ARGS__)

namespace other {
__device__ inline float bump(float x) { return x + 2; }
} // namespace other
__device__ inline float bumped(float x) { return x + 3; }
constexpr int step = 5;
struct Solver {
  static constexpr int step = 3;
  struct Item {
    float value;
  };
  static __device__ float bumped(float x) { return x + 1; }
  static void members(float *p, Item item) {
    par::each(50, [=] __device__(size_t i) { p[i] += step; });
    par::each(50, [=] __device__(size_t i) { p[i] = bumped(p[i]); });
    par::each(50, [=] __device__(size_t i) { p[i] += item.value; });
  }
};
static void directive(float *p) {
  using namespace other;
  par::each(50, [=] __device__(size_t i) { p[i] = bump(p[i]); });
}
static void declaration(float *p) {
  using other::bump;
  par::each(50, [=] __device__(size_t i) { p[i] = bump(p[i]); });
}

int main() {
  const int w = 67, h = 41;
  float *a, *b, *rows;
  cudaMalloc(&a, w * h * 4);
  cudaMalloc(&b, w * h * 4);
  cudaMalloc(&rows, h * 4);
  fill(a, size_t(w) * h, 1.5f);
  auto ramp = [=] __device__(size_t i) { a[i] += float(i % 17); };
  par::each(size_t(w) * h, ramp);
  // Two in a line, and one that begins where another ends.
  par::each(size_t(w) * h, [a] __device__(size_t i) { a[i] -= 1; }); par::each(w, [=] __device__(
    size_t i) {
    a[i] = 3;
  });
  app::smooth(a, b, w, h);
  Grid{b, w, h}.scale(2);
  int k = 0;
  par::each(size_t(w), [=] __device__(size_t i) mutable { k += int(i); b[i] += k; });
  reduceRows<<<(h + 63) / 64, 64>>>(b, rows, h, w, [] __device__(float u, float v) { return u > v ? u : v; });
  // These keep what they are: what they say means something else outside of their function, or a macro writes them.
  FOR_EACH(size_t(w), i, { b[i] += 1; });
  Solver::members(b, {2});
  directive(b);
  declaration(b);
  using real = float;
  par::each(size_t(w), [=] __device__(size_t i) {
    real r = b[i];
    b[i] = r * r;
  });
  par::each(size_t(w), [c = b] __device__(size_t i) { c[i] += 1; });
  std::vector<float> r(w * h), m(h);
  cudaMemcpy(r.data(), b, w * h * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(m.data(), rows, h * 4, cudaMemcpyDeviceToHost);
  double s = 0;
  for (size_t i = 0; i < r.size(); ++i)
    s += r[i] * (i % 7);
  for (float v : m)
    s += v;
  printf("%f\n", s);
}
