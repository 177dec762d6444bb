// Loops of launches whose steps stay within a row become the work of a block: stages of a transform, bitonic sorts,
// shortest paths in small graphs, eliminations, alignments by diagonals, relaxations, scans.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

static unsigned seed = 1;
static int next(int most) {
  seed = seed * 1664525u + 1013904223u;
  return int((seed >> 9) % unsigned(most));
}
template <typename T> static T *onDevice(const std::vector<T> &host) {
  T *memory = nullptr;
  cudaMalloc(&memory, host.size() * sizeof(T));
  cudaMemcpy(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return memory;
}
template <typename T> static void show(const char *what, const T *device, size_t n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
  unsigned long long sum = 0;
  for (size_t i = 0; i < n; ++i)
    sum = sum * 31 + (unsigned long long)(long long)(host[i] * 16);
  printf("%s %llx\n", what, sum);
}

// A Walsh-Hadamard transform in stages; rows along y of the grid.
constexpr int LENGTH = 64;
__global__ void stage(float *x, int half) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= LENGTH / 2)
    return;
  float *own = x + blockIdx.y * LENGTH;
  int at = (t / half) * half * 2 + t % half;
  float a = own[at], b = own[at + half];
  own[at] = a + b;
  own[at + half] = a - b;
}
void transform() {
  constexpr int rows = 5;
  std::vector<float> host(rows * LENGTH);
  for (float &x : host)
    x = float(next(100));
  float *x = onDevice(host);
  for (int half = 1; half < LENGTH; half *= 2)
    stage<<<dim3(1, rows), 32>>>(x, half);
  show("transform", x, host.size());
  cudaFree(x);
}
// CHECK: // OptiML: launches of stage that follow one another, a block for each row
// CHECK: __shared__ float x_row[64];
// CHECK: for (int turn = 0; turn < turns; ++turn) {
// CHECK-NEXT: int half = half_first << turn;
// CHECK-NEXT: for (int [[AT:[a-z0-9]+]] = threadIdx.x; [[AT]] < 32; [[AT]] += blockDim.x) {
// CHECK: __syncthreads();
// PATHS-DAG: OptiML: stage_fused{{[0-9]*}}: 1 optimized, 0 original launches

// Sorted rows, their threads in one line; the length of a row is an argument, and two host loops stand around.
__global__ void exchange(unsigned *keys, long long total, int length, int size, int apart) {
  long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (thread < total) {
    long long row = thread / length;
    int i = int(thread % length), other = i ^ apart;
    if (other > i) {
      unsigned *own = keys + row * length;
      bool up = (i & size) == 0;
      if ((own[i] > own[other]) == up) {
        unsigned t = own[i];
        own[i] = own[other];
        own[other] = t;
      }
    }
  }
}
void sortRows() {
  const int rows = 7, length = 32;
  std::vector<unsigned> host(rows * length);
  for (unsigned &x : host)
    x = unsigned(next(1000));
  unsigned *keys = onDevice(host);
  const long long total = (long long)rows * length;
  for (int size = 2; size <= length; size <<= 1)
    for (int apart = size >> 1; apart > 0; apart >>= 1) {
      exchange<<<4, 64>>>(keys, total, length, size, apart);
      if (cudaGetLastError() != cudaSuccess)
        exit(1);
    }
  show("sorted", keys, host.size());
  cudaFree(keys);
}
// CHECK: launches of exchange that follow
// CHECK: int size = size_list.at[turn];
// PATHS-DAG: OptiML: exchange_fused{{[0-9]*}}: 1 optimized, 0 original launches

// All shortest paths of many small graphs, one along z, after their edges are set.
struct Graphs {
  int *length;
  int nodes;
};
__global__ void setEdges(const int *edges, Graphs graphs, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int cells = graphs.nodes * graphs.nodes;
  if (i < count * cells)
    graphs.length[i] = edges[i] > 0 ? edges[i] : 1 << 20;
}
__global__ void through(Graphs graphs, int via) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= graphs.nodes || col >= graphs.nodes)
    return;
  int *own = graphs.length + blockIdx.z * graphs.nodes * graphs.nodes;
  int detour = own[row * graphs.nodes + via] + own[via * graphs.nodes + col];
  if (detour < own[row * graphs.nodes + col])
    own[row * graphs.nodes + col] = detour;
}

// Elimination without fractions in a batch: two kernels a step.
template <int N> __global__ void scaleColumn(unsigned *a, int k) {
  int i = threadIdx.x + k + 1;
  unsigned *m = a + blockIdx.x * N * N;
  if (i < N)
    m[i * N + k] = m[i * N + k] * m[k * N + k];
}
template <int N> __global__ void eliminate(unsigned *a, int k) {
  int j = threadIdx.x + k + 1, i = threadIdx.y + k + 1;
  unsigned *m = a + blockIdx.x * N * N;
  if (i < N && j < N)
    m[i * N + j] -= m[i * N + k] * m[k * N + j];
}
void factor() {
  constexpr int n = 8, count = 6;
  std::vector<unsigned> host(n * n * count);
  for (unsigned &x : host)
    x = unsigned(next(8));
  unsigned *a = onDevice(host);
  for (int k = 0; k < n - 1; ++k) {
    scaleColumn<n><<<count, n>>>(a, k);
    eliminate<n><<<count, dim3(n, n)>>>(a, k);
  }
  cudaDeviceSynchronize();
  show("factored", a, host.size());
  cudaFree(a);
}

// Distances of words by diagonals of the table.
__global__ void diagonal(const char *first, const char *second, int *table, int words, int width, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, word = blockIdx.y;
  int j = d - i;
  if (i > width || j < 0 || j > width)
    return;
  int pitch = width + 1;
  size_t base = (size_t)word * (pitch * pitch);
  int value;
  if (i == 0 || j == 0) {
    value = i + j;
  } else {
    bool same = first[word * width + i - 1] == second[word * width + j - 1];
    value = min(min(table[base + (i - 1) * pitch + j] + 1, table[base + i * pitch + j - 1] + 1),
                table[base + (i - 1) * pitch + j - 1] + (same ? 0 : 1));
  }
  table[base + i * pitch + j] = value;
}
__global__ void lastCell(const int *table, int *distance, int words, int width) {
  int word = blockIdx.x * blockDim.x + threadIdx.x;
  if (word < words)
    distance[word] = table[(size_t)word * ((width + 1) * (width + 1)) + width * (width + 1) + width];
}
void align() {
  const int words = 9, width = 12;
  std::vector<char> a(words * width), b(words * width);
  for (int i = 0; i < words * width; ++i) {
    a[i] = char('a' + next(3));
    b[i] = char('a' + next(3));
  }
  char *first = onDevice(a), *second = onDevice(b);
  int *table, *distance;
  cudaMalloc(&table, sizeof(int) * words * (width + 1) * (width + 1));
  cudaMalloc(&distance, sizeof(int) * words);
  for (int d = 0; d <= 2 * width; d++)
    diagonal<<<dim3((width + 32) / 32, words), 32>>>(first, second, table, words, width, d);
  lastCell<<<1, 32>>>(table, distance, words, width);
  show("aligned", distance, words);
}
// CHECK: launches of diagonal and lastCell that follow
// PATHS-DAG: OptiML: diagonal_lastCell_fused{{[0-9]*}}: 1 optimized, 0 original launches

// Relaxation of small systems in two buffers that change places; what is left is read from the last one.
__global__ void relax(const float *old, float *now, int n) {
  int i = threadIdx.x;
  if (i >= n)
    return;
  const float *u = &old[blockIdx.x * n];
  float left = i > 0 ? u[i - 1] : 0.0f, right = i + 1 < n ? u[i + 1] : 0.0f;
  now[blockIdx.x * n + i] = 0.5f * (left + right);
}
__global__ void ends(const float *u, float *out, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    out[i] = u[i * n] + u[i * n + n - 1];
}
void relaxAll(int steps) {
  const int n = 40, count = 5;
  std::vector<float> host(n * count);
  for (float &x : host)
    x = float(next(64) * 1024);
  float *a = onDevice(host), *b = onDevice(std::vector<float>(n * count)), *out = onDevice(std::vector<float>(count));
  float *from = a, *to = b;
  for (int s = 0; s < steps; ++s) {
    relax<<<count, 64>>>(from, to, n);
    std::swap(from, to);
  }
  ends<<<1, 32>>>(from, out, n, count);
  show("relaxed", out, count);
  show("one", a, n * count);
  show("other", b, n * count);
}
// CHECK: launches of relax and ends that follow
// PATHS-DAG: OptiML: relax_ends_fused{{[0-9]*}}: 2 optimized, 2 original launches

// Prefix sums by doubling.
__global__ void addBefore(const int *in, int *out, int cols, int by) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < cols)
    out[r * cols + c] = c >= by ? in[r * cols + c] + in[r * cols + c - by] : in[r * cols + c];
}
void sums() {
  const int rows = 6, cols = 50;
  std::vector<int> host(rows * cols);
  for (int &x : host)
    x = next(100);
  int *in = onDevice(host), *out;
  cudaMalloc(&out, sizeof(int) * rows * cols);
  int *src = in, *dst = out;
  for (int by = 1; by < cols; by += by) {
    addBefore<<<dim3(2, 3), dim3(32, 2)>>>(src, dst, cols, by);
    int *t = src;
    src = dst;
    dst = t;
  }
  show("summed", src, host.size());
}
// CHECK: launches of addBefore that follow
// PATHS-DAG: OptiML: addBefore_fused{{[0-9]*}}: 1 optimized, 0 original launches

int main() {
  transform();
  sortRows();
  {
    const int nodes = 9, count = 4;
    std::vector<int> host(nodes * nodes * count);
    for (int &x : host)
      x = next(20);
    int *edges = onDevice(host);
    Graphs graphs{onDevice(host), nodes};
    setEdges<<<6, 64>>>(edges, graphs, count);
    for (int via = 0; via != nodes; via++)
      through<<<dim3(1, 3, count), dim3(16, 4)>>>(graphs, via);
    show("paths", graphs.length, host.size());
  }
  factor();
  align();
  for (int steps : {0, 1, 6, 7}) // without a turn, or with one, the launches take place as they are
    relaxAll(steps);
  sums();
  return 0;
}
