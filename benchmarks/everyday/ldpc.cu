/* LDPC decoder, flooding normalised min-sum, for a batch of received frames. */
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

#define MSG(f, e)  ((size_t)(f) * nedges + (e))
#define VAR(f, v)  ((size_t)(f) * NVAR + (v))
#define THREADS    256
#define BLOCKS(n)  (((n) + THREADS - 1) / THREADS)

/* ---- Tanner graph, edges numbered check by check ---- */
static int nedges_h;
static int row_ptr_h[NCHK + 1], var_ptr_h[NVAR + 1];
static int *edge_var_h, *var_edge_h;

static void build_graph(void)
{
    int r, c, z, e = 0, v, *fill;
    edge_var_h = (int *)malloc(sizeof(int) * NCHK * BCOLS);
    for (r = 0; r < BROWS; r++)
        for (z = 0; z < Z; z++) {
            row_ptr_h[r * Z + z] = e;
            for (c = 0; c < BCOLS; c++)
                if (base_matrix[r][c] >= 0)
                    edge_var_h[e++] = c * Z + (z + base_matrix[r][c]) % Z;
        }
    row_ptr_h[NCHK] = e;
    nedges_h = e;

    var_edge_h = (int *)malloc(sizeof(int) * e);
    fill = (int *)calloc(NVAR + 1, sizeof(int));
    for (e = 0; e < nedges_h; e++) fill[edge_var_h[e]]++;
    var_ptr_h[0] = 0;
    for (v = 0; v < NVAR; v++) var_ptr_h[v + 1] = var_ptr_h[v] + fill[v];
    for (v = 0; v < NVAR; v++) fill[v] = var_ptr_h[v];
    for (e = 0; e < nedges_h; e++) var_edge_h[fill[edge_var_h[e]]++] = e;
    free(fill);
}

/* ---- kernels ---- */

__global__ void init_messages(int *v2c, const signed char *llr, const int *edge_var, int nedges)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    int f = blockIdx.y;
    if (e < nedges)
        v2c[MSG(f, e)] = llr[VAR(f, edge_var[e])];
}

__global__ void check_update(int *c2v, const int *v2c, const int *row_ptr, int nedges)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    int f = blockIdx.y;
    int e, k;
    if (r >= NCHK) return;

    for (e = row_ptr[r]; e < row_ptr[r + 1]; e++) {
        int sign = 1, mag = MSG_MAX;
        for (k = row_ptr[r]; k < row_ptr[r + 1]; k++) {
            if (k != e) {
                int m = v2c[MSG(f, k)];
                if (m < 0) {
                    sign = -sign;
                    m = -m;
                }
                if (m < mag) mag = m;
            }
        }
        c2v[MSG(f, e)] = sign * SCALE(mag);
    }
}

__global__ void var_update(int *v2c, const int *c2v, const signed char *llr, int *post,
                           const int *var_ptr, const int *var_edge, int nedges)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int f = blockIdx.y;
    int i, total;
    if (v >= NVAR) return;

    total = llr[VAR(f, v)];
    for (i = var_ptr[v]; i < var_ptr[v + 1]; i++)
        total += c2v[MSG(f, var_edge[i])];
    post[VAR(f, v)] = total;
    for (i = var_ptr[v]; i < var_ptr[v + 1]; i++) {
        int m = total - c2v[MSG(f, var_edge[i])];
        v2c[MSG(f, var_edge[i])] = CLAMP(m);
    }
}

__global__ void count_errors(const int *post, int *errs)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int f = blockIdx.y;
    if (v < NVAR && post[VAR(f, v)] < 0)
        atomicAdd(&errs[f], 1);
}

__global__ void count_unsatisfied(const int *post, const int *row_ptr, const int *edge_var, int *unsat)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    int f = blockIdx.y;
    int e, parity = 0;
    if (r >= NCHK) return;
    for (e = row_ptr[r]; e < row_ptr[r + 1]; e++)
        parity ^= post[VAR(f, edge_var[e])] < 0;
    if (parity)
        atomicAdd(&unsat[f], 1);
}

static void decode(const signed char *llr, int *post, int *errs, int *unsat)
{
    signed char *d_llr;
    int *d_post, *d_errs, *d_unsat, *d_v2c, *d_c2v;
    int *d_row_ptr, *d_edge_var, *d_var_ptr, *d_var_edge;
    int it;
    size_t nmsg;

    build_graph();
    nmsg = (size_t)NFRAMES * nedges_h;

    CHECK(cudaMalloc((void **)&d_llr, (size_t)NFRAMES * NVAR));
    CHECK(cudaMalloc((void **)&d_post, sizeof(int) * (size_t)NFRAMES * NVAR));
    CHECK(cudaMalloc((void **)&d_errs, sizeof(int) * NFRAMES));
    CHECK(cudaMalloc((void **)&d_unsat, sizeof(int) * NFRAMES));
    CHECK(cudaMalloc((void **)&d_v2c, sizeof(int) * nmsg));
    CHECK(cudaMalloc((void **)&d_c2v, sizeof(int) * nmsg));
    CHECK(cudaMalloc((void **)&d_row_ptr, sizeof(row_ptr_h)));
    CHECK(cudaMalloc((void **)&d_var_ptr, sizeof(var_ptr_h)));
    CHECK(cudaMalloc((void **)&d_edge_var, sizeof(int) * nedges_h));
    CHECK(cudaMalloc((void **)&d_var_edge, sizeof(int) * nedges_h));

    CHECK(cudaMemcpy(d_llr, llr, (size_t)NFRAMES * NVAR, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_row_ptr, row_ptr_h, sizeof(row_ptr_h), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_var_ptr, var_ptr_h, sizeof(var_ptr_h), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_edge_var, edge_var_h, sizeof(int) * nedges_h, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_var_edge, var_edge_h, sizeof(int) * nedges_h, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_errs, 0, sizeof(int) * NFRAMES));
    CHECK(cudaMemset(d_unsat, 0, sizeof(int) * NFRAMES));

    {
        dim3 ge(BLOCKS(nedges_h), NFRAMES), gc(BLOCKS(NCHK), NFRAMES), gv(BLOCKS(NVAR), NFRAMES);
        init_messages<<<ge, THREADS>>>(d_v2c, d_llr, d_edge_var, nedges_h);
        for (it = 0; it < ITERS; it++) {
            check_update<<<gc, THREADS>>>(d_c2v, d_v2c, d_row_ptr, nedges_h);
            var_update<<<gv, THREADS>>>(d_v2c, d_c2v, d_llr, d_post, d_var_ptr, d_var_edge, nedges_h);
        }
        count_errors<<<gv, THREADS>>>(d_post, d_errs);
        count_unsatisfied<<<gc, THREADS>>>(d_post, d_row_ptr, d_edge_var, d_unsat);
        CHECK(cudaGetLastError());
    }

    CHECK(cudaMemcpy(post, d_post, sizeof(int) * (size_t)NFRAMES * NVAR, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(errs, d_errs, sizeof(int) * NFRAMES, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(unsat, d_unsat, sizeof(int) * NFRAMES, cudaMemcpyDeviceToHost));

    cudaFree(d_llr);
    cudaFree(d_post);
    cudaFree(d_errs);
    cudaFree(d_unsat);
    cudaFree(d_v2c);
    cudaFree(d_c2v);
    cudaFree(d_row_ptr);
    cudaFree(d_var_ptr);
    cudaFree(d_edge_var);
    cudaFree(d_var_edge);
    free(edge_var_h);
    free(var_edge_h);
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
