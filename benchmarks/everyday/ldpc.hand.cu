/* LDPC decoder, flooding normalised min-sum, for a batch of received frames.
 * H200 version: one block per frame keeps all messages (int8) and posteriors (int16) in shared
 * memory over all iterations; the quasi-cyclic structure replaces the edge lists (block row and
 * block column are uniform per warp, tables in constant memory); variable-to-check messages are
 * recomputed as posterior minus check message; a check needs one pass (two smallest, sign). */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#define Z        96             /* lifting size                */
#define BROWS    12             /* base matrix                 */
#define BCOLS    24
#define NVAR     (BCOLS * Z)    /* code bits        2304       */
#define NCHK     (BROWS * Z)    /* parity checks    1152       */
#define NFRAMES  2048
#define ITERS    10
#define MSG_MAX  127
#define SCALE(m) (((m) * 3) >> 2)   /* normalised min-sum, 0.75 */
#define CLAMP(x) ((x) > MSG_MAX ? MSG_MAX : ((x) < -MSG_MAX ? -MSG_MAX : (x)))

#define CHECK(x)                                                        \
    do {                                                                \
        cudaError_t rc_ = (x);                                          \
        if (rc_ != cudaSuccess) {                                       \
            fprintf(stderr, "%s(%d): %s\n", __FILE__, __LINE__,         \
                    cudaGetErrorString(rc_));                           \
            exit(1);                                                    \
        }                                                               \
    } while (0)

/* IEEE 802.16e rate 1/2, shifts for Z = 96, -1: no block */
static const int base_matrix[BROWS][BCOLS] = {
    {-1, 94, 73, -1, -1, -1, -1, -1, 55, 83, -1, -1,  7,  0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, 27, -1, -1, -1, 22, 79,  9, -1, -1, -1, 12, -1,  0,  0, -1, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, 24, 22, 81, -1, 33, -1, -1, -1,  0, -1, -1,  0,  0, -1, -1, -1, -1, -1, -1, -1, -1},
    {61, -1, 47, -1, -1, -1, -1, -1, 65, 25, -1, -1, -1, -1, -1,  0,  0, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, 39, -1, -1, -1, 84, -1, -1, 41, 72, -1, -1, -1, -1, -1,  0,  0, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, 46, 40, -1, 82, -1, -1, -1, 79,  0, -1, -1, -1, -1,  0,  0, -1, -1, -1, -1, -1},
    {-1, -1, 95, 53, -1, -1, -1, -1, -1, 14, 18, -1, -1, -1, -1, -1, -1, -1,  0,  0, -1, -1, -1, -1},
    {-1, 11, 73, -1, -1, -1,  2, -1, -1, 47, -1, -1, -1, -1, -1, -1, -1, -1, -1,  0,  0, -1, -1, -1},
    {12, -1, -1, -1, 83, 24, -1, 43, -1, -1, -1, 51, -1, -1, -1, -1, -1, -1, -1, -1,  0,  0, -1, -1},
    {-1, -1, -1, -1, -1, 94, -1, 59, -1, -1, 70, 72, -1, -1, -1, -1, -1, -1, -1, -1, -1,  0,  0, -1},
    {-1, -1,  7, 65, -1, -1, -1, -1, 39, 49, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  0,  0},
    {43, -1, -1, -1, -1, 66, -1, 41, -1, -1, -1, 26,  7, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  0}};

#define THREADS (4 * Z)         /* 384: four block rows or columns at a time */
#define MAXROW  7               /* largest check degree                      */
#define MAXCOL  6               /* largest variable degree                   */
#define MAXBLK  (BROWS * MAXROW)

struct row_entry { int var, shift, edge; };     /* first variable, shift, first edge of the block */
struct col_entry { int edge, back; };           /* first edge of the block, (Z - shift) % Z       */

__constant__ int c_row_deg[BROWS];
__constant__ int c_col_deg[BCOLS];
__constant__ struct row_entry c_row[BROWS][MAXROW];
__constant__ struct col_entry c_col[BCOLS][MAXCOL];

__global__ void __launch_bounds__(THREADS, 4)
decode_kernel(const signed char *__restrict__ llr, int *__restrict__ post,
              int *__restrict__ errs, int *__restrict__ unsat)
{
    __shared__ __align__(16) signed char s_llr[NVAR];
    __shared__ signed char s_c2v[MAXBLK * Z];
    __shared__ short s_post[NVAR];
    __shared__ int s_count[2];

    const int tid = threadIdx.x;
    const int g = tid / Z;              /* 0..3, uniform in a warp */
    const int z = tid - g * Z;
    const size_t frame = (size_t)blockIdx.x * NVAR;
    int it, r, c, k, e;

    if (tid < NVAR / 16)
        ((int4 *)s_llr)[tid] = __ldg((const int4 *)(llr + frame) + tid);
    if (tid < 2) s_count[tid] = 0;
    for (e = tid; e < MAXBLK * Z; e += THREADS) s_c2v[e] = 0;
    __syncthreads();
    for (c = tid; c < NVAR; c += THREADS) s_post[c] = s_llr[c];
    __syncthreads();

    for (it = 0; it < ITERS; it++) {
        /* checks */
        for (r = g; r < BROWS; r += 4) {
            const int deg = c_row_deg[r];
            int v[MAXROW];
            int m1 = MSG_MAX, m2 = MSG_MAX, who = -1, neg = 0;
#pragma unroll
            for (k = 0; k < MAXROW; k++) {
                v[k] = 0;
                if (k < deg) {
                    int p = z + c_row[r][k].shift;
                    int m, a;
                    if (p >= Z) p -= Z;
                    m = (int)s_post[c_row[r][k].var + p] - (int)s_c2v[c_row[r][k].edge + z];
                    m = min(max(m, -MSG_MAX), MSG_MAX);
                    v[k] = m;
                    neg ^= m;                   /* sign bit is the parity of the signs */
                    a = abs(m);
                    if (a < m1) {
                        m2 = m1;
                        m1 = a;
                        who = k;
                    } else {
                        m2 = min(m2, a);
                    }
                }
            }
            m1 = SCALE(m1);
            m2 = SCALE(m2);
#pragma unroll
            for (k = 0; k < MAXROW; k++) {
                if (k < deg) {
                    int a = k == who ? m2 : m1;
                    s_c2v[c_row[r][k].edge + z] = (signed char)((neg ^ v[k]) < 0 ? -a : a);
                }
            }
        }
        __syncthreads();

        /* variables */
        for (c = g; c < BCOLS; c += 4) {
            const int deg = c_col_deg[c];
            int total = s_llr[c * Z + z];
#pragma unroll
            for (k = 0; k < MAXCOL; k++) {
                if (k < deg) {
                    int p = z + c_col[c][k].back;
                    if (p >= Z) p -= Z;
                    total += s_c2v[c_col[c][k].edge + p];
                }
            }
            s_post[c * Z + z] = (short)total;
        }
        __syncthreads();
    }

    /* results */
    {
        int bad = 0, odd = 0;
        for (c = tid; c < NVAR; c += THREADS) {
            int p = s_post[c];
            post[frame + c] = p;
            bad += p < 0;
        }
        for (r = g; r < BROWS; r += 4) {
            int parity = 0;
            for (k = 0; k < c_row_deg[r]; k++) {
                int p = z + c_row[r][k].shift;
                if (p >= Z) p -= Z;
                parity ^= s_post[c_row[r][k].var + p] < 0;
            }
            odd += parity;
        }
        bad = __reduce_add_sync(0xffffffffu, bad);
        odd = __reduce_add_sync(0xffffffffu, odd);
        if ((tid & 31) == 0) {
            atomicAdd(&s_count[0], bad);
            atomicAdd(&s_count[1], odd);
        }
        __syncthreads();
        if (tid == 0) {
            errs[blockIdx.x] = s_count[0];
            unsat[blockIdx.x] = s_count[1];
        }
    }
}

static void upload_tables(void)
{
    static int row_deg[BROWS], col_deg[BCOLS];
    static struct row_entry row[BROWS][MAXROW];
    static struct col_entry col[BCOLS][MAXCOL];
    int r, c, blk = 0;
    for (r = 0; r < BROWS; r++)
        for (c = 0; c < BCOLS; c++) {
            int s = base_matrix[r][c];
            if (s < 0) continue;
            if (row_deg[r] == MAXROW || col_deg[c] == MAXCOL) {
                fprintf(stderr, "degree limit\n");
                exit(1);
            }
            row[r][row_deg[r]].var = c * Z;
            row[r][row_deg[r]].shift = s;
            row[r][row_deg[r]].edge = blk * Z;
            row_deg[r]++;
            col[c][col_deg[c]].edge = blk * Z;
            col[c][col_deg[c]].back = (Z - s) % Z;
            col_deg[c]++;
            blk++;
        }
    CHECK(cudaMemcpyToSymbol(c_row_deg, row_deg, sizeof(row_deg)));
    CHECK(cudaMemcpyToSymbol(c_col_deg, col_deg, sizeof(col_deg)));
    CHECK(cudaMemcpyToSymbol(c_row, row, sizeof(row)));
    CHECK(cudaMemcpyToSymbol(c_col, col, sizeof(col)));
}

static void decode(const signed char *llr, int *post, int *errs, int *unsat)
{
    signed char *d_llr;
    int *d_post, *d_errs, *d_unsat;

    upload_tables();
    CHECK(cudaMalloc((void **)&d_llr, (size_t)NFRAMES * NVAR));
    CHECK(cudaMalloc((void **)&d_post, sizeof(int) * (size_t)NFRAMES * NVAR));
    CHECK(cudaMalloc((void **)&d_errs, sizeof(int) * NFRAMES));
    CHECK(cudaMalloc((void **)&d_unsat, sizeof(int) * NFRAMES));
    CHECK(cudaMemcpy(d_llr, llr, (size_t)NFRAMES * NVAR, cudaMemcpyHostToDevice));

    decode_kernel<<<NFRAMES, THREADS>>>(d_llr, d_post, d_errs, d_unsat);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(post, d_post, sizeof(int) * (size_t)NFRAMES * NVAR, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(errs, d_errs, sizeof(int) * NFRAMES, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(unsat, d_unsat, sizeof(int) * NFRAMES, cudaMemcpyDeviceToHost));

    cudaFree(d_llr);
    cudaFree(d_post);
    cudaFree(d_errs);
    cudaFree(d_unsat);
}

/* ------------------------------------------------------------------ */

static unsigned int seed = 12345u;
static float urand(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 16777216.0f;
}

/* all-zero codeword over an AWGN channel, noisier from frame to frame */
static void make_llr(signed char *llr)
{
    int f, v;
    for (f = 0; f < NFRAMES; f++) {
        float sigma = 0.65f + 0.35f * (float)f / NFRAMES;
        for (v = 0; v < NVAR; v++) {
            float g = (urand() + urand() + urand() + urand() - 2.0f) * 1.7320508f;
            int q = (int)floorf((1.0f + sigma * g) * 8.0f + 0.5f);
            if (q > 31) q = 31;
            if (q < -31) q = -31;
            llr[f * NVAR + v] = (signed char)q;
        }
    }
}

int main(void)
{
    signed char *llr = (signed char *)malloc((size_t)NFRAMES * NVAR);
    int *post = (int *)malloc(sizeof(int) * (size_t)NFRAMES * NVAR);
    int *errs = (int *)malloc(sizeof(int) * NFRAMES);
    int *unsat = (int *)malloc(sizeof(int) * NFRAMES);
    long long raw = 0, bits = 0, checks = 0, frames = 0, weighted = 0;
    double sum = 0.0, wsum = 0.0;
    int f, v;

    make_llr(llr);
    decode(llr, post, errs, unsat);

    for (f = 0; f < NFRAMES; f++) {
        bits += errs[f];
        checks += unsat[f];
        frames += unsat[f] != 0;
        weighted += (long long)errs[f] * (1 + f % 5);
        for (v = 0; v < NVAR; v++) {
            int p = post[f * NVAR + v];
            raw += llr[f * NVAR + v] < 0;
            sum += abs(p);
            wsum += (double)abs(p) * (1 + v % 7);
        }
    }
    printf("raw bit errors     %lld\n", raw);
    printf("decoded bit errors %lld (weighted %lld)\n", bits, weighted);
    printf("failed frames      %lld, unsatisfied checks %lld\n", frames, checks);
    printf("mean |posterior|   %.5f, weighted %.5f\n", sum / ((double)NFRAMES * NVAR),
           wsum / ((double)NFRAMES * NVAR));

    free(llr);
    free(post);
    free(errs);
    free(unsat);
    return 0;
}
