// 3x3 convolution -> bias + ReLU -> 2x2 max pooling -> global average, one fused kernel (H200).
// A block computes 16 rows x 48 columns of one image for 16 output channels; a thread holds a
// register tile of 2 x 4 pixels x 8 channels (64 accumulators). Input patches and weights go
// through double-buffered shared memory filled with cp.async (zero fill makes the padding).
// The two output rows of a thread are just two pooled values per channel, so the convolution
// result never leaves the registers.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include <cuda_pipeline.h>

#define CUDA_CHECK(stmt)                                                             \
    do {                                                                             \
        cudaError_t status = (stmt);                                                 \
        if (status != cudaSuccess) {                                                 \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
            std::exit(1);                                                            \
        }                                                                            \
    } while (0)

constexpr int BATCH = 44;
constexpr int CIN = 32;
constexpr int COUT = 64;
constexpr int H = 48;
constexpr int W = 48;
constexpr int PH = H / 2;
constexpr int PW = W / 2;

constexpr int ROWS = 16;            // output rows of a block
constexpr int IN_ROWS = ROWS + 2;
constexpr int PITCH = 56;           // 50 columns used; 2 * PITCH % 32 == 16: no conflicts
constexpr int CHUNK = 4;            // input channels per stage
constexpr int STAGES = CIN / CHUNK;
constexpr int OC_BLOCK = 16;        // output channels of a block
constexpr int OC_THREAD = 8;
constexpr int W_PITCH = 20;
constexpr int TX = W / 4;           // 12 thread tiles per row
constexpr int TY = ROWS / 2;        // 8 rows of thread tiles
constexpr int TILES = TX * TY;      // 96: three warps per channel group
constexpr int THREADS = TILES * (OC_BLOCK / OC_THREAD);  // 192
constexpr int WARPS = THREADS / 32;
static_assert(TILES % 32 == 0 && W % 4 == 0 && H % ROWS == 0 && CIN % CHUNK == 0, "tiling");

struct Stage {
    float in[CHUNK][IN_ROWS][PITCH];  // column c holds input column c - 1
    float w[CHUNK * 9][W_PITCH];
};

__device__ __forceinline__ void load_stage(Stage& st, const float* __restrict__ image,
                                           const float* __restrict__ weight, int c0, int row0,
                                           int oc0)
{
    int lane = threadIdx.x & 31;
    int warp = threadIdx.x >> 5;
    for (int r = warp; r < CHUNK * IN_ROWS; r += WARPS) {
        int ci = r / IN_ROWS;
        int y = r % IN_ROWS;
        int gy = row0 - 1 + y;
        bool rowOk = gy >= 0 && gy < H;
        const float* src = image + ((c0 + ci) * H + (rowOk ? gy : 0)) * W;
        for (int c = lane; c < W + 2; c += 32) {
            int gx = c - 1;
            bool ok = rowOk && gx >= 0 && gx < W;
            __pipeline_memcpy_async(&st.in[ci][y][c], src + (ok ? gx : 0), 4, ok ? 0 : 4);
        }
    }
    for (int i = threadIdx.x; i < OC_BLOCK * CHUNK * 9; i += THREADS) {
        int oc = i / (CHUNK * 9);
        int r = i % (CHUNK * 9);
        __pipeline_memcpy_async(&st.w[r][oc], weight + (oc0 + oc) * (CIN * 9) + c0 * 9 + r, 4);
    }
}

__global__ void __launch_bounds__(THREADS, 2)
conv_relu_pool(const float* __restrict__ input, const float* __restrict__ weight,
               const float* __restrict__ bias, float* __restrict__ pooled,
               float* __restrict__ feat)
{
    __shared__ __align__(16) Stage stage[2];

    int row0 = blockIdx.x * ROWS;
    int oc0 = blockIdx.y * OC_BLOCK;
    int n = blockIdx.z;
    const float* image = input + n * (CIN * H * W);

    int tile = threadIdx.x % TILES;
    int group = threadIdx.x / TILES;  // uniform within a warp
    int tx = tile % TX;
    int ty = tile / TX;

    float acc[OC_THREAD][2][4];
#pragma unroll
    for (int o = 0; o < OC_THREAD; o++)
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int c = 0; c < 4; c++) acc[o][r][c] = 0.0f;

    load_stage(stage[0], image, weight, 0, row0, oc0);
    __pipeline_commit();

    for (int s = 0; s < STAGES; s++) {
        if (s + 1 < STAGES) {
            load_stage(stage[(s + 1) & 1], image, weight, (s + 1) * CHUNK, row0, oc0);
            __pipeline_commit();
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();

        const Stage& st = stage[s & 1];
#pragma unroll 1
        for (int ci = 0; ci < CHUNK; ci++) {
            float p[4][6];
#pragma unroll
            for (int y = 0; y < 4; y++) {
                const float* row = &st.in[ci][2 * ty + y][4 * tx];
                float4 a = *reinterpret_cast<const float4*>(row);
                float2 b = *reinterpret_cast<const float2*>(row + 4);
                p[y][0] = a.x;
                p[y][1] = a.y;
                p[y][2] = a.z;
                p[y][3] = a.w;
                p[y][4] = b.x;
                p[y][5] = b.y;
            }
#pragma unroll
            for (int ky = 0; ky < 3; ky++)
#pragma unroll
                for (int kx = 0; kx < 3; kx++) {
                    const float4* wv = reinterpret_cast<const float4*>(
                        &st.w[ci * 9 + ky * 3 + kx][group * OC_THREAD]);
                    float4 w0 = wv[0], w1 = wv[1];
                    float w[OC_THREAD] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
#pragma unroll
                    for (int o = 0; o < OC_THREAD; o++)
#pragma unroll
                        for (int r = 0; r < 2; r++)
#pragma unroll
                            for (int c = 0; c < 4; c++)
                                acc[o][r][c] += p[r + ky][c + kx] * w[o];
                }
        }
        __syncthreads();
    }

    int prow = row0 / 2 + ty;
#pragma unroll
    for (int o = 0; o < OC_THREAD; o++) {
        int oc = oc0 + group * OC_THREAD + o;
        float b = __ldg(&bias[oc]);
        float2 v;
        v.x = fmaxf(fmaxf(acc[o][0][0], acc[o][0][1]), fmaxf(acc[o][1][0], acc[o][1][1]));
        v.y = fmaxf(fmaxf(acc[o][0][2], acc[o][0][3]), fmaxf(acc[o][1][2], acc[o][1][3]));
        v.x = fmaxf(v.x + b, 0.0f);
        v.y = fmaxf(v.y + b, 0.0f);
        *reinterpret_cast<float2*>(&pooled[((n * COUT + oc) * PH + prow) * PW + 2 * tx]) = v;
        float sum = v.x + v.y;
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if ((threadIdx.x & 31) == 0)
            atomicAdd(&feat[n * COUT + oc], sum * (1.0f / (PH * PW)));
    }
}

static float hash_float(unsigned int i)
{
    i ^= i >> 16;
    i *= 0x7feb352du;
    i ^= i >> 15;
    i *= 0x846ca68bu;
    i ^= i >> 16;
    return (float)(i >> 8) / 8388608.0f - 1.0f;
}

int main()
{
    const int inCount = BATCH * CIN * H * W;
    const int wCount = COUT * CIN * 9;
    const int poolCount = BATCH * COUT * PH * PW;
    const int featCount = BATCH * COUT;

    std::vector<float> input(inCount), weight(wCount), bias(COUT);
    for (int i = 0; i < inCount; i++) input[i] = hash_float(i);
    for (int i = 0; i < wCount; i++) weight[i] = 0.1f * hash_float(i + 50000000);
    for (int i = 0; i < COUT; i++) bias[i] = 0.2f * hash_float(i + 90000000);

    float *d_in, *d_w, *d_b, *d_pool, *d_feat;
    CUDA_CHECK(cudaMalloc(&d_in, inCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_w, wCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_b, COUT * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_pool, poolCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_feat, featCount * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_in, input.data(), inCount * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_w, weight.data(), wCount * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_b, bias.data(), COUT * sizeof(float), cudaMemcpyHostToDevice));

    CUDA_CHECK(cudaMemsetAsync(d_feat, 0, featCount * sizeof(float)));
    dim3 grid(H / ROWS, COUT / OC_BLOCK, BATCH);
    conv_relu_pool<<<grid, THREADS>>>(d_in, d_w, d_b, d_pool, d_feat);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    std::vector<float> pooled(poolCount), feat(featCount);
    CUDA_CHECK(cudaMemcpy(pooled.data(), d_pool, poolCount * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(feat.data(), d_feat, featCount * sizeof(float), cudaMemcpyDeviceToHost));

    double sum = 0, squares = 0, featSum = 0, featMax = 0;
    float top = 0;
    for (int i = 0; i < poolCount; i++) {
        sum += pooled[i];
        squares += (double)pooled[i] * pooled[i];
        if (pooled[i] > top) top = pooled[i];
    }
    for (int i = 0; i < featCount; i++) {
        featSum += feat[i] * (1.0 + i % 7);
        if (feat[i] > featMax) featMax = feat[i];
    }
    std::printf("pooled %.8e %.8e %.8e\n", sum, squares, top);
    std::printf("features %.8e %.8e\n", featSum, featMax);
    for (int k = 0; k < 6; k++) std::printf("%.8e\n", feat[k * 347 + 5]);
    double corner = 0;
    for (int i = 0; i < featCount; i++)
        corner += pooled[i * PH * PW] + 2.0 * pooled[i * PH * PW + PH * PW - 1];
    std::printf("corners %.8e\n", corner);

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_w));
    CUDA_CHECK(cudaFree(d_b));
    CUDA_CHECK(cudaFree(d_pool));
    CUDA_CHECK(cudaFree(d_feat));
    return 0;
}
