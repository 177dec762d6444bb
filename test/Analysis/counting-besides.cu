// a[n++] = f(…) is a[n] = f(…) and n++, so that f is read where it stands; a helper works on a caller's array itself.
// RUN: %opt --passes='block-shape[median]{x=32,y=8};select-elements[median:v]' %s | %check=MEDIAN
// RUN: %opt --passes='block-shape[pack]{x=64}' %s | %check=PACK
// RUN: %opt --passes='block-shape[alias]{x=64}' %s | %check=ALIAS
// RUN: %opt --passes='block-shape[rounds]{x=64};coarsen[rounds]{x=2}' %s | %check=ROUNDS
// RUN: %opt --passes='block-shape[records]{x=64};coarsen[records]{x=2}' %s | %check=RECORDS

// RUN: optiml-opt --reread --emit --passes='block-shape[median]{x=32,y=8};select-elements[median:v];block-shape[pack]{x=64};block-shape[alias]{x=64};block-shape[zeros]{x=64};block-shape[rounds]{x=64};coarsen[rounds]{x=2};block-shape[records]{x=64};coarsen[records]{x=2}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

struct Image {
  float *pixels;
  int width, height;
};

__device__ float pixelAt(Image img, int x, int y) {
  x = min(max(x, 0), img.width - 1);
  y = min(max(y, 0), img.height - 1);
  return img.pixels[y * img.width + x];
}

__device__ void sortAll(float *v, int n) {
  for (int i = 0; i < n - 1; i++)
    for (int j = 0; j < n - 1 - i; j++)
      if (v[j] > v[j + 1]) {
        float t = v[j];
        v[j] = v[j + 1];
        v[j + 1] = t;
      }
}

// MEDIAN: float value = in.pixels[y_1 * in.width + x_1];
// MEDIAN: v[at] = value;
// MEDIAN: n++;
// MEDIAN: if (v[j] > v[j + 1]) {
__global__ void median(Image in, Image out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= in.width || y >= in.height)
    return;
  float v[9];
  int n = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      v[n++] = pixelAt(in, x + dx, y + dy);
  sortAll(v, 9);
  out.pixels[y * out.width + x] = v[4];
}

// What is stored sees the counter as it was; where the counter is read besides, nothing is moved.
// PACK: v[at] = x[i] * at;
// PACK-NEXT: at++;
// PACK-NEXT: v[at] = 1.0f;
// PACK-NEXT: at--;
// PACK-NEXT: float last = v[at];
// PACK-NEXT: at++;
// PACK-NEXT: v[at] = at++;
// PACK: y[i] = at < 3 ? v[at++] : 0.0f;
__global__ void pack(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v[4] = {0, 0, 0, 0};
  int at = 0;
  v[at++] = x[i] * at;
  v[at--] = 1.0f;
  float last = v[at++];
  v[at] = at++;
  y[i] = at < 3 ? v[at++] : 0.0f;
  y[i] += last + v[0] + v[1] + v[2] + v[3];
}

// The place sees the counter by another name after it was stepped.
// ALIAS: v[k] = w[k++];
__global__ void alias(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v[4] = {0, 0, 0, 0}, w[4] = {x[i], 2, 3, 4};
  int k = 0, &r = k;
  v[r] = w[k++];
  y[i] = v[0] + 2 * v[1];
}

// ROUNDS: y[{{.*}}] = rintf(x[{{.*}}]) + nearbyintf(
__global__ void rounds(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = rintf(x[i]) + nearbyintf(x[i] * 3.0f) + (float)rint(2.5 * x[i]);
}

struct Point {
  float x, y;
  __device__ Point() {}
  __device__ Point(float a, float b) : x(a), y(b) {}
};
struct Segment {
  Point from, to;
};

// RECORDS: y[i + ix] = 2.0f * x[i + ix] - x[i + ix];
__global__ void records(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Segment s;
  s.from.x = x[i];
  s.to.x = 2.0f * x[i];
  y[i] = s.to.x - s.from.x;
}

// A member that is initialized with () is zero.
struct Pair {
  float a, b;
  Pair() = default;
};
struct Zeros {
  Pair p;
  __device__ Zeros() : p() {}
};
__global__ void zeros(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Zeros z;
  Pair q = Pair();
  y[i] = z.p.b + q.a + x[i];
}

int main() {
  const int w = 37, h = 19, n = w * h;
  float host[n], *a, *b;
  for (int i = 0; i < n; ++i)
    host[i] = float(i * 7919 % 1013) / 8.0f;
  cudaMalloc(&a, sizeof host);
  cudaMalloc(&b, sizeof host);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  double sum = 0;
  for (int k = 0; k < 6; ++k) {
    if (k == 0)
      median<<<dim3(2, 3), dim3(32, 8)>>>({a, w, h}, {b, w, h});
    if (k == 1)
      pack<<<(n + 63) / 64, 64>>>(a, b, n);
    if (k == 2)
      rounds<<<(n + 63) / 64, 64>>>(a, b, n);
    if (k == 3)
      records<<<(n + 63) / 64, 64>>>(a, b, n);
    if (k == 4)
      alias<<<(n + 63) / 64, 64>>>(a, b, n);
    if (k == 5)
      zeros<<<(n + 63) / 64, 64>>>(a, b, n);
    cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i)
      sum += host[i] * (1 + i % 5);
  }
  printf("%g\n", sum);
  return 0;
}
