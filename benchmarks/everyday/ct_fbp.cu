// Filtered back projection of a parallel-beam CT scan.
// The sinogram of an ellipse phantom is computed analytically on the host,
// filtered with a Ram-Lak kernel and back projected angle by angle.
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

// Geometry of the scan. Coordinates are in units of the field-of-view radius.
class ParallelScan {
public:
    ParallelScan(int nDet, int nAngles, int nPix, float detHalfWidth)
        : nDet_(nDet), nAngles_(nAngles), nPix_(nPix),
          spacing_(2.0f * detHalfWidth / nDet),
          centre_(0.5f * (nDet - 1)), pix_(2.0f / nPix) {}

    __host__ __device__ int detectors() const { return nDet_; }
    __host__ __device__ int angles() const { return nAngles_; }
    __host__ __device__ int pixels() const { return nPix_; }
    __host__ __device__ float spacing() const { return spacing_; }
    __host__ __device__ float detectorPos(int d) const { return (d - centre_) * spacing_; }
    __host__ __device__ float pixelPos(int i) const { return (i + 0.5f) * pix_ - 1.0f; }
    __host__ __device__ float detectorIndex(float x, float y, float c, float s) const
    {
        return (x * c + y * s) / spacing_ + centre_;
    }

private:
    int nDet_, nAngles_, nPix_;
    float spacing_, centre_, pix_;
};

struct Ellipse { float x0, y0, a, b, phi, rho; };

__global__ void filterProjections(ParallelScan scan, const float* sino,
                                  const float* taps, float* filtered)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int a = blockIdx.y;
    if (d >= scan.detectors()) return;

    const float* row = sino + a * scan.detectors();
    float acc = 0.0f;
    for (int j = 0; j < scan.detectors(); ++j)
        acc += row[j] * taps[abs(d - j)];
    filtered[a * scan.detectors() + d] = acc * scan.spacing();
}

__global__ void backprojectAngle(ParallelScan scan, const float* projection,
                                 float c, float s, float* image)
{
    int ix = blockIdx.x * blockDim.x + threadIdx.x;
    int iy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix >= scan.pixels() || iy >= scan.pixels()) return;

    float x = scan.pixelPos(ix);
    float y = scan.pixelPos(iy);
    if (x * x + y * y > 1.0f) return;   // outside the field of view

    float t = scan.detectorIndex(x, y, c, s);
    int i = (int)floorf(t);
    if (i < 0 || i + 1 >= scan.detectors()) return;

    float w = t - i;
    image[iy * scan.pixels() + ix] += projection[i] + w * (projection[i + 1] - projection[i]);
}

__global__ void scaleImage(float* image, int n, float factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) image[i] *= factor;
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
    ParallelScan scan(600, 360, 512, 1.1f);
    const int nDet = scan.detectors(), nAng = scan.angles(), n = scan.pixels();

    const std::vector<Ellipse> phantom = {
        {0.0f, 0.0f, 0.69f, 0.92f, 0.0f, 1.0f},
        {0.0f, -0.0184f, 0.6624f, 0.874f, 0.0f, -0.4f},
        {0.22f, 0.0f, 0.11f, 0.31f, -0.31416f, 0.3f},
        {-0.22f, 0.0f, 0.16f, 0.41f, 0.31416f, -0.2f},
        {0.0f, 0.35f, 0.21f, 0.25f, 0.0f, 0.25f},
        {0.0f, -0.6f, 0.12f, 0.08f, 0.5f, 0.5f},
    };

    // Analytic sinogram
    std::vector<float> cosA(nAng), sinA(nAng), sino((size_t)nAng * nDet);
    for (int a = 0; a < nAng; ++a) {
        double th = kPi * a / nAng;
        cosA[a] = (float)cos(th);
        sinA[a] = (float)sin(th);
        for (const Ellipse& e : phantom) {
            double ca = cos(th - e.phi), sa = sin(th - e.phi);
            double r2 = e.a * e.a * ca * ca + e.b * e.b * sa * sa;
            double shift = e.x0 * cos(th) + e.y0 * sin(th);
            for (int d = 0; d < nDet; ++d) {
                double t = scan.detectorPos(d) - shift;
                if (t * t < r2)
                    sino[a * nDet + d] += (float)(2.0 * e.rho * e.a * e.b * sqrt(r2 - t * t) / r2);
            }
        }
    }

    // Ram-Lak filter taps
    std::vector<float> taps(nDet, 0.0f);
    double tau = scan.spacing();
    taps[0] = (float)(1.0 / (4.0 * tau * tau));
    for (int k = 1; k < nDet; k += 2) taps[k] = (float)(-1.0 / (kPi * kPi * k * k * tau * tau));

    float *dSino, *dTaps, *dFiltered, *dImage;
    CHECK(cudaMalloc(&dSino, sino.size() * sizeof(float)));
    CHECK(cudaMalloc(&dFiltered, sino.size() * sizeof(float)));
    CHECK(cudaMalloc(&dTaps, nDet * sizeof(float)));
    CHECK(cudaMalloc(&dImage, n * n * sizeof(float)));
    CHECK(cudaMemcpy(dSino, sino.data(), sino.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dTaps, taps.data(), nDet * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dImage, 0, n * n * sizeof(float)));

    filterProjections<<<dim3((nDet + 127) / 128, nAng), 128>>>(scan, dSino, dTaps, dFiltered);

    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    for (int a = 0; a < nAng; ++a)
        backprojectAngle<<<grid, block>>>(scan, dFiltered + a * nDet, cosA[a], sinA[a], dImage);

    scaleImage<<<(n * n + 255) / 256, 256>>>(dImage, n * n, (float)(kPi / nAng));
    CHECK(cudaGetLastError());

    std::vector<float> image(n * n);
    CHECK(cudaMemcpy(image.data(), dImage, n * n * sizeof(float), cudaMemcpyDeviceToHost));

    double total = 0, err2 = 0;
    for (int iy = 0; iy < n; ++iy)
        for (int ix = 0; ix < n; ++ix) {
            double truth = 0, v = image[iy * n + ix];
            for (const Ellipse& e : phantom) {
                double dx = scan.pixelPos(ix) - e.x0, dy = scan.pixelPos(iy) - e.y0;
                double u = dx * cosf(e.phi) + dy * sinf(e.phi), w = dy * cosf(e.phi) - dx * sinf(e.phi);
                if (u * u / (e.a * e.a) + w * w / (e.b * e.b) < 1.0) truth += e.rho;
            }
            total += v;
            err2 += (v - truth) * (v - truth);
        }
    printf("image sum        %.5g\n", total);
    printf("rms error        %.4g\n", sqrt(err2 / (n * n)));
    printf("brain mean       %.4g\n", roiMean(image, n, 240, 200, 16));
    printf("right lobe mean  %.4g\n", roiMean(image, n, 300, 240, 24));
    printf("left lobe mean   %.4g\n", roiMean(image, n, 185, 240, 24));
    printf("tumour mean      %.4g\n", roiMean(image, n, 244, 330, 24));

    CHECK(cudaFree(dSino));
    CHECK(cudaFree(dFiltered));
    CHECK(cudaFree(dTaps));
    CHECK(cudaFree(dImage));
    return 0;
}
