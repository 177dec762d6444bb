// Inverse of many 8x8 matrices by Gauss-Jordan with partial pivoting, 8 lanes per matrix
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned int uint;

// Lane r of a group of 8 holds row r in registers. In-place Gauss-Jordan; rows are not
// swapped, each lane remembers at which step its row was the pivot.
__global__ void __launch_bounds__(256)
invert(const float4* __restrict__ A, float4* __restrict__ Ainv, float* __restrict__ det, uint count)
{
    __shared__ __align__(16) float sm[8][4][68];
    const uint t = blockIdx.x * 256 + threadIdx.x;
    const uint m = t >> 3;
    const int r = threadIdx.x & 7;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 3;
    const bool ok = m < count;
    const unsigned full = 0xffffffffu;

    float a[8];
    if (ok) {
        const float4 lo = __ldcs(A + (size_t)t * 2), hi = __ldcs(A + (size_t)t * 2 + 1);
        a[0] = lo.x; a[1] = lo.y; a[2] = lo.z; a[3] = lo.w;
        a[4] = hi.x; a[5] = hi.y; a[6] = hi.z; a[7] = hi.w;
    } else {
#pragma unroll
        for (int j = 0; j < 8; j++) a[j] = (j == r) ? 1.0f : 0.0f;
    }

    int mystep = -1;
    unsigned perm = 0;      // pivot rows, 4 bits each (the same in the 8 lanes)
    float d = 1.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float best = (mystep < 0) ? fabsf(a[k]) : -1.0f;
        int row = r;
#pragma unroll
        for (int o = 4; o > 0; o >>= 1) {
            const float b2 = __shfl_xor_sync(full, best, o, 8);
            const int r2 = __shfl_xor_sync(full, row, o, 8);
            if (b2 > best || (b2 == best && r2 < row)) { best = b2; row = r2; }
        }
        perm |= (unsigned)row << (4 * k);
        const float p = __shfl_sync(full, a[k], row, 8);
        d *= p;
        const float ip = 1.0f / p;
        const bool mine = (row == r);
        if (mine) mystep = k;
        const float f = a[k];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (j == k) continue;
            const float pj = __shfl_sync(full, a[j], row, 8) * ip;
            a[j] = mine ? pj : fmaf(-f, pj, a[j]);
        }
        a[k] = mine ? ip : -f * ip;
    }
    // parity of the row permutation
    int inv = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = i + 1; j < 8; j++)
            inv += ((perm >> (4 * i)) & 7u) > ((perm >> (4 * j)) & 7u);

    // row 'mystep' of the inverse; its column j belongs at perm[j]
    float* o = sm[warp][g];
#pragma unroll
    for (int j = 0; j < 8; j++) o[mystep * 8 + ((perm >> (4 * j)) & 7u)] = a[j];
    __syncwarp();
    const uint m0 = (blockIdx.x * 256 + warp * 32) >> 3;     // first matrix of the warp
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int e = h * 32 + lane;                          // float4 index, 16 a matrix
        const int mm = e >> 4, q = e & 15;
        if (m0 + mm < count)
            __stcs(Ainv + (size_t)(m0 + mm) * 16 + q, *reinterpret_cast<const float4*>(&sm[warp][mm][q * 4]));
    }
    if (ok && r == 0) det[m] = (inv & 1) ? -d : d;
}

int main()
{
    const uint count = 200000;
    std::vector<float> A(count * 64), B(count * 64), det(count);
    uint s = 99;
    for (uint m = 0; m < count; m++) {
        for (int e = 0; e < 64; e++) {
            s = s * 1664525u + 1013904223u;
            A[m * 64 + e] = (s >> 8) / 8388608.0f - 1.0f;
        }
        // a large entry in each row, not on the diagonal, so that pivoting matters
        for (int i = 0; i < 8; i++) A[m * 64 + i * 8 + (3 * i + m) % 8] += 6.0f;
    }
    float *dA, *dB, *dDet;
    cudaMalloc(&dA, A.size() * sizeof(float));
    cudaMalloc(&dB, B.size() * sizeof(float));
    cudaMalloc(&dDet, count * sizeof(float));
    cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice);

    invert<<<(count * 8 + 255) / 256, 256>>>((const float4*)dA, (float4*)dB, dDet, count);

    cudaMemcpy(B.data(), dB, B.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(det.data(), dDet, count * sizeof(float), cudaMemcpyDeviceToHost);
    double sa = 0, sd = 0;
    for (float v : B) sa += v < 0 ? -v : v;
    for (float v : det) sd += v < 0 ? -v : v;
    printf("sum|inv| = %.4e  sum|det| = %.4e\n", sa, sd);
    printf("inv[0][0]=%.4e inv[777][13]=%.4e inv[last]=%.4e det[5]=%.4e det[6]=%.4e\n",
           B[0], B[777 * 64 + 13], B.back(), det[5], det[6]);
    cudaFree(dA); cudaFree(dB); cudaFree(dDet);
    return 0;
}
