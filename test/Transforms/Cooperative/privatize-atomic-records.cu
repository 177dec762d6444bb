// Sums in arrays of a record, which short loops run over.
// RUN: %plan --passes='grid-stride[moments]{blocks=2,x=64};privatize-atomic[moments:m]' %s | %check=SUMS
// RUN: %plan --passes='grid-stride[member]{blocks=2,x=64};privatize-atomic[member:m]' %s | %check=MEMBER
// RUN: optiml-opt --emit --passes='grid-stride[moments]{blocks=2,x=64};privatize-atomic[moments:m]' %s > %t.cu
// RUN: %refused --passes='block-shape[through]{x=64,y=1};privatize-atomic[through:o]' %s 2>&1 | %check=THROUGH
// RUN: %refused --passes='block-shape[chosen]{x=64,y=1};privatize-atomic[chosen:m]' %s 2>&1 | %check=CHOSEN
// RUN: %refused --passes='grid-stride[moments]{blocks=2,x=64};privatize-atomic[moments:m];privatize-atomic[moments:m]' %s 2>&1 | %check=TWICE
// TWICE: 'm' is updated by one thread of a block already
// RUN: %refused --passes='block-shape[read]{x=64,y=1};privatize-atomic[read:m]' %s 2>&1 | %check=READ
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 300 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>

struct Moments {
  float second[3][3], first[3];
  unsigned count;
};
struct Owner {
  Moments *of;
};

// SUMS: when disjoint(m, 52 * 1, x, 4 * (3 * n))
// SUMS: float m_second_0_0_of_thread = 0.0f;
// SUMS-NOT: m_second_0_1
// SUMS-NOT: m_first_1
// SUMS: m_second_1_0_of_thread += x[i * 3 + 1] * x[i * 3 + 0];
// SUMS: m_count_of_thread += 1u;
// Eight sums of one type are combined at once, each lane giving half of them away.
// SUMS: sums_of_thread[7] = m_first_2_of_thread;
// SUMS: float given = (lane & 16) != 0 ? sums_of_thread[sum] : sums_of_thread[sum + 16];
// SUMS-NEXT: float got = __shfl_xor_sync(0xffffffff, given, 16);
// SUMS: for (int place = threadIdx.x; place < 8; place += 64) {
// SUMS: if (place == 6 && total != 0) {
// SUMS-NEXT: atomicAdd(&m->second[2][2], total);
// SUMS: if (threadIdx.x == 0 && m_count_of_thread != 0) {
// SUMS-NEXT: atomicAdd(&m->count, m_count_of_thread);
__global__ void moments(const float *x, int n, Moments *m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b <= a; ++b)
      atomicAdd(&m->second[a][b], x[i * 3 + a] * x[i * 3 + b]);
    if (a != 1)
      atomicAdd(&m->first[a], x[i * 3 + a]);
  }
  atomicAdd(&m->count, 1u);
}

// A member is a part of its record: 52 bytes, not the 4 of the member at the record's start.
// MEMBER: when disjoint(m, 52 * 1, x, 4 * n)
__global__ void member(const float *x, int n, Moments *m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 2; ++k)
    if (i < n && x[i] > k)
      atomicAdd(&m->count, 1u);
}

// THROUGH: privatize-atomic[through:o]: 'o' is not updated by atomics
__global__ void through(const float *x, int n, Owner *o) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&o->of->first[0], x[i]);
}

// CHOSEN: 'm' is accessed other than by atomic updates
__global__ void chosen(const float *x, const int *which, int n, Moments *m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&m->second[which[i]][0], x[i]);
}

// It reads the record once it has updated it.
// READ: m and m->second lie in one array
__global__ void read(const float *x, int n, Moments *m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  atomicAdd(&m->first[0], x[i]);
  atomicAdd(&m->first[1], x[i] * m->second[0][0]);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  float *x;
  Moments *m, result;
  cudaMallocManaged(&x, (n + 1) * 3 * sizeof(float));
  cudaMalloc(&m, sizeof(Moments));
  cudaMemset(m, 0, sizeof(Moments));
  for (int i = 0; i < 3 * n; ++i)
    x[i] = float(i * 7 % 11) - 5;
  moments<<<(n + 63) / 64, 64>>>(x, n, m);
  cudaMemcpy(&result, m, sizeof(Moments), cudaMemcpyDeviceToHost);
  printf("%g %g %u\n", result.second[2][1], result.first[2], result.count);
  return result.count != unsigned(n);
}
