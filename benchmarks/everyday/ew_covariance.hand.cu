// Risk model: exponentially weighted mean, covariance and correlation of asset returns,
// then the variance of a portfolio.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

typedef double real;

#define N_ASSETS 500
#define N_DAYS   1250

#define RET(t, i) ret[(t) * N_ASSETS + (i)]
#define MAT(m, i, j) (m)[(i) * N_ASSETS + (j)]

// ---------------------------------------------------------------- small RAII device vector
class DeviceVector {
public:
    explicit DeviceVector(size_t n) : n_(n), p_(nullptr)
    {
        if (cudaMalloc((void**)&p_, n * sizeof(real)) != cudaSuccess) throw std::runtime_error("cudaMalloc");
        cudaMemset(p_, 0, n * sizeof(real));
    }
    explicit DeviceVector(const std::vector<real>& v) : DeviceVector(v.size())
    {
        cudaMemcpy(p_, v.data(), n_ * sizeof(real), cudaMemcpyHostToDevice);
    }
    ~DeviceVector() { cudaFree(p_); }
    DeviceVector(const DeviceVector&) = delete;
    DeviceVector& operator=(const DeviceVector&) = delete;
    operator real*() { return p_; }
    std::vector<real> download() const
    {
        std::vector<real> v(n_);
        if (cudaMemcpy(v.data(), p_, n_ * sizeof(real), cudaMemcpyDeviceToHost) != cudaSuccess)
            throw std::runtime_error("download");
        return v;
    }
private:
    size_t n_;
    real* p_;
};

// ---------------------------------------------------------------- kernels
// block = 32 assets x 32 day lanes
__global__ void __launch_bounds__(1024)
weightedMean(const real* __restrict__ ret, const real* __restrict__ w, real* __restrict__ mean)
{
    __shared__ real part[32][33];
    const int i = blockIdx.x * 32 + threadIdx.x;
    real s = 0;
    if (i < N_ASSETS)
        for (int t = threadIdx.y; t < N_DAYS; t += 32) s += w[t] * RET(t, i);
    part[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    s = part[threadIdx.x][threadIdx.y];          // warp y now holds all day lanes of asset y
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
    const int a = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && a < N_ASSETS) mean[a] = s;
}

// Upper triangle of 64x64 tiles, days split over blockIdx.y, 16x16 threads with 4x4 sums each.
// The partial sums are added up in the (zeroed) covariance matrix.
#define CT     64
#define CK     16
#define SPLITS 4
#define TILES  ((N_ASSETS + CT - 1) / CT)
#define PAIRS  (TILES * (TILES + 1) / 2)
#define DAYS_PER_SPLIT ((N_DAYS + SPLITS - 1) / SPLITS)

__global__ void __launch_bounds__(256)
covarianceTiles(const real* __restrict__ ret, const real* __restrict__ w, const real* __restrict__ mean,
                real* __restrict__ cov)
{
    __shared__ __align__(16) real As[CK][CT];    // w * (r - mean), assets of the tile row
    __shared__ __align__(16) real Bs[CK][CT];    //     (r - mean), assets of the tile column

    int bi = 0, rest = blockIdx.x;
    while (rest >= TILES - bi) { rest -= TILES - bi; ++bi; }
    const int bj = bi + rest;
    const int i0 = bi * CT, j0 = bj * CT;
    const int tBegin = blockIdx.y * DAYS_PER_SPLIT;
    const int tEnd = min(tBegin + DAYS_PER_SPLIT, N_DAYS);

    const int tid = threadIdx.x, tx = tid & 15, ty = tid >> 4;
    const int la = tid & 63, lt = tid >> 6;      // loader: asset in tile, day 0..3
    const bool okI = i0 + la < N_ASSETS, okJ = j0 + la < N_ASSETS;
    const real mi = okI ? mean[i0 + la] : 0.0, mj = okJ ? mean[j0 + la] : 0.0;

    real acc[4][4];
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        #pragma unroll
        for (int c = 0; c < 4; ++c) acc[r][c] = 0.0;

    for (int t0 = tBegin; t0 < tEnd; t0 += CK) {
        real a[CK / 4], b[CK / 4];
        #pragma unroll
        for (int p = 0; p < CK / 4; ++p) {
            const int t = t0 + lt + 4 * p;
            const bool ok = t < tEnd;
            a[p] = ok && okI ? w[t] * (RET(t, i0 + la) - mi) : 0.0;
            b[p] = ok && okJ ? RET(t, j0 + la) - mj : 0.0;
        }
        __syncthreads();
        #pragma unroll
        for (int p = 0; p < CK / 4; ++p) {
            As[lt + 4 * p][la] = a[p];
            Bs[lt + 4 * p][la] = b[p];
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < CK; ++k) {
            const double2 a0 = *reinterpret_cast<const double2*>(&As[k][2 * ty]);
            const double2 a1 = *reinterpret_cast<const double2*>(&As[k][32 + 2 * ty]);
            const double2 b0 = *reinterpret_cast<const double2*>(&Bs[k][2 * tx]);
            const double2 b1 = *reinterpret_cast<const double2*>(&Bs[k][32 + 2 * tx]);
            const real x[4] = {a0.x, a0.y, a1.x, a1.y};
            const real y[4] = {b0.x, b0.y, b1.x, b1.y};
            #pragma unroll
            for (int r = 0; r < 4; ++r)
                #pragma unroll
                for (int c = 0; c < 4; ++c) acc[r][c] += x[r] * y[c];
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        #pragma unroll
        for (int c = 0; c < 4; ++c) {
            const int i = i0 + (r >> 1) * 32 + 2 * ty + (r & 1);
            const int j = j0 + (c >> 1) * 32 + 2 * tx + (c & 1);
            if (i < N_ASSETS && j < N_ASSETS) atomicAdd(&MAT(cov, i, j), acc[r][c]);
        }
}

// 32x32 tiles, 32x8 threads: mirror the lower triangle, correlation, portfolio variance
__global__ void __launch_bounds__(256)
finishMatrix(real* __restrict__ cov, real* __restrict__ corr, const real* __restrict__ holding,
             real* __restrict__ variance)
{
    __shared__ real tile[32][33];
    __shared__ real warpSum[8];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int i0 = blockIdx.y * 32, j0 = blockIdx.x * 32;
    const bool lower = i0 / CT > j0 / CT;        // not written by covarianceTiles
    if (lower) {
        #pragma unroll
        for (int p = 0; p < 4; ++p) {            // transposed source tile
            const int r = j0 + ty + 8 * p, c = i0 + tx;
            tile[ty + 8 * p][tx] = r < N_ASSETS && c < N_ASSETS ? MAT(cov, r, c) : 0.0;
        }
    }
    __syncthreads();

    const int j = j0 + tx;
    const real varJ = j < N_ASSETS ? MAT(cov, j, j) : 1.0;
    const real hj = j < N_ASSETS ? holding[j] : 0.0;
    real s = 0.0;
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
        const int i = i0 + ty + 8 * p;
        if (i < N_ASSETS && j < N_ASSETS) {
            real c;
            if (lower) {
                c = tile[tx][ty + 8 * p];
                MAT(cov, i, j) = c;
            } else {
                c = MAT(cov, i, j);
            }
            MAT(corr, i, j) = c / sqrt(MAT(cov, i, i) * varJ);
            s += holding[i] * c * hj;
        }
    }
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(0xffffffffu, s, o);
    if (tx == 0) warpSum[ty] = s;
    __syncthreads();
    if (tx == 0 && ty == 0) {
        #pragma unroll
        for (int k = 1; k < 8; ++k) s += warpSum[k];
        atomicAdd(variance, s);
    }
}

int main()
{
    // two factor model with noise
    std::vector<real> ret(N_DAYS * N_ASSETS), weight(N_DAYS), holding(N_ASSETS);
    unsigned long long seed = 20080915ULL;
    auto noise = [&seed]() {
        seed = seed * 2862933555777941757ULL + 3037000493ULL;
        return (real)(seed >> 33) / 2147483648.0 - 0.5;
    };
    for (int t = 0; t < N_DAYS; ++t) {
        real market = 0.02 * noise() + 0.0004, sector = 0.015 * noise();
        for (int i = 0; i < N_ASSETS; ++i)
            RET(t, i) = (0.5 + 0.002 * i) * market + (i % 3 == 0 ? 1.0 : -0.2) * sector + 0.01 * noise();
    }
    real total = 0;
    for (int t = 0; t < N_DAYS; ++t) total += weight[t] = std::pow(0.997, N_DAYS - 1 - t);
    for (int t = 0; t < N_DAYS; ++t) weight[t] /= total;
    for (int i = 0; i < N_ASSETS; ++i) holding[i] = (1.0 + i % 7) / 2000.0;

    std::vector<real> mean, cov, corr, variance;
    try {
        DeviceVector dRet(ret), dWeight(weight), dHolding(holding);
        DeviceVector dMean(N_ASSETS), dCov(N_ASSETS * N_ASSETS), dCorr(N_ASSETS * N_ASSETS), dVariance(1);

        const int tiles32 = (N_ASSETS + 31) / 32;
        weightedMean<<<tiles32, dim3(32, 32)>>>(dRet, dWeight, dMean);
        covarianceTiles<<<dim3(PAIRS, SPLITS), 256>>>(dRet, dWeight, dMean, dCov);
        finishMatrix<<<dim3(tiles32, tiles32), dim3(32, 8)>>>(dCov, dCorr, dHolding, dVariance);

        mean = dMean.download();
        cov = dCov.download();
        corr = dCorr.download();
        variance = dVariance.download();
    } catch (const std::exception& e) {
        std::printf("error: %s\n", e.what());
        return 1;
    }

    real sMean = 0, sCov = 0, sCorr = 0, tri = 0, trace = 0, maxCorr = 0;
    for (int i = 0; i < N_ASSETS; ++i) {
        sMean += std::fabs(mean[i]) * (1 + i % 4);
        trace += MAT(cov, i, i);
        for (int j = 0; j < N_ASSETS; ++j) {
            sCov += MAT(cov, i, j) * (1 + (i + 2 * j) % 5);
            sCorr += MAT(corr, i, j) * (1 + (i * 3 + j) % 4);
            if (i > j) tri += std::fabs(MAT(cov, i, j));
            if (i != j) maxCorr = std::fmax(maxCorr, MAT(corr, i, j));
        }
    }
    std::printf("mean        %.4e\n", sMean);
    std::printf("covariance  %.4e trace %.4e lower triangle %.4e\n", sCov, trace, tri);
    std::printf("correlation %.4e highest %.4f\n", sCorr, maxCorr);
    std::printf("portfolio   %.4e\n", variance[0]);
    return 0;
}
