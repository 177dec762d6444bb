// A thread's adjacent outputs are stored 16 bytes at once.
//
// DEFINE: %{outputs} = block-shape[product]{x=8,y=8};coarsen[product]{x=8,y=2,style=pieces}
// RUN: %plan --passes='%{outputs};widen-stores[product:c]' %s | FileCheck %s
// RUN: %opt --passes='block-shape[shift]{x=32,y=1};coarsen[shift]{x=4,style=blocked};widen-stores[shift:y]' %s | %check=SHIFT
// RUN: optiml-opt --emit --passes='%{outputs};widen-stores[product:c];qualify-pointers[product];stage-shared[product/k:a+b]{tile=8,wide=1,prefetch=1};block-shape[shift]{x=32,y=1};coarsen[shift]{x=4,style=blocked};widen-stores[shift:y]' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: optiml-opt --list-sites --passes='%{outputs}' %s | %check=SITES
// RUN: %refused --passes='block-shape[product]{x=8,y=8};coarsen[product]{x=8,y=2,style=strided};widen-stores[product:c]' %s 2>&1 | %check=APART
// RUN: %refused --passes='block-shape[product]{x=8,y=8};coarsen[product]{x=2,y=2};widen-stores[product:c]' %s 2>&1 | %check=FEW
// RUN: %refused --passes='block-shape[odd]{x=32,y=1};coarsen[odd]{x=4,style=blocked};widen-stores[odd:y]' %s 2>&1 | %check=ODD
// RUN: %refused --passes='block-shape[left]{x=32,y=1};coarsen[left]{x=4,style=blocked};widen-stores[left:y]' %s 2>&1 | %check=LEFT
// RUN: %refused --passes='block-shape[chosen]{x=32,y=1};coarsen[chosen]{x=4,style=blocked};widen-stores[chosen:y]' %s 2>&1 | %check=CHOSEN
// RUN: %refused --passes='block-shape[next]{x=32,y=1};coarsen[next]{x=4,style=blocked};widen-stores[next:y]' %s 2>&1 | %check=NEXT

// CHECK-DAG: // when aligned(c, 16)
// CHECK-DAG: // when n % 4 == 0
// CHECK: for (int ix = 0; ix < 4; ix += 4) {
// CHECK-NEXT: if (row + iy < m && col + jx * 32 + ix < n) {
// CHECK-NEXT: *(float4 *)&c[(row + iy) * n + (col + jx * 32 + ix)] = make_float4(2.0f * s[iy][jx][ix] + c[(row + iy) * n + (col + jx * 32 + ix)], 2.0f * s[iy][jx][ix + 1] + c[(row + iy) * n + (col + jx * 32 + (ix + 1))],
// SITES: widen-stores[product:c]
// APART: does not store neighbouring elements of c
// FEW: no unrolled loop over a thread's outputs stores to c alone
// SAME: the same results in {{[0-9]+}} runs
__global__ void product(const float *a, const float *b, float *c, int m, int n, int depth) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float s = 0;
    for (int k = 0; k < depth; ++k)
      s += a[row * depth + k] * b[k * n + col];
    c[row * n + col] = 2.0f * s + c[row * n + col];
  }
}

// What is read next to what is stored is read before: y and x must not overlap, as recorded.
// SHIFT: *(int4 *)&y[i + ix] = make_int4(x[i + ix + 1], x[i + (ix + 1) + 1], x[i + (ix + 2) + 1], x[i + (ix + 3) + 1]);
__global__ void shift(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i + 1];
}

// ODD: pieces of y do not begin at multiples of 16 bytes
__global__ void odd(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i + 1] = x[i];
}

// LEFT: the bound '{{.*}}' is no multiple of 4
__global__ void left(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i > 0)
    y[i] = x[i];
}

// CHOSEN: the condition '{{.*}}' is no bound of the index
__global__ void chosen(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0)
    y[i] = x[i];
}

// NEXT: what is stored depends on other elements of y
__global__ void next(int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = y[i + n];
}

int main() {
  static float host[2000], result[2000];
  for (int i = 0; i < 2000; ++i)
    host[i] = (i * 7919 % 1009 - 500) / 313.0f;
  float *a, *b, *c;
  cudaMalloc(&a, sizeof host);
  cudaMalloc(&b, sizeof host);
  cudaMalloc(&c, sizeof host);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(c, host, sizeof host, cudaMemcpyHostToDevice);
  product<<<dim3(3, 3), dim3(16, 16)>>>(a, b, c, 39, 44, 36);
  cudaMemcpy(result, c, sizeof result, cudaMemcpyDeviceToHost);
  shift<<<16, 64>>>((int *)a, (int *)c, 1000);
  cudaMemcpy(result, c, sizeof result, cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}
