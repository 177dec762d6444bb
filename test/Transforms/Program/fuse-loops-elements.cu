// Loops of launches whose elements lie along several axes in some and along one in others become loops of a thread.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s -- 53 21 > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu -- 53 21 > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: %check=PATHS < %t.paths
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: %check=NOTES < %t.notes
#include <cstdio>
#include <cstdlib>
#include <vector>

// A film: each frame by tiles, then pixel by pixel into what is kept.
__global__ void gray(const uchar4 *frame, int *value, int width, int height, int gain) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int left = max(x - 1, 0);
  value[y * width + x] = gain * (frame[y * width + x].x + 2 * frame[y * width + left].y);
}
__global__ void keep(const int *value, int *most, int *when, int t, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n && value[i] > most[i]) {
    most[i] = value[i];
    when[i] = t;
  }
}
// PATHS-DAG: gray_keep_{{fused}}: 1 optimized, 0 original
// CHECK-LABEL: gray_keep_{{fused}}(
// CHECK: int at = blockIdx.x * blockDim.x + threadIdx.x;
// CHECK: if (at < height * width) {
// CHECK-NEXT: int left = max(at % width - 1, 0);
// CHECK-NEXT: for (int turn = 0; turn < turns; ++turn) {
// CHECK: int value_value = gain * (frame[at].x + 2 * frame[at / width * width + left].y);
// CHECK-NEXT: value[at] = value_value;
// CHECK-NEXT: if (value_value > most[at]) {
// CHECK: launch.launchGrid.x == launchLoop0.launches1[0].launchGrid.x

// Planes of a measurement are a third axis of the one kernel, and a loop of the other.
__global__ void calibrated(const short *raw, int *planes, const int *scale, int w, int h) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int plane = blockIdx.z;
  if (col < w && row < h) {
    long long at = (long long)plane * w * h + row * w + col;
    planes[at] = raw[at] * scale[plane];
  }
}
__global__ void gathered(const int *planes, unsigned *sum, int count, int w, int h) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= w * h)
    return;
  unsigned s = sum[p];
  for (int k = 0; k < count; ++k)
    s = s * 3 + planes[(long long)k * w * h + p];
  sum[p] = s;
}
// PATHS-DAG: calibrated_gathered_{{fused}}: 1 optimized, 0 original
// CHECK-LABEL: calibrated_gathered_{{fused}}(
// CHECK: for (int part = 0; part < [[THREADS:threads[0-9]*]]; ++part) {
// CHECK: planes[at] = raw[at] * scale[part];
// CHECK: const auto [[THREADS]] = int((long long)launchLoop{{.*}}.launchGrid.z);

// A step that looks at neighbours of what the other one wrote stays apart.
__global__ void pushed(const int *from, int *to, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    to[y * w + x] = from[y * w + (x + 1) % w];
}
__global__ void returned(const int *to, int *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    from[i] = to[i] + 1;
}
// NOTES: the loop of launches does not become one of a block: {{.*}}; nor a loop of its threads: {{.*}}'from'

template <typename T> static T *filled(size_t n, unsigned factor) {
  std::vector<T> host(n);
  for (size_t i = 0; i < n * sizeof(T); ++i)
    ((unsigned char *)host.data())[i] = (unsigned char)(i * factor >> 3);
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
    sum = sum * 31 + host[i];
  printf("%s %llx\n", what, sum);
}

int main(int argc, char **argv) {
  const int w = argc > 1 ? atoi(argv[1]) : 40, h = argc > 2 ? atoi(argv[2]) : 30, n = w * h, turns = 5, planes = 4;
  const dim3 tile(16, 8), tiles((w + 15) / 16, (h + 7) / 8);
  const int block = 128, blocks = (n + block - 1) / block;
  int *value = filled<int>(n, 3), *most = filled<int>(n, 0), *when = filled<int>(n, 0);
  uchar4 *frames = filled<uchar4>(size_t(n) * turns, 1117);
  for (int t = 0; t < turns; ++t) {
    gray<<<tiles, tile>>>(frames + size_t(t) * n, value, w, h, t % 3 + 1);
    keep<<<blocks, block>>>(value, most, when, t, n);
  }
  show("most", most, n), show("when", when, n), show("value", value, n);

  short *raw = filled<short>(size_t(n) * turns * planes, 733);
  int *scale = filled<int>(planes, 91), *calibratedPlanes = filled<int>(size_t(n) * planes, 0);
  unsigned *sum = filled<unsigned>(n, 17);
  for (int t = 0; t < turns; ++t) {
    calibrated<<<dim3(tiles.x, tiles.y, planes), tile>>>(raw + size_t(t) * n * planes, calibratedPlanes, scale, w, h);
    gathered<<<blocks, block>>>(calibratedPlanes, sum, planes, w, h);
  }
  show("sum", sum, n), show("planes", calibratedPlanes, size_t(n) * planes);

  for (int t = 0; t < turns; ++t) {
    pushed<<<tiles, tile>>>(most, value, w, h);
    returned<<<blocks, block>>>(value, most, n);
  }
  show("pushed", most, n);
  return cudaDeviceSynchronize() != cudaSuccess;
}
