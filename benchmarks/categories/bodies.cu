// Gravitational acceleration of 16384 bodies on each other (softened, all pairs), then one
// integration step of velocities and positions.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

__device__ float3 pull(float3 acc, float4 self, float4 other, float softening)
{
    float dx = other.x - self.x;
    float dy = other.y - self.y;
    float dz = other.z - self.z;
    float dist = sqrtf(dx * dx + dy * dy + dz * dz + softening);
    float strength = other.w / (dist * dist * dist);
    acc.x += strength * dx;
    acc.y += strength * dy;
    acc.z += strength * dz;
    return acc;
}

__global__ void accelerate(const float4* bodies, float3* acceleration, int n, float softening)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float3 acc = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < n; j++)
        acc = pull(acc, bodies[i], bodies[j], softening);
    acceleration[i] = acc;
}

__global__ void advance(float4* bodies, float4* velocity, const float3* acceleration, int n, float dt)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    velocity[i].x += acceleration[i].x * dt;
    velocity[i].y += acceleration[i].y * dt;
    velocity[i].z += acceleration[i].z * dt;
    bodies[i].x += velocity[i].x * dt;
    bodies[i].y += velocity[i].y * dt;
    bodies[i].z += velocity[i].z * dt;
}

static float uniform(unsigned& s)
{
    s = s * 1664525u + 1013904223u;
    return (s >> 8) / 16777216.0f;
}

int main()
{
    const int n = 16384;
    std::vector<float4> bodies(n), velocity(n);
    unsigned s = 99u;
    for (int i = 0; i < n; i++) {
        bodies[i].x = uniform(s) * 2.0f - 1.0f;
        bodies[i].y = uniform(s) * 2.0f - 1.0f;
        bodies[i].z = uniform(s) * 2.0f - 1.0f;
        bodies[i].w = (0.5f + uniform(s)) / n;
        velocity[i] = make_float4(0.1f * uniform(s), 0.1f * uniform(s), 0.1f * uniform(s), 0.0f);
    }

    float4 *d_bodies, *d_velocity;
    float3* d_acceleration;
    cudaMalloc(&d_bodies, n * sizeof(float4));
    cudaMalloc(&d_velocity, n * sizeof(float4));
    cudaMalloc(&d_acceleration, n * sizeof(float3));
    cudaMemcpy(d_bodies, bodies.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemcpy(d_velocity, velocity.data(), n * sizeof(float4), cudaMemcpyHostToDevice);

    accelerate<<<(n + 255) / 256, 256>>>(d_bodies, d_acceleration, n, 1e-4f);
    advance<<<(n + 255) / 256, 256>>>(d_bodies, d_velocity, d_acceleration, n, 0.01f);

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
