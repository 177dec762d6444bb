// tabulate: what one byte decides is computed once by a block, for all bytes.
// RUN: %plan --passes='grid-stride[equalize]{x=64,blocks=2};tabulate[equalize]' %s | %check=EQUALIZE
// RUN: %plan --passes='block-shape[brighten]{x=64};tabulate[brighten]' %s | %check=BRIGHTEN
// RUN: %plan --passes='block-shape[luminance]{x=64};tabulate[luminance]' %s | %check=LUMINANCE
// RUN: %plan --passes='block-shape[decibel]{x=64};tabulate[decibel]' %s | %check=DECIBEL
// RUN: optiml-opt --emit --passes='grid-stride[equalize]{x=64,blocks=2};tabulate[equalize];block-shape[brighten]{x=64};tabulate[brighten];grid-stride[luminance]{x=64,blocks=3};tabulate[luminance];block-shape[decibel]{x=64};tabulate[decibel];unroll[equalize/i]{factor=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 1000 2>&1 | %check=RAN
// RAN-COUNT-4: 1 optimized, 0 original launches
// RUN: %refused --passes='block-shape[inverse]{x=64};tabulate[inverse]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[blend]{x=64};tabulate[blend]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[vignette]{x=64};tabulate[vignette]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[threshold]{x=64};tabulate[threshold]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='block-shape[updated]{x=64};tabulate[updated]' %s 2>&1 | %check=NONE
// NONE: no value that takes long depends on a byte, and else on what the block shares
// RUN: %refused --passes='tabulate[brighten]' %s 2>&1 | %check=SHAPE
// SHAPE: the block shape is not fixed yet
// REQUIRES: optiml-run
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// EQUALIZE-DAG: when disjoint(cdf, 4 * 256, out, 1 * n)
// EQUALIZE-DAG: when holds(cdf, 1024)
// EQUALIZE: __shared__ uint8_t of_byte[256];
// EQUALIZE: for (int k = threadIdx.x; k < 256; k += 64) {
// EQUALIZE-NEXT: of_byte[k] = {{.*}}cdf[{{.*}}k{{.*}}
// EQUALIZE: __syncthreads();
// EQUALIZE: out[i] = of_byte[(int)in[i]];
__global__ void equalize(const uint8_t *in, uint8_t *out, const unsigned *cdf, const unsigned *least, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint64_t num = (uint64_t)(cdf[in[i]] - *least) * 255u;
  uint64_t den = n + 1 - *least;
  out[i] = (uint8_t)((num + den / 2) / den);
}

// The image itself: the byte is read where it was.
// BRIGHTEN: __shared__ unsigned char of_byte[256];
// BRIGHTEN: image[i] = of_byte[(int)image[i]];
__global__ void brighten(unsigned char *image, float gamma, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    image[i] = (unsigned char)(255 * powf(image[i] / 255.0f, gamma) + 0.5f);
}

__device__ float linear(unsigned char c) {
  float v = c / 255.0f;
  return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

// A table for each channel, with its weight.
// LUMINANCE-COUNT-3: __shared__ float of_byte
// LUMINANCE-NOT: __shared__
// LUMINANCE: y[i] = of_byte{{.*}}[(int)r] + of_byte{{.*}}[(int)g] + of_byte{{.*}}[(int)b];
__global__ void luminance(const uchar3 *rgb, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned char r = rgb[i].x, g = rgb[i].y, b = rgb[i].z;
  y[i] = 0.2126f * linear(r) + 0.7152f * linear(g) + 0.0722f * linear(b);
}

// A signed byte, as an int.
// DECIBEL: of_byte[(int)level + 128]
__global__ void decibel(const int8_t *levels, float *amplitudes, float scale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int level = levels[i];
  amplitudes[i] = scale * exp10f(level / 20.0f);
}

__global__ void inverse(const uint8_t *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] != 0)
    out[i] = 1000000 / in[i] + 7 / in[i];
}

__global__ void blend(const uint8_t *a, const uint8_t *b, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = sqrtf(a[i] * 1.0f + b[i]);
}

__global__ void vignette(const uint8_t *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = powf(in[i] / 255.0f, float(i));
}

__global__ void threshold(const uint8_t *in, uint8_t *out, int level, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] > level ? 255 : 0;
}

// What the kernel writes is no longer what it was at the start.
__global__ void updated(const uint8_t *in, float *curve, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    curve[i] = expf(curve[0] * in[i]);
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 1000;
  uint8_t *bytes = new uint8_t[3 * n], *out = new uint8_t[n];
  float *floats = new float[2 * n];
  unsigned cdf[256], least = 3;
  for (int i = 0; i < 3 * n; ++i)
    bytes[i] = uint8_t((i * 151 + i / 7) % 256);
  for (unsigned k = 0; k < 256; ++k)
    cdf[k] = least + k * (unsigned(n) - least) / 255;
  uint8_t *din, *dout;
  float *df;
  unsigned *dcdf, *dleast;
  cudaMalloc(&din, 3 * n);
  cudaMalloc(&dout, n);
  cudaMalloc(&df, 2 * n * sizeof(float));
  cudaMalloc(&dcdf, sizeof cdf);
  cudaMalloc(&dleast, sizeof least);
  cudaMemcpy(din, bytes, 3 * n, cudaMemcpyHostToDevice);
  cudaMemcpy(dcdf, cdf, sizeof cdf, cudaMemcpyHostToDevice);
  cudaMemcpy(dleast, &least, sizeof least, cudaMemcpyHostToDevice);
  const int blocks = (n + 63) / 64;
  equalize<<<blocks, 64>>>(din, dout, dcdf, dleast, n);
  brighten<<<blocks, 64>>>(dout, 0.8f, n);
  luminance<<<blocks, 64>>>((const uchar3 *)din, df, n);
  decibel<<<blocks, 64>>>((const int8_t *)din, df + n, 3.0f, n);
  cudaMemcpy(out, dout, n, cudaMemcpyDeviceToHost);
  cudaMemcpy(floats, df, 2 * n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += out[i] * (i % 11) + floats[i] + floats[n + i];
  printf("%.3f\n", sum);
  return 0;
}
