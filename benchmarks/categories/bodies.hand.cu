// Gravitational acceleration of 16384 bodies on each other (softened, all pairs), then one integration
// step. By hand: two bodies a thread against a shared tile of 1024, the pairs split over 32 x 16 blocks,
// a reciprocal square root instead of root and division, and partial sums added in the integration kernel.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int BODIES = 16384;
constexpr int THREADS = 256;
constexpr int PER_BLOCK = 2 * THREADS;
constexpr int SPLIT = 16;
constexpr int TILE = BODIES / SPLIT;

__device__ __forceinline__ void pull(float3& acc, const float3& self, const float4& other, float softening)
{
    const float dx = other.x - self.x;
    const float dy = other.y - self.y;
    const float dz = other.z - self.z;
    const float inv = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening))));
    const float strength = (other.w * inv) * (inv * inv);
    acc.x = fmaf(strength, dx, acc.x);
    acc.y = fmaf(strength, dy, acc.y);
    acc.z = fmaf(strength, dz, acc.z);
}

__global__ void __launch_bounds__(THREADS, 4)
accelerate(const float4* __restrict__ bodies, float4* __restrict__ partial, float softening)
{
    __shared__ float4 tile[TILE];
    const float4* source = bodies + blockIdx.y * TILE;
#pragma unroll
    for (int i = 0; i < TILE / THREADS; i++)
        tile[i * THREADS + threadIdx.x] = source[i * THREADS + threadIdx.x];

    const int i = blockIdx.x * PER_BLOCK + threadIdx.x;
    const float4 a = bodies[i], b = bodies[i + THREADS];
    const float3 pa = make_float3(a.x, a.y, a.z), pb = make_float3(b.x, b.y, b.z);
    float3 fa = make_float3(0.0f, 0.0f, 0.0f), fb = fa;
    __syncthreads();

#pragma unroll 8
    for (int j = 0; j < TILE; j++) {
        const float4 other = tile[j];
        pull(fa, pa, other, softening);
        pull(fb, pb, other, softening);
    }
    float4* out = partial + blockIdx.y * BODIES + i;
    out[0] = make_float4(fa.x, fa.y, fa.z, 0.0f);
    out[THREADS] = make_float4(fb.x, fb.y, fb.z, 0.0f);
}

__global__ void advance(float4* __restrict__ bodies, float4* __restrict__ velocity,
                        const float4* __restrict__ partial, float dt)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 p = bodies[i], v = velocity[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
#pragma unroll
    for (int s = 0; s < SPLIT; s++) {
        const float4 f = partial[s * BODIES + i];
        x += f.x;
        y += f.y;
        z += f.z;
    }
    v = make_float4(v.x + x * dt, v.y + y * dt, v.z + z * dt, v.w);
    velocity[i] = v;
    bodies[i] = make_float4(p.x + v.x * dt, p.y + v.y * dt, p.z + v.z * dt, p.w);
}

static float uniform(unsigned& s)
{
    s = s * 1664525u + 1013904223u;
    return (s >> 8) / 16777216.0f;
}

int main()
{
    const int n = BODIES;
    std::vector<float4> bodies(n), velocity(n);
    unsigned s = 99u;
    for (int i = 0; i < n; i++) {
        bodies[i].x = uniform(s) * 2.0f - 1.0f;
        bodies[i].y = uniform(s) * 2.0f - 1.0f;
        bodies[i].z = uniform(s) * 2.0f - 1.0f;
        bodies[i].w = (0.5f + uniform(s)) / n;
        velocity[i] = make_float4(0.1f * uniform(s), 0.1f * uniform(s), 0.1f * uniform(s), 0.0f);
    }

    float4 *d_bodies, *d_velocity, *d_partial;
    cudaMalloc(&d_bodies, n * sizeof(float4));
    cudaMalloc(&d_velocity, n * sizeof(float4));
    cudaMalloc(&d_partial, SPLIT * n * sizeof(float4));
    cudaMemcpy(d_bodies, bodies.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemcpy(d_velocity, velocity.data(), n * sizeof(float4), cudaMemcpyHostToDevice);

    accelerate<<<dim3(n / PER_BLOCK, SPLIT), THREADS>>>(d_bodies, d_partial, 1e-4f);
    advance<<<n / 128, 128>>>(d_bodies, d_velocity, d_partial, 0.01f);

    cudaMemcpy(bodies.data(), d_bodies, n * sizeof(float4), cudaMemcpyDeviceToHost);
    cudaError_t status = cudaMemcpy(velocity.data(), d_velocity, n * sizeof(float4), cudaMemcpyDeviceToHost);
    if (status != cudaSuccess) {
        fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
        return 1;
    }
    double energy = 0.0, position = 0.0, momentum = 0.0;
    for (int i = 0; i < n; i++) {
        float4 p = bodies[i], v = velocity[i];
        energy += 0.5 * p.w * ((double)v.x * v.x + (double)v.y * v.y + (double)v.z * v.z);
        position += std::fabs(p.x) + 2.0 * std::fabs(p.y) + 3.0 * std::fabs(p.z);
        momentum += (std::fabs(v.x) + std::fabs(v.y) + std::fabs(v.z)) * (1 + i % 5);
    }
    printf("energy   %.6e\n", energy);
    printf("position %.6e\n", position);
    printf("momentum %.6e\n", momentum);
    return 0;
}
