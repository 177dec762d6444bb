// Attention for 8 heads of 1024 queries and keys of dimension 64. By hand: one fused kernel with online
// softmax; a block takes 64 queries, four groups of 64 threads take a quarter of the keys each with
// 8 x 8 register tiles, async copies overlap the math, and the groups' partial results merge at the end.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#define UNROLL _Pragma("unroll")
constexpr int HEADS = 8, LEN = 1024, DIM = 64, TILE = 64, GROUPS = 4;
constexpr int PITCH = DIM + 4;  // keeps 16-byte accesses to neighboring rows on different banks
constexpr int TILES = LEN / TILE / GROUPS;
constexpr int GROUP_FLOATS = TILE * PITCH * 2 + TILE * DIM;
constexpr int SMEM_BYTES = (TILE * PITCH + GROUPS * GROUP_FLOATS) * 4;

__device__ __forceinline__ float4& at(float* p) { return *reinterpret_cast<float4*>(p); }

// c plus the product of a and (x, y, z, w), as four chained multiply-adds.
__device__ __forceinline__ float mad(float4 a, float x, float y, float z, float w, float c) {
    return fmaf(a.w, w, fmaf(a.z, z, fmaf(a.y, y, fmaf(a.x, x, c))));
}

__device__ __forceinline__ void fetch_tile(float* dst, int pitch, const float* src, int t, bool wanted) {
    for (int i = t; wanted && i < TILE * DIM / 4; i += 64)
        __pipeline_memcpy_async(dst + i / 16 * pitch + i % 16 * 4, src + i * 4, 16);
    __pipeline_commit();
}

__global__ void __launch_bounds__(256, 1) attention(const float* __restrict__ q, const float* __restrict__ k,
                                                    const float* __restrict__ v, float* __restrict__ out) {
    extern __shared__ __align__(16) float smem[];
    const int group = threadIdx.x >> 6, t = threadIdx.x & 63, tx = t & 7, ty = t >> 3;
    const int base = (blockIdx.y * LEN + blockIdx.x * TILE) * DIM;
    float *qs = smem, *ks = smem + TILE * PITCH + group * GROUP_FLOATS;
    float *ps = ks + TILE * PITCH, *vs = ps + TILE * PITCH;
    k += (blockIdx.y * LEN + group * TILES * TILE) * DIM;
    v += (blockIdx.y * LEN + group * TILES * TILE) * DIM;
    fetch_tile(ks, PITCH, k, t, true);
    fetch_tile(vs, DIM, v, t, true);
    const float scale = 0.125f * 1.4426950408889634f;  // 1 / sqrt(64), and base 2 for the exponentials
    for (int i = threadIdx.x; i < TILE * DIM / 4; i += 256) {
        const float4 x = reinterpret_cast<const float4*>(q + base)[i];
        at(qs + i / 16 * PITCH + i % 16 * 4) = make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
    }
    float o[8][8] = {}, top[8], sum[8] = {};  // rows ty + 8 i, columns 4 tx + {0..3} and 32 + 4 tx + {0..3}
    for (int i = 0; i < 8; ++i) top[i] = -INFINITY;

    for (int tile = 0; tile < TILES; ++tile) {
        __pipeline_wait_prior(1);
        __syncthreads();
        float s[8][8] = {};  // rows ty + 8 i, keys tx + 8 j
#pragma unroll 1
        for (int d = 0; d < DIM; d += 4) {
            float4 b[8];
            UNROLL for (int j = 0; j < 8; ++j) b[j] = at(ks + (tx + 8 * j) * PITCH + d);
            UNROLL for (int i = 0; i < 8; ++i) {
                const float4 a = at(qs + (ty + 8 * i) * PITCH + d);
                UNROLL for (int j = 0; j < 8; ++j) s[i][j] = mad(a, b[j].x, b[j].y, b[j].z, b[j].w, s[i][j]);
            }
        }
        __syncthreads();
        fetch_tile(ks, PITCH, k + (tile + 1) * TILE * DIM, t, tile + 1 < TILES);
        UNROLL for (int i = 0; i < 8; ++i) {
            float peak = top[i];
            UNROLL for (int j = 0; j < 8; ++j) peak = fmaxf(peak, s[i][j]);
            for (int m = 1; m < 8; m <<= 1) peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, m));
            const float fade = exp2f(top[i] - peak);
            top[i] = peak;
            sum[i] *= fade;  // over this thread's own keys; the 8 threads of a row add up at the end
            UNROLL for (int j = 0; j < 8; ++j) {
                const float p = exp2f(s[i][j] - peak);
                ps[(ty + 8 * i) * PITCH + tx + 8 * j] = p;
                sum[i] += p;
                o[i][j] *= fade;
            }
        }
        __pipeline_wait_prior(1);
        __syncthreads();
#pragma unroll 1
        for (int key = 0; key < TILE; key += 4) {
            __align__(16) float b[4][8];
            UNROLL for (int c = 0; c < 8; ++c)
                at(b[c / 2] + c % 2 * 4) = at(vs + (key + c / 2) * DIM + 4 * tx + 32 * (c % 2));
            UNROLL for (int i = 0; i < 8; ++i) {
                const float4 p = at(ps + (ty + 8 * i) * PITCH + key);
                UNROLL for (int j = 0; j < 8; ++j) o[i][j] = mad(p, b[0][j], b[1][j], b[2][j], b[3][j], o[i][j]);
            }
        }
        __syncthreads();
        fetch_tile(vs, DIM, v + (tile + 1) * TILE * DIM, t, tile + 1 < TILES);
    }
    // Each group leaves its output in ks, its row maxima in ps[0..63] and its row sums in ps[64..127].
    UNROLL for (int i = 0; i < 8; ++i) {
        for (int m = 1; m < 8; m <<= 1) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], m);
        if (tx == 0) ps[ty + 8 * i] = top[i], ps[TILE + ty + 8 * i] = sum[i];
        at(ks + (ty + 8 * i) * PITCH + 4 * tx) = make_float4(o[i][0], o[i][1], o[i][2], o[i][3]);
        at(ks + (ty + 8 * i) * PITCH + 4 * tx + 32) = make_float4(o[i][4], o[i][5], o[i][6], o[i][7]);
    }
    __syncthreads();
    const float* first = smem + TILE * PITCH;  // group 0's area
    for (int i = threadIdx.x; i < TILE * DIM; i += 256) {
        const float* maxima = first + TILE * PITCH + i / DIM;
        float peak = -INFINITY, total = 0.0f, value = 0.0f;
        for (int g = 0; g < GROUPS; ++g) peak = fmaxf(peak, maxima[g * GROUP_FLOATS]);
        for (int g = 0; g < GROUPS; ++g) {
            const float w = exp2f(maxima[g * GROUP_FLOATS] - peak);
            total += w * maxima[g * GROUP_FLOATS + TILE];
            value += w * first[g * GROUP_FLOATS + i / DIM * PITCH + i % DIM];
        }
        out[base + i] = value / total;
    }
}

int main() {
    size_t n = (size_t)HEADS * LEN * DIM, bytes = n * sizeof(float);
    std::vector<float> in(n), out(n);
    const float scale[3] = {4.0f, 1.0f, 1.0f}, offset[3] = {0.0f, 0.0f, 0.75f};
    float *dev[3], *dout;
    cudaMalloc(&dout, bytes);
    for (int i = 0; i < 3; ++i) {
        unsigned seed = i + 1;  // queries, keys, values
        for (float& x : in) {
            seed = seed * 214013u + 2531011u;
            x = scale[i] * (((seed >> 8) & 0xffff) / 32768.0f - 1.0f) + offset[i];
        }
        cudaMalloc(&dev[i], bytes);
        cudaMemcpy(dev[i], in.data(), bytes, cudaMemcpyHostToDevice);
    }
    cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
    attention<<<dim3(LEN / TILE, HEADS), 256, SMEM_BYTES>>>(dev[0], dev[1], dev[2], dout);
    if (cudaMemcpy(out.data(), dout, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    double sum = 0.0, weighted = 0.0, spread = 0.0;
    for (size_t i = 0; i < n; ++i) {
        sum += out[i];
        weighted += fabs(out[i]) * (1 + i % 64 + i / 65536);
        spread += (out[i] - 0.75) * (out[i] - 0.75);
    }
    printf("sum %.6e\nweighted %.6e\nspread %.6e\n", sum, weighted, spread);
    return 0;
}
