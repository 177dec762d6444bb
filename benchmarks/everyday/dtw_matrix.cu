/* Dynamic time warping distance of every query series to every reference series. */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define NQ   96      /* queries          */
#define NR   96      /* references       */
#define LEN  256     /* samples / series */
#define BIG  1e30f

/* one thread = one (query, reference) pair */
__global__ void dtw(float *query, float *ref, float *dist)
{
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= NQ * NR)
        return;

    int q = pair / NR;
    int r = pair % NR;

    float row[LEN + 1];          /* row[j+1] = best cost of ending in column j */
    for (int j = 0; j <= LEN; j++)
        row[j] = BIG;
    row[0] = 0.0f;

    for (int i = 0; i < LEN; i++) {
        float a = query[q * LEN + i];
        float diag = row[0];
        row[0] = BIG;
        for (int j = 0; j < LEN; j++) {
            float cost = fabsf(a - ref[r * LEN + j]);
            float up = row[j + 1];
            float best = fminf(fminf(up, row[j]), diag);
            diag = up;
            row[j + 1] = cost + best;
        }
    }
    dist[pair] = row[LEN];
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

    int threads = 64;
    int blocks = (NQ * NR + threads - 1) / threads;
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
