// A loop that each copy runs for itself declares an index of its own: it is made of the copy's row, and has no offset
// besides.
// RUN: %plan --passes='block-shape[weigh]{x=16,y=8};coarsen[weigh]{style=blocked,x=1,y=4}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[weigh]{x=16,y=8};coarsen[weigh]{style=blocked,x=1,y=4}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>
#include <vector>

// CHECK: int row = y + iy + d - 1;
// CHECK: if (row >= 0 && row < h)
// CHECK-NEXT: in[row * w + x]
__global__ void weigh(const float *in, float *out, int w, int h, int rounds) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float sum = 0;
  int k = 1;
  for (; k <= rounds; k += 2)
    for (int d = 0; d < 3; ++d) {
      int row = y + d - 1;
      if (row >= 0 && row < h)
        sum += in[row * w + x] * k;
    }
  out[y * w + x] = sum + k;
}

int main() {
  const int w = 37, h = 29;
  std::vector<float> data(w * h);
  for (int i = 0; i < w * h; ++i)
    data[i] = float(i * 7 % 31);
  float *in, *out;
  cudaMalloc(&in, w * h * sizeof(float));
  cudaMalloc(&out, w * h * sizeof(float));
  cudaMemcpy(in, data.data(), w * h * sizeof(float), cudaMemcpyHostToDevice);
  weigh<<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(in, out, w, h, 5);
  cudaMemcpy(data.data(), out, w * h * sizeof(float), cudaMemcpyDeviceToHost);
  double all = 0;
  for (float v : data)
    all += v;
  printf("%g\n", all);
}
