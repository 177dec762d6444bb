// Conjugate gradient (10 iterations) on a sparse matrix in CSR format.
// The matrix is a 2-D diffusion operator with random conductances.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

const int GRID_N = 1000;
const int ITERATIONS = 10;
const int BLOCK = 256;

struct CsrMatrix {
    int rows;
    int *rowPtr;
    int *colIdx;
    double *values;
};

void check(cudaError_t err, const char *what)
{
    if (err != cudaSuccess) {
        fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(err));
        exit(EXIT_FAILURE);
    }
}

template <typename T>
class DeviceArray {
public:
    explicit DeviceArray(size_t n) : n_(n) { check(cudaMalloc((void **)&p_, n * sizeof(T)), "cudaMalloc"); }
    ~DeviceArray() { cudaFree(p_); }
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;
    void upload(const std::vector<T> &h)
    {
        check(cudaMemcpy(p_, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
    }
    void download(std::vector<T> &h)
    {
        check(cudaMemcpy(h.data(), p_, h.size() * sizeof(T), cudaMemcpyDeviceToHost), "download");
    }
    T *get() { return p_; }
private:
    T *p_ = nullptr;
    size_t n_;
};

__global__ void spmv(CsrMatrix A, const double *x, double *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < A.rows) {
        double sum = 0.0;
        for (int k = A.rowPtr[row]; k < A.rowPtr[row + 1]; k++)
            sum += A.values[k] * x[A.colIdx[k]];
        y[row] = sum;
    }
}

__global__ void dotPartial(const double *a, const double *b, double *partial, int n)
{
    __shared__ double cache[BLOCK];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int tid = threadIdx.x;
    cache[tid] = (i < n) ? a[i] * b[i] : 0.0;
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
        if (tid % (2 * s) == 0)
            cache[tid] += cache[tid + s];
        __syncthreads();
    }
    if (tid == 0) partial[blockIdx.x] = cache[0];
}

// y = y + alpha * x
__global__ void axpy(double alpha, const double *x, double *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = y[i] + alpha * x[i];
}

// p = r + beta * p
__global__ void updateDirection(const double *r, double beta, double *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = r[i] + beta * p[i];
}

double dot(const double *a, const double *b, DeviceArray<double> &partial, std::vector<double> &host, int n)
{
    int blocks = (n + BLOCK - 1) / BLOCK;
    dotPartial<<<blocks, BLOCK>>>(a, b, partial.get(), n);
    partial.download(host);
    double s = 0.0;
    for (int i = 0; i < blocks; i++) s += host[i];
    return s;
}

static unsigned long long lcgState = 99ULL;
double uniform()
{
    lcgState = (lcgState * 25214903917ULL + 11ULL) & ((1ULL << 48) - 1);
    return (double)(lcgState >> 16) / 4294967296.0;
}

int main()
{
    const int n = GRID_N * GRID_N;
    // conductance of the edge to the right and of the edge downward
    std::vector<double> right(n), down(n), b(n);
    for (int i = 0; i < n; i++) right[i] = 0.5 + uniform();
    for (int i = 0; i < n; i++) down[i] = 0.5 + uniform();
    for (int i = 0; i < n; i++) b[i] = uniform() - 0.3;

    std::vector<int> rowPtr(n + 1), colIdx;
    std::vector<double> values;
    colIdx.reserve(5 * (size_t)n);
    values.reserve(5 * (size_t)n);
    for (int y = 0; y < GRID_N; y++)
        for (int x = 0; x < GRID_N; x++) {
            int row = y * GRID_N + x;
            double up = y > 0 ? down[row - GRID_N] : 0.0;
            double le = x > 0 ? right[row - 1] : 0.0;
            double ri = x < GRID_N - 1 ? right[row] : 0.0;
            double dn = y < GRID_N - 1 ? down[row] : 0.0;
            rowPtr[row] = (int)colIdx.size();
            if (y > 0) { colIdx.push_back(row - GRID_N); values.push_back(-up); }
            if (x > 0) { colIdx.push_back(row - 1); values.push_back(-le); }
            colIdx.push_back(row); values.push_back(up + le + ri + dn + 0.05);
            if (x < GRID_N - 1) { colIdx.push_back(row + 1); values.push_back(-ri); }
            if (y < GRID_N - 1) { colIdx.push_back(row + GRID_N); values.push_back(-dn); }
        }
    rowPtr[n] = (int)colIdx.size();

    const int blocks = (n + BLOCK - 1) / BLOCK;
    DeviceArray<int> dRowPtr(n + 1), dColIdx(colIdx.size());
    DeviceArray<double> dValues(values.size()), dx(n), dr(n), dp(n), dAp(n), dPartial(blocks);
    dRowPtr.upload(rowPtr);
    dColIdx.upload(colIdx);
    dValues.upload(values);
    CsrMatrix A{n, dRowPtr.get(), dColIdx.get(), dValues.get()};

    std::vector<double> hostPartial(blocks), x(n, 0.0);
    dx.upload(x);       // x = 0
    dr.upload(b);       // r = b
    dp.upload(b);       // p = r

    double rr = dot(dr.get(), dr.get(), dPartial, hostPartial, n);
    printf("iter  0 residual %.4e\n", sqrt(rr));
    for (int it = 1; it <= ITERATIONS; it++) {
        spmv<<<blocks, BLOCK>>>(A, dp.get(), dAp.get());
        double pAp = dot(dp.get(), dAp.get(), dPartial, hostPartial, n);
        double alpha = rr / pAp;
        axpy<<<blocks, BLOCK>>>(alpha, dp.get(), dx.get(), n);
        axpy<<<blocks, BLOCK>>>(-alpha, dAp.get(), dr.get(), n);
        double rrNew = dot(dr.get(), dr.get(), dPartial, hostPartial, n);
        double beta = rrNew / rr;
        updateDirection<<<blocks, BLOCK>>>(dr.get(), beta, dp.get(), n);
        rr = rrNew;
        if (it == 5 || it == ITERATIONS) printf("iter %2d residual %.4e\n", it, sqrt(rr));
    }
    check(cudaGetLastError(), "kernels");
    dx.download(x);

    double sumAbs = 0.0, sumSq = 0.0;
    for (int i = 0; i < n; i++) { sumAbs += fabs(x[i]); sumSq += x[i] * x[i]; }
    printf("sum |x| %.4e  sum x^2 %.4e\n", sumAbs, sumSq);
    return 0;
}
