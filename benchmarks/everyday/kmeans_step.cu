// A few iterations of Lloyd's k-means algorithm on points with 12 features (array of structs).
// Plain version: assign (one thread per point), accumulate with atomics, divide.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <math.h>
#include <vector>
#include <cuda_runtime.h>

#define NFEAT 12
#define NCLUSTERS 40
#define NPOINTS 700001
#define ITERATIONS 4

struct Point {
    float f[NFEAT];
};

struct ClusterSum {
    float f[NFEAT];
    int count;
};

#define checkCuda(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

__device__ float distance2(const Point &a, const Point &b)
{
    float d = 0.0f;
    for (int i = 0; i < NFEAT; i++) {
        float diff = a.f[i] - b.f[i];
        d += diff * diff;
    }
    return d;
}

__global__ void assign_points(const Point *points, const Point *centroids, int *labels, float *dist, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float best = FLT_MAX;
        int best_k = 0;
        for (int k = 0; k < NCLUSTERS; k++) {
            float d = distance2(points[i], centroids[k]);
            if (d < best) {
                best = d;
                best_k = k;
            }
        }
        labels[i] = best_k;
        dist[i] = best;
    }
}

__global__ void clear_sums(ClusterSum *sums)
{
    int k = threadIdx.x;
    for (int j = 0; j < NFEAT; j++)
        sums[k].f[j] = 0.0f;
    sums[k].count = 0;
}

__global__ void accumulate(const Point *points, const int *labels, ClusterSum *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        ClusterSum *s = &sums[labels[i]];
        for (int j = 0; j < NFEAT; j++)
            atomicAdd(&s->f[j], points[i].f[j]);
        atomicAdd(&s->count, 1);
    }
}

__global__ void update_centroids(const ClusterSum *sums, Point *centroids)
{
    int k = threadIdx.x;
    if (sums[k].count == 0)
        return;                      // keep the old centroid of an empty cluster
    for (int j = 0; j < NFEAT; j++)
        centroids[k].f[j] = sums[k].f[j] / sums[k].count;
}

static uint32_t rng_state = 2463534242u;
static float next_random()           // [0, 1)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 17;
    rng_state ^= rng_state << 5;
    return (rng_state >> 8) * (1.0f / 16777216.0f);
}

int main()
{
    // points: blobs around random centers, all features inside [0, 1)
    std::vector<Point> centers(NCLUSTERS), points(NPOINTS), centroids(NCLUSTERS);
    for (int k = 0; k < NCLUSTERS; k++)
        for (int j = 0; j < NFEAT; j++)
            centers[k].f[j] = 0.2f + 0.6f * next_random();
    for (int i = 0; i < NPOINTS; i++) {
        int k = (int)(next_random() * NCLUSTERS);
        for (int j = 0; j < NFEAT; j++)
            points[i].f[j] = centers[k].f[j] + 0.36f * (next_random() - 0.5f);
    }
    for (int k = 0; k < NCLUSTERS; k++)                // initial guess: disturbed centers
        for (int j = 0; j < NFEAT; j++)
            centroids[k].f[j] = centers[k].f[j] + 0.4f * (next_random() - 0.5f);

    Point *d_points, *d_centroids;
    int *d_labels;
    float *d_dist;
    ClusterSum *d_sums;
    checkCuda(cudaMalloc(&d_points, NPOINTS * sizeof(Point)));
    checkCuda(cudaMalloc(&d_centroids, NCLUSTERS * sizeof(Point)));
    checkCuda(cudaMalloc(&d_labels, NPOINTS * sizeof(int)));
    checkCuda(cudaMalloc(&d_dist, NPOINTS * sizeof(float)));
    checkCuda(cudaMalloc(&d_sums, NCLUSTERS * sizeof(ClusterSum)));
    checkCuda(cudaMemcpy(d_points, points.data(), NPOINTS * sizeof(Point), cudaMemcpyHostToDevice));
    checkCuda(cudaMemcpy(d_centroids, centroids.data(), NCLUSTERS * sizeof(Point), cudaMemcpyHostToDevice));

    int threads = 256;
    int blocks = (NPOINTS + threads - 1) / threads;
    for (int it = 0; it < ITERATIONS; it++) {
        assign_points<<<blocks, threads>>>(d_points, d_centroids, d_labels, d_dist, NPOINTS);
        clear_sums<<<1, NCLUSTERS>>>(d_sums);
        accumulate<<<blocks, threads>>>(d_points, d_labels, d_sums, NPOINTS);
        update_centroids<<<1, NCLUSTERS>>>(d_sums, d_centroids);
        checkCuda(cudaGetLastError());
    }
    checkCuda(cudaDeviceSynchronize());

    std::vector<int> labels(NPOINTS);
    std::vector<float> dist(NPOINTS);
    checkCuda(cudaMemcpy(labels.data(), d_labels, NPOINTS * sizeof(int), cudaMemcpyDeviceToHost));
    checkCuda(cudaMemcpy(dist.data(), d_dist, NPOINTS * sizeof(float), cudaMemcpyDeviceToHost));
    checkCuda(cudaMemcpy(centroids.data(), d_centroids, NCLUSTERS * sizeof(Point), cudaMemcpyDeviceToHost));

    double inertia = 0.0, label_sum = 0.0, count_sq = 0.0, csum = 0.0, csq = 0.0;
    std::vector<double> counts(NCLUSTERS, 0.0);
    for (int i = 0; i < NPOINTS; i++) {
        inertia += dist[i];
        label_sum += labels[i];
        counts[labels[i]] += 1.0;
    }
    for (int k = 0; k < NCLUSTERS; k++) {
        count_sq += counts[k] * counts[k];
        for (int j = 0; j < NFEAT; j++) {
            csum += centroids[k].f[j];
            csq += (double)centroids[k].f[j] * centroids[k].f[j];
        }
    }
    printf("inertia        %.7e\n", inertia);
    printf("label sum      %.7e\n", label_sum);
    printf("rms count      %.7e\n", sqrt(count_sq / NCLUSTERS));
    printf("centroid sum   %.7e\n", csum);
    printf("centroid sumsq %.7e\n", csq);
    for (int k = 0; k < NCLUSTERS; k += 4)
        printf("centroid value %.7e\n", centroids[k].f[k % NFEAT]);

    cudaFree(d_points); cudaFree(d_centroids); cudaFree(d_labels); cudaFree(d_dist); cudaFree(d_sums);
    return 0;
}
