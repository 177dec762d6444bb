// Character animation: quaternion linear blend skinning of one mesh for several animation
// frames, plus the bounding sphere radius of every frame.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

struct Vertex {
    float3 pos;
    float3 nrm;
    uchar4 bone;
    float  weight[4];
};

struct SkinnedVertex {
    float3 pos;
    float3 nrm;
};

struct Bone {
    float4 q;      // unit quaternion, w is the real part
    float3 t;
};

static_assert(sizeof(Vertex) == 44 && sizeof(SkinnedVertex) == 24, "vertex buffer layout");

__device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__device__ inline float3 operator*(float s, float3 a) { return make_float3(s * a.x, s * a.y, s * a.z); }
__device__ inline float  dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ inline float3 cross(float3 a, float3 b)
{
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
__device__ inline float3 normalize(float3 a) { return (1.0f / sqrtf(dot(a, a))) * a; }

__device__ inline float3 rotate(float4 q, float3 v)
{
    float3 u = make_float3(q.x, q.y, q.z);
    return v + 2.0f * cross(u, cross(u, v) + q.w * v);
}

__global__ void skin(const Vertex* vertices, const Bone* bones, SkinnedVertex* out, uint32_t count)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;

    Vertex v = vertices[i];
    int index[4] = {v.bone.x, v.bone.y, v.bone.z, v.bone.w};

    float3 pos = make_float3(0, 0, 0);
    float3 nrm = make_float3(0, 0, 0);
    for (int k = 0; k < 4; ++k) {
        if (v.weight[k] == 0.0f) continue;
        Bone b = bones[index[k]];
        pos = pos + v.weight[k] * (rotate(b.q, v.pos) + b.t);
        nrm = nrm + v.weight[k] * rotate(b.q, v.nrm);
    }
    out[i].pos = pos;
    out[i].nrm = normalize(nrm);
}

__global__ void boundingRadius(const SkinnedVertex* v, uint32_t count, int* radius)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float r = sqrtf(dot(v[i].pos, v[i].pos));
    atomicMax(radius, __float_as_int(r));   // works because r >= 0
}

class Random {
public:
    explicit Random(uint32_t s) : state(s) {}
    uint32_t bits() { state ^= state << 13; state ^= state >> 17; state ^= state << 5; return state; }
    float real() { return (float)(bits() >> 8) / 16777216.0f; }
    float range(float lo, float hi) { return lo + (hi - lo) * real(); }
private:
    uint32_t state;
};

constexpr uint32_t VERTICES = 300007;
constexpr int      BONES    = 64;
constexpr int      FRAMES   = 6;

int main()
{
    Random rnd(0xC0FFEEu);

    std::vector<Vertex> mesh(VERTICES);
    for (Vertex& v : mesh) {
        v.pos = make_float3(rnd.range(-1, 1), rnd.range(0, 2), rnd.range(-0.5f, 0.5f));
        float3 n = make_float3(rnd.range(-1, 1), rnd.range(-1, 1), rnd.range(0.2f, 1));
        float len = std::sqrt(n.x * n.x + n.y * n.y + n.z * n.z);
        v.nrm = make_float3(n.x / len, n.y / len, n.z / len);
        unsigned char b = (unsigned char)(rnd.bits() % (BONES - 4));
        v.bone = make_uchar4(b, b + 1, b + 2, b + 3);
        int used = 1 + (int)(rnd.bits() % 4);
        float total = 0;
        for (int k = 0; k < 4; ++k) {
            v.weight[k] = k < used ? rnd.range(0.2f, 1.0f) : 0.0f;
            total += v.weight[k];
        }
        for (int k = 0; k < 4; ++k) v.weight[k] /= total;
    }

    std::vector<Bone> bones(BONES * FRAMES);
    for (int f = 0; f < FRAMES; ++f)
        for (int b = 0; b < BONES; ++b) {
            float angle = 0.02f * b + 0.1f * f, ax = 0.3f, ay = 0.9f, az = std::sqrt(1.0f - 0.09f - 0.81f);
            float s = std::sin(angle / 2);
            bones[f * BONES + b].q = make_float4(ax * s, ay * s, az * s, std::cos(angle / 2));
            bones[f * BONES + b].t = make_float3(0.01f * b, 0.05f * f, 0.002f * b * f);
        }

    Vertex* dMesh;
    Bone* dBones;
    SkinnedVertex* dOut;
    int* dRadius;
    cudaMalloc(&dMesh, mesh.size() * sizeof(Vertex));
    cudaMalloc(&dBones, bones.size() * sizeof(Bone));
    cudaMalloc(&dOut, (size_t)VERTICES * FRAMES * sizeof(SkinnedVertex));
    cudaMalloc(&dRadius, FRAMES * sizeof(int));
    cudaMemcpy(dMesh, mesh.data(), mesh.size() * sizeof(Vertex), cudaMemcpyHostToDevice);
    cudaMemcpy(dBones, bones.data(), bones.size() * sizeof(Bone), cudaMemcpyHostToDevice);
    cudaMemset(dRadius, 0, FRAMES * sizeof(int));

    for (int f = 0; f < FRAMES; ++f) {
        SkinnedVertex* frameOut = dOut + (size_t)f * VERTICES;
        skin<<<(VERTICES + 255) / 256, 256>>>(dMesh, dBones + f * BONES, frameOut, VERTICES);
        boundingRadius<<<(VERTICES + 255) / 256, 256>>>(frameOut, VERTICES, dRadius + f);
    }

    std::vector<SkinnedVertex> out((size_t)VERTICES * FRAMES);
    float radius[FRAMES];
    cudaMemcpy(out.data(), dOut, out.size() * sizeof(SkinnedVertex), cudaMemcpyDeviceToHost);
    cudaMemcpy(radius, dRadius, sizeof(radius), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) {
        std::printf("something went wrong on the GPU\n");
        return 1;
    }

    for (int f = 0; f < FRAMES; ++f) {
        double pos = 0, nrm = 0, mixed = 0;
        for (uint32_t i = 0; i < VERTICES; ++i) {
            const SkinnedVertex& v = out[(size_t)f * VERTICES + i];
            pos += std::fabs(v.pos.x) + std::fabs(v.pos.y) + 2 * std::fabs(v.pos.z);
            nrm += std::fabs(v.nrm.x) + 2 * std::fabs(v.nrm.y) + 3 * std::fabs(v.nrm.z);
            mixed += std::fabs(v.pos.x + v.nrm.y) * (i % 7) + std::fabs(v.pos.z) * (i % 3);
        }
        std::printf("frame %d: positions %.3e normals %.3e mixed %.3e radius %.2f\n", f, pos, nrm, mixed, radius[f]);
    }

    cudaFree(dMesh);
    cudaFree(dBones);
    cudaFree(dOut);
    cudaFree(dRadius);
    return 0;
}
