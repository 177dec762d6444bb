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

// adds the block's sum to *result (one atomic per block)
__device__ void blockSumTo(double v, double *result)
{
    __shared__ double warpSum[BLOCK / 32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
    if ((threadIdx.x & 31) == 0) warpSum[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < BLOCK / 32 ? warpSum[threadIdx.x] : 0.0;
        for (int o = BLOCK / 64; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
        if (threadIdx.x == 0) atomicAdd(result, v);
    }
}

// Ap = A p and p.Ap. The non-zeros of 256 consecutive rows are contiguous, so the block reads them
// coalesced, leaves the products in shared memory and each thread then adds up its row.
const int CHUNK = BLOCK * 5;

__global__ void __launch_bounds__(BLOCK)
spmvDot(CsrMatrix A, const double *__restrict__ p, double *__restrict__ ap, double *pAp)
{
    __shared__ double prod[CHUNK];
    const int row0 = blockIdx.x * BLOCK;
    const int row = row0 + threadIdx.x;
    const int first = A.rowPtr[row0];
    const int last = A.rowPtr[min(row0 + BLOCK, A.rows)];
    int begin = 0, end = 0;
    if (row < A.rows) { begin = A.rowPtr[row]; end = A.rowPtr[row + 1]; }

    double sum = 0.0;
    for (int base = first; base < last; base += CHUNK) {
        const int limit = min(base + CHUNK, last);
#pragma unroll 5
        for (int k = base + threadIdx.x; k < limit; k += BLOCK)
            prod[k - base] = __ldg(A.values + k) * __ldg(p + __ldg(A.colIdx + k));
        __syncthreads();
        const int hi = min(end, limit);
        for (int k = max(begin, base); k < hi; k++) sum += prod[k - base];
        __syncthreads();
    }
    double local = 0.0;
    if (row < A.rows) {
        ap[row] = sum;
        local = sum * p[row];
    }
    blockSumTo(local, pAp);
}

__global__ void __launch_bounds__(BLOCK) dotSelf(const double2 *__restrict__ r, double *rr, int n2)
{
    double local = 0.0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n2; i += gridDim.x * BLOCK) {
        double2 v = r[i];
        local += v.x * v.x + v.y * v.y;
    }
    blockSumTo(local, rr);
}

// r = r - alpha Ap, and r.r
__global__ void __launch_bounds__(BLOCK)
updateResidual(double2 *__restrict__ r, const double2 *__restrict__ ap,
               const double *rrOld, const double *pAp, double *rrNew, int n2)
{
    const double alpha = *rrOld / *pAp;
    double local = 0.0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n2; i += gridDim.x * BLOCK) {
        double2 v = r[i], a = ap[i];
        v.x -= alpha * a.x;
        v.y -= alpha * a.y;
        r[i] = v;
        local += v.x * v.x + v.y * v.y;
    }
    blockSumTo(local, rrNew);
}

// x = x + alpha p, then p = r + beta p  (p is read once for both)
__global__ void __launch_bounds__(BLOCK)
updateSolution(double2 *__restrict__ x, double2 *__restrict__ p, const double2 *__restrict__ r,
               const double *rrOld, const double *pAp, const double *rrNew, int n2)
{
    const double alpha = *rrOld / *pAp;
    const double beta = *rrNew / *rrOld;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n2; i += gridDim.x * BLOCK) {
        double2 xv = x[i], pv = p[i], rv = r[i];
        xv.x += alpha * pv.x;
        xv.y += alpha * pv.y;
        pv.x = rv.x + beta * pv.x;
        pv.y = rv.y + beta * pv.y;
        x[i] = xv;
        p[i] = pv;
    }
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
    DeviceArray<double> dValues(values.size()), dx(n), dr(n), dp(n), dAp(n);
    DeviceArray<double> dScalars(2 * ITERATIONS + 1);     // r.r of iterations 0..10, then p.Ap
    dRowPtr.upload(rowPtr);
    dColIdx.upload(colIdx);
    dValues.upload(values);
    CsrMatrix A{n, dRowPtr.get(), dColIdx.get(), dValues.get()};

    static_assert(((long long)GRID_N * GRID_N) % 2 == 0, "double2");
    std::vector<double> x(n), scalars(2 * ITERATIONS + 1);
    check(cudaMemset(dx.get(), 0, n * sizeof(double)), "memset");
    check(cudaMemset(dScalars.get(), 0, (2 * ITERATIONS + 1) * sizeof(double)), "memset");
    dr.upload(b);       // r = b
    dp.upload(b);       // p = r

    double *rr = dScalars.get(), *pAp = dScalars.get() + ITERATIONS + 1;
    double2 *x2 = (double2 *)dx.get(), *r2 = (double2 *)dr.get();
    double2 *p2 = (double2 *)dp.get(), *ap2 = (double2 *)dAp.get();
    const int n2 = n / 2, vblocks = 132 * 4;
    dotSelf<<<vblocks, BLOCK>>>(r2, rr, n2);
    for (int it = 0; it < ITERATIONS; it++) {
        spmvDot<<<blocks, BLOCK>>>(A, dp.get(), dAp.get(), pAp + it);
        updateResidual<<<vblocks, BLOCK>>>(r2, ap2, rr + it, pAp + it, rr + it + 1, n2);
        updateSolution<<<vblocks, BLOCK>>>(x2, p2, r2, rr + it, pAp + it, rr + it + 1, n2);
    }
    check(cudaGetLastError(), "kernels");
    dScalars.download(scalars);
    dx.download(x);
    for (int it = 0; it <= ITERATIONS; it += 5) printf("iter %2d residual %.4e\n", it, sqrt(scalars[it]));

    double sumAbs = 0.0, sumSq = 0.0;
    for (int i = 0; i < n; i++) { sumAbs += fabs(x[i]); sumSq += x[i] * x[i]; }
    printf("sum |x| %.4e  sum x^2 %.4e\n", sumAbs, sumSq);
    return 0;
}
