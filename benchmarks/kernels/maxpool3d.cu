// maxpool3d: the maximum of every 3 x 3 x 3 window, with stride 2 and a padding of 1, of a number of volumes (batch x
// channels); one thread an output.
//
//   maxpool3d [volumes depth height width]      default 32 64 128 128, large 128 64 128 128
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

struct Pool {
  int volumes;
  int depth, height, width;          // of the input
  int outDepth, outHeight, outWidth; // of the output
  int kernel, stride, padding;
};

__global__ void maxpool3d(const float *in, float *out, Pool p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int total = p.volumes * p.outDepth * p.outHeight * p.outWidth;
  if (i >= total)
    return;

  int ow = i % p.outWidth;
  int oh = i / p.outWidth % p.outHeight;
  int od = i / (p.outWidth * p.outHeight) % p.outDepth;
  int volume = i / (p.outWidth * p.outHeight * p.outDepth);

  float best = -INFINITY;
  for (int kd = 0; kd < p.kernel; kd++) {
    for (int kh = 0; kh < p.kernel; kh++) {
      for (int kw = 0; kw < p.kernel; kw++) {
        int d = od * p.stride - p.padding + kd;
        int h = oh * p.stride - p.padding + kh;
        int w = ow * p.stride - p.padding + kw;
        if (d >= 0 && d < p.depth && h >= 0 && h < p.height && w >= 0 && w < p.width)
          best = fmaxf(best, in[((volume * p.depth + d) * p.height + h) * p.width + w]);
      }
    }
  }
  out[i] = best;
}

int main(int argc, char **argv) {
  Pool p = {32, 64, 128, 128, 0, 0, 0, 3, 2, 1};
  if (argc == 5) {
    p.volumes = atoi(argv[1]);
    p.depth = atoi(argv[2]);
    p.height = atoi(argv[3]);
    p.width = atoi(argv[4]);
  }
  const double elements = (double)p.volumes * p.depth * p.height * p.width;
  if ((argc != 1 && argc != 5) || p.volumes < 1 || p.depth < 1 || p.height < 1 || p.width < 1 || elements > 2e9) {
    fprintf(stderr, "usage: %s [volumes depth height width]   each at least 1, 2e9 elements at most\n", argv[0]);
    return EXIT_FAILURE;
  }
  p.outDepth = (p.depth + 2 * p.padding - p.kernel) / p.stride + 1;
  p.outHeight = (p.height + 2 * p.padding - p.kernel) / p.stride + 1;
  p.outWidth = (p.width + 2 * p.padding - p.kernel) / p.stride + 1;

  std::vector<float> in((size_t)p.volumes * p.depth * p.height * p.width);
  std::vector<float> out((size_t)p.volumes * p.outDepth * p.outHeight * p.outWidth);
  unsigned state = 1;
  for (float &value : in) { // between -3 and 1: some windows have a negative maximum
    state = state * 1664525u + 1013904223u;
    value = (float)(state >> 8) / 4194304.0f - 3.0f;
  }

  float *dIn, *dOut;
  CUDA_CHECK(cudaMalloc(&dIn, in.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dOut, out.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dIn, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOut, 0xff, out.size() * sizeof(float))); // NaN, so that an output that is not written shows

  const int threads = 256;
  maxpool3d<<<(int)((out.size() + threads - 1) / threads), threads>>>(dIn, dOut, p);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out.data(), dOut, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dOut));

  // Exact; NaN equals nothing. Every output, or of many the first, the last and a million or so spread over all.
  const size_t step = out.size() > 6000000 ? out.size() / 1000003 | 1 : 1;
  int wrong = 0;
  for (size_t s = 0; s < out.size(); s += step) {
    size_t i = s + step < out.size() ? s : out.size() - 1; // the last one ends at the last output
    int ow = (int)(i % p.outWidth), oh = (int)(i / p.outWidth % p.outHeight);
    int od = (int)(i / ((size_t)p.outWidth * p.outHeight) % p.outDepth);
    size_t volume = i / ((size_t)p.outWidth * p.outHeight * p.outDepth);
    float want = -INFINITY;
    for (int d = od * p.stride - p.padding; d < od * p.stride - p.padding + p.kernel; d++) {
      for (int h = oh * p.stride - p.padding; h < oh * p.stride - p.padding + p.kernel; h++) {
        for (int w = ow * p.stride - p.padding; w < ow * p.stride - p.padding + p.kernel; w++) {
          if (d < 0 || d >= p.depth || h < 0 || h >= p.height || w < 0 || w >= p.width)
            continue;
          float value = in[((volume * p.depth + d) * p.height + h) * p.width + w];
          if (value > want)
            want = value;
        }
      }
    }
    if (!(out[i] == want) && wrong++ < 3)
      fprintf(stderr, "volume %zu output[%d][%d][%d] = %g, want %g\n", volume, od, oh, ow, out[i], want);
  }
  printf("%s maxpool3d volumes=%d depth=%d height=%d width=%d\n", wrong ? "FAIL" : "PASS", p.volumes, p.depth, p.height,
         p.width);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
