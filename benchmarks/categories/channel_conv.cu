// Convolves 4 images of 64 channels, 112 x 112 pixels, with 64 filters of 3 x 3 x 64 and adds a
// bias to each output channel. Taps that fall outside the image are skipped.
#include <cstdio>
#include <vector>
#include <cmath>
#include <cuda_runtime.h>

struct ConvShape {
  int images;
  int in_channels;
  int out_channels;
  int height;
  int width;
};

__global__ void conv3x3(ConvShape s, const float* input, const float* weights, const float* bias, float* output) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z % s.out_channels;
  int n = blockIdx.z / s.out_channels;
  if (x >= s.width || y >= s.height) return;

  float sum = bias[k];
  for (int c = 0; c < s.in_channels; ++c) {
    for (int dy = -1; dy <= 1; ++dy) {
      int yy = y + dy;
      if (yy < 0 || yy >= s.height) continue;
      for (int dx = -1; dx <= 1; ++dx) {
        int xx = x + dx;
        if (xx < 0 || xx >= s.width) continue;
        float w = weights[((k * s.in_channels + c) * 3 + dy + 1) * 3 + dx + 1];
        sum += w * input[((n * s.in_channels + c) * s.height + yy) * s.width + xx];
      }
    }
  }
  output[((n * s.out_channels + k) * s.height + y) * s.width + x] = sum;
}

static void fill(std::vector<float>& v, unsigned seed, float low, float high) {
  for (float& f : v) {
    seed = seed * 1103515245u + 12345u;
    f = low + (high - low) * ((seed >> 9) & 0x3fffff) / 4194304.0f;
  }
}

int main() {
  ConvShape s = {4, 64, 64, 112, 112};
  size_t in_size = (size_t)s.images * s.in_channels * s.height * s.width;
  size_t out_size = (size_t)s.images * s.out_channels * s.height * s.width;
  std::vector<float> input(in_size), output(out_size);
  std::vector<float> weights(s.out_channels * s.in_channels * 9), bias(s.out_channels);
  fill(input, 7u, -0.5f, 1.5f);
  fill(weights, 11u, -0.08f, 0.1f);
  fill(bias, 13u, 0.0f, 1.0f);

  float *d_input, *d_weights, *d_bias, *d_output;
  cudaMalloc((void**)&d_input, in_size * sizeof(float));
  cudaMalloc((void**)&d_output, out_size * sizeof(float));
  cudaMalloc((void**)&d_weights, weights.size() * sizeof(float));
  cudaMalloc((void**)&d_bias, bias.size() * sizeof(float));
  cudaMemcpy(d_input, input.data(), in_size * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_weights, weights.data(), weights.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_bias, bias.data(), bias.size() * sizeof(float), cudaMemcpyHostToDevice);

  dim3 block(16, 16);
  dim3 grid((s.width + 15) / 16, (s.height + 15) / 16, s.images * s.out_channels);
  conv3x3<<<grid, block>>>(s, d_input, d_weights, d_bias, d_output);
  cudaError_t err = cudaDeviceSynchronize();
  if (err != cudaSuccess) {
    printf("error: %s\n", cudaGetErrorString(err));
    return 1;
  }
  cudaMemcpy(output.data(), d_output, out_size * sizeof(float), cudaMemcpyDeviceToHost);

  double squares = 0.0, weighted = 0.0;
  for (size_t i = 0; i < out_size; ++i) {
    squares += (double)output[i] * output[i];
    weighted += std::fabs(output[i]) * (1.0 + i % 17);
  }
  printf("conv squares %.6e\n", squares);
  printf("conv weighted %.6e\n", weighted);
  return 0;
}
