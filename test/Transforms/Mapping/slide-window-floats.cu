// Windows of floating-point numbers: the sum of each line, or slice, is kept as long as it is in the window.
// RUN: %plan --passes='block-shape[variance]{x=32,y=4};slide-window[variance/j]{axis=y,rows=8}' %s | %check=LINES
// RUN: %plan --passes='block-shape[ncc<2>]{x=32,y=2};slide-window[ncc<2>/dz]{axis=z,rows=4};select-elements[ncc<2>:w_ab_parts]' %s | %check=SLICES
// RUN: optiml-opt --emit --passes='block-shape[variance]{x=32,y=4};slide-window[variance/j]{axis=y,rows=8};block-shape[ncc<2>]{x=32,y=2};slide-window[ncc<2>/dz]{axis=z,rows=4};select-elements[ncc<2>:w_ab_parts]' %s > %t.cu
// RUN: %refused --passes='block-shape[line]{x=128};slide-window[line/k]{axis=x,rows=8}' %s 2>&1 | %check=LINE
// RUN: %refused --passes='block-shape[open]{x=32,y=4};slide-window[open/j]{axis=y,rows=8}' %s 2>&1 | %check=OPEN
// RUN: %refused --passes='block-shape[weighted]{x=32,y=4};slide-window[weighted/j]{axis=y,rows=8}' %s 2>&1 | %check=WEIGHTED
// RUN: %refused --fp=strict --passes='block-shape[variance]{x=32,y=4};slide-window[variance/j]{axis=y,rows=8}' %s 2>&1 | %check=STRICT
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 45 37 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

#define R 3

// LINES: float mean_parts[7];
// LINES: float square_parts[7];
// LINES: for (int row = 0; row < 8; ++row) {
// LINES: for (int j = j_end; j < j_to; ++j) {
// LINES: float mean_of_window = 0.0f;
// LINES: for (int i =
// LINES: const int [[AT:place[0-9]*]] = (j % 7 + 7) % 7;
// LINES-NEXT: mean_parts[[[AT]]] = mean_of_window;
// LINES: for (int part = 0; part < 7; ++part) {
// LINES-NEXT: mean += mean_parts[part];
// LINES-NEXT: square += square_parts[part];
// STRICT: the loop does more than to add integers
__global__ void variance(const float *in, float *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  float mean = 0, square = 0;
  for (int j = max(y - R, 0); j <= min(y + R, height - 1); j++)
    for (int i = max(x - R, 0); i <= min(x + R, width - 1); i++) {
      float v = in[j * width + i];
      mean += v;
      square += v * v;
    }
  int n = (min(y + R, height - 1) - max(y - R, 0) + 1) * (min(x + R, width - 1) - max(x - R, 0) + 1);
  mean /= n;
  out[y * width + x] = square / n - mean * mean;
}

struct Window {
  double ab;
  int count;
};

// SLICES: double w_ab_parts[5];
// SLICES: unsigned int w_count_parts[5];
// SLICES: for (int row = 0; row < 4; ++row) {
// SLICES: if ([[AT:place[0-9]*]] == [[K:at[0-9]+]]) {
// SLICES-NEXT: w_ab_parts[[[K]]] = w_ab_of_window;
// SLICES: w_count_parts[[[AT]]] = w_count_of_window;
template <int N> __global__ void ncc(const double *a, const double *b, double *out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z;
  if (x < nx && y < ny) {
    Window w = {0, 0};
    for (int dz = -N; dz <= N; dz++)
      for (int dy = -N; dy <= N; dy++)
        for (int dx = -N; dx <= N; dx++) {
          if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz)
            continue;
          size_t at = ((size_t)(z + dz) * ny + (y + dy)) * nx + (x + dx);
          w.ab += a[at] * b[at];
          w.count++;
        }
    out[((size_t)z * ny + y) * nx + x] = w.ab / w.count;
  }
}

// LINE: an iteration adds a number or two, which need not be kept
__global__ void line(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n - 8)
    return;
  float s = 0;
  for (int k = 0; k < 9; ++k)
    s += in[x + k];
  out[x] = s;
}

// OPEN: the loop is not known to have 2 to 64 iterations
__global__ void open(const float *in, float *out, int width, int height, int r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  float s = 0;
  for (int j = max(y - r, 0); j <= min(y + r, height - 1); j++)
    for (int i = 0; i < 3; i++)
      s += in[j * width + i];
  out[y * width + x] = s;
}

// WEIGHTED: what an iteration adds depends on the output
__global__ void weighted(const float *in, const float *w, float *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height - 4)
    return;
  float s = 0;
  for (int j = 0; j < 5; j++)
    for (int i = 0; i < 3; i++)
      s += w[j] * in[(y + j) * width + i];
  out[y * width + x] = s;
}

int main(int argc, char **argv) {
  int width = argc > 1 ? atoi(argv[1]) : 50, height = argc > 2 ? atoi(argv[2]) : 40, depth = 12;
  size_t n = (size_t)width * height;
  std::vector<float> image(n);
  std::vector<double> volume(n * depth);
  for (size_t i = 0; i < n; ++i)
    image[i] = float(i * 37 % 101) / 8;
  for (size_t i = 0; i < n * depth; ++i)
    volume[i] = double(i * 53 % 97) / 16;
  float *in, *out;
  double *a, *b, *c;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  for (double **p : {&a, &b, &c})
    cudaMalloc(p, n * depth * sizeof(double));
  cudaMemcpy(in, image.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(a, volume.data(), n * depth * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(b, volume.data(), n * depth * sizeof(double), cudaMemcpyHostToDevice);
  dim3 block(32, 4), grid((width + 31) / 32, (height + 3) / 4);
  variance<<<grid, block>>>(in, out, width, height);
  ncc<2><<<dim3((width + 31) / 32, (height + 3) / 4, depth), block>>>(a, b, c, width, height, depth);
  cudaMemcpy(image.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(volume.data(), c, n * depth * sizeof(double), cudaMemcpyDeviceToHost);
  double s = 0;
  for (float v : image)
    s += v;
  for (double v : volume)
    s += v;
  printf("%.6g\n", s);
}
