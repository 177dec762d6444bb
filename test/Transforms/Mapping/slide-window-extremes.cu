// Extremes over a window: that of each line is kept as long as the line is in the window.
// RUN: %plan --passes='specialize-scalar[erode:radius]{value=3};block-shape[erode]{x=32,y=4};slide-window[erode/yy]{axis=y,rows=8}' --scalar=radius=3 %s | %check=ERODE
// RUN: %plan --passes='block-shape[peak<float>]{x=32,y=4};slide-window[peak<float>/dy]{axis=y,rows=8}' %s | %check=PEAK
// RUN: optiml-opt --emit --scalar=radius=3 --passes='specialize-scalar[erode:radius]{value=3};block-shape[erode]{x=32,y=4};slide-window[erode/yy]{axis=y,rows=8};select-elements[erode:best_parts];block-shape[peak<float>]{x=32,y=4};slide-window[peak<float>/dy]{axis=y,rows=8};block-shape[range]{x=32,y=2};slide-window[range/j]{axis=y,rows=4}' %s > %t.cu
// RUN: %refused --passes='block-shape[from_center]{x=32,y=4};slide-window[from_center/j]{axis=y,rows=8}' %s 2>&1 | %check=CENTER
// RUN: %refused --passes='block-shape[relative]{x=32,y=4};slide-window[relative/j]{axis=y,rows=8}' %s 2>&1 | %check=RELATIVE
// RUN: %refused --fp=strict --passes='block-shape[peak<float>]{x=32,y=4};slide-window[peak<float>/dy]{axis=y,rows=8}' %s 2>&1 | %check=STRICT
// RUN: %if verify %{ %verify=%t.cu %s -- 45 37 3 | %check=SAME %}
// SAME: the same results
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <vector>

// ERODE: int best_parts[7];
// ERODE: best_parts[part] = 255;
// ERODE: for (int row = 0; row < 8; ++row) {
// ERODE: int best_of_window = 255;
// ERODE: best_of_window = min(best_of_window, v1);
// ERODE: best_parts[{{place[0-9]*}}] = best_of_window;
// ERODE: best = min(best, best_parts[part]);
__global__ void erode(const unsigned char *in, unsigned char *out, int width, int height, int radius) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int best = 255;
  for (int yy = max(y - radius, 0); yy <= min(y + radius, height - 1); ++yy)
    for (int xx = max(x - radius, 0); xx <= min(x + radius, width - 1); ++xx) {
      int v = in[(size_t)yy * width + xx];
      best = min(best, v);
    }
  out[(size_t)y * width + x] = (unsigned char)best;
}

// PEAK: float highest_parts[5];
// PEAK: if ({{v[0-9]*}} > highest_of_window) {
// PEAK: if (highest_parts[part] > highest) {
// STRICT: the loop does more than
template <typename T> __global__ void peak(const T *in, T *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    T highest = -FLT_MAX;
    for (int dy = -2; dy <= 2; ++dy) {
      if (y + dy < 0 || y + dy >= height)
        continue;
      for (int dx = -2; dx <= 2; ++dx) {
        if (x + dx < 0 || x + dx >= width)
          continue;
        T v = in[(y + dy) * width + x + dx];
        if (v > highest)
          highest = v;
      }
    }
    out[y * width + x] = highest;
  }
}

// Both extremes and a sum at once.
__global__ void range(const int *in, int *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int least = 1 << 30, most = -(1 << 30), sum = 0;
  for (int j = max(y - 2, 0); j < min(y + 3, height); ++j)
    for (int i = max(x - 2, 0); i < min(x + 3, width); ++i) {
      int v = in[j * width + i];
      least = v < least ? v : least;
      most = max(v, most);
      sum += v;
    }
  out[y * width + x] = most - least + sum;
}

// CENTER: the loop does more than
__global__ void from_center(const int *in, int *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int most = in[y * width + x] + 1;
  for (int j = max(y - 2, 0); j < min(y + 3, height); ++j)
    for (int i = max(x - 2, 0); i < min(x + 3, width); ++i)
      most = max(most, in[j * width + i]);
  out[y * width + x] = most;
}

// RELATIVE: depends on the output
__global__ void relative(const int *in, int *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int center = in[y * width + x], most = 0;
  for (int j = max(y - 2, 0); j < min(y + 3, height); ++j)
    for (int i = max(x - 2, 0); i < min(x + 3, width); ++i)
      most = max(most, abs(in[j * width + i] - center));
  out[y * width + x] = most;
}

int main(int argc, char **argv) {
  const int width = argc > 1 ? std::atoi(argv[1]) : 45, height = argc > 2 ? std::atoi(argv[2]) : 37;
  const int radius = argc > 3 ? std::atoi(argv[3]) : 3, n = width * height;
  std::vector<unsigned char> bytes(n);
  std::vector<float> numbers(n);
  std::vector<int> integers(n);
  for (int i = 0; i < n; ++i) {
    bytes[i] = i * 37 % 251;
    numbers[i] = float(i * 29 % 101) - 50;
    integers[i] = i * 31 % 103 - 40;
  }
  unsigned char *b, *bOut;
  float *f, *fOut;
  int *k, *kOut;
  cudaMalloc(&b, n);
  cudaMalloc(&bOut, n);
  cudaMalloc(&f, n * sizeof(float));
  cudaMalloc(&fOut, n * sizeof(float));
  cudaMalloc(&k, n * sizeof(int));
  cudaMalloc(&kOut, n * sizeof(int));
  cudaMemcpy(b, bytes.data(), n, cudaMemcpyHostToDevice);
  cudaMemcpy(f, numbers.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(k, integers.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  const dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  erode<<<grid, block>>>(b, bOut, width, height, radius);
  peak<float><<<grid, block>>>(f, fOut, width, height);
  range<<<grid, block>>>(k, kOut, width, height);
  from_center<<<grid, block>>>(k, k, 0, height);
  relative<<<grid, block>>>(k, k, 0, height);
  cudaMemcpy(bytes.data(), bOut, n, cudaMemcpyDeviceToHost);
  cudaMemcpy(numbers.data(), fOut, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(integers.data(), kOut, n * sizeof(int), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += bytes[i] * 3.0 + numbers[i] * (i % 5) + integers[i] * (i % 7);
  std::printf("%.1f\n", sum);
}
