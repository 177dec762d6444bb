// Complex numbers, vectors of CUDA and structs of numbers: private ones are a variable for each member, tiles of
// them an
// array for each member that is read.
// RUN: %plan --passes='block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=16,prefetch=1}' %s | %check=PRODUCT
// RUN: %plan --passes='block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=16,wide=1}' %s | %check=WIDE
// RUN: %opt --passes='block-shape[methods]{x=16,y=16}' %s | %check=METHODS
// RUN: %opt --passes='block-shape[library]{x=16,y=16}' %s | %check=LIBRARY
// RUN: %opt --passes='block-shape[julia]{x=64}' %s | %check=JULIA
// RUN: %plan --passes='block-shape[forces]{x=64};stage-shared[forces/j:p]{tile=32}' %s | %check=FORCES
// RUN: %opt --passes='block-shape[gravity]{x=64};coarsen[gravity]{x=2};stage-shared[gravity/j:pos]{tile=32,wide=1,prefetch=1}' %s | %check=GRAVITY
// RUN: %opt --passes='block-shape[nested]{x=64}' %s | %check=NESTED
// RUN: %opt --passes='block-shape[kept]{x=64}' %s | %check=KEPT
// RUN: %refused --passes='block-shape[moved]{x=64};stage-shared[moved/j:p]{tile=32}' %s 2>&1 | %check=MOVED
// RUN: %refused --passes='block-shape[forces]{x=64};stage-shared[forces/j:p]{tile=32,wide=1}' %s 2>&1 | %check=LARGE
// RUN: optiml-opt --reread --emit --passes='block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=16,prefetch=1,wide=1};block-shape[methods]{x=16,y=16};stage-shared[methods/k:a+b]{tile=16};block-shape[library]{x=16,y=16};coarsen[library]{x=4,y=1};block-shape[julia]{x=64};block-shape[forces]{x=64};stage-shared[forces/j:p]{tile=32};block-shape[gravity]{x=64};coarsen[gravity]{x=2};stage-shared[gravity/j:pos]{tile=32,wide=1,prefetch=1};block-shape[nested]{x=64};block-shape[kept]{x=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 38 | %check=SAME
// RUN: optiml-run --coverage=15 --verify=%t.cu %s -- 67 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 38 2>&1 | %check=RAN
// RAN-DAG: product: 1 optimized, 0 original launches
// RAN-DAG: methods: 1 optimized, 0 original launches
// RAN-DAG: library: 1 optimized, 0 original launches
// RAN-DAG: julia: 1 optimized, 0 original launches
// RAN-DAG: forces: 1 optimized, 0 original launches
// RAN-DAG: gravity: 1 optimized, 0 original launches
// RAN-DAG: nested: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <cuComplex.h>

struct Complex {
  float re, im;
};
__device__ Complex operator*(const Complex &a, const Complex &b) {
  Complex r;
  r.re = a.re * b.re - a.im * b.im;
  r.im = a.re * b.im + a.im * b.re;
  return r;
}
__device__ Complex operator+(const Complex &a, const Complex &b) { return Complex{a.re + b.re, a.im + b.im}; }

// PRODUCT: __shared__ __align__(16) float a_re_tile[16][36];
// PRODUCT: __shared__ __align__(16) float a_im_tile[16][36];
// PRODUCT: float sum_re[2][2];
// PRODUCT: float a_re_next[2];
// PRODUCT: if (c1 < n && (int)blockIdx.y * 32 + r < n && (int)blockIdx.x * 32 < n) {
// PRODUCT-NEXT: a_re_next[i1] = a[(blockIdx.y * 32 + r) * n + c1].re;
// PRODUCT-NEXT: a_im_next[i1] = a[(blockIdx.y * 32 + r) * n + c1].im;
// PRODUCT-NEXT: } else {
// PRODUCT-NEXT: a_re_next[i1] = 0.0f;
// PRODUCT: for (int k = 0; k < 16; ++k) {
// PRODUCT-NEXT: #pragma unroll
// PRODUCT-NEXT: for (int iy = 0; iy < 2; ++iy) {
// PRODUCT-NEXT: #pragma unroll
// PRODUCT-NEXT: for (int ix = 0; ix < 2; ++ix) {
// PRODUCT-NEXT: sum_re[iy][ix] = sum_re[iy][ix] + (a_re_tile[k][iy + threadIdx.y * 2] * b_re_tile[k][ix + threadIdx.x * 2] - a_im_tile
// PRODUCT: c[(i + iy) * n + (j + ix)] = {sum_re[iy][ix], sum_im[iy][ix]};
// WIDE: when aligned(a, 16)
// WIDE: when n % 2 == 0
// WIDE: const float4 v = {{.*}} ? *(const float4 *)&a[{{.*}}] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
// WIDE-NEXT: a_re_tile[c1][r] = v.x;
// WIDE-NEXT: a_im_tile[c1][r] = v.y;
// WIDE-NEXT: a_re_tile[c1 + 1][r] = v.z;
// WIDE-NEXT: a_im_tile[c1 + 1][r] = v.w;
__global__ void product(const Complex *a, const Complex *b, Complex *c, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) {
    Complex sum = {0.0f, 0.0f};
    for (int k = 0; k < n; ++k)
      sum = sum + a[i * n + k] * b[k * n + j];
    c[i * n + j] = sum;
  }
}

struct Number {
  float r, i;
  __device__ Number(float r = 0, float i = 0) : r(r), i(i) {}
  __device__ Number operator*(const Number &o) const { return Number(r * o.r - i * o.i, r * o.i + i * o.r); }
  __device__ Number &operator+=(const Number &o) {
    r += o.r;
    i += o.i;
    return *this;
  }
};
// METHODS: sum_r += a[i * n + k].r * b[k * n + j].r - a[i * n + k].i * b[k * n + j].i;
// METHODS-NEXT: sum_i += a[i * n + k].r * b[k * n + j].i + a[i * n + k].i * b[k * n + j].r;
// METHODS: c[i * n + j].r = sum_r;
// METHODS-NEXT: c[i * n + j].i = sum_i;
__global__ void methods(const Number *a, const Number *b, Number *c, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) {
    Number sum;
    for (int k = 0; k < n; ++k)
      sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] = sum;
  }
}

// LIBRARY: float x_x = a[i * n + k].x;
// LIBRARY: sum_x = sum_x + (x_x * y_x - x_y * y_y);
// LIBRARY: c[i * n + j] = {sum_x, sum_y};
__global__ void library(const cuFloatComplex *a, const cuFloatComplex *b, cuFloatComplex *c, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) {
    cuFloatComplex sum = make_cuFloatComplex(0.0f, 0.0f);
    for (int k = 0; k < n; ++k)
      sum = cuCaddf(sum, cuCmulf(a[i * n + k], b[k * n + j]));
    c[i * n + j] = sum;
  }
}

// One member's new value needs the other's old one.
// JULIA: float [[IM:[a-z_0-9]+]] = z_re * z_im + z_im * z_re + c_im;
// JULIA-NEXT: z_re = z_re * z_re - z_im * z_im + c_re;
// JULIA-NEXT: z_im = [[IM]];
__global__ void julia(int *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < n) {
    Complex z = {1.5f * x / n, 0.25f};
    const Complex c = {-0.8f, 0.156f};
    int steps = 0;
    while (steps < 50 && z.re * z.re + z.im * z.im < 4) {
      z = z * z + c;
      ++steps;
    }
    out[x] = steps;
  }
}

// What is written are other members than those that all threads read.
struct Body {
  float x, y, z, vx, vy, vz;
};
// FORCES-NOT: disjoint
// FORCES: __shared__ __align__(16) float p_x_tile[32];
// FORCES: __shared__ __align__(16) float p_z_tile[32];
// FORCES-NOT: p_vx_tile
// FORCES: dx = p_x_tile[j] - p[i].x;
// FORCES: p[i].vx += dt * fx;
// LARGE: the elements of p are no records that a vector of 16 bytes holds
__global__ void forces(Body *p, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float fx = 0, fy = 0, fz = 0;
    for (int j = 0; j < n; ++j) {
      float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-2f);
      float s = inverse * inverse * inverse;
      fx += dx * s;
      fy += dy * s;
      fz += dz * s;
    }
    p[i].vx += dt * fx;
    p[i].vy += dt * fy;
    p[i].vz += dt * fz;
  }
}
// MOVED: p is written
__global__ void moved(Body *p, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float fx = 0;
    for (int j = 0; j < n; ++j)
      fx += p[j].x;
    p[i].x = fx;
  }
}

__device__ float3 interaction(float4 bi, float4 bj, float3 ai) {
  float3 r;
  r.x = bj.x - bi.x;
  r.y = bj.y - bi.y;
  r.z = bj.z - bi.z;
  float square = r.x * r.x + r.y * r.y + r.z * r.z + 1e-2f;
  float s = bj.w * rsqrtf(square * square * square);
  ai.x += r.x * s;
  ai.y += r.y * s;
  ai.z += r.z * s;
  return ai;
}
// GRAVITY: float4 pos_next[1];
// GRAVITY: pos_x_tile[c1] = pos_next[0].x;
// GRAVITY: pos_w_tile[c1] = pos_next[0].w;
// GRAVITY: r_x[ix] = pos_x_tile[j] - me_x[ix];
// GRAVITY: a_x[ix] += r_x[ix] * s[ix];
// GRAVITY: out[i + ix] = {a_x[ix], a_y[ix], a_z[ix]};
__global__ void gravity(const float4 *pos, float3 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 me = pos[i];
  float3 a = {0, 0, 0};
  for (int j = 0; j < n; ++j)
    a = interaction(me, pos[j], a);
  out[i] = a;
}

struct Vec {
  float x, y;
};
struct Particle {
  Vec pos, vel;
  int id;
};
// NESTED: me_vel_x += dt * me_pos_x;
// NESTED-NEXT: out[i] = {{[{][{]}}me_pos_x, in[i].pos.y}, {me_vel_x, in[i].vel.y}, in[i].id};
__global__ void nested(const Particle *in, Particle *out, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Particle me = in[i];
    me.vel.x += dt * me.pos.x;
    out[i] = me;
  }
}

__device__ __noinline__ Complex conjugate(Complex z) {
  z.im = -z.im;
  return z;
}
// A record that goes to a function, or is only copied, or is read as wide as that on purpose, stays one.
// KEPT: Complex z = a[i];
// KEPT-NEXT: z = conjugate(z);
// KEPT-NEXT: Complex copy = a[i];
// KEPT-NEXT: const float2 pair = *(const float2 *)&a[i];
// KEPT-NEXT: out[i] = copy;
// KEPT-NEXT: out[i].re += z.re + pair.x;
__global__ void kept(const Complex *a, Complex *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Complex z = a[i];
    z = conjugate(z);
    Complex copy = a[i];
    const float2 pair = *(const float2 *)&a[i];
    out[i] = copy;
    out[i].re += z.re + pair.x;
  }
}

template <typename T> T *filled(int count, int seed) {
  T *data;
  cudaMallocManaged(&data, count * sizeof(T));
  float *numbers = (float *)data;
  for (size_t k = 0; k < count * sizeof(T) / sizeof(float); ++k)
    numbers[k] = float((k * 7 + seed) % 23) / 16 - 0.5f;
  return data;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 38;
  dim3 square((n + 15) / 16, (n + 15) / 16), threads(16, 16);
  Complex *a = filled<Complex>(n * n, 1), *b = filled<Complex>(n * n, 2), *c = filled<Complex>(n * n, 3);
  Number *na = filled<Number>(n * n, 1), *nb = filled<Number>(n * n, 2), *nc = filled<Number>(n * n, 3);
  cuFloatComplex *la = filled<cuFloatComplex>(n * n, 1), *lb = filled<cuFloatComplex>(n * n, 2),
                 *lc = filled<cuFloatComplex>(n * n, 3);
  product<<<square, threads>>>(a, b, c, n);
  methods<<<square, threads>>>(na, nb, nc, n);
  library<<<square, threads>>>(la, lb, lc, n);
  int *steps, blocks = (n + 63) / 64;
  cudaMallocManaged(&steps, n * sizeof(int));
  julia<<<blocks, 64>>>(steps, n);
  Body *bodies = filled<Body>(n, 4);
  forces<<<blocks, 64>>>(bodies, 0.1f, n);
  moved<<<1, 1>>>(bodies, 0.1f, 1);
  float4 *pos = filled<float4>(n, 5);
  float3 *acc = filled<float3>(n, 6);
  gravity<<<blocks, 64>>>(pos, acc, n);
  Particle *in = filled<Particle>(n, 7), *out = filled<Particle>(n, 8);
  nested<<<blocks, 64>>>(in, out, 0.5f, n);
  kept<<<blocks, 64>>>(a, b, n);
  cudaDeviceSynchronize();
  printf("%d %d %g\n", n, steps[0], c[0].re);
  return 0;
}
