// Two-dimensional incompressible flow with buoyant smoke ("stable fluids"), double precision.
// Each time step: semi-Lagrangian advection, buoyancy, divergence, Jacobi pressure iterations, projection.
// Tuned for H200 (sm_90), 5 launches per step instead of 26:
//  * advection of the three fields and buoyancy are one kernel;
//  * the Jacobi iterations are blocked in time: a block keeps a 64 x 80 tile of p and div (with a halo of 6
//    cells) in registers and does 5 iterations per launch. A lane holds 2 columns x 8 rows; left and right
//    neighbours come by shuffle, only the edge rows of each warp's strip go through shared memory.
//    The outer ring of the tile loses one valid cell per iteration; 52 x 68 cells are written back.
//  * the first of the four launches computes the divergence, the last one does the projection.
// Fields have an even row pitch so that all row accesses are aligned 128-bit ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(expr)                                                              \
    if (cudaError_t status = (expr); status != cudaSuccess) {                         \
        printf("CUDA failure at line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
        exit(EXIT_FAILURE);                                                           \
    }

constexpr int NX = 1111;
constexpr int NY = 777;
constexpr int STEPS = 8;
constexpr int JACOBI_ITERATIONS = 20;
constexpr double DT = 0.8;
constexpr double BUOYANCY = 0.05;

constexpr int PITCH = 1112;                    // doubles per row
constexpr int SWEEPS = 5;                      // Jacobi iterations per launch
constexpr int HALO = SWEEPS + 1;               // one more for the pressure gradient
constexpr int ROWS = 8;                        // rows per warp
constexpr int WARPS = 10;
constexpr int TILE_X = 64, TILE_Y = WARPS * ROWS;
constexpr int OUT_X = TILE_X - 2 * HALO, OUT_Y = TILE_Y - 2 * HALO;

static_assert(JACOBI_ITERATIONS % (2 * SWEEPS) == 0, "p must end in its own buffer");
static_assert(HALO % 2 == 0 && OUT_X % 2 == 0 && PITCH % 2 == 0 && PITCH >= NX, "128-bit accesses");

// ---------------------------------------------------------------- advection + buoyancy

constexpr int ADVECT_X = 32, ADVECT_Y = 8;

__global__ void __launch_bounds__(ADVECT_X * ADVECT_Y)
advect_kernel(const double *__restrict__ u, const double *__restrict__ v, const double *__restrict__ smoke,
              double *__restrict__ u2, double *__restrict__ v2, double *__restrict__ smoke2)
{
    const int i = blockIdx.x * ADVECT_X + threadIdx.x;
    const int j = blockIdx.y * ADVECT_Y + threadIdx.y;
    if (i >= NX || j >= NY) return;
    const int c = j * PITCH + i;

    const double x = fmin(fmax(i - DT * u[c], 0.0), NX - 1.0);
    const double y = fmin(fmax(j - DT * v[c], 0.0), NY - 1.0);
    const int xi = (int)x, yi = (int)y;
    const double fx = x - xi, fy = y - yi;
    const int a0 = yi * PITCH + xi;
    const int dx = xi < NX - 1 ? 1 : 0;
    const int a1 = a0 + (yi < NY - 1 ? PITCH : 0);
    const double gx = 1.0 - fx, gy = 1.0 - fy;

    const double un = gy * (gx * u[a0] + fx * u[a0 + dx]) + fy * (gx * u[a1] + fx * u[a1 + dx]);
    const double vn = gy * (gx * v[a0] + fx * v[a0 + dx]) + fy * (gx * v[a1] + fx * v[a1 + dx]);
    const double sn = gy * (gx * smoke[a0] + fx * smoke[a0 + dx]) + fy * (gx * smoke[a1] + fx * smoke[a1 + dx]);
    u2[c] = un;
    v2[c] = vn + DT * BUOYANCY * sn;
    smoke2[c] = sn;
}

// ---------------------------------------------------------------- pressure

__device__ __forceinline__ double2 load2(const double *f, int row, int col)
{
    return *reinterpret_cast<const double2 *>(f + row * PITCH + col);
}

__device__ __forceinline__ void store2(double *f, int row, int col, double2 val, bool both)
{
    double *dst = f + row * PITCH + col;
    if (both)
        *reinterpret_cast<double2 *>(dst) = val;
    else
        *dst = val.x;
}

struct Edges {
    bool left, right0, right1;                 // column 0 / the first / the second column is at the wall
};

// left and right neighbours of both columns of a lane, clamped at the walls
__device__ __forceinline__ void side_neighbours(double2 c, const Edges &e, double2 &left, double2 &right)
{
    const double l = __shfl_up_sync(0xffffffffu, c.y, 1);
    const double r = __shfl_down_sync(0xffffffffu, c.x, 1);
    left = make_double2(e.left ? c.x : l, c.x);
    right = make_double2(e.right0 ? c.x : c.y, e.right1 ? c.y : r);
}

// FIRST: compute div from (u, v) and store it; LAST: subtract the pressure gradient from (u, v) in place.
// (Only the FIRST launch reads the velocity of foreign cells, only the LAST writes it.)
template <bool FIRST, bool LAST>
__global__ void __launch_bounds__(WARPS * 32, 2)
pressure_kernel(const double *__restrict__ p_in, double *__restrict__ p_out, double *div, double *u, double *v)
{
    __shared__ double2 edge[2][2][WARPS][32];  // [buffer][bottom / top row of the strip][warp][lane]

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int gx = blockIdx.x * OUT_X - HALO + 2 * lane;       // even
    const int gy0 = blockIdx.y * OUT_Y - HALO + warp * ROWS;
    const bool col_ok = gx >= 0 && gx < NX;
    const Edges e = {gx == 0, gx == NX - 1, gx + 1 == NX - 1};

    double2 p[ROWS], d[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int y = gy0 + r;
        const bool ok = col_ok && y >= 0 && y < NY;
        p[r] = ok ? load2(p_in, y, gx) : make_double2(0.0, 0.0);
        if (!FIRST) d[r] = ok ? load2(div, y, gx) : make_double2(0.0, 0.0);
    }

    // the cells this thread writes back
    const int tile_x = 2 * lane;
    const bool out_col = tile_x >= HALO && tile_x < TILE_X - HALO && gx < NX;
    const bool both = gx + 1 < NX;

    if (FIRST) {
        double2 below = make_double2(0.0, 0.0), here = below;
        if (col_ok) {
            below = load2(v, min(max(gy0 - 1, 0), NY - 1), gx);
            here = load2(v, min(max(gy0, 0), NY - 1), gx);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int y = gy0 + r;
            const int yc = min(max(y, 0), NY - 1);
            double2 above = make_double2(0.0, 0.0), uc = above, left, right;
            if (col_ok) {
                above = load2(v, min(max(y + 1, 0), NY - 1), gx);
                uc = load2(u, yc, gx);
            }
            side_neighbours(uc, e, left, right);
            d[r].x = 0.5 * (right.x - left.x + above.x - below.x);
            d[r].y = 0.5 * (right.y - left.y + above.y - below.y);
            below = here;
            here = above;
            const int tile_y = warp * ROWS + r;
            if (out_col && tile_y >= HALO && tile_y < TILE_Y - HALO && y < NY)
                store2(div, y, gx, d[r], both);
        }
    }

#pragma unroll
    for (int s = 0; s < SWEEPS; s++) {
        edge[s & 1][0][warp][lane] = p[0];
        edge[s & 1][1][warp][lane] = p[ROWS - 1];
        __syncthreads();
        double2 below = warp > 0 ? edge[s & 1][1][warp - 1][lane] : p[0];
        const double2 beyond = warp < WARPS - 1 ? edge[s & 1][0][warp + 1][lane] : p[ROWS - 1];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int y = gy0 + r;
            const double2 c = p[r];
            double2 lo = below, hi = r < ROWS - 1 ? p[r < ROWS - 1 ? r + 1 : r] : beyond;
            if (y == 0) lo = c;
            if (y == NY - 1) hi = c;
            double2 left, right;
            side_neighbours(c, e, left, right);
            p[r].x = 0.25 * (left.x + right.x + lo.x + hi.x - d[r].x);
            p[r].y = 0.25 * (left.y + right.y + lo.y + hi.y - d[r].y);
            below = c;
        }
    }

    if (LAST) {
        edge[SWEEPS & 1][0][warp][lane] = p[0];
        edge[SWEEPS & 1][1][warp][lane] = p[ROWS - 1];
        __syncthreads();
    }
    double2 below = p[0], beyond = p[0];
    if (LAST) {
        if (warp > 0) below = edge[SWEEPS & 1][1][warp - 1][lane];
        if (warp < WARPS - 1) beyond = edge[SWEEPS & 1][0][warp + 1][lane];
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int y = gy0 + r;
        const int tile_y = warp * ROWS + r;
        const bool out = out_col && tile_y >= HALO && tile_y < TILE_Y - HALO && y < NY;
        if (LAST) {
            double2 left, right;
            side_neighbours(p[r], e, left, right);             // all lanes take part
            if (out) {
                const double2 hi = r < ROWS - 1 ? p[r < ROWS - 1 ? r + 1 : r] : beyond;
                double2 un = load2(u, y, gx), vn = load2(v, y, gx);
                un.x -= 0.5 * (right.x - left.x);
                un.y -= 0.5 * (right.y - left.y);
                vn.x -= 0.5 * (hi.x - below.x);
                vn.y -= 0.5 * (hi.y - below.y);
                const bool wall_row = y == 0 || y == NY - 1;
                if (wall_row || e.left || e.right0) un.x = vn.x = 0.0;
                if (wall_row || e.right1) un.y = vn.y = 0.0;
                store2(u, y, gx, un, both);
                store2(v, y, gx, vn, both);
            }
            below = p[r];
        }
        if (out) store2(p_out, y, gx, p[r], both);
    }
}

static uint64_t lcg_state = 88172645463325252ULL;
static double lcg()                                            // [0, 1)
{
    lcg_state = lcg_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(lcg_state >> 11) * (1.0 / 9007199254740992.0);
}

static double *device_field()
{
    double *f;
    CUDA_CHECK(cudaMalloc(&f, (size_t)PITCH * NY * sizeof(double)));
    CUDA_CHECK(cudaMemset(f, 0, (size_t)PITCH * NY * sizeof(double)));
    return f;
}

static void upload(double *dst, const std::vector<double> &src)
{
    CUDA_CHECK(cudaMemcpy2D(dst, PITCH * sizeof(double), src.data(), NX * sizeof(double), NX * sizeof(double), NY,
                            cudaMemcpyHostToDevice));
}

static void download(std::vector<double> &dst, const double *src)
{
    CUDA_CHECK(cudaMemcpy2D(dst.data(), NX * sizeof(double), src, PITCH * sizeof(double), NX * sizeof(double), NY,
                            cudaMemcpyDeviceToHost));
}

int main()
{
    const int cells = NX * NY;

    // a few vortices and smoke puffs at random places
    std::vector<double> u(cells, 0.0), v(cells, 0.0), smoke(cells, 0.0), p(cells, 0.0);
    for (int n = 0; n < 24; n++) {
        double cx = (0.1 + 0.8 * lcg()) * NX, cy = (0.1 + 0.8 * lcg()) * NY;
        double radius = 20.0 + 40.0 * lcg();
        double spin = (lcg() - 0.4) * 6.0 / radius;
        int j0 = std::max(1, (int)(cy - 2 * radius)), j1 = std::min(NY - 2, (int)(cy + 2 * radius));
        int i0 = std::max(1, (int)(cx - 2 * radius)), i1 = std::min(NX - 2, (int)(cx + 2 * radius));
        for (int j = j0; j <= j1; j++)
            for (int i = i0; i <= i1; i++) {
                double dx = i - cx, dy = j - cy;
                double s = 1.0 - (dx * dx + dy * dy) / (4.0 * radius * radius);
                if (s <= 0.0) continue;
                u[j * NX + i] -= spin * dy * s * s;
                v[j * NX + i] += spin * dx * s * s;
                smoke[j * NX + i] += s * s;
            }
    }

    double *d_u = device_field(), *d_v = device_field(), *d_smoke = device_field();
    double *d_u2 = device_field(), *d_v2 = device_field(), *d_smoke2 = device_field();
    double *d_p = device_field(), *d_p2 = device_field(), *d_div = device_field();
    upload(d_u, u);
    upload(d_v, v);
    upload(d_smoke, smoke);

    const dim3 ablock(ADVECT_X, ADVECT_Y);
    const dim3 agrid((NX + ADVECT_X - 1) / ADVECT_X, (NY + ADVECT_Y - 1) / ADVECT_Y);
    const int pblock = WARPS * 32;
    const dim3 pgrid((NX + OUT_X - 1) / OUT_X, (NY + OUT_Y - 1) / OUT_Y);
    const int launches = JACOBI_ITERATIONS / SWEEPS;
    for (int step = 0; step < STEPS; step++) {
        advect_kernel<<<agrid, ablock>>>(d_u, d_v, d_smoke, d_u2, d_v2, d_smoke2);
        std::swap(d_u, d_u2);
        std::swap(d_v, d_v2);
        std::swap(d_smoke, d_smoke2);
        pressure_kernel<true, false><<<pgrid, pblock>>>(d_p, d_p2, d_div, d_u, d_v);
        std::swap(d_p, d_p2);
        for (int l = 1; l < launches - 1; l++) {
            pressure_kernel<false, false><<<pgrid, pblock>>>(d_p, d_p2, d_div, d_u, d_v);
            std::swap(d_p, d_p2);
        }
        pressure_kernel<false, true><<<pgrid, pblock>>>(d_p, d_p2, d_div, d_u, d_v);
        std::swap(d_p, d_p2);
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    download(u, d_u);
    download(v, d_v);
    download(smoke, d_smoke);
    download(p, d_p);

    double kinetic = 0.0, top_speed = 0.0, smoke_sum = 0.0, smoke_max = 0.0, p_abs = 0.0, height = 0.0;
    for (int j = 0; j < NY; j++)
        for (int i = 0; i < NX; i++) {
            int c = j * NX + i;
            double e = u[c] * u[c] + v[c] * v[c];
            kinetic += 0.5 * e;
            top_speed = std::max(top_speed, std::sqrt(e));
            smoke_sum += smoke[c];
            smoke_max = std::max(smoke_max, smoke[c]);
            height += smoke[c] * j;
            p_abs += std::fabs(p[c]);
        }
    printf("kinetic energy   %.8e\n", kinetic);
    printf("top speed        %.8e\n", top_speed);
    printf("smoke            %.8e\n", smoke_sum);
    printf("smoke maximum    %.8e\n", smoke_max);
    printf("smoke height     %.8e\n", height / smoke_sum);
    printf("sum abs pressure %.8e\n", p_abs);
    for (int k = 1; k <= 6; k++) {                             // smoke and kinetic energy of vertical bands
        double s = 0.0, e = 0.0;
        for (int j = 0; j < NY; j++)
            for (int i = (k - 1) * NX / 6; i < k * NX / 6; i++) {
                s += smoke[j * NX + i];
                e += u[j * NX + i] * u[j * NX + i] + v[j * NX + i] * v[j * NX + i];
            }
        printf("band %.8e %.8e\n", s, e);
    }

    cudaFree(d_u); cudaFree(d_v); cudaFree(d_smoke);
    cudaFree(d_u2); cudaFree(d_v2); cudaFree(d_smoke2);
    cudaFree(d_p); cudaFree(d_p2); cudaFree(d_div);
    return 0;
}
