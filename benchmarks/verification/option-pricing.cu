//--- common
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

struct Option { // 24 bytes, array of structs on input
  float spot, strike, years, rate, vol;
  int kind; // 0 call, 1 put, other: cash-or-nothing call
};
struct Priced { // results as separate arrays
  float *price, *delta;
};

__host__ __device__ inline float phi(float x) { return 0.5f * erfcf(-0.70710678f * x); }
//--- original
__global__ void price_kernel(const Option *opt, int n, Priced out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Option o = opt[i];
  float price, delta;
  if (o.years <= 0.0f || o.vol <= 0.0f) { // expired: intrinsic value
    float d = o.spot - o.strike;
    if (o.kind == 0) {
      price = d > 0.0f ? d : 0.0f;
      delta = d > 0.0f ? 1.0f : 0.0f;
    } else if (o.kind == 1) {
      price = d < 0.0f ? -d : 0.0f;
      delta = d < 0.0f ? -1.0f : 0.0f;
    } else {
      price = d > 0.0f ? 1.0f : 0.0f;
      delta = 0.0f;
    }
  } else {
    float sq = o.vol * sqrtf(o.years);
    float d1 = (logf(o.spot / o.strike) + (o.rate + 0.5f * o.vol * o.vol) * o.years) / sq;
    float d2 = d1 - sq;
    float disc = expf(-o.rate * o.years);
    if (o.kind == 0) {
      price = o.spot * phi(d1) - o.strike * disc * phi(d2);
      delta = phi(d1);
    } else if (o.kind == 1) {
      price = o.strike * disc * phi(-d2) - o.spot * phi(-d1);
      delta = -phi(-d1);
    } else {
      price = disc * phi(d2);
      delta = disc * 0.39894228f * expf(-0.5f * d2 * d2) / (o.spot * sq);
    }
  }
  out.price[i] = price;
  out.delta[i] = delta;
}

void run(const Option *opt, int n, Priced out) {
  if (n <= 0)
    return;
  price_kernel<<<(n + 127) / 128, 128>>>(opt, n, out);
}
//--- shared-staging-double-buffer
namespace {
struct Value {
  float price, delta;
};

__device__ __forceinline__ Value evaluate(float S, float K, float T, float r, float v, int kind) {
  if (T <= 0.0f || v <= 0.0f) {
    const float d = S - K;
    switch (kind) {
    case 0: return {fmaxf(d, 0.0f), d > 0.0f ? 1.0f : 0.0f};
    case 1: return {d < 0.0f ? -d : 0.0f, d < 0.0f ? -1.0f : 0.0f};
    default: return {d > 0.0f ? 1.0f : 0.0f, 0.0f};
    }
  }
  const float sq = v * sqrtf(T);
  const float d1 = (logf(S / K) + (r + 0.5f * v * v) * T) / sq, d2 = d1 - sq;
  const float disc = expf(-r * T);
  switch (kind) {
  case 0: {
    const float p = phi(d1);
    return {S * p - K * disc * phi(d2), p};
  }
  case 1: {
    const float q = phi(-d1);
    return {K * disc * phi(-d2) - S * q, -q};
  }
  default: return {disc * phi(d2), disc * 0.39894228f * expf(-0.5f * d2 * d2) / (S * sq)};
  }
}

constexpr int TILE = 128, PITCH = 7; // 6 words per option, odd pitch

__global__ void __launch_bounds__(TILE) price_staged(const float2 *__restrict__ raw, int tiles, Priced out) {
  __shared__ float sh[2][TILE * PITCH];
  float2 next[3];
  auto fetch = [&](int tile) {
#pragma unroll
    for (int k = 0; k < 3; ++k)
      next[k] = __ldg(raw + (size_t)tile * (TILE * 3) + k * TILE + threadIdx.x);
  };
  int buf = 0;
  if ((int)blockIdx.x < tiles)
    fetch(blockIdx.x);
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const int pair = k * TILE + threadIdx.x, word = pair / 3 * PITCH + pair % 3 * 2;
      sh[buf][word] = next[k].x;
      sh[buf][word + 1] = next[k].y;
    }
    __syncthreads();
    if (tile + (int)gridDim.x < tiles)
      fetch(tile + gridDim.x);
    const float *o = &sh[buf][threadIdx.x * PITCH];
    const Value r = evaluate(o[0], o[1], o[2], o[3], o[4], __float_as_int(o[5]));
    out.price[tile * TILE + threadIdx.x] = r.price;
    out.delta[tile * TILE + threadIdx.x] = r.delta;
    buf ^= 1;
  }
}

__global__ void price_plain(const Option *__restrict__ opt, int first, int n, Priced out) {
  const int i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const Value r = evaluate(opt[i].spot, opt[i].strike, opt[i].years, opt[i].rate, opt[i].vol, opt[i].kind);
  out.price[i] = r.price;
  out.delta[i] = r.delta;
}
} // namespace

void run(const Option *opt, int n, Priced out) {
  if (n <= 0)
    return;
  const int tiles = (uintptr_t)opt % 8 == 0 ? n / TILE : 0;
  if (tiles > 0)
    price_staged<<<(tiles < 8 ? tiles : tiles < 1024 ? 8 : 264), TILE>>>((const float2 *)opt, tiles, out);
  const int done = tiles * TILE;
  if (done < n)
    price_plain<<<(n - done + 63) / 64, 64>>>(opt, done, n, out);
}
//--- transpose-then-vector4
struct Soa {
  float *f[5];
  int *kind;
};

__device__ static void price_one(float s, float k, float t, float r, float v, int kind, float *price, float *delta) {
  float sign = kind == 1 ? -1.0f : 1.0f;
  if (t <= 0.0f || v <= 0.0f) {
    float d = sign * (s - k);
    int in_money = d > 0.0f;
    *price = in_money ? (kind == 0 || kind == 1 ? d : 1.0f) : 0.0f;
    *delta = in_money && (kind == 0 || kind == 1) ? sign : 0.0f;
    return;
  }
  float sq = v * sqrtf(t), d1 = (logf(s / k) + (r + 0.5f * v * v) * t) / sq, d2 = d1 - sq, disc = expf(-r * t);
  if (kind == 0 || kind == 1) {
    float n1 = phi(sign * d1), n2 = phi(sign * d2);
    *price = kind == 0 ? s * n1 - k * disc * n2 : k * disc * n2 - s * n1;
    *delta = sign * n1;
  } else {
    *price = disc * phi(d2);
    *delta = disc * 0.39894228f * expf(-0.5f * d2 * d2) / (s * sq);
  }
}

__global__ void price_small(const Option *opt, int n, float *price, float *delta) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float p, d;
    price_one(opt[i].spot, opt[i].strike, opt[i].years, opt[i].rate, opt[i].vol, opt[i].kind, &p, &d);
    price[i] = p;
    delta[i] = d;
  }
}

// One word per thread; entries n .. padded - 1 become harmless options.
__global__ void to_soa(const Option *opt, int n, int padded, Soa s) {
  const float *w = (const float *)opt;
  for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < padded * 6; j += gridDim.x * blockDim.x) {
    int i = j / 6, field = j - 6 * i;
    float x = i < n ? w[j] : field == 5 ? __int_as_float(0) : 1.0f;
    if (field == 5)
      s.kind[i] = __float_as_int(x);
    else
      s.f[field][i] = x;
  }
}

template <bool ALIGNED> __global__ void price_vec4(Soa s, int n, int n4, float *price, float *delta) {
  int q = blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= n4)
    return;
  float in[5][4], p[4], d[4];
#pragma unroll
  for (int f = 0; f < 5; f++) {
    float4 t = ((const float4 *)s.f[f])[q];
    in[f][0] = t.x;
    in[f][1] = t.y;
    in[f][2] = t.z;
    in[f][3] = t.w;
  }
  int4 k4 = ((const int4 *)s.kind)[q];
  int kind[4] = {k4.x, k4.y, k4.z, k4.w};
#pragma unroll
  for (int e = 0; e < 4; e++)
    price_one(in[0][e], in[1][e], in[2][e], in[3][e], in[4][e], kind[e], p + e, d + e);
  if (ALIGNED && 4 * q + 4 <= n) {
    ((float4 *)price)[q] = make_float4(p[0], p[1], p[2], p[3]);
    ((float4 *)delta)[q] = make_float4(d[0], d[1], d[2], d[3]);
    return;
  }
  for (int e = 0; e < 4 && 4 * q + e < n; e++) {
    price[4 * q + e] = p[e];
    delta[4 * q + e] = d[e];
  }
}

void run(const Option *opt, int n, Priced out) {
  if (n <= 0)
    return;
  if (n <= 256) {
    price_small<<<1, 64>>>(opt, n, out.price, out.delta);
    return;
  }
  int n4 = (n + 3) / 4, padded = 4 * n4;
  float *buf;
  cudaMalloc(&buf, (size_t)padded * 6 * sizeof(float));
  Soa s;
  for (int f = 0; f < 5; f++)
    s.f[f] = buf + (size_t)f * padded;
  s.kind = (int *)(buf + (size_t)5 * padded);
  int blocks = (padded * 6 + 255) / 256;
  to_soa<<<(blocks > 2048 ? 2048 : blocks), 256>>>(opt, n, padded, s);
  bool al = (((uintptr_t)out.price | (uintptr_t)out.delta) & 15) == 0;
  if (al)
    price_vec4<true><<<(n4 + 127) / 128, 128>>>(s, n, n4, out.price, out.delta);
  else
    price_vec4<false><<<(n4 + 127) / 128, 128>>>(s, n, n4, out.price, out.delta);
  cudaFree(buf);
}
//--- main
// usage: prog [n] [element offset of the results]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2002, off = argc > 2 ? atoi(argv[2]) : 0;
  if (n < 0 || off < 0)
    return 1;
  Option *h = new Option[n + 1];
  unsigned long long s = 99991ull;
  auto uni = [&s](float lo, float hi) {
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return lo + (hi - lo) * (float)(s >> 40) / 16777216.0f;
  };
  for (int i = 0; i < n; i++) {
    h[i].spot = uni(5, 120);
    h[i].strike = uni(10, 110);
    h[i].years = uni(-0.4f, 3);
    h[i].rate = uni(-0.02f, 0.08f);
    h[i].vol = uni(0.05f, 0.7f);
    h[i].kind = (int)uni(0, 3);
  }
  Option *d;
  float *res, *hr = new float[2 * n + 2];
  const int stride = (n + off + 4) / 4 * 4; // second array starts 16-byte aligned
  cudaMalloc(&d, (n + 1) * sizeof(Option));
  cudaMalloc(&res, 2 * stride * sizeof(float));
  cudaMemset(res, 0, 2 * stride * sizeof(float));
  cudaMemcpy(d, h, n * sizeof(Option), cudaMemcpyHostToDevice);
  Priced out = {res + off, res + stride + off};
  run(d, n, out);
  cudaMemcpy(hr, out.price, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(hr + n, out.delta, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sp = 0, sd = 0;
  for (int i = 0; i < n; i++) {
    sp += hr[i] * (1 + i % 4);
    sd += hr[n + i] * (1 + i % 3);
  }
  printf("n %d price %.3f delta %.4f\n", n, sp, sd);
  for (int i = 0; i < n; i += n / 6 + 1)
    printf("%d: kind %d price %.5f delta %.5f\n", i, h[i].kind, hr[i], hr[n + i]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
