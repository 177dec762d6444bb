// A loop that is left early: copies of a thread that leave it together share it.
//
// RUN: %opt --passes='block-shape[lists]{x=32,y=4};coarsen[lists]{style=strided,x=2,y=1}' %s | %check=TOGETHER
// RUN: %opt --passes='block-shape[apart]{x=128,y=1};coarsen[apart]{style=strided,x=2,y=1}' %s | %check=APART
// RUN: %opt --passes='block-shape[guarded]{x=32,y=4};coarsen[guarded]{style=strided,x=2,y=1}' %s | %check=GUARDED
// RUN: optiml-opt --emit --passes='block-shape[lists]{x=32,y=4};coarsen[lists]{style=strided,x=2,y=1};block-shape[apart]{x=128,y=1};coarsen[apart]{style=strided,x=2,y=1};block-shape[guarded]{x=32,y=4};coarsen[guarded]{style=strided,x=2,y=1}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>

// TOGETHER: for (int k = 0; k < 12; ++k) {
// TOGETHER-NEXT: int at = list[row * 12 + k];
// TOGETHER-NEXT: if (at < 0) {
// TOGETHER-NEXT: break;
// TOGETHER-NEXT: }
// TOGETHER-NEXT: float v = value[row * 12 + k];
// TOGETHER-NEXT: #pragma unroll
// TOGETHER-NEXT: for (int ix = 0; ix < 2; ++ix) {
// TOGETHER-NEXT: s[ix] += v * b[at * 64 + (j + ix * 32)];
__global__ void lists(const int *__restrict__ list, const float *__restrict__ value, const float *__restrict__ b,
                      float *__restrict__ c, int rows) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  float s = 0;
  for (int k = 0; k < 12; ++k) {
    int at = list[row * 12 + k];
    if (at < 0)
      break;
    float v = value[row * 12 + k];
    s += v * b[at * 64 + j];
  }
  c[row * 64 + j] = s;
}

// Each leaves it when its own sum is large.
// APART: for (int ix = 0; ix < 2; ++ix) {
// APART: for (int k = 0; k < 12; ++k) {
// APART: break;
__global__ void apart(const float *__restrict__ b, float *__restrict__ c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int k = 0; k < 12; ++k) {
    s += b[k * 64 + i % 64];
    if (s > 20)
      break;
  }
  c[i] = s;
}

// Some copies have nothing to do there.
// GUARDED: for (int ix = 0; ix < 2; ++ix) {
// GUARDED-NEXT: if (row < rows && j + ix * 32 < columns) {
// GUARDED: for (int k = 0; k < 12; ++k) {
// GUARDED: break;
__global__ void guarded(const int *__restrict__ list, const float *__restrict__ b, float *__restrict__ c, int rows,
                        int columns) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && j < columns)
    for (int k = 0; k < 12; ++k) {
      int at = list[row * 12 + k];
      if (at < 0)
        break;
      c[row * 64 + j] += b[at * 64 + j];
    }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 45;
  int *list;
  float *value, *b, *c;
  cudaMallocManaged(&list, n * 12 * sizeof(int));
  cudaMallocManaged(&value, n * 12 * sizeof(float));
  cudaMallocManaged(&b, 64 * 64 * sizeof(float));
  cudaMallocManaged(&c, n * 64 * sizeof(float));
  for (int i = 0; i < n * 12; ++i) {
    list[i] = i % 12 < i / 12 % 13 ? i * 7 % 64 : -1;
    value[i] = i % 9 * 0.5f;
  }
  for (int i = 0; i < 64 * 64; ++i)
    b[i] = i % 13 * 0.25f;
  double sum = 0;
  lists<<<dim3(1, (n + 3) / 4), dim3(64, 4)>>>(list, value, b, c, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n * 64; ++i)
    sum += c[i] * (i % 5);
  guarded<<<dim3(1, (n + 3) / 4), dim3(64, 4)>>>(list, b, c, n, 51);
  cudaDeviceSynchronize();
  for (int i = 0; i < n * 64; ++i)
    sum += c[i] * (i % 7);
  apart<<<(n * 64 + 127) / 128, 128>>>(b, c, n * 64);
  cudaDeviceSynchronize();
  for (int i = 0; i < n * 64; ++i)
    sum += c[i] * (i % 3);
  printf("%.4f\n", sum);
}
