/*
 * conv2d: a (2*RADIUS+1)^2 convolution of a grey image; the filter lies in constant memory and the image is continued
 * beyond its edges by its edge pixels.
 *
 *   conv2d [width height]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RADIUS 2
#define TAPS (2 * RADIUS + 1)
#define CLAMP(v, lo, hi) ((v) < (lo) ? (lo) : (v) > (hi) ? (hi) : (v))
#define BLOCK_W 16
#define BLOCK_H 16

#define CUDA_OK(call)                                                                                                  \
  if ((call) != cudaSuccess) {                                                                                         \
    fprintf(stderr, "conv2d: line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError()));                        \
    return 2;                                                                                                          \
  }

__constant__ float filter[TAPS * TAPS];

__global__ void conv2d(const float *image, float *output, int width, int height) {
  int x = blockIdx.x * BLOCK_W + threadIdx.x;
  int y = blockIdx.y * BLOCK_H + threadIdx.y;
  if (x >= width || y >= height)
    return;

  float sum = 0.0f;
  for (int dy = -RADIUS; dy <= RADIUS; dy++) {
    for (int dx = -RADIUS; dx <= RADIUS; dx++) {
      int sx = CLAMP(x + dx, 0, width - 1);
      int sy = CLAMP(y + dy, 0, height - 1);
      sum += filter[(dy + RADIUS) * TAPS + (dx + RADIUS)] * image[sy * width + sx];
    }
  }
  output[y * width + x] = sum;
}

int main(int argc, char *argv[]) {
  int width = argc > 1 ? atoi(argv[1]) : 400;
  int height = argc > 2 ? atoi(argv[2]) : 300;
  if (width <= 0 || height <= 0) {
    fprintf(stderr, "usage: conv2d [width height]\n");
    return 2;
  }

  size_t bytes = (size_t)width * height * sizeof(float);
  float *image = (float *)malloc(bytes);
  float *output = (float *)malloc(bytes);
  float taps[TAPS * TAPS];
  for (int i = 0; i < width * height; i++)
    image[i] = (float)((i * 37u + (i / 11u) * 5u) % 256u);
  for (int i = 0; i < TAPS * TAPS; i++) /* not symmetric, so that a flipped filter shows */
    taps[i] = (float)(i + 1) / (TAPS * TAPS * (TAPS * TAPS + 1) / 2.0f);

  float *dImage, *dOutput;
  CUDA_OK(cudaMalloc((void **)&dImage, bytes));
  CUDA_OK(cudaMalloc((void **)&dOutput, bytes));
  CUDA_OK(cudaMemcpy(dImage, image, bytes, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpyToSymbol(filter, taps, sizeof(taps)));

  dim3 block(BLOCK_W, BLOCK_H);
  dim3 grid((width + BLOCK_W - 1) / BLOCK_W, (height + BLOCK_H - 1) / BLOCK_H);
  conv2d<<<grid, block>>>(dImage, dOutput, width, height);
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaMemcpy(output, dOutput, bytes, cudaMemcpyDeviceToHost));

  int wrong = 0;
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      double want = 0;
      for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++)
          want += (double)taps[(dy + RADIUS) * TAPS + dx + RADIUS] *
                  image[CLAMP(y + dy, 0, height - 1) * width + CLAMP(x + dx, 0, width - 1)];
      if (!(fabs(output[y * width + x] - want) <= 1e-5 * want + 1e-5)) { /* a NaN fails */
        if (wrong == 0)
          fprintf(stderr, "output[%d][%d] = %g, want %g\n", y, x, output[y * width + x], want);
        wrong++;
      }
    }
  }

  cudaFree(dImage);
  cudaFree(dOutput);
  free(image);
  free(output);
  printf("%s conv2d width=%d height=%d\n", wrong ? "FAIL" : "PASS", width, height);
  return wrong != 0;
}
