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

constexpr uint32_t VERTICES = 300007;
constexpr int      BONES    = 64;
constexpr int      FRAMES   = 6;

constexpr int TILE = 256;                 // vertices per block iteration = threads
constexpr int VERTEX_WORDS = 11;          // odd: conflict free in shared memory
constexpr int OUT_WORDS = 6, OUT_PITCH = 7;

// All frames in one launch.  Bones become 3x4 matrices in shared memory, the four matrices of a
// vertex are blended first and applied once; vertex buffers are staged for contiguous access.
__global__ void __launch_bounds__(TILE)
skinAllFrames(const Vertex* __restrict__ vertices, const Bone* __restrict__ bones,
              SkinnedVertex* __restrict__ out, uint32_t count, int* __restrict__ radius)
{
    __shared__ float4 rows[FRAMES * BONES * 3];
    __shared__ uint32_t vin[TILE * VERTEX_WORDS];
    __shared__ float vout[TILE * OUT_PITCH];
    const int tid = threadIdx.x;

    for (int b = tid; b < FRAMES * BONES; b += TILE) {
        const float4 q = bones[b].q;
        const float3 t = bones[b].t;
        rows[b * 3 + 0] = make_float4(1.0f - 2.0f * (q.y * q.y + q.z * q.z), 2.0f * (q.x * q.y - q.w * q.z),
                                      2.0f * (q.x * q.z + q.w * q.y), t.x);
        rows[b * 3 + 1] = make_float4(2.0f * (q.x * q.y + q.w * q.z), 1.0f - 2.0f * (q.x * q.x + q.z * q.z),
                                      2.0f * (q.y * q.z - q.w * q.x), t.y);
        rows[b * 3 + 2] = make_float4(2.0f * (q.x * q.z - q.w * q.y), 2.0f * (q.y * q.z + q.w * q.x),
                                      1.0f - 2.0f * (q.x * q.x + q.y * q.y), t.z);
    }

    int maxR2[FRAMES];                    // bit patterns of non-negative floats
    #pragma unroll
    for (int f = 0; f < FRAMES; ++f) maxR2[f] = 0;

    const uint32_t tiles = (count + TILE - 1) / TILE;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const uint32_t first = tile * TILE;
        const int here = (int)min((uint32_t)TILE, count - first);

        const uint32_t* gin = reinterpret_cast<const uint32_t*>(vertices + first);
        for (int e = tid; e < here * VERTEX_WORDS; e += TILE) vin[e] = gin[e];
        __syncthreads();

        float px = 0, py = 0, pz = 0, nx = 0, ny = 0, nz = 0, w[4] = {0, 0, 0, 0};
        int bone[4] = {0, 0, 0, 0};
        const bool active = tid < here;
        if (active) {
            const uint32_t* v = &vin[tid * VERTEX_WORDS];
            px = __uint_as_float(v[0]);
            py = __uint_as_float(v[1]);
            pz = __uint_as_float(v[2]);
            nx = __uint_as_float(v[3]);
            ny = __uint_as_float(v[4]);
            nz = __uint_as_float(v[5]);
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                bone[k] = (v[6] >> (8 * k)) & 255u;
                w[k] = __uint_as_float(v[7 + k]);
            }
        }

        #pragma unroll
        for (int f = 0; f < FRAMES; ++f) {
            if (active) {
                float p[3], n[3];
                #pragma unroll
                for (int r = 0; r < 3; ++r) {
                    float4 m = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    #pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        const float4 a = rows[(f * BONES + bone[k]) * 3 + r];
                        m.x += w[k] * a.x;
                        m.y += w[k] * a.y;
                        m.z += w[k] * a.z;
                        m.w += w[k] * a.w;
                    }
                    p[r] = m.x * px + m.y * py + m.z * pz + m.w;
                    n[r] = m.x * nx + m.y * ny + m.z * nz;
                }
                const float inv = rsqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
                float* o = &vout[tid * OUT_PITCH];
                o[0] = p[0];
                o[1] = p[1];
                o[2] = p[2];
                o[3] = n[0] * inv;
                o[4] = n[1] * inv;
                o[5] = n[2] * inv;
                maxR2[f] = max(maxR2[f], __float_as_int(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]));
            }
            __syncthreads();
            float* gout = reinterpret_cast<float*>(out + (size_t)f * count + first);
            #pragma unroll
            for (int k = 0; k < OUT_WORDS; ++k) {
                const int e = tid + k * TILE;
                if (e < here * OUT_WORDS) gout[e] = vout[(e / OUT_WORDS) * OUT_PITCH + e % OUT_WORDS];
            }
            __syncthreads();
        }
    }

    #pragma unroll
    for (int f = 0; f < FRAMES; ++f) {
        const int m = __reduce_max_sync(0xffffffffu, maxR2[f]);
        if ((tid & 31) == 0) atomicMax(&radius[f], __float_as_int(sqrtf(__int_as_float(m))));
    }
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

    const unsigned tiles = (VERTICES + TILE - 1) / TILE;
    const unsigned blocks = tiles < 132 * 4 ? tiles : 132 * 4;
    skinAllFrames<<<blocks, TILE>>>(dMesh, dBones, dOut, VERTICES, dRadius);

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
