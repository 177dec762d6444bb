//--- common
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <utility>
#include <vector>
// steps of u <- CX*(west+east) + CY*(south+north) - CF*f on the interior of an nx x ny grid; border values are fixed
#define CX 0.3f
#define CY 0.2f
#define CF 0.0125f
//--- original
__global__ void jacobi_step(const float *u, const float *f, float *v, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny)
    return;
  int i = y * nx + x;
  if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1)
    v[i] = u[i];
  else
    v[i] = CX * (u[i - 1] + u[i + 1]) + CY * (u[i - nx] + u[i + nx]) - CF * f[i];
}

void run(float *u, const float *f, int nx, int ny, int steps) {
  if (nx <= 0 || ny <= 0 || steps <= 0)
    return;
  float *tmp;
  size_t bytes = (size_t)nx * ny * sizeof(float);
  cudaMalloc(&tmp, bytes);
  float *src = u, *dst = tmp;
  dim3 block(16, 16), grid((nx + 15) / 16, (ny + 15) / 16);
  for (int s = 0; s < steps; s++) {
    jacobi_step<<<grid, block>>>(src, f, dst, nx, ny);
    std::swap(src, dst);
  }
  if (src != u)
    cudaMemcpy(u, src, bytes, cudaMemcpyDeviceToDevice);
  cudaFree(tmp);
}
//--- float4-march-or-smem
constexpr int kRun = 8; // rows per thread in the marching kernel

// A thread owns 4 columns and slides down kRun rows with three float4 in registers; west/east neighbours come from the
// adjacent lanes, only the outermost lanes load them. Needs nx % 4 == 0.
__global__ void __launch_bounds__(128)
    march4(const float *__restrict__ u, const float *__restrict__ f, float *__restrict__ v, int nx, int ny) {
  const unsigned full = 0xffffffffu;
  const int lane = threadIdx.x;
  const int x = (blockIdx.x * 32 + lane) * 4;
  const int y0 = (blockIdx.y * blockDim.y + threadIdx.y) * kRun;
  if (y0 >= ny)
    return; // whole warp
  const int y1 = min(y0 + kRun, ny);
  const bool on = x < nx;
  const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
  auto row4 = [&](int y) {
    return on && y >= 0 && y < ny ? __ldg(reinterpret_cast<const float4 *>(u + (size_t)y * nx + x)) : zero;
  };
  float4 up = row4(y0 - 1), mid = row4(y0);
  for (int y = y0; y < y1; ++y) {
    const float4 down = row4(y + 1);
    float west = __shfl_up_sync(full, mid.w, 1), east = __shfl_down_sync(full, mid.x, 1);
    const size_t i = (size_t)y * nx + x;
    if (lane == 0 && on && x > 0)
      west = u[i - 1];
    if (lane == 31 && x + 4 < nx)
      east = u[i + 4];
    if (on) {
      float4 o = mid;
      if (y > 0 && y < ny - 1) {
        const float4 r = __ldg(reinterpret_cast<const float4 *>(f + i));
        if (x > 0)
          o.x = CX * (west + mid.y) + CY * (up.x + down.x) - CF * r.x;
        o.y = CX * (mid.x + mid.z) + CY * (up.y + down.y) - CF * r.y;
        o.z = CX * (mid.y + mid.w) + CY * (up.z + down.z) - CF * r.z;
        if (x + 4 < nx)
          o.w = CX * (mid.z + east) + CY * (up.w + down.w) - CF * r.w;
      }
      *reinterpret_cast<float4 *>(v + i) = o;
    }
    up = mid;
    mid = down;
  }
}

constexpr int kBx = 32, kBy = 8;
__global__ void smem_step(const float *__restrict__ u, const float *__restrict__ f, float *__restrict__ v, int nx,
                          int ny) {
  __shared__ float t[kBy + 2][kBx + 2];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int bx = blockIdx.x * kBx, by = blockIdx.y * kBy;
  const int x = bx + tx, y = by + ty, i = y * nx + x;
  const bool inner = bx > 0 && by > 0 && bx + kBx < nx && by + kBy < ny;
  if (inner) {
    t[ty + 1][tx + 1] = u[i];
    if (ty == 0)
      t[0][tx + 1] = u[i - nx];
    if (ty == kBy - 1)
      t[kBy + 1][tx + 1] = u[i + nx];
    if (tx == 0)
      t[ty + 1][0] = u[i - 1];
    if (tx == kBx - 1)
      t[ty + 1][kBx + 1] = u[i + 1];
    __syncthreads();
    v[i] = CX * (t[ty + 1][tx] + t[ty + 1][tx + 2]) + CY * (t[ty][tx + 1] + t[ty + 2][tx + 1]) - CF * f[i];
    return;
  }
  for (int e = ty * kBx + tx; e < (kBy + 2) * (kBx + 2); e += kBx * kBy) {
    const int ly = e / (kBx + 2), lx = e % (kBx + 2), gx = bx + lx - 1, gy = by + ly - 1;
    t[ly][lx] = gx >= 0 && gy >= 0 && gx < nx && gy < ny ? u[gy * nx + gx] : 0.f;
  }
  __syncthreads();
  if (x >= nx || y >= ny)
    return;
  if (x == 0 || x == nx - 1 || y == 0 || y == ny - 1)
    v[i] = t[ty + 1][tx + 1];
  else
    v[i] = CX * (t[ty + 1][tx] + t[ty + 1][tx + 2]) + CY * (t[ty][tx + 1] + t[ty + 2][tx + 1]) - CF * f[i];
}

void run(float *u, const float *f, int nx, int ny, int steps) {
  if (nx <= 0 || ny <= 0 || steps <= 0)
    return;
  if (nx <= 2 || ny <= 2)
    return; // border only, nothing changes
  float *tmp;
  cudaMalloc(&tmp, (size_t)nx * ny * sizeof(float));
  const bool vec = nx % 4 == 0 && nx >= 64 && (((uintptr_t)u | (uintptr_t)f) & 15) == 0;
  const dim3 mgrid((nx + 127) / 128, (ny + 4 * kRun - 1) / (4 * kRun)),
      sgrid((nx + kBx - 1) / kBx, (ny + kBy - 1) / kBy);
  float *buf[2] = {u, tmp};
  for (int s = 0; s < steps; ++s) {
    if (vec)
      march4<<<mgrid, dim3(32, 4)>>>(buf[s & 1], f, buf[~s & 1], nx, ny);
    else
      smem_step<<<sgrid, dim3(kBx, kBy)>>>(buf[s & 1], f, buf[~s & 1], nx, ny);
  }
  if (steps & 1)
    cudaMemcpyAsync(u, tmp, (size_t)nx * ny * sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(tmp);
}
//--- temporal-blocking-or-resident
struct Grid {
  int nx, ny;
  __device__ bool inside(int x, int y) const { return x >= 0 && y >= 0 && x < nx && y < ny; }
  __device__ bool fixed(int x, int y) const { return x == 0 || y == 0 || x == nx - 1 || y == ny - 1; }
};
#define POINT(S, Y, X, F) (CX * (S[Y][(X) - 1] + S[Y][(X) + 1]) + CY * (S[(Y) - 1][X] + S[(Y) + 1][X]) - CF * (F))

// STEPS (1 or 2) steps per launch: load with a halo of STEPS, keep the intermediate level in shared memory
template <int STEPS, int TX, int TY>
__global__ void fused_steps(Grid g, const float *__restrict__ u, const float *__restrict__ f, float *__restrict__ v) {
  constexpr int H = STEPS, W = TX + 2 * H, L = TY + 2 * H;
  __shared__ float a[L][W + 1];
  __shared__ float b[L][W + 1];
  const int x0 = blockIdx.x * TX - H, y0 = blockIdx.y * TY - H;
  const int tid = threadIdx.y * blockDim.x + threadIdx.x, nth = blockDim.x * blockDim.y;
  const bool deep =
      x0 >= 0 && y0 >= 0 && x0 + W <= g.nx && y0 + L <= g.ny; // no border point is updated, all loads valid
  for (int e = tid; e < W * L; e += nth) {
    const int lx = e % W, ly = e / W, x = x0 + lx, y = y0 + ly;
    a[ly][lx] = deep || g.inside(x, y) ? u[(size_t)y * g.nx + x] : 0.f;
  }
  __syncthreads();
  if (STEPS == 2) {
    for (int e = tid; e < (W - 2) * (L - 2); e += nth) {
      const int lx = 1 + e % (W - 2), ly = 1 + e / (W - 2), x = x0 + lx, y = y0 + ly;
      if (deep)
        b[ly][lx] = POINT(a, ly, lx, f[(size_t)y * g.nx + x]);
      else if (!g.inside(x, y))
        b[ly][lx] = 0.f;
      else if (g.fixed(x, y))
        b[ly][lx] = a[ly][lx];
      else
        b[ly][lx] = POINT(a, ly, lx, f[(size_t)y * g.nx + x]);
    }
    __syncthreads();
  }
  float (*last)[W + 1] = STEPS == 2 ? b : a;
  const int lx = threadIdx.x + H, x = x0 + lx;
  for (int ly = threadIdx.y + H; ly < TY + H; ly += blockDim.y) {
    const int y = y0 + ly;
    if (x >= g.nx || y >= g.ny)
      continue;
    const size_t i = (size_t)y * g.nx + x;
    v[i] = g.fixed(x, y) ? last[ly][lx] : POINT(last, ly, lx, f[i]);
  }
}

// small grid: one block, all steps in shared memory
#define RES_MAX 2048
__global__ void resident(Grid g, float *u, const float *__restrict__ f, int steps) {
  __shared__ float s[2][RES_MAX];
  const int count = g.nx * g.ny;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    s[0][i] = s[1][i] = u[i];
  __syncthreads();
  int cur = 0;
  for (int k = 0; k < steps; ++k, cur ^= 1) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      if (g.fixed(i % g.nx, i / g.nx))
        continue;
      const float *p = &s[cur][i];
      s[cur ^ 1][i] = CX * (p[-1] + p[1]) + CY * (p[-g.nx] + p[g.nx]) - CF * f[i];
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    u[i] = s[cur][i];
}

void run(float *u, const float *f, int nx, int ny, int steps) {
  if (nx <= 0 || ny <= 0 || steps <= 0)
    return;
  const Grid g{nx, ny};
  if ((long long)nx * ny <= RES_MAX) {
    resident<<<1, 256>>>(g, u, f, steps);
    return;
  }
  float *tmp, *src = u;
  cudaMalloc(&tmp, (size_t)nx * ny * sizeof(float));
  float *dst = tmp;
  const dim3 grid((nx + 31) / 32, (ny + 15) / 16), block(32, 8);
  int left = steps;
  for (; left >= 2; left -= 2) {
    fused_steps<2, 32, 16><<<grid, block>>>(g, src, f, dst);
    std::swap(src, dst);
  }
  if (left) {
    fused_steps<1, 32, 16><<<grid, block>>>(g, src, f, dst);
    std::swap(src, dst);
  }
  if (src != u)
    cudaMemcpy(u, src, (size_t)nx * ny * sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(tmp);
}
//--- main
int main(int argc, char **argv) {
  int nx = argc > 1 ? atoi(argv[1]) : 100, ny = argc > 2 ? atoi(argv[2]) : 60, steps = argc > 3 ? atoi(argv[3]) : 5;
  size_t n = (size_t)nx * ny;
  std::vector<float> u(n + 1), f(n + 1);
  unsigned s = 777u;
  for (size_t i = 0; i < n; i++) {
    s = s * 1103515245u + 12345u;
    u[i] = (float)((s >> 12) % 4096) / 1024.0f - 2.0f;
    f[i] = sinf(0.37f * (float)i) * 3.0f;
  }
  float *du, *df;
  cudaMalloc(&du, (n + 1) * sizeof(float));
  cudaMalloc(&df, (n + 1) * sizeof(float));
  cudaMemcpy(du, u.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(df, f.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  run(du, df, nx, ny, steps);
  cudaMemcpy(u.data(), du, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0, w = 0;
  for (size_t i = 0; i < n; i++) {
    sum += u[i];
    w += u[i] * (double)(i % 29 + 1);
  }
  printf("jacobi %d x %d, %d steps: sum %.5f weighted %.5f\n", nx, ny, steps, sum, w);
  for (size_t i = 0; i < n; i += n / 6 + 1)
    printf("u[%zu] = %.6f\n", i, u[i]);
  cudaFree(du);
  cudaFree(df);
  return 0;
}
