// Many small symmetric positive definite systems A x = b: Cholesky + solve.
// 16 lanes handle one system, a row of the matrix in the registers of each lane.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define N      16
#define BATCH  100000

#define THREADS 256
#define SYS_PER_BLOCK (THREADS / N)
#define PAD 17

static_assert(N == 16, "half a warp per system");

__global__ void __launch_bounds__(THREADS)
choleskySolve(const float *__restrict__ matrices, const float *__restrict__ rhs,
              float *__restrict__ solutions, float *__restrict__ logdet, int *failed, int batch)
{
    __shared__ float tr[SYS_PER_BLOCK * N * PAD];
    const unsigned full = 0xffffffffu;
    const int lane = threadIdx.x % N;
    const int local = threadIdx.x / N;
    const int sysWanted = blockIdx.x * SYS_PER_BLOCK + local;
    const bool valid = sysWanted < batch;
    const int sys = valid ? sysWanted : batch - 1;

    float a[N];
    const float4 *src = (const float4 *)(matrices + (size_t)sys * N * N + lane * N);
#pragma unroll
    for (int q = 0; q < N / 4; q++) {
        float4 v = src[q];
        a[4 * q] = v.x; a[4 * q + 1] = v.y; a[4 * q + 2] = v.z; a[4 * q + 3] = v.w;
    }
    const float b = rhs[(size_t)sys * N + lane];

    // right-looking factorization; entries above the diagonal become garbage that nobody reads
    bool ok = true;
    float diag = 1.0f, diagInv = 1.0f;
#pragma unroll
    for (int j = 0; j < N; j++) {
        float d = __shfl_sync(full, a[j], j, N);
        ok = ok && d > 0.0f;
        float inv = rsqrtf(d);
        float l = a[j] * inv;              // on lane j this is d / sqrt(d) = sqrt(d)
        if (lane == j) { diag = l; diagInv = inv; }
        a[j] = l;
#pragma unroll
        for (int k = j + 1; k < N; k++) a[k] -= l * __shfl_sync(full, l, k, N);
    }

    // transpose L through shared memory for the backward substitution
    float *T = tr + local * N * PAD;
#pragma unroll
    for (int k = 0; k < N; k++) T[lane * PAD + k] = a[k];
    __syncwarp();

    float y = b;
#pragma unroll
    for (int j = 0; j < N; j++) {
        float yj = __shfl_sync(full, y * diagInv, j, N);
        if (lane > j) y -= a[j] * yj;
        if (lane == j) y = yj;
    }
#pragma unroll
    for (int i = N - 1; i >= 0; i--) {
        float xi = __shfl_sync(full, y * diagInv, i, N);
        if (lane < i) y -= T[i * PAD + lane] * xi;
        if (lane == i) y = xi;
    }

    float ld = logf(diag);
#pragma unroll
    for (int o = N / 2; o > 0; o /= 2) ld += __shfl_xor_sync(full, ld, o);

    if (!valid) return;
    solutions[(size_t)sys * N + lane] = ok ? y : b;
    if (lane == 0) {
        logdet[sys] = ok ? 2.0f * ld : 0.0f;
        if (!ok) atomicAdd(failed, 1);
    }
}

unsigned int rngState = 7u;
float frand(void)
{
    rngState = rngState * 1103515245u + 12345u;
    return ((rngState >> 8) & 0xFFFF) / 65536.0f;
}

int main(void)
{
    size_t matBytes = sizeof(float) * N * N * (size_t)BATCH;
    size_t vecBytes = sizeof(float) * N * (size_t)BATCH;
    float *hA = (float *)malloc(matBytes);
    float *hb = (float *)malloc(vecBytes);
    float *hx = (float *)malloc(vecBytes);
    float *hld = (float *)malloc(sizeof(float) * BATCH);
    int hfailed = 0;

    for (size_t s = 0; s < BATCH; s++) {
        float *A = hA + s * N * N;
        for (int i = 0; i < N; i++)
            for (int j = 0; j <= i; j++) {
                float v = frand() - 0.5f;
                A[i * N + j] = v;
                A[j * N + i] = v;
            }
        for (int i = 0; i < N; i++) A[i * N + i] = 6.0f + 4.0f * frand();
        for (int i = 0; i < N; i++) hb[s * N + i] = 2.0f * frand() - 1.0f;
    }

    float *dA, *db, *dx, *dld;
    int *dfailed;
    cudaMalloc((void **)&dA, matBytes);
    cudaMalloc((void **)&db, vecBytes);
    cudaMalloc((void **)&dx, vecBytes);
    cudaMalloc((void **)&dld, sizeof(float) * BATCH);
    cudaMalloc((void **)&dfailed, sizeof(int));
    cudaMemcpy(dA, hA, matBytes, cudaMemcpyHostToDevice);
    cudaMemcpy(db, hb, vecBytes, cudaMemcpyHostToDevice);
    cudaMemset(dfailed, 0, sizeof(int));

    int blocks = (BATCH + SYS_PER_BLOCK - 1) / SYS_PER_BLOCK;
    choleskySolve<<<blocks, THREADS>>>(dA, db, dx, dld, dfailed, BATCH);

    cudaMemcpy(hx, dx, vecBytes, cudaMemcpyDeviceToHost);
    cudaMemcpy(hld, dld, sizeof(float) * BATCH, cudaMemcpyDeviceToHost);
    cudaMemcpy(&hfailed, dfailed, sizeof(int), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { printf("cuda error\n"); return 1; }

    double sx = 0, sxx = 0, sld = 0;
    for (size_t i = 0; i < (size_t)BATCH * N; i++) { sx += fabs(hx[i]); sxx += (double)hx[i] * hx[i]; }
    for (int s = 0; s < BATCH; s++) sld += hld[s];
    printf("failed systems: %d\n", hfailed);
    printf("sum |x| = %.4e, sum x^2 = %.4e\n", sx, sxx);
    printf("sum logdet = %.4e\n", sld);

    cudaFree(dA); cudaFree(db); cudaFree(dx); cudaFree(dld); cudaFree(dfailed);
    free(hA); free(hb); free(hx); free(hld);
    return 0;
}
