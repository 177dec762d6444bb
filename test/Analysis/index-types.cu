// What an index can be by its type, a mask, a shift or a remainder bounds the range of an array, so that it can be told
// apart from others.
// RUN: %plan --passes='block-shape[bytes]{x=128};privatize-atomic[bytes:count]{bins=256}' %s | %check=BYTES
// RUN: %plan --passes='block-shape[masks]{x=128};privatize-atomic[masks:low]{bins=64}' %s | %check=MASKS
// RUN: %plan --passes='block-shape[words]{x=128};privatize-atomic[words:most]{bins=64}' %s | %check=WORDS
// RUN: %plan --passes='block-shape[rest]{x=128};privatize-atomic[rest:most]' %s | %check=WORDS
// RUN: optiml-opt --emit --passes='grid-stride[bytes]{x=128,blocks=3};privatize-atomic[bytes:count]{bins=256};privatize-atomic[bytes:most]{bins=256};block-shape[masks]{x=128};privatize-atomic[masks:low]{bins=64};privatize-atomic[masks:high]{bins=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 1000 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 777 2>&1 | %check=RAN
// RAN-DAG: bytes: 1 optimized, 0 original launches
// RAN-DAG: masks: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// BYTES: when disjoint(count, 4 * 256, key, 1 * n)
// BYTES: when disjoint(count, 4 * 256, most + 4 * -128, 4 * (128 - -128))
__global__ void bytes(const unsigned char *key, int *count, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned char k = key[i];
  atomicAdd(&count[k], 1);
  atomicMax(&most[(signed char)k], i);
}

// MASKS: when disjoint(high, 4 * 16, low, 4 * 64)
// MASKS: when disjoint(key, 4 * n, low, 4 * 64)
// Sums are the same in any order, wherever they are.
// MASKS-NOT: rests, 4 * 10)
__global__ void masks(const unsigned *key, unsigned *low, unsigned *high, unsigned *rests, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned k = key[i];
  atomicAdd(&low[k & 63], 1u);
  atomicMax(&high[k >> 28], k);
  atomicAdd(&rests[k % 10], 1u);
}

// WORDS: when apart(count, most)
__global__ void words(const int *key, int *count, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int k = key[i];
  atomicMax(&most[k & 63], i);
  atomicAdd(&count[k], 1);
}

// The remainder of a negative number is one.
__global__ void rest(const int *key, int *count, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  atomicMax(&most[0], i);
  atomicAdd(&count[key[i] % 10], 1);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  unsigned char *key;
  unsigned *wide, *tables;
  int *counts;
  cudaMallocManaged(&key, n);
  cudaMallocManaged(&wide, n * sizeof(unsigned));
  cudaMallocManaged(&counts, 512 * sizeof(int));
  cudaMallocManaged(&tables, 90 * sizeof(unsigned));
  for (int i = 0; i < n; i++)
    key[i] = i * 7 % 256, wide[i] = i * 2654435761u;
  for (int i = 0; i < 512; i++)
    counts[i] = 0;
  for (int i = 0; i < 90; i++)
    tables[i] = 0;
  bytes<<<(n + 31) / 32, 32>>>(key, counts, counts + 256 + 128, n);
  masks<<<(n + 31) / 32, 32>>>(wide, tables, tables + 64, tables + 80, n);
  cudaDeviceSynchronize();
  unsigned sum = 0;
  for (int i = 0; i < 512; i++)
    sum = sum * 31 + counts[i];
  for (int i = 0; i < 90; i++)
    sum = sum * 31 + tables[i];
  printf("%u\n", sum);
}
