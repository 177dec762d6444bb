// Gaussian blur (separable) of an RGB image, then grey, then Sobel edges.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define WIDTH   3840
#define HEIGHT  2160
#define RADIUS  5
#define TAPS    (2 * RADIUS + 1)
#define CLAMP(v, lo, hi) ((v) < (lo) ? (lo) : ((v) > (hi) ? (hi) : (v)))

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t e = (call);                                            \
        if (e != cudaSuccess) {                                            \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,              \
                    cudaGetErrorString(e));                                \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

__constant__ float c_gauss[TAPS];

__global__ void blurRows(const unsigned char *in, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;

    for (int c = 0; c < 3; c++) {
        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            int xx = CLAMP(x + k, 0, w - 1);
            sum += c_gauss[k + RADIUS] * in[(y * w + xx) * 3 + c];
        }
        out[(y * w + x) * 3 + c] = sum;
    }
}

__global__ void blurCols(const float *in, unsigned char *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;

    for (int c = 0; c < 3; c++) {
        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            int yy = CLAMP(y + k, 0, h - 1);
            sum += c_gauss[k + RADIUS] * in[(yy * w + x) * 3 + c];
        }
        sum = sum + 0.5f;
        if (sum > 255.0f) sum = 255.0f;
        out[(y * w + x) * 3 + c] = (unsigned char)sum;
    }
}

__global__ void toGray(const unsigned char *rgb, unsigned char *gray, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        int i = y * w + x;
        int r = rgb[3 * i + 0];
        int g = rgb[3 * i + 1];
        int b = rgb[3 * i + 2];
        gray[i] = (unsigned char)((77 * r + 150 * g + 29 * b) >> 8);
    }
}

__global__ void sobel(const unsigned char *g, unsigned char *mag, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        mag[y * w + x] = 0;
        return;
    }
    int gx = -g[(y - 1) * w + x - 1] + g[(y - 1) * w + x + 1]
             - 2 * g[y * w + x - 1] + 2 * g[y * w + x + 1]
             - g[(y + 1) * w + x - 1] + g[(y + 1) * w + x + 1];
    int gy = -g[(y - 1) * w + x - 1] - 2 * g[(y - 1) * w + x] - g[(y - 1) * w + x + 1]
             + g[(y + 1) * w + x - 1] + 2 * g[(y + 1) * w + x] + g[(y + 1) * w + x + 1];
    float m = sqrtf((float)(gx * gx + gy * gy));
    if (m > 255.0f) m = 255.0f;
    mag[y * w + x] = (unsigned char)m;
}

static unsigned int seed = 12345u;
static unsigned int lcg() { seed = seed * 1664525u + 1013904223u; return seed >> 8; }

int main()
{
    const int w = WIDTH, h = HEIGHT;
    const size_t npix = (size_t)w * h;
    std::vector<unsigned char> img(npix * 3), edges(npix);

    // checkered colour squares with noise
    unsigned char cols[64][3];
    for (int i = 0; i < 64; i++)
        for (int c = 0; c < 3; c++) cols[i][c] = (unsigned char)(20 + lcg() % 200);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int sq = ((x / 37) * 5 + (y / 29) * 11) & 63;
            for (int c = 0; c < 3; c++)
                img[((size_t)y * w + x) * 3 + c] = (unsigned char)(cols[sq][c] + lcg() % 32);
        }

    float gauss[TAPS], s = 0.0f;
    for (int k = -RADIUS; k <= RADIUS; k++) {
        gauss[k + RADIUS] = expf(-(float)(k * k) / (2.0f * 2.0f * 2.0f));
        s += gauss[k + RADIUS];
    }
    for (int k = 0; k < TAPS; k++) gauss[k] /= s;
    CHECK(cudaMemcpyToSymbol(c_gauss, gauss, sizeof(gauss)));

    unsigned char *d_img, *d_blur, *d_gray, *d_mag;
    float *d_tmp;
    CHECK(cudaMalloc(&d_img, npix * 3));
    CHECK(cudaMalloc(&d_blur, npix * 3));
    CHECK(cudaMalloc(&d_gray, npix));
    CHECK(cudaMalloc(&d_mag, npix));
    CHECK(cudaMalloc(&d_tmp, npix * 3 * sizeof(float)));
    CHECK(cudaMemcpy(d_img, img.data(), npix * 3, cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    blurRows<<<grid, block>>>(d_img, d_tmp, w, h);
    blurCols<<<grid, block>>>(d_tmp, d_blur, w, h);
    toGray<<<grid, block>>>(d_blur, d_gray, w, h);
    sobel<<<grid, block>>>(d_gray, d_mag, w, h);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(edges.data(), d_mag, npix, cudaMemcpyDeviceToHost));

    double total = 0.0, strong = 0.0, lower = 0.0;
    for (size_t i = 0; i < npix; i++) {
        total += edges[i];
        if (edges[i] > 50) strong += 1.0;
        if (i >= npix / 2) lower += edges[i];
    }
    printf("edge sum     %.3e\n", total);
    printf("strong edges %.2e\n", strong);
    printf("lower half   %.3e\n", lower);

    cudaFree(d_img); cudaFree(d_blur); cudaFree(d_gray); cudaFree(d_mag); cudaFree(d_tmp);
    return 0;
}
