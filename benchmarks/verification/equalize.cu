//--- common
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// RGB (3 bytes a pixel) -> gray -> histogram equalization. gray and eq have n = width * height bytes.
// eq = round(255 * (cdf(gray) - cdf_min) / (n - cdf_min)); an image of one gray value stays as it is.
typedef unsigned char uchar;
typedef unsigned int uint;

__host__ __device__ inline uint luma(uint r, uint g, uint b) { return (77 * r + 150 * g + 29 * b + 128) >> 8; }

//--- original
__global__ void gray_kernel(const uchar *rgb, uchar *gray, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    gray[i] = (uchar)luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}

__global__ void hist_kernel(const uchar *gray, uint *hist, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&hist[gray[i]], 1u);
}

__global__ void lut_kernel(const uint *hist, uchar *lut, int n) {
  uint cdf = 0, cdf_min = 0;
  for (int v = 0; v < 256; v++) {
    cdf += hist[v];
    if (cdf_min == 0)
      cdf_min = cdf;
    uint den = n - cdf_min;
    if (den == 0)
      lut[v] = (uchar)v;
    else
      lut[v] = (uchar)(((unsigned long long)(cdf - cdf_min) * 255 + den / 2) / den);
  }
}

__global__ void apply_kernel(const uchar *gray, const uchar *lut, uchar *eq, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    eq[i] = lut[gray[i]];
}

void run(const uchar *rgb, uchar *gray, uchar *eq, int width, int height) {
  int n = width * height, blocks = (n + 255) / 256;
  if (n <= 0)
    return;
  uint *hist;
  uchar *lut;
  cudaMalloc((void **)&hist, 256 * sizeof(uint));
  cudaMalloc((void **)&lut, 256);
  cudaMemset(hist, 0, 256 * sizeof(uint));
  gray_kernel<<<blocks, 256>>>(rgb, gray, n);
  hist_kernel<<<blocks, 256>>>(gray, hist, n);
  lut_kernel<<<1, 1>>>(hist, lut, n);
  apply_kernel<<<blocks, 256>>>(gray, lut, eq, n);
  cudaFree(hist);
  cudaFree(lut);
}

//--- quad-pixels-fused-lastblock
// kernel 1: gray, block histogram in shared memory, the last block makes the table; kernel 2: table lookup.
// Both take 4 pixels (3 words in, 1 word out) a step and leave n % 4 pixels to block 0.
struct Work {
  uint hist[256];
  uint done;
  uint lut[64]; // 256 bytes, for aligned copies
};

__global__ void __launch_bounds__(256) gray_hist_lut(const uchar *rgb, uchar *gray, Work *w, int n, bool words) {
  __shared__ uint bins[256];
  __shared__ uint scan[256];
  __shared__ int last;
  __shared__ uint cdf_min;
  const int tid = threadIdx.x, step = gridDim.x * 256;
  bins[tid] = 0;
  __syncthreads();
  const int quads = words ? n / 4 : 0;
  for (int i = blockIdx.x * 256 + tid; i < quads; i += step) {
    const uint *p = (const uint *)rgb + 3 * (size_t)i;
    const uint a = p[0], b = p[1], c = p[2]; // r0 g0 b0 r1 | g1 b1 r2 g2 | b2 r3 g3 b3
    const uint y0 = luma(a & 255, a >> 8 & 255, a >> 16 & 255), y1 = luma(a >> 24, b & 255, b >> 8 & 255);
    const uint y2 = luma(b >> 16 & 255, b >> 24, c & 255), y3 = luma(c >> 8 & 255, c >> 16 & 255, c >> 24);
    ((uint *)gray)[i] = y0 | y1 << 8 | y2 << 16 | y3 << 24;
    atomicAdd(bins + y0, 1u), atomicAdd(bins + y1, 1u), atomicAdd(bins + y2, 1u), atomicAdd(bins + y3, 1u);
  }
  for (int i = 4 * quads + blockIdx.x * 256 + tid; i < n; i += step) {
    const uint y = luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
    gray[i] = y;
    atomicAdd(bins + y, 1u);
  }
  __syncthreads();
  if (bins[tid])
    atomicAdd(w->hist + tid, bins[tid]);
  __threadfence();
  __syncthreads();
  if (tid == 0)
    last = atomicAdd(&w->done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last)
    return;
  __threadfence();
  const uint mine = atomicAdd(w->hist + tid, 0u);
  scan[tid] = mine;
  __syncthreads();
  for (int o = 1; o < 256; o <<= 1) {
    const uint add = tid >= o ? scan[tid - o] : 0;
    __syncthreads();
    scan[tid] += add;
    __syncthreads();
  }
  if (mine && scan[tid] == mine) // the first bin that is not empty
    cdf_min = mine;
  __syncthreads();
  const uint den = n - cdf_min, cdf = scan[tid] > cdf_min ? scan[tid] - cdf_min : 0;
  ((uchar *)w->lut)[tid] = den ? (uchar)((cdf * 255ull + den / 2) / den) : (uchar)tid;
}

__global__ void __launch_bounds__(256) apply_lut(const uchar *gray, const Work *w, uchar *eq, int n, bool words) {
  __shared__ uint lut4[64];
  const uchar *lut = (const uchar *)lut4;
  if (threadIdx.x < 64)
    lut4[threadIdx.x] = w->lut[threadIdx.x];
  __syncthreads();
  const int quads = words ? n / 4 : 0, step = gridDim.x * 256;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < quads; i += step) {
    const uchar4 g = ((const uchar4 *)gray)[i];
    ((uchar4 *)eq)[i] = make_uchar4(lut[g.x], lut[g.y], lut[g.z], lut[g.w]);
  }
  for (int i = 4 * quads + blockIdx.x * 256 + threadIdx.x; i < n; i += step)
    eq[i] = lut[gray[i]];
}

void run(const uchar *rgb, uchar *gray, uchar *eq, int width, int height) {
  const int n = width * height;
  if (n <= 0)
    return;
  const bool words = n >= 64 && (((uintptr_t)rgb | (uintptr_t)gray | (uintptr_t)eq) & 3) == 0;
  const int want = (n + 1023) / 1024, blocks = want < 24 ? want : 24;
  Work *w;
  cudaMalloc((void **)&w, sizeof(Work));
  cudaMemset(w, 0, sizeof(Work));
  gray_hist_lut<<<blocks, 256>>>(rgb, gray, w, n, words);
  apply_lut<<<blocks, 256>>>(gray, w, eq, n, words);
  cudaFree(w);
}

//--- one-block-or-partial-histograms
// small images: one block does it all; else private histograms per warp, partial histograms per block (no global
// atomics), a scan by shuffles, two-dimensional launches over rows
template <int THREADS>
__device__ uint block_scan(uint v) // inclusive, over the first 256 threads
{
  __shared__ uint sums[THREADS / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int o = 1; o < 32; o *= 2) {
    const uint u = __shfl_up_sync(0xffffffffu, v, o);
    v += lane >= o ? u : 0;
  }
  if (lane == 31)
    sums[warp] = v;
  __syncthreads();
  for (int j = 0; j < warp; j++)
    v += sums[j];
  __syncthreads();
  return v;
}

template <int THREADS>
__device__ void make_table(uint count, uchar *lut, int n) // count: of value threadIdx.x
{
  __shared__ uint first;
  const uint cdf = block_scan<THREADS>(count);
  if (count != 0 && cdf == count)
    first = count;
  __syncthreads();
  const uint den = n - first;
  if (threadIdx.x < 256)
    lut[threadIdx.x] = den == 0 ? threadIdx.x : cdf < first ? 0 : ((cdf - first) * 255ull + den / 2) / den;
  __syncthreads();
}

__global__ void __launch_bounds__(512) small_image(const uchar *rgb, uchar *gray, uchar *eq, int n) {
  __shared__ uint hist[256];
  __shared__ uchar lut[256], pixels[8192];
  if (threadIdx.x < 256)
    hist[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 512) {
    const uchar y = luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
    gray[i] = pixels[i] = y;
    atomicAdd(&hist[y], 1);
  }
  __syncthreads();
  make_table<512>(threadIdx.x < 256 ? hist[threadIdx.x] : 0, lut, n);
  for (int i = threadIdx.x; i < n; i += 512)
    eq[i] = lut[pixels[i]];
}

__global__ void gray_rows(const uchar *rgb, uchar *gray, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  const uchar3 p = reinterpret_cast<const uchar3 *>(rgb)[y * width + x];
  gray[y * width + x] = luma(p.x, p.y, p.z);
}

__global__ void __launch_bounds__(256) partial_hist(const uchar *gray, uint *part, int n) {
  __shared__ uint h[8][256];
  for (int i = threadIdx.x; i < 8 * 256; i += 256)
    (&h[0][0])[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
    atomicAdd(&h[threadIdx.x / 32][gray[i]], 1u);
  __syncthreads();
  uint sum = 0;
  for (int w = 0; w < 8; w++)
    sum += h[w][threadIdx.x];
  part[blockIdx.x * 256 + threadIdx.x] = sum;
}

// every block makes the table again from the partial histograms, then maps its rows
__global__ void __launch_bounds__(256)
    apply_rows(const uchar *gray, const uint *part, int parts, uchar *eq, int width, int height) {
  __shared__ uchar lut[256];
  uint count = 0;
  for (int b = 0; b < parts; b++)
    count += part[b * 256 + threadIdx.x];
  make_table<256>(count, lut, width * height);
  for (int y = blockIdx.x; y < height; y += gridDim.x)
    for (int x = threadIdx.x; x < width; x += 256)
      eq[y * width + x] = lut[gray[y * width + x]];
}

void run(const uchar *rgb, uchar *gray, uchar *eq, int width, int height) {
  const int n = width * height;
  if (n <= 0)
    return;
  if (n <= 8192) {
    small_image<<<1, 512>>>(rgb, gray, eq, n);
    return;
  }
  const int parts = n / 4096 < 16 ? n / 4096 : 16;
  uint *part;
  cudaMalloc((void **)&part, parts * 256 * sizeof(uint));
  gray_rows<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(rgb, gray, width, height);
  partial_hist<<<parts, 256>>>(gray, part, n);
  apply_rows<<<(height < 8 ? height : 8), 256>>>(gray, part, parts, eq, width, height);
  cudaFree(part);
}

//--- main
int main(int argc, char **argv) {
  int w = argc > 1 ? atoi(argv[1]) : 60, h = argc > 2 ? atoi(argv[2]) : 45;
  int range = argc > 3 ? atoi(argv[3]) : 120; // how many different levels, 1: a flat image
  if (w < 0 || h < 0)
    w = h = 0;
  if (range < 1 || range > 200)
    range = 200;
  size_t n = (size_t)w * h;
  uchar *host = (uchar *)malloc(5 * n + 1), *d;
  uint s = 17u;
  for (size_t i = 0; i < 3 * n; i++) {
    s = s * 1103515245u + 12345u;
    host[i] = (uchar)(40 + (s >> 16) % range * ((s >> 24) % 3 + 1) / 3);
  }
  uchar *gray, *eq;
  cudaMalloc((void **)&d, 3 * n + 1);
  cudaMalloc((void **)&gray, n + 1);
  cudaMalloc((void **)&eq, n + 1);
  cudaMemcpy(d, host, 3 * n, cudaMemcpyHostToDevice);
  run(d, gray, eq, w, h);
  cudaMemcpy(host + 3 * n, gray, n, cudaMemcpyDeviceToHost);
  cudaMemcpy(host + 4 * n, eq, n, cudaMemcpyDeviceToHost);
  unsigned long long sum[2] = {0, 0};
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < 2; k++)
      sum[k] += host[(3 + k) * n + i] * (i % 251 + 1);
  printf("gray %llu equalized %llu\n", sum[0], sum[1]);
  for (size_t i = 0; i < n; i += n / 8 + 1)
    printf("%zu: %d -> %d\n", i, host[3 * n + i], host[4 * n + i]);
  return 0;
}
