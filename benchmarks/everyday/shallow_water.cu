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

// state at (x,y); outside of the basin the mirror image of the wall cell
__device__ Cell getCell(const Cell* c, int x, int y, int nx, int ny)
{
    Cell r;
    if (x < 0)        { r = c[cellIndex(0, y, nx)];      r.hu = -r.hu; }
    else if (x >= nx) { r = c[cellIndex(nx - 1, y, nx)]; r.hu = -r.hu; }
    else if (y < 0)   { r = c[cellIndex(x, 0, nx)];      r.hv = -r.hv; }
    else if (y >= ny) { r = c[cellIndex(x, ny - 1, nx)]; r.hv = -r.hv; }
    else                r = c[cellIndex(x, y, nx)];
    return r;
}

// Rusanov flux through a face with normal +x, a on the left, b on the right
__device__ Cell fluxX(Cell a, Cell b)
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
__device__ Cell fluxY(Cell a, Cell b)
{
    Cell ta = {a.h, a.hv, a.hu};
    Cell tb = {b.h, b.hv, b.hu};
    Cell t = fluxX(ta, tb);
    Cell f = {t.h, t.hv, t.hu};
    return f;
}

__device__ float signalSpeed(Cell c)
{
    return fmaxf(fabsf(c.hu), fabsf(c.hv)) / c.h + sqrtf(GRAVITY * c.h);
}

// speeds are positive, so their bit patterns are ordered like integers
__global__ void maxSpeed(const Cell* c, int* speed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicMax(speed, __float_as_int(signalSpeed(c[i])));
}

__global__ void step(const Cell* in, Cell* out, const int* speed, float* time, float dx, int nx, int ny)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;

    float dt = CFL * dx / __int_as_float(*speed);

    Cell c = getCell(in, x, y, nx, ny);
    Cell west  = fluxX(getCell(in, x - 1, y, nx, ny), c);
    Cell east  = fluxX(c, getCell(in, x + 1, y, nx, ny));
    Cell north = fluxY(getCell(in, x, y - 1, nx, ny), c);
    Cell south = fluxY(c, getCell(in, x, y + 1, nx, ny));

    float k = dt / dx;
    c.h  -= k * (east.h  - west.h  + south.h  - north.h);
    c.hu -= k * (east.hu - west.hu + south.hu - north.hu);
    c.hv -= k * (east.hv - west.hv + south.hv - north.hv);
    out[cellIndex(x, y, nx)] = c;

    if (x == 0 && y == 0) *time += dt;
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
    cudaMalloc(&speed, sizeof(int));
    cudaMalloc(&time, sizeof(float));
    cudaMemcpy(a, cells.data(), n * sizeof(Cell), cudaMemcpyHostToDevice);
    cudaMemset(time, 0, sizeof(float));

    dim3 block(16, 16);
    dim3 grid((nx + 15) / 16, (ny + 15) / 16);
    for (int s = 0; s < STEPS; ++s) {
        cudaMemset(speed, 0, sizeof(int));
        maxSpeed<<<(n + 255) / 256, 256>>>(a, speed, n);
        step<<<grid, block>>>(a, b, speed, time, dx, nx, ny);
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
