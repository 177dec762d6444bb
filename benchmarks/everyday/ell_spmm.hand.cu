// C = A * B, A sparse in ELLPACK (row major, -1 padded), B dense with 32 columns
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define NCOL 32
#define WIDTH 32

struct Ell {
    unsigned rows;
    unsigned width;
    int *col;
    double dummy;   // keeps the struct as it is in the big code
    float *val;
};

// 8 lanes a row, a float4 of the 32 columns each; the 8 lanes fetch 8 entries of the row at
// once and hand them round by shuffles; the row norm comes from the registers
__global__ void __launch_bounds__(256)
spmm(Ell a, const float4 *__restrict__ b, float4 *__restrict__ c, float *__restrict__ norm)
{
    const unsigned t = blockIdx.x * 256 + threadIdx.x;
    const unsigned row = t >> 3, l = t & 7;
    const bool ok = row < a.rows;
    const unsigned full = 0xffffffffu;
    const int *__restrict__ cols = a.col + (size_t)row * WIDTH;
    const float *__restrict__ vals = a.val + (size_t)row * WIDTH;
    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);

    int col = ok ? __ldcs(cols + l) : -1;
    float val = ok ? __ldcs(vals + l) : 0.f;
#pragma unroll
    for (int k0 = 0; k0 < WIDTH; k0 += 8) {
        int ncol = -1;
        float nval = 0.f;
        if (k0 + 8 < WIDTH && ok) {
            ncol = __ldcs(cols + k0 + 8 + l);
            nval = __ldcs(vals + k0 + 8 + l);
        }
        if (__all_sync(full, col < 0)) break;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int j = __shfl_sync(full, col, i, 8);
            const float v = __shfl_sync(full, val, i, 8);
            if (j >= 0) {
                const float4 x = __ldg(b + (size_t)j * (NCOL / 4) + l);
                acc.x = fmaf(v, x.x, acc.x);
                acc.y = fmaf(v, x.y, acc.y);
                acc.z = fmaf(v, x.z, acc.z);
                acc.w = fmaf(v, x.w, acc.w);
            }
        }
        col = ncol;
        val = nval;
    }
    float s = acc.x * acc.x + acc.y * acc.y + acc.z * acc.z + acc.w * acc.w;
#pragma unroll
    for (int o = 4; o > 0; o >>= 1) s += __shfl_xor_sync(full, s, o, 8);
    if (ok) {
        __stcs(c + (size_t)row * (NCOL / 4) + l, acc);
        if (l == 0) norm[row] = sqrtf(s);
    }
}

int main()
{
    const unsigned rows = 150000;
    const size_t ne = (size_t)rows * WIDTH, nd = (size_t)rows * NCOL;
    int *hcol = (int *)malloc(ne * sizeof(int));
    float *hval = (float *)malloc(ne * sizeof(float));
    float *hb = (float *)malloc(nd * sizeof(float));
    float *hc = (float *)malloc(nd * sizeof(float));
    float *hn = (float *)malloc(rows * sizeof(float));
    unsigned s = 17;
    for (unsigned r = 0; r < rows; r++) {
        s = s * 1664525u + 1013904223u;
        unsigned nnz = 4 + (s >> 16) % (WIDTH - 3);      // 4 .. 32 entries
        for (unsigned k = 0; k < WIDTH; k++) {
            s = s * 1664525u + 1013904223u;
            hcol[(size_t)r * WIDTH + k] = k < nnz ? (int)((s >> 8) % rows) : -1;
            hval[(size_t)r * WIDTH + k] = k < nnz ? ((s >> 4) & 0xffff) / 65536.0f : 0.0f;
        }
    }
    for (size_t i = 0; i < nd; i++) {
        s = s * 1664525u + 1013904223u;
        hb[i] = (s >> 8) / 16777216.0f - 0.25f;
    }
    Ell a;
    a.rows = rows;
    a.width = WIDTH;
    a.dummy = 0;
    float *b, *c, *norm;
    cudaMalloc(&a.col, ne * sizeof(int));
    cudaMalloc(&a.val, ne * sizeof(float));
    cudaMalloc(&b, nd * sizeof(float));
    cudaMalloc(&c, nd * sizeof(float));
    cudaMalloc(&norm, rows * sizeof(float));
    cudaMemcpy(a.col, hcol, ne * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(a.val, hval, ne * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(b, hb, nd * sizeof(float), cudaMemcpyHostToDevice);

    spmm<<<(rows * 8 + 255) / 256, 256>>>(a, (const float4 *)b, (float4 *)c, norm);

    cudaMemcpy(hc, c, nd * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hn, norm, rows * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0, sn = 0;
    for (size_t i = 0; i < nd; i++) sum += hc[i];
    for (unsigned r = 0; r < rows; r++) sn += hn[r];
    printf("sum C %.5e  sum of row norms %.5e\n", sum, sn);
    printf("C[0] %.4e C[1000][7] %.4e norm[last] %.4e\n", hc[0], hc[1000 * NCOL + 7], hn[rows - 1]);
    return 0;
}
