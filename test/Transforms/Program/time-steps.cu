// Loops that launch a stencil's step again and again: several steps become one launch, whatever the step looks like.
// What is in all buffers afterwards is the same to the last bit; the program prints a hash of them.
// RUN: optiml-opt --emit --launch-loops %s > %t.cu 2> %t.notes
// RUN: FileCheck %s --check-prefix=NOTES --implicit-check-not=note: < %t.notes
// RUN: FileCheck %s < %t.cu
// RUN: optiml-run %s -- 83 38 9 > %t.expected
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu -- 83 38 9 > %t.got 2> %t.trace
// RUN: diff %t.expected %t.got
// RUN: FileCheck %s --check-prefix=RAN < %t.trace
// RUN: optiml-run %s -- 5 130 8 > %t.expected
// RUN: optiml-run --check=verify %t.cu -- 5 130 8 > %t.got
// RUN: diff %t.expected %t.got
// Other tiles, and all of them through nvcc.
// RUN: optiml-opt --emit --launch-loops --launch-loop-tile=1 %s > %t.1.cu 2> %t.notes
// RUN: optiml-run --check=verify %t.1.cu -- 5 130 8 > %t.got
// RUN: diff %t.expected %t.got
// RUN: %nvcc -arch=sm_90 -c %t.1.cu -o %t.o
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

// One dimension, unsigned indices, coefficients that every step reads. The ends are never written.
__global__ void heat(double *__restrict__ out, const double *__restrict__ in, const double *__restrict__ k, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0 || i >= n - 1)
    return;
  double c = in[i];
  out[i] = c + k[i] * (in[i - 1] - 2 * c + in[i + 1]);
}

struct Domain {
  int width, height, pitch;
};
__constant__ float weights[25] = {.1f, .05f, .02f, .05f, .02f, .01f, .1f, .04f, .03f, .05f, .06f, .02f, .1f,
                                  .03f, .01f, .02f, .05f, .02f, .04f, .02f, .01f, .03f, .02f, .05f, .04f};

// A loop over the neighbours; cells at the edges are copied, masked ones too.
template <int R, typename T> __global__ void smooth(const T *src, T *dst, const unsigned char *mask, Domain d) {
  const int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x >= R && x < d.width - R && y >= R && y < d.height - R) {
    T sum = 0;
    for (int dy = -R; dy <= R; dy++)
      for (int dx = -R; dx <= R; dx++)
        sum += weights[(dy + R) * (2 * R + 1) + dx + R] * src[(y + dy) * d.pitch + x + dx];
    dst[y * d.pitch + x] = mask[y * d.pitch + x] ? src[y * d.pitch + x] : sum;
  } else if (x < d.width && y < d.height)
    dst[y * d.pitch + x] = src[y * d.pitch + x];
}

// Two quantities in a frame that nobody writes.
#define AT(x, y) (((y) + 1) * (nx + 2) + (x) + 1)
__global__ void react(const float *u, const float *v, float *un, float *vn, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny)
    return;
  float a = u[AT(x, y)], b = v[AT(x, y)], r = a * b * b;
  un[AT(x, y)] =
      a + 0.1f * (u[AT(x - 1, y)] + u[AT(x + 1, y)] + u[AT(x, y - 1)] + u[AT(x, y + 1)] - 4 * a) - r + 0.04f * (1 - a);
  vn[AT(x, y)] =
      b + 0.1f * (v[AT(x - 1, y)] + v[AT(x + 1, y)] + v[AT(x, y - 1)] + v[AT(x, y + 1)] - 4 * b) + r - 0.1f * b;
}

// Both ends of both directions meet.
__global__ void life(const unsigned char *now, unsigned char *next, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int l = x == 0 ? w - 1 : x - 1, r = (x + 1) % w, u = (y + h - 1) % h, d = y + 1 < h ? y + 1 : 0;
  int n = now[u * w + l] + now[u * w + x] + now[u * w + r] + now[y * w + l] + now[y * w + r] + now[d * w + l] +
          now[d * w + x] + now[d * w + r];
  next[y * w + x] = n == 3 || (n == 2 && now[y * w + x]);
}

// One index for both directions; neighbours beyond the edge are those at the edge.
__global__ void diffuse(const float *a, float *b, int w, int h, float k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= w * h)
    return;
  int x = i % w, y = i / w;
  int left = max(x - 1, 0), right = min(x + 1, w - 1), up = y > 0 ? y - 1 : 0, down = y < h - 1 ? y + 1 : h - 1;
  b[i] = a[i] + k * (a[y * w + left] + a[y * w + right] + a[up * w + x] + a[down * w + x] - 4 * a[i]);
}

// Three dimensions; nothing lies beyond the edges.
__global__ void box(const int *a, int *b, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x < nx && y < ny && z < nz) {
    int i = (z * ny + y) * nx + x;
    int sum = a[i];
    sum += (x > 0 ? a[i - 1] : 1) + (x < nx - 1 ? 3 * a[i + 1] : 0) + (y > 0 ? a[i - nx] : 2) +
           (y < ny - 1 ? a[i + nx] : 0);
    sum += (z > 0 ? 5 * a[i - nx * ny] : 0) + (z + 2 < nz ? a[i + 2 * nx * ny] : 1);
    b[i] = sum;
  }
}

__global__ void plane(const int *a, int *b, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
      z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= 1 && x < nx - 1 && y >= 1 && y < ny - 1 && z >= 1 && z < nz - 1) {
    int i = (z * ny + y) * nx + x;
    b[i] = a[i - 1] + 3 * a[i + 1] + a[i - nx] + a[i + nx] + 5 * a[i - nx * ny] + a[i + nx * ny] - a[i];
  }
}

// No steps of this kind.
__global__ void pushes(const int *a, int *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n) {
    b[i] = a[i - 1];
    b[i + n] = a[i];
  }
}
__global__ void reaches(const int *a, int *b, int n, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= d && i < n)
    b[i] = a[i] + 2 * a[i - d];
}
__global__ void gathers(const int *a, int *b, const int *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    b[i] = a[from[i]];
}
__global__ void relaxes(const int *a, int *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    b[i] += a[i - 1];
}
__global__ void chooses(const int *a, int *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1 && a[i] > 0)
    b[i] = a[i - 1] + a[i + 1];
}
// The left neighbour of a row's first cell is the last one of the row above.
__global__ void runsOn(const int *a, int *b, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y >= 1 && y < h)
    b[y * w + x] = a[y * w + x - 1];
}
__global__ void shares(const int *a, int *b, int n) {
  __shared__ int tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = a[i];
  __syncthreads();
  if (i < n)
    b[i] = tile[63 - threadIdx.x];
}
// Understood, but launched in other ways below.
__global__ void step(const int *a, int *b, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    b[i] = a[i - 1] + k * a[i + 1];
}

template <typename T> static T *make(size_t n, unsigned seed, unsigned values) {
  std::vector<T> host(n);
  for (T &x : host)
    x = T(((seed = seed * 1664525u + 1013904223u) >> 12) % values) / T(sizeof(T) == 1 ? 1 : 4);
  T *p = nullptr;
  cudaMalloc(&p, n * sizeof(T));
  cudaMemcpy(p, host.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
template <typename T> static void show(const char *name, const T *p, size_t n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
  unsigned long long hash = 1;
  for (size_t i = 0; i < n * sizeof(T); ++i)
    hash = hash * 1099511628211ull + ((const unsigned char *)host.data())[i];
  std::printf("%s %016llx\n", name, hash);
}

static void understood(int w, int h, int steps) {
  const size_t n = size_t(w) * h;
  double *d0 = make<double>(n, 1, 100), *d1 = make<double>(n, 2, 100), *k = make<double>(n, 3, 2);
  for (int t = 0; t < steps; t += 2) {
    heat<<<unsigned(n + 95) / 96, 96>>>(d1, d0, k, n);
    heat<<<unsigned(n + 95) / 96, 96>>>(d0, d1, k, n);
  }
  show("heat", d0, n), show("heat", d1, n);

  Domain domain{w, h, w + 3};
  const size_t m = size_t(w + 3) * h;
  float *f0 = make<float>(m, 4, 100), *f1 = make<float>(m, 5, 100);
  unsigned char *mask = make<unsigned char>(m, 6, 2);
  dim3 block(16, 8), grid((w + 15) / 16, (h + 7) / 8);
  float *src = f0, *dst = f1;
  for (int t = 0; t < steps; ++t) {
    smooth<2, float><<<grid, block>>>(src, dst, mask, domain);
    float *swap = src;
    src = dst;
    dst = swap;
  }
  show("smooth", f0, m), show("smooth", f1, m);

  const size_t framed = size_t(w + 2) * (h + 2);
  float *u[2] = {make<float>(framed, 7, 5), make<float>(framed, 8, 5)},
        *v[2] = {make<float>(framed, 9, 3), make<float>(framed, 10, 3)};
  for (int t = 0; t < steps; ++t)
    react<<<grid, block>>>(u[t % 2], v[t % 2], u[(t + 1) % 2], v[(t + 1) % 2], w, h);
  show("react", u[0], framed), show("react", u[1], framed), show("react", v[0], framed), show("react", v[1], framed);

  unsigned char *c0 = make<unsigned char>(n, 11, 2), *c1 = make<unsigned char>(n, 12, 2);
  int left = steps;
  while (left-- > 0) {
    life<<<grid, block>>>(c0, c1, w, h);
    std::swap(c0, c1);
  }
  show("life", c0, n), show("life", c1, n);

  // Nobody looks at the other buffer.
  float *a = nullptr, *b = nullptr;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, f0, n * sizeof(float), cudaMemcpyDeviceToDevice);
  for (int t = 0; t < steps; ++t) {
    diffuse<<<unsigned(n + 63) / 64, 64>>>(a, b, w, h, 0.2f);
    std::swap(a, b);
  }
  cudaMemcpy(f0, a, n * sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(a);
  cudaFree(b);
  show("diffuse", f0, n);

  const int nz = 7;
  int *i0 = make<int>(n * nz, 13, 100), *i1 = make<int>(n * nz, 14, 100);
  dim3 planes((w + 15) / 16, (h + 7) / 8, nz);
  for (int t = 0; t < steps; ++t) {
    box<<<planes, block>>>(i0, i1, w, h, nz);
    std::swap(i0, i1);
  }
  show("box", i0, n * nz), show("box", i1, n * nz);
  for (int t = 0; t < steps; ++t) {
    plane<<<planes, block>>>(i0, i1, w, h, nz);
    std::swap(i0, i1);
  }
  show("plane", i0, n * nz), show("plane", i1, n * nz);
}

static void refused(int n, int steps) {
  int *a = make<int>(n, 1, 100), *b = make<int>(n, 2, 100), *from = make<int>(n, 3, 4);
  const unsigned blocks = (n + 63) / 64;
  std::vector<int> host(n);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    pushes<<<blocks, 64>>>(a, b, n / 2);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    reaches<<<blocks, 64>>>(a, b, n, 2);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    gathers<<<blocks, 64>>>(a, b, from, n);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    relaxes<<<blocks, 64>>>(a, b, n);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    chooses<<<blocks, 64>>>(a, b, n);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    runsOn<<<dim3(2, 8), dim3(8, 1)>>>(a, b, 10, 8);
  for (int t = 0; t < steps; ++t, std::swap(a, b))
    shares<<<n / 64, 64>>>(a, b, n);
  for (int t = 0; t < steps; ++t, std::swap(a, b)) { // looks at each step
    step<<<blocks, 64>>>(a, b, n, 1);
    cudaMemcpy(host.data(), b, n * sizeof(int), cudaMemcpyDeviceToHost);
  }
  // What a launch is told decides.
  for (int t = 0; t < steps; ++t) // all read the same
    step<<<blocks, 64>>>(a, b, n, 1);
  for (int t = 0; t < steps; ++t, std::swap(a, b)) // another step each time
    step<<<blocks, 64>>>(a, b, n, t);
  for (int t = 0; t < steps; ++t, std::swap(a, b)) // fewer and fewer threads
    step<<<t < 4 ? blocks : blocks - 1, 64>>>(a, b, n, 1);
  for (int t = 0; t < steps; ++t) // three buffers by turns
    step<<<blocks, 64>>>(t % 3 == 0 ? a : t % 3 == 1 ? b : from, t % 3 == 0 ? b : t % 3 == 1 ? from : a, n, 1);
  show("refused", a, n), show("refused", b, n);
}

int main(int argc, char **argv) {
  int w = atoi(argv[1]), h = atoi(argv[2]), steps = atoi(argv[3]);
  understood(w, h, steps);
  refused(640, steps);
}
// CHECK: __global__ void __launch_bounds__(256) heat_optiml{{.*}}_steps(int steps, const double *__restrict__ from, const double *__restrict__ first, const double *__restrict__ second, double *to, int cellsX, const double *__restrict__ k, size_t n) {
// CHECK: const int cellX = int(blockIdx.x * (width - 2 * most) - most) + column;
// CHECK: k_held[cell] = k[
// CHECK: } else if ({{.*}}) { // keeps what it is
// CHECK: // OptiML: heat is a step of a stencil in time.
// CHECK: static bool fits(
// CHECK: (long long)n - 1 >= 0) // an unsigned difference is one of integers
// CHECK: launch.in == last.out && launch.out == last.in;
//
// CHECK: __global__ void __launch_bounds__(512) smooth_2_float{{.*}}_steps(int steps, const float *__restrict__ from, const float *__restrict__ first, const float *__restrict__ second, float *to, int cellsX, int cellsY, const unsigned char *__restrict__ mask, Domain d) {
// CHECK: __shared__ float tile[2][height][width];
// CHECK: if (cellX >= 0 && cellX < cellsX && cellY >= 0 && cellY < cellsY && d.width >= cellX + 1 && d.height >= cellY + 1) {
// CHECK: for (int step = 1; step <= most; ++step) {
// CHECK-NEXT: __syncthreads();
// CHECK: sum += weights[{{.*}}] * src_now[row + dy][column + dx];
//
// CHECK: {{.*}}react_optiml{{.*}}_steps(int steps, const float *__restrict__ from0, {{.*}}float *to1, int cellsX, int cellsY, int nx, int ny) {
// CHECK: to0[{{.*}}] = un_value;
// CHECK-NEXT: to1[{{.*}}] = vn_value;
//
// CHECK: {{.*}}life_optiml{{.*}}_steps(
// CHECK: const int placedX = int(blockIdx.x * (width - 2 * most) - most) + column;
// CHECK-NEXT: const int cellX = (placedX % (w) + (w)) % (w);
// CHECK: placedX == cellX
//
// CHECK: {{.*}}diffuse_optiml{{.*}}_steps(
// CHECK: a_now[row][column + max(cellX - 1, 0) - cellX]
// CHECK: (long long)w * (long long)h <= (long long)launchGrid.x * (long long)launchBlock.x) // every cell has a thread
//
// CHECK: {{.*}}box_optiml{{.*}}_steps(
// CHECK: __shared__ int tile[most][slots][height][width];
// CHECK: const int plane = front - 3 * step;
// CHECK: z + 2 < nz ? a_now[(plane + 2) % slots][row][column] : 1
//
// NOTES: note: line {{[0-9]+}}: pushes: {{.*}}, nor of a stencil: line {{[0-9]+}}: it writes other cells than its own (the loop's launches stay as they are)
// NOTES: note: line {{[0-9]+}}: reaches: {{.*}}: line {{[0-9]+}}: 'a' is read not at a constant distance from the cell that is written
// NOTES: note: line {{[0-9]+}}: gathers: {{.*}}: line {{[0-9]+}}: 'a' is read not at a constant distance from the cell that is written
// NOTES: note: line {{[0-9]+}}: relaxes: {{.*}}: line {{[0-9]+}}: it reads what it writes
// NOTES: note: line {{[0-9]+}}: chooses: {{.*}}: which cells it writes depends on more than their indices
// NOTES: note: line {{[0-9]+}}: runsOn: {{.*}}: line {{[0-9]+}}: it may access a cell of another row
// NOTES: note: line {{[0-9]+}}: shares: {{.*}}, nor of a stencil: its threads work together
// NOTES: note: line {{[0-9]+}}: a call of cudaMemcpy
//
// RAN-DAG: OptiML: heat: 1 optimized, 1 original launches
// RAN-DAG: OptiML: smooth<2, float>: 1 optimized, 1 original launches
// RAN-DAG: OptiML: react: 1 optimized, 1 original launches
// RAN-DAG: OptiML: life: 1 optimized, 1 original launches
// RAN-DAG: OptiML: diffuse: 1 optimized, 0 original launches
// RAN-DAG: OptiML: box: 1 optimized, 1 original launches
// RAN-DAG: OptiML: plane: 1 optimized, 1 original launches
// RAN-DAG: OptiML: step: 0 optimized, 36 original launches
