// Private arrays move to registers: their loops are unrolled, and what is only known at run time is chosen.
//
// RUN: %opt --passes='select-elements[pivots:m]' %s | %check=PIVOTS
// RUN: %opt --passes='select-elements[bins:count]' %s | %check=BINS
// RUN: %opt --passes='select-elements[plain:v]' %s | %check=PLAIN
// RUN: %refused --passes='select-elements[passed:v]' %s 2>&1 | %check=PASSED
// RUN: %refused --passes='select-elements[wide:v]' %s 2>&1 | %check=WIDE
// RUN: %refused --passes='select-elements[nested:v]' %s 2>&1 | %check=NESTED
// RUN: %opt --passes='select-elements[unsignedFrom:v]' %s | %check=UNSIGNED
// RUN: %opt --passes='select-elements[tested:v]' %s | %check=TESTED
// RUN: %refused --passes='select-elements[ordered:v]' %s 2>&1 | %check=NESTED
// RUN: optiml-opt --emit --passes='select-elements[pivots:m];select-elements[bins:count];select-elements[plain:v]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>

// The loop over rows below the diagonal gets constant bounds, and a test.
// PIVOTS: for (int r = 1; r < 4; ++r) {
// PIVOTS-NEXT: if (r >= k + 1) {
// PIVOTS-NEXT: float chosen = m[0][k];
// PIVOTS-NEXT: #pragma unroll
// PIVOTS-NEXT: for (int at = 0; at < 4; ++at) {
// PIVOTS-NEXT: if (p == at) {
// PIVOTS-NEXT: chosen = m[at][k];
// PIVOTS: if (fabsf(m[r][k]) > fabsf(chosen)) {
// PIVOTS: m[k][j] = chosen1;
// PIVOTS: if (p == at2) {
// PIVOTS-NEXT: m[at2][j] = t;
__global__ void pivots(const float *__restrict__ in, float *__restrict__ out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float m[4][4];
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c)
      m[r][c] = in[(i * 4 + r) * 4 + c];
  for (int k = 0; k < 4; ++k) {
    int p = k;
    for (int r = k + 1; r < 4; ++r)
      if (fabsf(m[r][k]) > fabsf(m[p][k]))
        p = r;
    for (int j = 0; j < 4; ++j) {
      float t = m[k][j];
      m[k][j] = m[p][j];
      m[p][j] = t;
    }
    for (int r = k + 1; r < 4; ++r)
      for (int j = 0; j < 4; ++j)
        m[r][j] -= m[k][j] * 0.5f;
  }
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c)
      out[(i * 4 + r) * 4 + c] = m[r][c];
}

// What is added keeps its type. The loop over what is read stays one.
// BINS: int count[8]
// BINS-NEXT: for (int s = 0;
// BINS: int place = in[i * 16 + s] & 7;
// BINS: double value = 0.75 *
// BINS: if (place == at) {
// BINS-NEXT: count[at] += value;
__global__ void bins(const int *__restrict__ in, int *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int count[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int s = 0; s < 16; ++s)
    count[in[i * 16 + s] & 7] += 0.75 * (s + 1);
  for (int b = 0; b < 8; ++b)
    out[i * 8 + b] = count[b];
}

// PLAIN: #pragma unroll
// PLAIN-NEXT: for (int a = 0;
__global__ void plain(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v[24];
  for (int a = 0; a < 24; ++a)
    v[a] = in[i * 24 + a];
  for (int a = 0; a < 24; ++a)
    out[i * 24 + a] = v[23 - a];
}

__device__ __noinline__ float last(const float *v, int n) {
  for (int k = n - 1; k >= 0; --k)
    if (v[k] != 0)
      return v[k];
  return 0;
}
// PASSED: 'v' is used as a pointer
__global__ void passed(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[4];
  for (int a = 0; a < 4; ++a)
    v[a] = in[i * 4 + a];
  if (i < n)
    out[i] = last(v, 4);
}

// WIDE: there are more than 32 elements to choose from
__global__ void wide(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v[64];
  for (int a = 0; a < 64; ++a)
    v[a] = in[i * 64 + a];
  if (i < n)
    out[i] = v[v[0] & 63];
}

// NESTED: changes something within a larger expression
__global__ void nested(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v[4];
  for (int a = 0; a < 4; ++a)
    v[a] = in[i * 4 + a];
  if (i < n)
    out[i] = 2 * ++v[in[i] & 3];
}

// Its first bound is no number that the counter may be.
// UNSIGNED: for (unsigned int j = i - 1u; j < 4; ++j)
__global__ void unsignedFrom(const int *in, int *out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int v[4] = {0, 0, 0, 0};
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = i - 1u; j < 4; ++j)
      v[j] += i + 1;
  if (t < n)
    out[t] = v[in[t] & 3];
}

// The place may only be asked for where the test holds.
// TESTED: if (i < n && (map[i] == 0 ? v[0] :
__global__ void tested(const int *map, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v[4];
  for (int a = 0; a < 4; ++a)
    v[a] = a * n;
  if (i < n && v[map[i]] > 2)
    out[i] = 1;
}

__device__ int next(int *s) { return *s = *s * 5 + 1; }
__global__ void ordered(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v[4] = {0, 0, 0, 0}, s = i;
  for (int a = 0; a < 4; ++a)
    v[s % 4] = next(&s);
  if (i < n)
    out[i] = v[0];
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 300;
  float *in, *out;
  int *whole, *counts;
  cudaMallocManaged(&in, n * 24 * sizeof(float));
  cudaMallocManaged(&out, n * 24 * sizeof(float));
  cudaMallocManaged(&whole, n * 16 * sizeof(int));
  cudaMallocManaged(&counts, n * 8 * sizeof(int));
  for (int i = 0; i < n * 24; ++i)
    in[i] = (i * 37 % 101) * 0.25f - 9;
  for (int i = 0; i < n * 16; ++i)
    whole[i] = i * 13 % 29;
  double sum = 0;
  pivots<<<(n + 63) / 64, 64>>>(in, out, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n * 16; ++i)
    sum += out[i] * (i % 7);
  plain<<<(n + 63) / 64, 64>>>(in, out, n);
  bins<<<(n + 63) / 64, 64>>>(whole, counts, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n * 24; ++i)
    sum += out[i] * (i % 5);
  for (int i = 0; i < n * 8; ++i)
    sum += counts[i] * (i % 3);
  printf("%.6f\n", sum);
}
