// Fuses depth images from several camera poses into a truncated signed
// distance volume (KinectFusion style), then counts the surface crossings
// between neighbouring voxels for every slice.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const int kN = 256;             // voxels per axis
static const int kFrames = 8;
static const int kWidth = 640;
static const int kHeight = 480;
static const float kVoxel = 0.01f;     // m
static const float kOrigin = -1.28f;   // corner of the volume
static const float kTrunc = 0.05f;     // truncation distance, m
static const float kFocal = 525.0f;
static const float kCx = 319.5f;
static const float kCy = 239.5f;

struct Voxel {
    float tsdf;
    float weight;
};

struct Pose {        // world to camera
    float r[3][3];
    float t[3];
};

#define CHECK(expr)                                                              \
    if ((expr) != cudaSuccess) {                                                 \
        std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                  \
                     cudaGetErrorString(cudaGetLastError()));                    \
        std::exit(1);                                                            \
    }

//================================================================ kernels

// All frames are fused in one pass: a running weighted mean is a quotient of
// two sums, so a voxel lives in registers and is written once, never read.
// Each warp also ballots the signs of its 32 voxels into two bit masks; the
// crossings between neighbours are then popcounts over 4 MB of masks instead
// of three more looks at the volume.

static const int kZPer = 4;                 // voxels along z per thread
static const int kRow = kN / 32;            // mask words per row
static const float kRoundMagic = 12582912.0f;   // 1.5 * 2^23

struct Poses {
    Pose frame[kFrames];
};

__global__ void __launch_bounds__(256)
fuseFrames(Voxel *__restrict__ volume, uint2 *__restrict__ masks,
           const float *__restrict__ depth, const __grid_constant__ Poses poses)
{
    const int x = blockIdx.x * 32 + threadIdx.x;
    const int y = blockIdx.y * 8 + threadIdx.y;
    const int z0 = blockIdx.z * kZPer;
    const float wx = kOrigin + (x + 0.5f) * kVoxel;
    const float wy = kOrigin + (y + 0.5f) * kVoxel;

    float sum[kZPer], weight[kZPer];
#pragma unroll
    for (int k = 0; k < kZPer; ++k)
        sum[k] = weight[k] = 0.0f;

#pragma unroll
    for (int f = 0; f < kFrames; ++f) {
        const Pose &p = poses.frame[f];
        const float *image = depth + f * kWidth * kHeight;
        const float rowX = fmaf(p.r[0][0], wx, fmaf(p.r[0][1], wy, p.t[0]));
        const float rowY = fmaf(p.r[1][0], wx, fmaf(p.r[1][1], wy, p.t[1]));
        const float rowZ = fmaf(p.r[2][0], wx, fmaf(p.r[2][1], wy, p.t[2]));
#pragma unroll
        for (int k = 0; k < kZPer; ++k) {
            const float wz = kOrigin + (z0 + k + 0.5f) * kVoxel;
            const float camX = fmaf(p.r[0][2], wz, rowX);
            const float camY = fmaf(p.r[1][2], wz, rowY);
            const float camZ = fmaf(p.r[2][2], wz, rowZ);
            const float scale = __fdividef(kFocal, camZ);
            // Round to nearest by adding 1.5 * 2^23; whatever is off the image,
            // infinite or no number at all fails the unsigned comparisons.
            const unsigned u = __float_as_uint(fmaf(camX, scale, kCx) + kRoundMagic) - 0x4b400000u;
            const unsigned v = __float_as_uint(fmaf(camY, scale, kCy) + kRoundMagic) - 0x4b400000u;
            const bool onImage = camZ > 0.0f && u < (unsigned)kWidth && v < (unsigned)kHeight;
            const float d = onImage ? __ldg(image + v * kWidth + u) : 0.0f;
            const float sdf = d - camZ;
            if (d > 0.0f && sdf >= -kTrunc) {
                const float w = __fdividef(1.0f, d * d);
                sum[k] = fmaf(fminf(1.0f, sdf * (1.0f / kTrunc)), w, sum[k]);
                weight[k] += w;
            }
        }
    }

#pragma unroll
    for (int k = 0; k < kZPer; ++k) {
        const bool seen = weight[k] > 0.0f;
        Voxel out;
        out.tsdf = seen ? __fdividef(sum[k], weight[k]) : 1.0f;
        out.weight = weight[k];
        const size_t row = (size_t)(z0 + k) * kN + y;
        reinterpret_cast<float2 *>(volume)[row * kN + x] = make_float2(out.tsdf, out.weight);
        const unsigned inside = __ballot_sync(0xffffffffu, seen && out.tsdf < 0.0f);
        const unsigned outside = __ballot_sync(0xffffffffu, seen && out.tsdf >= 0.0f);
        if (threadIdx.x == 0)
            masks[row * kRow + blockIdx.x] = make_uint2(inside, outside);
    }
}

__device__ __forceinline__ int edges(uint2 a, uint2 b)
{
    return __popc((a.x & b.y) | (a.y & b.x));
}

// One block per slice; mask words of a slice are [y][kRow].
__global__ void __launch_bounds__(256)
countCrossings(const uint2 *__restrict__ masks, int *__restrict__ perSlice)
{
    __shared__ int warpSum[8];
    const int z = blockIdx.x;
    const uint2 *slice = masks + (size_t)z * kN * kRow;
    const uint2 none = make_uint2(0u, 0u);

    int count = 0;
#pragma unroll
    for (int i = threadIdx.x; i < kN * kRow; i += 256) {
        const uint2 m = slice[i];
        const uint2 right = i % kRow + 1 < kRow ? slice[i + 1] : none;
        const uint2 below = i + kRow < kN * kRow ? slice[i + kRow] : none;
        const uint2 behind = z + 1 < kN ? slice[i + kN * kRow] : none;
        const uint2 shifted = make_uint2(__funnelshift_r(m.x, right.x, 1),
                                         __funnelshift_r(m.y, right.y, 1));
        count += edges(m, shifted) + edges(m, below) + edges(m, behind);
    }
    count = __reduce_add_sync(0xffffffffu, count);
    if ((threadIdx.x & 31) == 0)
        warpSum[threadIdx.x >> 5] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int w = 0; w < 8; ++w)
            total += warpSum[w];
        perSlice[z] = total;
    }
}

static void fuse(Voxel *d_volume, const float *d_depth, const std::vector<Pose> &poses,
                 int *d_perSlice)
{
    Poses all;
    for (int f = 0; f < kFrames; ++f)
        all.frame[f] = poses[f];
    uint2 *d_masks;
    CHECK(cudaMalloc(&d_masks, (size_t)kN * kN * kRow * sizeof(uint2)));
    fuseFrames<<<dim3(kN / 32, kN / 8, kN / kZPer), dim3(32, 8)>>>(d_volume, d_masks, d_depth, all);
    countCrossings<<<kN, 256>>>(d_masks, d_perSlice);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(d_masks));
}

//=================================================================== host

// Camera on a circle around the volume, looking at its centre.
static Pose lookAtCentre(float angle, float radius, float height)
{
    float eye[3] = {radius * std::cos(angle), height, radius * std::sin(angle)};
    float len = std::sqrt(eye[0] * eye[0] + eye[1] * eye[1] + eye[2] * eye[2]);
    float fwd[3] = {-eye[0] / len, -eye[1] / len, -eye[2] / len};
    float h = std::sqrt(fwd[0] * fwd[0] + fwd[2] * fwd[2]);
    float right[3] = {-fwd[2] / h, 0.0f, fwd[0] / h};
    float down[3] = {fwd[1] * right[2] - fwd[2] * right[1],
                     fwd[2] * right[0] - fwd[0] * right[2],
                     fwd[0] * right[1] - fwd[1] * right[0]};
    Pose p;
    for (int k = 0; k < 3; ++k) {
        p.r[0][k] = right[k];
        p.r[1][k] = down[k];
        p.r[2][k] = fwd[k];
    }
    for (int j = 0; j < 3; ++j)
        p.t[j] = -(p.r[j][0] * eye[0] + p.r[j][1] * eye[1] + p.r[j][2] * eye[2]);
    return p;
}

// Depth of three spheres above a floor; 0 where nothing is within range.
static void renderDepth(const Pose &p, float *depth)
{
    static const float sphere[3][4] = {
        {0.0f, 0.1f, 0.0f, 0.55f}, {0.7f, -0.3f, 0.3f, 0.3f}, {-0.5f, -0.2f, -0.7f, 0.35f}};
    const float floorY = -0.62f;
    float eye[3];
    for (int k = 0; k < 3; ++k)
        eye[k] = -(p.r[0][k] * p.t[0] + p.r[1][k] * p.t[1] + p.r[2][k] * p.t[2]);

    for (int v = 0; v < kHeight; ++v) {
        for (int u = 0; u < kWidth; ++u) {
            float cx = (u - kCx) / kFocal, cy = (v - kCy) / kFocal;
            float dir[3];
            for (int k = 0; k < 3; ++k)
                dir[k] = p.r[0][k] * cx + p.r[1][k] * cy + p.r[2][k];
            float best = 4.5f;
            if (dir[1] < 0.0f)
                best = std::fmin(best, (floorY - eye[1]) / dir[1]);
            float a = dir[0] * dir[0] + dir[1] * dir[1] + dir[2] * dir[2];
            for (int s = 0; s < 3; ++s) {
                float o[3] = {eye[0] - sphere[s][0], eye[1] - sphere[s][1], eye[2] - sphere[s][2]};
                float b = o[0] * dir[0] + o[1] * dir[1] + o[2] * dir[2];
                float c = o[0] * o[0] + o[1] * o[1] + o[2] * o[2] - sphere[s][3] * sphere[s][3];
                float disc = b * b - a * c;
                if (disc > 0.0f)
                    best = std::fmin(best, (-b - std::sqrt(disc)) / a);
            }
            bool hole = (u * 31 + v * 17) % 97 == 0;   // sensor dropouts
            depth[v * kWidth + u] = best < 4.5f && !hole ? best : 0.0f;
        }
    }
}

int main()
{
    std::vector<Pose> poses(kFrames);
    std::vector<float> depth((size_t)kFrames * kWidth * kHeight);
    for (int f = 0; f < kFrames; ++f) {
        poses[f] = lookAtCentre(0.3f + 0.75f * f, 2.2f, 0.7f + 0.05f * f);
        renderDepth(poses[f], &depth[(size_t)f * kWidth * kHeight]);
    }

    const size_t voxels = (size_t)kN * kN * kN;
    Voxel *d_volume;
    float *d_depth;
    int *d_perSlice;
    CHECK(cudaMalloc(&d_volume, voxels * sizeof(Voxel)));
    CHECK(cudaMalloc(&d_depth, depth.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_perSlice, kN * sizeof(int)));
    CHECK(cudaMemcpy(d_depth, depth.data(), depth.size() * sizeof(float), cudaMemcpyHostToDevice));

    fuse(d_volume, d_depth, poses, d_perSlice);

    std::vector<Voxel> volume(voxels);
    std::vector<int> perSlice(kN);
    CHECK(cudaMemcpy(volume.data(), d_volume, voxels * sizeof(Voxel), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(perSlice.data(), d_perSlice, kN * sizeof(int), cudaMemcpyDeviceToHost));

    double weightSum = 0.0, absSum = 0.0, negSum = 0.0, mixed = 0.0;
    long seen = 0;
    for (size_t i = 0; i < voxels; ++i) {
        const Voxel &v = volume[i];
        if (v.weight > 0.0f)
            seen++;
        weightSum += v.weight;
        absSum += std::fabs(v.tsdf);
        if (v.tsdf < 0.0f)
            negSum -= v.tsdf;
        mixed += v.weight * (v.tsdf + 2.0f) * (float)(1 + i % 7);
    }
    double total = 0.0, moment = 0.0;
    for (int z = 0; z < kN; ++z) {
        total += perSlice[z];
        moment += (double)perSlice[z] * (z + 1);
    }

    std::printf("seen voxels   %.5g\n", (double)seen);
    std::printf("weight sum    %.5g\n", weightSum);
    std::printf("sum |tsdf|    %.5g\n", absSum);
    std::printf("negative part %.4g\n", negSum);
    std::printf("mixed sum     %.5g\n", mixed);
    std::printf("crossings     %.4g\n", total);
    std::printf("slice moment  %.4g\n", moment);

    CHECK(cudaFree(d_volume));
    CHECK(cudaFree(d_depth));
    CHECK(cudaFree(d_perSlice));
    return 0;
}
