/* 3D heat equation, explicit 7-point stencil, fixed boundary, 20 steps */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define NX 256
#define NY 256
#define NZ 256
#define NSTEPS 20
#define IDX(i,j,k) ((k)*NY*NX + (j)*NX + (i))

#define X4 (NX/4)      /* 64 float4 in a row: two warps */
#define BY 4
#define ZC 16          /* planes marched by a block */

/* a thread owns 4 consecutive cells of x and marches along z; the z neighbours
   stay in registers, the x neighbours come from the lanes beside it */
__global__ void __launch_bounds__(X4 * BY)
heat_step(const float4 *__restrict__ u, float4 *__restrict__ unew, float alpha)
{
    const int i4 = threadIdx.x;
    const int j = blockIdx.x * BY + threadIdx.y;
    const int k0 = blockIdx.y * ZC;
    const int lane = i4 & 31;
    const int plane = NY * X4;
    const bool jedge = (j == 0 || j == NY - 1);
    const float *us = (const float *)u;

    int p = k0 * plane + j * X4 + i4;
    float4 c = u[p];
    float4 dn = (k0 > 0) ? u[p - plane] : c;

#pragma unroll 4
    for (int kk = 0; kk < ZC; kk++, p += plane) {
        const int k = k0 + kk;
        const float4 up = (k < NZ - 1) ? u[p + plane] : c;
        float l = __shfl_up_sync(0xffffffffu, c.w, 1);
        float r = __shfl_down_sync(0xffffffffu, c.x, 1);
        if (jedge || k == 0 || k == NZ - 1) {
            unew[p] = c;
        } else {
            if (lane == 0 && i4 > 0) l = us[4 * p - 1];
            if (lane == 31 && i4 < X4 - 1) r = us[4 * p + 4];
            const float4 s = u[p - X4], n = u[p + X4];
            float4 o;
            o.x = c.x + alpha * (l   + c.y + s.x + n.x + dn.x + up.x - 6.0f * c.x);
            o.y = c.y + alpha * (c.x + c.z + s.y + n.y + dn.y + up.y - 6.0f * c.y);
            o.z = c.z + alpha * (c.y + c.w + s.z + n.z + dn.z + up.z - 6.0f * c.z);
            o.w = c.w + alpha * (c.z + r   + s.w + n.w + dn.w + up.w - 6.0f * c.w);
            if (i4 == 0) o.x = c.x;
            if (i4 == X4 - 1) o.w = c.w;
            unew[p] = o;
        }
        dn = c;
        c = up;
    }
}

int main(void)
{
    size_t bytes = (size_t)NX * NY * NZ * sizeof(float);
    float *h = (float*)malloc(bytes);
    unsigned int r = 7u;
    for (int n = 0; n < NX*NY*NZ; n++) {
        r = r * 1103515245u + 12345u;
        h[n] = 20.0f + 60.0f * ((r >> 16) & 0x7fff) / 32768.0f;
    }
    float *u, *unew;
    cudaMalloc((void**)&u, bytes);
    cudaMalloc((void**)&unew, bytes);
    cudaMemcpy(u, h, bytes, cudaMemcpyHostToDevice);

    dim3 block(X4, BY);
    dim3 grid(NY / BY, NZ / ZC);
    for (int step = 0; step < NSTEPS; step++) {
        heat_step<<<grid, block>>>((const float4*)u, (float4*)unew, 0.15f);
        float *t = u; u = unew; unew = t;
    }
    cudaMemcpy(h, u, bytes, cudaMemcpyDeviceToHost);

    double sum = 0.0, sq = 0.0;
    for (int n = 0; n < NX*NY*NZ; n++) { sum += h[n]; sq += (double)h[n] * h[n]; }
    printf("sum %.5e sumsq %.5e\n", sum, sq);
    printf("u(10,20,30)=%.4e u(128,128,128)=%.4e u(1,254,3)=%.4e\n",
           h[IDX(10,20,30)], h[IDX(128,128,128)], h[IDX(1,254,3)]);
    cudaFree(u);
    cudaFree(unew);
    free(h);
    return 0;
}
