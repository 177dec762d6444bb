// Denoise a float image: 3x3 median (salt and pepper), then a bilateral filter.
#include <cstdio>
#include <cmath>
#include <cstdlib>

typedef struct {
    int width;
    int height;
    float *pixels;
} Image;

#define RADIUS 4
#define SIGMA_S 2.5f
#define SIGMA_R 0.15f

__device__ int clampi(int v, int lo, int hi)
{
    return min(max(v, lo), hi);
}

__device__ float getPixel(Image img, int x, int y)
{
    x = clampi(x, 0, img.width - 1);
    y = clampi(y, 0, img.height - 1);
    return img.pixels[y * img.width + x];
}

__device__ void sortValues(float *v, int n)
{
    for (int i = 0; i < n - 1; i++)
        for (int j = 0; j < n - 1 - i; j++)
            if (v[j] > v[j + 1]) {
                float tmp = v[j];
                v[j] = v[j + 1];
                v[j + 1] = tmp;
            }
}

__global__ void median3x3(Image in, Image out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= in.width || y >= in.height) return;

    float v[9];
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            v[n++] = getPixel(in, x + dx, y + dy);
    sortValues(v, 9);
    out.pixels[y * out.width + x] = v[4];
}

__global__ void bilateral(Image in, Image out, float sigmaS, float sigmaR)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= in.width || y >= in.height) return;

    float center = in.pixels[y * in.width + x];
    float sum = 0.0f;
    float norm = 0.0f;
    for (int dy = -RADIUS; dy <= RADIUS; dy++) {
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
            int xx = x + dx;
            int yy = y + dy;
            if (xx < 0 || yy < 0 || xx >= in.width || yy >= in.height) continue;
            float p = in.pixels[yy * in.width + xx];
            float ws = expf(-(dx * dx + dy * dy) / (2.0f * sigmaS * sigmaS));
            float wr = expf(-(p - center) * (p - center) / (2.0f * sigmaR * sigmaR));
            sum += ws * wr * p;
            norm += ws * wr;
        }
    }
    out.pixels[y * out.width + x] = sum / norm;
}

static unsigned long lcgNext(unsigned long *s)
{
    *s = (*s * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return *s >> 8;
}

int main(void)
{
    const int width = 3000, height = 2000;
    const size_t bytes = (size_t)width * height * sizeof(float);
    float *h = (float *)malloc(bytes);
    unsigned long s = 4242;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float base = 0.5f + 0.3f * sinf(x * 0.01f) * cosf(y * 0.013f);
            if (((x / 100) + (y / 80)) % 3 == 0) base += 0.2f;
            float noise = (lcgNext(&s) % 1000) / 1000.0f * 0.1f - 0.05f;
            float value = base + noise;
            unsigned long r = lcgNext(&s) % 100;
            if (r < 3) value = 0.0f;
            if (r > 96) value = 1.0f;
            h[y * width + x] = value;
        }

    Image src = {width, height, NULL};
    Image mid = {width, height, NULL};
    Image dst = {width, height, NULL};
    cudaMalloc((void **)&src.pixels, bytes);
    cudaMalloc((void **)&mid.pixels, bytes);
    cudaMalloc((void **)&dst.pixels, bytes);
    cudaMemcpy(src.pixels, h, bytes, cudaMemcpyHostToDevice);

    dim3 threads(32, 8);
    dim3 blocks((width + threads.x - 1) / threads.x, (height + threads.y - 1) / threads.y);
    median3x3<<<blocks, threads>>>(src, mid);
    bilateral<<<blocks, threads>>>(mid, dst, SIGMA_S, SIGMA_R);

    if (cudaMemcpy(h, dst.pixels, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    double sum = 0, sq = 0, tv = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float v = h[y * width + x];
            sum += v;
            sq += (double)v * v;
            if (x + 1 < width) tv += fabsf(h[y * width + x + 1] - v);
        }
    printf("mean %.4e\nsquares %.4e\nvariation %.3e\n", sum / ((double)width * height), sq, tv);

    cudaFree(src.pixels);
    cudaFree(mid.pixels);
    cudaFree(dst.pixels);
    free(h);
    return 0;
}
