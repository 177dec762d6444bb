// RUN: %plan --passes='block-shape[gemv]{x=64,y=1};stage-shared[gemv/k:x]{tile=32}' %s | FileCheck %s
// RUN: %plan --passes='block-shape[gemv]{x=64,y=1};stage-shared[gemv/k:x]{tile=32,wide=1,prefetch=1}' %s | %check=PREFETCH
// RUN: %plan --passes='block-shape[batched]{x=16,y=16};coarsen[batched]{x=2,y=2,style=blocked};stage-shared[batched/k:a+b]{tile=8,wide=1}' %s | %check=BATCHED
// RUN: %refused --passes='block-shape[shifted]{x=64,y=1};stage-shared[shifted/k:x]{tile=32,wide=1}' %s 2>&1 | %check=SHIFTED
// RUN: optiml-opt --reread --emit --passes='block-shape[batched]{x=16,y=16};coarsen[batched]{x=2,y=2,style=blocked};stage-shared[batched/k:a+b]{tile=8,wide=1,prefetch=1};qualify-pointers[batched]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --passes='stage-shared[gemv/k:x]{tile=32}' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[gather]{x=64,y=1};stage-shared[gather/k:x]{tile=32}' %s 2>&1 | %check=GATHER
// RUN: %refused --passes='block-shape[inplace]{x=64,y=1};stage-shared[inplace/k:x]{tile=32}' %s 2>&1 | %check=INPLACE
// RUN: %refused --passes='block-shape[triangle]{x=64,y=1};stage-shared[triangle/k:x]{tile=32}' %s 2>&1 | %check=TRIANGLE
// RUN: %refused --passes='block-shape[masked]{x=64,y=1};stage-shared[masked/k:x]{tile=32}' %s 2>&1 | %check=MASKED
// RUN: %refused --passes='block-shape[gemv]{x=64,y=1};stage-shared[gemv/k:a+x]{tile=256}' %s 2>&1 | %check=LARGE

// The vector is shared by the block. `a` is still read directly, so its reads keep both guards.
// CHECK: when disjoint(x, 4 * m, y, 4 * n)
// CHECK: __shared__ __align__(16) float x_tile[32];
// CHECK: for (int k0 = 0; k0 < m; k0 += 32) {
// CHECK: x_tile[{{.*}}] = {{.*}} < m {{.*}}? x[{{.*}}] : 0.0f;
// CHECK: __syncthreads();
// CHECK: if (k0 + k < m) {
// CHECK-NEXT: if (r < n) {
// CHECK-NEXT: s += a[r * m + (k0 + k)] * x_tile[k];
// CHECK: __syncthreads();
// Eight threads load 32 elements, while the strip before them is computed.
// PREFETCH-DAG: when aligned(x, 16)
// PREFETCH: float4 x_next[1];
// PREFETCH: if (0 < m) {
// PREFETCH: x_next[0] = {{.*}} ? *(const float4 *)&x[c] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
// PREFETCH: for (int k0 = 0; k0 < m; k0 += 32) {
// PREFETCH: *(float4 *)&x_tile[{{.*}}] = x_next[0];
// PREFETCH: __syncthreads();
// PREFETCH: if (k0 + 32 < m) {
// PREFETCH: x_next[0] = {{.*}}k0{{.*}} < m
// PREFETCH: s += a[r * m + (k0 + k)] * x_tile[k];
// PREFETCH: __syncthreads();
// SHAPE: the block shape is not fixed yet
// LARGE: bytes of shared memory are too many
__global__ void gemv(const float *a, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += a[r * m + k] * x[k];
  y[r] = s;
}

// GATHER: the index of x uses a variable that changes
__global__ void gather(const int *index, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += x[index[k]];
  y[r] = s;
}

// INPLACE: x is written
__global__ void inplace(float *x, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += x[k];
  x[r] = s;
}

// TRIANGLE: may not run the same for all threads of a block
__global__ void triangle(const float *x, float *y, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < r; ++k)
    s += x[k];
  y[r] = s;
}

// Which elements are read depends on data: loading the others might be out of bounds.
// MASKED: the condition around x is not affine
__global__ void masked(const int *use, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    if (use[k])
      s += x[k];
  y[r] = s;
}

// The first element of a strip is at no multiple of 16 bytes, whatever the launch is.
// SHIFTED: rows of x do not begin at multiples of 16 bytes
__global__ void shifted(const float *a, const float *x, float *y, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += a[r * m + k] * x[k + 1];
  y[r] = s;
}

// The blocks' third index is used alone, rows have pointers of their own, and the index is one of 64 bits.
// BATCHED-DAG: when block.z == 1
// BATCHED-DAG: when aligned(a, 16)
// BATCHED-DAG: when m % 4 == 0
// BATCHED-DAG: when aligned(b, 16)
// BATCHED: __shared__ __align__(16) float a_tile[8][36];
// BATCHED: const float4 [[V:v[0-9]*]] = {{.*}} ? *(const float4 *)&a[((long long)blockIdx.y * 32 + r) * m + (long long)blockIdx.z * m * n + (k0 + c)] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
// BATCHED: a_tile[c][r] = [[V]].x;
// BATCHED: a_tile[c + 3][r] = [[V]].w;
// SAME: the same results in {{[0-9]+}} runs
__global__ void batched(const float *a, const float *b, float *out, int n, int m) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int batch = blockIdx.z;
  if (i >= n || j >= n)
    return;
  const float *rowA = a + ((size_t)batch * n + i) * m, *rowB = b + ((size_t)batch * n + j) * m;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += rowA[k] * rowB[k];
  out[((size_t)batch * n + i) * n + j] = s;
}

int main() {
  static float host[3 * 40 * 40];
  float *a, *b, *out;
  for (int m = 20; m <= 22; m += 2) { // the second one takes the original
    cudaMalloc(&a, 3 * 40 * m * sizeof(float));
    cudaMalloc(&b, 3 * 40 * m * sizeof(float));
    cudaMalloc(&out, 3 * 40 * 40 * sizeof(float));
    cudaMemset(a, 0x3e, 3 * 40 * m * sizeof(float));
    cudaMemset(b, 0x3f, 3 * 40 * m * sizeof(float));
    batched<<<dim3(3, 3, 3), dim3(16, 16)>>>(a, b, out, 40, m);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    cudaFree(out);
  }
}
