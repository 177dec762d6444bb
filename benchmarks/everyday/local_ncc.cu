// Local normalised cross correlation between two 3D volumes (the similarity
// map used for deformable registration of MR / CT scans).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

constexpr int NX = 192;
constexpr int NY = 192;
constexpr int NZ = 96;
constexpr int RADIUS = 4;          // 9 x 9 x 9 window, cut off at the border
constexpr float EPSILON = 1e-5f;

struct Volume {
    float *data;
    __host__ __device__ float &at(int x, int y, int z) const {
        return data[(static_cast<size_t>(z) * NY + y) * NX + x];
    }
};

static void cudaCheck(cudaError_t err)
{
    if (err != cudaSuccess) {
        std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(err));
        std::exit(1);
    }
}

struct WindowSums {
    float f = 0.f, m = 0.f, ff = 0.f, mm = 0.f, fm = 0.f;
    int count = 0;

    __device__ void add(float a, float b)
    {
        f += a;
        m += b;
        ff += a * a;
        mm += b * b;
        fm += a * b;
        count++;
    }

    __device__ float correlation() const
    {
        float cross = fm - f * m / count;
        float varF = ff - f * f / count;
        float varM = mm - m * m / count;
        return cross * cross / (varF * varM + EPSILON);
    }
};

__global__ void localNcc(Volume fixedImg, Volume movingImg, Volume out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= NX || y >= NY || z >= NZ)
        return;

    WindowSums sums;
    for (int dz = -RADIUS; dz <= RADIUS; ++dz) {
        for (int dy = -RADIUS; dy <= RADIUS; ++dy) {
            for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
                int xx = x + dx, yy = y + dy, zz = z + dz;
                if (xx < 0 || xx >= NX || yy < 0 || yy >= NY || zz < 0 || zz >= NZ)
                    continue;
                sums.add(fixedImg.at(xx, yy, zz), movingImg.at(xx, yy, zz));
            }
        }
    }
    out.at(x, y, z) = sums.correlation();
}

static void computeNcc(Volume fixedImg, Volume movingImg, Volume out)
{
    dim3 block(8, 8, 8);
    dim3 grid((NX + 7) / 8, (NY + 7) / 8, (NZ + 7) / 8);
    localNcc<<<grid, block>>>(fixedImg, movingImg, out);
}

class Random {
    uint32_t s;
public:
    explicit Random(uint32_t seed) : s(seed) {}
    float operator()()
    {
        s = s * 747796405u + 2891336453u;
        return (s >> 8) * (1.0f / 16777216.0f);
    }
};

// a few nested ellipsoids plus noise; the second scan is shifted and has another contrast
static void phantom(std::vector<float> &img, float shift, bool other, uint32_t seed)
{
    Random rnd(seed);
    size_t i = 0;
    for (int z = 0; z < NZ; ++z)
        for (int y = 0; y < NY; ++y)
            for (int x = 0; x < NX; ++x, ++i) {
                float px = (x + shift) / NX - 0.5f, py = (y - shift) / NY - 0.5f, pz = (z + 0.5f * shift) / NZ - 0.5f;
                float r = px * px * 1.3f + py * py + pz * pz * 0.8f;
                float v = 0.05f;
                if (r < 0.18f) v = other ? 0.75f : 0.35f;
                if (r < 0.10f) v = other ? 0.30f : 0.60f;
                if (r < 0.03f) v = other ? 0.90f : 0.85f;
                img[i] = v + 0.2f * rnd();
            }
}

int main()
{
    const size_t n = static_cast<size_t>(NX) * NY * NZ;
    std::vector<float> hFixed(n), hMoving(n), hOut(n);
    phantom(hFixed, 0.0f, false, 11u);
    phantom(hMoving, 1.5f, true, 12345u);

    Volume dFixed, dMoving, dOut;
    cudaCheck(cudaMalloc(&dFixed.data, n * sizeof(float)));
    cudaCheck(cudaMalloc(&dMoving.data, n * sizeof(float)));
    cudaCheck(cudaMalloc(&dOut.data, n * sizeof(float)));
    cudaCheck(cudaMemcpy(dFixed.data, hFixed.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(dMoving.data, hMoving.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    computeNcc(dFixed, dMoving, dOut);
    cudaCheck(cudaGetLastError());
    cudaCheck(cudaDeviceSynchronize());

    cudaCheck(cudaMemcpy(hOut.data(), dOut.data, n * sizeof(float), cudaMemcpyDeviceToHost));

    double total = 0, square = 0, plane[4] = {0, 0, 0, 0};
    float top = 0;
    size_t i = 0;
    for (int z = 0; z < NZ; ++z)
        for (int y = 0; y < NY; ++y)
            for (int x = 0; x < NX; ++x, ++i) {
                total += hOut[i];
                square += static_cast<double>(hOut[i]) * hOut[i] * (1 + (x + 2 * y + 3 * z) % 7);
                top = std::fmax(top, hOut[i]);
                if (z == 0) plane[0] += hOut[i];
                if (y == NY - 1) plane[1] += hOut[i];
                if (x == 37) plane[2] += hOut[i];
                if (z == NZ - 1) plane[3] += hOut[i];
            }
    std::printf("mean ncc  %.5f\n", total / n);
    std::printf("weighted  %.5f\n", square / n);
    std::printf("largest   %.4f\n", top);
    std::printf("planes    %.2f %.2f %.2f %.2f\n", plane[0], plane[1], plane[2], plane[3]);

    cudaFree(dFixed.data);
    cudaFree(dMoving.data);
    cudaFree(dOut.data);
    return 0;
}
