// One record of counters: a table for each member that has room for one, and none for the largest. Text is read before
// the first of them is counted, so that nothing is asked about where it lies.
// RUN: %plan --passes='block-shape[count]{x=64,y=1};privatize-atomic[count:stats]{bins=1}' %s | %check=COUNT
// RUN: optiml-opt --emit --passes='block-shape[count]{x=64,y=1};privatize-atomic[count:stats]{bins=1}' %s > %t.cu
// RUN: optiml-opt --list-sites --passes='block-shape[count]{x=64,y=1}' %s | %check=SITES
// RUN: %refused --passes='block-shape[open]{x=64,y=1};privatize-atomic[open:list]{bins=1}' %s 2>&1 | %check=OPEN
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 300 | %check=SAME %}
// SAME: the same results
// SITES: privatize-atomic[count:stats]{bins=1}
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Statistics {
  unsigned long long bytes[5];
  unsigned seen[1 << 14];
  unsigned byLength[4][3];
  int longest;
};
struct List {
  int size;
  int elements[1];
};

// COUNT-NOT: disjoint(
// COUNT-NOT: stats_seen_of_block
// COUNT: __shared__ unsigned long long stats_bytes_of_block[5];
// COUNT: __shared__ unsigned int stats_byLength_of_block[12];
// COUNT: __shared__ int stats_longest_of_block[1];
// COUNT: atomicAdd(&stats_bytes_of_block[kind],
// COUNT: atomicAdd(&stats_byLength_of_block[
// COUNT: atomicOr(&stats->seen[
__global__ void count(const char *text, const int *begin, int lines, Statistics *stats) {
  int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines)
    return;
  const char *p = text + begin[line];
  unsigned hash = 0;
  int length = 0;
  while (*p != '\n') {
    hash = hash * 31 + *p++;
    length++;
  }
  const int kind = length % 5;
  atomicAdd(&stats->bytes[kind], (unsigned long long)length);
  atomicAdd(&stats->byLength[length / 4 % 4][hash % 3], 1u);
  atomicMax(&stats->longest, length);
  atomicOr(&stats->seen[hash >> 5 & 0x3fff], 1u << (hash & 31));
}

// OPEN: does not name an element of 'list'
__global__ void open(const int *x, int n, List *list) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&list->elements[x[i]], 1);
}

int main(int argc, char **argv) {
  int lines = argc > 1 ? atoi(argv[1]) : 500;
  char *text;
  int *begin;
  Statistics *stats, result;
  cudaMallocManaged(&text, lines * 24 + 1);
  cudaMallocManaged(&begin, (lines + 1) * sizeof(int));
  cudaMalloc(&stats, sizeof(Statistics));
  cudaMemset(stats, 0, sizeof(Statistics));
  unsigned r = 3;
  int at = 0;
  for (int l = 0; l < lines; ++l) {
    begin[l] = at;
    r = r * 1664525u + 1013904223u;
    for (unsigned k = 0; k < (r >> 8) % 20; ++k)
      text[at++] = 'a' + (r >> (k % 16)) % 26;
    text[at++] = '\n';
  }
  count<<<(lines + 63) / 64, 64>>>(text, begin, lines, stats);
  cudaMemcpy(&result, stats, sizeof(Statistics), cudaMemcpyDeviceToHost);
  unsigned all = 0;
  for (unsigned word : result.seen)
    all = all * 7 + word;
  printf("%llu %u %d %u\n", result.bytes[1], result.byLength[1][2], result.longest, all);
  return 0;
}
