// A loop that goes from place to place of a private array until something stops it visits all places.
// RUN: %opt --passes='select-elements[median<1>:window]' %s | %check=MEDIAN
// RUN: %opt --passes='select-elements[sorted:v]' %s | %check=SORTED
// RUN: %opt --passes='select-elements[first_above:steps]' %s | %check=ABOVE
// RUN: optiml-opt --emit --passes='select-elements[median<1>:window];select-elements[sorted:v];select-elements[first_above:steps];select-elements[two_at_once:pairs]' %s > %t.cu
// RUN: %if verify %{ %verify=%t.cu %s -- 45 37 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned char uchar;

// MEDIAN: #pragma unroll
// MEDIAN-NEXT: for (int dy = -1; dy <= 1; ++dy) {
// MEDIAN: #pragma unroll
// MEDIAN-NEXT: for (int dx = -1; dx <= 1; ++dx) {
// MEDIAN: for (int step = 0; step < 8; ++step) {
// MEDIAN-NEXT: const int at = 8 - step;
// MEDIAN-NEXT: if (k == at && (at > 0 && window[at - 1] > v)) {
// MEDIAN-NEXT: window[at] = window[at - 1];
// MEDIAN-NEXT: k = at - 1;
template <int R> __global__ void median(const uchar *in, uchar *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  uchar window[(2 * R + 1) * (2 * R + 1)];
  int count = 0;
  for (int dy = -R; dy <= R; ++dy)
    for (int dx = -R; dx <= R; ++dx) {
      uchar v = in[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];
      int k = count++;
      while (k > 0 && window[k - 1] > v) {
        window[k] = window[k - 1];
        --k;
      }
      window[k] = v;
    }
  out[y * width + x] = window[count / 2];
}

// An exchange in a loop with a head, of numbers that may be none; the counter is unsigned.
// SORTED: for (int step = 0; step < 6; ++step) {
// SORTED-NEXT: const unsigned int at = 6 - step;
// SORTED-NEXT: if (j == at && (at > 0 && v[at] < v[at - 1])) {
__global__ void sorted(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v[7];
  for (int k = 0; k < 7; ++k)
    v[k] = in[(i + 5 * k) % n];
  for (unsigned k = 1; k < 7; ++k)
    for (unsigned j = k; j > 0 && v[j] < v[j - 1]; --j) {
      float t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
  out[i] = v[3] + v[6] * 0.5f;
}

// Upwards, beyond the last place.
// ABOVE: for (int step = 0; step < 8; ++step) {
// ABOVE-NEXT: const int at = step;
// ABOVE-NEXT: if (p == at && (at < 8 && steps[at] <= v)) {
// ABOVE-NEXT: p = at + 1;
__global__ void first_above(const float *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float steps[8];
  steps[0] = in[i] * 0.125f;
  for (int k = 1; k < 8; ++k)
    steps[k] = steps[k - 1] + in[(i + k) % n];
  float v = in[(i + 9) % n] * 3;
  int p = i % 3;
  while (p < 8 && steps[p] <= v)
    p += 1;
  out[i] = p;
}

// Two arrays in step, and what a condition decides.
__global__ void two_at_once(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int pairs[5][2];
  int used = 0;
  for (int d = 0; d < 9; ++d) {
    int v = in[(i + d) % n];
    int at = used < 5 ? used++ : 5;
    if (at == 5) {
      if (pairs[4][0] <= v)
        continue;
      at = 4;
    }
    while (at > 0 && pairs[at - 1][0] > v) {
      pairs[at][0] = pairs[at - 1][0];
      pairs[at][1] = pairs[at - 1][1];
      at--;
    }
    pairs[at][0] = v;
    pairs[at][1] = d;
  }
  int sum = 0;
  for (int k = 0; k < 5; ++k)
    sum += pairs[k][0] * (k + 1) + pairs[k][1];
  out[i] = sum;
}

int main(int argc, char **argv) {
  const int width = argc > 1 ? std::atoi(argv[1]) : 45, height = argc > 2 ? std::atoi(argv[2]) : 37;
  const int n = width * height;
  std::vector<uchar> bytes(n);
  std::vector<float> numbers(n);
  std::vector<int> integers(n);
  for (int i = 0; i < n; ++i) {
    bytes[i] = i * 37 % 251;
    numbers[i] = float(i * 29 % 101) - 30;
    integers[i] = i * 31 % 103 - 40;
  }
  uchar *b, *bOut;
  float *f, *fOut;
  int *k, *kOut, *pOut;
  cudaMalloc(&b, n);
  cudaMalloc(&bOut, n);
  cudaMalloc(&f, n * sizeof(float));
  cudaMalloc(&fOut, n * sizeof(float));
  cudaMalloc(&k, n * sizeof(int));
  cudaMalloc(&kOut, n * sizeof(int));
  cudaMalloc(&pOut, n * sizeof(int));
  cudaMemcpy(b, bytes.data(), n, cudaMemcpyHostToDevice);
  cudaMemcpy(f, numbers.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(k, integers.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  median<1><<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(b, bOut, width, height);
  sorted<<<(n + 127) / 128, 128>>>(f, fOut, n);
  first_above<<<(n + 127) / 128, 128>>>(f, pOut, n);
  two_at_once<<<(n + 127) / 128, 128>>>(k, kOut, n);
  cudaMemcpy(bytes.data(), bOut, n, cudaMemcpyDeviceToHost);
  cudaMemcpy(numbers.data(), fOut, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(integers.data(), kOut, n * sizeof(int), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += bytes[i] * 3.0 + numbers[i] * (i % 5) + integers[i] * (i % 7);
  cudaMemcpy(integers.data(), pOut, n * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    sum += integers[i] * (i % 11);
  std::printf("%.1f\n", sum);
}
