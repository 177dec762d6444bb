// Inverse of many 8x8 matrices by Gauss-Jordan with partial pivoting, one matrix per thread
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned int uint;
const int N = 8;

__global__ void invert(const float* A, float* Ainv, float* det, uint count)
{
    uint m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count) return;

    float M[N][2 * N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            M[i][j] = A[m * N * N + i * N + j];
            M[i][j + N] = (i == j) ? 1.0f : 0.0f;
        }
    }
    float d = 1.0f;
    for (int k = 0; k < N; k++) {
        // find pivot
        int piv = k;
        for (int i = k + 1; i < N; i++)
            if (fabsf(M[i][k]) > fabsf(M[piv][k])) piv = i;
        if (piv != k) {
            for (int j = 0; j < 2 * N; j++) {
                float t = M[k][j];
                M[k][j] = M[piv][j];
                M[piv][j] = t;
            }
            d = -d;
        }
        float p = M[k][k];
        d *= p;
        for (int j = 0; j < 2 * N; j++) M[k][j] /= p;
        for (int i = 0; i < N; i++) {
            if (i == k) continue;
            float f = M[i][k];
            for (int j = 0; j < 2 * N; j++) M[i][j] -= f * M[k][j];
        }
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            Ainv[m * N * N + i * N + j] = M[i][j + N];
    det[m] = d;
}

int main()
{
    const uint count = 200000;
    std::vector<float> A(count * 64), B(count * 64), det(count);
    uint s = 99;
    for (uint m = 0; m < count; m++) {
        for (int e = 0; e < 64; e++) {
            s = s * 1664525u + 1013904223u;
            A[m * 64 + e] = (s >> 8) / 8388608.0f - 1.0f;
        }
        // a large entry in each row, not on the diagonal, so that pivoting matters
        for (int i = 0; i < 8; i++) A[m * 64 + i * 8 + (3 * i + m) % 8] += 6.0f;
    }
    float *dA, *dB, *dDet;
    cudaMalloc(&dA, A.size() * sizeof(float));
    cudaMalloc(&dB, B.size() * sizeof(float));
    cudaMalloc(&dDet, count * sizeof(float));
    cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice);

    invert<<<(count + 63) / 64, 64>>>(dA, dB, dDet, count);

    cudaMemcpy(B.data(), dB, B.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(det.data(), dDet, count * sizeof(float), cudaMemcpyDeviceToHost);
    double sa = 0, sd = 0;
    for (float v : B) sa += v < 0 ? -v : v;
    for (float v : det) sd += v < 0 ? -v : v;
    printf("sum|inv| = %.4e  sum|det| = %.4e\n", sa, sd);
    printf("inv[0][0]=%.4e inv[777][13]=%.4e inv[last]=%.4e det[5]=%.4e det[6]=%.4e\n",
           B[0], B[777 * 64 + 13], B.back(), det[5], det[6]);
    cudaFree(dA); cudaFree(dB); cudaFree(dDet);
    return 0;
}
