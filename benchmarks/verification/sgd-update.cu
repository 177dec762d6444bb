//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Momentum SGD step with weight decay; h is a half-precision mirror of p.
struct Sgd {
  float lr, mu, wd;
  int nesterov;
};

static inline int ceil_div(int a, int b) { return a / b + (a % b != 0); }
//--- original
__global__ void sgd_kernel(float *p, float *v, const float *g, __half *h, Sgd o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float d = fmaf(o.wd, p[i], g[i]);
  float nv = fmaf(o.mu, v[i], d);
  float s = nv;
  if (o.nesterov)
    s = fmaf(o.mu, nv, d);
  float np = fmaf(-o.lr, s, p[i]);
  v[i] = nv;
  p[i] = np;
  h[i] = __float2half(np);
}

void run(float *p, float *v, const float *g, __half *h, Sgd o, int n) {
  if (n <= 0)
    return;
  sgd_kernel<<<ceil_div(n, 256), 256>>>(p, v, g, h, o, n);
}
//--- vec4-if-aligned
template <bool NESTEROV> __device__ __forceinline__ void step(float &p, float &v, float g, const Sgd &o) {
  const float d = fmaf(o.wd, p, g);
  v = fmaf(o.mu, v, d);
  p = fmaf(-o.lr, NESTEROV ? fmaf(o.mu, v, d) : v, p);
}

template <bool NESTEROV>
__global__ void __launch_bounds__(256)
    sgd_vec4(float4 *p4, float4 *v4, const float4 *__restrict__ g4, __half2 *h2, Sgd o, int n4) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    float4 p = p4[i], v = v4[i];
    const float4 g = __ldg(&g4[i]);
    step<NESTEROV>(p.x, v.x, g.x, o);
    step<NESTEROV>(p.y, v.y, g.y, o);
    step<NESTEROV>(p.z, v.z, g.z, o);
    step<NESTEROV>(p.w, v.w, g.w, o);
    v4[i] = v;
    p4[i] = p;
    h2[2 * i] = __floats2half2_rn(p.x, p.y);
    h2[2 * i + 1] = __floats2half2_rn(p.z, p.w);
  }
}

template <bool NESTEROV>
__global__ void sgd_scalar(float *p, float *v, const float *__restrict__ g, __half *h, Sgd o, int first, int n) {
  for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float pi = p[i], vi = v[i];
    step<NESTEROV>(pi, vi, __ldg(g + i), o);
    v[i] = vi;
    p[i] = pi;
    h[i] = __float2half_rn(pi);
  }
}

template <bool NESTEROV> static void launch(float *p, float *v, const float *g, __half *h, const Sgd &o, int n) {
  const uintptr_t bits = (uintptr_t)p | (uintptr_t)v | (uintptr_t)g | ((uintptr_t)h << 1);
  int done = 0;
  if ((bits & 15) == 0 && n >= 4) {
    const int n4 = n / 4;
    int blocks = ceil_div(n4, 256);
    if (blocks > 1024)
      blocks = 1024;
    sgd_vec4<NESTEROV><<<blocks, 256>>>((float4 *)p, (float4 *)v, (const float4 *)g, (__half2 *)h, o, n4);
    done = 4 * n4;
  }
  if (done < n) {
    int blocks = ceil_div(n - done, 128);
    if (blocks > 2048)
      blocks = 2048;
    sgd_scalar<NESTEROV><<<blocks, 128>>>(p, v, g, h, o, done, n);
  }
}

void run(float *p, float *v, const float *g, __half *h, Sgd o, int n) {
  if (n <= 0)
    return;
  if (o.nesterov)
    launch<true>(p, v, g, h, o, n);
  else
    launch<false>(p, v, g, h, o, n);
}
//--- size-regimes-peeled
#define SMALL_N 1024
#define LARGE_N 65536
#define UPDATE(P, V, G)                                                                                                \
  do {                                                                                                                 \
    float d_ = fmaf(o.wd, (P), (G));                                                                                   \
    (V) = fmaf(o.mu, (V), d_);                                                                                         \
    float s_ = o.nesterov ? fmaf(o.mu, (V), d_) : (V);                                                                 \
    (P) = fmaf(-o.lr, s_, (P));                                                                                        \
  } while (0)

__global__ void sgd_small(float *p, float *v, const float *g, __half *h, Sgd o, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float pi = p[i], vi = v[i];
    UPDATE(pi, vi, g[i]);
    p[i] = pi;
    v[i] = vi;
    h[i] = __float2half(pi);
  }
}

// every thread keeps four independent elements in flight
__global__ void sgd_ilp4(float *p, float *v, const float *g, __half *h, Sgd o, int n) {
  const int base = blockIdx.x * 512 + threadIdx.x;
  float rp[4], rv[4], rg[4];
  if (base + 3 * 128 < n) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      rp[k] = p[base + k * 128];
      rv[k] = v[base + k * 128];
      rg[k] = g[base + k * 128];
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
      UPDATE(rp[k], rv[k], rg[k]);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      p[base + k * 128] = rp[k];
      v[base + k * 128] = rv[k];
      h[base + k * 128] = __float2half(rp[k]);
    }
  } else {
    for (int i = base; i < n; i += 128) {
      float pi = p[i], vi = v[i];
      UPDATE(pi, vi, g[i]);
      p[i] = pi;
      v[i] = vi;
      h[i] = __float2half(pi);
    }
  }
}

// head elements up to the common 16-byte boundary, float4 body, tail elements
__global__ void sgd_peeled(float *p, float *v, const float *g, __half *h, Sgd o, unsigned head, unsigned n) {
  const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  const unsigned n4 = (n - head) / 4, tail = head + 4 * n4;
  float4 *p4 = (float4 *)(p + head), *v4 = (float4 *)(v + head);
  const float4 *g4 = (const float4 *)(g + head);
  for (unsigned i = tid; i < n4; i += stride) {
    float4 a = p4[i], b = v4[i], c = g4[i];
    UPDATE(a.x, b.x, c.x);
    UPDATE(a.y, b.y, c.y);
    UPDATE(a.z, b.z, c.z);
    UPDATE(a.w, b.w, c.w);
    p4[i] = a;
    v4[i] = b;
    __half2 *q = (__half2 *)(h + head) + 2 * i;
    q[0] = __floats2half2_rn(a.x, a.y);
    q[1] = __floats2half2_rn(a.z, a.w);
  }
  if (tid < head + (n - tail)) {
    unsigned i = tid < head ? tid : tail + (tid - head);
    float pi = p[i], vi = v[i];
    UPDATE(pi, vi, g[i]);
    p[i] = pi;
    v[i] = vi;
    h[i] = __float2half(pi);
  }
}

void run(float *p, float *v, const float *g, __half *h, Sgd o, int n) {
  if (n <= 0)
    return;
  if (n <= SMALL_N) {
    sgd_small<<<1, (n <= 32 ? 32 : 256)>>>(p, v, g, h, o, n);
    return;
  }
  unsigned mp = ((uintptr_t)p >> 2) & 3, mv = ((uintptr_t)v >> 2) & 3, mg = ((uintptr_t)g >> 2) & 3;
  unsigned mh = ((uintptr_t)h >> 1) & 3;
  if (n >= LARGE_N && mp == mv && mv == mg && (mp & 1) == (mh & 1)) {
    unsigned head = (4 - mp) & 3;
    sgd_peeled<<<128, 256>>>(p, v, g, h, o, head, (unsigned)n);
    return;
  }
  sgd_ilp4<<<ceil_div(n, 512), 128>>>(p, v, g, h, o, n);
}
//--- main
// usage: prog [n] [element offset of all arrays] [nesterov] [extra offset of g]
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 3001;
  int off = argc > 2 ? atoi(argv[2]) : 0;
  Sgd o = {0.05f, 0.9f, 0.01f, argc > 3 ? atoi(argv[3]) : 1};
  int goff = off + (argc > 4 ? atoi(argv[4]) : 0);
  if (n < 0 || off < 0 || goff < 0)
    return 1;
  float *hp = (float *)malloc((n + 1) * sizeof(float)), *hv = (float *)malloc((n + 1) * sizeof(float));
  float *hg = (float *)malloc((n + 1) * sizeof(float));
  __half *hh = (__half *)malloc((n + 1) * sizeof(__half));
  unsigned s = 12345u;
  for (int i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    hp[i] = (float)(int)(s >> 8) / 4194304.0f - 2.0f;
    s = s * 1664525u + 1013904223u;
    hv[i] = (float)(int)(s >> 8) / 16777216.0f - 0.5f;
    s = s * 1664525u + 1013904223u;
    hg[i] = ((float)(int)(s >> 8) / 16777216.0f - 0.5f) * (1 + i % 5);
  }
  float *p, *v, *g;
  __half *h;
  cudaMalloc(&p, (n + off + 1) * sizeof(float));
  cudaMalloc(&v, (n + off + 1) * sizeof(float));
  cudaMalloc(&g, (n + goff + 1) * sizeof(float));
  cudaMalloc(&h, (n + off + 1) * sizeof(__half));
  cudaMemcpy(p + off, hp, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(v + off, hv, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(g + goff, hg, n * sizeof(float), cudaMemcpyHostToDevice);
  for (int it = 0; it < 2; it++)
    run(p + off, v + off, g + goff, h + off, o, n);
  cudaMemcpy(hp, p + off, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(hv, v + off, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(hh, h + off, n * sizeof(__half), cudaMemcpyDeviceToHost);
  double sp = 0, sv = 0, sh = 0;
  for (int i = 0; i < n; i++) {
    sp += hp[i] * (1 + i % 7);
    sv += hv[i] * (1 + i % 11);
    sh += __half2float(hh[i]) * (1 + i % 13);
  }
  printf("n %d sums %.6f %.6f %.6f\n", n, sp, sv, sh);
  for (int i = 0; i < n; i += n / 5 + 1)
    printf("%d: %.6f %.6f %.4f\n", i, hp[i], hv[i], __half2float(hh[i]));
  if (n)
    printf("last %.6f %.6f %.4f\n", hp[n - 1], hv[n - 1], __half2float(hh[n - 1]));
  return cudaDeviceSynchronize() != cudaSuccess;
}
