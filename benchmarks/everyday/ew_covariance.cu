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
__global__ void weightedMean(const real* ret, const real* w, real* mean)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N_ASSETS) {
        real s = 0;
        for (int t = 0; t < N_DAYS; ++t) s += w[t] * RET(t, i);
        mean[i] = s;
    }
}

__global__ void covariance(const real* ret, const real* w, const real* mean, real* cov)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < N_ASSETS && j < N_ASSETS) {
        real s = 0;
        for (int t = 0; t < N_DAYS; ++t)
            s += w[t] * (RET(t, i) - mean[i]) * (RET(t, j) - mean[j]);
        MAT(cov, i, j) = s;
    }
}

__global__ void correlation(const real* cov, real* corr)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < N_ASSETS && j < N_ASSETS)
        MAT(corr, i, j) = MAT(cov, i, j) / sqrt(MAT(cov, i, i) * MAT(cov, j, j));
}

__global__ void portfolioVariance(const real* cov, const real* holding, real* variance)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N_ASSETS) {
        real s = 0;
        for (int j = 0; j < N_ASSETS; ++j) s += MAT(cov, i, j) * holding[j];
        atomicAdd(variance, holding[i] * s);
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

        dim3 block(16, 16), grid((N_ASSETS + 15) / 16, (N_ASSETS + 15) / 16);
        weightedMean<<<(N_ASSETS + 127) / 128, 128>>>(dRet, dWeight, dMean);
        covariance<<<grid, block>>>(dRet, dWeight, dMean, dCov);
        correlation<<<grid, block>>>(dCov, dCorr);
        portfolioVariance<<<(N_ASSETS + 127) / 128, 128>>>(dCov, dHolding, dVariance);

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
