// All-pairs shortest paths of a random directed graph with 1024 nodes (Floyd-Warshall, in place, one
// launch for every intermediate node).
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

static const int INF = 1 << 29;

__global__ void relax(int* dist, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n)
        return;
    int through = dist[i * n + k] + dist[k * n + j];
    if (through < dist[i * n + j])
        dist[i * n + j] = through;
}

int main()
{
    const int n = 1024, degree = 6;
    std::vector<int> dist(n * n, INF);
    unsigned s = 31337u;
    for (int i = 0; i < n; i++) {
        dist[i * n + i] = 0;
        for (int e = 0; e < degree; e++) {
            s = s * 1103515245u + 12345u;
            int j = (s >> 12) % n;
            s = s * 1103515245u + 12345u;
            int w = 1 + (s >> 12) % 1000;
            if (i % 50 != 7 && w < dist[i * n + j])
                dist[i * n + j] = w;
        }
    }

    int* d_dist;
    cudaMalloc(&d_dist, n * n * sizeof(int));
    cudaMemcpy(d_dist, dist.data(), n * n * sizeof(int), cudaMemcpyHostToDevice);

    dim3 block(16, 16);
    dim3 grid(n / block.x, n / block.y);
    for (int k = 0; k < n; k++)
        relax<<<grid, block>>>(d_dist, n, k);

    cudaMemcpy(dist.data(), d_dist, n * n * sizeof(int), cudaMemcpyDeviceToHost);
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) {
        printf("error %s\n", cudaGetErrorString(err));
        return 1;
    }
    double sum = 0.0, weighted = 0.0, reached = 0.0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (dist[i * n + j] < INF) {
                sum += dist[i * n + j];
                weighted += (double)dist[i * n + j] * (1 + (3 * i + j) % 29);
                reached += 1.0;
            }
    printf("pairs %.6e\nsum %.6e\nweighted %.6e\n", reached, sum, weighted);
    cudaFree(d_dist);
    return 0;
}
