// libdevice's functions agree with the host's: each line names a function only when it is off.
// RUN: optiml-run %s | FileCheck %s
#include <cmath>
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void compute(double *d, float *f, int *i, double x, double y, float a, float b) {
  d[0] = sin(x) + cos(x) + tan(x);
  d[1] = exp(x) + exp2(x) + exp10(x) + expm1(x);
  d[2] = log(x) + log2(x) + log10(x) + log1p(x);
  d[3] = pow(x, y) + sqrt(x) + cbrt(x) + rsqrt(x) + hypot(x, y);
  d[4] = erf(x) + erfc(x) + tgamma(x) + lgamma(y);
  d[5] = asin(x / 4) + acos(x / 4) + atan(x) + atan2(x, y) + sinh(x) + cosh(x) + tanh(x) + asinh(x);
  d[6] = floor(y) + ceil(y) + trunc(y) + round(y) + rint(y) + fmod(y, x) + fabs(-y) + copysign(x, -y);
  d[7] = fma(x, y, 1.0) + fmin(x, y) + fmax(x, y) + fdim(y, x) + ldexp(x, 3) + normcdf(x) + erfinv(x / 4);
  f[0] = sinf(a) + cosf(a) + __sinf(a) + sinpif(a) + cospif(0.25f);
  f[1] = expf(a) + __expf(a) + exp10f(a) + exp2f(a);
  f[2] = logf(a) + __logf(a) + log10f(a) + log2f(a) + __log2f(a);
  f[3] = powf(a, b) + __powf(a, b) + sqrtf(a) + rsqrtf(a) + __fdividef(a, b) + __frcp_rn(a);
  f[4] = __fadd_rd(1.0f, 1e-9f) == 1.0f && __fadd_ru(1.0f, 1e-9f) > 1.0f && __fadd_rz(-1.0f, -1e-9f) == -1.0f;
  f[5] = __half2float(__float2half(a) + __float2half(b));
  f[6] = __saturatef(b) + fminf(a, NAN) + norm3df(a, b, a);
  half2 h = __hfma2(__floats2half2_rn(1.5f, 2.5f), __floats2half2_rn(2.0f, 4.0f), __floats2half2_rn(0.5f, -1.0f));
  f[7] = __low2float(h) * 100 + __high2float(h);
  i[0] = __clz(1000) + __popc(0xff00ff) + __ffs(64) + __brev(1) / 65536;
  i[1] = __mulhi(1 << 30, 100) + __umul24(5, 6) + __byte_perm(0x33221100, 0x77665544, 0x6420) % 1000;
  i[2] = __float2int_rn(2.5f) + __float2int_rd(-2.5f) + __float2int_ru(2.1f) + __float2int_rz(-2.9f);
  i[3] = int(a * 1e20f) == 2147483647 && int(x * -1e20) == -2147483647 - 1 && __float2uint_rz(-b) == 0;
  i[4] = __funnelshift_l(0x80000000u, 1u, 4) + __sad(3, 10, 1) + abs(-4) + max(3, 9) + min(-3, 2);
  i[5] = isnan(NAN) + 2 * isinf(INFINITY) + 4 * (signbit(-1.0f) != 0) + 8 * isfinite(a);
}

static void near(const char *what, double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance * fabs(want)))
    printf("off: %s: %.17g instead of %.17g\n", what, got, want);
}

int main() {
  double x = 1.7, y = 2.6, *d, hd[8];
  float a = 1.3f, b = 2.2f, *f, hf[8];
  int *i, hi[6];
  cudaMalloc(&d, sizeof hd);
  cudaMalloc(&f, sizeof hf);
  cudaMalloc(&i, sizeof hi);
  compute<<<1, 1>>>(d, f, i, x, y, a, b);
  cudaMemcpy(hd, d, sizeof hd, cudaMemcpyDeviceToHost);
  cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost);
  cudaMemcpy(hi, i, sizeof hi, cudaMemcpyDeviceToHost);
  const double e = 1e-13, pi = 3.14159265358979323846;
  near("trigonometry", hd[0], sin(x) + cos(x) + tan(x), e);
  near("exponentials", hd[1], exp(x) + exp2(x) + pow(10, x) + expm1(x), e);
  near("logarithms", hd[2], log(x) + log2(x) + log10(x) + log1p(x), e);
  near("powers", hd[3], pow(x, y) + sqrt(x) + cbrt(x) + 1 / sqrt(x) + hypot(x, y), e);
  near("erf, gamma", hd[4], erf(x) + erfc(x) + tgamma(x) + lgamma(y), e);
  near("inverses", hd[5], asin(x / 4) + acos(x / 4) + atan(x) + atan2(x, y) + sinh(x) + cosh(x) + tanh(x) + asinh(x),
       e);
  near("rounding", hd[6], 2 + 3 + 2 + 3 + 3 + fmod(y, x) + y - x, e);
  near("others", hd[7], x * y + 1 + x + y + (y - x) + 8 * x + 0.5 * erfc(-x / sqrt(2.0)) + 0.39647731, 1e-6);
  near("erfinv", erf(hd[7] - (x * y + 1 + x + y + (y - x) + 8 * x + 0.5 * erfc(-x / sqrt(2.0)))), x / 4, 1e-12);
  near("sinf", hf[0], 2 * sin(a) + cos(a) + sin(pi * a) + sqrt(0.5), 1e-5);
  near("expf", hf[1], 2 * exp(a) + pow(10, a) + exp2(a), 1e-6);
  near("logf", hf[2], 2 * log(a) + log10(a) + 2 * log2(a), 1e-6);
  near("powf", hf[3], 2 * pow(a, b) + sqrt(a) + 1 / sqrt(a) + a / b + 1 / a, 1e-6);
  near("directed rounding", hf[4], 1, 0);
  near("half", hf[5], 3.5, 1e-3);
  near("saturate, fmin", hf[6], 1 + a + sqrt(2 * a * a + b * b), 1e-6);
  near("half2", hf[7], 3.5 * 100 + 9, 0);
  near("bits", hi[0], 22 + 16 + 7 + 32768, 0);
  near("products", hi[1], 25 + 30 + 0x66442200 % 1000, 0);
  near("float to int", hi[2], 2 - 3 + 3 - 2, 0);
  near("saturating conversions", hi[3], 1, 0);
  near("integers", hi[4], 24 + 8 + 4 + 9 - 3, 0);
  near("classes", hi[5], 15, 0);
  printf("done\n");
}
// CHECK-NOT: off:
// CHECK: done
