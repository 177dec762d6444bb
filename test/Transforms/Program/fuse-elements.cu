// Launches whose threads have an element each, along several axes in the one and along one in the other, become one.
// RUN: optiml-opt --fuse-launches --reread --emit %s > %t.cu 2> %t.notes
// RUN: FileCheck %s < %t.cu
// RUN: %check=NOTES < %t.notes
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 70 37 3 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 70 37 3 2>&1 | %check=TRACE
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 64 8 1 2>&1 | %check=TRACE
// TRACE-DAG: blurred_levels_{{fused}}: 1 optimized, 0 original
// TRACE-DAG: slopes_energy_{{fused}}: 1 optimized, 0 original
// TRACE-DAG: heat_clamped_{{fused}}: 1 optimized, 0 original
// TRACE-DAG: turned_scaled_{{fused}}: 1 optimized, 0 original
// TRACE-DAG: doubled_grayed_{{fused}}: 1 optimized, 0 original
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 70 37 3 few 2>&1 | %check=FEW
// FEW-DAG: doubled_grayed_{{fused}}: 0 optimized, 1 original
// FEW-DAG: heat_clamped_{{fused}}: 1 optimized, 0 original
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// A stencil of another array by tiles, then a map.
__global__ void blurred(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float sum = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      sum += in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
  out[y * w + x] = sum / 9;
}
__global__ void levels(const float *smooth, unsigned char *level, float step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    level[i] = (unsigned char)(fabsf(smooth[i]) * step);
}
// CHECK-LABEL: blurred_levels_{{fused}}(
// CHECK: int at = blockIdx.x * blockDim.x + threadIdx.x;
// CHECK-NEXT: if (at < h * w) {
// CHECK: in[min(max(at / w + dy, 0), h - 1) * w + min(max(at % w + dx, 0), w - 1)];
// CHECK: out[at] = out_value;
// CHECK-NEXT: level[at] = (unsigned char)(fabsf(out_value) * step);
// CHECK: && ((long long)launch0.w <= (long long)launch0.launchGrid.x * (long long)launch0.launchBlock.x) // no element is
// CHECK: blurred_levels_{{fused}}<<<launch1.launchGrid, launch1.launchBlock

// The second one folds blocks; its threads are kept as they are.
__global__ void slopes(const float *in, float2 *slope, size_t pitch, int w, int h) {
  int col = threadIdx.x + blockDim.x * blockIdx.x, row = threadIdx.y + blockDim.y * blockIdx.y;
  if (col < w && row < h) {
    float2 d = {0, 0};
    if (col + 1 < w)
      d.x = in[row * pitch + col + 1] - in[row * pitch + col];
    if (row + 1 < h)
      d.y = in[(row + 1) * pitch + col] - in[row * pitch + col];
    slope[row * w + col] = d;
  }
}
__global__ void energy(const float2 *slope, int *count, unsigned n) {
  __shared__ int part[128];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n && slope[i].x * slope[i].x + slope[i].y * slope[i].y > 0.1f;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    atomicAdd(count, part[0]);
}
// CHECK-LABEL: slopes_energy_{{fused}}(
// CHECK: if (at < h * w) {
// CHECK: slope[at] = {d_x, d_y};
// CHECK-NEXT: }
// CHECK: part[threadIdx.x] = i < n && slope[i].x

// A volume.
__global__ void heat(const float *in, float *out, int nx, int ny, int nz) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y,
            k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= nx || j >= ny || k >= nz)
    return;
  const int at = (k * ny + j) * nx + i;
  float below = k > 0 ? in[at - nx * ny] : 0, above = k + 1 < nz ? in[at + nx * ny] : 0;
  out[at] = in[at] + 0.1f * (above + below - 2 * in[at]) + 0.01f * j;
}
__global__ void clamped(float *values, float low, float high, long long n) {
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e < n)
    values[e] = fminf(fmaxf(values[e], low), high);
}
// CHECK-LABEL: heat_clamped_{{fused}}(
// CHECK: float below = at / (nx * ny) > 0 ? in[at - nx * ny] : 0;
// CHECK: 0.01f * (at / nx % ny);

// By columns, and a map before what needs it.
__global__ void turned(const float *in, float *out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols)
    out[c * rows + r] = in[r * cols + c];
}
__global__ void scaled(float *values, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    values[i] *= by;
}
// CHECK-LABEL: turned_scaled_{{fused}}(
// CHECK: float out_value = in[at % rows * cols + at / rows];

// The flat one comes first; three bytes for each element.
__global__ void doubled(unsigned char *rgb, int pixels) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < pixels)
    for (int c = 0; c < 3; ++c)
      rgb[3 * p + c] = (unsigned char)(2 * rgb[3 * p + c]);
}
__global__ void grayed(const unsigned char *rgb, unsigned char *gray, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    const unsigned char *pixel = rgb + 3 * (y * width + x);
    gray[y * width + x] = (pixel[0] + 2 * pixel[1] + pixel[2]) / 4;
  }
}
// CHECK-LABEL: doubled_grayed_{{fused}}(
// CHECK: const unsigned char *pixel = rgb + 3 * p;
// CHECK-NEXT: gray[p] =

// Borders are left alone: their conditions stay.
__global__ void smoothed(const float *from, float *to, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
    return;
  to[y * w + x] = 0.25f * (from[y * w + x - 1] + from[y * w + x + 1] + from[(y - 1) * w + x] + from[(y + 1) * w + x]);
}
__global__ void relaxed(const float *from, float *to, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = to[i] * by + from[i] * (1 - by);
}
// CHECK-LABEL: smoothed_relaxed_{{fused}}(
// TRACE-DAG: smoothed_relaxed_{{fused}}: 1 optimized, 0 original

// Rows but the last; each with elements behind the image's.
__global__ void drops(const float *from, float *to, int w, int h, int pitch) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h - 1)
    to[y * pitch + x] = from[(y + 1) * pitch + x] - from[y * pitch + x];
}
__global__ void damped(float *to, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] *= by;
}
// CHECK-LABEL: drops_damped_{{fused}}(
// TRACE-DAG: drops_damped_{{fused}}: 1 optimized, 0 original

// A record holds the image, and the other kernels are given what it points to.
struct Image {
  float *data;
  int width, height;
  size_t pitch;
};
__global__ void cleared(float *v, float value, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n)
    v[i] = value;
}
__global__ void edges(Image from, Image to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= from.width - 1 || y >= from.height - 1)
    return;
  float sum = 0;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i)
      sum += from.data[(size_t)(y + j) * from.pitch + x + i] * (x - 1 < i + 40 ? i : j);
  to.data[y * to.pitch + x] = sum;
}
__global__ void halved(float *v, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n)
    v[i] *= 0.5f;
}
// CHECK-LABEL: cleared_edges_halved_{{fused}}(float *v, float value
// CHECK: if (at / (int)to.pitch < from.height - 1) {
// CHECK: v[at] = sum;
// CHECK: v[{{.*}}] *= 0.5f;
// TRACE-DAG: cleared_edges_halved_{{fused}}: 1 optimized, 0 original

// What a neighbour had is somebody else's.
__global__ void filled(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    a[i] += 1;
}
__global__ void shifted(const float *a, float *b, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    b[y * w + x] = x ? a[y * w + x - 1] : 0;
}
// NOTES: the launch is not fused with what stands before it: one thread may need what another did to 'a'

template <typename T> static void show(const char *name, const T *device, int n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += double(host[i]) * (i % 7 + 1);
  printf("%s %.6g\n", name, sum);
}

int main(int argc, char **argv) {
  const int w = argc > 1 ? atoi(argv[1]) : 70, h = argc > 2 ? atoi(argv[2]) : 37, d = argc > 3 ? atoi(argv[3]) : 3;
  const int n = w * h, volume = n * d;
  const bool few = argc > 4;
  if (w < 1 || h < 1 || d < 1)
    return 1;
  std::vector<float> values(volume);
  for (int i = 0; i < volume; ++i)
    values[i] = float((i * 37 + i / w * 11) % 101) / 50 - 1;
  float *a, *b, *c;
  float2 *slope;
  unsigned char *bytes, *rgb;
  int *count;
  cudaMalloc(&a, volume * 4), cudaMalloc(&b, volume * 4), cudaMalloc(&c, volume * 4), cudaMalloc(&slope, n * 8);
  cudaMalloc(&bytes, n), cudaMalloc(&rgb, 3 * n), cudaMalloc(&count, 4);
  cudaMemset(count, 0, 4), cudaMemset(rgb, 33, 3 * n);
  cudaMemcpy(a, values.data(), volume * 4, cudaMemcpyHostToDevice);
  dim3 tile(16, 4), tiles((w + 15) / 16, (h + 3) / 4), cubes((w + 15) / 16, (h + 3) / 4, d);

  blurred<<<tiles, tile>>>(a, b, w, h);
  levels<<<(n + 63) / 64, 64>>>(b, bytes, 100.0f, n);
  show("blurred", b, n), show("levels", bytes, n);

  slopes<<<tiles, tile>>>(a, slope, w, w, h);
  energy<<<(n + 127) / 128, 128>>>(slope, count, n);
  show("slopes", (float *)slope, 2 * n), show("energy", count, 1);

  heat<<<cubes, tile>>>(a, b, w, h, d);
  clamped<<<(volume + 255) / 256, 256>>>(b, -0.5f, 0.75f, volume);
  show("heat", b, volume);

  turned<<<tiles, tile>>>(a, c, h, w);
  scaled<<<(n + 127) / 128, 128>>>(c, 3, n);
  show("turned", c, n);

  int pixels = few ? n - 65 : n;
  doubled<<<(pixels + 63) / 64, 64>>>(rgb, pixels);
  grayed<<<tiles, tile>>>(rgb, bytes, w, h);
  show("gray", bytes, n), show("rgb", rgb, 3 * n);

  cudaMemset(b, 0, n * 4);
  smoothed<<<tiles, tile>>>(a, b, w, h);
  relaxed<<<(n + 127) / 128, 128>>>(a, b, 0.5f, n);
  show("relaxed", b, n);

  drops<<<tiles, tile>>>(a, b, w - 3, h, w);
  damped<<<(n + 127) / 128, 128>>>(b, 0.25f, n);
  show("drops", b, n);

  Image whole = {a, w, h, (size_t)w}, sharp = whole;
  sharp.data = b;
  cleared<<<(n + 127) / 128, 128>>>(sharp.data, 0.75f, n);
  edges<<<tiles, tile>>>(whole, sharp);
  halved<<<(n + 127) / 128, 128>>>(sharp.data, n);
  show("edges", b, n);

  filled<<<(n + 127) / 128, 128>>>(a, n);
  shifted<<<tiles, tile>>>(a, b, w, h);
  show("shifted", b, n);
  return cudaDeviceSynchronize() != cudaSuccess;
}
