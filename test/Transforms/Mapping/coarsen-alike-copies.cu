// What depends on the row alone is computed once for all columns of a thread, though it stands under a test of both.
// RUN: %plan --passes='block-shape[distance]{x=8,y=8};coarsen[distance]{style=blocked,x=2,y=4}' %s | %check=DISTANCE
// RUN: %plan --passes='block-shape[inner]{x=8,y=8};coarsen[inner]{style=strided,x=2,y=2}' %s | %check=INNER
// RUN: %plan --passes='block-shape[weighted]{x=8,y=8};coarsen[weighted]{style=strided,x=2,y=2}' %s | %check=WEIGHTED
// RUN: optiml-opt --emit --passes='block-shape[distance]{x=8,y=8};coarsen[distance]{style=blocked,x=2,y=4};stage-shared[distance/k:p+q]{tile=4};block-shape[inner]{x=8,y=8};coarsen[inner]{style=strided,x=2,y=2};block-shape[weighted]{x=8,y=8};coarsen[weighted]{style=strided,x=2,y=2};block-shape[chosen]{x=8,y=8};coarsen[chosen]{style=blocked,x=2,y=2}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 21 | %check=SAME
// RUN: %verify=%t.cu %s -- 37 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>

// DISTANCE: float pp[4];
// DISTANCE: float qq[2];
// DISTANCE: if (row + iy < n && column < n) {
// DISTANCE-NEXT: pp[iy] += p[(row + iy) * depth + k] * p[(row + iy) * depth + k];
__global__ void distance(const float *p, const float *q, float *out, int n, int depth) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n)
    return;
  float pq = 0, pp = 0, qq = 0;
  for (int k = 0; k < depth; ++k) {
    pq += p[row * depth + k] * q[column * depth + k];
    pp += p[row * depth + k] * p[row * depth + k];
    qq += q[column * depth + k] * q[column * depth + k];
  }
  out[row * n + column] = pp - 2 * pq + qq;
}

// A guard that may hold for a later copy only: all copies have their own.
// INNER: float s[2][2];
__global__ void inner(const float *p, float *out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && column > 0 && column < n - 1) {
    float s = 0;
    for (int k = 0; k < 3; ++k)
      s += p[row * 3 + k];
    out[row * n + column] = s * float(column);
  }
}

// Declared before the test: outside of it the value is another.
// WEIGHTED: float weight[2][2];
__global__ void weighted(const float *p, float *out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n)
    return;
  float weight = 1;
  if (column < n / 2)
    for (int k = 0; k < 3; ++k)
      weight += p[row * 3 + k];
  if (column < n)
    out[row * n + column] = weight;
}

__global__ void chosen(const float *p, float *out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && column < n) {
    float least = 1e30f, most = -1e30f;
    for (int k = 0; k < 3; ++k) {
      float here = p[row * 3 + k];
      if (here < least)
        least = here;
      if (here + float(column) > most)
        most = here + float(column);
    }
    if (least > 2)
      out[row * n + column] = least;
    else
      out[row * n + column] = most;
  }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 21, depth = 11;
  float *p = new float[n * depth], *q = new float[n * depth], *out = new float[4 * n * n];
  for (int i = 0; i < n * depth; ++i) {
    p[i] = float((i * 31) % 17) - 5;
    q[i] = float((i * 13) % 19) - 7;
  }
  float *dp, *dq, *dout;
  cudaMalloc(&dp, n * depth * sizeof(float));
  cudaMalloc(&dq, n * depth * sizeof(float));
  cudaMalloc(&dout, 4 * n * n * sizeof(float));
  cudaMemcpy(dp, p, n * depth * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dq, q, n * depth * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(dout, 0, 4 * n * n * sizeof(float));
  dim3 block(8, 8), grid((unsigned(n) + 7) / 8, (unsigned(n) + 7) / 8);
  distance<<<grid, block>>>(dp, dq, dout, n, depth);
  inner<<<grid, block>>>(dp, dout + n * n, n);
  weighted<<<grid, block>>>(dp, dout + 2 * n * n, n);
  chosen<<<grid, block>>>(dp, dout + 3 * n * n, n);
  cudaMemcpy(out, dout, 4 * n * n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < 4 * n * n; ++i)
    sum += out[i] * (i % 29);
  printf("%.1f\n", sum);
  return 0;
}
