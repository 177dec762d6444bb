// All-pairs shortest paths of a random directed graph with 1024 nodes. By hand: blocked Floyd-Warshall in
// tiles of 64. The diagonal tile is closed in registers, its row and column are min-plus products with it, the
// other tiles are one product each, and the next diagonal tile is closed by the block that updates it last.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int INF = 1 << 29, N = 1024, B = 64, TILES = N / B, PITCH = B + 4;

__device__ __forceinline__ int4& vec(int* p) { return *reinterpret_cast<int4*>(p); }

// A thread holds c[i][j] = tile(ty + 16 i, 4 tx + j), 256 threads a tile.
__device__ __forceinline__ void stage(int* smem, const int* tile)
{
#pragma unroll
    for (int i = threadIdx.x; i < B * B / 4; i += 256)
        vec(smem + i / 16 * PITCH + i % 16 * 4) = *reinterpret_cast<const int4*>(tile + i / 16 * N + i % 16 * 4);
}

__device__ __forceinline__ void min_plus(int c[4][4], int* a, int* b)
{
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
#pragma unroll 4
    for (int k = 0; k < B; k += 4) {
        int4 row[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            row[i] = vec(b + (k + i) * PITCH + 4 * tx);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int4 v = vec(a + (ty + 16 * i) * PITCH + k);
            const int left[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int m = 0; m < 4; m++) {
                c[i][0] = __viaddmin_s32(left[m], row[m].x, c[i][0]);
                c[i][1] = __viaddmin_s32(left[m], row[m].y, c[i][1]);
                c[i][2] = __viaddmin_s32(left[m], row[m].z, c[i][2]);
                c[i][3] = __viaddmin_s32(left[m], row[m].w, c[i][3]);
            }
        }
    }
}

// Floyd-Warshall inside a tile; node k's row and column go through alternating shared buffers.
__device__ __forceinline__ void close_tile(int c[4][4], int* buffer)
{
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll 1
        for (int r = 0; r < 16; r += 4)
#pragma unroll
            for (int m = 0; m < 4; m++) {
                int* line = buffer + (m & 1) * 2 * B;
                int* column = line + B;
                if (ty == r + m)
                    vec(line + 4 * tx) = make_int4(c[q][0], c[q][1], c[q][2], c[q][3]);
                if (tx == q * 4 + r / 4)
                    vec(column + 4 * ty) = make_int4(c[0][m], c[1][m], c[2][m], c[3][m]);
                __syncthreads();
                const int4 x = vec(line + 4 * tx), y = vec(column + 4 * ty);
                const int right[4] = {x.x, x.y, x.z, x.w}, left[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
                for (int e = 0; e < 16; e++)
                    c[e / 4][e % 4] = __viaddmin_s32(left[e / 4], right[e % 4], c[e / 4][e % 4]);
            }
}

// Phase 0 closes the first diagonal tile, phase 1 updates row and column t, phase 2 everything else.
template <int PHASE>
__global__ void __launch_bounds__(256) blocked(int* dist, int t)
{
    __shared__ __align__(16) int a[B * PITCH], b[B * PITCH];
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    int i = t, j = t;  // this block's tile
    if (PHASE == 2 || (PHASE == 1 && blockIdx.y == 1)) i = (t + 1 + (PHASE == 2 ? blockIdx.y : blockIdx.x)) % TILES;
    if (PHASE == 2 || (PHASE == 1 && blockIdx.y == 0)) j = (t + 1 + blockIdx.x) % TILES;
    int* tile = dist + (i * B + ty) * N + j * B + 4 * tx;
    if (PHASE > 0) {
        stage(a, dist + i * B * N + t * B);
        stage(b, dist + t * B * N + j * B);
    }
    int c[4][4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int4 v = vec(tile + 16 * r * N);
        c[r][0] = v.x, c[r][1] = v.y, c[r][2] = v.z, c[r][3] = v.w;
    }
    __syncthreads();
    if (PHASE > 0) min_plus(c, a, b);
    if (PHASE == 2) __syncthreads();
    if (PHASE == 0 || (PHASE == 2 && i == t + 1 && j == t + 1)) close_tile(c, a);
#pragma unroll
    for (int r = 0; r < 4; r++)
        vec(tile + 16 * r * N) = make_int4(c[r][0], c[r][1], c[r][2], c[r][3]);
}

int main()
{
    const int n = N, degree = 6;
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

    blocked<0><<<1, 256>>>(d_dist, 0);
    for (int t = 0; t < TILES; t++) {
        blocked<1><<<dim3(TILES - 1, 2), 256>>>(d_dist, t);
        blocked<2><<<dim3(TILES - 1, TILES - 1), 256>>>(d_dist, t);
    }

    cudaMemcpy(dist.data(), d_dist, n * n * sizeof(int), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess)
        return 1;
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
