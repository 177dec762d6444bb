// A few iterations of Lloyd's k-means algorithm on points with 12 features (array of structs),
// tuned for H200 (sm_90). One kernel per iteration:
//  * each thread keeps 4 points in registers (128-bit loads); the score |c|^2 - 2 c.x needs one FMA per
//    feature, centroids come from shared memory as broadcast 128-bit loads shared by the 4 points;
//  * sums are accumulated right away in shared memory as 32-bit fixed point (native integer atomics, the
//    features lie in [0, 1]), one 64-bit integer atomic per block and value merges them (deterministic);
//  * the last block to finish computes the new centroids and resets the global sums;
//  * labels and inertia are only produced in the last iteration.
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

#define THREADS 256
#define BLOCKS (132 * 3)
#define PPT 4                                              /* points per thread and pass */
#define PER_BLOCK ((NPOINTS + BLOCKS - 1) / BLOCKS)
#define NSUMS (NCLUSTERS * (NFEAT + 1))
#define FIXED_ONE 1048576.0f                               /* 2^20 */

static_assert(PER_BLOCK < 4000, "32-bit fixed-point sums of one block would overflow");

struct Point {
    float f[NFEAT];
};

#define checkCuda(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

struct Accumulators {
    unsigned long long sums[NSUMS];                        // per cluster 12 fixed-point sums and the count
    double inertia;
    unsigned int blocks_done;
};

template <bool LAST>
__global__ void __launch_bounds__(THREADS, 3)
kmeans_iteration(const float4 *__restrict__ points, float *centroids, int *__restrict__ labels,
                 Accumulators *acc)
{
    __shared__ float4 cs[NCLUSTERS][NFEAT / 4 + 1];        // -2 c, then |c|^2 in the last float4
    __shared__ unsigned int sums[NSUMS];
    __shared__ float warp_inertia[THREADS / 32];
    __shared__ bool is_last;

    const int tid = threadIdx.x;
    for (int i = tid; i < NSUMS; i += THREADS) sums[i] = 0;
    if (tid < NCLUSTERS) {
        const float4 *c = reinterpret_cast<const float4 *>(centroids) + tid * (NFEAT / 4);
        float norm = 0.0f;
#pragma unroll
        for (int q = 0; q < NFEAT / 4; q++) {
            const float4 v = c[q];
            norm += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
            cs[tid][q] = make_float4(-2.0f * v.x, -2.0f * v.y, -2.0f * v.z, -2.0f * v.w);
        }
        cs[tid][NFEAT / 4] = make_float4(norm, 0.0f, 0.0f, 0.0f);
    }
    __syncthreads();

    const int lane = tid & 31;
    const int warp = tid >> 5;
    const int begin = blockIdx.x * PER_BLOCK;
    const int end = min(begin + PER_BLOCK, NPOINTS);
    float inertia = 0.0f;

    // a warp takes 4 x 32 consecutive points per pass
    for (int base = begin + warp * (32 * PPT); base < end; base += THREADS * PPT) {
        float x[PPT][NFEAT];
#pragma unroll
        for (int p = 0; p < PPT; p++) {
            const int i = min(base + p * 32 + lane, end - 1);
#pragma unroll
            for (int q = 0; q < NFEAT / 4; q++) {
                const float4 v = __ldg(points + (size_t)i * (NFEAT / 4) + q);
                x[p][q * 4 + 0] = v.x; x[p][q * 4 + 1] = v.y;
                x[p][q * 4 + 2] = v.z; x[p][q * 4 + 3] = v.w;
            }
        }

        float best[PPT];
        int best_k[PPT];
#pragma unroll
        for (int p = 0; p < PPT; p++) { best[p] = FLT_MAX; best_k[p] = 0; }
#pragma unroll 2
        for (int k = 0; k < NCLUSTERS; k++) {
            const float norm = cs[k][NFEAT / 4].x;
            float d[PPT];
#pragma unroll
            for (int p = 0; p < PPT; p++) d[p] = norm;
#pragma unroll
            for (int q = 0; q < NFEAT / 4; q++) {
                const float4 c = cs[k][q];
#pragma unroll
                for (int p = 0; p < PPT; p++) {
                    d[p] = fmaf(c.x, x[p][q * 4 + 0], d[p]);
                    d[p] = fmaf(c.y, x[p][q * 4 + 1], d[p]);
                    d[p] = fmaf(c.z, x[p][q * 4 + 2], d[p]);
                    d[p] = fmaf(c.w, x[p][q * 4 + 3], d[p]);
                }
            }
#pragma unroll
            for (int p = 0; p < PPT; p++)
                if (d[p] < best[p]) { best[p] = d[p]; best_k[p] = k; }
        }

#pragma unroll
        for (int p = 0; p < PPT; p++) {
            const int i = base + p * 32 + lane;
            if (i >= end) continue;
            unsigned int *s = sums + best_k[p] * (NFEAT + 1);
#pragma unroll
            for (int j = 0; j < NFEAT; j++)
                atomicAdd(s + j, __float2uint_rn(x[p][j] * FIXED_ONE));
            atomicAdd(s + NFEAT, 1u);
            if (LAST) {
                labels[i] = best_k[p];
                float norm = 0.0f;
#pragma unroll
                for (int j = 0; j < NFEAT; j++) norm = fmaf(x[p][j], x[p][j], norm);
                inertia += norm + best[p];
            }
        }
    }

    if (LAST) {
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) inertia += __shfl_xor_sync(0xffffffffu, inertia, o);
        if (lane == 0) warp_inertia[warp] = inertia;
    }
    __syncthreads();

    for (int i = tid; i < NSUMS; i += THREADS)
        if (sums[i] != 0) atomicAdd(&acc->sums[i], (unsigned long long)sums[i]);
    if (LAST && tid == 0) {
        double t = 0.0;
        for (int w = 0; w < THREADS / 32; w++) t += warp_inertia[w];
        atomicAdd(&acc->inertia, t);
    }

    // last block: new centroids
    __threadfence();
    __syncthreads();
    if (tid == 0) is_last = atomicInc(&acc->blocks_done, gridDim.x - 1) == gridDim.x - 1;    // wraps to 0
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    for (int i = tid; i < NCLUSTERS * NFEAT; i += THREADS) {
        const int k = i / NFEAT, j = i % NFEAT;
        const unsigned long long count = __ldcg(&acc->sums[k * (NFEAT + 1) + NFEAT]);
        const unsigned long long sum = __ldcg(&acc->sums[k * (NFEAT + 1) + j]);
        if (count != 0)
            centroids[i] = (float)((double)sum / ((double)count * FIXED_ONE));
    }
    __syncthreads();
    for (int i = tid; i < NSUMS; i += THREADS) acc->sums[i] = 0;
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

    float4 *d_points;
    float *d_centroids;
    int *d_labels;
    Accumulators *d_acc;
    checkCuda(cudaMalloc(&d_points, NPOINTS * sizeof(Point)));
    checkCuda(cudaMalloc(&d_centroids, NCLUSTERS * sizeof(Point)));
    checkCuda(cudaMalloc(&d_labels, NPOINTS * sizeof(int)));
    checkCuda(cudaMalloc(&d_acc, sizeof(Accumulators)));
    checkCuda(cudaMemset(d_acc, 0, sizeof(Accumulators)));
    checkCuda(cudaMemcpy(d_points, points.data(), NPOINTS * sizeof(Point), cudaMemcpyHostToDevice));
    checkCuda(cudaMemcpy(d_centroids, centroids.data(), NCLUSTERS * sizeof(Point), cudaMemcpyHostToDevice));

    for (int it = 0; it + 1 < ITERATIONS; it++)
        kmeans_iteration<false><<<BLOCKS, THREADS>>>(d_points, d_centroids, d_labels, d_acc);
    kmeans_iteration<true><<<BLOCKS, THREADS>>>(d_points, d_centroids, d_labels, d_acc);
    checkCuda(cudaGetLastError());
    checkCuda(cudaDeviceSynchronize());

    std::vector<int> labels(NPOINTS);
    double inertia = 0.0;
    checkCuda(cudaMemcpy(labels.data(), d_labels, NPOINTS * sizeof(int), cudaMemcpyDeviceToHost));
    checkCuda(cudaMemcpy(&inertia, &d_acc->inertia, sizeof(double), cudaMemcpyDeviceToHost));
    checkCuda(cudaMemcpy(centroids.data(), d_centroids, NCLUSTERS * sizeof(Point), cudaMemcpyDeviceToHost));

    double label_sum = 0.0, count_sq = 0.0, csum = 0.0, csq = 0.0;
    std::vector<double> counts(NCLUSTERS, 0.0);
    for (int i = 0; i < NPOINTS; i++) {
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

    cudaFree(d_points); cudaFree(d_centroids); cudaFree(d_labels); cudaFree(d_acc);
    return 0;
}
