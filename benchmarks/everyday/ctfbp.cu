// Parallel-beam CT: filtered back projection of a stack of slices.
// raw detector counts (uint16) -> line integrals -> Ram-Lak filter -> back projection
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static const int   kAngles = 360;
static const int   kDets   = 512;
static const int   kImage  = 512;
static const int   kSlices = 8;
static const float kPixel  = 0.7f;      // pixel size in detector units
static const float kI0     = 60000.0f;  // unattenuated counts
static const float kPi     = 3.14159265358979f;

static void check(cudaError_t e, const char* what)
{
    if (e != cudaSuccess)
        throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e));
}

__global__ void countsToLineIntegrals(const uint16_t* counts, float* proj, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        proj[i] = -logf(counts[i] / kI0);
}

__global__ void rampFilter(const float* proj, const float* taps, float* filtered)
{
    int det   = blockIdx.x * blockDim.x + threadIdx.x;
    int angle = blockIdx.y;
    int slice = blockIdx.z;
    if (det >= kDets) return;

    const float* row = proj + ((size_t)slice * kAngles + angle) * kDets;
    float sum = 0.0f;
    for (int k = 0; k < kDets; ++k)
        sum += row[k] * taps[abs(det - k)];
    filtered[((size_t)slice * kAngles + angle) * kDets + det] = sum;
}

__global__ void backProject(const float* filtered, float* image)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int slice = blockIdx.z;
    if (x >= kImage || y >= kImage) return;

    float px = (x - 0.5f * (kImage - 1)) * kPixel;
    float py = (y - 0.5f * (kImage - 1)) * kPixel;

    float sum = 0.0f;
    for (int a = 0; a < kAngles; ++a) {
        float theta = a * (kPi / kAngles);
        float t = px * cosf(theta) + py * sinf(theta) + 0.5f * (kDets - 1);
        int   i0 = (int)floorf(t);
        float f  = t - i0;
        if (i0 >= 0 && i0 + 1 < kDets) {
            const float* row = filtered + ((size_t)slice * kAngles + a) * kDets;
            sum += (1.0f - f) * row[i0] + f * row[i0 + 1];
        }
    }
    image[((size_t)slice * kImage + y) * kImage + x] = sum * (kPi / kAngles);
}

class FbpReconstructor {
public:
    FbpReconstructor()
    {
        size_t nProj = (size_t)kSlices * kAngles * kDets;
        size_t nImg  = (size_t)kSlices * kImage * kImage;
        check(cudaMalloc(&counts_, nProj * sizeof(uint16_t)), "malloc counts");
        check(cudaMalloc(&proj_, nProj * sizeof(float)), "malloc proj");
        check(cudaMalloc(&filtered_, nProj * sizeof(float)), "malloc filtered");
        check(cudaMalloc(&image_, nImg * sizeof(float)), "malloc image");
        check(cudaMalloc(&taps_, kDets * sizeof(float)), "malloc taps");

        std::vector<float> h(kDets, 0.0f);
        h[0] = 0.25f;
        for (int n = 1; n < kDets; n += 2)
            h[n] = -1.0f / (kPi * kPi * n * n);
        check(cudaMemcpy(taps_, h.data(), kDets * sizeof(float), cudaMemcpyHostToDevice), "copy taps");
    }
    ~FbpReconstructor()
    {
        cudaFree(counts_);
        cudaFree(proj_);
        cudaFree(filtered_);
        cudaFree(image_);
        cudaFree(taps_);
    }
    FbpReconstructor(const FbpReconstructor&) = delete;
    FbpReconstructor& operator=(const FbpReconstructor&) = delete;

    void upload(const std::vector<uint16_t>& counts)
    {
        check(cudaMemcpy(counts_, counts.data(), counts.size() * sizeof(uint16_t),
                         cudaMemcpyHostToDevice), "upload");
    }

    void reconstruct()
    {
        int n = kSlices * kAngles * kDets;
        countsToLineIntegrals<<<(n + 255) / 256, 256>>>(counts_, proj_, n);
        check(cudaGetLastError(), "countsToLineIntegrals");

        dim3 fg((kDets + 127) / 128, kAngles, kSlices);
        rampFilter<<<fg, 128>>>(proj_, taps_, filtered_);
        check(cudaGetLastError(), "rampFilter");

        dim3 block(16, 16);
        dim3 grid((kImage + 15) / 16, (kImage + 15) / 16, kSlices);
        backProject<<<grid, block>>>(filtered_, image_);
        check(cudaGetLastError(), "backProject");
        check(cudaDeviceSynchronize(), "synchronize");
    }

    std::vector<float> download() const
    {
        std::vector<float> img((size_t)kSlices * kImage * kImage);
        check(cudaMemcpy(img.data(), image_, img.size() * sizeof(float),
                         cudaMemcpyDeviceToHost), "download");
        return img;
    }

private:
    uint16_t* counts_ = nullptr;
    float* proj_ = nullptr;
    float* filtered_ = nullptr;
    float* image_ = nullptr;
    float* taps_ = nullptr;
};

// ---- phantom: discs whose centres drift from slice to slice ----
struct Disc { float x, y, r, mu; };

static std::vector<uint16_t> simulateScan()
{
    std::vector<uint16_t> counts((size_t)kSlices * kAngles * kDets);
    size_t at = 0;
    for (int s = 0; s < kSlices; ++s) {
        const Disc discs[] = {
            {0.0f, 0.0f, 160.0f, 0.0040f},
            {40.0f + 3.0f * s, 30.0f, 36.0f, 0.0050f},
            {-60.0f, 25.0f - 4.0f * s, 28.0f, -0.0020f},
            {10.0f, -70.0f + 2.0f * s, 44.0f, 0.0030f},
            {-35.0f + 5.0f * s, -40.0f, 9.0f, 0.0120f},
        };
        for (int a = 0; a < kAngles; ++a) {
            float theta = a * (kPi / kAngles);
            float c = std::cos(theta), sn = std::sin(theta);
            for (int d = 0; d < kDets; ++d) {
                float t = d - 0.5f * (kDets - 1);
                float p = 0.0f;
                for (const Disc& o : discs) {
                    float u = t - (o.x * c + o.y * sn);
                    float q = o.r * o.r - u * u;
                    if (q > 0) p += 2.0f * o.mu * std::sqrt(q);
                }
                counts[at++] = (uint16_t)(kI0 * std::exp(-p) + 0.5f);
            }
        }
    }
    return counts;
}

int main()
{
    try {
        std::vector<uint16_t> counts = simulateScan();
        FbpReconstructor rec;
        rec.upload(counts);
        rec.reconstruct();
        std::vector<float> img = rec.download();

        double all = 0.0, sq = 0.0;
        for (int s = 0; s < kSlices; ++s) {
            double sum = 0.0, moment = 0.0;
            for (int y = 0; y < kImage; ++y)
                for (int x = 0; x < kImage; ++x) {
                    double v = img[((size_t)s * kImage + y) * kImage + x];
                    sum += std::fabs(v);
                    moment += std::fabs(v) * (1 + (x * 7 + y * 13) % 31);
                    sq += v * v;
                }
            all += sum;
            printf("slice %d: sum %.4e weighted %.4e centre %.4e disc %.4e\n", s, sum, moment,
                   img[((size_t)s * kImage + 256) * kImage + 256],
                   img[((size_t)s * kImage + 299) * kImage + 313]);
        }
        printf("total %.4e rms %.4e\n", all, std::sqrt(sq / img.size()));
    } catch (const std::exception& e) {
        fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
    return 0;
}
