// Grid-stride loops in which data decide how long an inner loop runs become one loop; a stride that both kernels name
// is named once.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.txt
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: optiml-run %t.cu > %t.after
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s < %t.cu
#include <cstdio>
#include <vector>

typedef unsigned long long Key;
struct Order {
  Key customer;
  int quantity, price;
};

__global__ void probe(const Order *orders, size_t n, const Key *keys, const int *rows, size_t slots, int *match) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    int found = -1;
    for (size_t slot = orders[i].customer % slots; keys[slot] != 0; slot = (slot + 1) % slots)
      if (keys[slot] == orders[i].customer) {
        found = rows[slot];
        break;
      }
    match[i] = found;
  }
}
// CHECK: probe_revenue_total_fused(
// CHECK: size_t step = (size_t)gridDim.x * blockDim.x;
// CHECK: for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
// CHECK: match[i] = {{match_value|found}};
// CHECK: revenue[i] =
// CHECK: for (size_t i2 = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i2 < n; i2 += step) {

__global__ void revenue(const Order *orders, const int *match, size_t n, Key *revenue) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    revenue[i] = match[i] < 0 ? 0 : (Key)orders[i].quantity * orders[i].price;
}

// It ends at the first zero: it cannot share a loop with what stands before it.
__global__ void total(const Key *revenue, size_t n, Key *best) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (!revenue[i])
      break;
    best[i] = revenue[i] + 1;
  }
}

int main() {
  const size_t n = 700, slots = 64;
  std::vector<Order> orders(n);
  std::vector<Key> keys(slots, 0);
  std::vector<int> rows(slots, -1);
  for (size_t c = 1; c <= 30; ++c) {
    size_t slot = c * 7 % slots;
    while (keys[slot])
      slot = (slot + 1) % slots;
    keys[slot] = c * 7;
    rows[slot] = int(c);
  }
  for (size_t i = 0; i < n; ++i)
    orders[i] = {Key((i % 45 + 1) * 7), int(i % 5 + 1), int(i % 11)};
  Order *o;
  Key *k, *r, *b;
  int *w, *m;
  cudaMalloc(&o, n * sizeof(Order));
  cudaMalloc(&k, slots * sizeof(Key));
  cudaMalloc(&w, slots * sizeof(int));
  cudaMalloc(&m, n * sizeof(int));
  cudaMalloc(&r, n * sizeof(Key));
  cudaMalloc(&b, n * sizeof(Key));
  cudaMemcpy(o, orders.data(), n * sizeof(Order), cudaMemcpyHostToDevice);
  cudaMemcpy(k, keys.data(), slots * sizeof(Key), cudaMemcpyHostToDevice);
  cudaMemcpy(w, rows.data(), slots * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(b, 0, n * sizeof(Key));
  probe<<<3, 64>>>(o, n, k, w, slots, m);
  revenue<<<3, 64>>>(o, m, n, r);
  total<<<3, 64>>>(r, n, b);
  std::vector<int> match(n);
  std::vector<Key> got(n), best(n);
  cudaMemcpy(match.data(), m, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(got.data(), r, n * sizeof(Key), cudaMemcpyDeviceToHost);
  cudaMemcpy(best.data(), b, n * sizeof(Key), cudaMemcpyDeviceToHost);
  Key sum = 0;
  for (size_t i = 0; i < n; ++i)
    sum = sum * 31 + got[i] + Key(match[i] + 1) + best[i];
  printf("%llu\n", sum);
}
