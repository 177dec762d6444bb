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

__global__ void resetVolume(Voxel *volume)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)kN * kN * kN) {
        volume[i].tsdf = 1.0f;
        volume[i].weight = 0.0f;
    }
}

// One thread per (x, y) column of the volume.
__global__ void integrate(Voxel *volume, const float *depth, Pose pose)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= kN || y >= kN)
        return;

    for (int z = 0; z < kN; ++z) {
        float wx = kOrigin + (x + 0.5f) * kVoxel;
        float wy = kOrigin + (y + 0.5f) * kVoxel;
        float wz = kOrigin + (z + 0.5f) * kVoxel;

        float camX = pose.r[0][0] * wx + pose.r[0][1] * wy + pose.r[0][2] * wz + pose.t[0];
        float camY = pose.r[1][0] * wx + pose.r[1][1] * wy + pose.r[1][2] * wz + pose.t[1];
        float camZ = pose.r[2][0] * wx + pose.r[2][1] * wy + pose.r[2][2] * wz + pose.t[2];
        if (camZ <= 0.0f)
            continue;

        int u = __float2int_rn(kFocal * camX / camZ + kCx);
        int v = __float2int_rn(kFocal * camY / camZ + kCy);
        if (u < 0 || u >= kWidth || v < 0 || v >= kHeight)
            continue;

        float d = depth[v * kWidth + u];
        if (d <= 0.0f)
            continue;

        float sdf = d - camZ;
        if (sdf < -kTrunc)
            continue;

        float tsdf = fminf(1.0f, sdf / kTrunc);
        float w = 1.0f / (d * d);
        Voxel &voxel = volume[((size_t)z * kN + y) * kN + x];
        voxel.tsdf = (voxel.tsdf * voxel.weight + tsdf * w) / (voxel.weight + w);
        voxel.weight = voxel.weight + w;
    }
}

__device__ bool crosses(const Voxel &a, const Voxel &b)
{
    if (a.weight <= 0.0f || b.weight <= 0.0f)
        return false;
    return (a.tsdf < 0.0f) != (b.tsdf < 0.0f);
}

__global__ void countCrossings(const Voxel *volume, int *perSlice)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z;
    if (x >= kN || y >= kN)
        return;

    size_t i = ((size_t)z * kN + y) * kN + x;
    Voxel v = volume[i];
    int count = 0;
    if (x + 1 < kN && crosses(v, volume[i + 1]))
        count++;
    if (y + 1 < kN && crosses(v, volume[i + kN]))
        count++;
    if (z + 1 < kN && crosses(v, volume[i + kN * kN]))
        count++;
    if (count > 0)
        atomicAdd(&perSlice[z], count);
}

static void fuse(Voxel *d_volume, const float *d_depth, const std::vector<Pose> &poses,
                 int *d_perSlice)
{
    size_t voxels = (size_t)kN * kN * kN;
    resetVolume<<<(unsigned)((voxels + 255) / 256), 256>>>(d_volume);

    dim3 block(32, 8);
    dim3 grid(kN / 32, kN / 8);
    for (int f = 0; f < kFrames; ++f)
        integrate<<<grid, block>>>(d_volume, d_depth + (size_t)f * kWidth * kHeight, poses[f]);

    CHECK(cudaMemset(d_perSlice, 0, kN * sizeof(int)));
    countCrossings<<<dim3(kN / 32, kN / 8, kN), block>>>(d_volume, d_perSlice);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
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
