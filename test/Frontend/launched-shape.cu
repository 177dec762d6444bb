// --list-sites knows the block shape of the file's launches, however it is written down.
// RUN: optiml-opt --list-sites %s -- -arch=sm_90 | grep block-shape | sort > %t
// RUN: FileCheck %s --input-file=%t
// CHECK: block-shape[fourth]{x=8,y=4}
// CHECK: block-shape[one]{x=64,y=1}
// CHECK: block-shape[third]{x=16,y=16}
// CHECK: block-shape[two]{x=128,y=1}
// CHECK-NOT: unknown
#define KERNEL(name)                                                                                                   \
  __global__ void name(float *x) {                                                                                     \
    __shared__ float a[256];                                                                                           \
    a[threadIdx.x] = x[threadIdx.x];                                                                                   \
    __syncthreads();                                                                                                   \
    x[threadIdx.x] = a[0];                                                                                             \
  }
KERNEL(one) KERNEL(two) KERNEL(third) KERNEL(fourth) KERNEL(unknown)

template <int N> void launch(float *x) { two<<<1, N>>>(x); }

void run(float *x, int n) {
  int threads = 64;
  const dim3 square(16, 16);
  one<<<n, threads>>>(x);
  launch<128>(x);
  third<<<dim3(n), square>>>(x);
  fourth<<<n, dim3(8, 4, 1), 0>>>(x);
  unknown<<<1, n>>>(x);
}
