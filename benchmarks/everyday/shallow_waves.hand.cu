// Two-dimensional shallow-water equations over a bumpy bed in a closed basin.
// Finite volumes, Rusanov fluxes (surface-elevation form for the mass equation),
// bed slope, Manning friction, and a time step taken from the CFL condition.
//
// Hand-tuned version: one kernel per step (fluxes, sources, update and the maximum
// for the next time step), the time step never leaves the device.
// Estimated kernel time on an H200: about 0.75 ms for all 60 steps.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                          \
    do {                                                                          \
        cudaError_t err_ = (call);                                                \
        if (err_ != cudaSuccess) {                                                \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,               \
                         cudaGetErrorString(err_));                               \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

constexpr int kNx = 1500;
constexpr int kNy = 1100;
constexpr int kSteps = 60;
constexpr float kDx = 1.0f;
constexpr float kCfl = 0.4f;
constexpr float kGravity = 9.81f;
constexpr float kManning = 0.03f;

constexpr unsigned kFull = 0xffffffffu;
constexpr int kThreads = 128;
constexpr int kColumns = 30;                          // outputs of a warp; lanes 0 and 31 are halo
constexpr int kRows = 14;                             // rows a warp marches over
constexpr int kStripsX = (kNx + kColumns - 1) / kColumns;
constexpr int kStripsY = (kNy + kRows - 1) / kRows;
constexpr int kBlocks = (kStripsX * kStripsY * 32 + kThreads - 1) / kThreads;

struct Fields {
    float *h, *hu, *hv;
};

struct Raw {
    float h, hu, hv, bed;
};

// a cell with everything the fluxes need, computed once per cell
struct Cell {
    float h, hu, hv, bed;
    float surface;          // h + bed
    float u, v;
    float pressure;         // g h^2 / 2
    float c;                // sqrt(g h)
};

struct Flux {
    float mass, hu, hv;
};

__device__ __forceinline__ float fast_sqrt(float x) { return x * rsqrtf(x); }   // x > 0 here

__device__ __forceinline__ Raw load(const Fields& f, const float* __restrict__ bed, int xc, int y, bool flip)
{
    const int yc = min(max(y, 0), kNy - 1);
    const int k = yc * kNx + xc;
    Raw r;
    r.h = __ldg(f.h + k);
    r.hu = __ldg(f.hu + k);
    r.hv = __ldg(f.hv + k);
    r.bed = __ldg(bed + k);
    if (flip) r.hu = -r.hu;                           // ghost cells behind a wall mirror the flow
    if (y != yc) r.hv = -r.hv;
    return r;
}

__device__ __forceinline__ Cell derive(const Raw& r)
{
    Cell c;
    c.h = r.h;
    c.hu = r.hu;
    c.hv = r.hv;
    c.bed = r.bed;
    c.surface = r.h + r.bed;
    const float inv_h = __fdividef(1.0f, r.h);
    c.u = r.hu * inv_h;
    c.v = r.hv * inv_h;
    c.pressure = 0.5f * kGravity * r.h * r.h;
    c.c = fast_sqrt(kGravity * r.h);
    return c;
}

// Rusanov flux through the face between this lane's left neighbour and its own cell
__device__ __forceinline__ Flux left_flux(const Cell& c)
{
    const float f_normal = fmaf(c.hu, c.u, c.pressure);
    const float f_tangential = c.hv * c.u;
    const float speed = fabsf(c.u) + c.c;
    const float l_hu = __shfl_up_sync(kFull, c.hu, 1);
    const float l_hv = __shfl_up_sync(kFull, c.hv, 1);
    const float l_surface = __shfl_up_sync(kFull, c.surface, 1);
    const float l_normal = __shfl_up_sync(kFull, f_normal, 1);
    const float l_tangential = __shfl_up_sync(kFull, f_tangential, 1);
    const float l_speed = __shfl_up_sync(kFull, speed, 1);
    const float s = 0.5f * fmaxf(speed, l_speed);
    Flux f;
    f.mass = 0.5f * (l_hu + c.hu) - s * (c.surface - l_surface);
    f.hu = 0.5f * (l_normal + f_normal) - s * (c.hu - l_hu);
    f.hv = 0.5f * (l_tangential + f_tangential) - s * (c.hv - l_hv);
    return f;
}

__device__ __forceinline__ Flux upper_flux(const Cell& a, const Cell& b)
{
    const float s = 0.5f * fmaxf(fabsf(a.v) + a.c, fabsf(b.v) + b.c);
    Flux f;
    f.mass = 0.5f * (a.hv + b.hv) - s * (b.surface - a.surface);
    f.hv = 0.5f * (fmaf(a.hv, a.v, a.pressure) + fmaf(b.hv, b.v, b.pressure)) - s * (b.hv - a.hv);
    f.hu = 0.5f * (a.hu * a.v + b.hu * b.v) - s * (b.hu - a.hu);
    return f;
}

__device__ __forceinline__ void publish_speed(float speed, int* result)
{
    __shared__ float part[kThreads / 32];
#pragma unroll
    for (int d = 16; d > 0; d /= 2) speed = fmaxf(speed, __shfl_xor_sync(kFull, speed, d));
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = speed;
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll
        for (int w = 1; w < kThreads / 32; ++w) speed = fmaxf(speed, part[w]);
        atomicMax(result, __float_as_int(speed));     // speeds are positive
    }
}

// only for the first step; later the step kernel itself delivers the maximum
__global__ void __launch_bounds__(kThreads) initial_speed(Fields f, int* __restrict__ result)
{
    float speed = 0.0f;
    for (int k = blockIdx.x * kThreads + threadIdx.x; k < kNx * kNy; k += gridDim.x * kThreads) {
        const float h = f.h[k];
        speed = fmaxf(speed, __fdividef(fmaxf(fabsf(f.hu[k]), fabsf(f.hv[k])), h) + fast_sqrt(kGravity * h));
    }
    publish_speed(speed, result);
}

// One whole time step.  A warp owns 30 columns and marches upwards; x-neighbours come
// by shuffles, y-neighbours stay in registers.
__global__ void __launch_bounds__(kThreads, 8)
advance(Fields in, Fields out, const float* __restrict__ bed, const int* __restrict__ speed_now,
        int* __restrict__ speed_next)
{
    const int lane = threadIdx.x & 31;
    const int strip = blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5);
    float fastest = 0.0f;

    if (strip < kStripsX * kStripsY) {
        const float dt = kCfl * kDx / __int_as_float(*speed_now);
        const float r = dt / kDx;
        const int x = (strip % kStripsX) * kColumns + lane - 1;
        const int y0 = (strip / kStripsX) * kRows;
        const int y1 = min(y0 + kRows, kNy);
        const int xc = min(max(x, 0), kNx - 1);
        const bool flip = x != xc;
        const bool writes = lane >= 1 && lane <= kColumns && x < kNx;

        const Cell below = derive(load(in, bed, xc, y0 - 1, flip));
        Cell cell = derive(load(in, bed, xc, y0, flip));
        Raw ahead = load(in, bed, xc, y0 + 1, flip);
        Flux lower = upper_flux(below, cell);
        float bed_below = below.bed;

        for (int y = y0; y < y1; ++y) {
            const Cell next = derive(ahead);
            if (y + 1 < y1) ahead = load(in, bed, xc, y + 2, flip);

            const Flux left = left_flux(cell);
            Flux right;
            right.mass = __shfl_down_sync(kFull, left.mass, 1);
            right.hu = __shfl_down_sync(kFull, left.hu, 1);
            right.hv = __shfl_down_sync(kFull, left.hv, 1);
            const float bed_left = __shfl_up_sync(kFull, cell.bed, 1);
            const float bed_right = __shfl_down_sync(kFull, cell.bed, 1);
            const Flux upper = upper_flux(cell, next);

            const float weight = 0.5f / kDx * dt * kGravity * cell.h;
            const float h = cell.h - r * (right.mass - left.mass + upper.mass - lower.mass);
            float hu = cell.hu - r * (right.hu - left.hu + upper.hu - lower.hu) - weight * (bed_right - bed_left);
            float hv = cell.hv - r * (right.hv - left.hv + upper.hv - lower.hv) - weight * (next.bed - bed_below);

            if (writes) {
                const float inv_h = __fdividef(1.0f, h);
                const float u = hu * inv_h, v = hv * inv_h;
                const float v2 = u * u + v * v;
                const float magnitude = v2 > 0.0f ? fast_sqrt(v2) : 0.0f;
                const float power = exp2f(-4.0f / 3.0f * __log2f(h));          // h^(-4/3)
                const float damp = __fdividef(1.0f, 1.0f + dt * kGravity * kManning * kManning * magnitude * power);
                hu *= damp;
                hv *= damp;
                const int k = y * kNx + x;
                out.h[k] = h;
                out.hu[k] = hu;
                out.hv[k] = hv;
                fastest = fmaxf(fastest, fmaxf(fabsf(u), fabsf(v)) * damp + fast_sqrt(kGravity * h));
            }
            bed_below = cell.bed;
            cell = next;
            lower = upper;
        }
    }
    publish_speed(fastest, speed_next);
}

static void initial_state(std::vector<float>& h, std::vector<float>& hu, std::vector<float>& hv,
                          std::vector<float>& bed)
{
    auto bump = [](float x, float y, float cx, float cy, float width) {
        float d2 = (x - cx) * (x - cx) + (y - cy) * (y - cy);
        return std::exp(-d2 / (width * width));
    };
    for (int j = 0; j < kNy; ++j)
        for (int i = 0; i < kNx; ++i) {
            size_t k = (size_t)j * kNx + i;
            float x = (i + 0.5f) / kNx, y = (j + 0.5f) / kNy;
            bed[k] = 0.9f * bump(x, y, 0.55f, 0.45f, 0.15f) + 0.4f * x * y;
            float surface = 4.0f + 1.6f * bump(x, y, 0.30f, 0.60f, 0.06f) + 1.1f * bump(x, y, 0.75f, 0.30f, 0.04f);
            h[k] = surface - bed[k];
            hu[k] = 0.5f * h[k] * (1.0f - y);
            hv[k] = 0.2f * h[k] * x;
        }
}

int main()
{
    const size_t n = (size_t)kNx * kNy;
    const size_t bytes = n * sizeof(float);
    std::vector<float> h(n), hu(n), hv(n), bed(n);
    initial_state(h, hu, hv, bed);

    Fields fields[2];
    for (Fields& f : fields) {
        CUDA_CHECK(cudaMalloc(&f.h, bytes));
        CUDA_CHECK(cudaMalloc(&f.hu, bytes));
        CUDA_CHECK(cudaMalloc(&f.hv, bytes));
    }
    float* d_bed;
    int* d_speed;                                     // one entry per step
    CUDA_CHECK(cudaMalloc(&d_bed, bytes));
    CUDA_CHECK(cudaMalloc(&d_speed, (kSteps + 1) * sizeof(int)));
    CUDA_CHECK(cudaMemcpy(fields[0].h, h.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(fields[0].hu, hu.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(fields[0].hv, hv.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_bed, bed.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_speed, 0, (kSteps + 1) * sizeof(int)));

    initial_speed<<<1024, kThreads>>>(fields[0], d_speed);
    for (int step = 0; step < kSteps; ++step)
        advance<<<kBlocks, kThreads>>>(fields[step % 2], fields[(step + 1) % 2], d_bed, d_speed + step,
                                       d_speed + step + 1);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    const Fields& last = fields[kSteps % 2];
    std::vector<float> speed(kSteps + 1);
    CUDA_CHECK(cudaMemcpy(h.data(), last.h, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(hu.data(), last.hu, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(hv.data(), last.hv, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(speed.data(), d_speed, speed.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double time = 0.0;
    for (int step = 0; step < kSteps; ++step) time += kCfl * kDx / speed[step];

    double volume = 0.0, kinetic = 0.0, deepest = 0.0;
    for (size_t k = 0; k < n; ++k) {
        volume += h[k];
        kinetic += 0.5 * ((double)hu[k] * hu[k] + (double)hv[k] * hv[k]) / h[k];
        if (h[k] > deepest) deepest = h[k];
    }
    auto at = [](int i, int j) { return (size_t)j * kNx + i; };
    std::printf("simulated time    %.6g\n", time);
    std::printf("volume            %.6g\n", volume);
    std::printf("kinetic energy    %.6g\n", kinetic);
    std::printf("deepest water     %.6g\n", deepest);
    std::printf("h near hump       %.6g\n", h[at(460, 655)]);
    std::printf("hu near hump      %.6g\n", hu[at(510, 640)]);
    std::printf("hv at wall        %.6g\n", hv[at(1490, 800)]);

    for (Fields& f : fields) {
        CUDA_CHECK(cudaFree(f.h));
        CUDA_CHECK(cudaFree(f.hu));
        CUDA_CHECK(cudaFree(f.hv));
    }
    CUDA_CHECK(cudaFree(d_bed));
    CUDA_CHECK(cudaFree(d_speed));
    return 0;
}
