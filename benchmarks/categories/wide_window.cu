// Filters a 640 x 640 image with a window of 25 x 25 bell-shaped (not separable) weights. The
// window is clipped at the image border.
#include <cstdio>
#include <cmath>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>

#define RADIUS 12
#define WINDOW (2 * RADIUS + 1)

__global__ void filter(const float *image, const float *weights, float *out, unsigned width, unsigned height)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;

    int x_lo = max((int)x - RADIUS, 0);
    int x_hi = min((int)x + RADIUS, (int)width - 1);
    int y_lo = max((int)y - RADIUS, 0);
    int y_hi = min((int)y + RADIUS, (int)height - 1);

    float sum = 0.0f;
    for (int yy = y_lo; yy <= y_hi; yy++)
        for (int xx = x_lo; xx <= x_hi; xx++)
            sum += image[yy * width + xx] * weights[(yy - y + RADIUS) * WINDOW + (xx - x + RADIUS)];
    out[y * width + x] = sum;
}

int main()
{
    const unsigned width = 640, height = 640;
    const size_t pixels = (size_t)width * height;
    std::vector<float> image(pixels), weights(WINDOW * WINDOW), out(pixels);

    unsigned s = 1234567u;
    for (size_t i = 0; i < pixels; i++) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        image[i] = (float)(s & 255u) / 255.0f;
    }
    for (int y = 0; y < WINDOW; y++)
        for (int x = 0; x < WINDOW; x++) {
            float dx = x - RADIUS, dy = y - RADIUS;
            float wave = 1.0f + 0.2f * sinf(0.7f * x + 0.3f * y * y);
            weights[y * WINDOW + x] = wave * expf(-(dx * dx + dy * dy + 0.5f * dx * dy) / 60.0f) / 200.0f;
        }

    float *d_image, *d_weights, *d_out;
    cudaMalloc(&d_image, pixels * sizeof(float));
    cudaMalloc(&d_out, pixels * sizeof(float));
    cudaMalloc(&d_weights, weights.size() * sizeof(float));
    cudaMemcpy(d_image, image.data(), pixels * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_weights, weights.data(), weights.size() * sizeof(float), cudaMemcpyHostToDevice);

    dim3 threads(16, 16);
    dim3 blocks((width + threads.x - 1) / threads.x, (height + threads.y - 1) / threads.y);
    filter<<<blocks, threads>>>(d_image, d_weights, d_out, width, height);

    cudaMemcpy(out.data(), d_out, pixels * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess)
        return 1;

    double total = 0.0, weighted = 0.0;
    for (size_t i = 0; i < pixels; i++) {
        total += out[i];
        weighted += out[i] * (double)(1 + i % 31);
    }
    printf("total %.6e\n", total);
    printf("weighted %.6e\n", weighted);
    printf("corner %.6e center %.6e\n", (double)out[0], (double)out[pixels / 2 + width / 2]);
    return 0;
}
