// Bytes and 16-bit numbers, up to 16 of them in one access; and lanes that have several elements of an array.
// RUN: %opt --passes='block-shape[threshold]{x=256,y=1};vectorize-access[threshold]{width=16}' %s | %check=THRESHOLD
// RUN: %opt --passes='block-shape[luma]{x=128,y=1};vectorize-access[luma]{width=8}' %s | %check=LUMA
// RUN: %plan --passes='block-shape[tint]{x=32,y=8};vectorize-access[tint]{width=4}' %s | %check=TINT
// RUN: %plan --passes='block-shape[pitched]{x=32,y=8};vectorize-access[pitched]{width=4}' %s | %check=PITCHED
// RUN: %opt --passes='block-shape[magnitude]{x=128,y=1};vectorize-access[magnitude]{width=2}' %s | %check=MAGNITUDE
// RUN: %opt --passes='block-shape[gains]{x=128,y=1};vectorize-access[gains]{width=8}' %s | %check=GAINS
// RUN: %refused --passes='block-shape[gains]{x=128,y=1};vectorize-access[gains]{width=16}' %s 2>&1 | %check=ENOUGH
// RUN: %refused --passes='block-shape[planes]{x=128,y=1};vectorize-access[planes]{width=4}' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[smooth]{x=128,y=1};vectorize-access[smooth]{width=4}' %s 2>&1 | %check=NONE
// RUN: optiml-opt --reread --emit --passes='block-shape[threshold]{x=256,y=1};vectorize-access[threshold]{width=16};block-shape[luma]{x=128,y=1};vectorize-access[luma]{width=8};block-shape[tint]{x=32,y=8};vectorize-access[tint]{width=4};block-shape[pitched]{x=32,y=8};vectorize-access[pitched]{width=4};block-shape[magnitude]{x=128,y=1};vectorize-access[magnitude]{width=2};block-shape[gains]{x=128,y=1};vectorize-access[gains]{width=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 64 48 | %check=SAME
// RUN: timeout 600 optiml-run --coverage=10 --verify=%t.cu %s -- 61 7 | %check=SAME
// SAME: the same results
// NONE: no array is accessed at neighbouring elements by neighbouring threads
// ENOUGH: half as many elements are accessed by vectors of the same size
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned char uchar;

// THRESHOLD: const uint4 in_vector = *(const uint4 *)&in[i];
// THRESHOLD: const uchar in_lanes[16] = {(uchar)in_vector.x, (uchar)(in_vector.x >> 8),
// THRESHOLD: *(uint4 *)&out[i] = make_uint4((unsigned int)out_lanes[0] | (unsigned int)out_lanes[1] << 8 |
__global__ void threshold(const uchar *in, uchar *out, int level, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  out[i] = in[i] > level ? 255 : 0;
}

// Three of a pixel's bytes, eight pixels: 24 bytes.
// LUMA: const uint2 rgb_vector = *(const uint2 *)&rgb[3 * i];
// LUMA: const uint2 rgb_vector1 = ((const uint2 *)&rgb[3 * i])[1];
// LUMA: rgb_lanes[24]
// LUMA: rgb_lanes[lane * 3 + 1]
// LUMA: *(uint2 *)&gray[i] = make_uint2(
__global__ void luma(const uchar *rgb, uchar *gray, int pixels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pixels) {
    float r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
    gray[i] = (uchar)(0.299f * r + 0.587f * g + 0.114f * b);
  }
}

// TINT: width % 4 == 0
// TINT: make_uchar4(
__global__ void tint(const uchar *from, uchar *to, int width, int height, float warm) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int at = (y * width + x) * 3;
  to[at] = (uchar)fminf(255.0f, from[at] * warm);
  to[at + 2] = from[at + 2];
  to[at + 1] = from[at + 1] / 2 + from[at] / 2;
}

// Rows lie apart by a parameter.
// PITCHED: pitch % 4 == 0
__global__ void pitched(const uchar *in, uchar *out, int width, int height, int pitch) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    const uchar b = in[y * pitch + 3 * x], g = in[y * pitch + 3 * x + 1], r = in[y * pitch + 3 * x + 2];
    out[y * pitch + 3 * x] = r;
    out[y * pitch + 3 * x + 1] = g;
    out[y * pitch + 3 * x + 2] = b;
  }
}

// Real and imaginary parts beside each other.
// MAGNITUDE: const float4 z_vector = *(const float4 *)&z[i * 2];
// MAGNITUDE: *(float2 *)&m[i] = make_float2(
__global__ void magnitude(const float *z, float *m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    m[i] = sqrtf(z[i * 2] * z[i * 2] + z[i * 2 + 1] * z[i * 2 + 1]);
}

// Signed numbers of 16 bits.
// GAINS: const short samples_lanes[8]
// GAINS-SAME: (short)(samples_vector.x >> 16)
// GAINS: (unsigned int)(unsigned short)louder_lanes[0]
__global__ void gains(const short *samples, short *louder, int n, int gain) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    louder[i] = (short)(samples[i] * gain / 16);
}

// Only the first and the second of three: the last pixel's third byte may lie beyond the end.
__global__ void planes(const uchar *rgb, int *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    sum[2 * i] = rgb[3 * i] + rgb[3 * i + 1];
}

// Neighbours of an element are no elements of one lane.
__global__ void smooth(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 2)
    out[2 * i] = in[2 * i] + in[2 * i + 1] + in[2 * i + 2];
}

int main(int argc, char **argv) {
  const int width = atoi(argv[1]), height = atoi(argv[2]), n = width * height, bytes = 3 * n;
  const int pitch = (3 * width + 3) / 4 * 4;
  std::vector<uchar> rgb(pitch * height);
  std::vector<float> z(2 * n + 2);
  std::vector<short> s(n);
  for (int i = 0; i < pitch * height; ++i)
    rgb[i] = (uchar)(i * 37 % 251);
  for (int i = 0; i < 2 * n + 2; ++i)
    z[i] = float(i % 23) - 11.5f;
  for (int i = 0; i < n; ++i)
    s[i] = (short)(i * 41 % 4001 - 2000);
  uchar *in, *gray, *black, *tinted, *turned;
  float *pairs, *sizes, *halves;
  short *samples, *louder;
  int *sums;
  cudaMalloc(&in, pitch * height);
  cudaMalloc(&gray, n);
  cudaMalloc(&black, n);
  cudaMalloc(&tinted, bytes);
  cudaMalloc(&turned, pitch * height);
  cudaMalloc(&pairs, (2 * n + 2) * 4);
  cudaMalloc(&sizes, n * 4);
  cudaMalloc(&halves, 2 * n * 4);
  cudaMalloc(&samples, n * 2);
  cudaMalloc(&louder, n * 2);
  cudaMalloc(&sums, 2 * n * 4);
  cudaMemcpy(in, rgb.data(), pitch * height, cudaMemcpyHostToDevice);
  cudaMemcpy(pairs, z.data(), (2 * n + 2) * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(samples, s.data(), n * 2, cudaMemcpyHostToDevice);
  cudaMemset(turned, 0, pitch * height);
  cudaMemset(sums, 0, 2 * n * 4);
  cudaMemset(halves, 0, 2 * n * 4);
  dim3 tile(32, 8), tiles((width + 31) / 32, (height + 7) / 8);
  luma<<<(n + 127) / 128, 128>>>(in, gray, n);
  threshold<<<(n + 255) / 256, 256>>>(gray, black, 100, n);
  tint<<<tiles, tile>>>(in, tinted, width, height, 1.25f);
  pitched<<<tiles, tile>>>(in, turned, width, height, pitch);
  magnitude<<<(n + 127) / 128, 128>>>(pairs, sizes, n);
  gains<<<(n + 127) / 128, 128>>>(samples, louder, n, 19);
  planes<<<(n + 127) / 128, 128>>>(in, sums, n);
  smooth<<<(n + 127) / 128, 128>>>(pairs, halves, n);
  std::vector<uchar> b(n), t(bytes), p(pitch * height);
  std::vector<float> m(n), h(2 * n);
  std::vector<int> k(2 * n);
  cudaMemcpy(b.data(), black, n, cudaMemcpyDeviceToHost);
  cudaMemcpy(t.data(), tinted, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(p.data(), turned, pitch * height, cudaMemcpyDeviceToHost);
  cudaMemcpy(m.data(), sizes, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(h.data(), halves, 2 * n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(s.data(), louder, n * 2, cudaMemcpyDeviceToHost);
  cudaMemcpy(k.data(), sums, 2 * n * 4, cudaMemcpyDeviceToHost);
  double total = 0;
  for (int i = 0; i < n; ++i)
    total += b[i] * (1 + i % 7) + m[i] * (1 + i % 5) + s[i] * (1 + i % 3) + h[2 * i] + k[2 * i];
  for (int i = 0; i < bytes; ++i)
    total += t[i] * (1 + i % 11);
  for (int i = 0; i < pitch * height; ++i)
    total += p[i] * (1 + i % 13);
  printf("%.3f\n", total);
  return 0;
}
