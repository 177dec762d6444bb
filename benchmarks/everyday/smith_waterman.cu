// Smith-Waterman local alignment score with affine gaps (Gotoh).
// The matrix is filled one anti-diagonal at a time, one kernel launch per diagonal.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN_A 2400
#define LEN_B 2000
#define MATCH 3
#define MISMATCH (-2)
#define GAP_OPEN 5
#define GAP_EXTEND 1
#define MINUS_INF (-1000000)

#define ROWS (LEN_A + 1)
#define COLS (LEN_B + 1)
#define CELL(i, j) ((i) * COLS + (j))

static void checkErr(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
        exit(1);
    }
}
#define CHK(x) checkErr((x), __LINE__)

__global__ void initBorders(int *H, int *E, int *F)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < ROWS) {
        H[CELL(t, 0)] = 0;
        E[CELL(t, 0)] = MINUS_INF;
        F[CELL(t, 0)] = MINUS_INF;
    }
    if (t < COLS) {
        H[CELL(0, t)] = 0;
        E[CELL(0, t)] = MINUS_INF;
        F[CELL(0, t)] = MINUS_INF;
    }
}

__global__ void diagonal(const char *a, const char *b, int *H, int *E, int *F,
                         int *best, int d, int first, int count)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    int i = first + t;
    int j = d - i;

    int e = max(E[CELL(i, j - 1)] - GAP_EXTEND, H[CELL(i, j - 1)] - GAP_OPEN);
    int f = max(F[CELL(i - 1, j)] - GAP_EXTEND, H[CELL(i - 1, j)] - GAP_OPEN);
    int s = (a[i - 1] == b[j - 1]) ? MATCH : MISMATCH;
    int h = H[CELL(i - 1, j - 1)] + s;
    h = max(h, e);
    h = max(h, f);
    h = max(h, 0);

    E[CELL(i, j)] = e;
    F[CELL(i, j)] = f;
    H[CELL(i, j)] = h;
    atomicMax(best, h);
}

int main(void)
{
    char *a = (char *)malloc(LEN_A);
    char *b = (char *)malloc(LEN_B);
    const char letters[] = "ACGT";
    unsigned int s = 2023;
#define RND() ((s = s * 1664525u + 1013904223u) >> 16)
    for (int i = 0; i < LEN_A; i++) a[i] = letters[RND() & 3];
    for (int j = 0; j < LEN_B; j++) b[j] = letters[RND() & 3];
    // copy a mutated piece of a into b, with a few letters dropped
    int src = LEN_A / 4;
    for (int j = LEN_B / 3; j < (2 * LEN_B) / 3; j++) {
        unsigned int r = RND() % 100;
        if (r < 3) src += 2;
        b[j] = (r >= 90) ? letters[RND() & 3] : a[src];
        src++;
    }

    char *dA, *dB;
    int *dH, *dE, *dF, *dBest;
    size_t bytes = (size_t)ROWS * COLS * sizeof(int);
    CHK(cudaMalloc((void **)&dA, LEN_A));
    CHK(cudaMalloc((void **)&dB, LEN_B));
    CHK(cudaMalloc((void **)&dH, bytes));
    CHK(cudaMalloc((void **)&dE, bytes));
    CHK(cudaMalloc((void **)&dF, bytes));
    CHK(cudaMalloc((void **)&dBest, sizeof(int)));
    CHK(cudaMemcpy(dA, a, LEN_A, cudaMemcpyHostToDevice));
    CHK(cudaMemcpy(dB, b, LEN_B, cudaMemcpyHostToDevice));
    CHK(cudaMemset(dBest, 0, sizeof(int)));

    int longest = ROWS > COLS ? ROWS : COLS;
    initBorders<<<(longest + 255) / 256, 256>>>(dH, dE, dF);
    for (int d = 2; d <= LEN_A + LEN_B; d++) {
        int first = d - LEN_B > 1 ? d - LEN_B : 1;
        int last = d - 1 < LEN_A ? d - 1 : LEN_A;
        int count = last - first + 1;
        diagonal<<<(count + 127) / 128, 128>>>(dA, dB, dH, dE, dF, dBest, d, first, count);
    }
    CHK(cudaGetLastError());

    int best;
    int *lastRow = (int *)malloc(COLS * sizeof(int));
    CHK(cudaMemcpy(&best, dBest, sizeof(int), cudaMemcpyDeviceToHost));
    CHK(cudaMemcpy(lastRow, dH + CELL(LEN_A, 0), COLS * sizeof(int), cudaMemcpyDeviceToHost));

    unsigned int hash = 0;
    long sum = 0;
    for (int j = 0; j < COLS; j++) {
        hash = hash * 131u + (unsigned int)lastRow[j];
        sum += lastRow[j];
    }
    printf("best score %d\n", best);
    printf("last row sum %ld hash %08x\n", sum, hash);

    cudaFree(dA); cudaFree(dB); cudaFree(dH); cudaFree(dE); cudaFree(dF); cudaFree(dBest);
    free(a); free(b); free(lastRow);
    return 0;
}
