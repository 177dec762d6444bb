// Quantised linear layer:  Y = dequant( int8(X) * W ) + bias
// X [M,K] float is quantised with one scale per row, W [K,N] is int8 with one scale per column.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cmath>
#include <vector>
#include <mma.h>
#include <cuda_pipeline.h>

static const int M = 1024;
static const int K = 2048;
static const int N = 2048;

#define CHECK_CUDA(x) do { cudaError_t err_ = (x); if (err_ != cudaSuccess) { \
    printf("error: %s\n", cudaGetErrorString(err_)); return 1; } } while (0)

using namespace nvcuda;

// Tensor core GEMM: block tile 128 x 128, k step 64, 8 warps with 32 x 64 each, cp.async double buffer.
constexpr int BM = 128, BN = 128, BK = 64;
constexpr int THREADS = 256;
constexpr int KS = BK / 16;                   // 16-wide slices of k in a tile
static_assert(M % BM == 0 && N % BN == 0 && K % BK == 0 && K % 4 == 0, "tiling");

// one block quantises one row, which stays in registers between the two passes
constexpr int QV = K / 4 / THREADS;
static_assert(K % (4 * THREADS) == 0, "row");

__global__ void __launch_bounds__(THREADS)
quantizeRows(const float4 *__restrict__ x, char4 *__restrict__ q, float *__restrict__ scale)
{
    __shared__ float warpMax[THREADS / 32];
    const size_t base = (size_t)blockIdx.x * (K / 4);
    float4 v[QV];
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < QV; i++) {
        v[i] = x[base + threadIdx.x + i * THREADS];
        amax = fmaxf(amax, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
    }
    for (int o = 16; o > 0; o /= 2) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, o));
    if ((threadIdx.x & 31) == 0) warpMax[threadIdx.x / 32] = amax;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++) amax = fmaxf(amax, warpMax[w]);
    float s = amax / 127.0f;
    if (s == 0.0f) s = 1.0f;
    if (threadIdx.x == 0) scale[blockIdx.x] = s;
#pragma unroll
    for (int i = 0; i < QV; i++)
        q[base + threadIdx.x + i * THREADS] =
            make_char4((signed char)rintf(v[i].x / s), (signed char)rintf(v[i].y / s),
                       (signed char)rintf(v[i].z / s), (signed char)rintf(v[i].w / s));
}

// W [K,N] -> Wt [N,K], tiles of 64 x 64 bytes
__global__ void __launch_bounds__(THREADS) transposeW(const int8_t *__restrict__ w, int8_t *__restrict__ wt)
{
    __shared__ int8_t tile[64][68];
    const int n0 = blockIdx.x * 64, k0 = blockIdx.y * 64;
    const int c = (threadIdx.x % 16) * 4, r = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 64; i += 16)
        *(char4 *)&tile[r + i][c] = *(const char4 *)(w + (size_t)(k0 + r + i) * N + n0 + c);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i += 16)
        *(char4 *)(wt + (size_t)(n0 + r + i) * K + k0 + c) =
            make_char4(tile[c][r + i], tile[c + 1][r + i], tile[c + 2][r + i], tile[c + 3][r + i]);
}

__global__ void __launch_bounds__(THREADS)
gemmDequant(const int8_t *__restrict__ A, const int8_t *__restrict__ Bt,
            const float *__restrict__ rowScale, const float *__restrict__ colScale,
            const float *__restrict__ bias, float *__restrict__ y)
{
    // [buffer][k slice][row][16 bytes]: a 16 x 16 fragment is 256 contiguous bytes
    __shared__ __align__(128) int8_t As[2][KS][BM][16];
    __shared__ __align__(128) int8_t Bs[2][KS][BN][16];
    __shared__ __align__(128) int32_t patch[THREADS / 32][16 * 16];

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int wm = (warp / 2) * 32, wn = (warp % 2) * 64;

    auto stage = [&](int buf, int k0) {
#pragma unroll
        for (int i = 0; i < BM * KS / THREADS; i++) {
            int chunk = tid + i * THREADS;
            int r = chunk / KS, s = chunk % KS;
            __pipeline_memcpy_async(&As[buf][s][r][0], A + (size_t)(row0 + r) * K + k0 + s * 16, 16);
        }
#pragma unroll
        for (int i = 0; i < BN * KS / THREADS; i++) {
            int chunk = tid + i * THREADS;
            int r = chunk / KS, s = chunk % KS;
            __pipeline_memcpy_async(&Bs[buf][s][r][0], Bt + (size_t)(col0 + r) * K + k0 + s * 16, 16);
        }
        __pipeline_commit();
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, int> acc[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) wmma::fill_fragment(acc[i][j], 0);

    stage(0, 0);
    for (int t = 0; t < K / BK; t++) {
        const int buf = t & 1;
        __pipeline_wait_prior(0);
        __syncthreads();                       // tile t is there, tile t - 1 is no longer read
        if (t + 1 < K / BK) stage(buf ^ 1, (t + 1) * BK);
#pragma unroll
        for (int s = 0; s < KS; s++) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb[4];
#pragma unroll
            for (int i = 0; i < 2; i++)
                wmma::load_matrix_sync(fa[i], (const signed char *)&As[buf][s][wm + i * 16][0], 16);
#pragma unroll
            for (int j = 0; j < 4; j++)
                wmma::load_matrix_sync(fb[j], (const signed char *)&Bs[buf][s][wn + j * 16][0], 16);
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
        }
    }

    // epilogue: each warp turns its fragments into floats through a small patch
    const int pr = lane / 4, pc = (lane % 4) * 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            wmma::store_matrix_sync(patch[warp], acc[i][j], 16, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = row0 + wm + i * 16 + half * 8 + pr;
                const int col = col0 + wn + j * 16 + pc;
                const int4 v = *(const int4 *)&patch[warp][(half * 8 + pr) * 16 + pc];
                const float rs = rowScale[row];
                const float4 cs = *(const float4 *)(colScale + col);
                const float4 bi = *(const float4 *)(bias + col);
                *(float4 *)(y + (size_t)row * N + col) =
                    make_float4((float)v.x * rs * cs.x + bi.x, (float)v.y * rs * cs.y + bi.y,
                                (float)v.z * rs * cs.z + bi.z, (float)v.w * rs * cs.w + bi.w);
            }
            __syncwarp();
        }
}

static uint32_t seed_ = 1u;
static uint32_t rnd() { seed_ = seed_ * 22695477u + 1u; return seed_ >> 12; }

int main()
{
    std::vector<float> x(M * K), wScale(N), bias(N), y(M * N);
    std::vector<int8_t> w(K * N);
    for (auto &v : x) v = (float)(rnd() % 20001) / 10000.0f - 0.9f;
    for (auto &v : w) v = (int8_t)((int)(rnd() % 255) - 127);
    for (auto &v : wScale) v = 0.001f + (float)(rnd() % 1000) * 1e-5f;
    for (auto &v : bias) v = (float)(rnd() % 1000) / 100.0f;

    float *dX, *dRowScale, *dColScale, *dBias, *dY;
    int8_t *dQ, *dW, *dWt;
    CHECK_CUDA(cudaMalloc(&dX, M * K * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dQ, M * K));
    CHECK_CUDA(cudaMalloc(&dW, K * N));
    CHECK_CUDA(cudaMalloc(&dWt, K * N));
    CHECK_CUDA(cudaMalloc(&dRowScale, M * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dColScale, N * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dBias, N * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dY, M * N * sizeof(float)));
    CHECK_CUDA(cudaMemcpy(dX, x.data(), M * K * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dW, w.data(), K * N, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dColScale, wScale.data(), N * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dBias, bias.data(), N * sizeof(float), cudaMemcpyHostToDevice));

    quantizeRows<<<M, THREADS>>>((const float4 *)dX, (char4 *)dQ, dRowScale);
    transposeW<<<dim3(N / 64, K / 64), THREADS>>>(dW, dWt);
    gemmDequant<<<dim3(N / BN, M / BM), THREADS>>>(dQ, dWt, dRowScale, dColScale, dBias, dY);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(y.data(), dY, M * N * sizeof(float), cudaMemcpyDeviceToHost));

    double s = 0, sa = 0, sq = 0;
    for (size_t i = 0; i < y.size(); i++) {
        s += y[i];
        sa += std::fabs(y[i]) * (double)(1 + i % 3);
        sq += (double)y[i] * y[i];
    }
    printf("sum %.4e\nweighted abs %.4e\nsquares %.4e\n", s, sa, sq);

    cudaFree(dX); cudaFree(dQ); cudaFree(dW); cudaFree(dWt);
    cudaFree(dRowScale); cudaFree(dColScale); cudaFree(dBias); cudaFree(dY);
    return 0;
}
