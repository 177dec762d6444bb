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

template <typename M>
__global__ void congruence(const M* X, const M* inertia, M* out, size_t count)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        out[i] = X[i].transposed() * inertia[i] * X[i];
}

template <typename T, int N>
__global__ void traceAndNorm(const SquareMatrix<T, N>* m, T* trace, T* norm, size_t count)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        T tr = 0, sq = 0;
        for (int r = 0; r < N; ++r) {
            tr += m[i](r, r);
            for (int c = 0; c < N; ++c)
                sq += m[i](r, c) * m[i](r, c);
        }
        trace[i] = tr;
        norm[i]  = sqrt(sq);
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

    congruence<<<512, 128>>>(dX, dI, dOut, count);
    traceAndNorm<<<512, 128>>>(dOut, dTrace, dNorm, count);

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
