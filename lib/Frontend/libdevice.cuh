// libdevice's functions by the host's mathematics, for code that will run on the host: parsed with the user's code,
// they inline like anything else, and only those that are used are emitted.
extern "C" {
#define D __attribute__((device)) inline
#define HOST(name, type, args) __attribute__((device)) type __optiml_host_##name args __asm__(#name);

// Unary functions of both precisions.
#define MATH1(n)                                                                                                       \
  D double __nv_##n(double x) { return __builtin_##n(x); }                                                             \
  D float __nv_##n##f(float x) { return __builtin_##n##f(x); }
MATH1(acos)
MATH1(acosh) MATH1(asin) MATH1(asinh) MATH1(atan) MATH1(atanh) MATH1(cbrt) MATH1(ceil) MATH1(cos) MATH1(cosh) MATH1(erf)
    MATH1(erfc) MATH1(exp) MATH1(exp2) MATH1(expm1) MATH1(fabs) MATH1(floor) MATH1(lgamma) MATH1(log) MATH1(log10)
        MATH1(log1p) MATH1(log2) MATH1(logb) MATH1(nearbyint) MATH1(rint) MATH1(round) MATH1(sin) MATH1(sinh)
            MATH1(sqrt) MATH1(tan) MATH1(tanh) MATH1(tgamma) MATH1(trunc)
#undef MATH1
#define MATH2(n)                                                                                                       \
  D double __nv_##n(double x, double y) { return __builtin_##n(x, y); }                                                \
  D float __nv_##n##f(float x, float y) { return __builtin_##n##f(x, y); }
                MATH2(atan2) MATH2(copysign) MATH2(fdim) MATH2(fmax) MATH2(fmin) MATH2(fmod) MATH2(hypot)
                    MATH2(nextafter) MATH2(pow) MATH2(remainder)
#undef MATH2
                        HOST(j0, double, (double)) HOST(j1, double, (double)) HOST(y0, double, (double))
                            HOST(y1, double, (double)) HOST(jn, double, (int, double)) HOST(yn, double, (int, double))
                                HOST(exp10, double, (double)) HOST(exp10f, float, (float))
#define BESSEL(n)                                                                                                      \
  D double __nv_##n(double x) { return __optiml_host_##n(x); }                                                         \
  D float __nv_##n##f(float x) { return (float)__optiml_host_##n(x); }
                                    BESSEL(j0) BESSEL(j1) BESSEL(y0) BESSEL(y1)
#undef BESSEL
                                        D double __nv_jn(int n, double x) {
  return __optiml_host_jn(n, x);
}
D float __nv_jnf(int n, float x) { return (float)__optiml_host_jn(n, x); }
D double __nv_yn(int n, double x) { return __optiml_host_yn(n, x); }
D float __nv_ynf(int n, float x) { return (float)__optiml_host_yn(n, x); }
D double __nv_exp10(double x) { return __optiml_host_exp10(x); }
D float __nv_exp10f(float x) { return __optiml_host_exp10f(x); }
D double __nv_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
D float __nv_fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
D double __nv_ldexp(double x, int n) { return __builtin_ldexp(x, n); }
D float __nv_ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
D double __nv_scalbn(double x, int n) { return __builtin_ldexp(x, n); }
D float __nv_scalbnf(float x, int n) { return __builtin_ldexpf(x, n); }
D double __nv_frexp(double x, int *e) { return __builtin_frexp(x, e); }
D float __nv_frexpf(float x, int *e) { return __builtin_frexpf(x, e); }
D double __nv_modf(double x, double *i) {
  *i = __builtin_trunc(x);
  return __builtin_copysign(__builtin_isinf(x) ? 0.0 : x - *i, x);
}
D float __nv_modff(float x, float *i) {
  *i = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_isinf(x) ? 0.0f : x - *i, x);
}
HOST(remquo, double, (double, double, int *))
HOST(remquof, float, (float, float, int *)) D double __nv_remquo(double x, double y, int *q) {
  return __optiml_host_remquo(x, y, q);
}
D float __nv_remquof(float x, float y, int *q) { return __optiml_host_remquof(x, y, q); }
HOST(ilogb, int, (double)) HOST(ilogbf, int, (float)) D int __nv_ilogb(double x) { return __optiml_host_ilogb(x); }
D int __nv_ilogbf(float x) { return __optiml_host_ilogbf(x); }
D long long __nv_llrint(double x) { return (long long)__builtin_rint(x); }
D long long __nv_llrintf(float x) { return (long long)__builtin_rintf(x); }
D long long __nv_llround(double x) { return (long long)__builtin_round(x); }
D long long __nv_llroundf(float x) { return (long long)__builtin_roundf(x); }
D double __nv_powi(double x, int n) { return __builtin_pow(x, (double)n); }
D float __nv_powif(float x, int n) { return __builtin_powf(x, (float)n); }
D double __nv_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
D float __nv_rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
D double __nv_rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
D float __nv_rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
D double __nv_rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
D float __nv_rhypotf(float x, float y) { return 1.0f / __builtin_hypotf(x, y); }
D double __nv_norm3d(double a, double b, double c) { return __builtin_sqrt(a * a + b * b + c * c); }
D float __nv_norm3df(float a, float b, float c) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c);
}
D double __nv_norm4d(double a, double b, double c, double d) { return __builtin_sqrt(a * a + b * b + c * c + d * d); }
D float __nv_norm4df(float a, float b, float c, float d) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
D double __nv_rnorm3d(double a, double b, double c) { return 1.0 / __nv_norm3d(a, b, c); }
D float __nv_rnorm3df(float a, float b, float c) { return 1.0f / __nv_norm3df(a, b, c); }
D double __nv_rnorm4d(double a, double b, double c, double d) { return 1.0 / __nv_norm4d(a, b, c, d); }
D float __nv_rnorm4df(float a, float b, float c, float d) { return 1.0f / __nv_norm4df(a, b, c, d); }
D double __nv_norm(int n, const double *p) {
  double s = 0;
  for (int i = 0; i < n; ++i)
    s += p[i] * p[i];
  return __builtin_sqrt(s);
}
D float __nv_normf(int n, const float *p) {
  double s = 0;
  for (int i = 0; i < n; ++i)
    s += (double)p[i] * p[i];
  return (float)__builtin_sqrt(s);
}
D double __nv_rnorm(int n, const double *p) { return 1.0 / __nv_norm(n, p); }
D float __nv_rnormf(int n, const float *p) { return 1.0f / __nv_normf(n, p); }
D double __nv_sinpi(double x) {
  double r = x - 2.0 * __builtin_rint(0.5 * x);
  return __builtin_sin(3.14159265358979323846 * (r > 0.5 ? 1.0 - r : r < -0.5 ? -1.0 - r : r));
}
D double __nv_cospi(double x) {
  double r = __builtin_fabs(x - 2.0 * __builtin_rint(0.5 * x));
  return r == 0.5 ? 0.0 : __builtin_cos(3.14159265358979323846 * r);
}
D float __nv_sinpif(float x) { return (float)__nv_sinpi(x); }
D float __nv_cospif(float x) { return (float)__nv_cospi(x); }
D void __nv_sincos(double x, double *s, double *c) {
  *s = __builtin_sin(x);
  *c = __builtin_cos(x);
}
D void __nv_sincosf(float x, float *s, float *c) {
  *s = __builtin_sinf(x);
  *c = __builtin_cosf(x);
}
D void __nv_sincospi(double x, double *s, double *c) {
  *s = __nv_sinpi(x);
  *c = __nv_cospi(x);
}
D void __nv_sincospif(float x, float *s, float *c) {
  *s = __nv_sinpif(x);
  *c = __nv_cospif(x);
}
D double __nv_normcdf(double x) { return 0.5 * __builtin_erfc(-x * 0.70710678118654752440); }
D float __nv_normcdff(float x) { return (float)__nv_normcdf(x); }
D double __nv_erfcx(double x) {
  if (x < 25)
    return __builtin_exp(x * x) * __builtin_erfc(x);
  double y = 1 / (x * x);
  return 0.56418958354775628695 / x * (1 - 0.5 * y * (1 - 1.5 * y * (1 - 2.5 * y)));
}
D float __nv_erfcxf(float x) { return (float)__nv_erfcx(x); }
// A start by Giles's approximation, then Newton steps on erf (or erfc in the tails).
D double __nv_erfinv(double x) {
  if (!(__builtin_fabs(x) < 1))
    return __builtin_fabs(x) == 1 ? x * __builtin_inf() : __builtin_nan("");
  double w = -__builtin_log((1 - x) * (1 + x)), p;
  if (w < 5) {
    w -= 2.5;
    p = 2.81022636e-08;
    p = 3.43273939e-07 + p * w;
    p = -3.5233877e-06 + p * w;
    p = -4.39150654e-06 + p * w;
    p = 0.00021858087 + p * w;
    p = -0.00125372503 + p * w;
    p = -0.00417768164 + p * w;
    p = 0.246640727 + p * w;
    p = 1.50140941 + p * w;
  } else {
    w = __builtin_sqrt(w) - 3;
    p = -0.000200214257;
    p = 0.000100950558 + p * w;
    p = 0.00134934322 + p * w;
    p = -0.00367342844 + p * w;
    p = 0.00573950773 + p * w;
    p = -0.0076224613 + p * w;
    p = 0.00943887047 + p * w;
    p = 1.00167406 + p * w;
    p = 2.83297682 + p * w;
  }
  double r = p * x;
  for (int i = 0; i < 3; ++i) {
    double e = x > 0 ? (1 - x) - __builtin_erfc(r) : __builtin_erfc(-r) - (1 + x);
    r -= e / (1.12837916709551257390 * __builtin_exp(-r * r));
  }
  return r;
}
D float __nv_erfinvf(float x) { return (float)__nv_erfinv(x); }
D double __nv_erfcinv(double x) {
  if (!(x > 0 && x < 2))
    return x == 0 ? __builtin_inf() : x == 2 ? -__builtin_inf() : __builtin_nan("");
  if (x > 0.0625 && x < 1.9375)
    return __nv_erfinv(1 - x);
  double t = x > 1 ? 2 - x : x, r = __builtin_sqrt(-__builtin_log(t));
  for (int i = 0; i < 12; ++i)
    r += (__builtin_erfc(r) - t) / (1.12837916709551257390 * __builtin_exp(-r * r));
  return x > 1 ? -r : r;
}
D float __nv_erfcinvf(float x) { return (float)__nv_erfcinv(x); }
D double __nv_normcdfinv(double x) { return -1.41421356237309504880 * __nv_erfcinv(2 * x); }
D float __nv_normcdfinvf(float x) { return (float)__nv_normcdfinv(x); }
D double __nv_cyl_bessel_i0(double x) {
  double s = 1, t = 1, q = x * x / 4;
  for (int k = 1; k < 1000 && t > s * 1e-17; ++k) {
    t *= q / ((double)k * k);
    s += t;
  }
  return s;
}
D double __nv_cyl_bessel_i1(double x) {
  double s = 1, t = 1, q = x * x / 4;
  for (int k = 1; k < 1000 && t > s * 1e-17; ++k) {
    t *= q / ((double)k * (k + 1));
    s += t;
  }
  return s * x / 2;
}
D float __nv_cyl_bessel_i0f(float x) { return (float)__nv_cyl_bessel_i0(x); }
D float __nv_cyl_bessel_i1f(float x) { return (float)__nv_cyl_bessel_i1(x); }
D double __nv_nan(const signed char *) { return __builtin_nan(""); }
D float __nv_nanf(const signed char *) { return __builtin_nanf(""); }

// The approximate forms are as exact as the others here.
D float __nv_fast_cosf(float x) { return __builtin_cosf(x); }
D float __nv_fast_sinf(float x) { return __builtin_sinf(x); }
D float __nv_fast_tanf(float x) { return __builtin_tanf(x); }
D void __nv_fast_sincosf(float x, float *s, float *c) {
  *s = __builtin_sinf(x);
  *c = __builtin_cosf(x);
}
D float __nv_fast_expf(float x) { return __builtin_expf(x); }
D float __nv_fast_exp10f(float x) { return __optiml_host_exp10f(x); }
D float __nv_fast_logf(float x) { return __builtin_logf(x); }
D float __nv_fast_log2f(float x) { return __builtin_log2f(x); }
D float __nv_fast_log10f(float x) { return __builtin_log10f(x); }
D float __nv_fast_powf(float x, float y) { return __builtin_powf(x, y); }
D float __nv_fast_fdividef(float x, float y) { return x / y; }
D float __nv_saturatef(float x) { return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f); }

// Classification.
D int __nv_isnanf(float x) { return __builtin_isnan(x); }
D int __nv_isnand(double x) { return __builtin_isnan(x); }
D int __nv_isinff(float x) { return __builtin_isinf(x); }
D int __nv_isinfd(double x) { return __builtin_isinf(x); }
D int __nv_finitef(float x) { return __builtin_isfinite(x); }
D int __nv_isfinited(double x) { return __builtin_isfinite(x); }
D int __nv_signbitf(float x) { return __builtin_signbitf(x) != 0; }
D int __nv_signbitd(double x) { return __builtin_signbit(x) != 0; }

// Integers.
D int __nv_abs(int x) { return x < 0 ? -(unsigned)x : x; }
D long long __nv_llabs(long long x) { return x < 0 ? -(unsigned long long)x : x; }
D int __nv_min(int a, int b) { return a < b ? a : b; }
D int __nv_max(int a, int b) { return a > b ? a : b; }
D unsigned __nv_umin(unsigned a, unsigned b) { return a < b ? a : b; }
D unsigned __nv_umax(unsigned a, unsigned b) { return a > b ? a : b; }
D long long __nv_llmin(long long a, long long b) { return a < b ? a : b; }
D long long __nv_llmax(long long a, long long b) { return a > b ? a : b; }
D unsigned long long __nv_ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
D unsigned long long __nv_ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
D int __nv_mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
D unsigned __nv_umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
D long long __nv_mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
D unsigned long long __nv_umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
D int __nv_mul24(int a, int b) { return (int)((unsigned)(a << 8 >> 8) * (unsigned)(b << 8 >> 8)); }
D unsigned __nv_umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
D int __nv_brev(int x) { return (int)__builtin_bitreverse32((unsigned)x); }
D long long __nv_brevll(long long x) { return (long long)__builtin_bitreverse64((unsigned long long)x); }
D int __nv_clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
D int __nv_clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
D int __nv_ffs(int x) { return __builtin_ffs(x); }
D int __nv_ffsll(long long x) { return __builtin_ffsll(x); }
D int __nv_popc(unsigned x) { return __builtin_popcount(x); }
D int __nv_popcll(unsigned long long x) { return __builtin_popcountll(x); }
D unsigned __nv_byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long v = (unsigned long long)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned n = s >> (4 * i) & 15, byte = (unsigned)(v >> (8 * (n & 7))) & 255;
    r |= (n & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
  }
  return r;
}
D unsigned __nv_sad(int a, int b, unsigned c) {
  return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c;
}
D unsigned __nv_usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
D int __nv_hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
D int __nv_rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
D int __nv_uhadd(unsigned a, unsigned b) { return (int)(((unsigned long long)a + b) >> 1); }
D unsigned __nv_urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }

// The same bits as another type.
D int __nv_float_as_int(float x) { return __builtin_bit_cast(int, x); }
D unsigned __nv_float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
D float __nv_int_as_float(int x) { return __builtin_bit_cast(float, x); }
D float __nv_uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
D unsigned long long __nv_double_as_longlong(double x) { return __builtin_bit_cast(unsigned long long, x); }
D double __nv_longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
D double __nv_hiloint2double(int h, int l) {
  return __builtin_bit_cast(double, (unsigned long long)(unsigned)h << 32 | (unsigned)l);
}
D int __nv_double2hiint(double x) { return (int)(__builtin_bit_cast(unsigned long long, x) >> 32); }
D int __nv_double2loint(double x) { return (int)__builtin_bit_cast(unsigned long long, x); }
D double __nv_rcp64h(double x) { return 1.0 / x; }
D float __nv_half2float(unsigned short h) { return (float)__builtin_bit_cast(_Float16, h); }
D unsigned short __nv_float2half_rn(float x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }

// Conversions to integers: rounded as asked, then clamped; no number becomes 0 (from float) or the smallest (double).
#define TOINT(f, T, fn, t, I, lo, hi, above, nan)                                                                      \
  D I __nv_##fn##_rn(T x) {                                                                                            \
    x = __builtin_rint##f(x);                                                                                          \
    return x != x ? nan : x < (T)lo ? lo : x >= above ? hi : (I)x;                                                     \
  }                                                                                                                    \
  D I __nv_##fn##_rz(T x) {                                                                                            \
    x = __builtin_trunc##f(x);                                                                                         \
    return x != x ? nan : x < (T)lo ? lo : x >= above ? hi : (I)x;                                                     \
  }                                                                                                                    \
  D I __nv_##fn##_rd(T x) {                                                                                            \
    x = __builtin_floor##f(x);                                                                                         \
    return x != x ? nan : x < (T)lo ? lo : x >= above ? hi : (I)x;                                                     \
  }                                                                                                                    \
  D I __nv_##fn##_ru(T x) {                                                                                            \
    x = __builtin_ceil##f(x);                                                                                          \
    return x != x ? nan : x < (T)lo ? lo : x >= above ? hi : (I)x;                                                     \
  }
#define INT_MIN_ (-2147483647 - 1)
#define LL_MIN_ (-9223372036854775807ll - 1)
TOINT(f, float, float2int, i, int, INT_MIN_, 2147483647, 0x1p31f, 0)
TOINT(f, float, float2uint, u, unsigned, 0u, 4294967295u, 0x1p32f, 0u)
TOINT(f, float, float2ll, l, long long, LL_MIN_, 9223372036854775807ll, 0x1p63f, LL_MIN_)
TOINT(f, float, float2ull, ul, unsigned long long, 0ull, 18446744073709551615ull, 0x1p64f, 0x8000000000000000ull)
TOINT(, double, double2int, i, int, INT_MIN_, 2147483647, 0x1p31, INT_MIN_)
TOINT(, double, double2uint, u, unsigned, 0u, 4294967295u, 0x1p32, 0x80000000u)
TOINT(, double, double2ll, l, long long, LL_MIN_, 9223372036854775807ll, 0x1p63, LL_MIN_)
TOINT(, double, double2ull, ul, unsigned long long, 0ull, 18446744073709551615ull, 0x1p64, 0x8000000000000000ull)
#undef TOINT

// Directed rounding: the nearest result, moved one step when the exact remainder lies on the other side.
D float __optiml_stepf(float r, double remainder, int mode) { // mode 0 down, 1 up, 2 to zero
  if (remainder == 0 || __builtin_isinf(r) || r != r)
    return r;
  int up = mode == 1 || (mode == 2 && (r < 0 || (r == 0 && remainder < 0)));
  if (up)
    return remainder > 0 ? __builtin_nextafterf(r, __builtin_inff()) : r;
  return remainder < 0 ? __builtin_nextafterf(r, -__builtin_inff()) : r;
}
D double __optiml_step(double r, double remainder, int mode) {
  if (remainder == 0 || __builtin_isinf(r) || r != r)
    return r;
  int up = mode == 1 || (mode == 2 && (r < 0 || (r == 0 && remainder < 0)));
  if (up)
    return remainder > 0 ? __builtin_nextafter(r, __builtin_inf()) : r;
  return remainder < 0 ? __builtin_nextafter(r, -__builtin_inf()) : r;
}
D float __optiml_addf(float a, float b, int mode) {
  _Pragma("clang fp contract(off)") _Pragma("clang fp reassociate(off)") float s = a + b, t = s - a,
                                                                               e = (a - (s - t)) + (b - t);
  return mode < 0 ? s : __optiml_stepf(s, e, mode);
}
D double __optiml_add(double a, double b, int mode) {
  _Pragma("clang fp contract(off)") _Pragma("clang fp reassociate(off)") double s = a + b, t = s - a,
                                                                                e = (a - (s - t)) + (b - t);
  return mode < 0 ? s : __optiml_step(s, e, mode);
}
D float __optiml_mulf(float a, float b, int mode) {
  _Pragma("clang fp contract(off)") float p = a * b;
  return mode < 0 ? p : __optiml_stepf(p, (double)a * b - p, mode);
}
D double __optiml_mul(double a, double b, int mode) {
  _Pragma("clang fp contract(off)") double p = a * b;
  return mode < 0 ? p : __optiml_step(p, __builtin_fma(a, b, -p), mode);
}
D float __optiml_divf(float a, float b, int mode) {
  _Pragma("clang fp contract(off)") float q = a / b;
  double e = (double)a - (double)q * b;
  return mode < 0 ? q : __optiml_stepf(q, b < 0 ? -e : e, mode);
}
D double __optiml_div(double a, double b, int mode) {
  _Pragma("clang fp contract(off)") double q = a / b, e = __builtin_fma(-q, b, a);
  return mode < 0 ? q : __optiml_step(q, b < 0 ? -e : e, mode);
}
D float __optiml_sqrtf(float a, int mode) {
  float r = __builtin_sqrtf(a);
  return mode < 0 ? r : __optiml_stepf(r, (double)a - (double)r * r, mode);
}
D double __optiml_sqrt(double a, int mode) {
  double r = __builtin_sqrt(a);
  return mode < 0 ? r : __optiml_step(r, __builtin_fma(-r, r, a), mode);
}
D float __optiml_fmaf(float a, float b, float c, int mode) {
  float r = __builtin_fmaf(a, b, c);
  if (mode < 0)
    return r;
  double p = (double)a * b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
  return __optiml_stepf(r, (s - r) + e, mode);
}
D double __optiml_fma(double a, double b, double c, int mode) {
  double r = __builtin_fma(a, b, c);
  if (mode < 0)
    return r;
  double p = a * b, pe = __builtin_fma(a, b, -p), s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
  return __optiml_step(r, (s - r) + (e + pe), mode);
}
#define ROUNDED(suffix, mode)                                                                                          \
  D float __nv_fadd_##suffix(float a, float b) { return __optiml_addf(a, b, mode); }                                   \
  D float __nv_fsub_##suffix(float a, float b) { return __optiml_addf(a, -b, mode); }                                  \
  D float __nv_fmul_##suffix(float a, float b) { return __optiml_mulf(a, b, mode); }                                   \
  D float __nv_fdiv_##suffix(float a, float b) { return __optiml_divf(a, b, mode); }                                   \
  D float __nv_frcp_##suffix(float a) { return __optiml_divf(1.0f, a, mode); }                                         \
  D float __nv_fsqrt_##suffix(float a) { return __optiml_sqrtf(a, mode); }                                             \
  D float __nv_fmaf_##suffix(float a, float b, float c) { return __optiml_fmaf(a, b, c, mode); }                       \
  D float __nv_fmaf_ieee_##suffix(float a, float b, float c) { return __optiml_fmaf(a, b, c, mode); }                  \
  D double __nv_dadd_##suffix(double a, double b) { return __optiml_add(a, b, mode); }                                 \
  D double __nv_dsub_##suffix(double a, double b) { return __optiml_add(a, -b, mode); }                                \
  D double __nv_dmul_##suffix(double a, double b) { return __optiml_mul(a, b, mode); }                                 \
  D double __nv_ddiv_##suffix(double a, double b) { return __optiml_div(a, b, mode); }                                 \
  D double __nv_drcp_##suffix(double a) { return __optiml_div(1.0, a, mode); }                                         \
  D double __nv_dsqrt_##suffix(double a) { return __optiml_sqrt(a, mode); }                                            \
  D double __nv_fma_##suffix(double a, double b, double c) { return __optiml_fma(a, b, c, mode); }                     \
  D float __nv_int2float_##suffix(int x) {                                                                             \
    float r = (float)x;                                                                                                \
    return mode < 0 ? r : __optiml_stepf(r, (double)x - r, mode);                                                      \
  }                                                                                                                    \
  D float __nv_uint2float_##suffix(unsigned x) {                                                                       \
    float r = (float)x;                                                                                                \
    return mode < 0 ? r : __optiml_stepf(r, (double)x - r, mode);                                                      \
  }                                                                                                                    \
  D float __nv_ll2float_##suffix(long long x) {                                                                        \
    float r = (float)x;                                                                                                \
    return mode < 0 ? r : __optiml_stepf(r, (double)((__int128)x - (__int128)r), mode);                                \
  }                                                                                                                    \
  D float __nv_ull2float_##suffix(unsigned long long x) {                                                              \
    float r = (float)x;                                                                                                \
    return mode < 0 ? r : __optiml_stepf(r, (double)((__int128)x - (__int128)r), mode);                                \
  }                                                                                                                    \
  D double __nv_ll2double_##suffix(long long x) {                                                                      \
    double r = (double)x;                                                                                              \
    return mode < 0 ? r : __optiml_step(r, (double)((__int128)x - (__int128)r), mode);                                 \
  }                                                                                                                    \
  D double __nv_ull2double_##suffix(unsigned long long x) {                                                            \
    double r = (double)x;                                                                                              \
    return mode < 0 ? r : __optiml_step(r, (double)((__int128)x - (__int128)r), mode);                                 \
  }                                                                                                                    \
  D float __nv_double2float_##suffix(double x) {                                                                       \
    float r = (float)x;                                                                                                \
    return mode < 0 ? r : __optiml_stepf(r, x - r, mode);                                                              \
  }
ROUNDED(rn, -1)
ROUNDED(rd, 0) ROUNDED(ru, 1) ROUNDED(rz, 2)
#undef ROUNDED
    D double __nv_int2double_rn(int x) {
  return x;
}
D double __nv_uint2double_rn(unsigned x) { return x; }
D float __nv_frsqrt_rn(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
#undef INT_MIN_
#undef LL_MIN_
#undef HOST
}
D double nan(const char *) { return __builtin_nan(""); }
D float nanf(const char *) { return __builtin_nanf(""); }
#undef D
