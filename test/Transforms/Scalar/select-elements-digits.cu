// Of a place by two digits, only the one that is not known before the kernel runs is chosen.
// RUN: %plan --passes='select-elements[sums:g]' %s | %check=SUMS
// RUN: %plan --passes='select-elements[turned:g]' %s | %check=TURNED
// RUN: %plan --passes='select-elements[wide:g]' %s | %check=WIDE
// RUN: optiml-opt --emit --passes='select-elements[sums:g];select-elements[turned:g];select-elements[wide:g]' %s > %t.cu
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 70 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

enum Kind { NONE, SOME, MANY };
constexpr int Q = 4;

// SUMS: float g[3][4];
// SUMS: g[k / 4][k % 4] = 0.0f;
// SUMS: #pragma unroll
// SUMS-NEXT: for (int q = 0; q < 4; q++) {
// SUMS: for (int at = 0; at < 3; ++at) {
// SUMS-NEXT: if (place == at) {
// SUMS-NEXT: g[at][q] += value;
// SUMS: out[i * 3 * 4 + k] = g[k / 4][k % 4];
__global__ void sums(const float *w, const int *kind, float *out, int n, int each) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float g[3 * Q];
  for (int k = 0; k < 3 * Q; k++)
    g[k] = 0.0f;
  for (int j = i * each; j < (i + 1) * each; j++)
    for (int q = 0; q < Q; q++)
      g[kind[j] * Q + q] += w[j] / (q + 1);
  for (int k = 0; k < 3 * Q; k++)
    out[i * 3 * Q + k] = g[k];
}

// The other digit is the known one in one place, and beside a constant in another.
// TURNED: int g[5][2];
// TURNED: g[{{at[0-9]*}}][1]
__global__ void turned(const int *kind, int *out, int n, int each) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int g[10];
  for (int k = 0; k < 10; k++)
    g[k] = k;
  for (int j = 0; j < each; j++) {
    g[2 * kind[i * each + j] + 5]++;
    g[2 * kind[i * each + j]] -= j;
  }
  int s = 0;
  for (int k = 0; k < 10; k++)
    s = s * 3 + g[k];
  out[i] = s;
}

// The counter runs further than a digit: places stay as they are.
// WIDE: int g[9];
// WIDE: for (int at = 0; at < 9; ++at) {
__global__ void wide(const int *kind, int *out, int n, int each) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int g[9];
  for (int k = 0; k < 9; k++)
    g[k] = 1;
  for (int j = 0; j < each; j++)
    for (int q = 0; q < 3; q++)
      g[kind[i * each + j] * 2 + q] += q + j;
  int s = 0;
  for (int k = 0; k < 9; k++)
    s = s * 3 + g[k];
  out[i] = s;
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 90, each = 6;
  std::vector<float> weights(n * each), result(n * 3 * Q);
  std::vector<int> kinds(n * each), numbers(n);
  for (int i = 0; i < n * each; ++i) {
    weights[i] = float(i * 37 % 101) / 16;
    kinds[i] = i * 7 % 11 % 3;
  }
  float *w, *out;
  int *kind, *first, *second;
  cudaMalloc(&w, weights.size() * sizeof(float));
  cudaMalloc(&out, result.size() * sizeof(float));
  cudaMalloc(&kind, kinds.size() * sizeof(int));
  cudaMalloc(&first, n * sizeof(int));
  cudaMalloc(&second, n * sizeof(int));
  cudaMemcpy(w, weights.data(), weights.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(kind, kinds.data(), kinds.size() * sizeof(int), cudaMemcpyHostToDevice);
  sums<<<(n + 63) / 64, 64>>>(w, kind, out, n, each);
  turned<<<(n + 63) / 64, 64>>>(kind, first, n, each);
  wide<<<(n + 63) / 64, 64>>>(kind, second, n, each);
  double s = 0;
  cudaMemcpy(result.data(), out, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (float v : result)
    s += v;
  unsigned all = 0;
  for (int *p : {first, second}) {
    cudaMemcpy(numbers.data(), p, n * sizeof(int), cudaMemcpyDeviceToHost);
    for (int v : numbers)
      all = all * 31 + v;
  }
  printf("%.5g %u\n", s, all);
}
