// Filters a 640 x 640 image with a window of 25 x 25 bell-shaped (not separable) weights, clipped at
// the border. By hand: a zero-padded tile in shared memory, a thread keeps a column of 25 outputs in
// registers and reuses each loaded pixel up to 25 times; two half-blocks split the window's columns.
#include <cstdio>
#include <cmath>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>

#define RADIUS 12
#define WINDOW (2 * RADIUS + 1)
#define SIZE 640
#define TILE_X 128
#define TILE_Y 25
#define SPAN_X (TILE_X + WINDOW - 1)
#define SPAN_Y (TILE_Y + WINDOW - 1)
#define WEIGHT_VECS ((WINDOW + 3) / 4)

__global__ void __launch_bounds__(2 * TILE_X)
filter(const float *__restrict__ image, const float *__restrict__ weights, float *__restrict__ out)
{
    __shared__ float tile[SPAN_Y][SPAN_X];
    __shared__ float4 columns[WINDOW][WEIGHT_VECS];  // the window's columns, padded to whole vectors
    __shared__ float partial[TILE_Y][TILE_X];

    const int x0 = blockIdx.x * TILE_X, y0 = blockIdx.y * TILE_Y;
    for (int i = threadIdx.x; i < WINDOW * WEIGHT_VECS * 4; i += 2 * TILE_X) {
        const int kx = i / (WEIGHT_VECS * 4), ky = i % (WEIGHT_VECS * 4);
        ((float *)columns)[i] = ky < WINDOW ? weights[ky * WINDOW + kx] : 0.0f;
    }
#pragma unroll 8
    for (int i = threadIdx.x; i < SPAN_Y * SPAN_X; i += 2 * TILE_X) {
        const int ty = i / SPAN_X, tx = i % SPAN_X;
        const int y = y0 + ty - RADIUS, x = x0 + tx - RADIUS;
        tile[ty][tx] = x >= 0 && x < SIZE && y >= 0 && y < SIZE ? image[y * SIZE + x] : 0.0f;
    }
    __syncthreads();

    const int half = threadIdx.x / TILE_X, x = threadIdx.x % TILE_X;
    const int kx_end = half ? WINDOW : (WINDOW + 1) / 2;
    float sum[TILE_Y];
#pragma unroll
    for (int r = 0; r < TILE_Y; r++)
        sum[r] = 0.0f;

#pragma unroll 1
    for (int kx = half ? (WINDOW + 1) / 2 : 0; kx < kx_end; kx++) {
        float w[WEIGHT_VECS * 4];
#pragma unroll
        for (int i = 0; i < WEIGHT_VECS; i++) {
            const float4 v = columns[kx][i];
            w[4 * i] = v.x;
            w[4 * i + 1] = v.y;
            w[4 * i + 2] = v.z;
            w[4 * i + 3] = v.w;
        }
#pragma unroll
        for (int i = 0; i < SPAN_Y; i++) {
            const float v = tile[i][x + kx];
#pragma unroll
            for (int r = 0; r < TILE_Y; r++)
                if (i - r >= 0 && i - r < WINDOW)
                    sum[r] += w[i - r] * v;
        }
    }

    if (half) {
#pragma unroll
        for (int r = 0; r < TILE_Y; r++)
            partial[r][x] = sum[r];
    }
    __syncthreads();
    if (!half) {
#pragma unroll
        for (int r = 0; r < TILE_Y; r++)
            if (y0 + r < SIZE)
                out[(y0 + r) * SIZE + x0 + x] = sum[r] + partial[r][x];
    }
}

int main()
{
    const size_t pixels = (size_t)SIZE * SIZE;
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

    dim3 blocks(SIZE / TILE_X, (SIZE + TILE_Y - 1) / TILE_Y);
    filter<<<blocks, 2 * TILE_X>>>(d_image, d_weights, d_out);

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
    printf("corner %.6e center %.6e\n", (double)out[0], (double)out[pixels / 2 + SIZE / 2]);
    return 0;
}
