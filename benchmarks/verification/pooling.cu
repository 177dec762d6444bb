//--- common
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

// max and average pooling (padding does not count) of NCHW planes, square window k, stride s, padding p <= k / 2
struct Pool {
  int planes, h, w, k, s, p, oh, ow;
};

//--- original
__global__ void max_pool(const float *x, float *y, Pool a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.planes * a.oh * a.ow)
    return;
  int ox = i % a.ow, oy = i / a.ow % a.oh, pl = i / a.ow / a.oh;
  float m = -INFINITY;
  for (int ky = 0; ky < a.k; ky++)
    for (int kx = 0; kx < a.k; kx++) {
      int iy = oy * a.s - a.p + ky, ix = ox * a.s - a.p + kx;
      if (iy >= 0 && iy < a.h && ix >= 0 && ix < a.w)
        m = fmaxf(m, x[(pl * a.h + iy) * a.w + ix]);
    }
  y[i] = m;
}

__global__ void avg_pool(const float *x, float *y, Pool a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.planes * a.oh * a.ow)
    return;
  int ox = i % a.ow, oy = i / a.ow % a.oh, pl = i / a.ow / a.oh, count = 0;
  float sum = 0.0f;
  for (int ky = 0; ky < a.k; ky++)
    for (int kx = 0; kx < a.k; kx++) {
      int iy = oy * a.s - a.p + ky, ix = ox * a.s - a.p + kx;
      if (iy >= 0 && iy < a.h && ix >= 0 && ix < a.w) {
        sum += x[(pl * a.h + iy) * a.w + ix];
        count++;
      }
    }
  y[i] = sum / count;
}

void run(const float *x, float *ymax, float *yavg, Pool a) {
  int n = a.planes * a.oh * a.ow;
  if (n <= 0)
    return;
  max_pool<<<(n + 127) / 128, 128>>>(x, ymax, a);
  avg_pool<<<(n + 127) / 128, 128>>>(x, yavg, a);
}

//--- fused-special-cases
// 2x2 windows of stride 2, width a multiple of 4: two float4 in, two float2 out
__global__ void pool_2x2_vec4(const float4 *__restrict__ x, float2 *__restrict__ ymax, float2 *__restrict__ yavg, int n,
                              int h, int w4, int oh) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int c = i % w4, oy = i / w4 % oh, pl = i / w4 / oh;
    const float4 *src = x + ((size_t)pl * h + 2 * oy) * w4 + c;
    const float4 u = __ldg(src), v = __ldg(src + w4);
    ymax[i] = make_float2(fmaxf(fmaxf(u.x, u.y), fmaxf(v.x, v.y)), fmaxf(fmaxf(u.z, u.w), fmaxf(v.z, v.w)));
    yavg[i] = make_float2((u.x + u.y + v.x + v.y) / 4, (u.z + u.w + v.z + v.w) / 4);
  }
}

// the window is the whole plane: one warp per plane
__global__ void pool_global(const float *x, float *ymax, float *yavg, int planes, int hw) {
  const int pl = blockIdx.x * blockDim.y + threadIdx.y;
  if (pl >= planes)
    return;
  float m = -INFINITY, s = 0.0f;
  for (int i = threadIdx.x; i < hw; i += 32) {
    const float v = x[(size_t)pl * hw + i];
    m = fmaxf(m, v);
    s += v;
  }
  for (int o = 16; o > 0; o >>= 1) {
    m = fmaxf(m, __shfl_down_sync(0xffffffff, m, o));
    s += __shfl_down_sync(0xffffffff, s, o);
  }
  if (threadIdx.x == 0)
    ymax[pl] = m, yavg[pl] = s / hw;
}

// K > 0: window known to the compiler; windows inside the plane take the unrolled way without checks
template <int K>
__global__ void pool_fused(const float *__restrict__ x, float *__restrict__ ymax, float *__restrict__ yavg, Pool a) {
  constexpr int KC = K > 0 ? K : 1; // only used where K > 0
  const int k = K > 0 ? K : a.k;
  const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
  if (ox >= a.ow || oy >= a.oh)
    return;
  const int y0 = oy * a.s - a.p, x0 = ox * a.s - a.p;
  for (int pl = blockIdx.z; pl < a.planes; pl += gridDim.z) {
    const float *src = x + (size_t)pl * a.h * a.w;
    float m = -INFINITY, s = 0.0f;
    int count;
    if (K > 0 && y0 >= 0 && x0 >= 0 && y0 + K <= a.h && x0 + K <= a.w) {
#pragma unroll
      for (int j = 0; j < KC * KC; j++) {
        const float v = src[(y0 + j / KC) * a.w + x0 + j % KC];
        m = fmaxf(m, v);
        s += v;
      }
      count = K * K;
    } else {
      const int ya = max(y0, 0), yb = min(y0 + k, a.h), xa = max(x0, 0), xb = min(x0 + k, a.w);
      for (int iy = ya; iy < yb; iy++)
        for (int ix = xa; ix < xb; ix++) {
          m = fmaxf(m, src[iy * a.w + ix]);
          s += src[iy * a.w + ix];
        }
      count = (yb - ya) * (xb - xa);
    }
    const size_t at = ((size_t)pl * a.oh + oy) * a.ow + ox;
    ymax[at] = m;
    yavg[at] = s / count;
  }
}

void run(const float *x, float *ymax, float *yavg, Pool a) {
  if (a.planes <= 0 || a.oh <= 0 || a.ow <= 0)
    return;
  const bool aligned = ((uintptr_t)x & 15) == 0 && (((uintptr_t)ymax | (uintptr_t)yavg) & 7) == 0;
  if (a.k == 2 && a.s == 2 && a.p == 0 && a.w % 4 == 0 && aligned) {
    const int n = a.planes * a.oh * (a.w / 4);
    pool_2x2_vec4<<<std::min((n + 127) / 128, 64), 128>>>((const float4 *)x, (float2 *)ymax, (float2 *)yavg, n, a.h,
                                                          a.w / 4, a.oh);
    return;
  }
  if (a.p == 0 && a.k == a.h && a.k == a.w) {
    pool_global<<<(a.planes + 3) / 4, dim3(32, 4)>>>(x, ymax, yavg, a.planes, a.h * a.w);
    return;
  }
  const dim3 block(16, 8), grid((a.ow + 15) / 16, (a.oh + 7) / 8, std::min(a.planes, 16));
  switch (a.k) {
  case 2: pool_fused<2><<<grid, block>>>(x, ymax, yavg, a); break;
  case 3: pool_fused<3><<<grid, block>>>(x, ymax, yavg, a); break;
  case 5: pool_fused<5><<<grid, block>>>(x, ymax, yavg, a); break;
  default: pool_fused<0><<<grid, block>>>(x, ymax, yavg, a);
  }
}

//--- separable-or-tiled-or-warp
#define TX 16
#define TY 8

// small planes: a block has one plane in shared memory, first along rows, then along columns
__global__ void pool_separable(const float *x, float *ymax, float *yavg, Pool a) {
  extern __shared__ float smem[];
  float *in = smem, *rmax = in + a.h * a.w, *rsum = rmax + a.h * a.ow;
  x += (size_t)blockIdx.x * a.h * a.w;
  for (int i = threadIdx.x; i < a.h * a.w; i += blockDim.x)
    in[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < a.h * a.ow; i += blockDim.x) {
    const int ox = i % a.ow, row = i / a.ow, x0 = max(ox * a.s - a.p, 0), x1 = min(ox * a.s - a.p + a.k, a.w);
    float m = -INFINITY, s = 0.0f;
    for (int ix = x0; ix < x1; ix++)
      m = fmaxf(m, in[row * a.w + ix]), s += in[row * a.w + ix];
    rmax[i] = m, rsum[i] = s;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < a.oh * a.ow; i += blockDim.x) {
    const int ox = i % a.ow, oy = i / a.ow;
    const int x0 = max(ox * a.s - a.p, 0), x1 = min(ox * a.s - a.p + a.k, a.w);
    const int y0 = max(oy * a.s - a.p, 0), y1 = min(oy * a.s - a.p + a.k, a.h);
    float m = -INFINITY, s = 0.0f;
    for (int iy = y0; iy < y1; iy++)
      m = fmaxf(m, rmax[iy * a.ow + ox]), s += rsum[iy * a.ow + ox];
    ymax[(size_t)blockIdx.x * a.oh * a.ow + i] = m;
    yavg[(size_t)blockIdx.x * a.oh * a.ow + i] = s / ((x1 - x0) * (y1 - y0));
  }
}

// large planes: the input under a tile of 16 x 8 results goes to shared memory, padding becomes -INFINITY
__global__ void pool_tiled(const float *x, float *ymax, float *yavg, Pool a) {
  extern __shared__ float tile[];
  const int tw = (TX - 1) * a.s + a.k, th = (TY - 1) * a.s + a.k;
  const int iy0 = blockIdx.y * TY * a.s - a.p, ix0 = blockIdx.x * TX * a.s - a.p;
  const int ox = blockIdx.x * TX + threadIdx.x, oy = blockIdx.y * TY + threadIdx.y;
  for (int pl = blockIdx.z; pl < a.planes; pl += gridDim.z) {
    for (int ty = threadIdx.y; ty < th; ty += TY)
      for (int tx = threadIdx.x; tx < tw; tx += TX) {
        const int iy = iy0 + ty, ix = ix0 + tx;
        const bool in = iy >= 0 && iy < a.h && ix >= 0 && ix < a.w;
        tile[ty * tw + tx] = in ? x[((size_t)pl * a.h + iy) * a.w + ix] : -INFINITY;
      }
    __syncthreads();
    if (ox < a.ow && oy < a.oh) {
      const float *t = tile + threadIdx.y * a.s * tw + threadIdx.x * a.s;
      const int ya = max(0, a.p - oy * a.s), yb = min(a.k, a.h + a.p - oy * a.s);
      const int xa = max(0, a.p - ox * a.s), xb = min(a.k, a.w + a.p - ox * a.s);
      float m = -INFINITY, s = 0.0f;
      for (int ky = 0; ky < a.k; ky++)
        for (int kx = 0; kx < a.k; kx++)
          m = fmaxf(m, t[ky * tw + kx]);
      for (int ky = ya; ky < yb; ky++)
        for (int kx = xa; kx < xb; kx++)
          s += t[ky * tw + kx];
      const size_t at = ((size_t)pl * a.oh + oy) * a.ow + ox;
      ymax[at] = m;
      yavg[at] = s / ((yb - ya) * (xb - xa));
    }
    __syncthreads();
  }
}

// large windows: one warp per result
__global__ void pool_warp(const float *x, float *ymax, float *yavg, Pool a) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (i >= a.planes * a.oh * a.ow)
    return;
  const int ox = i % a.ow, oy = i / a.ow % a.oh;
  const int x0 = max(ox * a.s - a.p, 0), x1 = min(ox * a.s - a.p + a.k, a.w), nx = x1 - x0;
  const int y0 = max(oy * a.s - a.p, 0), y1 = min(oy * a.s - a.p + a.k, a.h), n = nx * (y1 - y0);
  const float *src = x + ((size_t)(i / a.ow / a.oh) * a.h + y0) * a.w + x0;
  float m = -INFINITY, s = 0.0f;
  for (int j = lane; j < n; j += 32) {
    const float v = src[j / nx * a.w + j % nx];
    m = fmaxf(m, v), s += v;
  }
  for (int o = 1; o < 32; o *= 2)
    m = fmaxf(m, __shfl_xor_sync(~0u, m, o)), s += __shfl_xor_sync(~0u, s, o);
  if (lane == 0)
    ymax[i] = m, yavg[i] = s / n;
}

void run(const float *x, float *ymax, float *yavg, Pool a) {
  const int n = a.planes * a.oh * a.ow;
  if (n <= 0)
    return;
  const size_t sep = sizeof(float) * a.h * (a.w + 2 * a.ow);
  const size_t til = sizeof(float) * ((TX - 1) * (size_t)a.s + a.k) * ((TY - 1) * (size_t)a.s + a.k);
  const dim3 tiles((a.ow + TX - 1) / TX, (a.oh + TY - 1) / TY, std::min(a.planes, 8));
  if (a.k > 9)
    pool_warp<<<(n + 3) / 4, 128>>>(x, ymax, yavg, a);
  else if (sep <= 16 * 1024)
    pool_separable<<<a.planes, 128, sep>>>(x, ymax, yavg, a);
  else if (til <= 40 * 1024)
    pool_tiled<<<tiles, dim3(TX, TY), til>>>(x, ymax, yavg, a);
  else
    pool_warp<<<(n + 3) / 4, 128>>>(x, ymax, yavg, a);
}

//--- main
int main(int argc, char **argv) { // N C H W k s p
  int v[7] = {2, 3, 22, 24, 3, 2, 1};
  for (int i = 0; i < 7 && i + 1 < argc; i++)
    v[i] = std::max(0, atoi(argv[i + 1]));
  Pool a = {v[0] * v[1], v[2], v[3], std::max(1, v[4]), std::max(1, v[5]), v[6], 0, 0};
  a.p = std::min(a.p, a.k / 2);
  if (a.h > 0 && a.w > 0 && a.h + 2 * a.p >= a.k && a.w + 2 * a.p >= a.k) {
    a.oh = (a.h + 2 * a.p - a.k) / a.s + 1;
    a.ow = (a.w + 2 * a.p - a.k) / a.s + 1;
  }
  const size_t n = (size_t)a.planes * a.h * a.w, m = (size_t)a.planes * a.oh * a.ow;
  std::vector<float> x(n), y(2 * m);
  uint32_t s = 2024;
  for (auto &f : x)
    s = s * 69069u + 1u, f = (float)((int)(s >> 12) % 2000 - 1100) / 128.0f;
  float *dx, *dm, *da;
  cudaMalloc(&dx, n * 4 + 4), cudaMalloc(&dm, m * 4 + 4), cudaMalloc(&da, m * 4 + 4);
  cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice);
  run(dx, dm, da, a);
  cudaMemcpy(y.data(), dm, m * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(y.data() + m, da, m * 4, cudaMemcpyDeviceToHost);
  double sm = 0, sa = 0;
  for (size_t i = 0; i < m; i++)
    sm += y[i] * (1 + i % 9), sa += y[m + i] * (1 + i % 9);
  printf("%d x %d: max %.4f avg %.4f\n", a.oh, a.ow, sm, sa);
  for (size_t i = 0; i < m; i += m / 7 + 1)
    printf("%zu %.5f %.5f\n", i, y[i], y[m + i]);
  return 0;
}
