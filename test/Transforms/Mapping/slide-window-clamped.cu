// Windows whose borders are clamped by min and max: the counter of what enters is wider than the index was, and the
// functions are called with numbers of one type.
// RUN: optiml-opt --emit --passes='block-shape[blur]{x=128,y=1};slide-window[blur/dy]{axis=y,rows=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: FileCheck %s < %t.cu
// CHECK: __global__ void {{.*}}blur_optiml(
// CHECK: min({{.*}}max((int)dy, 0), h - 1)
// SAME: the same results
#include <cstdio>
#include <vector>
__global__ void blur(const unsigned char *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float s = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int u = min(max(x + dx, 0), w - 1), v = min(max(y + dy, 0), h - 1);
      s += in[v * w + u];
    }
  out[y * w + x] = s / 9;
}
int main() {
  const int w = 50, h = 30;
  std::vector<unsigned char> image(w * h);
  for (size_t i = 0; i < image.size(); i++)
    image[i] = i * 13 % 251;
  unsigned char *in;
  float *out;
  cudaMalloc(&in, image.size());
  cudaMalloc(&out, image.size() * sizeof(float));
  cudaMemcpy(in, image.data(), image.size(), cudaMemcpyHostToDevice);
  blur<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(in, out, w, h);
  std::vector<float> result(image.size());
  cudaMemcpy(result.data(), out, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (size_t i = 0; i < result.size(); i++)
    sum += result[i] * (i % 7);
  printf("%.7g\n", sum);
  return 0;
}
