// stages: strips go to shared memory by asynchronous copies, into as many tiles, while earlier ones are computed.
//
// RUN: %plan --passes='block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=8,wide=1,stages=3}' %s -- -arch=sm_80 | FileCheck %s
// RUN: %opt --passes='block-shape[polynomials]{x=64,y=1};stage-shared[polynomials/q/k:x]{tile=32,stages=2}' %s -- -arch=sm_90 | %check=AGAIN
// RUN: optiml-opt --emit %s -- -arch=sm_80 > %t.cu \
// RUN:   --passes='block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};qualify-pointers[product];stage-shared[product/k:a+b]{tile=8,wide=1,stages=3};block-shape[polynomials]{x=64,y=1};stage-shared[polynomials/q/k:x]{tile=32,stages=2}'
// RUN: optiml-run -arch=sm_80 --verify=%t.cu %s | %check=SAME
// RUN: %nvcc -arch=sm_80 -c %t.cu -o %t.o
// RUN: %refused --passes='block-shape[product]{x=16,y=16};stage-shared[product/k:a+b]{stages=2}' %s 2>&1 | %check=UNKNOWN
// RUN: %refused --passes='block-shape[product]{x=16,y=16};stage-shared[product/k:a+b]{stages=2}' %s -- -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=sm_75 2>&1 | %check=OLD
// RUN: %refused --passes='block-shape[product]{x=16,y=16};stage-shared[product/k:a+b]{stages=5}' %s -- -arch=sm_80 2>&1 | %check=MANY
// RUN: %refused --passes='block-shape[product]{x=16,y=16};stage-shared[product/k:a+b]{stages=2,prefetch=1}' %s -- -arch=sm_80 2>&1 | %check=BOTH
// RUN: %refused --passes='block-shape[bytes]{x=64,y=1};stage-shared[bytes/k:x]{tile=32,stages=2}' %s -- -arch=sm_80 2>&1 | %check=BYTES
// RUN: optiml-opt --list-sites --passes='block-shape[product]{x=16,y=16}' %s -- -arch=sm_80 | %check=SITES
// RUN: optiml-opt --list-sites --passes='block-shape[product]{x=16,y=16}' %s | %check=NONE

// UNKNOWN: asynchronous copies need -arch=sm_80 or later
// OLD: asynchronous copies need -arch=sm_80 or later, and the program is compiled for sm_75
// MANY: there may be 1 to 4 stages
// BOTH: strips come through registers (prefetch) or by asynchronous copies (stages)
// SITES: stage-shared[product/k:a+b]{stages=2,tile=16,wide=1}
// NONE-NOT: stages=

// Rows of `a` are transposed, so their elements come one by one; those of `b` 16 bytes at a time. Two strips are on
// their way before the first one is computed. A thread waits for its own part of a strip, the barrier for that of the
// others, and what is filled after it was read before it.
// CHECK-DAG: // when aligned(a, 16)
// CHECK-DAG: // when aligned(b, 16)
// CHECK-DAG: // when depth % 4 == 0
// CHECK-DAG: // when n % 4 == 0
// CHECK: void [[COPY:product_optiml[0-9]*]]_copy4_if(bool inside, void *to, const void *from) {
// CHECK-NEXT: asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" {{.*}} "r"(inside ? 4 : 0) : "memory");
// CHECK: _copy16_if(bool inside, void *to, const void *from) {
// CHECK-NEXT: asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
// CHECK: void [[COPY]]_commit() {
// CHECK-NEXT: asm volatile("cp.async.commit_group;" : : : "memory");
// CHECK: void [[COPY]]_wait1() {
// CHECK-NEXT: asm volatile("cp.async.wait_group 1;" : : : "memory");
// CHECK: __shared__ __align__(16) float a_tile[3][8][36];
// CHECK: __shared__ __align__(16) float b_tile[3][8][32];
// CHECK: if (0 < depth) {
// CHECK: [[COPY]]_copy4_if({{.*}}, &a_tile[0][[[C:c[0-9]*]]][r], &a[{{.*}}]);
// CHECK-NEXT: [[COPY]]_copy4_if({{.*}}, &a_tile[0][[[C]] + 1][r], &a[{{.*}}]);
// CHECK: [[COPY]]_copy16_if({{.*}}, &b_tile[0][{{.*}}], &b[{{.*}}]);
// CHECK: [[COPY]]_commit();
// CHECK-NEXT: if (8 < depth) {
// CHECK: &b_tile[1]
// CHECK: [[COPY]]_commit();
// CHECK-NEXT: for (int k0 = 0; k0 < depth; k0 += 8) {
// CHECK-NEXT: const int stage = k0 / 8 % 3;
// CHECK-NEXT: [[COPY]]_wait1();
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: if (k0 + 16 < depth) {
// CHECK-NEXT: const int next = (stage + 2) % 3;
// CHECK: &a_tile[next]
// CHECK: &b_tile[next]
// CHECK: [[COPY]]_commit();
// CHECK: s[iy][ix] += a_tile[stage][k][{{.*}}] * b_tile[stage][k][{{.*}}];
// CHECK-NOT: __syncthreads
__global__ void product(const float *a, const float *b, float *c, int rows, int n, int depth) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows && col < n) {
    float s = 0;
    for (int k = 0; k < depth; ++k)
      s += a[row * depth + k] * b[k * n + col];
    c[row * n + col] = s;
  }
}

// The loop over strips runs again,
// so the tiles that were read last are not filled before all threads are done with them.
// AGAIN: for (int q = 0; q < 3; ++q) {
// AGAIN: _copy4_if({{.*}}c + 3 < m{{.*}}, &x_tile[0][c], &x[c + 3]);
// AGAIN: for (int k0 = 3; k0 < m; k0 += 32) {
// AGAIN-NEXT: const int stage = (k0 - 3) / 32 % 2;
// AGAIN: s += y[
// AGAIN: }
// AGAIN: __syncthreads();
// AGAIN-NEXT: if (i < n) {
// AGAIN-NEXT: out[
__global__ void polynomials(const float *x, const float *y, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int q = 0; q < 3; ++q) {
      float s = 0;
      for (int k = 3; k < m; ++k)
        s += y[q * n + i] * x[k];
      out[q * n + i] = s;
    }
}

// BYTES: the elements of x are not of 4 or 8 bytes, as asynchronous copies want them
__global__ void bytes(const short *x, const float *y, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int k = 0; k < m; ++k)
      s += y[i] * x[k];
    out[i] = s;
  }
}

// SAME: the same results in {{[0-9]+}} runs
int main() {
  static float host[2000], result[2000];
  for (int i = 0; i < 2000; ++i)
    host[i] = (i * 7919 % 1009 - 500) / 313.0f;
  float *a, *b, *c;
  const int sizes[][3] = {{40, 44, 36}, {32, 36, 4}, {33, 37, 5}}; // the last one takes the original
  for (const int *size : sizes) {
    cudaMalloc(&a, 2000 * sizeof(float));
    cudaMalloc(&b, 2000 * sizeof(float));
    cudaMalloc(&c, 2000 * sizeof(float));
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
    product<<<dim3(3, 3), dim3(16, 16)>>>(a, b, c, size[0], size[1], size[2]);
    cudaMemcpy(result, c, size[0] * size[1] * sizeof(float), cudaMemcpyDeviceToHost);
    polynomials<<<2, 64>>>(a, b, c, 100, size[2] * 3);
    cudaMemcpy(result, c, 300 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
  }
}
