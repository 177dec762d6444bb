// One k-means step: assigns 200000 points in 16 dimensions to the nearest of 64 centers and accumulates
// the sum and the number of points of each center.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

struct Sizes {
    unsigned points;
    unsigned centers;
    unsigned dims;
};

__device__ float squared_distance(const float* p, const float* c, unsigned dims)
{
    float sum = 0.0f;
    for (unsigned d = 0; d < dims; ++d)
        sum += (p[d] - c[d]) * (p[d] - c[d]);
    return sum;
}

__global__ void assign(const float* points, const float* centers, int* nearest, Sizes s)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.points) return;
    float best = INFINITY;
    int best_center = 0;
    for (unsigned c = 0; c < s.centers; ++c) {
        float dist = squared_distance(points + i * s.dims, centers + c * s.dims, s.dims);
        if (dist < best) {
            best = dist;
            best_center = c;
        }
    }
    nearest[i] = best_center;
}

__global__ void accumulate(const float* points, const int* nearest, float* sums, unsigned* counts, Sizes s)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.points) return;
    int c = nearest[i];
    for (unsigned d = 0; d < s.dims; ++d)
        atomicAdd(&sums[c * s.dims + d], points[i * s.dims + d]);
    atomicAdd(&counts[c], 1u);
}

static float random_unit(unsigned& s)
{
    s = s * 1664525u + 1013904223u;
    return (s >> 8) / 16777216.0f;
}

int main()
{
    const Sizes s = {200000, 64, 16};
    std::vector<float> points(s.points * s.dims), centers(s.centers * s.dims), sums(s.centers * s.dims);
    std::vector<int> nearest(s.points);
    std::vector<unsigned> counts(s.centers);
    unsigned seed = 4242u;
    for (float& c : centers) c = 4.0f * random_unit(seed);
    for (unsigned i = 0; i < s.points; ++i) {
        unsigned home = (unsigned)(random_unit(seed) * s.centers);
        for (unsigned d = 0; d < s.dims; ++d)
            points[i * s.dims + d] = centers[home * s.dims + d] + 1.5f * (random_unit(seed) - 0.4f);
    }

    float *d_points, *d_centers, *d_sums;
    int* d_nearest;
    unsigned* d_counts;
    cudaMalloc(&d_points, points.size() * sizeof(float));
    cudaMalloc(&d_centers, centers.size() * sizeof(float));
    cudaMalloc(&d_sums, sums.size() * sizeof(float));
    cudaMalloc(&d_nearest, nearest.size() * sizeof(int));
    cudaMalloc(&d_counts, counts.size() * sizeof(unsigned));
    cudaMemcpy(d_points, points.data(), points.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_centers, centers.data(), centers.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(d_sums, 0, sums.size() * sizeof(float));
    cudaMemset(d_counts, 0, counts.size() * sizeof(unsigned));

    unsigned blocks = (s.points + 127) / 128;
    assign<<<blocks, 128>>>(d_points, d_centers, d_nearest, s);
    accumulate<<<blocks, 128>>>(d_points, d_nearest, d_sums, d_counts, s);

    cudaMemcpy(nearest.data(), d_nearest, nearest.size() * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(sums.data(), d_sums, sums.size() * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaMemcpy(counts.data(), d_counts, counts.size() * sizeof(unsigned), cudaMemcpyDeviceToHost) != cudaSuccess) {
        fprintf(stderr, "k-means step failed\n");
        return 1;
    }
    double labels = 0.0, moved = 0.0, sizes = 0.0;
    for (unsigned i = 0; i < s.points; ++i) labels += (double)nearest[i] * (1 + i % 3);
    for (unsigned i = 0; i < sums.size(); ++i) moved += sums[i] * (1.0 + i % 37);
    for (unsigned c = 0; c < s.centers; ++c) sizes += (double)counts[c] * counts[c];
    printf("labels %.6e\nsums %.6e\nsizes %.6e\n", labels, moved, sizes);
    return 0;
}
