// What a source asks for at its kernels: #pragma optiml, or an attribute where compilers warn of unknown pragmas.
// RUN: optiml-opt --list-sites %s 2>&1 | FileCheck %s
// CHECK-DAG: directives.cu:{{[0-9]+}}: warning: 'of' is no directive of OptiML's; want off, on or recipe(ACTIONS)
// CHECK-DAG: note: kernel plainOff is left alone: its source says 'optiml off'
// CHECK-DAG: note: kernel deep::inner is left alone: its source says 'optiml off'
// CHECK-DAG: note: kernel far is left alone: its source says 'optiml off'
// CHECK-DAG: note: kernel templated<float> is left alone: its source says 'optiml off'
// CHECK-DAG: note: kernel attribute is left alone: its source says 'optiml off'
// CHECK-NOT: kernel typo is left
// CHECK-NOT: kernel untouched is left
// RUN: sed 's/optiml of /optiml on /' %s > %t.cu && optiml-opt --list-sites %t.cu 2>&1 | FileCheck %s --check-prefix=ON
// ON-NOT: kernel typo is left
// ON: note: kernel untouched is left alone: its source says 'optiml on' of others
// ON-NOT: warning
#define LOOP for (int i = 0; i < n; ++i) x[threadIdx.x * n + i] *= 2;
#pragma optiml of // a slip of the pen
__global__ void typo(float *x, int n) { LOOP }

#pragma optiml off
__global__ void plainOff(float *x, int n) { LOOP }

namespace deep {
  #  pragma  optiml   off  // with more
  /* and a comment
     between */
  #pragma nv_diag_suppress 177

  __global__ void inner(float *x, int n) { LOOP }
} // namespace deep

#pragma optiml off
int between; /* with a comment behind */
__global__ void untouched(float *x, int n) { LOOP }

// #pragma optiml off
#pragma optiml off
/* one line */
__global__
void far(float *x, int n) { LOOP }

#pragma optiml off
template <typename T>
__global__ void templated(T *x, int n) { LOOP }
template __global__ void templated<float>(float *, int);

[[clang::annotate("optiml:off")]] __global__ void attribute(float *x, int n) { LOOP }
