// Objects of a thread's own, with private members, constructors and methods that change them, are read as their
// members.
// RUN: %opt --passes='block-shape[estimate]{x=128,y=1};privatize-atomic[estimate:hits];block-shape[rows]{x=64,y=1};block-shape[pairs]{x=64,y=1}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[estimate]{x=128,y=1};privatize-atomic[estimate:hits];block-shape[rows]{x=64,y=1};block-shape[pairs]{x=64,y=1}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// RUN: %refused --passes='block-shape[both]{x=64,y=1};coarsen[both]{style=strided,x=2,y=1}' %s 2>&1 | %check=REFUSED
// RUN: %opt --passes='block-shape[late]{x=64,y=1}' %s | %check=LATE
// RUN: %refused --passes='block-shape[sides]{x=64,y=1};coarsen[sides]{style=strided,x=2,y=1}' %s 2>&1 | %check=REFUSED
// RUN: %opt --passes='block-shape[inside]{x=64,y=1};coarsen[inside]{style=strided,x=2,y=1}' %s | %check=INSIDE
// SAME: the same results
// REFUSED: the kernel's threads work together, or wait for each other: 
#include <cstdint>
#include <cstdio>
#include <cstdlib>

class Random {
public:
  __host__ __device__ explicit Random(uint64_t seed) {
    uint64_t z = seed + 0x9E3779B97F4A7C15ull;
    z ^= z >> 30;
    state = z ? z : 1;
  }
  __host__ __device__ uint32_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    return uint32_t(state * 0x2545F4914F6CDD1Dull >> 32);
  }
  __host__ __device__ double uniform() { return next() * (1.0 / 4294967296.0); }
  __host__ __device__ uint64_t ahead() { return next() + state; } // in either order

private:
  uint64_t state;
};

__global__ void estimate(int n, unsigned long long *hits) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n)
    return;
  Random random(t + 17);
  for (int i = 0; i < 8; ++i) {
    double x = random.uniform(), y = random.uniform();
    if (x * x + y * y <= 1.0)
      atomicAdd(hits, 1ull);
  }
}
// CHECK: estimate_optiml
// CHECK: uint64_t random_state = z ? z : 1;
// CHECK: random_state ^= random_state >> 12;
// CHECK-NEXT: random_state ^= random_state << 25;
// CHECK-NEXT: double x = (uint32_t)(random_state * {{.*}});
// CHECK-NEXT: random_state ^= random_state >> 12;
// CHECK-NEXT: random_state ^= random_state << 25;
// CHECK-NEXT: double y =
// CHECK: hits_of_thread += 1ull;

// A view of a row: a pointer is a member, one value comes from a default, another from the class.
class Row {
public:
  __device__ Row(const float *first, int n, int skip = 1) : first_(first + skip), n_(n - skip) { last_ += n; }
  __device__ float peak() const {
    float m = first_[0];
    for (int c = 1; c < n_; ++c)
      m = fmaxf(m, first_[c]);
    return m + last_;
  }

private:
  const float *first_;
  int n_, last_ = 2;
};
__global__ void rows(int n, const float *a, float *out) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n) {
    Row row(a + r * 5, 5);
    out[r] = row.peak();
  }
}
// CHECK: rows_optiml
// CHECK: const float *row_first_ = a + r * 5 + 1;
// CHECK: fmaxf(m, row_first_[

// Calls that change an object run from left to right, through a pointer too.
__device__ float half(Random *random) { return random->next() % 1000 * 0.5f; }
__global__ void pairs(int n, float *out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  Random random(t);
  if (t >= n)
    return;
  if (half(&random) > half(&random) / 2)
    out[t] = half(&random);
}
// CHECK: pairs_optiml
// CHECK: float result = (uint32_t)(random_state{{.*}}) % 1000 * 0.5f;
// CHECK-NEXT: random_state ^= random_state >> 12;
// CHECK-NEXT: random_state ^= random_state << 25;
// CHECK-NEXT: float result_1 =
// CHECK-NEXT: if (result

// What a call's neighbours see of the object depends on the order in which the compiler evaluates them.
__global__ void both(int n, uint64_t *out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  Random random(t);
  if (t < n)
    out[t] = random.ahead();
}
// The argument is taken before the call changes the object: it stays a call.
// LATE: out[t] = later(&c, c.value);
struct Counter {
  int value;
  __device__ int next() { return ++value; }
};
__device__ int later(Counter *c, int before) { return c->next() + before; }
__global__ void late(int n, int *out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  Counter c{t};
  if (t < n)
    out[t] = later(&c, c.value);
}
// The right side of an assignment runs first.
__global__ void sides(int n, int *out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  Counter c{t};
  if (t < n)
    out[c.next()] = c.next();
}
// The members of a parameter become public (open-classes.cu).
// INSIDE: h.p_[t + ix * 64] = 1;
class Hidden {
public:
  Hidden(float *p) : p_(p) {}
  __device__ void set(int i) const { p_[i] = 1; }

private:
  float *p_;
};
__global__ void inside(int n, Hidden h) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n)
    h.set(t);
}

int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  if (n < 1) // a row has a first element
    return 1;
  unsigned long long *hits;
  float *a, *out;
  cudaMallocManaged(&hits, sizeof(*hits));
  cudaMallocManaged(&a, 5 * n * sizeof(float));
  cudaMallocManaged(&out, 2 * n * sizeof(float));
  for (int i = 0; i < 5 * n; ++i)
    a[i] = i * 37 % 101;
  int blocks = (n + 63) / 64;
  estimate<<<blocks, 64>>>(n, hits);
  rows<<<blocks, 64>>>(n, a, out);
  pairs<<<blocks, 64>>>(n, out + n);
  cudaDeviceSynchronize();
  printf("%llu %g %g\n", *hits, out[3], out[n + 5]);
}
