// 50 Jacobi steps for the Poisson equation on a 1024 x 1024 grid with fixed border values. By hand: tiles
// over time, 10 steps a launch on a 128 x 100 region that shrinks to 104 x 80 valid points; a warp keeps
// 5 rows of float4 in registers, takes side neighbors by shuffle and rows of other warps from shared memory.
#include <cstdio>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define IDX(y, x) ((y) * n + (x))

constexpr int SIZE = 1024, STEPS = 50;
constexpr int DEPTH = 10;                   // steps a launch
constexpr int ROWS = 5, WARPS = 20;         // region of 100 rows
constexpr int HALO_X = 12;                  // at least DEPTH, and a multiple of 4
constexpr int TILE_X = 128 - 2 * HALO_X;    // 104
constexpr int TILE_Y = ROWS * WARPS - 2 * DEPTH;  // 80

__global__ void __launch_bounds__(WARPS * 32, 1)
jacobi_steps(const float* __restrict__ u, const float* __restrict__ source, float* __restrict__ next) {
    __shared__ float4 top[2][WARPS][32], bottom[2][WARPS][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int x = (int)blockIdx.x * TILE_X - HALO_X + 4 * lane;
    const int y = (int)blockIdx.y * TILE_Y - DEPTH + warp * ROWS;
    const bool inside_x = x >= 0 && x < SIZE;
    const bool fixed_left = x == 0, fixed_right = x + 4 == SIZE;

    float4 v[ROWS], f[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        v[r] = f[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside_x && y + r >= 0 && y + r < SIZE) {
            v[r] = *reinterpret_cast<const float4*>(u + (y + r) * SIZE + x);
            const float4 s = *reinterpret_cast<const float4*>(source + (y + r) * SIZE + x);
            f[r] = make_float4(0.25f * s.x, 0.25f * s.y, 0.25f * s.z, 0.25f * s.w);
        }
    }

#pragma unroll 2
    for (int step = 0; step < DEPTH; step++) {
        const int b = step & 1;
        top[b][warp][lane] = v[0];
        bottom[b][warp][lane] = v[ROWS - 1];
        __syncthreads();
        // Rows and columns at the region's rim go stale by one a step; the halo absorbs them.
        float4 up = warp > 0 ? bottom[b][warp - 1][lane] : v[0];
        const float4 below = warp + 1 < WARPS ? top[b][warp + 1][lane] : v[ROWS - 1];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float4 c = v[r];
            const float4 down = r + 1 < ROWS ? v[r + 1 < ROWS ? r + 1 : r] : below;
            const float left = __shfl_up_sync(0xffffffffu, c.w, 1);
            const float right = __shfl_down_sync(0xffffffffu, c.x, 1);
            if (y + r > 0 && y + r < SIZE - 1) {
                v[r].x = fmaf(0.25f, (left + c.y) + (up.x + down.x), f[r].x);
                v[r].y = fmaf(0.25f, (c.x + c.z) + (up.y + down.y), f[r].y);
                v[r].z = fmaf(0.25f, (c.y + c.w) + (up.z + down.z), f[r].z);
                v[r].w = fmaf(0.25f, (c.z + right) + (up.w + down.w), f[r].w);
                if (fixed_left) v[r].x = c.x;
                if (fixed_right) v[r].w = c.w;
            }
            up = c;
        }
    }

    if (lane < HALO_X / 4 || lane >= (HALO_X + TILE_X) / 4 || !inside_x) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int local = warp * ROWS + r;
        if (local >= DEPTH && local < DEPTH + TILE_Y && y + r < SIZE)
            *reinterpret_cast<float4*>(next + (y + r) * SIZE + x) = v[r];
    }
}

int main() {
    const int n = SIZE;
    const size_t bytes = (size_t)n * n * sizeof(float);
    std::vector<float> u(n * n), source(n * n);
    unsigned s = 2463534242u;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            u[IDX(y, x)] = (s >> 8) / 16777216.0f + (y == 0 ? 3.0f : 0.0f) + (x == n - 1 ? 2.0f : 0.0f);
            source[IDX(y, x)] = 0.01f * (float)((x * 7 + y * 13) % 32) / 32.0f;
        }

    float *d_u, *d_next, *d_source;
    cudaMalloc(&d_u, bytes);
    cudaMalloc(&d_next, bytes);
    cudaMalloc(&d_source, bytes);
    cudaMemcpy(d_u, u.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_source, source.data(), bytes, cudaMemcpyHostToDevice);

    dim3 grid((n + TILE_X - 1) / TILE_X, (n + TILE_Y - 1) / TILE_Y);
    for (int step = 0; step < STEPS; step += DEPTH) {
        jacobi_steps<<<grid, WARPS * 32>>>(d_u, d_source, d_next);
        std::swap(d_u, d_next);
    }

    cudaMemcpy(u.data(), d_u, bytes, cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) {
        fprintf(stderr, "launch failed\n");
        return 1;
    }
    double sum = 0.0, squares = 0.0, weighted = 0.0;
    for (int i = 0; i < n * n; i++) {
        sum += u[i];
        squares += (double)u[i] * u[i];
        weighted += (double)u[i] * (1 + i % 19 + i / n);
    }
    printf("sum %.6e\nsquares %.6e\nweighted %.6e\n", sum, squares, weighted);
    cudaFree(d_u);
    cudaFree(d_next);
    cudaFree(d_source);
    return 0;
}
