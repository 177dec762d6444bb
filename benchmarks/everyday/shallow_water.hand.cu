// 2D shallow water equations, first order finite volumes with Rusanov fluxes,
// reflecting walls, time step from the CFL condition.
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

struct Cell { float h, hu, hv; };

const float GRAVITY = 9.81f;
const float CFL     = 0.4f;
const int   STEPS   = 20;

__host__ __device__ inline int cellIndex(int x, int y, int nx) { return y * nx + x; }

// Rusanov flux through a face with normal +x, a on the left, b on the right
__device__ __forceinline__ Cell fluxX(Cell a, Cell b)
{
    float ua = a.hu / a.h, ub = b.hu / b.h;
    float s = fmaxf(fabsf(ua) + sqrtf(GRAVITY * a.h), fabsf(ub) + sqrtf(GRAVITY * b.h));
    Cell f;
    f.h  = 0.5f * (a.hu + b.hu) - 0.5f * s * (b.h - a.h);
    f.hu = 0.5f * (a.hu * ua + 0.5f * GRAVITY * a.h * a.h + b.hu * ub + 0.5f * GRAVITY * b.h * b.h)
         - 0.5f * s * (b.hu - a.hu);
    f.hv = 0.5f * (a.hv * ua + b.hv * ub) - 0.5f * s * (b.hv - a.hv);
    return f;
}

// same for a face with normal +y: swap the momenta
__device__ __forceinline__ Cell fluxY(Cell a, Cell b)
{
    Cell ta = {a.h, a.hv, a.hu};
    Cell tb = {b.h, b.hv, b.hu};
    Cell t = fluxX(ta, tb);
    Cell f = {t.h, t.hv, t.hu};
    return f;
}

__device__ __forceinline__ float signalSpeed(Cell c)
{
    return fmaxf(fabsf(c.hu), fabsf(c.hv)) / c.h + sqrtf(GRAVITY * c.h);
}

const int TX = 32, TY = 8, THREADS = TX * TY;
const int ROW = (TX + 2) * 3;            // floats of one tile row with its two ghost cells

// Block maximum of positive floats (bit patterns are ordered like integers), one atomic per block.
__device__ __forceinline__ void blockMaxSpeed(float v, int* target)
{
    __shared__ int warpMax[THREADS / 32];
    const int tid = threadIdx.y * blockDim.x + threadIdx.x;
    const int m = __reduce_max_sync(0xffffffffu, __float_as_int(v));
    if ((tid & 31) == 0) warpMax[tid >> 5] = m;
    __syncthreads();
    if (tid == 0) {
        int r = warpMax[0];
        #pragma unroll
        for (int w = 1; w < THREADS / 32; ++w) r = max(r, warpMax[w]);
        atomicMax(target, r);
    }
}

// only for the initial state; later speeds come out of step()
__global__ void __launch_bounds__(THREADS) maxSpeed(const Cell* __restrict__ c, int* speed, int n)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    blockMaxSpeed(i < n ? signalSpeed(c[i]) : 0.0f, speed);
}

// One 32x8 tile per block.  Cells (AoS, 3 words: conflict free) and face fluxes go through shared
// memory, so that each face is evaluated once per tile and global accesses are contiguous.
__global__ void __launch_bounds__(THREADS)
step(const Cell* __restrict__ in, Cell* __restrict__ out, const int* __restrict__ speed,
     int* __restrict__ nextSpeed, float* time, float dx, int nx, int ny)
{
    __shared__ float s[(TY + 2) * ROW];
    __shared__ Cell fx[TY][TX + 1];
    __shared__ Cell fy[TY + 1][TX];
    const int tx = threadIdx.x, ty = threadIdx.y, tid = ty * TX + tx;
    const int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY;
    const float* gin = reinterpret_cast<const float*>(in);

    for (int e = tid; e < (TY + 2) * ROW; e += THREADS) {
        const int row = e / ROW, f = e - row * ROW, comp = f % 3;
        const int gx = x0 - 1 + f / 3, gy = y0 - 1 + row;
        const int cx = min(max(gx, 0), nx - 1), cy = min(max(gy, 0), ny - 1);
        float v = gin[3 * cellIndex(cx, cy, nx) + comp];
        if (cx != gx && comp == 1) v = -v;       // mirror image at the walls
        if (cy != gy && comp == 2) v = -v;
        s[e] = v;
    }
    __syncthreads();

    // tile coordinates (-1..TX, -1..TY)
    auto cell = [&](int x, int y) {
        const float* p = &s[(y + 1) * ROW + (x + 1) * 3];
        return Cell{p[0], p[1], p[2]};
    };
    Cell c = cell(tx, ty);
    fx[ty][tx] = fluxX(cell(tx - 1, ty), c);
    fy[ty][tx] = fluxY(cell(tx, ty - 1), c);
    if (tid < TX)           fy[TY][tid] = fluxY(cell(tid, TY - 1), cell(tid, TY));
    else if (tid < TX + TY) fx[tid - TX][TX] = fluxX(cell(TX - 1, tid - TX), cell(TX, tid - TX));
    __syncthreads();

    const float dt = CFL * dx / __int_as_float(*speed);
    const float k = dt / dx;
    const Cell west = fx[ty][tx], east = fx[ty][tx + 1], north = fy[ty][tx], south = fy[ty + 1][tx];
    c.h  -= k * (east.h  - west.h  + south.h  - north.h);
    c.hu -= k * (east.hu - west.hu + south.hu - north.hu);
    c.hv -= k * (east.hv - west.hv + south.hv - north.hv);
    {
        float* p = &s[(ty + 1) * ROW + (tx + 1) * 3];
        p[0] = c.h;
        p[1] = c.hu;
        p[2] = c.hv;
    }
    const bool inside = x0 + tx < nx && y0 + ty < ny;
    blockMaxSpeed(inside ? signalSpeed(c) : 0.0f, nextSpeed);      // synchronises the block

    float* gout = reinterpret_cast<float*>(out);
    const int width = 3 * min(TX, nx - x0);
    if (y0 + ty < ny) {
        #pragma unroll
        for (int p = 0; p < 3; ++p) {
            const int f = tx + p * TX;
            if (f < width) gout[3 * cellIndex(x0, y0 + ty, nx) + f] = s[(ty + 1) * ROW + 3 + f];
        }
    }
    if (x0 + tx == 0 && y0 + ty == 0) *time += dt;
}

int main()
{
    const int nx = 1000, ny = 700, n = nx * ny;
    const float dx = 10.0f;

    std::vector<Cell> cells(n);
    for (int y = 0; y < ny; ++y)
        for (int x = 0; x < nx; ++x) {
            Cell& c = cells[cellIndex(x, y, nx)];
            int ddx = x - 300, ddy = y - 250;
            c.h = 2.0f;
            if (ddx * ddx + ddy * ddy < 120 * 120) c.h = 3.5f;       // round dam
            if (x > 800 && y > 500) c.h = 1.2f;                       // shallow corner
            c.hu = 0.3f * c.h * (float)((x / 25) % 3 - 0.6);
            c.hv = 0.2f * c.h * (float)((y / 40) % 2 - 0.3);
        }

    Cell *a, *b;
    int* speed;
    float* time;
    cudaMalloc(&a, n * sizeof(Cell));
    cudaMalloc(&b, n * sizeof(Cell));
    cudaMalloc(&speed, (STEPS + 1) * sizeof(int));     // one slot per step
    cudaMalloc(&time, sizeof(float));
    cudaMemcpy(a, cells.data(), n * sizeof(Cell), cudaMemcpyHostToDevice);
    cudaMemset(time, 0, sizeof(float));
    cudaMemset(speed, 0, (STEPS + 1) * sizeof(int));

    dim3 block(TX, TY);
    dim3 grid((nx + TX - 1) / TX, (ny + TY - 1) / TY);
    maxSpeed<<<(n + THREADS - 1) / THREADS, THREADS>>>(a, speed, n);
    for (int s = 0; s < STEPS; ++s) {
        step<<<grid, block>>>(a, b, speed + s, speed + s + 1, time, dx, nx, ny);
        std::swap(a, b);
    }

    float timeHost = 0;
    cudaMemcpy(cells.data(), a, n * sizeof(Cell), cudaMemcpyDeviceToHost);
    cudaMemcpy(&timeHost, time, sizeof(float), cudaMemcpyDeviceToHost);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));

    double mass = 0, momentum = 0, energy = 0, weighted = 0, highest = 0;
    for (int i = 0; i < n; ++i) {
        const Cell& c = cells[i];
        mass += c.h;
        momentum += std::fabs(c.hu) + 2.0 * std::fabs(c.hv);
        energy += 0.5 * ((double)c.hu * c.hu + (double)c.hv * c.hv) / c.h + 0.5 * GRAVITY * c.h * c.h;
        weighted += c.h * (i % 9) + c.hu * (i % 4);
        if (c.h > highest) highest = c.h;
    }
    printf("time %.2f mass %.3e momentum %.3e energy %.3e weighted %.3e highest %.3f\n",
           timeHost, mass, momentum, energy, weighted, highest);

    cudaFree(a);
    cudaFree(b);
    cudaFree(speed);
    cudaFree(time);
    return 0;
}
