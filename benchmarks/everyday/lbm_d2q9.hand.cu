// Lattice Boltzmann, D2Q9 BGK, periodic box with a solid disc, 10 steps
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

const int NX = 1280;
const int NY = 1024;
const int Q = 9;

constexpr int TPB = 128;                 // NX is a multiple of it: a block is a piece of one row

// One fused step: pull, bounce back or collide. Inside the loop f is a structure of arrays;
// the first step reads and the last step writes the caller's array of structures.
template <bool FIRST, bool LAST>
__global__ void __launch_bounds__(TPB)
step(const float *__restrict__ f, float *__restrict__ fo, const unsigned char *__restrict__ solid,
     float *__restrict__ rho, float *__restrict__ ux, float *__restrict__ uy, float omega)
{
    constexpr int n = NX * NY;
    constexpr int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    constexpr int CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    constexpr int OPP[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
    constexpr float WT[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
    const int x = blockIdx.x * TPB + threadIdx.x;
    const int y = blockIdx.y;
    const int c = y * NX + x;
    const int xs[3] = {x == NX - 1 ? 0 : x + 1, x, x == 0 ? NX - 1 : x - 1};              // cx = -1, 0, 1
    const int ys[3] = {(y == NY - 1 ? 0 : y + 1) * NX, y * NX, (y == 0 ? NY - 1 : y - 1) * NX};

    float g[9];
#pragma unroll
    for (int q = 0; q < 9; q++) {
        const int src = ys[CY[q] + 1] + xs[CX[q] + 1];
        g[q] = FIRST ? f[src * 9 + q] : f[q * n + src];
    }
    float o[9];
    if (solid[c]) {
#pragma unroll
        for (int q = 0; q < 9; q++) o[q] = g[OPP[q]];
    } else {
        float r = 0.f, jx = 0.f, jy = 0.f;
#pragma unroll
        for (int q = 0; q < 9; q++) { r += g[q]; jx += CX[q] * g[q]; jy += CY[q] * g[q]; }
        const float ir = 1.0f / r;
        const float u = jx * ir, v = jy * ir;
        const float base = 1.0f - 1.5f * (u * u + v * v);
#pragma unroll
        for (int q = 0; q < 9; q++) {
            const float cu = CX[q] * u + CY[q] * v;
            const float feq = WT[q] * r * (base + 3.0f * cu + 4.5f * cu * cu);
            o[q] = g[q] - omega * (g[q] - feq);
        }
    }
    if (LAST) {
        float r = 0.f, jx = 0.f, jy = 0.f;
#pragma unroll
        for (int q = 0; q < 9; q++) { r += o[q]; jx += CX[q] * o[q]; jy += CY[q] * o[q]; }
        rho[c] = r;
        ux[c] = jx / r;
        uy[c] = jy / r;
        __shared__ float sm[TPB * 9];
#pragma unroll
        for (int q = 0; q < 9; q++) sm[threadIdx.x * 9 + q] = o[q];
        __syncthreads();
        float *dst = fo + (size_t)(c - threadIdx.x) * 9;
#pragma unroll
        for (int q = 0; q < 9; q++) dst[q * TPB + threadIdx.x] = sm[q * TPB + threadIdx.x];
    } else {
#pragma unroll
        for (int q = 0; q < 9; q++) fo[q * n + c] = o[q];
    }
}

int main()
{
    const int n = NX * NY;
    float w[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
    int ex[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    float *h = (float *)malloc(n * Q * sizeof(float));
    unsigned char *hs = (unsigned char *)malloc(n);
    unsigned int s = 5u;
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++) {
            int c = y * NX + x;
            for (int q = 0; q < Q; q++) {
                s = s * 1664525u + 1013904223u;
                h[c * Q + q] = w[q] * (1.0f + 0.24f * ex[q] + 0.05f * ((s >> 8) / 16777216.0f));
            }
            int dx = x - NX / 4, dy = y - NY / 2;
            hs[c] = (dx * dx + dy * dy < 60 * 60) ? 1 : 0;
        }

    float *f, *ftmp, *rho, *ux, *uy;
    unsigned char *solid;
    cudaMalloc(&f, n * Q * sizeof(float));
    cudaMalloc(&ftmp, n * Q * sizeof(float));
    cudaMalloc(&rho, n * sizeof(float));
    cudaMalloc(&ux, n * sizeof(float));
    cudaMalloc(&uy, n * sizeof(float));
    cudaMalloc(&solid, n);
    cudaMemcpy(f, h, n * Q * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(solid, hs, n, cudaMemcpyHostToDevice);

    dim3 g(NX / TPB, NY);
    step<true, false><<<g, TPB>>>(f, ftmp, solid, rho, ux, uy, 1.2f);
    for (int t = 1; t < 9; t += 2) {
        step<false, false><<<g, TPB>>>(ftmp, f, solid, rho, ux, uy, 1.2f);
        step<false, false><<<g, TPB>>>(f, ftmp, solid, rho, ux, uy, 1.2f);
    }
    step<false, true><<<g, TPB>>>(ftmp, f, solid, rho, ux, uy, 1.2f);

    float *hr = (float *)malloc(n * sizeof(float));
    float *hu = (float *)malloc(n * sizeof(float));
    float *hv = (float *)malloc(n * sizeof(float));
    cudaMemcpy(h, f, n * Q * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hr, rho, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hu, ux, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hv, uy, n * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { printf("failed\n"); return 1; }

    double sr = 0, su = 0, sv = 0, sf = 0;
    for (int c = 0; c < n; c++) { sr += hr[c]; su += hu[c]; sv += fabs((double)hv[c]); }
    for (int i = 0; i < n * Q; i++) sf += (double)h[i] * h[i];
    printf("rho %.5e ux %.4e |uy| %.4e f2 %.4e\n", sr, su, sv, sf);
    int c = (NY / 2) * NX + NX / 2;
    printf("centre rho %.4e ux %.4e f1 %.4e\n", hr[c], hu[c], h[c * Q + 1]);
    return 0;
}
