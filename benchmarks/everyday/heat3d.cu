/* 3D heat equation, explicit 7-point stencil, fixed boundary, 20 steps */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define NX 256
#define NY 256
#define NZ 256
#define NSTEPS 20
#define IDX(i,j,k) ((k)*NY*NX + (j)*NX + (i))

__global__ void heat_step(float *u, float *unew, float alpha)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;

    if (i >= NX || j >= NY || k >= NZ) return;

    if (i == 0 || j == 0 || k == 0 || i == NX-1 || j == NY-1 || k == NZ-1) {
        unew[IDX(i,j,k)] = u[IDX(i,j,k)];
        return;
    }
    float lap = u[IDX(i-1,j,k)] + u[IDX(i+1,j,k)]
              + u[IDX(i,j-1,k)] + u[IDX(i,j+1,k)]
              + u[IDX(i,j,k-1)] + u[IDX(i,j,k+1)]
              - 6.0f * u[IDX(i,j,k)];
    unew[IDX(i,j,k)] = u[IDX(i,j,k)] + alpha * lap;
}

__global__ void copy_back(float *u, float *unew)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < NX && j < NY && k < NZ)
        u[IDX(i,j,k)] = unew[IDX(i,j,k)];
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

    dim3 block(8, 8, 8);
    dim3 grid((NX+7)/8, (NY+7)/8, (NZ+7)/8);
    for (int step = 0; step < NSTEPS; step++) {
        heat_step<<<grid, block>>>(u, unew, 0.15f);
        copy_back<<<grid, block>>>(u, unew);
        cudaDeviceSynchronize();
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
