// PageRank, "push" formulation: every page hands its rank out along its links.
// Graph is in CSR form (outgoing links).  Pages without links are "dangling".
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned int u32;

struct Graph {
    u32  n;      // pages
    u32  m;      // links
    u32 *row;    // n+1
    u32 *col;    // m
};

static const int   ITERATIONS = 15;
static const float DAMPING    = 0.85f;

__global__ void fill(float *x, float value, u32 n)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i] = value;
}

__global__ void push(Graph g, const float *rank, float *next, double *dangling)
{
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= g.n) return;

    u32 first = g.row[v];
    u32 last  = g.row[v + 1];
    if (first == last) {
        atomicAdd(dangling, (double)rank[v]);
        return;
    }
    float share = rank[v] / (float)(last - first);
    for (u32 k = first; k < last; ++k)
        atomicAdd(&next[g.col[k]], share);
}

__global__ void finish(float *next, const double *dangling, float damping, u32 n)
{
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float lost = (float)(*dangling) / (float)n;
    next[v] = (1.0f - damping) / (float)n + damping * (next[v] + lost);
}

__global__ void movement(const float *a, const float *b, double *moved, u32 n)
{
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    atomicAdd(moved, (double)fabsf(a[v] - b[v]));
}

static u32 rngState = 2463534242u;
static u32 rng()
{
    rngState = rngState * 1664525u + 1013904223u;
    return rngState >> 8;
}

int main()
{
    const u32 n = 200003;

    // a web-like random graph: few hubs, some dangling pages, popular low page numbers
    std::vector<u32> row(n + 1), col;
    row[0] = 0;
    for (u32 v = 0; v < n; ++v) {
        u32 kind = rng() % 1000, deg;
        if (kind < 40)       deg = 0;
        else if (kind == 40) deg = 300 + rng() % 200;
        else                 deg = 2 + rng() % 14;
        for (u32 k = 0; k < deg; ++k) {
            u32 t = rng() % n;
            if ((rng() & 0x30) == 0) t = t % (n / 32);
            col.push_back(t);
        }
        row[v + 1] = (u32)col.size();
    }
    const u32 m = (u32)col.size();

    Graph g;
    g.n = n;
    g.m = m;
    cudaMalloc(&g.row, (n + 1) * sizeof(u32));
    cudaMalloc(&g.col, m * sizeof(u32));
    cudaMemcpy(g.row, row.data(), (n + 1) * sizeof(u32), cudaMemcpyHostToDevice);
    cudaMemcpy(g.col, col.data(), m * sizeof(u32), cudaMemcpyHostToDevice);

    float *rank, *next;
    double *dangling, *moved;
    cudaMalloc(&rank, n * sizeof(float));
    cudaMalloc(&next, n * sizeof(float));
    cudaMalloc(&dangling, sizeof(double));
    cudaMalloc(&moved, sizeof(double));
    cudaMemset(moved, 0, sizeof(double));

    const u32 block = 256;
    const u32 grid  = (n + block - 1) / block;

    fill<<<grid, block>>>(rank, 1.0f / (float)n, n);
    for (int it = 0; it < ITERATIONS; ++it) {
        cudaMemset(dangling, 0, sizeof(double));
        fill<<<grid, block>>>(next, 0.0f, n);
        push<<<grid, block>>>(g, rank, next, dangling);
        finish<<<grid, block>>>(next, dangling, DAMPING, n);
        movement<<<grid, block>>>(rank, next, moved, n);
        std::swap(rank, next);
    }

    std::vector<float> result(n);
    double movedHost = 0.0;
    cudaMemcpy(result.data(), rank, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(&movedHost, moved, sizeof(double), cudaMemcpyDeviceToHost);
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) {
        printf("CUDA error: %s\n", cudaGetErrorString(err));
        return 1;
    }

    double sum = 0.0, weighted = 0.0, best = 0.0, squares = 0.0;
    for (u32 v = 0; v < n; ++v) {
        double r = result[v];
        sum += r;
        weighted += r * (double)(v % 17);
        squares += r * r * n;
        if (r > best) best = r;
    }
    printf("links      %u\n", m);
    printf("sum        %.4f\n", sum);
    printf("weighted   %.3f\n", weighted);
    printf("squares    %.3f\n", squares);
    printf("max*n      %.2f\n", best * n);
    printf("movement   %.4f\n", movedHost);

    cudaFree(g.row);
    cudaFree(g.col);
    cudaFree(rank);
    cudaFree(next);
    cudaFree(dangling);
    cudaFree(moved);
    return 0;
}
