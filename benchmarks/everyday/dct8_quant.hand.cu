// JPEG-like front end: level shift, 8x8 DCT of every block, quantisation, count of non-zeros.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define B 8
#define IMG_W 4096
#define IMG_H 2048
#define PIXELS (IMG_W * IMG_H)

#define STRIP 256      // columns per thread block = threads per thread block

__constant__ float invQuant[B][B];

// 0.5 * cos(k pi / 16)
#define K1 0.49039264f
#define K2 0.46193977f
#define K3 0.41573481f
#define K4 0.35355339f
#define K5 0.27778512f
#define K6 0.19134172f
#define K7 0.09754516f

__device__ __forceinline__ void dct1d(float (&d)[B])
{
    const float e0 = d[0] + d[7], e1 = d[1] + d[6], e2 = d[2] + d[5], e3 = d[3] + d[4];
    const float o0 = d[0] - d[7], o1 = d[1] - d[6], o2 = d[2] - d[5], o3 = d[3] - d[4];
    d[0] = K4 * ((e0 + e3) + (e1 + e2));
    d[4] = K4 * ((e0 + e3) - (e1 + e2));
    d[2] = K2 * (e0 - e3) + K6 * (e1 - e2);
    d[6] = K6 * (e0 - e3) - K2 * (e1 - e2);
    d[1] = K1 * o0 + K3 * o1 + K5 * o2 + K7 * o3;
    d[3] = K3 * o0 - K7 * o1 - K1 * o2 - K5 * o3;
    d[5] = K5 * o0 - K1 * o1 + K7 * o2 + K3 * o3;
    d[7] = K7 * o0 - K5 * o1 + K3 * o2 - K1 * o3;
}

// A thread block transforms 32 image blocks (8 rows x 256 columns): rows from registers, then
// columns through shared memory, quantisation and counting on the way out.
__global__ void __launch_bounds__(STRIP)
dctQuantCount(const unsigned char *__restrict__ img, short *__restrict__ out, int *__restrict__ nonzero)
{
    __shared__ __align__(16) float tile[B][STRIP];
    __shared__ int warpCount[STRIP / 32];
    const int t = threadIdx.x;
    const int x0 = blockIdx.x * STRIP;
    const int y0 = blockIdx.y * B;
    float d[B];

    {   // warp = image row, lane = image block
        const int row = t >> 5, blk = t & 31;
        const uint2 p = *reinterpret_cast<const uint2 *>(img + (y0 + row) * IMG_W + x0 + blk * B);
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            d[k]     = (float)((p.x >> (8 * k)) & 255u) - 128.0f;
            d[k + 4] = (float)((p.y >> (8 * k)) & 255u) - 128.0f;
        }
        dct1d(d);
        float4 *dst = reinterpret_cast<float4 *>(&tile[row][blk * B]);
        dst[0] = make_float4(d[0], d[1], d[2], d[3]);
        dst[1] = make_float4(d[4], d[5], d[6], d[7]);
    }
    __syncthreads();

    #pragma unroll
    for (int k = 0; k < B; k++)
        d[k] = tile[k][t];
    dct1d(d);

    const int u = t % B;
    int count = 0;
    #pragma unroll
    for (int v = 0; v < B; v++) {
        const short s = (short)__float2int_rn(d[v] * invQuant[v][u]);
        out[(y0 + v) * IMG_W + x0 + t] = s;
        count += s != 0;
    }
    count = __reduce_add_sync(0xffffffffu, count);
    if ((t & 31) == 0) warpCount[t >> 5] = count;
    __syncthreads();
    if (t == 0) {
        int total = 0;
        #pragma unroll
        for (int w = 0; w < STRIP / 32; w++) total += warpCount[w];
        atomicAdd(nonzero, total);
    }
}

static void makeTables(float iq[B][B])
{
    for (int v = 0; v < B; v++)
        for (int u = 0; u < B; u++)
            iq[v][u] = 1.0f / (5.137f + 2.713f * (u + v));
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

    float iq[B][B];
    makeTables(iq);
    cudaMemcpyToSymbol(invQuant, iq, sizeof(iq));

    unsigned char *dImg;
    short *dQ;
    int *dCount;
    cudaMalloc((void **)&dImg, PIXELS);
    cudaMalloc((void **)&dQ, PIXELS * sizeof(short));
    cudaMalloc((void **)&dCount, sizeof(int));
    cudaMemcpy(dImg, img, PIXELS, cudaMemcpyHostToDevice);
    cudaMemset(dCount, 0, sizeof(int));

    dctQuantCount<<<dim3(IMG_W / STRIP, IMG_H / B), STRIP>>>(dImg, dQ, dCount);

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
    cudaFree(dQ);
    cudaFree(dCount);
    free(img);
    free(q);
    return 0;
}
