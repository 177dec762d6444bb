// Maximum and average pooling, 3 x 3 with stride 2 and a border of one, of 16 images with 48 channels of
// 224 x 224 pixels (NCHW). Pixels outside the image do not count. By hand: one kernel for both, a thread
// makes 4 x 4 outputs from float4 loads, and neighboring output rows share the row between them.
#include <cfloat>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int IMAGES = 16, CHANNELS = 48, HEIGHT = 224, WIDTH = 224;
constexpr int OUT_H = HEIGHT / 2, OUT_W = WIDTH / 2;
constexpr int STRIP = 4;                                          // output rows a thread
constexpr int TX = OUT_W / 4, TY = OUT_H / STRIP;                 // threads a plane
constexpr int TOTAL = IMAGES * CHANNELS * TX * TY, THREADS = 256;
static_assert(OUT_W % 4 == 0 && OUT_H % STRIP == 0 && TOTAL % THREADS == 0, "whole tiles");

// Maxima and sums of four windows along one input row; the pixel left of the row's start is absent.
struct RowPool {
  float best[4];
  float sum[4];

  __device__ __forceinline__ void load(const float* p, bool has_left)
  {
    const float4 a = __ldg(reinterpret_cast<const float4*>(p));
    const float4 b = __ldg(reinterpret_cast<const float4*>(p + 4));
    const float left = has_left ? __ldg(p - 1) : 0.0f;
    best[0] = fmaxf(fmaxf(has_left ? left : -FLT_MAX, a.x), a.y);
    best[1] = fmaxf(fmaxf(a.y, a.z), a.w);
    best[2] = fmaxf(fmaxf(a.w, b.x), b.y);
    best[3] = fmaxf(fmaxf(b.y, b.z), b.w);
    sum[0] = left + a.x + a.y;
    sum[1] = a.y + a.z + a.w;
    sum[2] = a.w + b.x + b.y;
    sum[3] = b.y + b.z + b.w;
  }
};

__global__ void __launch_bounds__(THREADS)
pool3x3(const float* __restrict__ in, float* __restrict__ out_max, float* __restrict__ out_average)
{
  const int idx = blockIdx.x * THREADS + threadIdx.x;
  const int tx = idx % TX;
  const int ty = idx / TX % TY;
  const int plane = idx / (TX * TY);
  const bool has_left = tx > 0;
  const int oy0 = ty * STRIP;
  const float* src = in + (plane * HEIGHT + 2 * oy0) * WIDTH + 8 * tx;
  const int dst = (plane * OUT_H + oy0) * OUT_W + 4 * tx;

  RowPool above;
  if (oy0 > 0) {
    above.load(src - WIDTH, has_left);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      above.best[i] = -FLT_MAX;
      above.sum[i] = 0.0f;
    }
  }
#pragma unroll
  for (int r = 0; r < STRIP; ++r) {
    RowPool middle, below;
    middle.load(src + 2 * r * WIDTH, has_left);
    below.load(src + (2 * r + 1) * WIDTH, has_left);
    const float rows = oy0 + r > 0 ? 3.0f : 2.0f;
    const float scale = 1.0f / (3.0f * rows);
    const float first_scale = has_left ? scale : 1.0f / (2.0f * rows);
    float m[4], s[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      m[i] = fmaxf(fmaxf(above.best[i], middle.best[i]), below.best[i]);
      s[i] = (above.sum[i] + middle.sum[i] + below.sum[i]) * (i == 0 ? first_scale : scale);
    }
    *reinterpret_cast<float4*>(out_max + dst + r * OUT_W) = make_float4(m[0], m[1], m[2], m[3]);
    *reinterpret_cast<float4*>(out_average + dst + r * OUT_W) = make_float4(s[0], s[1], s[2], s[3]);
    above = below;
  }
}

int main()
{
  const long in_size = (long)IMAGES * CHANNELS * HEIGHT * WIDTH;
  const long out_size = (long)IMAGES * CHANNELS * OUT_H * OUT_W;
  std::vector<float> in(in_size), largest(out_size), average(out_size);
  unsigned s = 60u;
  for (long i = 0; i < in_size; ++i) {
    s = s * 1103515245u + 12345u;
    in[i] = ((s >> 10) & 0xffff) / 65536.0f - 0.2f;
  }

  float *d_in, *d_largest, *d_average;
  cudaMalloc(&d_in, in_size * sizeof(float));
  cudaMalloc(&d_largest, out_size * sizeof(float));
  cudaMalloc(&d_average, out_size * sizeof(float));
  cudaMemcpy(d_in, in.data(), in_size * sizeof(float), cudaMemcpyHostToDevice);

  pool3x3<<<TOTAL / THREADS, THREADS>>>(d_in, d_largest, d_average);

  cudaMemcpy(largest.data(), d_largest, out_size * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(average.data(), d_average, out_size * sizeof(float), cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess) {
    fprintf(stderr, "pooling failed\n");
    return 1;
  }
  double max_sum = 0, average_sum = 0, weighted = 0;
  for (long i = 0; i < out_size; ++i) {
    max_sum += largest[i];
    average_sum += average[i];
    weighted += (double)largest[i] * (1 + i % 9) + (double)average[i] * (1 + i % 112);
  }
  printf("max %.6e\naverage %.6e\nweighted %.6e\n", max_sum, average_sum, weighted);
  cudaFree(d_in);
  cudaFree(d_largest);
  cudaFree(d_average);
  return 0;
}
