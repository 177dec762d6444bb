// What nvcc offers and Clang's headers do not; Clang reads it before the user's file.
#define OPTIML_STORES(T)                                                        \
  static __attribute__((device)) inline void __stwb(T *p, T v) { *p = v; }      \
  static __attribute__((device)) inline void __stcg(T *p, T v) { *p = v; }      \
  static __attribute__((device)) inline void __stcs(T *p, T v) { *p = v; }      \
  static __attribute__((device)) inline T __ldca(const T *p) { return *p; }     \
  static __attribute__((device)) inline T __ldlu(const T *p) { return *p; }
OPTIML_STORES(char) OPTIML_STORES(signed char) OPTIML_STORES(unsigned char)
OPTIML_STORES(short) OPTIML_STORES(unsigned short) OPTIML_STORES(int) OPTIML_STORES(unsigned)
OPTIML_STORES(long) OPTIML_STORES(unsigned long) OPTIML_STORES(long long) OPTIML_STORES(unsigned long long)
OPTIML_STORES(float) OPTIML_STORES(double)
OPTIML_STORES(char2) OPTIML_STORES(char4) OPTIML_STORES(uchar2) OPTIML_STORES(uchar4)
OPTIML_STORES(short2) OPTIML_STORES(short4) OPTIML_STORES(ushort2) OPTIML_STORES(ushort4)
OPTIML_STORES(int2) OPTIML_STORES(int4) OPTIML_STORES(uint2) OPTIML_STORES(uint4)
OPTIML_STORES(longlong2) OPTIML_STORES(ulonglong2)
OPTIML_STORES(float2) OPTIML_STORES(float4) OPTIML_STORES(double2)
#undef OPTIML_STORES
// The host's minimum and maximum of mixed types, as crt/math_functions.hpp has them for nvcc.
#define OPTIML_MINMAX(R, A, B)                                                                     \
  static inline __attribute__((unused)) R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }      \
  static inline __attribute__((unused)) R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }
OPTIML_MINMAX(int, int, int) OPTIML_MINMAX(unsigned, unsigned, unsigned)
OPTIML_MINMAX(unsigned, int, unsigned) OPTIML_MINMAX(unsigned, unsigned, int)
OPTIML_MINMAX(long, long, long) OPTIML_MINMAX(unsigned long, unsigned long, unsigned long)
OPTIML_MINMAX(unsigned long, long, unsigned long) OPTIML_MINMAX(unsigned long, unsigned long, long)
OPTIML_MINMAX(long long, long long, long long)
OPTIML_MINMAX(unsigned long long, unsigned long long, unsigned long long)
OPTIML_MINMAX(unsigned long long, long long, unsigned long long)
OPTIML_MINMAX(unsigned long long, unsigned long long, long long)
OPTIML_MINMAX(float, float, float) OPTIML_MINMAX(double, double, double)
OPTIML_MINMAX(double, float, double) OPTIML_MINMAX(double, double, float)
#undef OPTIML_MINMAX
// crt/common_functions.h includes these for nvcc.
#include <string.h>
#include <time.h>
// In nvcc's headers these names mean the host's functions, too, in the global namespace.
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
// cuda_runtime.h includes these; what they declare is there already.
#define __SM_20_ATOMIC_FUNCTIONS_H__
#define __SM_20_INTRINSICS_H__
#define __SM_32_ATOMIC_FUNCTIONS_H__
#define __SM_35_ATOMIC_FUNCTIONS_H__
#define __SM_60_ATOMIC_FUNCTIONS_H__
#define __SM_61_INTRINSICS_H__
// Loads and stores of any memory order, which are nvcc's own (CUDA C++ Programming Guide, "__nv_atomic functions").
enum {
  __NV_ATOMIC_RELAXED = __ATOMIC_RELAXED, __NV_ATOMIC_CONSUME = __ATOMIC_CONSUME,
  __NV_ATOMIC_ACQUIRE = __ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE = __ATOMIC_RELEASE,
  __NV_ATOMIC_ACQ_REL = __ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST = __ATOMIC_SEQ_CST
};
enum {
  __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER, __NV_THREAD_SCOPE_DEVICE,
  __NV_THREAD_SCOPE_SYSTEM
};
template <class T>
static __attribute__((device)) inline T __nv_atomic_load_n(T *p, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  return order == __NV_ATOMIC_RELAXED   ? __atomic_load_n(p, __ATOMIC_RELAXED)
         : order == __NV_ATOMIC_SEQ_CST ? __atomic_load_n(p, __ATOMIC_SEQ_CST)
                                        : __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T, class V>
static __attribute__((device)) inline void __nv_atomic_store_n(T *p, V v, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  if (order == __NV_ATOMIC_RELAXED)
    __atomic_store_n(p, (T)v, __ATOMIC_RELAXED);
  else if (order == __NV_ATOMIC_SEQ_CST)
    __atomic_store_n(p, (T)v, __ATOMIC_SEQ_CST);
  else
    __atomic_store_n(p, (T)v, __ATOMIC_RELEASE);
}
// Programs ask by these whether nvcc reads them. The toolkit's headers that ask do so for what only nvcc has, and are
// read before.
#include <nv/target>
#if __has_include(<cuda/std/__cccl/compiler.h>)
#include <cuda/std/__cccl/compiler.h>
#endif
#define __NVCC__ 1
#undef __CUDACC__
#define __CUDACC__ 1 // Clang's has no value
#define __CUDACC_VER_MAJOR__ (CUDART_VERSION / 1000)
#define __CUDACC_VER_MINOR__ (CUDART_VERSION % 1000 / 10)
#define __CUDACC_VER_BUILD__ 0
