// Video pre-processing: NV12 frames (as a hardware decoder leaves them) to
// normalised planar float RGB (as a neural network wants them).
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define CUDA_OK(call)                                                     \
    do {                                                                  \
        cudaError_t e_ = (call);                                          \
        if (e_ != cudaSuccess) {                                          \
            fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(e_)); \
            exit(EXIT_FAILURE);                                           \
        }                                                                 \
    } while (0)

constexpr int WIDTH  = 1920;
constexpr int HEIGHT = 1080;
constexpr int PITCH  = 2048;   // bytes from row to row, as the decoder chose it
constexpr int FRAMES = 6;

struct Normalisation {
    float mean[3];
    float std[3];
};

__device__ inline float clamp255(float v)
{
    if (v < 0.0f) return 0.0f;
    if (v > 255.0f) return 255.0f;
    return v;
}

__global__ void nv12_to_rgb(const uint8_t* src, float* dst, int width, int height, int pitch,
                            Normalisation norm)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int f = blockIdx.z;

    if (x < width && y < height) {
        const uint8_t* luma   = src + (size_t)f * pitch * height * 3 / 2;
        const uint8_t* chroma = luma + (size_t)pitch * height;

        float Y = luma[y * pitch + x];
        float U = chroma[(y / 2) * pitch + (x / 2) * 2];
        float V = chroma[(y / 2) * pitch + (x / 2) * 2 + 1];

        float c = 1.164f * (Y - 16.0f);
        float r = clamp255(c + 1.793f * (V - 128.0f));
        float g = clamp255(c - 0.213f * (U - 128.0f) - 0.533f * (V - 128.0f));
        float b = clamp255(c + 2.112f * (U - 128.0f));

        size_t plane = (size_t)width * height;
        float* out = dst + f * 3 * plane;
        out[0 * plane + y * width + x] = (r / 255.0f - norm.mean[0]) / norm.std[0];
        out[1 * plane + y * width + x] = (g / 255.0f - norm.mean[1]) / norm.std[1];
        out[2 * plane + y * width + x] = (b / 255.0f - norm.mean[2]) / norm.std[2];
    }
}

int main(void)
{
    const size_t frameBytes = (size_t)PITCH * HEIGHT * 3 / 2;
    const size_t srcBytes   = frameBytes * FRAMES;
    const size_t plane      = (size_t)WIDTH * HEIGHT;
    const size_t dstFloats  = plane * 3 * FRAMES;

    uint8_t* hsrc = (uint8_t*)malloc(srcBytes);
    float*   hdst = (float*)malloc(dstFloats * sizeof(float));

    uint32_t seed = 7u;
    for (size_t i = 0; i < srcBytes; i++) {
        seed = seed * 747796405u + 2891336453u;
        size_t inFrame = i % frameBytes;
        int slope = (int)((inFrame % PITCH) / 16 + (inFrame / PITCH) / 16);
        hsrc[i] = (uint8_t)((slope + (int)(seed >> 26)) & 255);
    }

    uint8_t* dsrc;
    float*   ddst;
    CUDA_OK(cudaMalloc((void**)&dsrc, srcBytes));
    CUDA_OK(cudaMalloc((void**)&ddst, dstFloats * sizeof(float)));
    CUDA_OK(cudaMemcpy(dsrc, hsrc, srcBytes, cudaMemcpyHostToDevice));

    Normalisation norm = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

    dim3 block(16, 16);
    dim3 grid((WIDTH + block.x - 1) / block.x, (HEIGHT + block.y - 1) / block.y, FRAMES);
    nv12_to_rgb<<<grid, block>>>(dsrc, ddst, WIDTH, HEIGHT, PITCH, norm);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMemcpy(hdst, ddst, dstFloats * sizeof(float), cudaMemcpyDeviceToHost));

    for (int ch = 0; ch < 3; ch++) {
        double absSum = 0, weighted = 0;
        float lo = 1e30f, hi = -1e30f;
        for (int f = 0; f < FRAMES; f++) {
            const float* p = hdst + ((size_t)f * 3 + ch) * plane;
            for (size_t i = 0; i < plane; i++) {
                float v = p[i];
                absSum += fabsf(v);
                weighted += (v + 3.0f) * (double)((i + f) % 11);
                if (v < lo) lo = v;
                if (v > hi) hi = v;
            }
        }
        printf("channel %d: abs %.3e weighted %.3e min %.3f max %.3f\n", ch, absSum, weighted, lo, hi);
    }

    cudaFree(dsrc);
    cudaFree(ddst);
    free(hsrc);
    free(hdst);
    return 0;
}
