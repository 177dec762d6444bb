// Distance correlation of two multivariate samples with a permutation test (double precision).
// Builds both n x n distance matrices, double-centres them and sums products; for every random
// permutation of the second sample the product sum is computed again.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CHECK_CUDA(expr)                                                        \
    do {                                                                        \
        cudaError_t rc = (expr);                                                \
        if (rc != cudaSuccess) {                                                \
            fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(rc));  \
            return 1;                                                           \
        }                                                                       \
    } while (0)

static const int N = 3907;
static const int DIM_X = 4;
static const int DIM_Y = 3;
static const int PERMUTATIONS = 7;

// D[i][j] = |p_i - p_j|
__global__ void distance_matrix(const double* points, int n, int dim, double* D)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    double sum = 0.0;
    for (int k = 0; k < dim; k++) {
        double diff = points[i * dim + k] - points[j * dim + k];
        sum += diff * diff;
    }
    D[(long long)i * n + j] = sqrt(sum);
}

// one thread per row
__global__ void row_means(const double* D, int n, double* mean)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0.0;
    for (int j = 0; j < n; j++) sum += D[(long long)i * n + j];
    mean[i] = sum / n;
}

// one block
__global__ void grand_mean(const double* mean, int n, double* grand)
{
    __shared__ double buf[256];
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += mean[i];
    buf[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] += buf[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) *grand = buf[0] / n;
}

__global__ void double_center(double* D, int n, const double* mean, const double* grand)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    D[(long long)i * n + j] += *grand - mean[i] - mean[j];
}

// rowSum[i] = sum_j A[i][j] * B[perm[i]][perm[j]]; one block per row
__global__ void product_rows(const double* A, const double* B, const int* perm, int n,
                             double* rowSum)
{
    __shared__ double buf[256];
    int i = blockIdx.x;
    const double* a = A + (long long)i * n;
    const double* b = B + (long long)perm[i] * n;
    double sum = 0.0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) sum += a[j] * b[perm[j]];
    buf[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] += buf[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) rowSum[i] = buf[0];
}

// result = sum(rowSum) / n^2; one block
__global__ void sum_rows(const double* rowSum, int n, double* result)
{
    __shared__ double buf[256];
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += rowSum[i];
    buf[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] += buf[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) *result = buf[0] / n / n;
}

static unsigned long long lcg = 42;
static unsigned int next_u32()
{
    lcg = lcg * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned int)(lcg >> 33);
}
static double next_unit()
{
    return next_u32() / 2147483648.0;
}

int main()
{
    std::vector<double> x(N * DIM_X), y(N * DIM_Y);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < DIM_X; k++) x[i * DIM_X + k] = 2.0 * next_unit() - 1.0;
        y[i * DIM_Y + 0] = x[i * DIM_X] * x[i * DIM_X + 1] + 0.3 * next_unit();
        y[i * DIM_Y + 1] = x[i * DIM_X + 2] * x[i * DIM_X + 2] + 0.5 * next_unit();
        y[i * DIM_Y + 2] = next_unit();
    }
    // permutation 0 is the identity (the observed statistic)
    std::vector<int> perms((PERMUTATIONS + 1) * N);
    for (int q = 0; q <= PERMUTATIONS; q++) {
        int* p = &perms[q * N];
        for (int i = 0; i < N; i++) p[i] = i;
        if (q > 0)
            for (int i = N - 1; i > 0; i--) std::swap(p[i], p[next_u32() % (i + 1)]);
    }

    double *dX, *dY, *dA, *dB, *dMeanA, *dMeanB, *dGrand, *dRows, *dResults;
    int* dPerms;
    size_t matrixBytes = (size_t)N * N * sizeof(double);
    CHECK_CUDA(cudaMalloc(&dX, x.size() * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dY, y.size() * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dA, matrixBytes));
    CHECK_CUDA(cudaMalloc(&dB, matrixBytes));
    CHECK_CUDA(cudaMalloc(&dMeanA, N * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dMeanB, N * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dGrand, 2 * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dRows, N * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dResults, (PERMUTATIONS + 3) * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&dPerms, perms.size() * sizeof(int)));
    CHECK_CUDA(cudaMemcpy(dX, x.data(), x.size() * sizeof(double), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dY, y.data(), y.size() * sizeof(double), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dPerms, perms.data(), perms.size() * sizeof(int),
                          cudaMemcpyHostToDevice));

    dim3 block(32, 8);
    dim3 grid((N + 31) / 32, (N + 7) / 8);
    distance_matrix<<<grid, block>>>(dX, N, DIM_X, dA);
    distance_matrix<<<grid, block>>>(dY, N, DIM_Y, dB);
    row_means<<<(N + 127) / 128, 128>>>(dA, N, dMeanA);
    row_means<<<(N + 127) / 128, 128>>>(dB, N, dMeanB);
    grand_mean<<<1, 256>>>(dMeanA, N, dGrand);
    grand_mean<<<1, 256>>>(dMeanB, N, dGrand + 1);
    double_center<<<grid, block>>>(dA, N, dMeanA, dGrand);
    double_center<<<grid, block>>>(dB, N, dMeanB, dGrand + 1);
    // results: observed, permuted 1 .. PERMUTATIONS, variance of x, variance of y
    for (int q = 0; q <= PERMUTATIONS; q++) {
        product_rows<<<N, 256>>>(dA, dB, dPerms + q * N, N, dRows);
        sum_rows<<<1, 256>>>(dRows, N, dResults + q);
    }
    product_rows<<<N, 256>>>(dA, dA, dPerms, N, dRows);
    sum_rows<<<1, 256>>>(dRows, N, dResults + PERMUTATIONS + 1);
    product_rows<<<N, 256>>>(dB, dB, dPerms, N, dRows);
    sum_rows<<<1, 256>>>(dRows, N, dResults + PERMUTATIONS + 2);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());

    std::vector<double> res(PERMUTATIONS + 3), meanA(N), meanB(N);
    CHECK_CUDA(cudaMemcpy(res.data(), dResults, res.size() * sizeof(double),
                          cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(meanA.data(), dMeanA, N * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(meanB.data(), dMeanB, N * sizeof(double), cudaMemcpyDeviceToHost));

    double sumA = 0, sumB = 0, maxA = 0;
    int exceed = 0;
    for (int i = 0; i < N; i++) {
        sumA += meanA[i];
        sumB += meanB[i];
        if (meanA[i] > maxA) maxA = meanA[i];
    }
    for (int q = 1; q <= PERMUTATIONS; q++)
        if (res[q] >= res[0]) exceed++;
    double varX = res[PERMUTATIONS + 1], varY = res[PERMUTATIONS + 2];
    printf("dcov2 %.10e dvarx %.10e dvary %.10e\n", res[0], varX, varY);
    printf("dcor %.10e exceed %d\n", sqrt(res[0] / sqrt(varX * varY)), exceed);
    for (int q = 1; q <= PERMUTATIONS; q++) printf("permuted %.10e\n", res[q]);
    printf("means %.10e %.10e max %.10e\n", sumA / N, sumB / N, maxA);
    printf("row %.10e %.10e\n", meanA[N / 3], meanB[N - 1]);

    cudaFree(dX);
    cudaFree(dY);
    cudaFree(dA);
    cudaFree(dB);
    cudaFree(dMeanA);
    cudaFree(dMeanB);
    cudaFree(dGrand);
    cudaFree(dRows);
    cudaFree(dResults);
    cudaFree(dPerms);
    return 0;
}
