// Sums, products and extremes in private arrays, at places that data choose: threads have an array each, and combine
// them. An array with an element for each thread becomes a variable.
// RUN: %plan --passes='distribute-loop[features]{threads=32,rows=4}' %s | %check=FEATURES
// RUN: %plan --passes='distribute-loop[features]{threads=32,rows=4};select-elements[features:g_of_thread]' %s | %check=SELECT
// RUN: %plan --passes='distribute-loop[extremes]{threads=8,rows=16}' %s | %check=EXTREMES
// RUN: %plan --passes='distribute-loop[states]{threads=8,rows=16}' %s | %check=STATES
// RUN: %refused --passes='distribute-loop[states]{threads=16,rows=8}' %s 2>&1 | %check=OTHERS
// RUN: %refused --passes='distribute-loop[shifted]{threads=8,rows=16}' %s 2>&1 | %check=SHIFTED
// RUN: %refused --passes='distribute-loop[partly]{threads=8,rows=16}' %s 2>&1 | %check=PARTLY
// RUN: optiml-opt --emit --passes='distribute-loop[states]{threads=8,rows=16};distribute-loop[features]{threads=32,rows=4};select-elements[features:g_of_thread];distribute-loop[extremes]{threads=8,rows=16};distribute-loop[normal]{threads=16,rows=8}' %s > %t.cu
// RUN: %refused --passes='distribute-loop[features]{threads=128}' %s 2>&1 | %check=BLOCK
// RUN: %refused --fp=strict --passes='distribute-loop[features]{threads=32,rows=4}' %s 2>&1 | %check=STRICT
// RUN: %refused --passes='distribute-loop[seen]{threads=32,rows=4}' %s 2>&1 | %check=SEEN
// RUN: %refused --passes='distribute-loop[mixed]{threads=32,rows=4}' %s 2>&1 | %check=MIXED
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 70 45 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <vector>

enum { KINDS = 3, BASIS = 2 };

// FEATURES: float g_of_thread[3][2];
// FEATURES: g_of_thread[at][at1] = 0.0f;
// FEATURES: g_of_thread[kind[j]][k] += w[j] * (k + 1);
// FEATURES: float g_total = g_of_thread[at][at1];
// FEATURES: g_total += __shfl_xor_sync(0xffffffff, g_total, offset);
// FEATURES: g[at][at1] += g_total;
// SELECT: float g_of_thread[3][2];
// BLOCK: sums in arrays are combined within a warp
// STRICT: iterations share the array 'g'
__global__ void features(const float *w, const int *kind, const int *count, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float g[KINDS][BASIS];
  for (int a = 0; a < KINDS; a++)
    for (int k = 0; k < BASIS; k++)
      g[a][k] = 0.5f;
  for (int j = row * cols; j < row * cols + count[row]; ++j) {
    if (w[j] < 0)
      continue;
    for (int k = 0; k < BASIS; k++)
      g[kind[j]][k] += w[j] * (k + 1);
  }
  for (int a = 0; a < KINDS; a++)
    for (int k = 0; k < BASIS; k++)
      out[(row * KINDS + a) * BASIS + k] = g[a][k];
}

// What a maximum was before the loop stays. A count is a sum, and so is what is taken away.
// EXTREMES: most_of_thread[at] = most[at];
// EXTREMES: seen_of_thread[{{at[0-9]*}}] = 0;
// EXTREMES: if (w[row * cols + j] > most_of_thread[kind[row * cols + j]]) {
// EXTREMES: seen_of_thread[kind[row * cols + j]]++;
// EXTREMES: seen_of_thread[0] -= 2;
__global__ void extremes(const float *w, const int *kind, float *out, int *counts, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float most[KINDS] = {1, -1e30f, 3};
  int seen[KINDS] = {0, 7, 0};
  for (int j = 0; j < cols; ++j) {
    if (w[row * cols + j] > most[kind[row * cols + j]])
      most[kind[row * cols + j]] = w[row * cols + j];
    seen[kind[row * cols + j]]++;
    if (w[row * cols + j] > 4)
      seen[0] -= 2;
  }
  for (int a = 0; a < KINDS; a++) {
    out[row * KINDS + a] = most[a];
    counts[row * KINDS + a] = seen[a];
  }
}

// Normal equations of a line through the points of each row.
__global__ void normal(const float *w, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  double m[2][3];
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 3; b++)
      m[a][b] = 0;
  for (int j = 0; j < cols; ++j) {
    float v[3] = {1, float(j) / cols, w[row * cols + j]};
    for (int a = 0; a < 2; a++)
      for (int b = 0; b < 3; b++)
        m[a][b] = m[a][b] + v[a] * v[b];
  }
  out[row] = float((m[0][0] * m[1][2] - m[0][1] * m[0][2]) / (m[0][0] * m[1][1] - m[0][1] * m[0][1]));
}

// Each thread of eight has one of the states. The steps follow one another.
// STATES: float h;
// STATES: for (int s = threadIdx.x; s < 8; s += 8) {
// STATES-NEXT: h = s * 0.25f;
// STATES: for (int j = 0; j < cols; ++j) {
// STATES: h = h * (1.0f - decay) + w[row * cols + j];
// STATES-NEXT: y += h;
// STATES: y += __shfl_xor_sync(
// STATES: last[row * 8 + s] = h;
// OTHERS: iterations share the array 'h'
__global__ void states(const float *w, float *out, float *last, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float h[8];
  for (int s = 0; s < 8; s++)
    h[s] = s * 0.25f;
  for (int j = 0; j < cols; ++j) {
    float y = 0;
    for (int s = 0; s < 8; s++) {
      float decay = 1.0f / (2 + s);
      h[s] = h[s] * (1.0f - decay) + w[row * cols + j];
      y += h[s];
    }
    out[row * cols + j] = y / (1 + y * y);
  }
  for (int s = 0; s < 8; s++)
    last[row * 8 + s] = h[s];
}

// A neighbour's element is another thread's.
// SHIFTED: iterations share the array 'h'
__global__ void shifted(const float *w, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float h[8];
  for (int s = 0; s < 8; s++)
    h[s] = s;
  for (int j = 0; j < cols; ++j) {
    float y = 0;
    for (int s = 0; s < 8; s++) {
      h[s] = h[(s + 1) % 8] * 0.5f + w[row * cols + j];
      y += h[s];
    }
    out[row * cols + j] = y;
  }
}

// PARTLY: only some loops over the array 'h' can be shared out
__global__ void partly(const float *w, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float h[8], before = 0;
  for (int s = 0; s < 8; s++)
    h[s] = s;
  for (int j = 0; j < cols; ++j)
    for (int s = 0; s < 8; s++) {
      before = before * 0.5f + h[s];
      h[s] = before * w[row * cols + j];
    }
  out[row] = before;
}

// SEEN: iterations share the array 'g'
__global__ void seen(const float *w, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float g[2] = {0, 0};
  for (int j = 0; j < cols; ++j) {
    g[j % 2] += w[row * cols + j];
    g[0] += g[1] > 5 ? 1 : 0;
  }
  out[row] = g[0] + g[1];
}

// MIXED: iterations share the array 'g'
__global__ void mixed(const float *w, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float g[2] = {1, 1};
  for (int j = 0; j < cols; ++j) {
    g[j % 2] += w[row * cols + j];
    g[1] *= 1.001f;
  }
  out[row] = g[0] + g[1];
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 50, cols = argc > 2 ? atoi(argv[2]) : 40;
  int n = rows * cols;
  std::vector<float> weights(n), result(rows * KINDS * BASIS);
  std::vector<int> kinds(n), lengths(rows), numbers(rows * KINDS);
  for (int i = 0; i < n; ++i) {
    weights[i] = float(i * 37 % 101) / 16 - 1;
    kinds[i] = i * 7 % 11 % KINDS;
  }
  for (int r = 0; r < rows; ++r)
    lengths[r] = cols - r % 5;
  float *w, *out, *most, *slope, *steps, *last;
  int *kind, *count, *counts;
  cudaMalloc(&w, n * sizeof(float));
  cudaMalloc(&kind, n * sizeof(int));
  cudaMalloc(&count, rows * sizeof(int));
  cudaMalloc(&out, result.size() * sizeof(float));
  cudaMalloc(&most, rows * KINDS * sizeof(float));
  cudaMalloc(&slope, rows * sizeof(float));
  cudaMalloc(&steps, n * sizeof(float));
  cudaMalloc(&last, rows * 8 * sizeof(float));
  cudaMalloc(&counts, rows * KINDS * sizeof(int));
  cudaMemcpy(w, weights.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(kind, kinds.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(count, lengths.data(), rows * sizeof(int), cudaMemcpyHostToDevice);
  features<<<(rows + 63) / 64, 64>>>(w, kind, count, out, rows, cols);
  extremes<<<(rows + 63) / 64, 64>>>(w, kind, most, counts, rows, cols);
  normal<<<(rows + 63) / 64, 64>>>(w, slope, rows, cols);
  states<<<(rows + 63) / 64, 64>>>(w, steps, last, rows, cols);
  double s = 0;
  cudaMemcpy(weights.data(), steps, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (float v : weights)
    s += v;
  weights.resize(rows * 8);
  cudaMemcpy(weights.data(), last, rows * 8 * sizeof(float), cudaMemcpyDeviceToHost);
  for (float v : weights)
    s += v;
  cudaMemcpy(result.data(), out, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (float v : result)
    s += v;
  cudaMemcpy(result.data(), most, rows * KINDS * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < rows * KINDS; ++i)
    s += result[i];
  cudaMemcpy(result.data(), slope, rows * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < rows; ++i)
    s += result[i];
  cudaMemcpy(numbers.data(), counts, numbers.size() * sizeof(int), cudaMemcpyDeviceToHost);
  long all = 0;
  for (int v : numbers)
    all = all * 3 + v;
  printf("%.5g %ld\n", s, all);
}
