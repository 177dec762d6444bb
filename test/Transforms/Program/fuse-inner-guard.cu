// A later kernel that asks for more than the bound stands within the earlier branch, and values stay in registers.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.txt
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: optiml-run %t.cu > %t.after
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s < %t.cu
#include <cstdio>
#include <vector>

__global__ void choose(const int *day, const int *amount, unsigned char *chosen, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    chosen[i] = day[i] >= 10 && amount[i] > 2 ? 1 : 0;
}

__global__ void value(const int *amount, const int *price, int *worth, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    worth[i] = amount[i] * price[i];
}

__global__ void add(const unsigned char *chosen, const int *worth, const int *kind, unsigned long long *sums,
                    long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || !chosen[i] || kind[i] < 0)
    return;
  atomicAdd(&sums[kind[i]], (unsigned long long)worth[i]);
}
// CHECK: Nothing looks at chosen, worth after the launches
// CHECK: choose_value_add_fused(
// CHECK: if (i < n) {
// CHECK-NEXT: unsigned char chosen_value = 
// CHECK-NEXT: int worth_value = amount[i] * price[i];
// CHECK-NEXT: if ({{.*}}chosen_value && {{.*}}kind[i] {{.*}} 0{{.*}}) {
// CHECK-NEXT: atomicAdd(&sums[kind[i]], (unsigned long long)worth_value);

int main() {
  const int n = 500;
  std::vector<int> day(n), amount(n), price(n), kind(n);
  for (int i = 0; i < n; ++i) {
    day[i] = i * 7 % 23;
    amount[i] = i % 9;
    price[i] = i * 5 % 31;
    kind[i] = i % 6 - 1;
  }
  int *d, *a, *p, *k, *w;
  unsigned char *c;
  unsigned long long *s, sums[5];
  for (int **buffer : {&d, &a, &p, &k, &w})
    cudaMalloc(buffer, n * sizeof(int));
  cudaMalloc(&c, n);
  cudaMalloc(&s, sizeof sums);
  cudaMemset(s, 0, sizeof sums);
  cudaMemcpy(d, day.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(a, amount.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(p, price.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(k, kind.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  choose<<<(n + 63) / 64, 64>>>(d, a, c, n);
  value<<<(n + 63) / 64, 64>>>(a, p, w, n);
  add<<<(n + 63) / 64, 64>>>(c, w, k, s, n);
  cudaMemcpy(sums, s, sizeof sums, cudaMemcpyDeviceToHost);
  for (unsigned long long sum : sums)
    printf("%llu\n", sum);
  for (int *buffer : {d, a, p, k, w})
    cudaFree(buffer);
  cudaFree(c);
  cudaFree(s);
}
