// A thread's neighbouring inputs are loaded 16 bytes at once.
//
// RUN: %plan --passes='block-shape[rows]{x=8,y=16};coarsen[rows]{x=4,y=1,style=blocked};widen-loads[rows:b]' %s | %check=ROWS
// RUN: %opt --passes='block-shape[ends]{x=64,y=1};coarsen[ends]{x=4,y=1,style=blocked};widen-loads[ends:x]' %s | %check=ENDS
// RUN: %refused --passes='block-shape[ends]{x=64,y=1};coarsen[ends]{x=4,y=1,style=blocked};widen-loads[ends:y]' %s 2>&1 | %check=SHIFTED
// RUN: %refused --passes='block-shape[chosen]{x=64,y=1};coarsen[chosen]{x=4,y=1,style=blocked};widen-loads[chosen:x]' %s 2>&1 | %check=CHOSEN
// RUN: %refused --passes='block-shape[own]{x=64,y=1};coarsen[own]{x=4,y=1,style=blocked};widen-loads[own:x]' %s 2>&1 | %check=OWN
// RUN: %refused --passes='block-shape[ends]{x=64,y=1};coarsen[ends]{x=4,y=1,style=strided};widen-loads[ends:x]' %s 2>&1 | %check=APART
// RUN: %refused --block=64x1x1 --passes='block-shape[early]{x=64,y=1};widen-loads[early:x]' %s 2>&1 | %check=EARLY
// RUN: %refused --block=64x1x1 --passes='block-shape[gathered]{x=64,y=1};widen-loads[gathered:x]' %s 2>&1 | %check=GATHERED
// RUN: %refused --block=64x1x1 --passes='block-shape[moves]{x=64,y=1};widen-loads[moves:x]' %s 2>&1 | %check=GATHERED
// RUN: optiml-opt --emit --passes='block-shape[rows]{x=8,y=16};coarsen[rows]{x=4,y=1,style=blocked};widen-loads[rows:b];block-shape[ends]{x=64,y=1};coarsen[ends]{x=4,y=1,style=blocked};widen-loads[ends:x]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>

// ROWS: when aligned(b, 16)
// ROWS: when n % 4 == 0
// ROWS: for (int k = 0; k < m; ++k) {
// ROWS: float b_lanes[4];
// ROWS: for (int first = 0; first < 4; first += 4) {
// ROWS: float4 b_piece = *(const float4 *)&b[k * n +
// ROWS: b_lanes[first + 3] = b_piece.w;
// ROWS: s[ix] += v * b_lanes[ix];
__global__ void rows(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k) {
    float v = a[i * m + k];
    s += v * b[k * n + j];
  }
  c[i * n + j] = s;
}

// What is read twice is loaded once.
// ENDS: if ({{.*}}first < n) {
// ENDS: float4 x_piece
// ENDS-NOT: x_piece1
// ENDS: out[{{.*}}] = x_lanes[ix] * x_lanes[ix] + y[
// SHIFTED: pieces of y do not begin at multiples of 16 bytes
// APART: no unrolled loop over a thread's outputs loads neighbouring elements of x
__global__ void ends(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = x[i] * x[i] + y[i + 1];
}

// CHOSEN: loads x only where it has to
__global__ void chosen(const int *__restrict__ mask, const float *__restrict__ x, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = mask[i] ? x[i] : 0;
}

// OWN: the loop writes x as well
__global__ void own(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    x[i] = v * v;
  }
}

// EARLY: the loop may be left early, or threads meet in it
__global__ void early(const float *__restrict__ x, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (4 * i + k >= n)
      break;
    s += x[4 * i + k];
  }
  if (i < n)
    out[i] = s;
}

// GATHERED: where x is loaded depends on more than the loop
__global__ void gathered(const int *__restrict__ at, const float *__restrict__ x, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k)
    s += x[4 * at[k] + k];
  if (i < n)
    out[i] = s;
}

__global__ void moves(int *__restrict__ at, const float *__restrict__ x, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    s += x[4 * at[i] + k];
    at[i] += 1;
  }
  if (i < n)
    out[i] = s;
}

int main(int argc, char **argv) {
  const int m = argc > 1 ? atoi(argv[1]) : 37, n = argc > 2 ? atoi(argv[2]) : 64;
  float *a, *b, *c;
  cudaMallocManaged(&a, m * m * sizeof(float));
  cudaMallocManaged(&b, (m * n + 1) * sizeof(float));
  cudaMallocManaged(&c, m * n * sizeof(float));
  for (int i = 0; i < m * m; ++i)
    a[i] = i % 11 * 0.5f;
  for (int i = 0; i < m * n + 1; ++i)
    b[i] = i % 7 * 0.25f;
  double sum = 0;
  rows<<<dim3((n + 31) / 32, (m + 7) / 8), dim3(32, 8)>>>(a, b, c, m, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < m * n; ++i)
    sum += c[i] * (i % 5);
  ends<<<(m * n + 127) / 128, 128>>>(b, b, c, m * n);
  cudaDeviceSynchronize();
  for (int i = 0; i < m * n; ++i)
    sum += c[i] * (i % 3);
  printf("%.4f\n", sum);
}
