// One index that is taken apart by / and %: the axes of a grid of threads in its place, which can be tiled.
// RUN: %plan --passes='unflatten-index[pointwise]' %s | FileCheck %s
// RUN: %plan --passes='unflatten-index[shifted]' %s | %check=SHIFTED
// RUN: optiml-opt --emit --passes='unflatten-index[pointwise];block-shape[pointwise]{x=16,y=16};coarsen[pointwise]{style=blocked,x=4,y=4};stage-shared[pointwise/c:in+w]{tile=16};unflatten-index[shifted];unflatten-index[total]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %plan --passes='unflatten-index[total]' %s | %check=TOTAL
// RUN: %refused --passes='unflatten-index[odd]' %s 2>&1 | %check=ODD
// RUN: %refused --passes='unflatten-index[together]' %s 2>&1 | %check=TOGETHER
// RUN: %refused --passes='block-shape[shifted]{x=128,y=1};unflatten-index[shifted]' %s 2>&1 | %check=FIXED
// SAME: the same results
// TOTAL: (ceildiv(W, block.x), all / W, grid.z)
// TOTAL: // when all % W == 0  (the cells are whole rows)
// ODD: no index i < width * height is taken apart by / and % of one width and its multiples
// TOGETHER: the kernel's threads work together, or wait for each other
// FIXED: the block shape is fixed already
#include <cstdio>
#include <vector>

// CHECK: (ceildiv(hw, block.x), O, N)
// CHECK: // when O >= 1
// CHECK: // when hw * O * N <= grid.x * block.x  (the launch has a thread for every cell)
// CHECK: int p = {{.*}}blockIdx.x
// CHECK-NEXT: int o = {{.*}}blockIdx.y
// CHECK-NEXT: int n = {{.*}}blockIdx.z
// CHECK-NEXT: if ({{.*}} < hw && {{.*}} < O && {{.*}} < N) {
__global__ void pointwise(const float *__restrict__ in, const float *__restrict__ w, float *__restrict__ out, int N,
                          int C, int O, int hw) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)N * O * hw)
    return;
  int p = i % hw;
  int o = i / hw % O;
  int n = i / hw / O;
  float acc = 0;
  for (int c = 0; c < C; ++c)
    acc += in[((size_t)n * C + c) * hw + p] * w[o * C + c];
  out[i] = acc;
}

// Divisors that are products.
// SHIFTED: (ceildiv(W, block.x), H, N)
__global__ void shifted(const float *in, float *out, int N, int H, int W) {
  int t = blockDim.x * blockIdx.x + threadIdx.x;
  if (t < N * H * W) {
    int x = t % W, y = (t / W) % H, n = t / (W * H), within = t % (H * W);
    out[t] = in[n * H * W + y * W + (x + 1) % W] + within;
  }
}

__global__ void total(const float *in, float *out, int all, int W) {
  int t = blockDim.x * blockIdx.x + threadIdx.x;
  if (t < all)
    out[t] = in[t / W] + t % W;
}

__global__ void odd(float *out, int H, int W) {
  int t = blockDim.x * blockIdx.x + threadIdx.x;
  if (t < H * W)
    out[t] = t % W + t / H;
}

__global__ void together(float *out, int H, int W) {
  __shared__ float s[64];
  int t = blockDim.x * blockIdx.x + threadIdx.x;
  s[threadIdx.x] = t;
  __syncthreads();
  if (t < H * W)
    out[t] = s[63 - threadIdx.x] + t % W + t / W;
}

int main() {
  const int N = 2, C = 20, O = 64, H = 6, W = 13, hw = H * W;
  std::vector<float> in(N * C * hw), w(O * C), out(N * O * hw), shift(N * O * hw);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = float(i % 17) / 8 - 1;
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(i % 5) / 4;
  float *a, *b, *c, *d, *e;
  cudaMalloc(&a, in.size() * 4);
  cudaMalloc(&b, w.size() * 4);
  cudaMalloc(&c, out.size() * 4);
  cudaMalloc(&d, in.size() * 4);
  cudaMalloc(&e, in.size() * 4);
  cudaMemcpy(a, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(b, w.data(), w.size() * 4, cudaMemcpyHostToDevice);
  pointwise<<<(N * O * hw + 127) / 128, 128>>>(a, b, c, N, C, O, hw);
  shifted<<<(N * C * hw + 63) / 64, 64>>>(a, d, N * C, H, W);
  total<<<(N * C * hw + 63) / 64, 64>>>(a, e, N * C * hw, W);
  cudaMemcpy(out.data(), c, out.size() * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(in.data(), d, in.size() * 4, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : out)
    sum += v;
  for (float v : in)
    sum += v;
  cudaMemcpy(in.data(), e, in.size() * 4, cudaMemcpyDeviceToHost);
  for (float v : in)
    sum += v;
  printf("%.3f\n", sum);
}
