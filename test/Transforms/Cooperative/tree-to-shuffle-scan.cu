// Scans by a block through shared memory, by shuffles: however the steps are written.
// REQUIRES: optiml-run
// RUN: optiml-opt --kernels-only --block=256x1x1 --passes='tree-to-shuffle[twoRows];tree-to-shuffle[inPlace];tree-to-shuffle[inRegister];tree-to-shuffle[halves<double>];tree-to-shuffle[sweeps];tree-to-shuffle[largest<256>];tree-to-shuffle[both]' %s | FileCheck %s
// RUN: optiml-opt --reread --emit --block=256x1x1 --passes='tree-to-shuffle[twoRows];tree-to-shuffle[inPlace];tree-to-shuffle[inRegister];tree-to-shuffle[halves<double>];tree-to-shuffle[sweeps];tree-to-shuffle[largest<256>];tree-to-shuffle[both]' %s > %t.1.cu
// RUN: optiml-opt --reread --emit --block=512x1x1 --passes='tree-to-shuffle[largest<512>];tree-to-shuffle[carried]' %s > %t.2.cu
// RUN: optiml-opt --kernels-only --block=512x1x1 --passes='tree-to-shuffle[largest<512>];tree-to-shuffle[carried]' %s | %check=LARGE
// RUN: optiml-opt --reread --emit --block=32x1x1 --passes='tree-to-shuffle[warp]' %s > %t.3.cu
// RUN: optiml-opt --kernels-only --block=32x1x1 --passes='tree-to-shuffle[warp]' %s | %check=WARP
// RUN: %nvcc -arch=sm_90 -c %t.1.cu -o %t.o
// RUN: %nvcc -arch=sm_90 -c %t.2.cu -o %t.o
// RUN: %verify=%t.1.cu %s -- 1003 | %check=SAME
// RUN: %verify=%t.2.cu %s -- 1003 | %check=SAME
// RUN: %verify=%t.3.cu %s -- 1003 | %check=SAME
// RUN: env OPTIML_TRACE=1 optiml-run %t.1.cu -- 1003 2>&1 | %check=PATHS
// SAME: the same results
// PATHS-NOT: 0 optimized
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[otherRow]' %s 2>&1 | %check=ELSE
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[changed]' %s 2>&1 | %check=ELSE
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[races]' %s 2>&1 | %check=NONE
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[gaps]' %s 2>&1 | %check=NONE
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[product]' %s 2>&1 | %check=NONE
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[some]' %s 2>&1 | %check=PART
// RUN: %refused --block=256x1x1 --passes='tree-to-shuffle[hidden]' %s 2>&1 | %check=HIDES
// RUN: %refused --fp=strict --block=256x1x1 --passes='tree-to-shuffle[halves<double>]' %s 2>&1 | %check=STRICT
// ELSE: is used for something else than its scan
// NONE: no array in shared memory is folded by a block of {{[0-9]+}} threads
// PART: not all threads of a block go the same way
// HIDES: is used in a way that hides what is accessed
// STRICT: the order in which {{.*}} is folded may not change
#include <cstdio>
#include <cstdlib>
#include <vector>

// Two rows by turns; the indices of the rows keep their values for what comes after.
__global__ void twoRows(const unsigned *in, unsigned *out, unsigned *sums, unsigned n) {
  __shared__ unsigned temp[2][256];
  unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
  unsigned v = i < n ? in[i] : 0u;
  int to = 0, from = 1;
  temp[to][t] = v;
  __syncthreads();
  for (unsigned d = 1; d < 256; d <<= 1) {
    to = 1 - to;
    from = 1 - to;
    if (t >= d)
      temp[to][t] = temp[from][t] + temp[from][t - d];
    else
      temp[to][t] = temp[from][t];
    __syncthreads();
  }
  if (i < n)
    out[i] = temp[to][t] - v;
  if (t == 255)
    sums[blockIdx.x] = temp[to][t];
}
// CHECK-LABEL: {{ }}twoRows_optiml
// CHECK: unsigned int v_scanned = v;
// CHECK: unsigned int other = __shfl_up_sync(0xffffffff, v_scanned, offset);
// CHECK-NEXT: if (threadIdx.x % 32 >= offset) {
// CHECK-NEXT: v_scanned += other;
// CHECK: v_of_warps[threadIdx.x / 32] = v_scanned;
// CHECK: __syncthreads();
// CHECK-NEXT: for (int earlier = 0; earlier < threadIdx.x / 32; ++earlier) {
// CHECK-NEXT: v_scanned += v_of_warps[earlier];
// CHECK: temp[0][threadIdx.x] = v_scanned;
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: if (i < n) {

// What each thread stores first depends on conditions.
__global__ void inPlace(const int *in, int *out, int n) {
  __shared__ int a[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (i < n)
    a[t] = in[i];
  else
    a[t] = 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    int before = t >= d ? a[t - d] : 0;
    __syncthreads();
    a[t] += before;
    __syncthreads();
  }
  if (i < n)
    out[i] = t > 0 ? a[t - 1] : 0;
}
// CHECK-LABEL: {{ }}inPlace_optiml
// CHECK: int a_scanned = a[threadIdx.x];
// CHECK: a[threadIdx.x] = a_scanned;

__global__ void inRegister(const float *in, float *out, int n) {
  __shared__ float a[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = i < n ? in[i] : 0.0f;
  for (int d = 1; d < 256; d *= 2) {
    a[threadIdx.x] = x;
    __syncthreads();
    if (threadIdx.x >= d)
      x += a[threadIdx.x - d];
    __syncthreads();
  }
  if (i < n)
    out[i] = x;
}
// CHECK-LABEL: {{ }}inRegister_optiml
// CHECK-NOT: x_scanned
// CHECK: float other = __shfl_up_sync(0xffffffff, x, offset);

// Halves of one array, of dynamic size.
template <typename T> __global__ void halves(const T *in, T *out, int n) {
  extern __shared__ double memory[];
  T *temp = memory;
  int t = threadIdx.x, count = blockDim.x;
  int to = 0, from = 1, i = blockIdx.x * count + t;
  temp[to * count + t] = i < n ? in[i] : T(0);
  __syncthreads();
  for (int d = 1; d < count; d *= 2) {
    to = 1 - to;
    from = 1 - to;
    if (t >= d)
      temp[to * count + t] = temp[from * count + t] + temp[from * count + t - d];
    else
      temp[to * count + t] = temp[from * count + t];
    __syncthreads();
  }
  if (i < n)
    out[i] = temp[to * count + t];
}
// CHECK-LABEL: {{ }}halves_double_optiml
// CHECK: = __shfl_up_sync(0xffffffff, {{.*}}_scanned, offset);

// Up a tree and down again: without the own value.
__global__ void sweeps(const int *in, int *out, int n) {
  __shared__ int a[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  a[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int k = (t + 1) * 2 * d - 1;
    if (k < 256)
      a[k] += a[k - d];
    __syncthreads();
  }
  if (t == 0)
    a[255] = 0;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    int k = (t + 1) * 2 * d - 1;
    if (k < 256) {
      int left = a[k - d];
      a[k - d] = a[k];
      a[k] += left;
    }
    __syncthreads();
  }
  if (i < n)
    out[i] = a[t];
}
// CHECK-LABEL: {{ }}sweeps_optiml
// CHECK: if (threadIdx.x < 255) {
// CHECK-NEXT: a[threadIdx.x + 1] = a_scanned;
// CHECK: if (threadIdx.x == 0) {
// CHECK-NEXT: a[0] = 0;

// After an odd number of steps the row's index has changed.
template <int B> __global__ void largest(const float *in, float *out, int n) {
  __shared__ float a[2][B];
  int t = threadIdx.x, i = blockIdx.x * B + t, row = 0;
  a[0][t] = in[min(i, n - 1)];
  __syncthreads();
  for (int d = 1; d < B; d *= 2) {
    a[1 - row][t] = t >= d ? fmaxf(a[row][t], a[row][t - d]) : a[row][t];
    row = 1 - row;
    __syncthreads();
  }
  if (i < n)
    out[i] = a[row][t];
}
// CHECK-LABEL: {{ }}largest_256_optiml
// CHECK: a_scanned = fmaxf(a_scanned, other);

// LARGE-LABEL: {{ }}largest_512_optiml
// LARGE: a[1][threadIdx.x] = a_scanned;
// LARGE-NEXT: row = 1;
// LARGE-NEXT: __syncthreads();

// A fold and a scan.
__global__ void both(const float *in, float *out, int n) {
  __shared__ float sum[256], a[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  float x = i < n ? in[i] : 0.0f;
  sum[t] = x * x;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s)
      sum[t] += sum[t + s];
    __syncthreads();
  }
  float norm = sum[0] + 1.0f;
  for (int d = 1; d < 256; d *= 2) {
    a[t] = x;
    __syncthreads();
    if (t >= d)
      x += a[t - d];
    __syncthreads();
  }
  if (i < n)
    out[i] = x / norm;
}
// CHECK-LABEL: {{ }}both_optiml
// CHECK: __shfl_xor_sync
// CHECK: __shfl_up_sync

// One block, piece by piece.
__global__ void carried(unsigned *data, unsigned n) {
  __shared__ unsigned s[512];
  __shared__ unsigned carry;
  if (threadIdx.x == 0)
    carry = 0;
  __syncthreads();
  for (unsigned base = 0; base < n; base += 512) {
    unsigned i = base + threadIdx.x;
    unsigned v = i < n ? data[i] : 0;
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < 512; d *= 2) {
      unsigned before = 0;
      if (threadIdx.x >= d)
        before = s[threadIdx.x - d];
      __syncthreads();
      s[threadIdx.x] += before;
      __syncthreads();
    }
    if (i < n)
      data[i] = carry + s[threadIdx.x] - v;
    __syncthreads();
    if (threadIdx.x == 511)
      carry += s[threadIdx.x];
    __syncthreads();
  }
}
// Sixteen warps: each scans the warps' sums for itself.
// LARGE-LABEL: {{ }}carried_optiml
// LARGE: unsigned int v_of_earlier_warps = v_of_warps[min((int)(threadIdx.x % 32), 15)];
// LARGE: v_of_earlier_warps = __shfl_sync(0xffffffff, v_of_earlier_warps, (threadIdx.x / 32 + 31) % 32);
// LARGE-NEXT: if (threadIdx.x >= 32) {
// LARGE-NEXT: v_scanned += v_of_earlier_warps;

__global__ void warp(const int *in, int *out, int n) {
  __shared__ int a[32];
  int i = blockIdx.x * 32 + threadIdx.x;
  a[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 32; d *= 2) {
    int before = threadIdx.x >= d ? a[threadIdx.x - d] : 0;
    __syncthreads();
    a[threadIdx.x] += before;
    __syncthreads();
  }
  if (i < n)
    out[i] = a[threadIdx.x];
}
// WARP-LABEL: {{ }}warp_optiml
// WARP-NOT: _of_warps
// WARP: __shfl_up_sync

// The row before the last step is looked at.
__global__ void otherRow(const int *in, int *out) {
  __shared__ int a[2][256];
  int t = threadIdx.x, row = 0;
  a[0][t] = in[t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    a[1 - row][t] = t >= d ? a[row][t] + a[row][t - d] : a[row][t];
    row = 1 - row;
    __syncthreads();
  }
  out[t] = a[1 - row][t];
}

// The row's index goes on.
__global__ void changed(const int *in, int *out) {
  __shared__ int a[2][256];
  int t = threadIdx.x, row = 0;
  a[0][t] = in[t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    a[1 - row][t] = t >= d ? a[row][t] + a[row][t - d] : a[row][t];
    row = 1 - row;
    __syncthreads();
  }
  row += in[0];
  out[t] = a[row & 1][t];
}

// No barrier between what is read and what is written.
__global__ void races(const int *in, int *out) {
  __shared__ int a[256];
  int t = threadIdx.x;
  a[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    if (t >= d)
      a[t] += a[t - d];
    __syncthreads();
  }
  out[t] = a[t];
}

__global__ void gaps(const int *in, int *out) {
  __shared__ int a[256];
  int t = threadIdx.x;
  a[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 4) {
    int before = t >= d ? a[t - d] : 0;
    __syncthreads();
    a[t] += before;
    __syncthreads();
  }
  out[t] = a[t];
}

// Zero is no neutral element of products.
__global__ void product(const int *in, int *out) {
  __shared__ int a[256];
  int t = threadIdx.x;
  a[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int before = t >= d ? a[t - d] : 0;
    __syncthreads();
    a[t] *= before;
    __syncthreads();
  }
  out[t] = a[t];
}

__global__ void some(const int *in, int *out, int n) {
  __shared__ int a[256];
  int t = threadIdx.x;
  if (in[t] < n)
    return;
  int x = in[t];
  for (int d = 1; d < 256; d *= 2) {
    a[t] = x;
    __syncthreads();
    if (t >= d)
      x += a[t - d];
    __syncthreads();
  }
  out[t] = x;
}

__global__ void hidden(const int *in, int *out) {
  __shared__ int a[256];
  int t = threadIdx.x, *p = a;
  a[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int before = t >= d ? a[t - d] : 0;
    __syncthreads();
    a[t] += before;
    __syncthreads();
  }
  out[t] = p[255 - t];
}

template <typename T> T *uploaded(int n) {
  std::vector<T> host(n);
  for (int i = 0; i < n; i++)
    host[i] = T(i * 7 % 11) - T(i % 3);
  T *p;
  cudaMalloc(&p, n * sizeof(T));
  cudaMemcpy(p, host.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}

template <typename T> void show(const char *name, const T *p, int n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += double(host[i]) * (i % 13 + 1);
  printf("%s %g\n", name, sum);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000, blocks = (n + 255) / 256;
  unsigned *u = uploaded<unsigned>(n), *uOut = uploaded<unsigned>(n), *sums = uploaded<unsigned>(blocks);
  int *i = uploaded<int>(n), *iOut = uploaded<int>(n);
  float *f = uploaded<float>(n), *fOut = uploaded<float>(n);
  double *d = uploaded<double>(n), *dOut = uploaded<double>(n);
  twoRows<<<blocks, 256>>>(u, uOut, sums, n);
  show("twoRows", uOut, n);
  show("sums", sums, blocks);
  inPlace<<<blocks, 256>>>(i, iOut, n);
  show("inPlace", iOut, n);
  inRegister<<<blocks, 256>>>(f, fOut, n);
  show("inRegister", fOut, n);
  halves<<<blocks, 256, 512 * sizeof(double)>>>(d, dOut, n);
  show("halves", dOut, n);
  sweeps<<<blocks, 256>>>(i, iOut, n);
  show("sweeps", iOut, n);
  largest<256><<<blocks, 256>>>(f, fOut, n);
  show("largest", fOut, n);
  largest<512><<<(n + 511) / 512, 512>>>(f, fOut, n);
  show("largest", fOut, n);
  both<<<blocks, 256>>>(f, fOut, n);
  show("both", fOut, n);
  carried<<<1, 512>>>(u, n);
  show("carried", u, n);
  warp<<<(n + 31) / 32, 32>>>(i, iOut, n);
  show("warp", iOut, n);
}
