// Loops of launches in which a thread deals with cells of its own in every turn, wherever they lie: images seen at
// angles, volumes and poses, nodes of a tree, pairs in a triangle, planes of an output. Arguments come from vectors,
// arrays and members.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: FileCheck %s --check-prefix=NOTES < %t.notes
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

template <typename T> static T *filled(size_t n, int seed) {
  std::vector<T> host(n);
  for (size_t i = 0; i < n; i++)
    host[i] = T((i * 7 + seed) % 23) / T(4);
  T *memory;
  cudaMalloc(&memory, n * sizeof(T));
  cudaMemcpy(memory, host.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  return memory;
}
template <typename T> static void show(const char *what, const T *device, size_t n) {
  std::vector<T> host(n);
  cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += double(host[i]) * (i % 13 + 1);
  printf("%s %.5g\n", what, sum);
}

__global__ void project(float *image, const float *sino, int nx, int ny, int bins, float c, float s) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny)
    return;
  float u = (x - nx / 2) * c + (y - ny / 2) * s + bins / 2;
  int k = (int)floorf(u);
  if (k < 0 || k + 1 >= bins)
    return;
  float w = u - k;
  image[y * nx + x] += (1 - w) * sino[k] + w * sino[k + 1];
}
// CHECK: launches of project that follow one another, by the same threads
// CHECK: if (x < nx && y < ny) {
// CHECK-NEXT: for (int turn = 0; turn < turns; ++turn) {
// CHECK-NEXT: const float *sino = sino_first + (long long)turn * sino_step;
// CHECK-NEXT: float c = c_list.at[turn];
// PATHS-DAG: OptiML: project_fused{{[0-9]*}}: 1 optimized, 0 original launches

struct Pose {
  float r[9];
  float t[3];
};
__global__ void integrate(float2 *volume, const float *depth, Pose pose, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n)
    return;
  for (int z = 0; z < n; z++) {
    float px = pose.r[0] * x + pose.r[1] * y + pose.r[2] * z + pose.t[0];
    float d = depth[(int)px & 63] - z;
    float2 v = volume[(z * n + y) * n + x];
    v.x = (v.x * v.y + d) / (v.y + 1);
    v.y += 1;
    volume[(z * n + y) * n + x] = v;
  }
}
// The cells change places with the turns.
// CHECK: launches of integrate that follow one another, by the same threads
// CHECK: for (int z = 0; z < n; z++) {
// CHECK-NEXT: for (int turn = 0; turn < turns; ++turn) {
// CHECK: Pose pose = pose_list.at[turn];
// PATHS-DAG: OptiML: integrate_fused{{[0-9]*}}: 1 optimized, 0 original launches

// A node is made of two earlier ones, which the host knows.
template <typename T> __global__ void prune(T *partials, const T *P, int left, int right, int parent) {
  int site = blockIdx.x * blockDim.x + threadIdx.x;
  if (site >= 300)
    return;
  const size_t nodeSize = 300 * 4;
  const T *l = partials + left * nodeSize + (size_t)site * 4;
  const T *r = partials + right * nodeSize + (size_t)site * 4;
  T *out = partials + parent * nodeSize + (size_t)site * 4;
  for (int i = 0; i < 4; i++) {
    T a = 0, b = 0;
    for (int j = 0; j < 4; j++) {
      a += P[(left * 4 + i) * 4 + j] * l[j];
      b += P[(right * 4 + i) * 4 + j] * r[j];
    }
    out[i] = a * b;
  }
}
struct Tree {
  std::vector<int> left, right;
};
class Likelihood {
  Tree tree_;
  double *partials_, *P_;

public:
  Likelihood(Tree t) : tree_(t), partials_(filled<double>(300 * 4 * 9, 3)), P_(filled<double>(16 * 9, 5)) {}
  void evaluate() {
    for (int n = 5; n < 9; ++n)
      prune<double><<<3, 128>>>(partials_, P_, tree_.left[n], tree_.right[n], n);
    show("partials", partials_, 300 * 4 * 9);
  }
};
// CHECK: launches of prune<double> that follow one another, by the same threads
// CHECK: int left = left_list.at[turn];
// PATHS-DAG: OptiML: prune_double_fused{{[0-9]*}}: 1 optimized, 0 original launches

struct Stats {
  int *often, *changes;
  unsigned char *before;
  int *perFrame;
};
__global__ void pairs(const float *frames, int f, int n, Stats stats) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n || j < i + 2)
    return;
  bool near = fabsf(frames[f * n + i] - frames[f * n + j]) < 3.f;
  size_t pair = (size_t)i * n + j;
  if (f > 0 && near != (bool)stats.before[pair])
    stats.changes[pair]++;
  stats.before[pair] = near;
  if (near) {
    stats.often[pair]++;
    atomicAdd(&stats.perFrame[f], 1);
  }
}
// CHECK: launches of pairs that follow one another, by the same threads
// PATHS-DAG: OptiML: pairs_fused{{[0-9]*}}: 1 optimized, 0 original launches

// A plane for each turn: they run side by side.
__global__ void plane(float *out, const float *in, float k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * k;
}
// CHECK: launches of plane that follow one another, by the same threads
// CHECK: int turn = blockIdx.z;
// CHECK: out_step - (long long)n >= 0)) // what lies apart does not overlap
// PATHS-DAG: OptiML: plane_fused{{[0-9]*}}: 1 optimized, 0 original launches

// Planes of two axes, of which the neighbours are read.
__global__ void blur(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float s = 0;
  for (int dx = -1; dx <= 1; dx++)
    s += in[y * w + min(max(x + dx, 0), w - 1)];
  out[y * w + x] = s / 3;
}
// CHECK: launches of blur that follow one another, by the same threads
// CHECK: int turn = blockIdx.z;
// CHECK: out_step - (long long)h * (long long)w >= 0)) // what lies apart does not overlap
// PATHS-DAG: OptiML: blur_fused{{[0-9]*}}: 1 optimized, 0 original launches

// Blocks that work together.
__global__ void sums(const float *image, float *out, int n) {
  __shared__ float part[64];
  int t = threadIdx.x;
  float s = 0;
  for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64)
    s += image[i];
  part[t] = s;
  __syncthreads();
  for (int k = 32; k > 0; k >>= 1) {
    if (t < k)
      part[t] += part[t + k];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] += part[0];
}
// CHECK: launches of sums that follow one another, by the same threads
// CHECK: out[blockIdx.x] += part[0];
// CHECK-NEXT: }
// CHECK-NEXT: __syncthreads();
// PATHS-DAG: OptiML: sums_fused{{[0-9]*}}: 1 optimized, 0 original launches

// More turns than a list holds are two launches.
__global__ void shade(float *image, int width, int height, float by, int turn) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height && (x + turn) % 3)
    image[y * width + x] = image[y * width + x] * 0.75f + by;
}
__global__ void lighten(float *image, int width, int height, float by) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    image[y * width + x] += by;
}
// CHECK: launches of shade and lighten that follow one another, by the same threads
// PATHS-DAG: OptiML: shade_lighten_fused{{[0-9]*}}: 2 optimized, 0 original launches

// Not: a cell that another thread changes in another turn.
__global__ void smooth(float *x, float k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 1 && i < n && i % 2)
    x[i] = x[i] + k * x[i - 1];
}
// NOTES-DAG: one thread may need what another did to 'x'

// Not: the host looks at what a turn has written, and waits for it.
__global__ void grow(int *x, int by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += by;
}
// NOTES-DAG: memory behind a pointer, which a kernel may write (its loop stays as it is)

int main() {
  const int nx = 40, ny = 30, bins = 64, angles = 12;
  std::vector<float> angle(angles);
  for (int a = 0; a < angles; a++)
    angle[a] = a * 0.26f;
  float *image = filled<float>(nx * ny, 1), *sino = filled<float>(bins * angles, 2);
  dim3 block(16, 8), grid((nx + 15) / 16, (ny + 7) / 8);
  for (int a = 0; a < angles; a++)
    project<<<grid, block>>>(image, sino + a * bins, nx, ny, bins, cosf(angle[a]), sinf(angle[a]));
  show("image", image, nx * ny);

  const int n = 20, frames = 6;
  std::vector<Pose> poses(frames);
  for (int f = 0; f < frames; f++)
    for (int k = 0; k < 12; k++)
      (k < 9 ? poses[f].r[k] : poses[f].t[k - 9]) = (f + k) * 0.7f + (k < 9 ? 0 : 0.05f); // no index is on the edge
  float *volume = filled<float>(2 * n * n * n, 0), *depth = filled<float>(64 * frames, 4);
  for (size_t f = 0; f < poses.size(); ++f) {
    const auto &pose = poses[f];
    integrate<<<dim3((n + 7) / 8, (n + 7) / 8), dim3(8, 8)>>>((float2 *)volume, depth + f * 64, pose, n);
  }
  show("volume", volume, 2 * n * n * n);

  Tree tree;
  tree.left = {0, 0, 0, 0, 0, 0, 2, 5, 6};
  tree.right = {0, 0, 0, 0, 0, 1, 3, 4, 7};
  Likelihood likelihood(tree);
  likelihood.evaluate();

  Stats stats;
  const int m = 36;
  stats.often = filled<int>(m * m, 0);
  stats.changes = filled<int>(m * m, 0);
  stats.before = (unsigned char *)filled<int>(m * m, 0);
  stats.perFrame = filled<int>(frames, 0);
  float *positions = filled<float>(m * frames, 7);
  for (int f = 0; f < frames; f++)
    pairs<<<dim3(3, 9), dim3(16, 4)>>>(positions, f, m, stats);
  show("often", stats.often, m * m);
  show("changes", stats.changes, m * m);
  show("perFrame", stats.perFrame, frames);

  float *planes = filled<float>(100 * 5, 0), *in = filled<float>(100, 1);
  std::array<float, 5> scales = {1, 2, 3, 4, 5};
  int p = 0;
  for (float scale : scales) {
    float *out = planes + 100 * p++;
    plane<<<1, 128>>>(out, in, scale, 100);
  }
  show("planes", planes, 500);

  float *sharp = filled<float>(50 * 30 * 4, 5), *blurred = filled<float>(50 * 30 * 4, 0);
  for (int f = 0; f < 4; f++)
    blur<<<dim3(4, 4), dim3(16, 8)>>>(sharp + f * 50 * 30, blurred + f * 50 * 30, 50, 30);
  show("blurred", blurred, 50 * 30 * 4);

  float *images = filled<float>(7000, 3), *total = filled<float>(3, 0);
  for (int k = 0; k < 7; ++k)
    sums<<<3, 64>>>(images + k * 1000, total, 1000);
  show("total", total, 3);

  std::vector<float> by(300);
  for (size_t k = 0; k < by.size(); k++)
    by[k] = k % 7 * 0.5f;
  for (int k = 0; k < 300; ++k) {
    shade<<<dim3(3, 4), dim3(16, 8)>>>(image, nx, ny, by[k], k);
    lighten<<<dim3(3, 4), dim3(16, 8)>>>(image, nx, ny, by[299 - k]);
  }
  show("shaded", image, nx * ny);

  for (int k = 0; k < 5; k++)
    smooth<<<1, 128>>>(in, scales[k], 100);
  show("smooth", in, 100);

  int *counter;
  cudaMallocManaged(&counter, 64 * sizeof(int));
  for (int i = 0; i < 64; i++)
    counter[i] = 1;
  for (int k = 0; k < 4; k++) {
    grow<<<1, 64>>>(counter, counter[3], 64);
    cudaDeviceSynchronize();
  }
  printf("grown %d\n", counter[5]);
  return 0;
}
