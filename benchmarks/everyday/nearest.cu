// Nearest neighbour by brute force: squared distance matrix, then argmin of each row
#include <cstdio>
#include <vector>
#include <cmath>
#include <cuda_runtime.h>

constexpr int D = 64;

__global__ void distance_matrix(const float* __restrict__ a, const float* __restrict__ b,
                                float* __restrict__ dist, int na, int nb)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < na && col < nb) {
        float s = 0.f;
        for (int k = 0; k < D; ++k) {
            float diff = a[row * D + k] - b[col * D + k];
            s += diff * diff;
        }
        dist[row * nb + col] = s;
    }
}

__global__ void row_argmin(const float* __restrict__ dist, int* __restrict__ best,
                           float* __restrict__ bestDist, int na, int nb)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= na) return;
    float m = INFINITY;
    int mi = -1;
    for (int c = 0; c < nb; ++c) {
        float v = dist[row * nb + c];
        if (v < m) {
            m = v;
            mi = c;
        }
    }
    best[row] = mi;
    bestDist[row] = m;
}

int main()
{
    const int na = 4096, nb = 4096;
    std::vector<float> a(na * D), b(nb * D);
    unsigned s = 1u;
    auto rnd = [&s]() {
        s = 1664525u * s + 1013904223u;
        return (s >> 8) * (1.0f / 16777216.0f);
    };
    for (auto& x : a) x = rnd();
    for (auto& x : b) x = rnd();

    float *da, *db, *dd, *dm;
    int* di;
    cudaMalloc(&da, a.size() * sizeof(float));
    cudaMalloc(&db, b.size() * sizeof(float));
    cudaMalloc(&dd, (size_t)na * nb * sizeof(float));
    cudaMalloc(&dm, na * sizeof(float));
    cudaMalloc(&di, na * sizeof(int));
    cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice);

    dim3 threads(16, 16);
    dim3 blocks((na + 15) / 16, (nb + 15) / 16);
    distance_matrix<<<blocks, threads>>>(da, db, dd, na, nb);
    row_argmin<<<(na + 255) / 256, 256>>>(dd, di, dm, na, nb);

    std::vector<int> idx(na);
    std::vector<float> dmin(na);
    cudaMemcpy(idx.data(), di, na * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(dmin.data(), dm, na * sizeof(float), cudaMemcpyDeviceToHost);

    long long isum = 0;
    double dsum = 0;
    for (int i = 0; i < na; ++i) {
        isum += (long long)idx[i] * (i % 7 + 1);
        dsum += dmin[i];
    }
    printf("index checksum %lld, sum of min distances %.5e\n", isum, dsum);
    printf("nearest(0)=%d %.4e nearest(4095)=%d %.4e\n", idx[0], dmin[0], idx[na - 1], dmin[na - 1]);
    return 0;
}
