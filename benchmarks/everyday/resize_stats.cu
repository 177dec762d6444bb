// Bilinear resize of an interleaved RGB image (uchar -> float) + mean/variance of each channel
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

struct Image {
    int width;
    int height;
};

__device__ float getPixel(const unsigned char *img, Image s, int x, int y, int c)
{
    // clamp to the border
    x = x < 0 ? 0 : (x >= s.width ? s.width - 1 : x);
    y = y < 0 ? 0 : (y >= s.height ? s.height - 1 : y);
    return (float)img[(y * s.width + x) * 3 + c];
}

__global__ void resizeBilinear(const unsigned char *src, Image ss, float *dst, Image ds)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z;
    if (x >= ds.width || y >= ds.height) return;

    float sx = (x + 0.5f) * ((float)ss.width / ds.width) - 0.5f;
    float sy = (y + 0.5f) * ((float)ss.height / ds.height) - 0.5f;
    int x0 = (int)floorf(sx);
    int y0 = (int)floorf(sy);
    float ax = sx - x0;
    float ay = sy - y0;

    float p00 = getPixel(src, ss, x0, y0, c);
    float p10 = getPixel(src, ss, x0 + 1, y0, c);
    float p01 = getPixel(src, ss, x0, y0 + 1, c);
    float p11 = getPixel(src, ss, x0 + 1, y0 + 1, c);
    float top = p00 * (1.0f - ax) + p10 * ax;
    float bottom = p01 * (1.0f - ax) + p11 * ax;
    dst[(y * ds.width + x) * 3 + c] = (top * (1.0f - ay) + bottom * ay) / 255.0f;
}

__global__ void channelStats(const float *img, Image s, double *sum, double *sumSq)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.width * s.height) return;
    for (int c = 0; c < 3; c++) {
        double v = img[i * 3 + c];
        atomicAdd(&sum[c], v);
        atomicAdd(&sumSq[c], v * v);
    }
}

int main()
{
    Image in = {3840, 2160};
    Image out = {1600, 900};
    size_t nin = (size_t)in.width * in.height * 3;
    size_t nout = (size_t)out.width * out.height * 3;
    unsigned char *h_in = (unsigned char *)malloc(nin);
    float *h_out = (float *)malloc(nout * sizeof(float));
    unsigned int s = 4711;
    for (size_t i = 0; i < nin; i++) {
        s = s * 214013u + 2531011u;
        h_in[i] = (unsigned char)((s >> 16) & 0xff);
    }

    unsigned char *d_in;
    float *d_out;
    double *d_stats;
    cudaMalloc(&d_in, nin);
    cudaMalloc(&d_out, nout * sizeof(float));
    cudaMalloc(&d_stats, 6 * sizeof(double));
    cudaMemcpy(d_in, h_in, nin, cudaMemcpyHostToDevice);
    cudaMemset(d_stats, 0, 6 * sizeof(double));

    dim3 block(16, 16, 1);
    dim3 grid((out.width + 15) / 16, (out.height + 15) / 16, 3);
    resizeBilinear<<<grid, block>>>(d_in, in, d_out, out);
    int npix = out.width * out.height;
    channelStats<<<(npix + 255) / 256, 256>>>(d_out, out, d_stats, d_stats + 3);

    double st[6];
    cudaMemcpy(h_out, d_out, nout * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(st, d_stats, 6 * sizeof(double), cudaMemcpyDeviceToHost);
    for (int c = 0; c < 3; c++) {
        double mean = st[c] / npix;
        double var = st[3 + c] / npix - mean * mean;
        printf("channel %d mean %.5e var %.5e\n", c, mean, var);
    }
    double total = 0;
    for (size_t i = 0; i < nout; i++) total += h_out[i];
    printf("sum %.5e  first %.4e mid %.4e last %.4e\n", total, h_out[0], h_out[nout / 2], h_out[nout - 1]);
    return 0;
}
