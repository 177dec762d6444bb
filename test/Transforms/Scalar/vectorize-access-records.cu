// vectorize-access on records of numbers of one type, on types with names of their own, on several vectors a thread,
// and on elements that every branch stores into.
// REQUIRES: optiml-run
// RUN: %plan --passes='block-shape[gray]{x=32,y=8};vectorize-access[gray]{width=4}' %s | %check=GRAY
// RUN: %opt --passes='block-shape[move]{x=128,y=1};vectorize-access[move]{width=4}' %s | %check=MOVE
// RUN: %opt --passes='block-shape[wide]{x=128,y=1};vectorize-access[wide]{width=4}' %s | %check=WIDE
// RUN: %opt --passes='block-shape[rotate]{x=128,y=1};vectorize-access[rotate]{width=2}' %s | %check=ROTATE
// RUN: %plan --passes='block-shape[edges]{x=32,y=8};vectorize-access[edges]{width=4}' %s | %check=EDGES
// RUN: optiml-opt --emit --passes='block-shape[gray]{x=32,y=8};vectorize-access[gray]{width=4};block-shape[move]{x=128,y=1};vectorize-access[move]{width=4};block-shape[wide]{x=128,y=1};vectorize-access[wide]{width=4};block-shape[rotate]{x=128,y=1};vectorize-access[rotate]{width=2};block-shape[edges]{x=32,y=8};vectorize-access[edges]{width=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -std=c++17 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 52 31 | %check=SAME
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 51 17 | %check=SAME
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 52 31 2>&1 | %check=PATHS
// SAME: the same results
// PATHS-NOT: 0 optimized
// RUN: %refused --passes='block-shape[some]{x=128,y=1};vectorize-access[some]{width=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[mixed]{x=128,y=1};vectorize-access[mixed]{width=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[branch]{x=128,y=1};vectorize-access[branch]{width=4}' %s 2>&1 | %check=NONE
// NONE: no array is accessed at neighbouring elements by neighbouring threads
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned char byte;
using real = float;
struct Picture {
  int width, height;
  __host__ __device__ bool holds(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }
};

// GRAY: when im.width % 4 == 0
// GRAY: when aligned(rgb, 4)
// GRAY: const uchar4 rgb_vector = *(const uchar4 *)&rgb[
// GRAY: const uchar4 rgb_vector2 = ((const uchar4 *)&rgb[{{.*}}])[2];
// GRAY: const unsigned char rgb_lanes[12] = {rgb_vector.x, rgb_vector.y,
// GRAY: rgb_lanes[lane * 3 + 1]
// GRAY: *(uchar4 *)&gray[{{.*}}] = make_uchar4(gray_lanes[0],
__global__ void gray(const uchar3 *rgb, byte *gray, Picture im) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (!im.holds(x, y))
    return;
  uchar3 p = rgb[y * im.width + x];
  gray[y * im.width + x] = (byte)((77 * p.x + 150 * p.y + 29 * p.z) >> 8);
}

// Four points are three vectors, in and out.
// MOVE: const float4 v_vector2 = ((const float4 *)&v[{{.*}}])[2];
// MOVE: const float4 at_vector = *(const float4 *)&at[
// MOVE: at_lanes[lane * 3 + 2] += v_lanes[lane * 3 + 2] * dt;
// MOVE: ((float4 *)&at[{{.*}}])[2] = make_float4(at_lanes[8], at_lanes[9], at_lanes[10], at_lanes[11]);
__global__ void move(float3 *at, const float3 *v, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    at[i].x += v[i].x * dt;
    at[i].y += v[i].y * dt;
    at[i].z += v[i].z * dt;
  }
}

// WIDE: const double2 a_vector = *(const double2 *)&a[
// WIDE: const double2 a_vector1 = ((const double2 *)&a[{{.*}}])[1];
// WIDE: const float4 f_vector
__global__ void wide(const double *a, const real *f, double *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    b[i] = a[i] * f[i];
}

struct Complex {
  real re, im;
};
__host__ __device__ Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// ROTATE: const float4 z_vector
// ROTATE: make_float4(z_lanes[0], z_lanes[1], z_lanes[2], z_lanes[3]);
__global__ void rotate(Complex *z, Complex by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  z[i] = z[i] * by;
}

__device__ const int weights[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
// What is read lies within the picture, so that the pictures may lie side by side.
// EDGES: when disjoint({{.*}}in, 1 * (im.height * im.width)
// EDGES: out_lanes[lane] = 0;
// EDGES: out_lanes[lane] = {{.*}}255
// EDGES: *(uchar4 *)&out[
__global__ void edges(const byte *in, byte *out, Picture im) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (!im.holds(x, y))
    return;
  if (x == 0 || y == 0 || x == im.width - 1 || y == im.height - 1) {
    out[y * im.width + x] = 0;
    return;
  }
  int sum = 0;
  for (int j = -1; j <= 1; j++)
    for (int i = -1; i <= 1; i++)
      sum += weights[j + 1][i + 1] * in[(y + j) * im.width + (x + i)];
  out[y * im.width + x] = abs(sum) > 255 ? 255 : abs(sum);
}

// A member keeps its value.
__global__ void some(float3 *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    p[i].x = 1.0f;
    p[i].y = 2.0f;
  }
}

struct Tagged {
  float value;
  int tag;
};
__global__ void mixed(Tagged *t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    t[i].value = 1.0f;
    t[i].tag = 2;
  }
}

__global__ void branch(float *p, int n, float limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (i * 0.5f < limit)
      p[i] = 1.0f;
  }
}

template <typename T> T *filled(size_t n) {
  std::vector<T> host(n);
  auto *bytes = reinterpret_cast<unsigned char *>(host.data());
  for (size_t i = 0; i < n * sizeof(T); i++)
    bytes[i] = (unsigned char)(sizeof(T) % 3 && i % 4 == 3 ? 63 : i * 37 % 251);
  T *p;
  cudaMalloc(&p, n * sizeof(T));
  cudaMemcpy(p, host.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}

template <typename T> T *numbers(size_t n, int parts) {
  std::vector<float> host(n * parts);
  for (size_t i = 0; i < host.size(); i++)
    host[i] = float(i % 17) - 3.5f;
  T *p;
  cudaMalloc(&p, n * sizeof(T));
  cudaMemcpy(p, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  return p;
}

template <typename T> void show(const char *name, const void *p, size_t n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += double(host[i]) * (i % 13 + 1);
  printf("%s %g\n", name, sum);
}

int main(int argc, char **argv) {
  Picture im{argc > 1 ? atoi(argv[1]) : 64, argc > 2 ? atoi(argv[2]) : 32};
  int n = im.width * im.height, blocks = (n + 127) / 128;
  dim3 block(16, 16), grid((im.width + 15) / 16, (im.height + 15) / 16);
  uchar3 *rgb = filled<uchar3>(n);
  byte *g = filled<byte>(n), *e = filled<byte>(n);
  gray<<<grid, block>>>(rgb, g, im);
  show<byte>("gray", g, n);
  edges<<<grid, block>>>(g, e, im);
  show<byte>("edges", e, n);
  float3 *at = numbers<float3>(n, 3), *v = numbers<float3>(n, 3);
  move<<<blocks, 128>>>(at, v, 0.25f, n);
  show<float>("move", at, size_t(n) * 3);
  std::vector<double> d(n, 1.5);
  double *a, *b;
  cudaMalloc(&a, n * sizeof(double));
  cudaMalloc(&b, n * sizeof(double));
  cudaMemcpy(a, d.data(), n * sizeof(double), cudaMemcpyHostToDevice);
  real *f = numbers<real>(n, 1);
  wide<<<blocks, 128>>>(a, f, b, n);
  show<double>("wide", b, n);
  Complex *z = numbers<Complex>(n, 2);
  rotate<<<blocks, 128>>>(z, {0.6f, 0.8f}, n);
  show<float>("rotate", z, size_t(n) * 2);
}
