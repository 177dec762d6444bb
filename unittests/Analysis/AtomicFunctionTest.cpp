//===- AtomicFunctionTest.cpp - loops around atomicCAS --------------------===//
#include "optiml/Analysis/AtomicFunction.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Analysis/TreeQueries.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

struct Case {
  const char *name, *fold, *type, *body; ///< of "T f(T *p, T v)"
};

const Case cases[] = {
    // Sums.
    {"guide", "+", "double", R"(unsigned long long *a = (unsigned long long *)p, old = *a, assumed;
       do { assumed = old; old = atomicCAS(a, assumed, __double_as_longlong(v + __longlong_as_double(assumed))); }
       while (assumed != old); return __longlong_as_double(old);)"},
    {"compareFirst", "+", "float", R"(int old = __float_as_int(*p), seen;
       while (true) { seen = atomicCAS((int *)p, old, __float_as_int(__int_as_float(old) + v));
         if (seen == old) break; old = seen; } return __int_as_float(seen);)"},
    {"readsAgain", "+", "float", R"(unsigned *a = reinterpret_cast<unsigned *>(p), was;
       do { was = *a; } while (atomicCAS(a, was, __float_as_uint(__uint_as_float(was) + v)) != was); return 0;)"},
    {"integers", "+", "int", R"(int a = *p, b; do { b = a; a = atomicCAS(p, b, b + v); } while (b != a); return a;)"},
    {"forLoop", "+", "float", R"(int *a = (int *)p;
       for (int o = *a, s; ; o = s) {
         s = atomicCAS(a, o, __float_as_int(v + __int_as_float(o))); if (s == o) return v; })"},
    {"named", "+", "double", R"(auto *a = (unsigned long long *)p; unsigned long long old = *a, assumed;
       do { assumed = old; double sum = __longlong_as_double(assumed) + v;
         unsigned long long bits = __double_as_longlong(sum); old = atomicCAS(a, assumed, bits); }
       while (!(assumed == old)); return v;)"},
    // Minima and maxima.
    {"whileLess", "min", "float", R"(unsigned *a = (unsigned *)p, r = __float_as_uint(*p);
       while (v < __uint_as_float(r)) { unsigned o = r; if ((r = atomicCAS(a, o, __float_as_uint(v))) == o) break; }
       return __uint_as_float(r);)"},
    {"breaks", "max", "float", R"(if (*p >= v) return *p; int *a = (int *)p; int old = *a, t;
       do { t = old; if (__int_as_float(t) >= v) break; old = atomicCAS(a, t, __float_as_int(v)); } while (t != old);
       return __int_as_float(old);)"},
    {"library", "max", "float", R"(int *a = (int *)p, old = *a, t;
       do { t = old; old = atomicCAS(a, t, __float_as_int(fmaxf(v, __int_as_float(t)))); } while (t != old);
       return __int_as_float(old);)"},
    {"libraryDouble", "min", "double", R"(unsigned long long *a = (unsigned long long *)p, old = *a, t;
       do { t = old; old = atomicCAS(a, t, __double_as_longlong(fmin(__longlong_as_double(t), v))); } while (t != old);
       return 0;)"},
    {"chooses", "min", "float", R"(int *a = (int *)p, old = *a, t;
       do { t = old; float m = __int_as_float(t); old = atomicCAS(a, t, __float_as_int(v < m ? v : m)); }
       while (t != old); return 0;)"},
    {"longs", "max", "unsigned long long", R"(unsigned long long old = *p, t;
       do { t = old; if (!(v > t)) return old; old = atomicCAS(p, t, v); } while (t != old); return old;)"},
    {"negated", "min", "double", R"(unsigned long long *a = (unsigned long long *)p, old = *a;
       while (!(__longlong_as_double(old) <= v)) { unsigned long long t = old;
         old = atomicCAS(a, t, __double_as_longlong(v)); if (old == t) return v; } return v;)"},
    {"loadsAtomically", "max", "float", R"(unsigned *a = (unsigned *)p;
       unsigned r = __nv_atomic_load_n(a, __NV_ATOMIC_RELAXED);
       while (v > __uint_as_float(r)) { unsigned o = r; if ((r = atomicCAS(a, o, __float_as_uint(v))) == o) break; }
       return __uint_as_float(r);)"},
    // Others.
    {"notAgain", "", "float",
     R"(int o = *(int *)p; atomicCAS((int *)p, o, __float_as_int(__int_as_float(o) + v)); return 0;)"},
    {"staleSum", "", "float", R"(int *a = (int *)p, first = *a, o = first, t;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(first) + v)); } while (t != o); return 0;)"},
    {"sumOfAnEarlierRead", "", "float", R"(int *a = (int *)p, o, t;
       do { float sum = *p + v; t = *a; o = atomicCAS(a, t, __float_as_int(sum)); } while (t != o); return 0;)"},
    {"product", "", "float", R"(int *a = (int *)p, o = *a, t;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(t) * v)); } while (t != o); return 0;)"},
    {"difference", "", "float", R"(int *a = (int *)p, o = *a, t;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(t) - v)); } while (t != o); return 0;)"},
    {"twice", "", "float", R"(int *a = (int *)p, o = *a, t;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(t) + v + v)); } while (t != o); return 0;)"},
    {"wrongWay", "", "float", R"(int *a = (int *)p, o = *a, t;
       while (v < __int_as_float(o)) { t = o; o = atomicCAS(a, t, __float_as_int(v)); if (t == o) break; v = v + v; }
       return 0;)"},
    {"bitsCompared", "", "float", R"(int *a = (int *)p, o = *a, t;
       while (__float_as_int(v) < o) { t = o; o = atomicCAS(a, t, __float_as_int(v)); if (t == o) break; } return 0;)"},
    {"numbersCompared", "", "float", R"(float o = *p, t;
       do { t = o; o = __int_as_float(atomicCAS((int *)p, __float_as_int(t), __float_as_int(t + v))); } while (t != o);
       return 0;)"},
    {"rounds", "", "float", R"(int *a = (int *)p, o = *a, t;
       do { t = o; o = atomicCAS(a, t, (int)(t + v)); } while (t != o); return 0;)"},
    {"elsewhere", "", "float", R"(int *a = (int *)p + 1, o = *a, t;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(t) + v)); } while (t != o); return 0;)"},
    {"stores", "", "float", R"(int *a = (int *)p, o = *a, t;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(t) + v)); } while (t != o); *p = v; return 0;)"},
    {"smallerOrLarger", "", "float", R"(int *a = (int *)p, o = *a, t; if (v > 0) return 0;
       do { t = o; o = atomicCAS(a, t, __float_as_int(__int_as_float(t) + v)); } while (t != o); return 0;)"},
    {"oldBound", "", "float", R"(int *a = (int *)p, o = *a, t; bool less = v < __int_as_float(o);
       while (less) { t = o; o = atomicCAS(a, t, __float_as_int(v)); if (t == o) break; } return 0;)"},
    {"plain", "", "float", R"(float old = *p; *p = old + v; return old;)"},
    {"counts", "", "int", R"(int o = *p, t, n = 0;
       do { t = o; if (n > 0) break; n = t; o = atomicCAS(p, t, t + v); } while (t != o); return n;)"},
    {"exchanges", "", "int", R"(int o = *p, t; do { t = o; o = atomicCAS(p, t, v); } while (t != o); return o;)"},
};

/// How what a call in a kernel of its own does is read.
std::string foldOf(const Case &c) {
  const std::string type = c.type;
  const std::string text = "__device__ " + type + " f(" + type + " *p, " + type + " v) { " + c.body + " }\n" +
                           "__global__ void k(" + type + " *to, const " + type + " *x) { f(to, x[threadIdx.x]); }\n" +
                           "void go(" + type + " *a, " + type + " *b) { k<<<1, 32>>>(a, b); }\n";
  static const Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program = Program::parse("/f.cu", text, CompileOptions::parse({"/f.cu"}), toolchain, View::Device);
  if (!program)
    return llvm::toString(program.takeError());
  auto tree = readKernel(**program, (*program)->kernels().front());
  if (!tree)
    return llvm::toString(tree.takeError());
  std::string result;
  walk(*(*tree)->body, [&](Stmt &s) {
    if (isAtomicUpdate(s))
      result = s.expr->folds;
  });
  return result;
}

TEST(AtomicFunctionTest, FoldsOfLoopsAroundCompareAndSwap) {
  for (const Case &c : cases)
    EXPECT_EQ(foldOf(c), c.fold) << c.name;
}

} // namespace
