// A kernel on random inputs is compared with itself on the same arguments: here the second launch alone keeps the
// original, whose first launch has others.
// RUN: optiml-opt --emit --passes='vectorize-loop[product/k]{width=4}' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RAN: product: 1 optimized, 1 original launches
// SAME: the same results
// REQUIRES: optiml-run
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

int main() {
  static float host[1000], result[1000];
  for (int i = 0; i < 1000; ++i)
    host[i] = (i * 7919 % 1009 - 500) / 313.0f;
  float *a, *b, *c;
  for (int depth : {36, 5}) {
    cudaMalloc(&a, sizeof host);
    cudaMalloc(&b, sizeof host);
    cudaMalloc(&c, sizeof host);
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
    product<<<dim3(2, 2), dim3(16, 16)>>>(a, b, c, 20, 24, depth);
    cudaMemcpy(result, c, 20 * 24 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
  }
}
