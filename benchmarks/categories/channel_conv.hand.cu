// Convolves 4 images of 64 channels, 112 x 112 pixels, with 64 filters of 3 x 3 x 64 and adds a bias
// to each output channel. By hand: a block makes 64 channels of a 16 x 8 tile, a thread 8 channels of
// 4 pixels in registers; weights are transposed once and both operands arrive by async double buffering.
#include <cstdio>
#include <vector>
#include <cmath>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int IMAGES = 4, CIN = 64, COUT = 64, H = 112, W = 112;
constexpr int TX = 16, TY = 8;       // pixels a block
constexpr int CB = 4;                // input channels a stage
constexpr int ROWS = CB * (TY + 2);  // staged input rows
constexpr int PITCH = 20;            // 18 used; rows 4 apart then fall on the other half of the banks

struct Stage {
  float w[CB * 9 * COUT];
  float in[ROWS][PITCH];
};

__global__ void transpose_weights(const float* __restrict__ w, float* __restrict__ wt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // [tap][out channel], tap = channel * 9 + dy * 3 + dx
  wt[i] = w[(i % COUT) * (CIN * 9) + i / COUT];
}

__device__ __forceinline__ void load_stage(Stage& s, const float* image, const float* wt, int c0, int x0, int y0) {
  for (int i = threadIdx.x; i < CB * 9 * COUT / 4; i += 256)
    __pipeline_memcpy_async(&s.w[4 * i], wt + c0 * 9 * COUT + 4 * i, 16);
  const int lane = threadIdx.x & 31;
  const int xx = x0 + lane - 1;
  if (lane < TX + 2) {
#pragma unroll 1
    for (int j = 0; j < ROWS / 8; ++j) {
      const int r = j * 8 + (threadIdx.x >> 5);
      const int c = r / (TY + 2);
      const int yy = y0 + r % (TY + 2) - 1;
      const bool inside = xx >= 0 && xx < W && yy >= 0 && yy < H;
      const float* src = image + (c0 + c) * (H * W) + (inside ? yy * W + xx : 0);
      __pipeline_memcpy_async(&s.in[r][lane], src, 4, inside ? 0 : 4);
    }
  }
  __pipeline_commit();
}

__global__ void __launch_bounds__(256, 3) conv3x3(const float* __restrict__ input, const float* __restrict__ wt,
                                                  const float* __restrict__ bias, float* __restrict__ output) {
  __shared__ __align__(16) Stage stages[2];
  const int lane = threadIdx.x & 31;
  const int k0 = (threadIdx.x >> 5) * 8;  // a warp shares its 8 output channels
  const int strip = (lane & 3) * 4;
  const int row = (lane >> 3) + (lane & 4);
  const int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY;
  const float* image = input + blockIdx.z * (CIN * H * W);

  float acc[8][4];
#pragma unroll
  for (int k = 0; k < 8; ++k) acc[k][0] = acc[k][1] = acc[k][2] = acc[k][3] = bias[k0 + k];

  load_stage(stages[0], image, wt, 0, x0, y0);
  for (int t = 0; t < CIN / CB; ++t) {
    if (t + 1 < CIN / CB)
      load_stage(stages[(t + 1) & 1], image, wt, (t + 1) * CB, x0, y0);
    else
      __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const Stage& s = stages[t & 1];
#pragma unroll 1
    for (int c = 0; c < CB; ++c) {
#pragma unroll
      for (int dy = 0; dy < 3; ++dy) {
        const float* line = &s.in[c * (TY + 2) + row + dy][strip];
        const float4 lo = *reinterpret_cast<const float4*>(line);
        const float2 hi = *reinterpret_cast<const float2*>(line + 4);
        const float v[6] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y};
#pragma unroll
        for (int dx = 0; dx < 3; ++dx) {
          const float* taps = &s.w[(c * 9 + dy * 3 + dx) * COUT + k0];
          const float4 a = *reinterpret_cast<const float4*>(taps);
          const float4 b = *reinterpret_cast<const float4*>(taps + 4);
          const float w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
          for (int k = 0; k < 8; ++k)
#pragma unroll
            for (int p = 0; p < 4; ++p) acc[k][p] += w[k] * v[p + dx];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    float* out = output + ((blockIdx.z * COUT + k0 + k) * H + y0 + row) * W + x0 + strip;
    *reinterpret_cast<float4*>(out) = make_float4(acc[k][0], acc[k][1], acc[k][2], acc[k][3]);
  }
}

static void fill(std::vector<float>& v, unsigned seed, float low, float high) {
  for (float& f : v) {
    seed = seed * 1103515245u + 12345u;
    f = low + (high - low) * ((seed >> 9) & 0x3fffff) / 4194304.0f;
  }
}

int main() {
  size_t in_size = (size_t)IMAGES * CIN * H * W, out_size = (size_t)IMAGES * COUT * H * W;
  std::vector<float> input(in_size), output(out_size), weights(COUT * CIN * 9), bias(COUT);
  fill(input, 7u, -0.5f, 1.5f);
  fill(weights, 11u, -0.08f, 0.1f);
  fill(bias, 13u, 0.0f, 1.0f);

  float *d_input, *d_weights, *d_wt, *d_bias, *d_output;
  cudaMalloc((void**)&d_input, in_size * sizeof(float));
  cudaMalloc((void**)&d_output, out_size * sizeof(float));
  cudaMalloc((void**)&d_weights, weights.size() * sizeof(float));
  cudaMalloc((void**)&d_wt, weights.size() * sizeof(float));
  cudaMalloc((void**)&d_bias, bias.size() * sizeof(float));
  cudaMemcpy(d_input, input.data(), in_size * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_weights, weights.data(), weights.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_bias, bias.data(), bias.size() * sizeof(float), cudaMemcpyHostToDevice);

  transpose_weights<<<CIN * 9 * COUT / 256, 256>>>(d_weights, d_wt);
  conv3x3<<<dim3(W / TX, H / TY, IMAGES), 256>>>(d_input, d_wt, d_bias, d_output);
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
