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

static_assert(kDets == 512 && kSlices == 8, "kernels below are tuned for this shape");
static_assert(kImage % 16 == 0, "image must be a multiple of the tile");

// Half kernel tables: outputs of one parity only see inputs of the other parity
// (even taps of the Ram-Lak kernel vanish), plus the centre tap.
static const int kHalf   = kDets / 2;       // 256
static const int kGroups = kHalf / 8;       // 32 groups of 8 outputs: one per lane
static const int kTab    = 2 * kGroups * 9;  // q = 8*g + v kept at 9*g + v

// One block per angle, all slices: log transform, filter, and transposition to
// [angle][det][slice] so that back projection fetches all slices at once.
__global__ void __launch_bounds__(512, 2)
filterKernel(const uint16_t* __restrict__ counts, float* __restrict__ filtered)
{
    __shared__ __align__(16) float buf[kDets * kSlices + kGroups * 4];
    __shared__ float tab[2][kTab];

    const int tid = threadIdx.x;
    const int angle = blockIdx.x;

    for (int i = tid; i < 2 * kTab; i += 512) {
        int p = i / kTab, w = i - p * kTab;
        int q = (w / 9) * 8 + (w % 9);           // slot 8 of a group repeats slot 0 of the next
        float n = (float)(2 * (q - (kHalf - 1)) + (p ? 1 : -1));
        tab[p][w] = -1.0f / (kPi * kPi * n * n);
    }
    {
        const int m = tid & (kHalf - 1);
        for (int s = tid / kHalf; s < kSlices; s += 2) {
            ushort2 c = reinterpret_cast<const ushort2*>(
                counts + ((size_t)s * kAngles + angle) * kDets)[m];
            buf[(s * 2 + 0) * kHalf + m] = -logf(c.x * (1.0f / kI0));
            buf[(s * 2 + 1) * kHalf + m] = -logf(c.y * (1.0f / kI0));
        }
    }
    __syncthreads();

    const int lane = tid & 31, warp = tid >> 5;
    const int slice = warp >> 1, par = warp & 1;
    const float* mine  = buf + (slice * 2 + par) * kHalf;
    const float* other = buf + (slice * 2 + (par ^ 1)) * kHalf;

    float acc[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) acc[r] = 0.25f * mine[lane * 8 + r];

    float g[15];                                  // g[v] is entry 8*(lane-jj+31)+v
    {
        const float* t0 = tab[par] + 9 * (lane + kGroups);   // the group before jj = 0
#pragma unroll
        for (int v = 0; v < 7; ++v) g[v] = t0[v];
    }
#pragma unroll 2
    for (int jj = 0; jj < kGroups; ++jj) {
        const float* t = tab[par] + 9 * (lane - jj + kGroups - 1);
#pragma unroll
        for (int v = 0; v < 7; ++v) g[v + 8] = g[v];   // previous group's 0..6 are our 8..14
#pragma unroll
        for (int v = 0; v < 8; ++v) g[v] = t[v];
        float4 xa = *reinterpret_cast<const float4*>(other + jj * 8);
        float4 xb = *reinterpret_cast<const float4*>(other + jj * 8 + 4);
        const float x[8] = {xa.x, xa.y, xa.z, xa.w, xb.x, xb.y, xb.z, xb.w};
#pragma unroll
        for (int u = 0; u < 8; ++u)
#pragma unroll
            for (int r = 0; r < 8; ++r) acc[r] += x[u] * g[7 + r - u];
    }
    __syncthreads();                               // all inputs consumed: reuse buf
#pragma unroll
    for (int r = 0; r < 8; ++r)
        buf[(16 * lane + 2 * r + par) * kSlices + slice + lane * 4] = acc[r];
    __syncthreads();

    float4* out = reinterpret_cast<float4*>(filtered + (size_t)angle * kDets * kSlices);
    for (int i = tid; i < kDets * kSlices / 4; i += 512)   // 32 float4 per padded group
        out[i] = *reinterpret_cast<const float4*>(buf + i * 4 + (i >> 5) * 4);
}

// One thread per pixel, all slices in registers; warp = 8x4 pixels so that its
// detector footprint is a few cache lines.
__global__ void __launch_bounds__(256)
backProject(const float4* __restrict__ filtered, float* __restrict__ image)
{
    __shared__ float2 cs[kAngles];
    for (int a = threadIdx.x; a < kAngles; a += 256) {
        float theta = a * (kPi / kAngles);
        cs[a] = make_float2(cosf(theta), sinf(theta));
    }
    __syncthreads();

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int x = blockIdx.x * 16 + (warp & 1) * 8 + (lane & 7);
    const int y = blockIdx.y * 16 + (warp >> 1) * 4 + (lane >> 3);
    const float px = (x - 0.5f * (kImage - 1)) * kPixel;
    const float py = (y - 0.5f * (kImage - 1)) * kPixel;

    float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
    for (int a = 0; a < kAngles; ++a) {
        float2 c = cs[a];
        float t  = fmaf(px, c.x, fmaf(py, c.y, 0.5f * (kDets - 1)));
        float fl = floorf(t);
        int   i0 = (int)fl;
        float w1 = t - fl, w0 = 1.0f - w1;
        if (i0 >= 0 && i0 + 1 < kDets) {
            const float4* p = filtered + ((size_t)a * kDets + i0) * 2;
            float4 u0 = __ldg(p), u1 = __ldg(p + 1), v0 = __ldg(p + 2), v1 = __ldg(p + 3);
            acc[0] += w0 * u0.x + w1 * v0.x;
            acc[1] += w0 * u0.y + w1 * v0.y;
            acc[2] += w0 * u0.z + w1 * v0.z;
            acc[3] += w0 * u0.w + w1 * v0.w;
            acc[4] += w0 * u1.x + w1 * v1.x;
            acc[5] += w0 * u1.y + w1 * v1.y;
            acc[6] += w0 * u1.z + w1 * v1.z;
            acc[7] += w0 * u1.w + w1 * v1.w;
        }
    }
#pragma unroll
    for (int s = 0; s < kSlices; ++s)
        image[((size_t)s * kImage + y) * kImage + x] = acc[s] * (kPi / kAngles);
}

class FbpReconstructor {
public:
    FbpReconstructor()
    {
        size_t nProj = (size_t)kSlices * kAngles * kDets;
        size_t nImg  = (size_t)kSlices * kImage * kImage;
        check(cudaMalloc(&counts_, nProj * sizeof(uint16_t)), "malloc counts");
        check(cudaMalloc(&filtered_, nProj * sizeof(float)), "malloc filtered");
        check(cudaMalloc(&image_, nImg * sizeof(float)), "malloc image");
    }
    ~FbpReconstructor()
    {
        cudaFree(counts_);
        cudaFree(filtered_);
        cudaFree(image_);
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
        filterKernel<<<kAngles, 512>>>(counts_, filtered_);
        check(cudaGetLastError(), "filterKernel");
        dim3 grid(kImage / 16, kImage / 16);
        backProject<<<grid, 256>>>(reinterpret_cast<const float4*>(filtered_), image_);
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
    float* filtered_ = nullptr;
    float* image_ = nullptr;
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
