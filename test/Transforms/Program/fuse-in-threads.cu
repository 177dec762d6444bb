// Loops of launches in which each element goes its own way become loops of a thread, with what it changes in registers:
// particles, random walks, fractals, an iteration in two buffers, numbers that double.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
#include <cstdio>
#include <utility>
#include <vector>

template <typename T> static T *filled(size_t n, T (*make)(size_t)) {
  std::vector<T> host(n);
  for (size_t i = 0; i < n; ++i)
    host[i] = make(i);
  T *memory = nullptr;
  cudaMalloc(&memory, n * sizeof(T));
  cudaMemcpy(memory, host.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  return memory;
}
template <typename T> static void show(const char *what, const T *device, size_t n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
  unsigned long long sum = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < sizeof(T) / 4; ++k)
      sum = sum * 31 + ((const unsigned *)&host[i])[k];
  printf("%s %llx\n", what, sum);
}

struct Particle {
  int x, y, speedX, speedY;
};
static Particle particle(size_t i) { return {int(i * 7 % 1000), int(i * 13 % 900), int(i % 9) - 4, int(i % 7) - 3}; }
// Bounces from walls; a kernel for each of two things that happen in a step.
__global__ void move(Particle *all, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Particle p = all[i];
  p.x += p.speedX;
  p.y += p.speedY;
  if (p.x < 0 || p.x > 1000)
    p.speedX = -p.speedX;
  all[i] = p;
}
__global__ void pull(Particle *all, const int *force, int step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    all[i].speedY += force[step % 4];
}
// CHECK: launches of move and pull that follow one another, a thread for each row
// PATHS-DAG: OptiML: move_pull_fused{{[0-9]*}}: 1 optimized, 0 original launches

static unsigned start(size_t i) { return unsigned(i) * 2654435761u + 12345u; }
static int zero(size_t) { return 0; }
__global__ void walk(unsigned *state, int *place, long long n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
    unsigned s = state[i] * 1664525u + 1013904223u;
    state[i] = s;
    if (s >> 31)
      place[i] += 1;
    else
      place[i] -= 1;
  }
}

// Each pixel until it leaves the circle.
__global__ void iterate(int2 *z, int *count, int width, int height) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height)
    return;
  int at = py * width + px;
  int2 now = z[at];
  if (now.x > -2048 && now.x < 2048 && now.y > -2048 && now.y < 2048) {
    int x = (now.x * now.x - now.y * now.y) / 1024 + px * 8 - 512;
    now.y = 2 * now.x * now.y / 1024 + py * 8 - 256;
    now.x = x;
    z[at] = now;
    ++count[at];
  }
}
static int2 origin(size_t) { return {0, 0}; }

__global__ void towards(const int *from, int *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = (from[i] + i * 1000 / (from[i] > 0 ? from[i] : 1)) / 2;
}
static int some(size_t i) { return int(i % 50) + 1; }
// CHECK: launches of towards that follow one another, a thread for each row
// CHECK: int from_value = from[row];
// PATHS-DAG: OptiML: towards_fused{{[0-9]*}}: 1 optimized, 0 original launches

__global__ void addBit(unsigned *x, unsigned bit, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (i & bit))
    x[i] = x[i] * 3 + bit;
}
static unsigned one(size_t) { return 1; }
// CHECK: launches of addBit that follow one another, a thread for each row
// CHECK: unsigned int bit = bit_first << turn;
// PATHS-DAG: OptiML: addBit_fused{{[0-9]*}}: 1 optimized, 0 original launches

int main() {
  const int n = 300;
  Particle *all = filled(n, particle);
  int *force = filled(4, some);
  for (int step = 0; step < 9; step++) {
    move<<<(n + 63) / 64, 64>>>(all, n);
    pull<<<(n + 31) / 32, 32>>>(all, force, step, n);
  }
  show("moved", all, n);

  unsigned *state = filled(n, start);
  int *place = filled(n, zero);
  for (int s = 0; s < 7; ++s)
    walk<<<2, 32>>>(state, place, n);
  show("walked", place, n);

  int2 *z = filled(40 * 20, origin);
  int *count = filled(40 * 20, zero);
  for (int k = 0; k < 12; k++)
    iterate<<<dim3(3, 3), dim3(16, 8)>>>(z, count, 40, 20);
  show("iterated", count, 40 * 20);

  int *from = filled(n, some), *to = filled(n, some);
  int *a = from, *b = to;
  for (int k = 0; k < 5; ++k) {
    towards<<<5, 64>>>(a, b, n);
    std::swap(a, b);
  }
  show("approached", a, n);

  unsigned *x = filled(n, one);
  for (unsigned bit = 1; bit < 256; bit <<= 1)
    addBit<<<3, 128>>>(x, bit, n);
  show("bits", x, n);
  return 0;
}
