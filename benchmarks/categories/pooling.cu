// Maximum and average pooling, 3 x 3 with stride 2 and a border of one, of 16 images with 48 channels of
// 224 x 224 pixels (NCHW). Pixels outside the image do not count.
#include <cfloat>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

enum class Pool { Max, Average };

template <Pool KIND>
__global__ void pool3x3(const float* __restrict__ in, float* __restrict__ out, int channels, int height, int width,
                        int out_height, int out_width, long total)
{
  long idx = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= total) return;
  int ox = idx % out_width;
  int oy = (idx / out_width) % out_height;
  int c = (idx / (out_width * out_height)) % channels;
  int n = idx / ((long)out_width * out_height * channels);

  float best = -FLT_MAX;
  float sum = 0.0f;
  int count = 0;
  for (int ky = 0; ky < 3; ++ky) {
    for (int kx = 0; kx < 3; ++kx) {
      int y = oy * 2 - 1 + ky;
      int x = ox * 2 - 1 + kx;
      if (y >= 0 && y < height && x >= 0 && x < width) {
        float v = in[((n * channels + c) * height + y) * width + x];
        best = fmaxf(best, v);
        sum += v;
        ++count;
      }
    }
  }
  out[idx] = KIND == Pool::Max ? best : sum / count;
}

int main()
{
  const int images = 16, channels = 48, height = 224, width = 224;
  const int out_height = (height + 2 - 3) / 2 + 1, out_width = (width + 2 - 3) / 2 + 1;
  const long in_size = (long)images * channels * height * width;
  const long out_size = (long)images * channels * out_height * out_width;
  std::vector<float> in(in_size), largest(out_size), average(out_size);
  unsigned s = 60u;
  for (long i = 0; i < in_size; ++i) {
    s = s * 1103515245u + 12345u;
    in[i] = ((s >> 10) & 0xffff) / 65536.0f - 0.2f;
  }

  float *d_in, *d_largest, *d_average;
  cudaMalloc(&d_in, in_size * sizeof(float));
  cudaMalloc(&d_largest, out_size * sizeof(float));
  cudaMalloc(&d_average, out_size * sizeof(float));
  cudaMemcpy(d_in, in.data(), in_size * sizeof(float), cudaMemcpyHostToDevice);

  const int threads = 256;
  const int blocks = (int)((out_size + threads - 1) / threads);
  pool3x3<Pool::Max><<<blocks, threads>>>(d_in, d_largest, channels, height, width, out_height, out_width, out_size);
  pool3x3<Pool::Average><<<blocks, threads>>>(d_in, d_average, channels, height, width, out_height, out_width,
                                              out_size);

  cudaMemcpy(largest.data(), d_largest, out_size * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(average.data(), d_average, out_size * sizeof(float), cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess) {
    fprintf(stderr, "pooling failed\n");
    return 1;
  }
  double max_sum = 0, average_sum = 0, weighted = 0;
  for (long i = 0; i < out_size; ++i) {
    max_sum += largest[i];
    average_sum += average[i];
    weighted += (double)largest[i] * (1 + i % 9) + (double)average[i] * (1 + i % 112);
  }
  printf("max %.6e\naverage %.6e\nweighted %.6e\n", max_sum, average_sum, weighted);
  cudaFree(d_in);
  cudaFree(d_largest);
  cudaFree(d_average);
  return 0;
}
