// Lanes that follow one another share the quotient of their index by a multiple of the width.
// RUN: %opt --passes='block-shape[channels]{x=128,y=1};vectorize-access[channels]{width=4}' %s | %check=CHANNELS
// RUN: %plan --passes='block-shape[rows]{x=128,y=1};vectorize-access[rows]{width=4}' --scalar=cols=24 %s | %check=ROWS
// RUN: %plan --passes='block-shape[rows]{x=128,y=1};vectorize-access[rows]{width=4}' --scalar=cols=26 %s | %check=UNEVEN
// RUN: %plan --passes='block-shape[planes]{x=128,y=1};vectorize-access[planes]{width=4}' --scalar=planes=24 %s | %check=PLANES
// RUN: %plan --passes='block-shape[planes]{x=128,y=1};vectorize-access[planes]{width=4}' --scalar=planes=26 %s | %check=TAIL
// RUN: %opt --passes='block-shape[shifted]{x=128,y=1};vectorize-access[shifted]{width=4}' %s | %check=SHIFTED
// RUN: optiml-opt --emit --scalar=cols=24 --scalar=planes=24 --passes='block-shape[channels]{x=128,y=1};vectorize-access[channels]{width=4};block-shape[rows]{x=128,y=1};vectorize-access[rows]{width=4};block-shape[planes]{x=128,y=1};vectorize-access[planes]{width=4};block-shape[shifted]{x=128,y=1};vectorize-access[shifted]{width=4}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 24 7 2 | %check=SAME
// RUN: %verify=%t.cu %s -- 28 5 1 | %check=SAME
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 24 7 2 2>&1 | %check=RAN
// SAME: the same results
// RAN-DAG: channels: 1 optimized, 0 original launches
// RAN-DAG: rows: 1 optimized, 0 original launches
// RAN-DAG: planes: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int plane = 6 * 8, count = 5, height = 12;

// CHANNELS: for (int lane = 0; lane < 4; ++lane) {
// CHANNELS-NEXT: int c = i / 48 % 5;
// CHANNELS-NEXT: int place = i % 48 + lane;
// CHANNELS-NEXT: int line = i % 48 / 12;
// CHANNELS: y_lanes[lane] =
__global__ void channels(const float *x, float *y, const float *scale, const float *shift, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int c = i / plane % count;
  int place = i % plane;
  int line = place / height;
  y[i] = x[i] * scale[c] + shift[line] + place;
}

// ROWS: when cols % 4 == 0
// ROWS: size_t row = i / cols;
// ROWS-NEXT: size_t col = i % cols + lane;
// UNEVEN-NOT: cols % 4
// UNEVEN: (i + lane) / cols
__global__ void rows(float *y, const float *bias, size_t n, size_t cols) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) {
    size_t row = i / cols, col = i % cols;
    y[i] = y[i] * row + bias[col];
  }
}

// What is a multiple of the divisor ends with the last whole vector.
// PLANES: when planes % 4 == 0
// PLANES: if (i < images * lines * planes) {
// PLANES-NEXT: const float4 x_vector
// // PLANES-NOT: } else {
// PLANES: y[i
// TAIL: if (i + 3 < images * lines * planes) {
__global__ void planes(const float *x, float *y, const float *shift, int images, int lines, int planes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= images * lines * planes)
    return;
  int line = i / planes % lines;
  y[i] = x[i] + shift[line];
}

// 48 does not divide i + 2 where it divides i.
// SHIFTED: (i + lane + 2) / 48
__global__ void shifted(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] + (i + 2) / plane;
}

int main(int argc, char **argv) {
  const int cols = argc > 1 ? std::atoi(argv[1]) : 24, lines = argc > 2 ? std::atoi(argv[2]) : 7;
  const int n = cols * lines - (argc > 3 ? std::atoi(argv[3]) : 0);
  std::vector<float> host(n + 64);
  for (int i = 0; i < n + 64; ++i)
    host[i] = float(i % 13) / 4;
  float *x, *y, *z, *w, *v, *more;
  for (float **buffer : {&x, &y, &z, &w, &v, &more}) {
    cudaMalloc(buffer, host.size() * sizeof(float));
    cudaMemcpy(*buffer, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  }
  channels<<<(n + 63) / 64, 64>>>(x, y, more, more, n);
  rows<<<(n + 63) / 64, 64>>>(z, more, n, cols);
  shifted<<<(n + 63) / 64, 64>>>(x, w, n);
  planes<<<(cols * lines + 63) / 64, 64>>>(x, v, more, 1, lines, cols);
  for (float *buffer : {y, z, w, v}) {
    cudaMemcpy(host.data(), buffer, n * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (int i = 0; i < n; ++i)
      sum += host[i] * (i + 1);
    std::printf("%g\n", sum);
  }
}
