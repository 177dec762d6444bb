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

// The window sums are separable. A block owns a 32 x 16 column of the volume and
// marches along z: a slice (with its halo) goes to shared memory, is summed along
// x (four outputs per thread, sharing the middle part), then along y; each thread
// keeps its last nine slice sums in a register ring. Voxels outside count as zero.
constexpr int TX = 32, TY = 16, CHUNK = 32;
constexpr int W = 2 * RADIUS + 1;
constexpr int HX = TX + 2 * RADIUS, HY = TY + 2 * RADIUS;
constexpr int NTHREADS = TX * TY;
constexpr int NLOAD = (HX * HY + NTHREADS - 1) / NTHREADS;
constexpr int XGROUPS = HY * (TX / 4);

static_assert(RADIUS == 4, "x pass is written out for nine taps");
static_assert(NX % TX == 0 && NY % TY == 0 && NZ % CHUNK == 0, "tiling");
static_assert(XGROUPS <= NTHREADS, "x pass");

// sums of in[0..8], in[1..9], in[2..10], in[3..11]
__device__ __forceinline__ float4 slide9(const float (&v)[12])
{
    float mid = ((v[3] + v[4]) + (v[5] + v[6])) + (v[7] + v[8]);
    float lo = v[1] + v[2], hi = v[9] + v[10];
    return make_float4(mid + v[0] + lo, mid + lo + v[9], mid + v[2] + hi, mid + hi + v[11]);
}

__global__ void __launch_bounds__(NTHREADS) localNcc(const float *__restrict__ fixedImg,
                                                     const float *__restrict__ movingImg,
                                                     float *__restrict__ out)
{
    __shared__ __align__(16) float sf[HY][HX];
    __shared__ __align__(16) float sm[HY][HX];
    __shared__ __align__(16) float xs[5][HY][TX];

    const int tx = threadIdx.x, ty = threadIdx.y, tid = ty * TX + tx;
    const int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY, z0 = blockIdx.z * CHUNK;
    const int x = x0 + tx, y = y0 + ty;

    // what this thread loads of each slice; -1: outside the volume
    int src[NLOAD];
#pragma unroll
    for (int i = 0; i < NLOAD; ++i) {
        int e = tid + i * NTHREADS;
        int gy = y0 - RADIUS + e / HX, gx = x0 - RADIUS + e % HX;
        bool in = e < HX * HY && gx >= 0 && gx < NX && gy >= 0 && gy < NY;
        src[i] = in ? gy * NX + gx : -1;
    }

    float pf[NLOAD], pm[NLOAD];
    auto fetch = [&](int z) {
        const bool zin = z >= 0 && z < NZ;
        const size_t base = zin ? static_cast<size_t>(z) * (NX * NY) : 0;
#pragma unroll
        for (int i = 0; i < NLOAD; ++i) {
            const bool in = zin && src[i] >= 0;
            pf[i] = in ? fixedImg[base + src[i]] : 0.f;
            pm[i] = in ? movingImg[base + src[i]] : 0.f;
        }
    };

    const int nxy = (min(x + RADIUS, NX - 1) - max(x - RADIUS, 0) + 1)
                  * (min(y + RADIUS, NY - 1) - max(y - RADIUS, 0) + 1);

    float ring[W][5];
#pragma unroll
    for (int k = 0; k < W; ++k)
#pragma unroll
        for (int q = 0; q < 5; ++q)
            ring[k][q] = 0.f;

    const int steps = CHUNK + 2 * RADIUS;
    fetch(z0 - RADIUS);
    for (int s0 = 0; s0 < steps; s0 += W) {
#pragma unroll
        for (int k = 0; k < W; ++k) {
            const int step = s0 + k;
            if (step < steps) {                    // same for the whole block
                float *lf = &sf[0][0], *lm = &sm[0][0];
#pragma unroll
                for (int i = 0; i < NLOAD; ++i) {
                    int e = tid + i * NTHREADS;
                    if (e < HX * HY) {
                        lf[e] = pf[i];
                        lm[e] = pm[i];
                    }
                }
                __syncthreads();
                if (step + 1 < steps)
                    fetch(z0 - RADIUS + step + 1); // in flight during the sums

                if (tid < XGROUPS) {
                    const int row = tid / (TX / 4), g = (tid % (TX / 4)) * 4;
                    float a[12], b[12], p[12];
#pragma unroll
                    for (int j = 0; j < 12; j += 4) {
                        float4 u = *reinterpret_cast<const float4 *>(&sf[row][g + j]);
                        float4 v = *reinterpret_cast<const float4 *>(&sm[row][g + j]);
                        a[j] = u.x; a[j + 1] = u.y; a[j + 2] = u.z; a[j + 3] = u.w;
                        b[j] = v.x; b[j + 1] = v.y; b[j + 2] = v.z; b[j + 3] = v.w;
                    }
                    *reinterpret_cast<float4 *>(&xs[0][row][g]) = slide9(a);
                    *reinterpret_cast<float4 *>(&xs[1][row][g]) = slide9(b);
#pragma unroll
                    for (int j = 0; j < 12; ++j) p[j] = a[j] * a[j];
                    *reinterpret_cast<float4 *>(&xs[2][row][g]) = slide9(p);
#pragma unroll
                    for (int j = 0; j < 12; ++j) p[j] = b[j] * b[j];
                    *reinterpret_cast<float4 *>(&xs[3][row][g]) = slide9(p);
#pragma unroll
                    for (int j = 0; j < 12; ++j) p[j] = a[j] * b[j];
                    *reinterpret_cast<float4 *>(&xs[4][row][g]) = slide9(p);
                }
                __syncthreads();

#pragma unroll
                for (int q = 0; q < 5; ++q) {
                    float s = 0.f;
#pragma unroll
                    for (int j = 0; j < W; ++j)
                        s += xs[q][ty + j][tx];
                    ring[k][q] = s;
                }
                // the next x pass comes after the next barrier, so xs is safe

                if (step >= 2 * RADIUS) {
                    const int z = z0 + step - 2 * RADIUS;
                    float t[5];
#pragma unroll
                    for (int q = 0; q < 5; ++q) {
                        t[q] = 0.f;
#pragma unroll
                        for (int j = 0; j < W; ++j)
                            t[q] += ring[j][q];
                    }
                    const int nz = min(z + RADIUS, NZ - 1) - max(z - RADIUS, 0) + 1;
                    const float inv = 1.0f / static_cast<float>(nxy * nz);
                    const float cross = t[4] - t[0] * t[1] * inv;
                    const float varF = t[2] - t[0] * t[0] * inv;
                    const float varM = t[3] - t[1] * t[1] * inv;
                    out[(static_cast<size_t>(z) * NY + y) * NX + x] =
                        __fdividef(cross * cross, varF * varM + EPSILON);
                }
            }
        }
    }
}

static void computeNcc(Volume fixedImg, Volume movingImg, Volume out)
{
    localNcc<<<dim3(NX / TX, NY / TY, NZ / CHUNK), dim3(TX, TY)>>>(fixedImg.data, movingImg.data, out.data);
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
