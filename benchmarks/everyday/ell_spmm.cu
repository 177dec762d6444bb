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

__global__ void zero(float *c, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = 0.0f;
}

__global__ void spmm(Ell a, const float *b, float *c)
{
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= a.rows) return;
    for (unsigned k = 0; k < a.width; k++) {
        int col = a.col[row * a.width + k];
        if (col < 0) break;
        float v = a.val[row * a.width + k];
        for (unsigned j = 0; j < NCOL; j++)
            c[row * NCOL + j] += v * b[(unsigned)col * NCOL + j];
    }
}

__global__ void row_norm(const float *c, float *norm, unsigned rows)
{
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float s = 0.0f;
    for (unsigned j = 0; j < NCOL; j++) s += c[row * NCOL + j] * c[row * NCOL + j];
    norm[row] = sqrtf(s);
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

    zero<<<(unsigned)((nd + 255) / 256), 256>>>(c, (unsigned)nd);
    spmm<<<(rows + 255) / 256, 256>>>(a, b, c);
    row_norm<<<(rows + 255) / 256, 256>>>(c, norm, rows);

    cudaMemcpy(hc, c, nd * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hn, norm, rows * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0, sn = 0;
    for (size_t i = 0; i < nd; i++) sum += hc[i];
    for (unsigned r = 0; r < rows; r++) sn += hn[r];
    printf("sum C %.5e  sum of row norms %.5e\n", sum, sn);
    printf("C[0] %.4e C[1000][7] %.4e norm[last] %.4e\n", hc[0], hc[1000 * NCOL + 7], hn[rows - 1]);
    return 0;
}
