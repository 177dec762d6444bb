// For every query vector find the database vector with the highest cosine similarity.
#include <iostream>
#include <cstdio>
#include <cmath>
#include <vector>
using namespace std;

const int M = 2000;    // queries
const int N = 3000;    // database vectors
const int D = 192;     // dimensions

__device__ float dotProduct(const float *a, const float *b, int n)
{
    float s = 0.0f;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

__global__ void similarity(const float *A, const float *B, float *S, int m, int n, int d)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && col < n) {
        const float *a = A + (long long)row * d;
        const float *b = B + (long long)col * d;
        float ab = dotProduct(a, b, d);
        float na = sqrtf(dotProduct(a, a, d));
        float nb = sqrtf(dotProduct(b, b, d));
        S[(long long)row * n + col] = ab / (na * nb + 1e-8f);
    }
}

__global__ void bestMatch(const float *S, int *index, float *score, int m, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) return;
    float best = -2.0f;
    int bestCol = -1;
    for (int col = 0; col < n; col++) {
        float s = S[(long long)row * n + col];
        if (s > best) {
            best = s;
            bestCol = col;
        }
    }
    index[row] = bestCol;
    score[row] = best;
}

unsigned int state = 777;
float rnd()   // in [-1, 1)
{
    state = 1664525u * state + 1013904223u;
    return (float)(state >> 9) / 4194304.0f - 1.0f;
}

int main()
{
    vector<float> A(M * D), B(N * D);
    for (size_t i = 0; i < A.size(); i++) A[i] = rnd();
    for (size_t i = 0; i < B.size(); i++) B[i] = rnd();
    // hide a noisy copy of each query somewhere in the database
    for (int i = 0; i < M; i++) {
        int j = (i * 7 + 11) % N;
        float scale = 1.5f + rnd();
        for (int k = 0; k < D; k++)
            B[j * D + k] = scale * (A[i * D + k] + 0.6f * rnd());
    }

    float *dA, *dB, *dS, *dScore;
    int *dIndex;
    cudaMalloc(&dA, A.size() * sizeof(float));
    cudaMalloc(&dB, B.size() * sizeof(float));
    cudaMalloc(&dS, (size_t)M * N * sizeof(float));
    cudaMalloc(&dScore, M * sizeof(float));
    cudaMalloc(&dIndex, M * sizeof(int));
    cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dB, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice);

    dim3 threads(16, 16);
    dim3 blocks((N + 15) / 16, (M + 15) / 16);
    similarity<<<blocks, threads>>>(dA, dB, dS, M, N, D);
    bestMatch<<<(M + 127) / 128, 128>>>(dS, dIndex, dScore, M, N);

    vector<int> index(M);
    vector<float> score(M);
    cudaMemcpy(index.data(), dIndex, M * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(score.data(), dScore, M * sizeof(float), cudaMemcpyDeviceToHost);
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) {
        cout << "CUDA: " << cudaGetErrorString(e) << endl;
        return 1;
    }

    long long hash = 0;
    double sum = 0.0;
    for (int i = 0; i < M; i++) {
        hash = (hash * 31 + index[i]) % 1000000007LL;
        sum += score[i];
    }
    printf("index hash %lld\n", hash);
    printf("score sum  %.4e\n", sum);

    cudaFree(dA); cudaFree(dB); cudaFree(dS); cudaFree(dScore); cudaFree(dIndex);
    return 0;
}
