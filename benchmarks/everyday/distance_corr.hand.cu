// Distance correlation with a permutation test (double precision), tuned for H200.
// Uses  sum_ij A_ij B_ij = sum a_ij b_ij - 2/n sum_i RA_i RB_i + SA SB / n^2  (raw distances a, b,
// row sums R, totals S), so no matrix is ever stored: one pass over the upper triangle in 64 x 64
// tiles recomputes the distances from points in shared memory, keeps a 4 x 4 register tile of
// a_ij per thread and reuses it for the observed and all permuted statistics; row sums of both
// matrices come out of the same pass. The variances need no square root (a_ij^2 is the sum itself).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CHECK_CUDA(expr)                                                        \
    do {                                                                        \
        cudaError_t rc = (expr);                                                \
        if (rc != cudaSuccess) {                                                \
            fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(rc));  \
            return 1;                                                           \
        }                                                                       \
    } while (0)

constexpr int N = 3907;
constexpr int DIM_X = 4;
constexpr int DIM_Y = 3;
constexpr int PERMUTATIONS = 7;

constexpr int SETS = PERMUTATIONS + 1;  // set 0 is the identity
constexpr int PARTIALS = SETS + 2;      // products of all sets, squares of a, squares of b
constexpr int TILE = 64;
constexpr int BLOCK = 256;
constexpr int WARPS = BLOCK / 32;
constexpr int TILES = (N + TILE - 1) / TILE;
constexpr int TILE_PAIRS = TILES * (TILES + 1) / 2;
constexpr unsigned FULL = 0xffffffffu;

__device__ __forceinline__ double warp_sum(double v)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
    return v;
}

struct Shared {
    double x[2][DIM_X][TILE];        // [0] rows of the tile, [1] columns
    double y[2][SETS][DIM_Y][TILE];
    double partial[PARTIALS][WARPS];
    double column[2][WARPS][TILE];
};

__global__ void __launch_bounds__(BLOCK)
tile_pairs(const double* __restrict__ x, const double* __restrict__ y,
           const int* __restrict__ perms, double* __restrict__ rowA, double* __restrict__ rowB,
           double* __restrict__ partials)
{
    __shared__ Shared sm;
    int tid = threadIdx.x;
    int lane = tid & 31;
    int warp = tid >> 5;

    // linear index -> (bi, bj) with bi <= bj
    int t = blockIdx.x;
    int bj = (int)((sqrtf(8.0f * t + 1.0f) - 1.0f) * 0.5f);
    while (bj * (bj + 1) / 2 > t) bj--;
    while ((bj + 1) * (bj + 2) / 2 <= t) bj++;
    int bi = t - bj * (bj + 1) / 2;
    int base[2] = {bi * TILE, bj * TILE};

#pragma unroll
    for (int side = 0; side < 2; side++) {
        for (int e = tid; e < TILE * DIM_X; e += BLOCK) {
            int pt = e / DIM_X, k = e % DIM_X;
            int g = min(base[side] + pt, N - 1);
            sm.x[side][k][pt] = __ldg(&x[g * DIM_X + k]);
        }
        for (int e = tid; e < TILE * SETS; e += BLOCK) {
            int q = e / TILE, pt = e % TILE;
            int g = __ldg(&perms[q * N + min(base[side] + pt, N - 1)]);
#pragma unroll
            for (int k = 0; k < DIM_Y; k++) sm.y[side][q][k][pt] = __ldg(&y[g * DIM_Y + k]);
        }
    }
    __syncthreads();

    int tx = tid % 16, ty = tid / 16;
    double a[4][4];
    unsigned mask = 0;  // pairs i < j < N
    double rowSum[4] = {0, 0, 0, 0}, colSum[4] = {0, 0, 0, 0};
    double squares = 0;
    {
        double xi[4][DIM_X], xj[4][DIM_X];
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int k = 0; k < DIM_X; k++) {
                xi[r][k] = sm.x[0][k][ty + 16 * r];
                xj[r][k] = sm.x[1][k][tx + 16 * r];
            }
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int i = base[0] + ty + 16 * r;
                int j = base[1] + tx + 16 * c;
                double sum = 0;
#pragma unroll
                for (int k = 0; k < DIM_X; k++) {
                    double diff = xi[r][k] - xj[c][k];
                    sum += diff * diff;
                }
                if (i < j && j < N) mask |= 1u << (r * 4 + c);
                else sum = 0;
                a[r][c] = sqrt(sum);
                squares += sum;
                rowSum[r] += a[r][c];
                colSum[c] += a[r][c];
            }
    }
    squares = warp_sum(squares);
    if (lane == 0) sm.partial[SETS][warp] = squares;

    // row sums: over the 16 lanes with the same ty; column sums: over ty within the warp
    auto flush_sums = [&](double* rows, double(*column)[TILE]) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            double v = rowSum[r];
#pragma unroll
            for (int d = 8; d > 0; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
            int i = base[0] + ty + 16 * r;
            if (tx == 0 && i < N) atomicAdd(&rows[i], v);
            double w = colSum[r] + __shfl_xor_sync(FULL, colSum[r], 16);
            if (lane < 16) column[warp][tx + 16 * r] = w;
        }
    };
    flush_sums(rowA, sm.column[0]);

    // set 0: the observed pairing, also yields the row sums of b
    {
        double yi[4][DIM_Y], yj[4][DIM_Y];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            rowSum[r] = colSum[r] = 0;
#pragma unroll
            for (int k = 0; k < DIM_Y; k++) {
                yi[r][k] = sm.y[0][0][k][ty + 16 * r];
                yj[r][k] = sm.y[1][0][k][tx + 16 * r];
            }
        }
        double product = 0;
        squares = 0;
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                double sum = 0;
#pragma unroll
                for (int k = 0; k < DIM_Y; k++) {
                    double diff = yi[r][k] - yj[c][k];
                    sum += diff * diff;
                }
                if (!(mask >> (r * 4 + c) & 1u)) sum = 0;
                double b = sqrt(sum);
                squares += sum;
                product += a[r][c] * b;
                rowSum[r] += b;
                colSum[c] += b;
            }
        product = warp_sum(product);
        squares = warp_sum(squares);
        if (lane == 0) {
            sm.partial[0][warp] = product;
            sm.partial[SETS + 1][warp] = squares;
        }
        flush_sums(rowB, sm.column[1]);
    }

    // permuted pairings (a is zero for the pairs that don't count)
#pragma unroll 1
    for (int q = 1; q < SETS; q++) {
        double yj[4][DIM_Y];
#pragma unroll
        for (int c = 0; c < 4; c++)
#pragma unroll
            for (int k = 0; k < DIM_Y; k++) yj[c][k] = sm.y[1][q][k][tx + 16 * c];
        double product = 0;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            double yi[DIM_Y];
#pragma unroll
            for (int k = 0; k < DIM_Y; k++) yi[k] = sm.y[0][q][k][ty + 16 * r];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                double sum = 0;
#pragma unroll
                for (int k = 0; k < DIM_Y; k++) {
                    double diff = yi[k] - yj[c][k];
                    sum += diff * diff;
                }
                product += a[r][c] * sqrt(sum);
            }
        }
        product = warp_sum(product);
        if (lane == 0) sm.partial[q][warp] = product;
    }
    __syncthreads();

    if (tid < 2 * TILE) {
        int which = tid / TILE, c = tid % TILE;
        double sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += sm.column[which][w][c];
        int j = base[1] + c;
        if (j < N) atomicAdd(which == 0 ? &rowA[j] : &rowB[j], sum);
    } else if (tid < 2 * TILE + PARTIALS) {
        int k = tid - 2 * TILE;
        double sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += sm.partial[k][w];
        partials[k * TILE_PAIRS + t] = sum;
    }
}

// one block per result: 0 .. SETS-1 product sums, SETS variance of x, SETS + 1 variance of y
__global__ void __launch_bounds__(BLOCK)
combine(const double* __restrict__ rowA, const double* __restrict__ rowB,
        const int* __restrict__ perms, const double* __restrict__ partials,
        double* __restrict__ results)
{
    __shared__ double buf[4][WARPS];
    int k = blockIdx.x;
    const double* left = k == SETS + 1 ? rowB : rowA;
    const double* right = k == SETS ? rowA : rowB;
    const int* perm = perms + (k < SETS ? k : 0) * N;

    double cross = 0, sumL = 0, sumR = 0, products = 0;
    for (int i = threadIdx.x; i < N; i += BLOCK) {
        double l = left[i];
        double r = right[perm[i]];
        cross += l * r;
        sumL += l;
        sumR += r;
    }
    for (int i = threadIdx.x; i < TILE_PAIRS; i += BLOCK) products += partials[k * TILE_PAIRS + i];
    cross = warp_sum(cross);
    sumL = warp_sum(sumL);
    sumR = warp_sum(sumR);
    products = warp_sum(products);
    int warp = threadIdx.x >> 5;
    if ((threadIdx.x & 31) == 0) {
        buf[0][warp] = cross;
        buf[1][warp] = sumL;
        buf[2][warp] = sumR;
        buf[3][warp] = products;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        cross = sumL = sumR = products = 0;
        for (int w = 0; w < WARPS; w++) {
            cross += buf[0][w];
            sumL += buf[1][w];
            sumR += buf[2][w];
            products += buf[3][w];
        }
        const double n = N;
        results[k] = (2.0 * products - 2.0 / n * cross + (sumL / n) * (sumR / n)) / n / n;
    }
}

static unsigned long long lcg = 42;
static unsigned int next_u32()
{
    lcg = lcg * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned int)(lcg >> 33);
}
static double next_unit()
{
    return next_u32() / 2147483648.0;
}

int main()
{
    std::vector<double> x(N * DIM_X), y(N * DIM_Y);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < DIM_X; k++) x[i * DIM_X + k] = 2.0 * next_unit() - 1.0;
        y[i * DIM_Y + 0] = x[i * DIM_X] * x[i * DIM_X + 1] + 0.3 * next_unit();
        y[i * DIM_Y + 1] = x[i * DIM_X + 2] * x[i * DIM_X + 2] + 0.5 * next_unit();
        y[i * DIM_Y + 2] = next_unit();
    }
    // permutation 0 is the identity (the observed statistic)
    std::vector<int> perms((PERMUTATIONS + 1) * N);
    for (int q = 0; q <= PERMUTATIONS; q++) {
        int* p = &perms[q * N];
        for (int i = 0; i < N; i++) p[i] = i;
        if (q > 0)
            for (int i = N - 1; i > 0; i--) std::swap(p[i], p[next_u32() % (i + 1)]);
    }

    double *dX, *dY, *dRows, *dPartials, *dResults;
    int* dPerms;
    CHECK_CUDA(cudaMalloc(&dX, x.size() * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dY, y.size() * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dRows, 2 * N * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dPartials, PARTIALS * TILE_PAIRS * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dResults, PARTIALS * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dPerms, perms.size() * sizeof(int)));
    CHECK_CUDA(cudaMemcpy(dX, x.data(), x.size() * sizeof(double), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dY, y.data(), y.size() * sizeof(double), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dPerms, perms.data(), perms.size() * sizeof(int),
                          cudaMemcpyHostToDevice));

    double* dRowA = dRows;
    double* dRowB = dRows + N;
    CHECK_CUDA(cudaMemsetAsync(dRows, 0, 2 * N * sizeof(double)));
    tile_pairs<<<TILE_PAIRS, BLOCK>>>(dX, dY, dPerms, dRowA, dRowB, dPartials);
    CHECK_CUDA(cudaGetLastError());
    combine<<<PARTIALS, BLOCK>>>(dRowA, dRowB, dPerms, dPartials, dResults);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());

    std::vector<double> res(PERMUTATIONS + 3), meanA(N), meanB(N);
    CHECK_CUDA(cudaMemcpy(res.data(), dResults, res.size() * sizeof(double),
                          cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(meanA.data(), dRowA, N * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(meanB.data(), dRowB, N * sizeof(double), cudaMemcpyDeviceToHost));

    double sumA = 0, sumB = 0, maxA = 0;
    int exceed = 0;
    for (int i = 0; i < N; i++) {
        meanA[i] /= N;
        meanB[i] /= N;
        sumA += meanA[i];
        sumB += meanB[i];
        if (meanA[i] > maxA) maxA = meanA[i];
    }
    for (int q = 1; q <= PERMUTATIONS; q++)
        if (res[q] >= res[0]) exceed++;
    double varX = res[PERMUTATIONS + 1], varY = res[PERMUTATIONS + 2];
    printf("dcov2 %.10e dvarx %.10e dvary %.10e\n", res[0], varX, varY);
    printf("dcor %.10e exceed %d\n", sqrt(res[0] / sqrt(varX * varY)), exceed);
    for (int q = 1; q <= PERMUTATIONS; q++) printf("permuted %.10e\n", res[q]);
    printf("means %.10e %.10e max %.10e\n", sumA / N, sumB / N, maxA);
    printf("row %.10e %.10e\n", meanA[N / 3], meanB[N - 1]);

    cudaFree(dX);
    cudaFree(dY);
    cudaFree(dRows);
    cudaFree(dPartials);
    cudaFree(dResults);
    cudaFree(dPerms);
    return 0;
}
