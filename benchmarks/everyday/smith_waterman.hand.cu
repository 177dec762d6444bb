// Smith-Waterman local alignment score with affine gaps (Gotoh).
// One launch. A warp owns a strip of 128 rows (4 rows per lane) and sweeps the columns as a systolic
// pipeline in registers; strip s follows strip s - 1, which passes its last row on in chunks of 32.
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

#define COLS (LEN_B + 1)
#define RPL 4                                   // rows per lane
#define STRIP (32 * RPL)
#define STRIPS ((LEN_A + STRIP - 1) / STRIP)    // 19 blocks of one warp, all resident at once

static void checkErr(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
        exit(1);
    }
}
#define CHK(x) checkErr((x), __LINE__)

// border[s][j] = (H, F) of the last row of strip s at column j; progress[s] = columns finished
__global__ void __launch_bounds__(32)
alignStrips(const char *__restrict__ a, const char *__restrict__ b, int2 *border, int *progress,
            int *lastRow, int *best)
{
    __shared__ char sb[LEN_B];
    const unsigned full = 0xffffffffu;
    const int lane = threadIdx.x;
    const int strip = blockIdx.x;
    const int row0 = strip * STRIP + lane * RPL;

    for (int j = lane; j < LEN_B; j += 32) sb[j] = b[j];
    __syncwarp();

    char letter[RPL];
    int h[RPL], e[RPL];            // H and E of this lane's rows at the column before
#pragma unroll
    for (int r = 0; r < RPL; r++) {
        letter[r] = row0 + r < LEN_A ? a[row0 + r] : 0;      // 0 never matches
        h[r] = 0;
        e[r] = MINUS_INF;
    }
    int diag = 0;                  // H of the row above at the column before
    int outH = 0, outF = MINUS_INF;
    int chunkH = 0, chunkF = MINUS_INF;
    int top = 0;

    const int2 *above = border + (size_t)(strip - 1) * LEN_B;
    int2 *below = border + (size_t)strip * LEN_B;
    volatile int *ready = progress + strip - 1;

    for (int t = 0; t < LEN_B + 31; t++) {
        if ((t & 31) == 0 && strip > 0 && t < LEN_B) {
            const int need = min(t + 32, LEN_B);
            if (lane == 0) {
                while (*ready < need) { }
                __threadfence();
            }
            __syncwarp();
            const int j = t + lane;
            if (j < LEN_B) {
                const int2 v = __ldcg(above + j);
                chunkH = v.x;
                chunkF = v.y;
            }
        }
        // values of the row above at this lane's column: from the lane before, lane 0 from the border
        int upH = __shfl_up_sync(full, outH, 1);
        int upF = __shfl_up_sync(full, outF, 1);
        const int edgeH = __shfl_sync(full, chunkH, t & 31);
        const int edgeF = __shfl_sync(full, chunkF, t & 31);
        if (lane == 0) {
            upH = edgeH;
            upF = edgeF;
        }
        const int j = t - lane;
        if (j >= 0 && j < LEN_B) {
            const char c = sb[j];
            int hUp = upH, f = upF, d = diag;
#pragma unroll
            for (int r = 0; r < RPL; r++) {
                e[r] = max(e[r] - GAP_EXTEND, h[r] - GAP_OPEN);
                f = max(f - GAP_EXTEND, hUp - GAP_OPEN);
                const int s = d + (letter[r] == c ? MATCH : MISMATCH);
                d = h[r];
                hUp = max(max(s, 0), max(e[r], f));
                h[r] = hUp;
                top = max(top, hUp);
            }
            diag = upH;
            outH = hUp;
            outF = f;
            if (strip + 1 < STRIPS) {
                if (lane == 31) __stcg(below + j, make_int2(hUp, f));
            } else {
#pragma unroll
                for (int r = 0; r < RPL; r++)
                    if (row0 + r == LEN_A - 1) lastRow[j + 1] = h[r];
            }
        }
        // lane 31 has just finished column t - 31
        if (lane == 31 && strip + 1 < STRIPS) {
            const int done = t - 30;
            if (done > 0 && ((done & 31) == 0 || done == LEN_B)) {
                __threadfence();
                *(volatile int *)(progress + strip) = done;
            }
        }
    }
    for (int o = 16; o > 0; o /= 2) top = max(top, __shfl_xor_sync(full, top, o));
    if (lane == 0) {
        atomicMax(best, top);
        if (strip == STRIPS - 1) lastRow[0] = 0;
    }
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
    int2 *dBorder;
    int *dProgress, *dLastRow, *dBest;
    CHK(cudaMalloc((void **)&dA, LEN_A));
    CHK(cudaMalloc((void **)&dB, LEN_B));
    CHK(cudaMalloc((void **)&dBorder, (size_t)STRIPS * LEN_B * sizeof(int2)));
    CHK(cudaMalloc((void **)&dProgress, STRIPS * sizeof(int)));
    CHK(cudaMalloc((void **)&dLastRow, COLS * sizeof(int)));
    CHK(cudaMalloc((void **)&dBest, sizeof(int)));
    CHK(cudaMemcpy(dA, a, LEN_A, cudaMemcpyHostToDevice));
    CHK(cudaMemcpy(dB, b, LEN_B, cudaMemcpyHostToDevice));
    CHK(cudaMemset(dBest, 0, sizeof(int)));

    CHK(cudaMemset(dProgress, 0, STRIPS * sizeof(int)));
    alignStrips<<<STRIPS, 32>>>(dA, dB, dBorder, dProgress, dLastRow, dBest);
    CHK(cudaGetLastError());

    int best;
    int *lastRow = (int *)malloc(COLS * sizeof(int));
    CHK(cudaMemcpy(&best, dBest, sizeof(int), cudaMemcpyDeviceToHost));
    CHK(cudaMemcpy(lastRow, dLastRow, COLS * sizeof(int), cudaMemcpyDeviceToHost));

    unsigned int hash = 0;
    long sum = 0;
    for (int j = 0; j < COLS; j++) {
        hash = hash * 131u + (unsigned int)lastRow[j];
        sum += lastRow[j];
    }
    printf("best score %d\n", best);
    printf("last row sum %ld hash %08x\n", sum, hash);

    cudaFree(dA); cudaFree(dB); cudaFree(dBorder); cudaFree(dProgress); cudaFree(dLastRow); cudaFree(dBest);
    free(a); free(b); free(lastRow);
    return 0;
}
