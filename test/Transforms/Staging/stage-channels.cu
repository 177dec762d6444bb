// A convolution over channels: `continue` skips the borders, one axis of the grid holds images and filters, all sizes
// are in a structure, and half of the window is a quotient.
// RUN: %plan --passes='specialize-scalar[conv:s.window]{value=3};block-shape[conv]{x=16,y=8};coarsen[conv]{x=1,y=1,z=2,style=strided};stage-shared[conv/c:image+filter]{tile=2}' %s | %check=SHARED
// RUN: %opt --passes='specialize-scalar[conv:s.window]{value=3};specialize-scalar[conv:s.channels]{value=6};block-shape[conv]{x=16,y=8};stage-window[conv:image]' %s | %check=WINDOW
// RUN: optiml-opt --reread --emit --passes='specialize-scalar[conv:s.window]{value=3};block-shape[conv]{x=16,y=8};coarsen[conv]{x=1,y=1,z=2,style=strided};stage-shared[conv/c:image+filter]{tile=2}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 37 21 4 | %check=SAME
// RUN: optiml-opt --reread --emit --passes='specialize-scalar[conv:s.window]{value=3};specialize-scalar[conv:s.channels]{value=6};block-shape[conv]{x=16,y=8};stage-window[conv:image]' %s > %t.cu
// RUN: %verify=%t.cu %s -- 37 21 4 | %check=SAME
// Zeros around the image stand for the tests, where all weights of a strip are finite.
// RUN: %opt --passes='specialize-scalar[conv:s.window]{value=3};block-shape[conv]{x=16,y=8};coarsen[conv]{x=1,y=2,z=2,style=strided};stage-shared[conv/c:image+filter]{tile=2,zeros=1};qualify-pointers[conv]' %s | %check=ZEROS
// RUN: optiml-opt --reread --emit --passes='specialize-scalar[conv:s.window]{value=3};block-shape[conv]{x=16,y=8};coarsen[conv]{x=1,y=2,z=2,style=strided};stage-shared[conv/c:image+filter]{tile=2,zeros=1};qualify-pointers[conv]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 37 21 4 | %check=SAME
// RUN: optiml-run %s -- 37 21 4 inf > %t.1 && optiml-run %t.cu -- 37 21 4 inf > %t.2 && cmp %t.1 %t.2
// RUN: optiml-run %s -- 37 21 4 nan > %t.1 && optiml-run %t.cu -- 37 21 4 nan > %t.2 && cmp %t.1 %t.2
// RUN: optiml-opt --reread --emit --passes='specialize-scalar[conv:s.window]{value=3};block-shape[conv]{x=16,y=8};coarsen[conv]{x=1,y=2,z=2,style=strided};stage-shared[conv/c:image+filter]{stages=2,tile=2,zeros=1}' %s -- -arch=sm_90 > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 37 21 4 | %check=SAME
// RUN: optiml-run %s -- 37 21 4 inf > %t.1 && optiml-run %t.cu -- 37 21 4 inf > %t.2 && cmp %t.1 %t.2
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

struct Sizes {
  int images, channels, filters, height, width, window;
};

// SHARED: __shared__ __align__(16) float image_tile[2][10][18];
// SHARED: blockIdx.z * 2 / s.filters < s.images
// SHARED: acc[iz] += image_tile[c][ky + threadIdx.y][kx + threadIdx.x] * filter_tile
// WINDOW: __shared__ __align__(16) float image_window[6][10][{{18|20}}];
// WINDOW: blockIdx.z / s.filters < s.images
// WINDOW: acc += image_window[c][ky + threadIdx.y][kx + threadIdx.x]
// ZEROS: const float *__restrict__ image
// ZEROS: finite = finite && fabsf(filter_tile
// ZEROS: const int all_finite = __syncthreads_and(finite);
// ZEROS: if (all_finite) {
// ZEROS-NEXT: for (int ky = 0; ky < 3; ++ky) {
// ZEROS-NOT: if (
// ZEROS: acc[iz][iy] += image_tile
// ZEROS: } else {
// ZEROS: if (xx{{.*}} >= 0 && xx
__global__ void conv(const float *image, const float *filter, float *out, Sizes s) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int f = blockIdx.z % s.filters, b = blockIdx.z / s.filters;
  if (x >= s.width || y >= s.height || b >= s.images)
    return;
  int half = s.window / 2;
  float acc = 0.0f;
  for (int c = 0; c < s.channels; ++c)
    for (int ky = 0; ky < s.window; ++ky) {
      int yy = y + ky - half;
      if (yy < 0 || yy >= s.height)
        continue;
      for (int kx = 0; kx < s.window; ++kx) {
        int xx = x + kx - half;
        if (xx < 0 || xx >= s.width)
          continue;
        acc += image[((b * s.channels + c) * s.height + yy) * s.width + xx] *
               filter[((f * s.channels + c) * s.window + ky) * s.window + kx];
      }
    }
  out[((b * s.filters + f) * s.height + y) * s.width + x] = acc;
}

int main(int argc, char **argv) {
  Sizes s = {2, 6, argc > 3 ? atoi(argv[3]) : 4, argc > 2 ? atoi(argv[2]) : 9, argc > 1 ? atoi(argv[1]) : 33, 3};
  const int in = s.images * s.channels * s.height * s.width, weights = s.filters * s.channels * 9,
            outs = s.images * s.filters * s.height * s.width;
  float *image, *filter, *out;
  cudaMallocManaged(&image, in * sizeof(float));
  cudaMallocManaged(&filter, weights * sizeof(float));
  cudaMallocManaged(&out, outs * sizeof(float));
  for (int i = 0; i < in; ++i)
    image[i] = i * 17 % 23 - 11;
  for (int i = 0; i < weights; ++i)
    filter[i] = i * 5 % 7 * 0.5f - 1;
  if (argc > 4)
    filter[11] = float(atof(argv[4])); // of the second channel, left of the middle
  dim3 grid((s.width + 15) / 16, (s.height + 7) / 8, s.images * s.filters);
  conv<<<grid, dim3(16, 8)>>>(image, filter, out, s);
  cudaDeviceSynchronize();
  double sum = 0;
  unsigned odd = 0;
  for (int i = 0; i < outs; ++i)
    if (out[i] - out[i] == 0)
      sum += out[i] * (i % 5);
    else
      odd += i;
  printf("%.2f %u\n", sum, odd);
}
