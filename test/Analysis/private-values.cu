// What a thread keeps to itself, and when: cases in which a guard or a lane looks superfluous and is not.
// RUN: optiml-opt --reread --emit --passes='block-shape[movingSum]{x=32,y=1};stage-shared[movingSum/k:a]{tile=8};block-shape[counted]{x=32,y=1};stage-window[counted:a]{};block-shape[before]{x=32,y=1};stage-shared[before/k:c]{tile=8};block-shape[renamed]{x=32,y=1};block-shape[shadowed]{x=32,y=1};block-shape[stored]{x=32,y=1};block-shape[edges]{x=32,y=1};coarsen[edges]{style=blocked,x=4,y=1};block-shape[mirrored]{x=64,y=1};stage-window[mirrored:a];block-shape[ring]{x=64,y=1};stage-window[ring:a]' %s > %t.cu
// RUN: %verify=%t.cu %s | FileCheck %s
// CHECK: the same results in {{[0-9]+}} runs
// RUN: %opt --passes='block-shape[mirrored]{x=64,y=1};stage-window[mirrored:a]' %s | %check=MIRROR
// RUN: %opt --passes='block-shape[ring]{x=64,y=1};stage-window[ring:a]' %s | %check=RING
// RUN: %refused --passes='block-shape[before]{x=32,y=1};vectorize-access[before]{width=4}' %s 2>&1 | %check=LANES
// RUN: optiml-opt --kernels-only --passes='block-shape[accumulates]{x=64,y=1};stage-shared[accumulates/k:a]{tile=8}' %s 2>&1 | %check=GUARDED
// RUN: %refused --passes='block-shape[uneven]{x=64,y=1};stage-shared[uneven/k:a]{tile=8}' %s 2>&1 | %check=UNEVEN
// RUN: %refused --passes='block-shape[changing]{x=64,y=1};stage-shared[changing/k:a+b]{tile=8}' %s 2>&1 | %check=CHANGING
// RUN: %refused --passes='block-shape[moved]{x=64,y=1};stage-window[moved:a]{}' %s 2>&1 | %check=MOVED
// RUN: %refused --passes='block-shape[narrow]{x=64,y=1};stage-shared[narrow/k:a]{tile=8}' %s 2>&1 | %check=NARROW

// The last strip ends with w, where the tile holds what other threads add.
__global__ void movingSum(const float *a, float *o, int w, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int k = 0; k < w; ++k)
    s += a[i + k];
  o[i] = s;
}

// The guard has the same text in every iteration, and another value.
__global__ void counted(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float c = 0;
  for (int d = 0; d < 6; ++d) {
    if (i + d - 3 >= 0 && (i + d) % 2 == 0)
      c += 1.0f;
    if (i + d - 3 >= 0 && (i + d) % 2 == 0) {
      if (i < n)
        o[i * 6 + d] = c;
    }
    if (i < n && i + d - 3 >= 0 && i + d - 3 < n)
      o[n * 6 + i * 6 + d] = a[i + d - 3];
  }
}

// LANES: 'sum' keeps its value from one lane to the next
__global__ void before(float *a, const float *c, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  if (i < n) {
    for (int k = 0; k < m; ++k)
      sum += c[k] * (i + k);
    a[i] = sum;
  }
}

// A name of the file in a scope where the kernel has another one.
__device__ int scale = 3;
__device__ float scaled(const float *p) { return p[0] * scale; }
__global__ void renamed(const float *a, float *o, int scale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    o[i] = scaled(a + i) + scale;
}
__global__ void shadowed(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    {
      float scale = a[i];
      o[i] = scale * 2;
    }
    o[i] += scale;
  }
}

// A kernel may return the (void) value of a call.
__device__ void store(float *o, int i, float v) { o[i] = v; }
__global__ void stored(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    o[i] = a[i];
}

// GUARDED: if (k0 + k < n) {
// GUARDED: o[(k0 + k) * 64 + i] +=
__global__ void accumulates(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; ++k)
    if (i < 64)
      o[k * 64 + i] += a[k] * 2.0f;
  return store(o, i, 0.0f);
}

// UNEVEN: may not run the same for all threads of a block
__global__ void uneven(const float *a, float *o, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  int j = i;
  do {
    for (int k = 0; k < n; ++k)
      s += a[k];
    j += 13;
  } while (j < m);
  if (i < m)
    o[i] = s;
}

// CHANGING: the loop's bounds use a variable that changes
__global__ void changing(const float *a, const float *b, float *o, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int c = n;
  if (m > 3)
    c += 2;
  float s = 0;
  for (int k = 0; k < c; ++k)
    s += a[k] * b[k * 64 + i];
  if (i < 64)
    o[i] = s;
}

// MOVED: 'a' is moved by the kernel
__global__ void moved(const float *a, float *o, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; ++k) {
    for (int r = 0; r < 8; ++r)
      s += a[i + r];
    a += m;
  }
  if (i < m)
    o[i] = s;
}

// NARROW: the loop's counter is too narrow to count strips
__global__ void narrow(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (unsigned char k = 0; k < n; ++k)
    s += a[k] * 2.0f;
  if (i < 64)
    o[i] = s;
}

// A sum from outside of the inner condition: a copy must not add where the condition does not hold. And a place that is
// made of a value of the copy (an element of the histogram) is the copy's own.
__device__ int binOf(float v, int n) {
  if (v < 3)
    return -1;
  int bin = (int)((v - 3) * 2);
  return bin < n ? bin : n - 1;
}
__global__ void edges(const float *a, float *o, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0, c = a[i];
  for (int k = -w; k <= w; ++k) {
    int j = i + k;
    if (j < 0 || j >= n)
      continue;
    float v = a[j];
    float d = v - c;
    s += d * v + 1;
  }
  int bin = binOf(c, 9);
  if (bin >= 0)
    s += bin;
  o[i] = s;
}
// MIRROR: const int at1 = (int)blockIdx.x * 64 + c - 3;
// MIRROR: a_window[c] = {{.*}}a[at1 < 0 ? 0 - at1 : at1 >= n ? n * 2 - 2 - at1 : at1] : 0.0f;
// MIRROR: s += a_window[k + threadIdx.x] * (k - 3 + 4);
__global__ void mirrored(const float *a, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int k = -3; k <= 3; ++k) {
      int j = i + k;
      int at = j < 0 ? -j : (j >= n ? 2 * n - 2 - j : j);
      s += a[at] * (k + 4);
    }
    o[i] = s;
  }
}
// RING: const int at = (int)blockIdx.x * 64 + n + c - 1;
// RING: a_window[c] = {{.*}}a[at % n] : 0.0f;
__global__ void ring(const float *__restrict__ a, float *__restrict__ o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    o[i] = a[(i - 1 + n) % n] + a[(i + 1 + n) % n] + a[(i + n) % n];
}

int main() {
  const int n = 100, w = 5;
  float host[1200], *a, *o;
  for (int i = 0; i < 1200; ++i)
    host[i] = (float)(i % 17 + 1);
  cudaMalloc(&a, sizeof host);
  cudaMalloc(&o, 2 * sizeof host);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemset(o, 0, 2 * sizeof host);
  movingSum<<<4, 32>>>(a, o, w, n);
  counted<<<4, 32>>>(a, o, n);
  before<<<4, 32>>>(o, a, w, n);
  renamed<<<4, 32>>>(a, o, 11, n);
  shadowed<<<4, 32>>>(a, o, n);
  stored<<<4, 32>>>(a, o, n);
  edges<<<2, 64>>>(a, o + 1500, n, w);
  mirrored<<<2, 64>>>(a, o + 1700, n);
  ring<<<2, 64>>>(a, o + 1900, n);
  float results[2400];
  cudaMemcpy(results, o, sizeof results, cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFree(o);
}
