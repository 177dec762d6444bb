// Robotics: move many 6x6 spatial inertias to other frames,  out = X^T * I * X,
// then trace and Frobenius norm of each result.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

template <typename T, int N>
struct SquareMatrix {
    T v[N * N];
    __host__ __device__ T  operator()(int r, int c) const { return v[r * N + c]; }
    __host__ __device__ T& operator()(int r, int c)       { return v[r * N + c]; }

    __host__ __device__ SquareMatrix transposed() const
    {
        SquareMatrix t;
        for (int r = 0; r < N; ++r)
            for (int c = 0; c < N; ++c)
                t(c, r) = (*this)(r, c);
        return t;
    }
};

template <typename T, int N>
__host__ __device__ SquareMatrix<T, N> operator*(const SquareMatrix<T, N>& a, const SquareMatrix<T, N>& b)
{
    SquareMatrix<T, N> c;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) {
            T s = T(0);
            for (int k = 0; k < N; ++k)
                s += a(i, k) * b(k, j);
            c(i, j) = s;
        }
    return c;
}

using Mat6 = SquareMatrix<double, 6>;

// 32 matrices per block, 6 threads (one result column each) per matrix.  Matrices are staged
// through shared memory with 16 byte accesses; 38 doubles per matrix keep the banks apart.
constexpr int PER_BLOCK = 32;
constexpr int THREADS   = PER_BLOCK * 6;
constexpr int STRIDE    = 38;

__global__ void __launch_bounds__(THREADS)
congruenceFused(const Mat6* __restrict__ X, const Mat6* __restrict__ inertia, Mat6* __restrict__ out,
                double* __restrict__ trace, double* __restrict__ norm, size_t count)
{
    __shared__ __align__(16) double sX[PER_BLOCK * STRIDE];
    __shared__ __align__(16) double sI[PER_BLOCK * STRIDE];
    __shared__ double sTr[THREADS], sSq[THREADS];

    const int tid = threadIdx.x;
    const size_t first = (size_t)blockIdx.x * PER_BLOCK;
    const int here = (int)(count - first < (size_t)PER_BLOCK ? count - first : (size_t)PER_BLOCK);

    const double2* gX = reinterpret_cast<const double2*>(X + first);
    const double2* gI = reinterpret_cast<const double2*>(inertia + first);
    #pragma unroll
    for (int p = 0; p < 3; ++p) {                    // 32 * 18 double2 = 3 * 192
        const int e = tid + p * THREADS;
        const int m = e / 18, o = (e % 18) * 2;
        if (m < here) {
            *reinterpret_cast<double2*>(&sX[m * STRIDE + o]) = gX[e];
            *reinterpret_cast<double2*>(&sI[m * STRIDE + o]) = gI[e];
        }
    }
    __syncthreads();

    const int m = tid / 6, j = tid % 6;
    double res[6];
    double tr = 0.0, sq = 0.0;
    if (m < here) {
        const double* A = &sX[m * STRIDE];
        const double* B = &sI[m * STRIDE];
        double xc[6], t[6];
        #pragma unroll
        for (int k = 0; k < 6; ++k) xc[k] = A[k * 6 + j];
        #pragma unroll
        for (int r = 0; r < 6; ++r) {                // t = I * X(:,j)
            double s = 0.0;
            #pragma unroll
            for (int k = 0; k < 6; ++k) s += B[r * 6 + k] * xc[k];
            t[r] = s;
        }
        #pragma unroll
        for (int r = 0; r < 6; ++r) {                // X^T * t
            double s = 0.0;
            #pragma unroll
            for (int k = 0; k < 6; ++k) s += A[k * 6 + r] * t[k];
            res[r] = s;
            sq += s * s;
            if (r == j) tr = s;
        }
    }
    sTr[tid] = tr;
    sSq[tid] = sq;
    __syncthreads();                                 // everybody is done with sI
    if (m < here) {
        #pragma unroll
        for (int r = 0; r < 6; ++r) sI[m * STRIDE + r * 6 + j] = res[r];
    }
    __syncthreads();

    double2* gO = reinterpret_cast<double2*>(out + first);
    #pragma unroll
    for (int p = 0; p < 3; ++p) {
        const int e = tid + p * THREADS;
        const int mm = e / 18, o = (e % 18) * 2;
        if (mm < here) gO[e] = *reinterpret_cast<const double2*>(&sI[mm * STRIDE + o]);
    }
    if (tid < here) {
        double a = 0.0, b = 0.0;
        #pragma unroll
        for (int c = 0; c < 6; ++c) { a += sTr[tid * 6 + c]; b += sSq[tid * 6 + c]; }
        trace[first + tid] = a;
        norm[first + tid]  = sqrt(b);
    }
}

int main()
{
    const size_t count = 150001;
    std::vector<Mat6> X(count), inertia(count), out(count);
    std::vector<double> trace(count), norm(count);

    unsigned long long state = 88172645463325252ULL;
    auto next = [&state]() {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (double)(state >> 40) / 16777216.0;   // [0,1)
    };
    for (size_t i = 0; i < count; ++i)
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c) {
                X[i](r, c) = (r == c ? 1.0 : 0.0) + 0.4 * (next() - 0.3);
                if (c >= r) {
                    double q = (r == c ? 2.0 + r : 0.0) + next();
                    inertia[i](r, c) = q;
                    inertia[i](c, r) = q;
                }
            }

    Mat6 *dX, *dI, *dOut;
    double *dTrace, *dNorm;
    cudaMalloc(&dX, count * sizeof(Mat6));
    cudaMalloc(&dI, count * sizeof(Mat6));
    cudaMalloc(&dOut, count * sizeof(Mat6));
    cudaMalloc(&dTrace, count * sizeof(double));
    cudaMalloc(&dNorm, count * sizeof(double));
    cudaMemcpy(dX, X.data(), count * sizeof(Mat6), cudaMemcpyHostToDevice);
    cudaMemcpy(dI, inertia.data(), count * sizeof(Mat6), cudaMemcpyHostToDevice);

    const unsigned blocks = (unsigned)((count + PER_BLOCK - 1) / PER_BLOCK);
    congruenceFused<<<blocks, THREADS>>>(dX, dI, dOut, dTrace, dNorm, count);

    cudaMemcpy(out.data(), dOut, count * sizeof(Mat6), cudaMemcpyDeviceToHost);
    cudaMemcpy(trace.data(), dTrace, count * sizeof(double), cudaMemcpyDeviceToHost);
    cudaMemcpy(norm.data(), dNorm, count * sizeof(double), cudaMemcpyDeviceToHost);
    if (cudaError_t e = cudaGetLastError()) {
        std::printf("error: %s\n", cudaGetErrorString(e));
        return 1;
    }

    double sum = 0, weighted = 0, maxAbs = 0, traces = 0, norms = 0;
    for (size_t i = 0; i < count; ++i) {
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c) {
                double q = out[i](r, c);
                sum += q;
                weighted += q * (1 + r + 2 * c) * (double)(i % 5);
                maxAbs = std::fmax(maxAbs, std::fabs(q));
            }
        traces += trace[i] * (double)(1 + i % 3);
        norms += norm[i];
    }
    std::printf("sum %.4e\nweighted %.4e\nmax %.3f\ntraces %.4e\nnorms %.4e\n", sum, weighted, maxAbs, traces, norms);

    cudaFree(dX);
    cudaFree(dI);
    cudaFree(dOut);
    cudaFree(dTrace);
    cudaFree(dNorm);
    return 0;
}
