// JPEG-like front end: level shift, 8x8 DCT of every block, quantisation, count of non-zeros.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define B 8
#define IMG_W 4096
#define IMG_H 2048
#define PIXELS (IMG_W * IMG_H)

__constant__ float cosTable[B][B];    // cosTable[u][x] = a(u)/2 * cos((2x+1) u pi / 16)
__constant__ float quantTable[B][B];

// one thread = one coefficient, one 8x8 thread block = one 8x8 image block
__global__ void dctKernel(const unsigned char *img, float *coef)
{
    int u = threadIdx.x;
    int v = threadIdx.y;
    int x0 = blockIdx.x * B;
    int y0 = blockIdx.y * B;

    float sum = 0.0f;
    for (int y = 0; y < B; y++)
        for (int x = 0; x < B; x++) {
            float p = (float)img[(y0 + y) * IMG_W + (x0 + x)] - 128.0f;
            sum += p * cosTable[u][x] * cosTable[v][y];
        }
    coef[(y0 + v) * IMG_W + (x0 + u)] = sum;
}

__global__ void quantKernel(const float *coef, short *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < IMG_W && y < IMG_H)
        out[y * IMG_W + x] = (short)rintf(coef[y * IMG_W + x] / quantTable[y % B][x % B]);
}

__global__ void countKernel(const short *q, int *nonzero)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < PIXELS && q[i] != 0)
        atomicAdd(nonzero, 1);
}

static void makeTables(float c[B][B], float q[B][B])
{
    for (int u = 0; u < B; u++)
        for (int x = 0; x < B; x++)
            c[u][x] = (float)((u == 0 ? sqrt(0.5) : 1.0) * 0.5 * cos((2 * x + 1) * u * 3.14159265358979323846 / 16.0));
    for (int v = 0; v < B; v++)
        for (int u = 0; u < B; u++)
            q[v][u] = 5.137f + 2.713f * (u + v);
}

int main()
{
    unsigned char *img = (unsigned char *)malloc(PIXELS);
    short *q = (short *)malloc(PIXELS * sizeof(short));

    unsigned int r = 4711;
    for (int y = 0; y < IMG_H; y++)
        for (int x = 0; x < IMG_W; x++) {
            r = r * 1664525u + 1013904223u;
            int smooth = (x * 3 + y * 2) / 16 & 127;
            int edge = ((x / 50 + y / 30) & 3) == 0 ? 60 : 0;
            img[y * IMG_W + x] = (unsigned char)(smooth + edge + (r >> 27));
        }

    float c[B][B], qt[B][B];
    makeTables(c, qt);
    cudaMemcpyToSymbol(cosTable, c, sizeof(c));
    cudaMemcpyToSymbol(quantTable, qt, sizeof(qt));

    unsigned char *dImg;
    float *dCoef;
    short *dQ;
    int *dCount;
    cudaMalloc((void **)&dImg, PIXELS);
    cudaMalloc((void **)&dCoef, PIXELS * sizeof(float));
    cudaMalloc((void **)&dQ, PIXELS * sizeof(short));
    cudaMalloc((void **)&dCount, sizeof(int));
    cudaMemcpy(dImg, img, PIXELS, cudaMemcpyHostToDevice);
    cudaMemset(dCount, 0, sizeof(int));

    dctKernel<<<dim3(IMG_W / B, IMG_H / B), dim3(B, B)>>>(dImg, dCoef);
    quantKernel<<<dim3(IMG_W / 32, IMG_H / 8), dim3(32, 8)>>>(dCoef, dQ);
    countKernel<<<PIXELS / 256, 256>>>(dQ, dCount);

    int nonzero = 0;
    cudaMemcpy(q, dQ, PIXELS * sizeof(short), cudaMemcpyDeviceToHost);
    cudaMemcpy(&nonzero, dCount, sizeof(int), cudaMemcpyDeviceToHost);
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(err));
        return 1;
    }

    double energy = 0, absSum = 0, byPos = 0;
    int dcMin = 32767, dcMax = -32768;
    for (int y = 0; y < IMG_H; y++)
        for (int x = 0; x < IMG_W; x++) {
            int s = q[y * IMG_W + x];
            energy += (double)s * s;
            absSum += abs(s);
            byPos += (double)abs(s) * ((y % B) * B + x % B) * (1 + (x / B) % 3);
            if (x % B == 0 && y % B == 0) {
                if (s < dcMin) dcMin = s;
                if (s > dcMax) dcMax = s;
            }
        }
    printf("nonzero   %.4g thousand\n", nonzero / 1000.0);
    printf("energy    %.3e\n", energy);
    printf("abs sum   %.4e\n", absSum);
    printf("by pos    %.4e\n", byPos);
    printf("dc range  %d\n", dcMax - dcMin);

    cudaFree(dImg);
    cudaFree(dCoef);
    cudaFree(dQ);
    cudaFree(dCount);
    free(img);
    free(q);
    return 0;
}
