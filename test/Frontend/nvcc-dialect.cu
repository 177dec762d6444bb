// What nvcc accepts, OptiML reads: a namespace a construct. nvcc compiles this file, and both views of it are read.
// RUN: nvcc -std=c++17 -arch=sm_90 --extended-lambda -c %s -o %t.o
// RUN: optiml-opt --fuse-launches --list-sites %s -- -std=c++17 -arch=sm_90 --extended-lambda 2>&1 | FileCheck %s
// CHECK-NOT: error
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuComplex.h>
#include <cuda_device_runtime_api.h>
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <math.h>
#include <math_constants.h>
#include <nv/target>
#include <omp.h>
#include <sm_20_atomic_functions.h>
#include <sm_20_intrinsics.h>
#include <sm_30_intrinsics.h>
#include <sm_32_atomic_functions.h>
#include <sm_35_atomic_functions.h>
#include <sm_35_intrinsics.h>
#include <sm_60_atomic_functions.h>
#include <sm_61_intrinsics.h>
#include <stdexcept>
#include <stdint.h>
#include <stdlib.h>
#include <string>
#include <sys/time.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>
namespace c_isfinite_device {
__global__ void k(float *a) {
  if (isfinite(a[0]))
    a[1] = 1;
}
} // namespace c_isfinite_device
namespace c_isnan_device_float {
__global__ void k(float *a) {
  if (isnan(a[0]))
    a[1] = 1;
}
} // namespace c_isnan_device_float
namespace c_isinf_device_double {
__global__ void k(double *a) {
  if (isinf(a[0]))
    a[1] = 1;
}
} // namespace c_isinf_device_double
namespace c_isnan_cmath {
__global__ void k(float *a) {
  if (isnan(a[0]) || isinf(a[1]) || !isfinite(a[2]))
    a[1] = 1;
}
void h(float *a) {
  if (std::isnan(a[0]))
    a[0] = 0;
}
} // namespace c_isnan_cmath
namespace c_isnan_host_cmath {
__global__ void k(float *a) { a[0] = 1; }
bool h(float *a) { return isnan(a[0]) || isinf(a[1]) || isfinite(a[2]); }
} // namespace c_isnan_host_cmath
namespace c_isnan_math_h {
__global__ void k(float *a) {
  if (isnan(a[0]))
    a[1] = 1;
}
bool h(double a) { return isnan(a) || isinf(a) || isfinite(a) || signbit(a); }
} // namespace c_isnan_math_h
namespace c_signbit_device {
__global__ void k(float *a) {
  if (signbit(a[0]))
    a[1] = 1;
}
} // namespace c_signbit_device
namespace c_fpclassify_host {
int h(float a) { return std::fpclassify(a); }
__global__ void k(float *a) { a[0] = 1; }
} // namespace c_fpclassify_host
namespace c_hd_isnan {
__host__ __device__ inline bool bad(float x) { return isnan(x) || isinf(x); }
__global__ void k(float *a) {
  if (bad(a[0]))
    a[1] = 1;
}
bool h(float x) { return bad(x); }
} // namespace c_hd_isnan
namespace c_register_14 {
__global__ void k(float *a) {
  register float x = a[0];
  register int i;
  for (i = 0; i < 4; i++)
    x += a[i];
  a[0] = x;
}
} // namespace c_register_14
namespace c_register_param {
__device__ float f(register float x) { return x * 2; }
__global__ void k(float *a) { a[0] = f(a[1]); }
} // namespace c_register_param
namespace c_friend_lookup {
struct V {
  float x;
  friend __device__ float dot(const V &a, const V &b) { return a.x * b.x; }
};
__global__ void k(V *v, float *a) { a[0] = dot(v[0], v[1]); }
} // namespace c_friend_lookup
namespace c_const_host_global_scalar {
const int N = 10;
const float PI = 3.14f;
static const double D = 2.5;
__global__ void k(float *a) { a[0] = N * PI + D; }
} // namespace c_const_host_global_scalar
namespace c_static_const_member {
struct C {
  static const int n = 5;
  static constexpr float f = 2.f;
};
__global__ void k(float *a) { a[0] = C::n * C::f; }
} // namespace c_static_const_member
namespace c_std_abs_device {
__global__ void k(float *a, int *b) {
  a[0] = std::abs(a[1]) + std::fabs(a[2]);
  b[0] = abs(b[1]);
}
} // namespace c_std_abs_device
namespace c_std_pow_sqrt {
__global__ void k(float *a, double *d) {
  a[0] = std::pow(a[1], 2.0f) + std::sqrt(a[2]) + std::exp(a[3]) + powf(a[1], 2);
  d[0] = pow(d[1], 2) + std::pow(d[2], 3);
}
} // namespace c_std_pow_sqrt
namespace c_pow_mixed {
__global__ void k(float *a) { a[0] = pow(a[1], 2) + pow(a[2], 0.5) + pow(2, a[3]); }
} // namespace c_pow_mixed
namespace c_max_mixed {
__global__ void k(float *a, int n, unsigned u, long long l, unsigned long long ul) {
  a[0] = max(n, u) + max(a[1], 0.0) + min(l, (long long)n) + max(l, ul) + fmax(a[0], 1.0f);
}
} // namespace c_max_mixed
namespace c_min_float_double {
__global__ void k(float *a, double d) {
  a[0] = min(a[1], d);
  a[1] = max(d, a[2]);
}
} // namespace c_min_float_double
namespace c_size_t_min {
__global__ void k(size_t *a, int n) { a[0] = min(a[1], (size_t)n); }
} // namespace c_size_t_min
namespace c_long_min {
__global__ void k(long *a, unsigned long u) {
  a[0] = min(a[1], a[2]);
  u = max(u, 3ul);
  a[2] = u;
}
} // namespace c_long_min
namespace c_abs_long {
__global__ void k(long *a, long long *b) {
  a[0] = labs(a[1]);
  b[0] = llabs(b[1]);
  b[1] = abs(b[2]);
}
} // namespace c_abs_long
namespace c_math_constants {
__global__ void k(float *a) { a[0] = CUDART_INF_F + CUDART_PI_F; }
} // namespace c_math_constants
namespace c_shared_in_class {
struct Sh {
  __device__ operator float *() {
    extern __shared__ float s_[];
    return s_;
  }
};
__global__ void k(float *a) {
  float *s = Sh();
  s[0] = a[0];
  a[1] = s[0];
}
} // namespace c_shared_in_class
namespace c_device_lambda {
template <class F> __global__ void k(F f, float *a) { a[threadIdx.x] = f(a[threadIdx.x]); }
void h(float *a) {
  float s = 2;
  k<<<1, 32>>>([=] __device__(float x) { return x * s; }, a);
}
} // namespace c_device_lambda
namespace c_host_device_lambda {
template <class F> __global__ void k(F f, float *a) { a[threadIdx.x] = f(a[threadIdx.x]); }
void h(float *a) {
  float s = 2;
  auto g = [=] __host__ __device__(float x) { return x * s; };
  k<<<1, 32>>>(g, a);
  g(1);
}
} // namespace c_host_device_lambda
namespace c_host_fn_in_hd {
void host_only() { printf("x"); }
__host__ __device__ void f(bool b) {
  if (b) {
#ifndef __CUDA_ARCH__
    host_only();
#endif
  }
}
__global__ void k(float *a) { f(a[0] > 0); }
} // namespace c_host_fn_in_hd
namespace c_std_fns_hd_missing {
struct S {
  std::vector<int> v;
  __host__ __device__ int n() const { return 3; }
};
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_std_fns_hd_missing
namespace c_goto_over_init {
__global__ void k(int *a) {
  if (a[0])
    goto end;
  {
    int x = a[1];
    a[2] = x;
  }
end:
  a[3] = 1;
}
} // namespace c_goto_over_init
namespace c_switch_cross_init {
__global__ void k(int *a) {
  switch (a[0]) {
  case 0: {
    int x = 1;
    a[1] = x;
    break;
  }
  default: a[2] = 1;
  }
}
} // namespace c_switch_cross_init
namespace c_vla_host {
__global__ void k(int *a) { a[0] = 1; }
int h(int n) {
  int v[n];
  v[0] = 1;
  return v[0];
}
} // namespace c_vla_host
namespace c_narrowing_brace {
__global__ void k(float *a, int n) {
  float2 v = {(float)n, 1.f};
  int b[2] = {1, 2};
  a[0] = v.x + b[0];
}
} // namespace c_narrowing_brace
namespace c_narrowing_nonconst {
__global__ void k(float *a, int n, size_t s) {
  int b[] = {(int)s, n};
  unsigned c[2] = {n, n};
  a[0] = b[0] + c[1];
}
} // namespace c_narrowing_nonconst
namespace c_narrowing_host {
void g(size_t n) {
  dim3 d{n, n};
  int v[2] = {n, 3};
  (void)v;
  (void)d;
}
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_narrowing_host
namespace c_string_literal_char {
void f(char *s);
void h() {
  f("abc");
  char *p = "x";
  (void)p;
}
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_string_literal_char
namespace c_typename_missing {
template <class T> struct A {
  typedef T type;
};
template <class T> __global__ void k(T *a) {
  typename A<T>::type x = a[0];
  a[1] = x;
}
template __global__ void k<int>(int *);
} // namespace c_typename_missing
namespace c_two_phase_nondep {
template <class T> struct B {
  int m;
};
template <class T> struct D : B<T> {
  __device__ int f() { return this->m; }
};
__global__ void k(int *a) {
  D<int> d;
  d.m = 2;
  a[0] = d.f();
}
} // namespace c_two_phase_nondep
namespace c_attr_forceinline {
__device__ __forceinline__ float f(float x) { return x; }
__noinline__ __device__ float g(float x) { return x; }
static __inline__ __device__ float h1(float x) { return x; }
__global__ void k(float *a) { a[0] = f(g(h1(a[1]))); }
} // namespace c_attr_forceinline
namespace c_launch_bounds_3 {
__global__ void __launch_bounds__(128, 2, 1) k(float *a) { a[0] = 1; }
} // namespace c_launch_bounds_3
namespace c_cluster_dims {
__global__ void __cluster_dims__(2, 1, 1) k(float *a) { a[0] = 1; }
} // namespace c_cluster_dims
namespace c_grid_constant {
struct P {
  float x[4];
};
__global__ void k(const __grid_constant__ P p, float *a) { a[0] = p.x[1]; }
} // namespace c_grid_constant
namespace c_maxnreg {
__global__ void __maxnreg__(64) k(float *a) { a[0] = 1; }
} // namespace c_maxnreg
namespace c_block_size_attr {
__global__ void __block_size__((128, 1, 1)) k(float *a) { a[0] = 1; }
} // namespace c_block_size_attr
namespace c_nv_target {
__host__ __device__ int f() { NV_IF_TARGET(NV_IS_DEVICE, (return 1;), (return 2;)) return 0; }
__global__ void k(int *a) { a[0] = f(); }
} // namespace c_nv_target
namespace c_builtin_assume {
__global__ void k(float *a, int n) {
  __builtin_assume(n > 0);
  __builtin_assume_aligned(a, 16);
  a[0] = n;
}
} // namespace c_builtin_assume
namespace c_nv_pragmas {
#pragma nv_diag_suppress 177
__global__ void k(float *a) {
  int unused;
#pragma unroll 4
  for (int i = 0; i < 8; i++)
    a[i] = i;
}
} // namespace c_nv_pragmas
namespace c_pragma_unroll_const {
const int U = 4;
template <int N> __global__ void k(float *a) {
#pragma unroll N
  for (int i = 0; i < 8; i++)
    a[i] = i;
#pragma unroll U
  for (int i = 0; i < 8; i++)
    a[i] = i;
#pragma unroll(2)
  for (int i = 0; i < 8; i++)
    a[i] += i;
}
template __global__ void k<2>(float *);
} // namespace c_pragma_unroll_const
namespace c_pragma_unroll_1_bool {
__global__ void k(float *a) {
#pragma unroll 1
  for (int i = 0; i < 8; i++)
    a[i] = i;
#pragma nounroll
  for (int i = 0; i < 8; i++)
    a[i] = i;
}
} // namespace c_pragma_unroll_1_bool
namespace c_ldg_all {
__global__ void k(const float4 *a, float4 *b, const int2 *c, const double *d, double *e) {
  b[0] = __ldg(a);
  int2 x = __ldg(c);
  e[0] = __ldg(d) + x.x;
}
} // namespace c_ldg_all
namespace c_ld_st_cache {
__global__ void k(float *a, float4 *b) {
  a[0] = __ldcs(a + 1) + __ldcg(a + 2) + __ldca(a + 3) + __ldlu(a) + __ldcv(a);
  __stcs(a, 1.f);
  __stcg(a, 1.f);
  __stwt(a, 2.f);
  __stwb(a, 1.f);
  b[0] = __ldcs(b + 1);
  __stcs(b, b[2]);
}
} // namespace c_ld_st_cache
namespace c_warp_sync {
__global__ void k(int *a, float *f, double *d, unsigned long long *u) {
  a[0] = __shfl_down_sync(~0u, a[1], 1) + __ballot_sync(~0u, a[2]) + __popc(__activemask()) +
         __reduce_add_sync(~0u, a[3]) + __any_sync(~0u, a[1]) + __match_any_sync(~0u, a[2]);
  int p;
  a[1] = __match_all_sync(~0u, a[2], &p);
  f[0] = __shfl_xor_sync(0xffffffff, f[0], 1, 16);
  d[0] = __shfl_sync(~0u, d[0], 0);
  u[0] = __shfl_up_sync(~0u, u[0], 2);
  __syncwarp();
}
} // namespace c_warp_sync
namespace c_atomic_float4 {
__global__ void k(float2 *a, float4 *b) {
  atomicAdd(a, make_float2(1, 2));
  atomicAdd(b, make_float4(1, 2, 3, 4));
}
} // namespace c_atomic_float4
namespace c_nanosleep {
__global__ void k(int *a) {
  __nanosleep(100);
  a[0] = 1;
}
} // namespace c_nanosleep
namespace c_math_all {
__global__ void k(float *a, double *d) {
  a[0] = rsqrtf(a[1]) + __expf(a[2]) + __fdividef(a[0], a[1]) + fmaf(a[0], a[1], a[2]) + __fmaf_rn(a[0], a[1], a[2]) +
         erff(a[0]) + erfcf(a[1]) + normcdff(a[1]) + rcbrtf(a[1]) + sinpif(a[1]) + exp10f(a[1]) + lgammaf(a[1]) +
         __saturatef(a[2]) + fdimf(a[0], a[1]) + copysignf(a[0], a[1]) + norm3df(a[0], a[1], a[2]) +
         rhypotf(a[0], a[1]);
  d[0] = rsqrt(d[1]) + erfc(d[2]) + exp10(d[1]) + normcdf(d[1]) + cospi(d[0]) + __dadd_rn(d[0], d[1]) + j0(d[0]) +
         erfinv(d[1]);
  sincosf(a[0], a + 1, a + 2);
  sincos(d[0], d + 1, d + 2);
}
} // namespace c_math_all
namespace c_float_overloads {
__global__ void k(float *a) {
  a[0] = sqrt(a[1]) + exp(a[2]) + rsqrt(a[3]) + sin(a[1]) + log(a[1]) + fabs(a[1]) + floor(a[1]) + ceil(a[1]) +
         fmod(a[0], a[1]) + tanh(a[1]) + atan2(a[0], a[1]) + erf(a[1]) + round(a[1]) + hypot(a[0], a[1]) + log2(a[1]) +
         exp2(a[1]) + cbrt(a[1]) + log1p(a[1]) + rint(a[1]) + trunc(a[1]) + fma(a[0], a[1], a[2]) +
         copysign(a[0], a[1]);
}
} // namespace c_float_overloads
namespace c_intrinsics_int {
__global__ void k(int *a, unsigned *u, unsigned long long *l) {
  a[0] = __popc(a[1]) + __clz(a[2]) + __ffs(a[3]) + __brev(u[0]) + __mul24(a[0], a[1]) + __umulhi(u[0], u[1]) +
         __sad(a[0], a[1], u[0]) + __byte_perm(u[0], u[1], 0x1234) + __popcll(l[0]) + __clzll(l[0]) +
         __funnelshift_l(u[0], u[1], 3) + __dp4a(a[0], a[1], a[2]) + __vadd4(u[0], u[1]) + __hadd(a[0], a[1]) +
         __rhadd(a[0], a[1]) + __usad(u[0], u[1], u[2]) + __float_as_int(1.f) + __float2int_rn(2.f) +
         __double2hiint(1.0);
  l[0] = __umul64hi(l[0], l[1]) + __brevll(l[0]) + __double_as_longlong(1.0);
}
} // namespace c_intrinsics_int
namespace c_simd_video {
__global__ void k(unsigned *u, int *a) {
  u[0] = __vmaxs2(u[1], u[2]) + __vcmpeq4(u[1], u[2]) + __viaddmax_s32(a[0], a[1], a[2]) +
         __vimax3_s32(a[0], a[1], a[2]) + __vsadu4(u[0], u[1]);
}
} // namespace c_simd_video
namespace c_inline_asm {
__device__ int lane() {
  int r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}
__global__ void k(int *a) {
  a[0] = lane();
  asm volatile("bar.sync 0;" ::: "memory");
}
} // namespace c_inline_asm
namespace c_cuComplex {
__global__ void k(cuFloatComplex *a, cuDoubleComplex *b) {
  a[0] = cuCmulf(a[1], a[2]);
  b[0] = cuCadd(b[1], make_cuDoubleComplex(1, 2));
  a[1].x = cuCabsf(a[0]);
}
} // namespace c_cuComplex
namespace c_printf_assert {
__global__ void k(int *a) {
  assert(a[0] > 0);
  printf("%d %s %f\n", a[0], "x", 1.5);
}
} // namespace c_printf_assert
namespace c_malloc_device {
__global__ void k(int **a) {
  a[0] = (int *)malloc(16);
  int *p = new int[4];
  p[0] = 1;
  delete[] p;
  free(a[0]);
  memset(a, 0, 8);
  memcpy(a, a + 1, 8);
}
} // namespace c_malloc_device
namespace c_virtual {
struct Base {
  __device__ virtual float f(float x) { return x; }
  __device__ virtual ~Base() {}
};
struct Der : Base {
  __device__ float f(float x) override { return 2 * x; }
};
__global__ void k(float *a) {
  Der d;
  Base *b = &d;
  a[0] = b->f(a[1]);
}
} // namespace c_virtual
namespace c_fn_pointer {
__device__ float f(float x) { return x; }
typedef float (*fp)(float);
__device__ fp table[1] = {f};
__global__ void k(float *a) { a[0] = table[0](a[1]); }
} // namespace c_fn_pointer
namespace c_fn_pointer_arg {
__device__ float f(float x) { return x; }
template <float (*F)(float)> __global__ void k(float *a) { a[0] = F(a[1]); }
void h(float *a) { k<f><<<1, 1>>>(a); }
} // namespace c_fn_pointer_arg
namespace c_launch_ex {
__global__ void k(float *a, int n) { a[0] = n; }
void h(float *a) {
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(1);
  c.blockDim = dim3(32);
  cudaLaunchKernelEx(&c, k, a, 3);
}
} // namespace c_launch_ex
namespace c_helper_math_overload {
inline __host__ __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __host__ __device__ float dot(float3 a, float3 b) { return a.x * b.x; }
inline __host__ __device__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline float fminf(float a, float b, int);
__global__ void k(float3 *a, float *b) { b[0] = dot(a[0] + a[1], a[2]) + clamp(b[0], 0, 1); }
} // namespace c_helper_math_overload
namespace c_own_fminf {
#ifndef __CUDACC__
#endif
inline __host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
inline int max(int a, int b, int c) { return a > b ? a : b; }
__global__ void k(float *b) { b[0] = lerp(b[0], b[1], b[2]); }
} // namespace c_own_fminf
namespace c_own_max_fn {
template <typename T> __host__ __device__ T mymax(T a, T b) { return a > b ? a : b; }
__device__ float max3(float a, float b, float c) { return fmaxf(a, max(b, c)); }
__global__ void k(float *b) { b[0] = mymax(b[0], b[1]) + max3(b[1], b[0], 2); }
} // namespace c_own_max_fn
namespace c_anonymous_union {
struct U {
  union {
    float f[4];
    struct {
      float x, y, z, w;
    };
  };
};
__global__ void k(U *u, float *a) { a[0] = u->x + u->f[1]; }
} // namespace c_anonymous_union
namespace c_designated_init {
struct P {
  int a, b;
};
__global__ void k(int *a) {
  P p = {.a = 1, .b = 2};
  a[0] = p.a + p.b;
}
} // namespace c_designated_init
namespace c_compound_literal {
struct P {
  int a, b;
};
__global__ void k(int *a) { a[0] = ((P){1, 2}).b; }
} // namespace c_compound_literal
namespace c_statement_expr {
__global__ void k(int *a) {
  a[0] = ({
    int t = a[1];
    t * 2;
  });
}
} // namespace c_statement_expr
namespace c_typeof {
__global__ void k(int *a) {
  __typeof__(a[0]) x = 3;
  a[0] = x;
}
} // namespace c_typeof
namespace c_int128 {
__global__ void k(unsigned long long *a) {
  unsigned __int128 x = (unsigned __int128)a[0] * a[1];
  a[2] = (unsigned long long)(x >> 64);
}
} // namespace c_int128
namespace c_restrict_variants {
__global__ void k(const float *__restrict__ a, float *__restrict b) { b[0] = a[0]; }
} // namespace c_restrict_variants
namespace c_volatile_shared {
__global__ void k(float *a) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = a[0];
  volatile float *p = s;
  a[1] = p[1];
}
} // namespace c_volatile_shared
namespace c_align_struct {
struct __align__(16) A16 {
  float x, y, z, w;
};
struct __builtin_align__(8) A8 {
  float x, y;
};
__global__ void k(A16 *a, A8 *b) { a[0].x = b[0].y; }
} // namespace c_align_struct
namespace c_align_shared {
__global__ void k(float *a) {
  __shared__ __align__(16) float s[32];
  extern __shared__ __align__(16) unsigned char d[];
  s[0] = a[0];
  a[1] = s[1] + d[0];
}
} // namespace c_align_shared
namespace c_device_static_local {
__global__ void k(int *a) {
  static __device__ int c;
  static int d = 0;
  static __shared__ int s;
  static const int t[3] = {1, 2, 3};
  s = 1;
  a[0] = c + d + s + t[a[1] % 3];
}
} // namespace c_device_static_local
namespace c_device_constexpr_static {
__global__ void k(int *a) {
  constexpr int n = 3;
  static constexpr float w[2] = {1, 2};
  a[0] = n + w[a[1]];
}
} // namespace c_device_constexpr_static
namespace c_nontrivial_shared {
struct I {
  int x;
  __device__ I() {}
};
__global__ void k(int *a) {
  __shared__ I s[3];
  s[0].x = 1;
  a[0] = s[0].x;
}
} // namespace c_nontrivial_shared
namespace c_constant_nontrivial {
struct Cx {
  float x, y;
  __host__ __device__ Cx() {}
};
__constant__ Cx cc[4];
__global__ void k(float *a) { a[0] = cc[1].x; }
} // namespace c_constant_nontrivial
namespace c_hd_default_ctor_host {
struct H {
  std::string s;
};
__global__ void k(int *a) { a[0] = sizeof(H); }
} // namespace c_hd_default_ctor_host
namespace c_defaulted_hd {
struct H {
  int x;
  __host__ __device__ H() = default;
  __host__ __device__ H(const H &) = default;
};
__global__ void k(H h, int *a) {
  H g = h;
  a[0] = g.x;
}
} // namespace c_defaulted_hd
namespace c_cudaDeviceProp_old {
void h() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  int x = p.multiProcessorCount;
  (void)x;
}
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_cudaDeviceProp_old
namespace c_sm_hdrs {
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_sm_hdrs
namespace c_tail_launch_device_sync {
__global__ void k(int *a) {
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  a[0] = __syncthreads_count(a[1]) + __syncthreads_and(a[2]) + __syncthreads_or(a[0]);
}
} // namespace c_tail_launch_device_sync
namespace c_warpSize_const {
__global__ void k(int *a) {
  a[0] = threadIdx.x % warpSize;
  __shared__ int s[32];
  s[threadIdx.x / warpSize] = 1;
  a[1] = s[0];
}
} // namespace c_warpSize_const
namespace c_warpsize_template {
template <int W> struct WW {};
__global__ void k(int *a) {
  const int lanes = warpSize;
  a[0] = lanes;
}
} // namespace c_warpsize_template
namespace c_gridDim_lambda {
__global__ void k(int *a) {
  auto f = [&](int i) { return a[i] + threadIdx.x; };
  a[0] = f(1);
  auto g = [=](auto x) { return x + gridDim.x; };
  a[1] = g(2);
}
} // namespace c_gridDim_lambda
namespace c_lambda_constexpr_if {
template <class T> __global__ void k(T *a) {
  if constexpr (sizeof(T) == 4)
    a[0] = 1;
  else
    a[0] = 2;
}
template __global__ void k<int>(int *);
} // namespace c_lambda_constexpr_if
namespace c_variadic {
template <class... T> __device__ float sum(T... t) { return (t + ... + 0.f); }
__global__ void k(float *a) { a[0] = sum(a[1], a[2], 3.f); }
} // namespace c_variadic
namespace c_structured_binding {
struct P {
  int a, b;
};
__global__ void k(int *o, P p) {
  auto [x, y] = p;
  o[0] = x + y;
}
} // namespace c_structured_binding
namespace c_std_array_device {
__global__ void k(int *o, std::array<int, 3> p) { o[0] = 1; }
} // namespace c_std_array_device
namespace c_std_swap_move_device {
template <class T> __device__ void sw(T &a, T &b) {
  T t = a;
  a = b;
  b = t;
}
__global__ void k(int *o) { sw(o[0], o[1]); }
} // namespace c_std_swap_move_device
namespace c_std_forward_device {
template <class F, class... A> __global__ void k(F f, A &&...a) { f(std::forward<A>(a)...); }
__global__ void k2(int *a) { a[0] = std::move(a[1]); }
} // namespace c_std_forward_device
namespace c_std_is_same {
template <class T> __global__ void k(T *a) {
  if (std::is_same<T, float>::value)
    a[0] = 1;
  if constexpr (std::is_same_v<T, int>)
    a[1] = 2;
  typename std::conditional<true, int, float>::type x = 1;
  a[2] = x;
}
template __global__ void k<float>(float *);
} // namespace c_std_is_same
namespace c_cstdint {
__global__ void k(uint8_t *a, std::int64_t *b, uint n, ushort s, ulong l) {
  a[0] = n + s + l;
  b[0] = 1;
}
} // namespace c_cstdint
namespace c_uchar_types {
__global__ void k(uchar4 *a, ushort2 *b, char2 c, longlong2 *l, ulonglong4 *u, dim3 d) {
  a[0] = make_uchar4(1, 2, 3, 4);
  b[0].x = c.x;
  l[0] = make_longlong2(1, 2);
  u[0].w = d.x;
}
} // namespace c_uchar_types
namespace c_double4_16a {
__global__ void k(double4_16a *a, double4_32a *b) { a[0].x = b[0].w; }
} // namespace c_double4_16a
namespace c_uninit_const {
struct E {
  int x;
};
const E e = {3};
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_uninit_const
namespace c_const_array_device_read {
const int tab[4] = {1, 2, 3, 4};
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_const_array_device_read
namespace c_enum_arith {
enum A1 { X = 1, Y };
enum B1 { Z = 3 };
__global__ void k(int *a) {
  a[0] = X + Z;
  float f = X * 1.5f;
  a[1] = f;
}
} // namespace c_enum_arith
namespace c_long_double_host {
long double h(long double x) { return x * 2; }
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_long_double_host
namespace c_float128_host {
double h(double x) { return std::abs(x) + std::lgamma(x) + drand48(); }
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_float128_host
namespace c_sys_headers {
__global__ void k(int *a) { a[0] = 1; }
} // namespace c_sys_headers
namespace c_size_noinclude {
__global__ void k(float *a, size_t n) {
  if (n > UINT_MAX)
    a[0] = 1;
}
} // namespace c_size_noinclude
namespace c_host_abs {
float h(float *a) {
  return fabs(a[0]) + abs(a[1] - a[2]) + fabsf(2) + max(1, 2) + min(2.f, 3.f) + sqrt(a[0]) + rsqrtf(2.f);
}
__global__ void k(float *a) { a[0] = 1; }
} // namespace c_host_abs
namespace c_host_max_mixed {
int h(int n, size_t s) { return max(n, 3) + min(2u, 3u) + max(1.f, 2.f) + max(2.0, 3.f); }
__global__ void k(float *a) { a[0] = 1; }
} // namespace c_host_max_mixed
namespace c_host_saturate {
float h(float n) { return rsqrt(n) + rsqrtf(n) + exp10f(n) + sinpif(n) + normcdff(n); }
__global__ void k(float *a) { a[0] = 1; }
} // namespace c_host_saturate
namespace c_host_float_as_int {
__host__ __device__ unsigned f(float x) { return *(unsigned *)&x; }
__global__ void k(float *a) { a[0] = f(a[1]); }
} // namespace c_host_float_as_int
namespace c_macro_kernel {
#define KERNEL(name, op)                                                                                               \
  __global__ void name(float *a) { a[0] = a[1] op a[2]; }
KERNEL(kadd, +) KERNEL(kmul, *)
} // namespace c_macro_kernel
namespace c_default_args_kernel {
__global__ void k(float *a, int n = 3) { a[0] = n; }
void h(float *a) { k<<<1, 1>>>(a); }
} // namespace c_default_args_kernel
namespace c_template_static_shared {
template <int N, typename T> __global__ void k(T *a) {
  __shared__ T s[N];
  s[threadIdx.x % N] = a[0];
  a[1] = s[0];
}
void h(float *a) { k<32><<<1, 32>>>(a); }
} // namespace c_template_static_shared
namespace c_template_default {
template <typename T = float, int N = 4> __global__ void k(T *a) { a[0] = N; }
void h(float *a) {
  k<><<<1, 32>>>(a);
  k<float, 2><<<1, 1>>>(a);
}
} // namespace c_template_default
namespace c_specialization {
template <typename T> __global__ void k(T *a) { a[0] = 1; }
template <> __global__ void k<double>(double *a) { a[0] = 2; }
void h(double *a) { k<<<1, 1>>>(a); }
} // namespace c_specialization
namespace c_class_static_device {
struct S {
  static __device__ float f(float x) { return x; }
  template <int N> static __host__ __device__ int g() { return N; }
};
__global__ void k(float *a) { a[0] = S::f(a[1]) + S::g<3>(); }
} // namespace c_class_static_device
namespace c_exceptions_host {
void h(int x) {
  try {
    if (x)
      throw std::runtime_error("e");
  } catch (const std::exception &e) {
  }
}
__global__ void k(float *a) { a[0] = 1; }
} // namespace c_exceptions_host
namespace c_throw_in_hd {
__host__ __device__ int f(int x) {
#ifndef __CUDA_ARCH__
  if (x < 0)
    throw std::runtime_error("e");
#endif
  return x;
}
__global__ void k(int *a) { a[0] = f(a[1]); }
} // namespace c_throw_in_hd
namespace c_noexcept_assert_hd {
__host__ __device__ int f(int x) noexcept {
  assert(x > 0);
  return x;
}
__global__ void k(int *a) { a[0] = f(a[1]); }
} // namespace c_noexcept_assert_hd
namespace c_trap {
__global__ void k(int *a) {
  if (a[0])
    __trap();
  __brkpt();
  a[1] = 1;
}
} // namespace c_trap
namespace c_exit_device {
__global__ void k(int *a) {
  if (a[0])
    asm("exit;");
  a[1] = 1;
}
} // namespace c_exit_device
namespace c_isglobal {
__global__ void k(int *a) {
  unsigned s = __cvta_generic_to_shared(a);
  a[0] = __isGlobal(a) + s;
}
} // namespace c_isglobal
namespace c_cvta {
__global__ void k(int *a) {
  __shared__ int s[4];
  unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(s));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(p), "l"(a));
  a[0] = s[1];
  size_t g = __cvta_generic_to_global(a);
  a[1] = g;
}
} // namespace c_cvta
namespace c_prefetch {
__global__ void k(int *a) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(a));
  a[0] = __builtin_expect(a[1] > 0, 1);
  __builtin_unreachable();
}
} // namespace c_prefetch
namespace c_trailing_c_cast {
__global__ void k(float *a, void *v) {
  float *p = (float *)v;
  a[0] = p[1];
  char *c = (char *)a;
  c[1] = 'x';
  int *q = static_cast<int *>(v);
  a[1] = q[0];
}
} // namespace c_trailing_c_cast
namespace c_missing_return {
__device__ int f(int x) {
  if (x)
    return 1;
}
__global__ void k(int *a) { a[0] = f(a[1]); }
} // namespace c_missing_return
namespace c_void_ptr_arith {
__global__ void k(void *v) { ((char *)v)[1] = 2; }
size_t h(void *p) { return (char *)p - (char *)0; }
} // namespace c_void_ptr_arith
namespace c_shadow_param_builtin {
__global__ void k(float *a) {
  const dim3 threadIdx2 = threadIdx;
  const uint3 b = blockIdx;
  dim3 g = gridDim;
  a[0] = threadIdx2.x + b.x + g.x;
}
} // namespace c_shadow_param_builtin
namespace c_threadidx_copy {
__device__ int idx(const uint3 &t, const dim3 &b) { return t.x * b.x; }
__global__ void k(int *a) { a[0] = idx(threadIdx, blockDim); }
} // namespace c_threadidx_copy
namespace c_typedef_fn_attr {
typedef __device__ float (*fp)(float);
__device__ float f(float x) { return x; }
__global__ void k(float *a) {
  fp p = f;
  a[0] = p(a[1]);
}
} // namespace c_typedef_fn_attr
namespace c_attribute_order {
void __global__ k(float *a) { a[0] = 1; }
float __device__ __host__ f(float x) { return x; }
inline __device__ float static g(float x) { return x; }
} // namespace c_attribute_order
namespace c_trailing_attr_lambda {
__global__ void k(float *a) {
  auto f = [](float x) -> float { return x; };
  a[0] = f(a[1]);
}
} // namespace c_trailing_attr_lambda
namespace c_bool_conv {
__global__ void k(float *a, bool *b) {
  a[0] += b[0];
  b[1] = a[1];
  if (a)
    a[2] = !b[0];
  b[2] |= a[0] > 1;
}
} // namespace c_bool_conv
namespace c_bool_increment {
__global__ void k(int *b) {
  bool x = false;
  x += 1;
  b[0] = x;
}
} // namespace c_bool_increment
namespace c_char_subscript {
__global__ void k(int *b, char c, unsigned char u) {
  b[c] = u;
  b[u] = c;
}
} // namespace c_char_subscript
namespace c_comma_launch {
__global__ void k(int *b) { b[0] = 1; }
void h(int *b, cudaStream_t s) { k<<<dim3(1, 1), dim3(32, 1), 0, s>>>(b), cudaDeviceSynchronize(); }
} // namespace c_comma_launch
namespace c_in_class_kernel_friend {
class W {
  float *p;

public:
  void run();
  friend __global__ void k(W w);
};
__global__ void k(W w) { w.p[0] = 1; }
void W::run() { k<<<1, 1>>>(*this); }
} // namespace c_in_class_kernel_friend
namespace c_private_type_kernel {
class W {
  struct In {
    int x;
  };

public:
  static void run(int *a);
  template <class T> friend __global__ void kk(T *);
};
template <class T> __global__ void kk(T *a) { a[0] = 1; }
void W::run(int *a) { kk<<<1, 1>>>(a); }
} // namespace c_private_type_kernel
namespace c_atomic_of_an_order {
__global__ void k(unsigned *flag, unsigned long long *value) {
  if (__nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE))
    __nv_atomic_store_n(value, 1ull, __NV_ATOMIC_RELAXED);
  const unsigned long long old = __nv_atomic_load_n(value, __NV_ATOMIC_RELAXED);
  atomicCAS(value, old, old + 1);
}
void h(unsigned *flag, unsigned long long *value) { k<<<1, 1>>>(flag, value); }
} // namespace c_atomic_of_an_order
namespace c_asks_for_nvcc {
#ifdef __NVCC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif
ON_BOTH inline float half(float x) { return x / 2; }
__global__ void k(float *a) { a[0] = half(a[0]); }
void h(float *a) { k<<<1, 1>>>(a); }
} // namespace c_asks_for_nvcc
namespace c_value_of_cudacc {
#if __CUDACC__
__device__ inline float half(float x) { return x / 2; }
#endif
__global__ void k(float *a) { a[0] = half(a[0]); }
void h(float *a) { k<<<1, 1>>>(a); }
} // namespace c_value_of_cudacc
namespace c_version_of_nvcc {
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1200
__global__ void k(float *a) { a[0] = 1; }
#endif
void h(float *a) { k<<<1, 1>>>(a); }
} // namespace c_version_of_nvcc
