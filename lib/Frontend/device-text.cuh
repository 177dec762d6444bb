// What texts for NVRTC begin with: types and numbers that headers of C and C++ define.
#undef __host__
#define __host__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t; // as in those of CUDA's headers that know NVRTC
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef long ssize_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned uint;
typedef unsigned long ulong;
namespace std {
using ::int16_t; using ::int32_t; using ::int64_t; using ::int8_t; using ::intptr_t; using ::ptrdiff_t; using ::size_t;
using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uint8_t; using ::uintptr_t;
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil; using ::copysign;
using ::cos; using ::cosh; using ::erf; using ::exp; using ::exp2; using ::expm1; using ::fabs; using ::floor;
using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot; using ::isfinite; using ::isinf; using ::isnan;
using ::log; using ::log10; using ::log1p; using ::log2; using ::pow; using ::rint; using ::round; using ::signbit;
using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::trunc;
}
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LLONG_MIN
#define INT64_MAX LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX ULONG_MAX
#define FLT_EPSILON 1.1920928955078125e-7f
#define FLT_MIN 1.175494350822287508e-38f
#define FLT_MAX 3.4028234663852885981e+38f
#define DBL_EPSILON 2.2204460492503130808e-16
#define DBL_MIN 2.2250738585072013831e-308
#define DBL_MAX 1.7976931348623157081e+308
#define INFINITY __int_as_float(0x7f800000)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#define NAN __int_as_float(0x7fffffff)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define RAND_MAX 2147483647
#define NULL 0
#line 1
