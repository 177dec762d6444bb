// Many small symmetric positive definite systems A x = b: Cholesky + solve.
// One thread handles one system; systems are stored one after another.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define N      16
#define BATCH  100000

template <int DIM>
__device__ float &at(float *A, int row, int col)
{
    return A[row * DIM + col];
}

template <int DIM>
__device__ bool factorize(float *A)
{
    for (int j = 0; j < DIM; j++) {
        float d = at<DIM>(A, j, j);
        for (int k = 0; k < j; k++)
            d -= at<DIM>(A, j, k) * at<DIM>(A, j, k);
        if (d <= 0.0f) return false;
        float root = sqrtf(d);
        at<DIM>(A, j, j) = root;
        for (int i = j + 1; i < DIM; i++) {
            float s = at<DIM>(A, i, j);
            for (int k = 0; k < j; k++)
                s -= at<DIM>(A, i, k) * at<DIM>(A, j, k);
            at<DIM>(A, i, j) = s / root;
        }
    }
    return true;
}

template <int DIM>
__device__ void solveLower(float *L, float *x)
{
    for (int i = 0; i < DIM; i++) {
        float s = x[i];
        for (int k = 0; k < i; k++) s -= at<DIM>(L, i, k) * x[k];
        x[i] = s / at<DIM>(L, i, i);
    }
}

template <int DIM>
__device__ void solveUpper(float *L, float *x)
{
    for (int i = DIM - 1; i >= 0; i--) {
        float s = x[i];
        for (int k = i + 1; k < DIM; k++) s -= at<DIM>(L, k, i) * x[k];
        x[i] = s / at<DIM>(L, i, i);
    }
}

template <int DIM>
__global__ void choleskySolve(float *matrices, const float *rhs, float *solutions,
                              float *logdet, int *failed, int batch)
{
    int sys = threadIdx.x + blockIdx.x * blockDim.x;
    if (sys >= batch) return;

    float *A = matrices + (size_t)sys * DIM * DIM;
    float *x = solutions + (size_t)sys * DIM;
    for (int i = 0; i < DIM; i++) x[i] = rhs[(size_t)sys * DIM + i];

    if (!factorize<DIM>(A)) {
        atomicAdd(failed, 1);
        logdet[sys] = 0.0f;
        return;
    }
    solveLower<DIM>(A, x);
    solveUpper<DIM>(A, x);

    float ld = 0.0f;
    for (int i = 0; i < DIM; i++) ld += logf(at<DIM>(A, i, i));
    logdet[sys] = 2.0f * ld;
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

    int threads = 128;
    int blocks = (BATCH + threads - 1) / threads;
    choleskySolve<N><<<blocks, threads>>>(dA, db, dx, dld, dfailed, BATCH);

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
