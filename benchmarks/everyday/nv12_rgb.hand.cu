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

static_assert(WIDTH % 4 == 0 && HEIGHT % 2 == 0 && PITCH % 4 == 0, "4x2 pixels per thread");

__device__ __forceinline__ float clamp255(float v) { return fminf(fmaxf(v, 0.0f), 255.0f); }

// per channel: out = v * scale + bias
struct Affine {
    float scale[3];
    float bias[3];
};

// One thread: 4 pixels wide, 2 rows high = two luma words, one chroma word, six float4 stores.
__global__ void __launch_bounds__(256)
nv12_to_rgb(const uint8_t* __restrict__ src, float* __restrict__ dst, int width, int height,
            int pitch, Affine aff)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    const int y = 2 * (blockIdx.y * blockDim.y + threadIdx.y);
    const int f = blockIdx.z;
    if (x >= width || y >= height) return;

    const uint8_t* luma   = src + (size_t)f * pitch * height * 3 / 2;
    const uint8_t* chroma = luma + (size_t)pitch * height;

    const uchar4 y0 = *reinterpret_cast<const uchar4*>(luma + y * pitch + x);
    const uchar4 y1 = *reinterpret_cast<const uchar4*>(luma + (y + 1) * pitch + x);
    const uchar4 uv = *reinterpret_cast<const uchar4*>(chroma + (y / 2) * pitch + x);

    const float u0 = uv.x - 128.0f, v0 = uv.y - 128.0f;
    const float u1 = uv.z - 128.0f, v1 = uv.w - 128.0f;
    const float r0 = 1.793f * v0, g0 = -0.213f * u0 - 0.533f * v0, b0 = 2.112f * u0;
    const float r1 = 1.793f * v1, g1 = -0.213f * u1 - 0.533f * v1, b1 = 2.112f * u1;

    const size_t plane = (size_t)width * height;
    float* out = dst + (size_t)f * 3 * plane + (size_t)y * width + x;

    #pragma unroll
    for (int row = 0; row < 2; ++row) {
        const uchar4 q = row ? y1 : y0;
        const float c0 = 1.164f * (q.x - 16.0f), c1 = 1.164f * (q.y - 16.0f);
        const float c2 = 1.164f * (q.z - 16.0f), c3 = 1.164f * (q.w - 16.0f);
        float4 r, g, b;
        r.x = clamp255(c0 + r0) * aff.scale[0] + aff.bias[0];
        r.y = clamp255(c1 + r0) * aff.scale[0] + aff.bias[0];
        r.z = clamp255(c2 + r1) * aff.scale[0] + aff.bias[0];
        r.w = clamp255(c3 + r1) * aff.scale[0] + aff.bias[0];
        g.x = clamp255(c0 + g0) * aff.scale[1] + aff.bias[1];
        g.y = clamp255(c1 + g0) * aff.scale[1] + aff.bias[1];
        g.z = clamp255(c2 + g1) * aff.scale[1] + aff.bias[1];
        g.w = clamp255(c3 + g1) * aff.scale[1] + aff.bias[1];
        b.x = clamp255(c0 + b0) * aff.scale[2] + aff.bias[2];
        b.y = clamp255(c1 + b0) * aff.scale[2] + aff.bias[2];
        b.z = clamp255(c2 + b1) * aff.scale[2] + aff.bias[2];
        b.w = clamp255(c3 + b1) * aff.scale[2] + aff.bias[2];
        float* o = out + row * width;
        __stcs(reinterpret_cast<float4*>(o), r);
        __stcs(reinterpret_cast<float4*>(o + plane), g);
        __stcs(reinterpret_cast<float4*>(o + 2 * plane), b);
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

    Affine aff;
    for (int c = 0; c < 3; c++) {
        aff.scale[c] = 1.0f / (255.0f * norm.std[c]);
        aff.bias[c]  = -norm.mean[c] / norm.std[c];
    }

    dim3 block(32, 8);
    dim3 grid((WIDTH / 4 + block.x - 1) / block.x, (HEIGHT / 2 + block.y - 1) / block.y, FRAMES);
    nv12_to_rgb<<<grid, block>>>(dsrc, ddst, WIDTH, HEIGHT, PITCH, aff);
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
