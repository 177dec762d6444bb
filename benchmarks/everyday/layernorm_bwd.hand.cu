// Layer normalization, backward pass: dx, dgamma, dbeta
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

struct Shape {
    int rows;
    int cols;
};

constexpr int COLS = 1024;
constexpr int TPB = COLS / 4;          // one float4 of a row per thread
constexpr int WARPS = TPB / 32;
constexpr int NBLK = 132 * 4;

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// statistics, dx and the block's share of dgamma/dbeta in one pass over the data
__global__ void __launch_bounds__(TPB, 4)
fused_backward(const float4 *__restrict__ x, const float4 *__restrict__ dy,
               const float4 *__restrict__ gamma, float4 *__restrict__ dx,
               float4 *__restrict__ part, int rows)
{
    __shared__ float sm_m[2][WARPS];
    __shared__ float sm_v[2][WARPS][3];
    const int t = threadIdx.x, w = t >> 5, lane = t & 31;
    const float4 gm = gamma[t];
    float4 dg = make_float4(0.f, 0.f, 0.f, 0.f), db = dg;
    int row = blockIdx.x;
    float4 nx, ny;
    if (row < rows) {
        nx = __ldcs(x + (size_t)row * TPB + t);
        ny = __ldcs(dy + (size_t)row * TPB + t);
    }
    int buf = 0;
    for (; row < rows; row += gridDim.x, buf ^= 1) {
        float4 v = nx;
        const float4 y = ny;
        const int next = row + gridDim.x;
        if (next < rows) {                         // prefetch the next row
            nx = __ldcs(x + (size_t)next * TPB + t);
            ny = __ldcs(dy + (size_t)next * TPB + t);
        }
        float m = warp_sum((v.x + v.y) + (v.z + v.w));
        if (lane == 0) sm_m[buf][w] = m;
        __syncthreads();
        m = 0.f;
#pragma unroll
        for (int i = 0; i < WARPS; i++) m += sm_m[buf][i];
        m *= 1.0f / COLS;
        v.x -= m; v.y -= m; v.z -= m; v.w -= m;
        float4 g = make_float4(y.x * gm.x, y.y * gm.y, y.z * gm.z, y.w * gm.w);
        float q = warp_sum(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
        float s1 = warp_sum((g.x + g.y) + (g.z + g.w));
        float s2 = warp_sum(g.x * v.x + g.y * v.y + g.z * v.z + g.w * v.w);
        if (lane == 0) { sm_v[buf][w][0] = q; sm_v[buf][w][1] = s1; sm_v[buf][w][2] = s2; }
        __syncthreads();
        q = s1 = s2 = 0.f;
#pragma unroll
        for (int i = 0; i < WARPS; i++) {
            q += sm_v[buf][i][0]; s1 += sm_v[buf][i][1]; s2 += sm_v[buf][i][2];
        }
        const float rstd = 1.0f / sqrtf(q * (1.0f / COLS) + 1e-5f);
        s1 *= 1.0f / COLS;
        s2 *= rstd * (1.0f / COLS);
        v.x *= rstd; v.y *= rstd; v.z *= rstd; v.w *= rstd;
        float4 o;
        o.x = rstd * (g.x - s1 - v.x * s2);
        o.y = rstd * (g.y - s1 - v.y * s2);
        o.z = rstd * (g.z - s1 - v.z * s2);
        o.w = rstd * (g.w - s1 - v.w * s2);
        __stcs(dx + (size_t)row * TPB + t, o);
        dg.x += y.x * v.x; dg.y += y.y * v.y; dg.z += y.z * v.z; dg.w += y.w * v.w;
        db.x += y.x; db.y += y.y; db.z += y.z; db.w += y.w;
    }
    part[(size_t)blockIdx.x * (2 * TPB) + t] = dg;
    part[(size_t)blockIdx.x * (2 * TPB) + TPB + t] = db;
}

// 2*COLS columns of partial sums, 32 columns a block
__global__ void reduce_params(const float *__restrict__ part, float *__restrict__ dgamma,
                              float *__restrict__ dbeta, int nblk)
{
    __shared__ float sm[32][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    float a = 0.f;
#pragma unroll 4
    for (int r = threadIdx.y; r < nblk; r += 32) a += part[(size_t)r * (2 * COLS) + c];
    sm[threadIdx.y][threadIdx.x] = a;
    __syncthreads();
    a = warp_sum(sm[threadIdx.x][threadIdx.y]);
    if (threadIdx.x == 0) {
        int cc = blockIdx.x * 32 + threadIdx.y;
        if (cc < COLS) dgamma[cc] = a;
        else dbeta[cc - COLS] = a;
    }
}

static unsigned int seed = 12345u;
static float rnd()
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) / 16777216.0f;
}

int main()
{
    Shape s;
    s.rows = 8192;
    s.cols = 1024;
    size_t n = (size_t)s.rows * s.cols;
    float *x = (float *)malloc(n * sizeof(float));
    float *dy = (float *)malloc(n * sizeof(float));
    float *gamma = (float *)malloc(s.cols * sizeof(float));
    for (size_t i = 0; i < n; i++) x[i] = 4.0f * rnd() - 1.0f;
    for (size_t i = 0; i < n; i++) dy[i] = rnd() - 0.4f;
    for (int i = 0; i < s.cols; i++) gamma[i] = 0.5f + rnd();

    float *d_x, *d_dy, *d_gamma, *d_part, *d_dx, *d_dgamma, *d_dbeta;
    cudaMalloc(&d_x, n * sizeof(float));
    cudaMalloc(&d_dy, n * sizeof(float));
    cudaMalloc(&d_dx, n * sizeof(float));
    cudaMalloc(&d_gamma, s.cols * sizeof(float));
    cudaMalloc(&d_dgamma, s.cols * sizeof(float));
    cudaMalloc(&d_dbeta, s.cols * sizeof(float));
    cudaMalloc(&d_part, (size_t)NBLK * 2 * COLS * sizeof(float));
    cudaMemcpy(d_x, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_dy, dy, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_gamma, gamma, s.cols * sizeof(float), cudaMemcpyHostToDevice);

    fused_backward<<<NBLK, TPB>>>((const float4 *)d_x, (const float4 *)d_dy, (const float4 *)d_gamma,
                                  (float4 *)d_dx, (float4 *)d_part, s.rows);
    dim3 rb(32, 32);
    reduce_params<<<2 * COLS / 32, rb>>>(d_part, d_dgamma, d_dbeta, NBLK);

    float *dx = (float *)malloc(n * sizeof(float));
    float *dgamma = (float *)malloc(s.cols * sizeof(float));
    float *dbeta = (float *)malloc(s.cols * sizeof(float));
    cudaMemcpy(dx, d_dx, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(dgamma, d_dgamma, s.cols * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(dbeta, d_dbeta, s.cols * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { printf("cuda error\n"); return 1; }

    double a = 0, b = 0, c = 0;
    for (size_t i = 0; i < n; i++) a += fabs((double)dx[i]);
    for (int i = 0; i < s.cols; i++) { b += fabs((double)dgamma[i]); c += dbeta[i]; }
    printf("sum |dx| %.4e  sum |dgamma| %.4e  sum dbeta %.4e\n", a, b, c);
    printf("dx[5] %.4e dx[last] %.4e dbeta[17] %.4e\n", dx[5], dx[n - 1], dbeta[17]);
    return 0;
}
