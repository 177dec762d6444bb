// All pairs shortest paths (Floyd-Warshall) in a road-like network, unified memory.
#include <iostream>
#include <cuda_runtime.h>

const int N   = 768;
const int INF = 1000000000;

__global__ void relax(int *d, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) {
        int through = d[i * n + k] + d[k * n + j];
        if (through < d[i * n + j])
            d[i * n + j] = through;
    }
}

// eccentricity = distance to the farthest town that can be reached
__global__ void eccentricity(const int *d, int n, int *ecc, int *reach)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int far = 0, count = 0;
        for (int j = 0; j < n; j++) {
            int v = d[i * n + j];
            if (v < INF) {
                count++;
                if (v > far) far = v;
            }
        }
        ecc[i] = far;
        reach[i] = count;
    }
}

int main()
{
    int *d, *ecc, *reach;
    cudaMallocManaged(&d, N * N * sizeof(int));
    cudaMallocManaged(&ecc, N * sizeof(int));
    cudaMallocManaged(&reach, N * sizeof(int));

    for (int i = 0; i < N * N; i++)
        d[i] = INF;
    unsigned seed = 42;
    for (int i = 0; i < N; i++) {
        d[i * N + i] = 0;
        // one-way roads to nearby towns; every 96 towns there is a border that some roads cross
        for (int e = 0; e < 5; e++) {
            seed = seed * 1664525u + 1013904223u;
            int j = i + (int)((seed >> 20) % 41) - 20;
            seed = seed * 1664525u + 1013904223u;
            int length = 1 + (int)((seed >> 18) % 1000);
            if (j < 0 || j >= N || j == i) continue;
            if (j / 96 != i / 96 && (e != 0 || j < i)) continue;
            if (length < d[i * N + j]) d[i * N + j] = length;
        }
    }

    dim3 threads(16, 16);
    dim3 blocks((N + 15) / 16, (N + 15) / 16);
    for (int k = 0; k < N; k++)
        relax<<<blocks, threads>>>(d, N, k);
    eccentricity<<<(N + 127) / 128, 128>>>(d, N, ecc, reach);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
        std::cerr << cudaGetErrorString(e) << std::endl;
        return 1;
    }

    long long total = 0, weighted = 0, pairs = 0, eccSum = 0;
    int diameter = 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            if (d[i * N + j] < INF) {
                total += d[i * N + j];
                weighted += (long long)d[i * N + j] * ((i * 7 + j * 3) % 11);
            }
        pairs += reach[i];
        eccSum += (long long)ecc[i] * (i % 5 + 1);
        if (ecc[i] > diameter) diameter = ecc[i];
    }
    std::cout << "pairs " << pairs << " total " << total << " weighted " << weighted << std::endl;
    std::cout << "diameter " << diameter << " ecc " << eccSum << std::endl;

    cudaFree(d);
    cudaFree(ecc);
    cudaFree(reach);
    return 0;
}
