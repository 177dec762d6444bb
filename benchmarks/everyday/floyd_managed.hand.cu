// All pairs shortest paths (Floyd-Warshall) in a road-like network, unified memory.
#include <iostream>
#include <cuda_runtime.h>

const int N   = 768;
const int INF = 1000000000;

// Blocked Floyd-Warshall: 64x64 tiles in shared memory, 16x16 threads with 4x4 cells each.
const int T   = 64;
const int LD  = T + 4;          // row pitch in shared memory: 16 byte aligned, banks shifted
static_assert(N % T == 0, "tiles must cover the matrix exactly");

typedef int Tile[T][LD];

__device__ __forceinline__ void loadTile(Tile &t, const int *d, int n, int bi, int bj)
{
    const int tid = threadIdx.y * 16 + threadIdx.x;
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
        const int e = tid + p * 256;            // 64 rows x 16 int4
        const int r = e >> 4, c = (e & 15) * 4;
        *reinterpret_cast<int4 *>(&t[r][c]) =
            *reinterpret_cast<const int4 *>(&d[(bi * T + r) * n + bj * T + c]);
    }
}

__device__ __forceinline__ int better(int cur, int a, int b) { return min(cur, a + b); }

// acc = min(acc, A (min,+) B) for this thread's 4x4 cells
__device__ __forceinline__ void minPlus(int4 (&acc)[4], const Tile &A, const Tile &B)
{
    const int r0 = threadIdx.y * 4, c0 = threadIdx.x * 4;
    #pragma unroll 8
    for (int k = 0; k < T; ++k) {
        const int4 b = *reinterpret_cast<const int4 *>(&B[k][c0]);
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int a = A[r0 + r][k];
            acc[r].x = better(acc[r].x, a, b.x);
            acc[r].y = better(acc[r].y, a, b.y);
            acc[r].z = better(acc[r].z, a, b.z);
            acc[r].w = better(acc[r].w, a, b.w);
        }
    }
}

// phase 1: the diagonal tile.  Row k and column k do not change in step k (d[k][k] = 0).
__global__ void __launch_bounds__(256) diagonalTile(int *d, int n, int kb)
{
    __shared__ __align__(16) Tile t;
    loadTile(t, d, n, kb, kb);
    const int r0 = threadIdx.y * 4, c0 = threadIdx.x * 4;
    for (int k = 0; k < T; ++k) {
        __syncthreads();
        const int4 b = *reinterpret_cast<const int4 *>(&t[k][c0]);
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int a = t[r0 + r][k];
            int4 *cell = reinterpret_cast<int4 *>(&t[r0 + r][c0]);
            int4 c = *cell;
            const int4 old = c;
            c.x = better(c.x, a, b.x);
            c.y = better(c.y, a, b.y);
            c.z = better(c.z, a, b.z);
            c.w = better(c.w, a, b.w);
            if (c.x != old.x || c.y != old.y || c.z != old.z || c.w != old.w) *cell = c;
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r)                 // every thread stores its own cells
        *reinterpret_cast<int4 *>(&d[(kb * T + r0 + r) * n + kb * T + c0]) =
            *reinterpret_cast<const int4 *>(&t[r0 + r][c0]);
}

// phase 2: tiles in row kb (blockIdx.y = 0) and column kb (blockIdx.y = 1).  The diagonal tile
// is a finished closure, so one (min,+) product with the old tile is enough.
__global__ void __launch_bounds__(256) crossTiles(int *d, int n, int kb)
{
    __shared__ __align__(16) Tile diag, other;
    const int o = blockIdx.x + (blockIdx.x >= (unsigned)kb ? 1 : 0);
    const int bi = blockIdx.y ? o : kb, bj = blockIdx.y ? kb : o;
    loadTile(diag, d, n, kb, kb);
    loadTile(other, d, n, bi, bj);
    __syncthreads();
    const int r0 = threadIdx.y * 4, c0 = threadIdx.x * 4;
    int4 acc[4];
    #pragma unroll
    for (int r = 0; r < 4; ++r) acc[r] = *reinterpret_cast<const int4 *>(&other[r0 + r][c0]);
    if (blockIdx.y) minPlus(acc, other, diag);
    else            minPlus(acc, diag, other);
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        *reinterpret_cast<int4 *>(&d[(bi * T + r0 + r) * n + bj * T + c0]) = acc[r];
}

// phase 3: all other tiles
__global__ void __launch_bounds__(256) otherTiles(int *d, int n, int kb)
{
    __shared__ __align__(16) Tile A, B;
    const int bi = blockIdx.y + (blockIdx.y >= (unsigned)kb ? 1 : 0);
    const int bj = blockIdx.x + (blockIdx.x >= (unsigned)kb ? 1 : 0);
    loadTile(A, d, n, bi, kb);
    loadTile(B, d, n, kb, bj);
    const int r0 = threadIdx.y * 4, c0 = threadIdx.x * 4;
    int4 acc[4];
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        acc[r] = *reinterpret_cast<const int4 *>(&d[(bi * T + r0 + r) * n + bj * T + c0]);
    __syncthreads();
    minPlus(acc, A, B);
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        *reinterpret_cast<int4 *>(&d[(bi * T + r0 + r) * n + bj * T + c0]) = acc[r];
}

// eccentricity = distance to the farthest town that can be reached; one warp per town
__global__ void __launch_bounds__(128) eccentricity(const int *__restrict__ d, int n, int *ecc, int *reach)
{
    const int i = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (i >= n) return;
    int far = 0, count = 0;
    for (int j = lane; j < n; j += 32) {
        const int v = d[i * n + j];
        if (v < INF) {
            count++;
            far = max(far, v);
        }
    }
    far = __reduce_max_sync(0xffffffffu, far);
    count = __reduce_add_sync(0xffffffffu, count);
    if (lane == 0) {
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

    const dim3 threads(16, 16);
    const int tiles = N / T;
    for (int kb = 0; kb < tiles; kb++) {
        diagonalTile<<<1, threads>>>(d, N, kb);
        crossTiles<<<dim3(tiles - 1, 2), threads>>>(d, N, kb);
        otherTiles<<<dim3(tiles - 1, tiles - 1), threads>>>(d, N, kb);
    }
    eccentricity<<<(N + 3) / 4, 128>>>(d, N, ecc, reach);
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
