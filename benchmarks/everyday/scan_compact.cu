// exclusive prefix sum of a large int array (3 kernels), then stream compaction with it
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define BS 1024
#define N (1 << 24)

__global__ void scan_blocks(const int *in, int *out, int *sums, int n)
{
    __shared__ int tmp[BS];
    int tid = threadIdx.x;
    int i = blockIdx.x * BS + tid;
    int v = (i < n) ? in[i] : 0;
    tmp[tid] = v;
    __syncthreads();
    // Hillis-Steele
    for (int off = 1; off < BS; off *= 2) {
        int t = 0;
        if (tid >= off) t = tmp[tid - off];
        __syncthreads();
        tmp[tid] += t;
        __syncthreads();
    }
    if (i < n) out[i] = tmp[tid] - v;
    if (tid == BS - 1) sums[blockIdx.x] = tmp[tid];
}

__global__ void scan_sums(int *sums, int nblocks)
{
    // not many sums, one thread is enough
    int run = 0;
    for (int b = 0; b < nblocks; b++) {
        int s = sums[b];
        sums[b] = run;
        run += s;
    }
    sums[nblocks] = run;
}

__global__ void add_sums(int *out, const int *sums, int n)
{
    int i = blockIdx.x * BS + threadIdx.x;
    if (i < n) out[i] += sums[blockIdx.x];
}

__device__ bool keep(int v)
{
    return v % 3 == 0 && v > 10;
}

__global__ void make_flags(const int *in, int *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (keep(in[i])) flags[i] = 1;
        else flags[i] = 0;
    }
}

__global__ void scatter(const int *in, const int *flags, const int *pos, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (flags[i] == 1) out[pos[i]] = in[i];
    }
}

int main()
{
    int *h = (int *)malloc(N * sizeof(int));
    unsigned int s = 31415u;
    for (int i = 0; i < N; i++) {
        s = s * 1664525u + 1013904223u;
        h[i] = (s >> 10) % 100;
    }
    int nb = (N + BS - 1) / BS;
    int *in, *prefix, *flags, *pos, *packed, *sums;
    cudaMalloc(&in, N * sizeof(int));
    cudaMalloc(&prefix, N * sizeof(int));
    cudaMalloc(&flags, N * sizeof(int));
    cudaMalloc(&pos, N * sizeof(int));
    cudaMalloc(&packed, N * sizeof(int));
    cudaMalloc(&sums, (nb + 1) * sizeof(int));
    cudaMemcpy(in, h, N * sizeof(int), cudaMemcpyHostToDevice);

    scan_blocks<<<nb, BS>>>(in, prefix, sums, N);
    scan_sums<<<1, 1>>>(sums, nb);
    add_sums<<<nb, BS>>>(prefix, sums, N);

    make_flags<<<nb, BS>>>(in, flags, N);
    scan_blocks<<<nb, BS>>>(flags, pos, sums, N);
    scan_sums<<<1, 1>>>(sums, nb);
    add_sums<<<nb, BS>>>(pos, sums, N);
    scatter<<<nb, BS>>>(in, flags, pos, packed, N);

    int count = 0;
    cudaMemcpy(&count, sums + nb, sizeof(int), cudaMemcpyDeviceToHost);
    int *hp = (int *)malloc(N * sizeof(int));
    int *hc = (int *)malloc(count * sizeof(int));
    cudaMemcpy(hp, prefix, N * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(hc, packed, count * sizeof(int), cudaMemcpyDeviceToHost);

    unsigned long long hash = 0, hash2 = 0;
    for (int i = 0; i < N; i++) hash = hash * 31 + (unsigned)hp[i];
    for (int i = 0; i < count; i++) hash2 = hash2 * 31 + (unsigned)hc[i];
    printf("prefix[1]=%d prefix[mid]=%d prefix[last]=%d hash %llx\n", hp[1], hp[N / 2], hp[N - 1], hash);
    printf("kept %d, first %d last %d hash %llx\n", count, hc[0], hc[count - 1], hash2);
    return 0;
}
