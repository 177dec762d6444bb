// Lattice Boltzmann, D2Q9 BGK, periodic box with a solid disc, 10 steps
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

const int NX = 1280;
const int NY = 1024;
const int Q = 9;

__constant__ int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ int opp[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
__constant__ float wt[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

__device__ int cellIndex(int x, int y)
{
    int xx = (x + NX) % NX;
    int yy = (y + NY) % NY;
    return yy * NX + xx;
}

__global__ void stream(float *f, float *ftmp)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= NX || y >= NY) return;
    int c = y * NX + x;
    for (int q = 0; q < Q; q++)
        ftmp[c * Q + q] = f[cellIndex(x - cx[q], y - cy[q]) * Q + q];
}

__global__ void macroscopic(float *f, float *rho, float *ux, float *uy)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= NX || y >= NY) return;
    int c = y * NX + x;
    float r = 0, jx = 0, jy = 0;
    for (int q = 0; q < Q; q++) {
        r += f[c * Q + q];
        jx += cx[q] * f[c * Q + q];
        jy += cy[q] * f[c * Q + q];
    }
    rho[c] = r;
    ux[c] = jx / r;
    uy[c] = jy / r;
}

__global__ void collide(float *ftmp, float *f, float *rho, float *ux, float *uy, unsigned char *solid, float omega)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= NX || y >= NY) return;
    int c = y * NX + x;
    if (solid[c]) {
        for (int q = 0; q < Q; q++) f[c * Q + q] = ftmp[c * Q + opp[q]];
        return;
    }
    float u2 = ux[c] * ux[c] + uy[c] * uy[c];
    for (int q = 0; q < Q; q++) {
        float cu = cx[q] * ux[c] + cy[q] * uy[c];
        float feq = wt[q] * rho[c] * (1.0f + 3.0f * cu + 4.5f * cu * cu - 1.5f * u2);
        f[c * Q + q] = ftmp[c * Q + q] - omega * (ftmp[c * Q + q] - feq);
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

    dim3 b(16, 16), g((NX + 15) / 16, (NY + 15) / 16);
    for (int t = 0; t < 10; t++) {
        stream<<<g, b>>>(f, ftmp);
        macroscopic<<<g, b>>>(ftmp, rho, ux, uy);
        collide<<<g, b>>>(ftmp, f, rho, ux, uy, solid, 1.2f);
    }
    macroscopic<<<g, b>>>(f, rho, ux, uy);

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
