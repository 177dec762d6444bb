// Functions that return structs, constructors, and methods that move pointers are read where they are called; what is
// left are loops with counters, which threads share.
// RUN: optiml-opt --kernels-only --passes='unroll[offsets/i]{factor=2}' %s | %check=OFFSETS
// RUN: optiml-opt --kernels-only --passes='unroll[means/i]{factor=2}' %s | %check=MEANS
// RUN: optiml-opt --emit --passes='distribute-loop[offsets]{threads=64};distribute-loop[means]{rows=8,threads=32};distribute-loop[lengths]{threads=128}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %if verify %{ optiml-run --coverage=15 --verify=%t.cu %s -- 9 70 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>

struct Table {
  const unsigned *counts;
  unsigned *offsets, *totals;
  size_t rows, columns;
};

struct Cursor {
  const unsigned *at, *end;
  unsigned *out;
  __device__ Cursor(const Table &t, size_t row)
      : at(t.counts + row * t.columns), end(at + t.columns), out(t.offsets + row * t.columns) {}
  __device__ bool more() const { return at != end; }
  __device__ unsigned take(unsigned before) {
    unsigned here = *at++;
    *out++ = before;
    return before + here;
  }
};

// OFFSETS-NOT: Cursor
// OFFSETS: for (; i < (long long)t.columns; ++i) {
// OFFSETS-NEXT: unsigned int here = c_at[i];
// OFFSETS-NEXT: c_out[i] = sum;
// OFFSETS-NEXT: sum = sum + here;
__global__ void offsets(Table t) {
  size_t row = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (row >= t.rows)
    return;
  unsigned sum = 0;
  Cursor c(t, row);
  while (c.more())
    sum = c.take(sum);
  t.totals[row] = sum;
}

struct Range {
  int from, to;
  __device__ int size() const { return to - from; }
};
static __device__ Range around(int middle, int reach, int size) {
  Range r;
  r.from = middle > reach ? middle - reach : 0;
  r.to = middle + reach < size ? middle + reach + 1 : size;
  return r;
}

// MEANS-NOT: around
// MEANS: int window_from = row > reach ? row - reach : 0;
// MEANS: for (; i < window_to; i++) {
__global__ void means(const unsigned *counts, unsigned *out, int n, int reach) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    const Range window = around(row, reach, n);
    unsigned sum = 0;
    for (int i = window.from; i < window.to; i++)
      sum += counts[i];
    out[row] = sum / window.size();
  }
}

__global__ void lengths(const unsigned *counts, unsigned *out, size_t rows, size_t columns) {
  const size_t row = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (row >= rows)
    return;
  unsigned long long sum = 0;
  for (const unsigned *p = counts + row * columns, *e = p + columns; p < e; ++p)
    sum += *p * (unsigned long long)*p;
  out[row] = sum % 1000003;
}

int main(int argc, char **argv) {
  const size_t rows = argc > 1 ? atoi(argv[1]) : 9, columns = argc > 2 ? atoi(argv[2]) : 70, n = rows * columns;
  unsigned *data;
  cudaMallocManaged(&data, (3 * n + 3 * rows) * sizeof(unsigned));
  for (size_t i = 0; i < n; ++i)
    data[i] = (i * 2654435761u >> 7) % 97;
  offsets<<<(rows + 127) / 128, 128>>>(Table{data, data + n, data + 3 * n, rows, columns});
  means<<<(n + 127) / 128, 128>>>(data, data + 2 * n, int(n), 5);
  lengths<<<(rows + 127) / 128, 128>>>(data, data + 3 * n + rows, rows, columns);
  cudaDeviceSynchronize();
  unsigned h = 0;
  for (size_t i = n; i < 3 * n + 2 * rows; ++i)
    h = h * 31 + data[i];
  printf("%u\n", h);
}
