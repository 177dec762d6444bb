// One k-means step: assigns 200000 points in 16 dimensions to the nearest of 64 centers and accumulates the
// sum and the number of points of each center. By hand: one fused kernel, two points a thread in registers,
// centers in shared memory, distances by dot products; a block sorts its 512 points by center in shared
// memory, adds them per center without atomics, and issues one float4 atomic a center quarter.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr unsigned POINTS = 200000;
constexpr int CENTERS = 64, DIMS = 16, VECS = DIMS / 4;
constexpr int THREADS = 256, PER_BLOCK = 2 * THREADS;
constexpr int PITCH = VECS + 1;  // of a staged point in float4, free of bank conflicts
static_assert(CENTERS * VECS == THREADS, "one thread a center quarter");

__device__ __forceinline__ float minus_dot(float acc, const float4 p, const float4 c)
{
    return fmaf(-p.w, c.w, fmaf(-p.z, c.z, fmaf(-p.y, c.y, fmaf(-p.x, c.x, acc))));
}

__global__ void __launch_bounds__(THREADS, 3)
kmeans(const float4* __restrict__ points, const float4* __restrict__ centers, int* __restrict__ nearest,
       float4* __restrict__ sums, unsigned* __restrict__ counts)
{
    __shared__ float4 staged[PER_BLOCK * PITCH], center[CENTERS * VECS];
    __shared__ float half_norm[CENTERS];
    __shared__ int count[CENTERS], start[CENTERS + 1];
    __shared__ unsigned short order[PER_BLOCK];
    const int tid = threadIdx.x;
    const unsigned first = blockIdx.x * PER_BLOCK;
    center[tid] = centers[tid];
    if (tid < CENTERS) count[tid] = 0;
#pragma unroll
    for (int i = 0; i < 2 * VECS; ++i) {
        const int v = i * THREADS + tid;
        staged[v / VECS * PITCH + v % VECS] =
            first * VECS + v < POINTS * VECS ? points[first * VECS + v] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    __syncthreads();
    if (tid < CENTERS) {
        float norm = 0.0f;
        for (int q = 0; q < VECS; ++q) norm = minus_dot(norm, center[tid * VECS + q], center[tid * VECS + q]);
        half_norm[tid] = -0.5f * norm;
    }
    float4 a[VECS], b[VECS];
#pragma unroll
    for (int q = 0; q < VECS; ++q) {
        a[q] = staged[tid * PITCH + q];
        b[q] = staged[(tid + THREADS) * PITCH + q];
    }
    __syncthreads();
    float best_a = INFINITY, best_b = INFINITY;
    int label_a = 0, label_b = 0;
#pragma unroll 4
    for (int c = 0; c < CENTERS; ++c) {
        float score_a = half_norm[c], score_b = score_a;
#pragma unroll
        for (int q = 0; q < VECS; ++q) {
            const float4 v = center[c * VECS + q];
            score_a = minus_dot(score_a, a[q], v);
            score_b = minus_dot(score_b, b[q], v);
        }
        if (score_a < best_a) best_a = score_a, label_a = c;
        if (score_b < best_b) best_b = score_b, label_b = c;
    }
    const bool valid_a = first + tid < POINTS, valid_b = first + THREADS + tid < POINTS;
    if (valid_a) nearest[first + tid] = label_a;
    if (valid_b) nearest[first + THREADS + tid] = label_b;

    const int rank_a = valid_a ? atomicAdd(&count[label_a], 1) : 0;
    const int rank_b = valid_b ? atomicAdd(&count[label_b], 1) : 0;
    __syncthreads();
    if (tid < 32) {  // exclusive scan of the 64 counts, two a lane
        const int even = count[2 * tid], odd = count[2 * tid + 1];
        int scan = even + odd;
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) {
            const int other = __shfl_up_sync(0xffffffffu, scan, o);
            if (tid >= o) scan += other;
        }
        start[2 * tid] = scan - even - odd;
        start[2 * tid + 1] = scan - odd;
        if (tid == 31) start[CENTERS] = scan;
    }
    __syncthreads();
    if (valid_a) order[start[label_a] + rank_a] = tid;
    if (valid_b) order[start[label_b] + rank_b] = tid + THREADS;
    __syncthreads();

    const int c = tid / VECS, q = tid % VECS, end = start[c + 1];
    if (start[c] == end) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = start[c]; i < end; ++i) {
        const float4 p = staged[order[i] * PITCH + q];
        sum = make_float4(sum.x + p.x, sum.y + p.y, sum.z + p.z, sum.w + p.w);
    }
    atomicAdd(sums + tid, sum);
    if (q == 0) atomicAdd(counts + c, (unsigned)(end - start[c]));
}

int main()
{
    std::vector<float> points(POINTS * DIMS), centers(CENTERS * DIMS), sums(CENTERS * DIMS);
    std::vector<int> nearest(POINTS);
    std::vector<unsigned> counts(CENTERS);
    unsigned seed = 4242u;
    auto random_unit = [](unsigned& s) { return ((s = s * 1664525u + 1013904223u) >> 8) / 16777216.0f; };
    for (float& c : centers) c = 4.0f * random_unit(seed);
    for (unsigned i = 0; i < POINTS; ++i) {
        unsigned home = (unsigned)(random_unit(seed) * CENTERS);
        for (int d = 0; d < DIMS; ++d)
            points[i * DIMS + d] = centers[home * DIMS + d] + 1.5f * (random_unit(seed) - 0.4f);
    }

    float4 *d_points, *d_centers, *d_sums;
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

    kmeans<<<(POINTS + PER_BLOCK - 1) / PER_BLOCK, THREADS>>>(d_points, d_centers, d_nearest, d_sums, d_counts);

    cudaMemcpy(nearest.data(), d_nearest, nearest.size() * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(sums.data(), d_sums, sums.size() * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaMemcpy(counts.data(), d_counts, counts.size() * sizeof(unsigned), cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    double labels = 0.0, moved = 0.0, sizes = 0.0;
    for (unsigned i = 0; i < POINTS; ++i) labels += (double)nearest[i] * (1 + i % 3);
    for (unsigned i = 0; i < sums.size(); ++i) moved += sums[i] * (1.0 + i % 37);
    for (int c = 0; c < CENTERS; ++c) sizes += (double)counts[c] * counts[c];
    printf("labels %.6e\nsums %.6e\nsizes %.6e\n", labels, moved, sizes);
    return 0;
}
