// Causal multi-head self attention (forward only), tuned for H200 (sm_90).
// One fused flash-attention style kernel, the score matrix never leaves registers:
//  * a block of 4 warps owns 64 queries of one (batch, head), each warp 16 of them; keys come in
//    tiles of 64 through a two-stage cp.async pipeline; tiles above the diagonal are skipped.
//  * both products run on the tensor cores with the 3xTF32 split (x = hi + lo, three mma per product),
//    which keeps nearly fp32 accuracy (~1e-6).
//  * the k and n indices of the mma fragments are permuted so that all shared-memory reads are
//    conflict-free 128-bit loads and the accumulators of S are directly the A fragments of P*V.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include <cuda_pipeline.h>

#define CHECK(call)                                                                   \
    do {                                                                              \
        cudaError_t err_ = (call);                                                    \
        if (err_ != cudaSuccess) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

constexpr int BATCH = 3;
constexpr int HEADS = 12;
constexpr int SEQ = 650;
constexpr int DIM = 64;

constexpr int TILE = 64;                           // queries per block and keys per tile
constexpr int THREADS = 128;
constexpr int KSTRIDE = 80;                        // == 16 (mod 32): conflict-free float4 reads
constexpr int VSTRIDE = 68;                        // == 4 (mod 16): conflict-free float4 reads
constexpr int STAGE_FLOATS = TILE * (KSTRIDE + VSTRIDE);
constexpr int SMEM_BYTES = 2 * STAGE_FLOATS * (int)sizeof(float);
constexpr int QTILES = (SEQ + TILE - 1) / TILE;
constexpr int TOKEN = HEADS * DIM;                 // floats between consecutive tokens
constexpr int NUM_SM = 132;

static_assert(DIM == 64, "fragment layout is written for head dimension 64");

struct Split { uint32_t hi, lo; };

__device__ __forceinline__ Split split_tf32(float x)
{
    Split s;
    s.hi = __float_as_uint(x) & 0xffffe000u;
    s.lo = __float_as_uint(x - __uint_as_float(s.hi));
    return s;
}

__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

struct AFrag { uint32_t hi[4], lo[4]; };

__device__ __forceinline__ AFrag make_a(float a0, float a1, float a2, float a3)
{
    AFrag f;
    Split s0 = split_tf32(a0), s1 = split_tf32(a1), s2 = split_tf32(a2), s3 = split_tf32(a3);
    f.hi[0] = s0.hi; f.hi[1] = s1.hi; f.hi[2] = s2.hi; f.hi[3] = s3.hi;
    f.lo[0] = s0.lo; f.lo[1] = s1.lo; f.lo[2] = s2.lo; f.lo[3] = s3.lo;
    return f;
}

__device__ __forceinline__ void mma_3x(float (&c)[4], const AFrag &a, float b0, float b1)
{
    Split s0 = split_tf32(b0), s1 = split_tf32(b1);
    mma_tf32(c, a.lo, s0.hi, s1.hi);
    mma_tf32(c, a.hi, s0.lo, s1.lo);
    mma_tf32(c, a.hi, s0.hi, s1.hi);
}

__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// asynchronously copy one tile of K and V (64 tokens x 64 floats each); tokens past the end become 0
__device__ __forceinline__ void load_tile(float *ks, float *vs, const float *K, const float *V, int key0)
{
    const int c = (threadIdx.x & 15) * 4;
    const int r0 = threadIdx.x >> 4;
    constexpr int STEP = THREADS / 16;
    ks += r0 * KSTRIDE + c;
    vs += r0 * VSTRIDE + c;
    const int off = (key0 + r0) * TOKEN + c;
    K += off;
    V += off;
    if (key0 + TILE <= SEQ) {                      // full tile: all addresses are base + constant
#pragma unroll
        for (int i = 0; i < TILE / STEP; i++) {
            __pipeline_memcpy_async(ks + i * STEP * KSTRIDE, K + i * STEP * TOKEN, 16);
            __pipeline_memcpy_async(vs + i * STEP * VSTRIDE, V + i * STEP * TOKEN, 16);
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < TILE / STEP; i++) {
            const bool ok = key0 + r0 + i * STEP < SEQ;
            const int shift = ok ? i * STEP * TOKEN : -off;             // any valid address if nothing is read
            __pipeline_memcpy_async(ks + i * STEP * KSTRIDE, K + shift, 16, ok ? 0 : 16);
            __pipeline_memcpy_async(vs + i * STEP * VSTRIDE, V + shift, 16, ok ? 0 : 16);
        }
    }
}

__global__ void __launch_bounds__(THREADS, 3)
attention_kernel(const float *__restrict__ Q, const float *__restrict__ K,
                 const float *__restrict__ V, float *__restrict__ O)
{
    extern __shared__ float4 smem4[];
    float *smem = reinterpret_cast<float *>(smem4);

    // Heaviest query tiles first; every other round of NUM_SM blocks runs backwards so that the blocks
    // that land on one SM have about the same total work.
    const int total = QTILES * BATCH * HEADS;
    int rank = blockIdx.x;
    const int round = rank / NUM_SM;
    if (round & 1) {
        const int lo = round * NUM_SM;
        const int hi = min(lo + NUM_SM, total) - 1;
        rank = lo + hi - rank;
    }
    const int qtile = QTILES - 1 - rank / (BATCH * HEADS);
    const int bh = rank % (BATCH * HEADS);
    const int b = bh / HEADS, h = bh % HEADS;

    const size_t base = (size_t)b * SEQ * TOKEN + h * DIM;
    Q += base; K += base; V += base; O += base;

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int g = lane >> 2;                       // fragment row (or B column)
    const int t = lane & 3;
    const int row_min = qtile * TILE + warp * 16;
    const int row0 = row_min + g;
    const int row1 = row0 + 8;

    load_tile(smem, smem + TILE * KSTRIDE, K, V, 0);
    __pipeline_commit();

    // Q fragments straight from global; scaled so that the softmax can use exp2
    const float scale = 0.125f * 1.4426950408889634f;         // log2(e) / sqrt(64)
    float qf[4][2][4];
#pragma unroll
    for (int kp = 0; kp < 4; kp++) {
        float4 x0 = make_float4(0.f, 0.f, 0.f, 0.f), x1 = x0;
        if (row0 < SEQ) x0 = *reinterpret_cast<const float4 *>(Q + row0 * TOKEN + kp * 16 + t * 4);
        if (row1 < SEQ) x1 = *reinterpret_cast<const float4 *>(Q + row1 * TOKEN + kp * 16 + t * 4);
        qf[kp][0][0] = x0.x * scale; qf[kp][0][1] = x0.y * scale;
        qf[kp][0][2] = x0.z * scale; qf[kp][0][3] = x0.w * scale;
        qf[kp][1][0] = x1.x * scale; qf[kp][1][1] = x1.y * scale;
        qf[kp][1][2] = x1.z * scale; qf[kp][1][3] = x1.w * scale;
    }

    float o[8][4];
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) o[j][e] = 0.0f;
    float m0 = -1e30f, m1 = -1e30f, l0 = 0.0f, l1 = 0.0f;

    for (int kt = 0; kt <= qtile; kt++) {
        float *ks = smem + (kt & 1) * STAGE_FLOATS;
        float *vs = ks + TILE * KSTRIDE;
        if (kt < qtile) {
            float *nk = smem + ((kt + 1) & 1) * STAGE_FLOATS;
            load_tile(nk, nk + TILE * KSTRIDE, K, V, (kt + 1) * TILE);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();

        // S = Q K^T : k index t <-> d = 4t, t+4 <-> 4t+1 in even steps, 4t+2, 4t+3 in odd steps
        float s[8][4];
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] = 0.0f;
#pragma unroll
        for (int kp = 0; kp < 4; kp++) {
            const AFrag a0 = make_a(qf[kp][0][0], qf[kp][1][0], qf[kp][0][1], qf[kp][1][1]);
            const AFrag a1 = make_a(qf[kp][0][2], qf[kp][1][2], qf[kp][0][3], qf[kp][1][3]);
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const float4 x = *reinterpret_cast<const float4 *>(ks + (n * 8 + g) * KSTRIDE + kp * 16 + t * 4);
                mma_3x(s[n], a0, x.x, x.y);
                mma_3x(s[n], a1, x.z, x.w);
            }
        }

        // only the diagonal tile needs the mask
        if (kt == qtile) {
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const int key = kt * TILE + n * 8 + t * 2;
                if (key > row0) s[n][0] = -1e30f;
                if (key + 1 > row0) s[n][1] = -1e30f;
                if (key > row1) s[n][2] = -1e30f;
                if (key + 1 > row1) s[n][3] = -1e30f;
            }
        }

        // online softmax for rows g and g+8
        float t0 = s[0][0], t1 = s[0][2];
#pragma unroll
        for (int n = 0; n < 8; n++) {
            t0 = fmaxf(t0, fmaxf(s[n][0], s[n][1]));
            t1 = fmaxf(t1, fmaxf(s[n][2], s[n][3]));
        }
        const float n0 = fmaxf(m0, quad_max(t0));
        const float n1 = fmaxf(m1, quad_max(t1));
        const float c0 = exp2_fast(m0 - n0), c1 = exp2_fast(m1 - n1);
        m0 = n0; m1 = n1;
        l0 *= c0; l1 *= c1;
#pragma unroll
        for (int n = 0; n < 8; n++) {
            s[n][0] = exp2_fast(s[n][0] - m0);
            s[n][1] = exp2_fast(s[n][1] - m0);
            s[n][2] = exp2_fast(s[n][2] - m1);
            s[n][3] = exp2_fast(s[n][3] - m1);
            l0 += s[n][0] + s[n][1];
            l1 += s[n][2] + s[n][3];
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            o[j][0] *= c0; o[j][1] *= c0;
            o[j][2] *= c1; o[j][3] *= c1;
        }

        // O += P V : k index t <-> key 2t, t+4 <-> key 2t+1, so the accumulators of S are the A fragment;
        // column g of n-tile j <-> d = 4g + (j & 3) + 32 (j >> 2)
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const AFrag a = make_a(s[n][0], s[n][2], s[n][1], s[n][3]);
            const float *v0 = vs + (n * 8 + t * 2) * VSTRIDE + g * 4;
            const float *v1 = v0 + VSTRIDE;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float4 x0 = *reinterpret_cast<const float4 *>(v0 + half * 32);
                const float4 x1 = *reinterpret_cast<const float4 *>(v1 + half * 32);
                mma_3x(o[half * 4 + 0], a, x0.x, x1.x);
                mma_3x(o[half * 4 + 1], a, x0.y, x1.y);
                mma_3x(o[half * 4 + 2], a, x0.z, x1.z);
                mma_3x(o[half * 4 + 3], a, x0.w, x1.w);
            }
        }
        __syncthreads();                           // this stage is refilled in the next iteration
    }

    const float r0 = 1.0f / quad_sum(l0);
    const float r1 = 1.0f / quad_sum(l1);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int d = t * 8 + half * 32;
        float (*oh)[4] = o + half * 4;
        if (row0 < SEQ) {
            float *dst = O + row0 * TOKEN + d;
            *reinterpret_cast<float4 *>(dst) = make_float4(oh[0][0] * r0, oh[1][0] * r0, oh[2][0] * r0, oh[3][0] * r0);
            *reinterpret_cast<float4 *>(dst + 4) =
                make_float4(oh[0][1] * r0, oh[1][1] * r0, oh[2][1] * r0, oh[3][1] * r0);
        }
        if (row1 < SEQ) {
            float *dst = O + row1 * TOKEN + d;
            *reinterpret_cast<float4 *>(dst) = make_float4(oh[0][2] * r1, oh[1][2] * r1, oh[2][2] * r1, oh[3][2] * r1);
            *reinterpret_cast<float4 *>(dst + 4) =
                make_float4(oh[0][3] * r1, oh[1][3] * r1, oh[2][3] * r1, oh[3][3] * r1);
        }
    }
}

static uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352dU;
    x ^= x >> 15; x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

int main()
{
    const size_t n = (size_t)BATCH * SEQ * HEADS * DIM;
    std::vector<float> q(n), k(n), v(n), out(n);
    for (size_t i = 0; i < n; i++) {
        q[i] = hash32((uint32_t)i * 3 + 0) * (2.0f / 4294967296.0f) - 1.0f;      // [-1, 1)
        k[i] = hash32((uint32_t)i * 3 + 1) * (4.0f / 4294967296.0f) - 2.0f;      // [-2, 2)
        v[i] = hash32((uint32_t)i * 3 + 2) * (1.0f / 4294967296.0f) + 0.25f;     // [0.25, 1.25)
    }

    float *dq, *dk, *dv, *dout;
    CHECK(cudaMalloc(&dq, n * sizeof(float)));
    CHECK(cudaMalloc(&dk, n * sizeof(float)));
    CHECK(cudaMalloc(&dv, n * sizeof(float)));
    CHECK(cudaMalloc(&dout, n * sizeof(float)));
    CHECK(cudaMemcpy(dq, q.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dk, k.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dv, v.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    CHECK(cudaFuncSetAttribute(attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));
    attention_kernel<<<QTILES * BATCH * HEADS, THREADS, SMEM_BYTES>>>(dq, dk, dv, dout);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaMemcpy(out.data(), dout, n * sizeof(float), cudaMemcpyDeviceToHost));

    double sum = 0.0, sumsq = 0.0, maxv = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += out[i];
        sumsq += (double)out[i] * out[i];
        if (out[i] > maxv) maxv = out[i];
    }
    printf("sum %.7e\n", sum);
    printf("sumsq %.7e\n", sumsq);
    printf("max %.7e\n", maxv);
    for (int h = 0; h < HEADS; h += 3) {            // per-head sums
        double s = 0.0;
        for (size_t t = 0; t < (size_t)BATCH * SEQ; t++)
            for (int d = 0; d < DIM; d++)
                s += out[(t * HEADS + h) * DIM + d];
        printf("head_sum %.7e\n", s);
    }
    for (int i = 0; i < 8; i++) {
        size_t at = (size_t)i * (n - 1) / 7;
        printf("sample %.7e\n", out[at]);
    }

    CHECK(cudaFree(dq)); CHECK(cudaFree(dk)); CHECK(cudaFree(dv)); CHECK(cudaFree(dout));
    return 0;
}
