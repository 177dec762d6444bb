// Groups in an array of just their number, and in a larger one.
#include <cstdio>
#include <cstdlib>

struct Group {
  int items;
  float total;
};

__global__ void count(const int *kinds, const float *prices, Group *groups, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Group *g = groups + kinds[i];
  atomicAdd(&g->items, 1);
  atomicAdd(&g->total, prices[i]);
}

int main() {
  const int n = 20000, kinds = 90;
  int *kind;
  float *price;
  Group *exact, *larger;
  cudaMallocManaged(&kind, n * sizeof(int));
  cudaMallocManaged(&price, n * sizeof(float));
  cudaMallocManaged(&exact, kinds * sizeof(Group));
  cudaMallocManaged(&larger, (kinds + 1) * sizeof(Group));
  for (int i = 0; i < n; ++i) {
    kind[i] = i * 7 % kinds;
    price[i] = i % 16;
  }
  cudaMemset(exact, 0, kinds * sizeof(Group));
  cudaMemset(larger, 0, (kinds + 1) * sizeof(Group));
  count<<<(n + 127) / 128, 128>>>(kind, price, exact, n);
  cudaDeviceSynchronize();
  count<<<1, 128>>>(kind, price, larger, 100);
  cudaDeviceSynchronize();
  printf("%d %g %d\n", exact[3].items, exact[8].total, larger[7].items);
}
