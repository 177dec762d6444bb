// Heat in a rod: a launch a step.
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

__global__ void conduct(const float *u, float *next, int n, float k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    next[i] = u[i] + k * (u[i - 1] - 2.0f * u[i] + u[i + 1]);
}

int main() {
  const int n = 20000, steps = 48;
  std::vector<float> u(n), next, result(n);
  for (int i = 0; i < n; ++i)
    u[i] = float(i * 37 % 101);
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, u.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, u.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  for (int t = 0; t < steps; ++t) {
    conduct<<<(n + 255) / 256, 256>>>(a, b, n, 0.25f);
    std::swap(a, b);
  }
  cudaMemcpy(result.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost);
  next = u;
  for (int t = 0; t < steps; ++t, std::swap(u, next))
    for (int i = 1; i < n - 1; ++i)
      next[i] = u[i] + 0.25f * (u[i - 1] - 2.0f * u[i] + u[i + 1]);
  float worst = 0;
  for (int i = 0; i < n; ++i)
    worst = std::fmax(worst, std::fabs(u[i] - result[i]));
  std::puts(worst < 1e-3f ? "PASS" : "FAIL");
}
