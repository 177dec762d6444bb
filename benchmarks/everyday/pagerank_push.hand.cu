// PageRank, "push" formulation: every page hands its rank out along its links.
// Graph is in CSR form (outgoing links).  Pages without links are "dangling".
#include <cstdio>
#include <cstdlib>
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

// Sum (x, y) over the block; valid in thread 0.  blockDim.x must be BLOCK.
static const int BLOCK = 256;

__device__ __forceinline__ void blockSum2(double &x, double &y)
{
    __shared__ double sx[BLOCK / 32], sy[BLOCK / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        x += __shfl_down_sync(0xffffffffu, x, o);
        y += __shfl_down_sync(0xffffffffu, y, o);
    }
    if (lane == 0) { sx[warp] = x; sy[warp] = y; }
    __syncthreads();
    if (threadIdx.x == 0) {
        x = 0.0; y = 0.0;
        #pragma unroll
        for (int w = 0; w < BLOCK / 32; ++w) { x += sx[w]; y += sy[w]; }
    }
}

// rank = 1/n, share = rank/deg, next = 0, dangling mass of the start vector
__global__ void __launch_bounds__(BLOCK)
start(Graph g, float *__restrict__ rank, float *__restrict__ share, float *__restrict__ next,
      double *__restrict__ dangling)
{
    const u32 v = blockIdx.x * BLOCK + threadIdx.x;
    double lost = 0.0, unused = 0.0;
    if (v < g.n) {
        const u32 deg = g.row[v + 1] - g.row[v];
        const float r = 1.0f / (float)g.n;
        rank[v]  = r;
        next[v]  = 0.0f;
        share[v] = deg ? r / (float)deg : 0.0f;
        if (deg == 0) lost = r;
    }
    blockSum2(lost, unused);
    if (threadIdx.x == 0 && lost != 0.0) atomicAdd(dangling, lost);
}

// 8 lanes per page: link reads are whole sectors, hubs are split over the lanes
__global__ void __launch_bounds__(BLOCK)
push(Graph g, const float *__restrict__ share, float *__restrict__ next)
{
    const u32 t = blockIdx.x * BLOCK + threadIdx.x;
    const u32 v = t >> 3, l = t & 7u;
    if (v >= g.n) return;
    const u32 last = g.row[v + 1];
    u32 k = g.row[v] + l;
    if (k >= last) return;
    const float s = share[v];
    for (; k < last; k += 8)
        atomicAdd(&next[g.col[k]], s);
}

// new rank, movement, dangling mass of the new rank, share for the next push, next = 0
__global__ void __launch_bounds__(BLOCK)
finish(Graph g, float *__restrict__ rank, float *__restrict__ share, float *__restrict__ next,
       const double *__restrict__ danglingIn, double *__restrict__ danglingOut,
       double *__restrict__ moved, float damping)
{
    const u32 v = blockIdx.x * BLOCK + threadIdx.x;
    double lost = 0.0, move = 0.0;
    if (v < g.n) {
        const float add = (float)(*danglingIn) / (float)g.n;
        const u32 deg = g.row[v + 1] - g.row[v];
        const float old = rank[v];
        const float r = (1.0f - damping) / (float)g.n + damping * (next[v] + add);
        rank[v]  = r;
        next[v]  = 0.0f;
        share[v] = deg ? r / (float)deg : 0.0f;
        move = fabsf(old - r);
        if (deg == 0) lost = r;
    }
    blockSum2(lost, move);
    if (threadIdx.x == 0) {
        atomicAdd(moved, move);
        if (lost != 0.0) atomicAdd(danglingOut, lost);
    }
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

    float *rank, *next, *share;
    double *dangling, *moved;                 // dangling: one slot per iteration
    cudaMalloc(&rank, n * sizeof(float));
    cudaMalloc(&next, n * sizeof(float));
    cudaMalloc(&share, n * sizeof(float));
    cudaMalloc(&dangling, (ITERATIONS + 1) * sizeof(double));
    cudaMalloc(&moved, sizeof(double));
    cudaMemset(dangling, 0, (ITERATIONS + 1) * sizeof(double));
    cudaMemset(moved, 0, sizeof(double));

    const u32 grid     = (n + BLOCK - 1) / BLOCK;
    const u32 gridPush = (n * 8 + BLOCK - 1) / BLOCK;

    start<<<grid, BLOCK>>>(g, rank, share, next, dangling);
    for (int it = 0; it < ITERATIONS; ++it) {
        push<<<gridPush, BLOCK>>>(g, share, next);
        finish<<<grid, BLOCK>>>(g, rank, share, next, dangling + it, dangling + it + 1, moved, DAMPING);
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
    cudaFree(share);
    cudaFree(dangling);
    cudaFree(moved);
    return 0;
}
