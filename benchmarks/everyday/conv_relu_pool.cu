// Forward pass of a small CNN layer, NCHW, float:
//   3x3 convolution (padding 1, stride 1) -> bias + ReLU -> 2x2 max pooling -> global average
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(stmt)                                                             \
    do {                                                                             \
        cudaError_t status = (stmt);                                                 \
        if (status != cudaSuccess) {                                                 \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
            std::exit(1);                                                            \
        }                                                                            \
    } while (0)

const int BATCH = 44;
const int CIN = 32;
const int COUT = 64;
const int H = 48;
const int W = 48;
const int PH = H / 2;
const int PW = W / 2;

// one thread per output element; blockIdx.z = image * COUT + output channel
template <int KSIZE>
__global__ void conv2d(const float* input, const float* weight, float* output,
                       int cin, int cout, int height, int width)
{
    int ox = blockIdx.x * blockDim.x + threadIdx.x;
    int oy = blockIdx.y * blockDim.y + threadIdx.y;
    int n = blockIdx.z / cout;
    int oc = blockIdx.z % cout;
    if (ox >= width || oy >= height) return;

    const int pad = KSIZE / 2;
    float acc = 0.0f;
    for (int ic = 0; ic < cin; ic++) {
        for (int ky = 0; ky < KSIZE; ky++) {
            for (int kx = 0; kx < KSIZE; kx++) {
                int iy = oy + ky - pad;
                int ix = ox + kx - pad;
                if (iy >= 0 && iy < height && ix >= 0 && ix < width) {
                    float v = input[((n * cin + ic) * height + iy) * width + ix];
                    float w = weight[((oc * cin + ic) * KSIZE + ky) * KSIZE + kx];
                    acc += v * w;
                }
            }
        }
    }
    output[((n * cout + oc) * height + oy) * width + ox] = acc;
}

__global__ void bias_relu(float* data, const float* bias, int channels, int plane, int total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = (i / plane) % channels;
    float v = data[i] + bias[c];
    data[i] = v > 0.0f ? v : 0.0f;
}

template <int POOL>
__global__ void max_pool(const float* input, float* output, int height, int width, int total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int ow = width / POOL;
    int oh = height / POOL;
    int x = i % ow;
    int y = (i / ow) % oh;
    int nc = i / (ow * oh);
    float best = input[(nc * height + y * POOL) * width + x * POOL];
    for (int dy = 0; dy < POOL; dy++)
        for (int dx = 0; dx < POOL; dx++) {
            float v = input[(nc * height + y * POOL + dy) * width + x * POOL + dx];
            if (v > best) best = v;
        }
    output[i] = best;
}

// one thread per (image, channel)
__global__ void global_average(const float* input, float* output, int plane, int total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    float sum = 0.0f;
    for (int k = 0; k < plane; k++) sum += input[i * plane + k];
    output[i] = sum / plane;
}

static float hash_float(unsigned int i)
{
    i ^= i >> 16;
    i *= 0x7feb352du;
    i ^= i >> 15;
    i *= 0x846ca68bu;
    i ^= i >> 16;
    return (float)(i >> 8) / 8388608.0f - 1.0f;
}

int main()
{
    const int inCount = BATCH * CIN * H * W;
    const int wCount = COUT * CIN * 9;
    const int convCount = BATCH * COUT * H * W;
    const int poolCount = BATCH * COUT * PH * PW;
    const int featCount = BATCH * COUT;

    std::vector<float> input(inCount), weight(wCount), bias(COUT);
    for (int i = 0; i < inCount; i++) input[i] = hash_float(i);
    for (int i = 0; i < wCount; i++) weight[i] = 0.1f * hash_float(i + 50000000);
    for (int i = 0; i < COUT; i++) bias[i] = 0.2f * hash_float(i + 90000000);

    float *d_in, *d_w, *d_b, *d_conv, *d_pool, *d_feat;
    CUDA_CHECK(cudaMalloc(&d_in, inCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_w, wCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_b, COUT * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_conv, convCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_pool, poolCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_feat, featCount * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_in, input.data(), inCount * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_w, weight.data(), wCount * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_b, bias.data(), COUT * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((W + 15) / 16, (H + 15) / 16, BATCH * COUT);
    conv2d<3><<<grid, block>>>(d_in, d_w, d_conv, CIN, COUT, H, W);
    CUDA_CHECK(cudaGetLastError());
    bias_relu<<<(convCount + 255) / 256, 256>>>(d_conv, d_b, COUT, H * W, convCount);
    CUDA_CHECK(cudaGetLastError());
    max_pool<2><<<(poolCount + 255) / 256, 256>>>(d_conv, d_pool, H, W, poolCount);
    CUDA_CHECK(cudaGetLastError());
    global_average<<<(featCount + 255) / 256, 256>>>(d_pool, d_feat, PH * PW, featCount);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    std::vector<float> pooled(poolCount), feat(featCount);
    CUDA_CHECK(cudaMemcpy(pooled.data(), d_pool, poolCount * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(feat.data(), d_feat, featCount * sizeof(float), cudaMemcpyDeviceToHost));

    double sum = 0, squares = 0, featSum = 0, featMax = 0;
    float top = 0;
    for (int i = 0; i < poolCount; i++) {
        sum += pooled[i];
        squares += (double)pooled[i] * pooled[i];
        if (pooled[i] > top) top = pooled[i];
    }
    for (int i = 0; i < featCount; i++) {
        featSum += feat[i] * (1.0 + i % 7);
        if (feat[i] > featMax) featMax = feat[i];
    }
    std::printf("pooled %.8e %.8e %.8e\n", sum, squares, top);
    std::printf("features %.8e %.8e\n", featSum, featMax);
    for (int k = 0; k < 6; k++) std::printf("%.8e\n", feat[k * 347 + 5]);
    double corner = 0;
    for (int i = 0; i < featCount; i++)
        corner += pooled[i * PH * PW] + 2.0 * pooled[i * PH * PW + PH * PW - 1];
    std::printf("corners %.8e\n", corner);

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_w));
    CUDA_CHECK(cudaFree(d_b));
    CUDA_CHECK(cudaFree(d_conv));
    CUDA_CHECK(cudaFree(d_pool));
    CUDA_CHECK(cudaFree(d_feat));
    return 0;
}
