/* Dynamic time warping distance of every query series to every reference series. */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define NQ   96      /* queries          */
#define NR   96      /* references       */
#define LEN  256     /* samples / series */
#define BIG  1e30f

/* One warp = one (query, reference) pair.  Lane l owns columns 8l..8l+7 in registers and works
   on row step-l, so the warp sweeps an anti-diagonal front; the left neighbour comes by shuffle. */
#define WARPS 4
#define COLS  (LEN / 32)

__global__ void __launch_bounds__(WARPS * 32)
dtw(const float *__restrict__ query, const float *__restrict__ ref, float *__restrict__ dist)
{
    __shared__ __align__(16) float sq[WARPS][LEN];
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int pair = blockIdx.x * WARPS + warp;
    if (pair >= NQ * NR)
        return;                                   /* whole warp leaves together */

    const int q = pair / NR;
    const int r = pair % NR;

    const float4 *gq = reinterpret_cast<const float4 *>(query + q * LEN);
    const float4 *gr = reinterpret_cast<const float4 *>(ref + r * LEN);
    float4 *s4 = reinterpret_cast<float4 *>(sq[warp]);
    #pragma unroll
    for (int k = 0; k < LEN / 128; k++)
        s4[lane + 32 * k] = gq[lane + 32 * k];

    float b[COLS], row[COLS];
    #pragma unroll
    for (int k = 0; k < COLS / 4; k++) {
        float4 t = gr[lane * (COLS / 4) + k];
        b[4 * k + 0] = t.x;
        b[4 * k + 1] = t.y;
        b[4 * k + 2] = t.z;
        b[4 * k + 3] = t.w;
    }
    #pragma unroll
    for (int c = 0; c < COLS; c++)
        row[c] = BIG;
    __syncwarp();

    float diagIn = lane == 0 ? 0.0f : BIG;
    for (int step = 0; step < LEN + 31; step++) {
        float leftIn = __shfl_up_sync(0xffffffffu, row[COLS - 1], 1);
        if (lane == 0) leftIn = BIG;
        const int i = step - lane;
        if (i >= 0 && i < LEN) {
            const float a = sq[warp][i];
            float left = leftIn, diag = diagIn;
            #pragma unroll
            for (int c = 0; c < COLS; c++) {
                const float up = row[c];
                const float v = fabsf(a - b[c]) + fminf(fminf(up, left), diag);
                diag = up;
                row[c] = v;
                left = v;
            }
            diagIn = leftIn;
        }
    }
    if (lane == 31)
        dist[pair] = row[COLS - 1];
}

int main()
{
    float *query = (float *)malloc(NQ * LEN * sizeof(float));
    float *ref   = (float *)malloc(NR * LEN * sizeof(float));
    float *dist  = (float *)malloc(NQ * NR * sizeof(float));

    /* noisy sine waves of many frequencies and phases */
    unsigned int seed = 1;
    for (int s = 0; s < NQ + NR; s++) {
        float *p = s < NQ ? query + s * LEN : ref + (s - NQ) * LEN;
        float freq = 0.02f + 0.001f * (s * 37 % 100);
        float phase = 0.1f * (s * 11 % 63);
        for (int i = 0; i < LEN; i++) {
            seed = seed * 1103515245u + 12345u;
            float noise = (float)((seed >> 16) & 1023) / 1023.0f;
            p[i] = sinf(freq * i + phase) + 0.3f * noise;
        }
    }

    float *d_query, *d_ref, *d_dist;
    cudaMalloc(&d_query, NQ * LEN * sizeof(float));
    cudaMalloc(&d_ref, NR * LEN * sizeof(float));
    cudaMalloc(&d_dist, NQ * NR * sizeof(float));
    cudaMemcpy(d_query, query, NQ * LEN * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_ref, ref, NR * LEN * sizeof(float), cudaMemcpyHostToDevice);

    int threads = WARPS * 32;
    int blocks = (NQ * NR + WARPS - 1) / WARPS;
    dtw<<<blocks, threads>>>(d_query, d_ref, d_dist);

    cudaMemcpy(dist, d_dist, NQ * NR * sizeof(float), cudaMemcpyDeviceToHost);
    printf("status: %s\n", cudaGetErrorString(cudaGetLastError()));

    double sum = 0, weighted = 0;
    float largest = 0;
    long nearest_sum = 0;
    for (int q = 0; q < NQ; q++) {
        int best = 0;
        for (int r = 0; r < NR; r++) {
            float d = dist[q * NR + r];
            sum += d;
            weighted += d * ((q + 3 * r) % 7);
            if (d > largest) largest = d;
            if (d < dist[q * NR + best]) best = r;
        }
        nearest_sum += (long)best * (q + 1);
    }
    printf("sum %.5g weighted %.5g max %.2f nearest %ld\n", sum, weighted, largest, nearest_sum);

    cudaFree(d_query);
    cudaFree(d_ref);
    cudaFree(d_dist);
    free(query);
    free(ref);
    free(dist);
    return 0;
}
