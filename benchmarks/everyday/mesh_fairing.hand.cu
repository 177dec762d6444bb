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

// The connectivity is fixed, so it is turned around once: every vertex gets
// the list of its faces as (next, previous) vertex pairs, slot-major. After
// that an iteration is one gather kernel: no atomics, no accumulators.
constexpr int kMaxValence = 12;
constexpr int kBlock = 256;

struct Sums { double area, volume; int overflow; };

__device__ __forceinline__ Vec3 xyz(float4 v) { return {v.x, v.y, v.z}; }

__global__ void __launch_bounds__(kBlock)
padPositions(int n, const Vec3* __restrict__ pos, float4* __restrict__ out, int* __restrict__ valence)
{
    int v = blockIdx.x * kBlock + threadIdx.x;
    if (v >= n) return;
    Vec3 p = pos[v];
    out[v] = make_float4(p.x, p.y, p.z, 0.0f);
    valence[v] = 0;
}

__global__ void __launch_bounds__(kBlock)
buildRings(MeshParams p, const Face* __restrict__ faces, int* __restrict__ valence,
           int2* __restrict__ ring, Sums* __restrict__ sums)
{
    int f = blockIdx.x * kBlock + threadIdx.x;
    if (f >= p.numFaces) return;
    const Face t = faces[f];
    const int sa = atomicAdd(valence + t.a, 1);
    const int sb = atomicAdd(valence + t.b, 1);
    const int sc = atomicAdd(valence + t.c, 1);
    if (sa < kMaxValence) ring[(size_t)sa * p.numVertices + t.a] = make_int2(t.b, t.c);
    if (sb < kMaxValence) ring[(size_t)sb * p.numVertices + t.b] = make_int2(t.c, t.a);
    if (sc < kMaxValence) ring[(size_t)sc * p.numVertices + t.c] = make_int2(t.a, t.b);
    if (sa >= kMaxValence || sb >= kMaxValence || sc >= kMaxValence) atomicOr(&sums->overflow, 1);
}

// One Jacobi iteration. In face (I, J, K) the edge IJ is weighted by the
// cotangent at K and IK by that at J; both share the doubled face area.
__global__ void __launch_bounds__(kBlock)
smooth(MeshParams p, const int* __restrict__ valence, const int2* __restrict__ ring,
       const float4* __restrict__ src, float4* __restrict__ dst)
{
    const int v = blockIdx.x * kBlock + threadIdx.x;
    if (v >= p.numVertices) return;
    const int n = valence[v];
    const Vec3 I = xyz(src[v]);
    Vec3 delta = {0.0f, 0.0f, 0.0f};
    float weight = 0.0f;
#pragma unroll 2
    for (int s = 0; s < n; ++s) {
        const int2 e = __ldg(ring + (size_t)s * p.numVertices + v);
        const Vec3 u = xyz(__ldg(src + e.x)) - I;       // J - I
        const Vec3 w = xyz(__ldg(src + e.y)) - I;       // K - I
        const Vec3 c = cross(u, w);
        const float inv = rsqrtf(dot(c, c));
        const float uw = dot(u, w);
        const float wj = fminf(fmaxf((dot(u, u) - uw) * inv, p.minWeight), p.maxWeight);
        const float wk = fminf(fmaxf((dot(w, w) - uw) * inv, p.minWeight), p.maxWeight);
        delta.x += wk * u.x + wj * w.x;
        delta.y += wk * u.y + wj * w.y;
        delta.z += wk * u.z + wj * w.z;
        weight += wj + wk;
    }
    Vec3 r = I;
    if (weight > 0.0f) {
        const float k = p.lambda / weight;
        r = {I.x + k * delta.x, I.y + k * delta.y, I.z + k * delta.z};
    }
    dst[v] = make_float4(r.x, r.y, r.z, 0.0f);
}

// Positions back to packed form, unit normals, area and volume. Every face is
// seen from its three corners.
__global__ void __launch_bounds__(kBlock)
finish(int numVertices, const int* __restrict__ valence, const int2* __restrict__ ring,
       const float4* __restrict__ src, Vec3* __restrict__ pos, Vec3* __restrict__ normal,
       Sums* __restrict__ sums)
{
    const int v = blockIdx.x * kBlock + threadIdx.x;
    float area = 0.0f, vol = 0.0f;
    if (v < numVertices) {
        const int n = valence[v];
        const Vec3 I = xyz(src[v]);
        Vec3 nn = {0.0f, 0.0f, 0.0f};
        for (int s = 0; s < n; ++s) {
            const int2 e = __ldg(ring + (size_t)s * numVertices + v);
            const Vec3 J = xyz(__ldg(src + e.x)), K = xyz(__ldg(src + e.y));
            const Vec3 c = cross(J - I, K - I);
            nn = nn + c;
            area += sqrtf(dot(c, c));
            vol += dot(I, cross(J, K));
        }
        const float len2 = dot(nn, nn);
        if (len2 > 0.0f) nn = (1.0f / sqrtf(len2)) * nn;
        pos[v] = I;
        normal[v] = nn;
    }
    double a = area, q = vol;
    for (int o = 16; o > 0; o >>= 1) {
        a += __shfl_down_sync(0xffffffffu, a, o);
        q += __shfl_down_sync(0xffffffffu, q, o);
    }
    __shared__ double sa[kBlock / 32], sv[kBlock / 32];
    if ((threadIdx.x & 31) == 0) {
        sa[threadIdx.x >> 5] = a;
        sv[threadIdx.x >> 5] = q;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < kBlock / 32; ++k) {
            a += sa[k];
            q += sv[k];
        }
        atomicAdd(&sums->area, a / 6.0);         // 1/2 per face, 3 visits
        atomicAdd(&sums->volume, q / 18.0);      // 1/6 per face, 3 visits
    }
}

struct FairingResult {
    double area;
    double volume;
};

// smooths pos in place and fills normal
FairingResult fairMesh(MeshParams p, Vec3* pos, const Face* faces, Vec3* normal, int iterations)
{
    float4* buf[2];
    int* valence;
    int2* ring;
    Sums* sums;
    CHECK(cudaMalloc(&buf[0], p.numVertices * sizeof(float4)));
    CHECK(cudaMalloc(&buf[1], p.numVertices * sizeof(float4)));
    CHECK(cudaMalloc(&valence, p.numVertices * sizeof(int)));
    CHECK(cudaMalloc(&ring, (size_t)kMaxValence * p.numVertices * sizeof(int2)));
    CHECK(cudaMalloc(&sums, sizeof(Sums)));
    CHECK(cudaMemset(sums, 0, sizeof(Sums)));

    const int gv = (p.numVertices + kBlock - 1) / kBlock;
    const int gf = (p.numFaces + kBlock - 1) / kBlock;
    padPositions<<<gv, kBlock>>>(p.numVertices, pos, buf[0], valence);
    buildRings<<<gf, kBlock>>>(p, faces, valence, ring, sums);
    for (int it = 0; it < iterations; ++it)
        smooth<<<gv, kBlock>>>(p, valence, ring, buf[it & 1], buf[(it + 1) & 1]);
    finish<<<gv, kBlock>>>(p.numVertices, valence, ring, buf[iterations & 1], pos, normal, sums);
    CHECK(cudaGetLastError());

    Sums h;
    CHECK(cudaMemcpy(&h, sums, sizeof(Sums), cudaMemcpyDeviceToHost));
    if (h.overflow) {
        fprintf(stderr, "a vertex has more than %d faces\n", kMaxValence);
        exit(2);
    }
    CHECK(cudaFree(buf[0]));
    CHECK(cudaFree(buf[1]));
    CHECK(cudaFree(valence));
    CHECK(cudaFree(ring));
    CHECK(cudaFree(sums));
    return {h.area, h.volume};
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
