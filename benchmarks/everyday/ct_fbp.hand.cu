// Filtered back projection of a parallel-beam CT scan, tuned for H200.
//  * filter: one block per angle, row and taps in shared memory, zero taps skipped,
//    four detectors per thread; output stored as (value, slope) pairs
//  * back projection: all angles in one kernel, image value in a register,
//    directions (already divided by the detector pitch) in constant memory
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t err_ = (call);                                         \
        if (err_ != cudaSuccess) {                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,             \
                    cudaGetErrorString(err_));                             \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

constexpr int ND = 600;     // detectors
constexpr int NA = 360;     // angles
constexpr int NP = 512;     // image side
constexpr float kSpacing = 2.0f * 1.1f / ND;
constexpr float kCentre = 0.5f * (ND - 1);
constexpr float kPix = 2.0f / NP;

constexpr int PER_THREAD = 4;
constexpr int COLS = ND / PER_THREAD;   // 150
constexpr int FILTER_THREADS = 160;

struct Ellipse { float x0, y0, a, b, phi, rho; };

__constant__ float2 cDir[NA];

__global__ void __launch_bounds__(FILTER_THREADS)
filterProjections(const float* __restrict__ sino, const float* __restrict__ taps,
                  float2* __restrict__ filtered)
{
    __shared__ float row[3 * ND];       // zero padded on both sides
    __shared__ float tap[ND];
    __shared__ float res[ND];
    const int a = blockIdx.x;
    for (int i = threadIdx.x; i < 3 * ND; i += FILTER_THREADS)
        row[i] = (i >= ND && i < 2 * ND) ? sino[a * ND + i - ND] : 0.0f;
    for (int i = threadIdx.x; i < ND; i += FILTER_THREADS) tap[i] = taps[i];
    __syncthreads();

    const int d = threadIdx.x;
    if (d < COLS) {
        float acc[PER_THREAD] = {};
        const float* p = row + ND + d;
        for (int k = ND - 1; k >= 1; k -= 2) {
            const float w = tap[k];
#pragma unroll
            for (int m = 0; m < PER_THREAD; ++m) acc[m] += p[m * COLS - k] * w;
        }
#pragma unroll
        for (int m = 0; m < PER_THREAD; ++m) acc[m] += p[m * COLS] * tap[0];
        for (int k = 1; k < ND; k += 2) {
            const float w = tap[k];
#pragma unroll
            for (int m = 0; m < PER_THREAD; ++m) acc[m] += p[m * COLS + k] * w;
        }
#pragma unroll
        for (int m = 0; m < PER_THREAD; ++m) res[d + m * COLS] = acc[m] * kSpacing;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < ND; i += FILTER_THREADS) {
        const float v = res[i];
        const float slope = (i + 1 < ND) ? res[i + 1] - v : 0.0f;
        filtered[a * ND + i] = make_float2(v, slope);
    }
}

__device__ __forceinline__ float sample(const float2* __restrict__ row, float t)
{
    int i = (int)t;                       // t > 0 inside the field of view
    i = min(max(i, 0), ND - 2);
    const float2 q = __ldg(row + i);
    return fmaf(t - i, q.y, q.x);
}

__global__ void __launch_bounds__(256)
backproject(const float2* __restrict__ filtered, float* __restrict__ image, float factor)
{
    const int ix = blockIdx.x * 32 + threadIdx.x;
    const int iy = blockIdx.y * 16 + threadIdx.y;   // this thread does iy and iy + 8
    const float x = (ix + 0.5f) * kPix - 1.0f;
    const float y0 = (iy + 0.5f) * kPix - 1.0f;
    const float y1 = (iy + 8 + 0.5f) * kPix - 1.0f;
    const bool in0 = x * x + y0 * y0 <= 1.0f;
    const bool in1 = x * x + y1 * y1 <= 1.0f;
    float s0 = 0.0f, s1 = 0.0f;
    if (in0 || in1) {
#pragma unroll 4
        for (int a = 0; a < NA; ++a) {
            const float2 dir = cDir[a];
            const float base = fmaf(x, dir.x, kCentre);
            const float2* row = filtered + a * ND;
            s0 += sample(row, fmaf(y0, dir.y, base));
            s1 += sample(row, fmaf(y1, dir.y, base));
        }
    }
    image[iy * NP + ix] = in0 ? s0 * factor : 0.0f;
    image[(iy + 8) * NP + ix] = in1 ? s1 * factor : 0.0f;
}

static double roiMean(const std::vector<float>& img, int n, int x0, int y0, int size)
{
    double sum = 0;
    for (int y = y0; y < y0 + size; ++y)
        for (int x = x0; x < x0 + size; ++x) sum += img[y * n + x];
    return sum / (size * size);
}

int main()
{
    const double kPi = 3.14159265358979323846;
    const std::vector<Ellipse> phantom = {
        {0.0f, 0.0f, 0.69f, 0.92f, 0.0f, 1.0f},
        {0.0f, -0.0184f, 0.6624f, 0.874f, 0.0f, -0.4f},
        {0.22f, 0.0f, 0.11f, 0.31f, -0.31416f, 0.3f},
        {-0.22f, 0.0f, 0.16f, 0.41f, 0.31416f, -0.2f},
        {0.0f, 0.35f, 0.21f, 0.25f, 0.0f, 0.25f},
        {0.0f, -0.6f, 0.12f, 0.08f, 0.5f, 0.5f},
    };

    std::vector<float2> dir(NA);
    std::vector<float> sino((size_t)NA * ND);
    for (int a = 0; a < NA; ++a) {
        double th = kPi * a / NA;
        dir[a] = make_float2((float)(cos(th) / kSpacing), (float)(sin(th) / kSpacing));
        for (const Ellipse& e : phantom) {
            double ca = cos(th - e.phi), sa = sin(th - e.phi);
            double r2 = e.a * e.a * ca * ca + e.b * e.b * sa * sa;
            double shift = e.x0 * cos(th) + e.y0 * sin(th);
            for (int d = 0; d < ND; ++d) {
                double t = (d - kCentre) * kSpacing - shift;
                if (t * t < r2)
                    sino[a * ND + d] += (float)(2.0 * e.rho * e.a * e.b * sqrt(r2 - t * t) / r2);
            }
        }
    }

    std::vector<float> taps(ND, 0.0f);
    double tau = kSpacing;
    taps[0] = (float)(1.0 / (4.0 * tau * tau));
    for (int k = 1; k < ND; k += 2) taps[k] = (float)(-1.0 / (kPi * kPi * k * k * tau * tau));

    float *dSino, *dTaps, *dImage;
    float2* dFiltered;
    CHECK(cudaMalloc(&dSino, sino.size() * sizeof(float)));
    CHECK(cudaMalloc(&dFiltered, sino.size() * sizeof(float2)));
    CHECK(cudaMalloc(&dTaps, ND * sizeof(float)));
    CHECK(cudaMalloc(&dImage, NP * NP * sizeof(float)));
    CHECK(cudaMemcpy(dSino, sino.data(), sino.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dTaps, taps.data(), ND * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(cDir, dir.data(), NA * sizeof(float2)));

    filterProjections<<<NA, FILTER_THREADS>>>(dSino, dTaps, dFiltered);
    backproject<<<dim3(NP / 32, NP / 16), dim3(32, 8)>>>(dFiltered, dImage, (float)(kPi / NA));
    CHECK(cudaGetLastError());

    std::vector<float> image(NP * NP);
    CHECK(cudaMemcpy(image.data(), dImage, NP * NP * sizeof(float), cudaMemcpyDeviceToHost));

    double total = 0, err2 = 0;
    for (int iy = 0; iy < NP; ++iy)
        for (int ix = 0; ix < NP; ++ix) {
            double truth = 0, v = image[iy * NP + ix];
            for (const Ellipse& e : phantom) {
                double dx = (ix + 0.5f) * kPix - 1.0f - e.x0, dy = (iy + 0.5f) * kPix - 1.0f - e.y0;
                double u = dx * cosf(e.phi) + dy * sinf(e.phi), w = dy * cosf(e.phi) - dx * sinf(e.phi);
                if (u * u / (e.a * e.a) + w * w / (e.b * e.b) < 1.0) truth += e.rho;
            }
            total += v;
            err2 += (v - truth) * (v - truth);
        }
    printf("image sum        %.5g\n", total);
    printf("rms error        %.4g\n", sqrt(err2 / (NP * NP)));
    printf("brain mean       %.4g\n", roiMean(image, NP, 240, 200, 16));
    printf("right lobe mean  %.4g\n", roiMean(image, NP, 300, 240, 24));
    printf("left lobe mean   %.4g\n", roiMean(image, NP, 185, 240, 24));
    printf("tumour mean      %.4g\n", roiMean(image, NP, 244, 330, 24));

    CHECK(cudaFree(dSino));
    CHECK(cudaFree(dFiltered));
    CHECK(cudaFree(dTaps));
    CHECK(cudaFree(dImage));
    return 0;
}
