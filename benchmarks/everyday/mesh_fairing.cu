// Triangle mesh fairing: Jacobi iterations of cotangent-weighted Laplacian
// smoothing, then area-weighted vertex normals, surface area and volume.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

struct Vec3 { float x, y, z; };
struct Face { int a, b, c; };

struct MeshParams {
    int   numVertices;
    int   numFaces;
    float lambda;      // step of the smoothing
    float minWeight;   // clamp of the cotangents
    float maxWeight;
};

#define CHECK(expr)                                                                       \
    if (cudaError_t e__ = (expr)) {                                                       \
        fprintf(stderr, "CUDA failure at line %d: %s\n", __LINE__, cudaGetErrorString(e__)); \
        exit(2);                                                                          \
    }

__host__ __device__ inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__host__ __device__ inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__host__ __device__ inline Vec3 operator*(float s, Vec3 a) { return {s * a.x, s * a.y, s * a.z}; }
__host__ __device__ inline float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__host__ __device__ inline Vec3 cross(Vec3 a, Vec3 b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// ---- device code ----

template <class F>
__global__ void forEach(int n, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

template <class F>
void launch(int n, F f)
{
    const int block = 256;
    forEach<<<(n + block - 1) / block, block>>>(n, f);
    CHECK(cudaGetLastError());
}

__device__ inline void atomicAddVec(Vec3* p, Vec3 v)
{
    atomicAdd(&p->x, v.x);
    atomicAdd(&p->y, v.y);
    atomicAdd(&p->z, v.z);
}

struct ClearVertex {
    Vec3* delta;
    float* weight;
    __device__ void operator()(int v) const
    {
        delta[v] = {0.0f, 0.0f, 0.0f};
        weight[v] = 0.0f;
    }
};

struct AccumulateFace {
    MeshParams p;
    const Vec3* pos;
    const Face* faces;
    Vec3* delta;
    float* weight;

    __device__ float cotan(Vec3 at, Vec3 q, Vec3 r) const
    {
        Vec3 u = q - at, v = r - at;
        Vec3 c = cross(u, v);
        float w = dot(u, v) / sqrtf(dot(c, c));
        return fminf(fmaxf(w, p.minWeight), p.maxWeight);
    }
    __device__ void operator()(int f) const
    {
        Face t = faces[f];
        Vec3 A = pos[t.a], B = pos[t.b], C = pos[t.c];
        float wa = cotan(A, B, C);
        float wb = cotan(B, C, A);
        float wc = cotan(C, A, B);
        atomicAddVec(&delta[t.a], wc * (B - A) + wb * (C - A));
        atomicAddVec(&delta[t.b], wa * (C - B) + wc * (A - B));
        atomicAddVec(&delta[t.c], wb * (A - C) + wa * (B - C));
        atomicAdd(&weight[t.a], wb + wc);
        atomicAdd(&weight[t.b], wc + wa);
        atomicAdd(&weight[t.c], wa + wb);
    }
};

struct MoveVertex {
    MeshParams p;
    Vec3* pos;
    const Vec3* delta;
    const float* weight;
    __device__ void operator()(int v) const
    {
        if (weight[v] > 0.0f)
            pos[v] = pos[v] + (p.lambda / weight[v]) * delta[v];
    }
};

struct FaceGeometry {
    const Vec3* pos;
    const Face* faces;
    Vec3* normal;
    float* area;
    float* volume;
    __device__ void operator()(int f) const
    {
        Face t = faces[f];
        Vec3 A = pos[t.a], B = pos[t.b], C = pos[t.c];
        Vec3 n = cross(B - A, C - A);
        area[f] = 0.5f * sqrtf(dot(n, n));
        volume[f] = dot(A, cross(B, C)) / 6.0f;
        atomicAddVec(&normal[t.a], n);
        atomicAddVec(&normal[t.b], n);
        atomicAddVec(&normal[t.c], n);
    }
};

struct NormalizeVertex {
    Vec3* normal;
    __device__ void operator()(int v) const
    {
        Vec3 n = normal[v];
        float len = sqrtf(dot(n, n));
        if (len > 0.0f)
            normal[v] = (1.0f / len) * n;
    }
};

struct FairingResult {
    double area;
    double volume;
};

// smooths pos in place and fills normal
FairingResult fairMesh(MeshParams p, Vec3* pos, const Face* faces, Vec3* normal, int iterations)
{
    Vec3* delta;
    float *weight, *area, *volume;
    CHECK(cudaMalloc(&delta, p.numVertices * sizeof(Vec3)));
    CHECK(cudaMalloc(&weight, p.numVertices * sizeof(float)));
    CHECK(cudaMalloc(&area, p.numFaces * sizeof(float)));
    CHECK(cudaMalloc(&volume, p.numFaces * sizeof(float)));

    for (int it = 0; it < iterations; ++it) {
        launch(p.numVertices, ClearVertex{delta, weight});
        launch(p.numFaces, AccumulateFace{p, pos, faces, delta, weight});
        launch(p.numVertices, MoveVertex{p, pos, delta, weight});
    }
    launch(p.numVertices, ClearVertex{normal, weight});
    launch(p.numFaces, FaceGeometry{pos, faces, normal, area, volume});
    launch(p.numVertices, NormalizeVertex{normal});

    std::vector<float> ha(p.numFaces), hv(p.numFaces);
    CHECK(cudaMemcpy(ha.data(), area, p.numFaces * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hv.data(), volume, p.numFaces * sizeof(float), cudaMemcpyDeviceToHost));
    FairingResult r = {0.0, 0.0};
    for (int f = 0; f < p.numFaces; ++f) {
        r.area += ha[f];
        r.volume += hv[f];
    }
    CHECK(cudaFree(delta));
    CHECK(cudaFree(weight));
    CHECK(cudaFree(area));
    CHECK(cudaFree(volume));
    return r;
}

// ---- host ----

static unsigned rngState = 987654321u;
static unsigned nextRandom()
{
    rngState = rngState * 1103515245u + 12345u;
    return rngState >> 8;
}
static float uniform() { return (nextRandom() & 0xffff) / 65536.0f; }

int main()
{
    const int nu = 1024, nv = 768, iterations = 12;
    std::vector<Vec3> pos(nu * nv);
    std::vector<Face> faces;
    faces.reserve(2 * nu * nv);

    // noisy torus
    for (int v = 0; v < nv; ++v)
        for (int u = 0; u < nu; ++u) {
            float a = 6.2831853f * u / nu, b = 6.2831853f * v / nv;
            float r = 1.0f + 0.004f * (uniform() - 0.5f) + 0.05f * std::sin(9 * a) * std::cos(5 * b);
            float R = 2.0f + r * std::cos(b);
            pos[v * nu + u] = {R * std::cos(a), R * std::sin(a), r * std::sin(b)};
        }
    // quads split along a random diagonal
    for (int v = 0; v < nv; ++v)
        for (int u = 0; u < nu; ++u) {
            int u1 = (u + 1) % nu, v1 = (v + 1) % nv;
            int p00 = v * nu + u, p10 = v * nu + u1, p01 = v1 * nu + u, p11 = v1 * nu + u1;
            if (nextRandom() & 64) {
                faces.push_back({p00, p10, p11});
                faces.push_back({p00, p11, p01});
            } else {
                faces.push_back({p00, p10, p01});
                faces.push_back({p10, p11, p01});
            }
        }
    // faces come in no particular order within a neighbourhood
    for (size_t f = 0; f + 512 <= faces.size(); ++f)
        std::swap(faces[f], faces[f + nextRandom() % 512]);

    MeshParams p;
    p.numVertices = (int)pos.size();
    p.numFaces = (int)faces.size();
    p.lambda = 0.5f;
    p.minWeight = 0.02f;
    p.maxWeight = 20.0f;

    Vec3 *dPos, *dNormal;
    Face* dFaces;
    CHECK(cudaMalloc(&dPos, pos.size() * sizeof(Vec3)));
    CHECK(cudaMalloc(&dNormal, pos.size() * sizeof(Vec3)));
    CHECK(cudaMalloc(&dFaces, faces.size() * sizeof(Face)));
    CHECK(cudaMemcpy(dPos, pos.data(), pos.size() * sizeof(Vec3), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dFaces, faces.data(), faces.size() * sizeof(Face), cudaMemcpyHostToDevice));

    FairingResult r = fairMesh(p, dPos, dFaces, dNormal, iterations);

    std::vector<Vec3> before = pos, normal(pos.size());
    CHECK(cudaMemcpy(pos.data(), dPos, pos.size() * sizeof(Vec3), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(normal.data(), dNormal, normal.size() * sizeof(Vec3), cudaMemcpyDeviceToHost));

    double moved = 0, weighted = 0, ns = 0, nw = 0;
    for (size_t i = 0; i < pos.size(); ++i) {
        Vec3 d = pos[i] - before[i];
        moved += std::sqrt(dot(d, d));
        weighted += (std::fabs(pos[i].x) + 2 * std::fabs(pos[i].y) + 3 * std::fabs(pos[i].z)) * (1 + i % 19);
        ns += std::fabs(normal[i].x) + 2 * std::fabs(normal[i].y) + 3 * std::fabs(normal[i].z);
        nw += std::fabs(normal[i].z) * (1 + i % 17);
    }
    printf("area %.4f volume %.4f\n", r.area, r.volume);
    printf("mean displacement %.4e\n", moved / pos.size());
    printf("positions %.5e normals %.5e %.5e\n", weighted, ns, nw);
    const size_t probe[] = {100 * nu + 100, 300 * nu + 77, 500 * nu + 600, 650 * nu + 850};
    for (size_t i : probe)
        printf("vertex %zu: %.4f %.4f %.4f\n", i, pos[i].x, pos[i].y, pos[i].z);

    CHECK(cudaFree(dPos));
    CHECK(cudaFree(dNormal));
    CHECK(cudaFree(dFaces));
    return 0;
}
