// privatize-atomic with tables of records and of rows, which data choose.
// RUN: %opt --passes='block-shape[gather]{x=128,y=1};privatize-atomic[gather:totals]{bins=24};block-shape[perGroup]{x=64,y=1};privatize-atomic[perGroup:groups]{bins=16,copies=4};block-shape[rows]{x=256,y=1};privatize-atomic[rows:table]{bins=100};block-shape[payoffs]{x=128,y=1};privatize-atomic[payoffs:acc]' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[gather]{x=128,y=1};privatize-atomic[gather:totals]{bins=24};block-shape[perGroup]{x=64,y=1};privatize-atomic[perGroup:groups]{bins=16,copies=4};block-shape[rows]{x=256,y=1};privatize-atomic[rows:table]{bins=100};block-shape[payoffs]{x=128,y=1};privatize-atomic[payoffs:acc]' %s > %t.cu
// RUN: timeout 600 optiml-run --coverage=15 --verify=%t.cu %s -- 1500 | %check=SAME
// RUN: %refused --passes='block-shape[mixed]{x=128,y=1};privatize-atomic[mixed:totals]{bins=24}' %s 2>&1 | %check=WAYS
// RUN: %refused --passes='block-shape[reader]{x=128,y=1};privatize-atomic[reader:totals]{bins=24}' %s 2>&1 | %check=OTHER
// SAME: the same results
// WAYS: 'totals' is updated in different ways (line {{[0-9]+}})
// OTHER: 'totals' is accessed other than by atomic updates (line {{[0-9]+}})
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Moments {
  float first[3], second[3][2];
  int samples;
};
struct Sample {
  float v[3];
};

// A record, of which a pointer names one.
__global__ void gather(const Sample *samples, const int *owner, Moments *totals, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Moments *mine = &totals[owner[i]];
  for (int d = 0; d < 3; d++) {
    float x = samples[i].v[d];
    atomicAdd(&mine->first[d], x);
    for (int k = 0; k < 2; k++)
      atomicAdd(&mine->second[d][k], x * samples[i].v[k]);
  }
  atomicAdd(&mine->samples, 1);
}
// CHECK: gather_optiml{{2?}}(
// CHECK: __shared__ float totals_first_of_block[72];
// CHECK: __shared__ float totals_second_of_block[144];
// CHECK: __shared__ int totals_samples_of_block[24];
// CHECK: int mine_first = owner[i];
// CHECK: if (mine_first >= 0 && mine_first < 24) {
// CHECK-NEXT: atomicAdd(&totals_first_of_block[mine_first * 3 + d], x);
// CHECK: atomicAdd(&totals_second_of_block[(mine_first * 3 + d) * 2 + k], x * samples[i].v[k]);
// CHECK: atomicAdd(&totals[mine_first].second[d][k], x * samples[i].v[k]);
// CHECK: for (int [[K:k[0-9]*]] = threadIdx.x; [[K]] < 144; [[K]] += 128) {
// CHECK: atomicAdd(&totals[[[K]] / 2 / 3].second[[[K]] / 2 % 3][[[K]] % 2], totals_second_of_block[[[K]]]);

struct Group {
  unsigned long long count, revenue;
  unsigned dearest, cheapest;
};

// Fields that are folded in their own ways.
__global__ void perGroup(const unsigned char *category, const unsigned *price, Group *groups, long long n) {
  long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n)
    return;
  Group &g = groups[category[row]];
  atomicAdd(&g.count, 1ULL);
  atomicAdd(&g.revenue, (unsigned long long)price[row]);
  atomicMax(&g.dearest, price[row]);
  atomicMin(&g.cheapest, price[row]);
}
// CHECK: perGroup_optiml{{2?}}(
// CHECK: __shared__ unsigned int groups_cheapest_of_block[4][17];
// CHECK: atomicMin(&groups_cheapest_of_block[threadIdx.x % 4][
// CHECK: atomicMin(&groups[{{k[0-9]*}}].cheapest, total{{[0-9]*}});

// Rows of a matrix.
__global__ void rows(const float *x, const short *bucket, float *table, int width, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float *row = table + bucket[i] * width;
    for (int j = 0; j < width; ++j)
      atomicAdd(row + j, x[i * width + j]);
  }
}
// CHECK: rows_optiml{{2?}}(
// CHECK: long long row_first = bucket[i] * width;
// CHECK: if ({{.*}} < 100) {
// CHECK: atomicAdd(&table_of_block[{{.*}}], x[i * width + j]);

struct Terms {
  double scale;
  float strikes[4];
};
__constant__ Terms terms;

// Constant memory is nobody's else.
__global__ void payoffs(const float *price, double *acc, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < 4; ++k)
      atomicAdd(&acc[k], price[i] > terms.strikes[k] ? terms.scale * (price[i] - terms.strikes[k]) : 0.0);
}
// CHECK: payoffs_optiml{{2?}}(
// CHECK: double acc_of_thread3 = 0.0;

__global__ void mixed(const int *owner, Moments *totals, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&totals[owner[i]].samples, 1);
    atomicMax(&totals[0].samples, i);
  }
}

__global__ void reader(const int *owner, Moments *totals, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && totals[owner[i]].samples < 100)
    atomicAdd(&totals[owner[i]].samples, 1);
}

template <typename T> T *managed(size_t count) {
  T *p;
  cudaMallocManaged(&p, count * sizeof(T));
  return p;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 3000, width = 5, owners = 40;
  Sample *samples = managed<Sample>(n);
  int *owner = managed<int>(n);
  Moments *totals = managed<Moments>(owners);
  unsigned char *category = managed<unsigned char>(n);
  unsigned *price = managed<unsigned>(n);
  Group *groups = managed<Group>(30);
  float *x = managed<float>(n * width), *table = managed<float>(owners * width);
  short *bucket = managed<short>(n);
  double *acc = managed<double>(4);
  for (int i = 0; i < n; ++i) {
    for (int d = 0; d < 3; ++d)
      samples[i].v[d] = float((i * 7 + d * 3) % 16) / 16;
    owner[i] = i * 13 % owners;
    category[i] = i % 7 ? i % 5 : 29;
    price[i] = i * 31u % 1000;
    bucket[i] = short(i * 5 % owners);
    for (int j = 0; j < width; ++j)
      x[i * width + j] = float((i + j) % 8);
  }
  memset(totals, 0, owners * sizeof(Moments));
  memset(groups, 0, 30 * sizeof(Group));
  memset(table, 0, owners * width * sizeof(float));
  memset(acc, 0, 4 * sizeof(double));
  for (int g = 0; g < 30; ++g)
    groups[g].cheapest = ~0u;
  Terms t = {0.5, {1, 2.5, 4, 6}};
  cudaMemcpyToSymbol(terms, &t, sizeof t);
  gather<<<(n + 127) / 128, 128>>>(samples, owner, totals, n);
  perGroup<<<(n + 63) / 64, 64>>>(category, price, groups, n);
  rows<<<(n + 255) / 256, 256>>>(x, bucket, table, width, n);
  payoffs<<<(n + 127) / 128, 128>>>(x, acc, n);
  cudaDeviceSynchronize();
  printf("%g %d %llu %u %u %g %g\n", totals[3].second[1][0], totals[3].samples, groups[1].revenue, groups[1].dearest,
         groups[29].cheapest, table[17], acc[2]);
}
