//--- common
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// pos = (x, y, z, mass), vel = (vx, vy, vz, unused). Each step: accelerations from all bodies (softened), kick, drift.
struct Sim {
  int n;
  float dt, eps2;
  int steps;
};
//--- original
__global__ void forces(const float4 *pos, float4 *acc, int n, float eps2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 p = pos[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < n; j++) {
    float4 q = pos[j];
    float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
    float inv = rsqrtf(dx * dx + dy * dy + dz * dz + eps2);
    float w = q.w * inv * inv * inv;
    ax += w * dx;
    ay += w * dy;
    az += w * dz;
  }
  acc[i] = make_float4(ax, ay, az, 0.0f);
}
__global__ void advance(float4 *pos, float4 *vel, const float4 *acc, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  vel[i].x += acc[i].x * dt;
  vel[i].y += acc[i].y * dt;
  vel[i].z += acc[i].z * dt;
  pos[i].x += vel[i].x * dt;
  pos[i].y += vel[i].y * dt;
  pos[i].z += vel[i].z * dt;
}
void run(float4 *pos, float4 *vel, Sim sim) {
  if (sim.n <= 0)
    return;
  float4 *acc;
  cudaMalloc(&acc, sim.n * sizeof(float4));
  int grid = (sim.n + 127) / 128;
  for (int s = 0; s < sim.steps; s++) {
    forces<<<grid, 128>>>(pos, acc, sim.n, sim.eps2);
    advance<<<grid, 128>>>(pos, vel, acc, sim.n, sim.dt);
  }
  cudaFree(acc);
}
//--- fused-shared-tiles
__device__ __forceinline__ void interact(float3 &a, const float4 &p, const float4 &q, float eps2) {
  const float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
  const float inv = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2))));
  const float w = q.w * (inv * inv * inv);
  a.x = fmaf(w, dx, a.x);
  a.y = fmaf(w, dy, a.y);
  a.z = fmaf(w, dz, a.z);
}
// force + integration in one kernel, positions ping-pong between two buffers; blockDim.x == TILE.
// EXACT: n is a multiple of TILE. Otherwise the last tile is short and surplus threads only help loading.
template <int TILE, bool EXACT>
__global__ void __launch_bounds__(TILE) step_tiled(const float4 *__restrict__ from, float4 *__restrict__ to,
                                                   float4 *__restrict__ vel, int n, float dt, float eps2) {
  __shared__ float4 sh[2][TILE];
  const int i = blockIdx.x * TILE + threadIdx.x;
  const bool mine = EXACT || i < n;
  const float4 p = mine ? from[i] : make_float4(0.f, 0.f, 0.f, 0.f);
  float3 a = make_float3(0.f, 0.f, 0.f);
  int buf = 0;
  if (EXACT || threadIdx.x < n)
    sh[0][threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  for (int j0 = 0; j0 < n; j0 += TILE, buf ^= 1) {
    const int jn = j0 + TILE + threadIdx.x; // prefetch next tile into the other buffer
    if (jn < n)
      sh[buf ^ 1][threadIdx.x] = from[jn];
    if (EXACT || j0 + TILE <= n) {
#pragma unroll 8
      for (int j = 0; j < TILE; ++j)
        interact(a, p, sh[buf][j], eps2);
    } else {
      for (int j = 0; j < n - j0; ++j)
        interact(a, p, sh[buf][j], eps2);
    }
    __syncthreads();
  }
  if (!mine)
    return;
  float4 v = vel[i];
  v.x += a.x * dt;
  v.y += a.y * dt;
  v.z += a.z * dt;
  vel[i] = v;
  to[i] = make_float4(p.x + v.x * dt, p.y + v.y * dt, p.z + v.z * dt, p.w);
}
template <int TILE> static void step(const float4 *from, float4 *to, float4 *vel, const Sim &s) {
  const int grid = (s.n + TILE - 1) / TILE;
  if (s.n % TILE == 0)
    step_tiled<TILE, true><<<grid, TILE>>>(from, to, vel, s.n, s.dt, s.eps2);
  else
    step_tiled<TILE, false><<<grid, TILE>>>(from, to, vel, s.n, s.dt, s.eps2);
}
void run(float4 *pos, float4 *vel, Sim sim) {
  if (sim.n <= 0 || sim.steps <= 0)
    return;
  float4 *other;
  cudaMalloc(&other, sim.n * sizeof(float4));
  float4 *from = pos, *to = other;
  for (int s = 0; s < sim.steps; ++s) {
    if (sim.n <= 64)
      step<32>(from, to, vel, sim);
    else if (sim.n < 1024)
      step<64>(from, to, vel, sim);
    else
      step<128>(from, to, vel, sim);
    float4 *t = from;
    from = to;
    to = t;
  }
  if (from != pos)
    cudaMemcpyAsync(pos, from, sim.n * sizeof(float4), cudaMemcpyDeviceToDevice);
  cudaFree(other);
}
//--- split-sources-or-two-targets
/* Structure of arrays in one scratch block: x | y | z | m, each padded to a multiple of PAD with massless bodies, so
   that the force loops have no tails. */
#define PAD 64
typedef struct {
  float *x, *y, *z, *m;
  int padded;
} Soa;

__global__ void unpack(const float4 *__restrict__ pos, Soa s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.padded)
    return;
  float4 p = i < n ? pos[i] : make_float4(0.f, 0.f, 0.f, 0.f);
  s.x[i] = p.x;
  s.y[i] = p.y;
  s.z[i] = p.z;
  s.m[i] = p.w;
}

#define PAIR(AX, AY, AZ, PX, PY, PZ, J)                                                                                \
  do {                                                                                                                 \
    float dx = bx[J] - PX, dy = by[J] - PY, dz = bz[J] - PZ;                                                           \
    float inv = rsqrtf(dx * dx + dy * dy + dz * dz + eps2);                                                            \
    float w = bm[J] * inv * inv * inv;                                                                                 \
    AX += w * dx;                                                                                                      \
    AY += w * dy;                                                                                                      \
    AZ += w * dz;                                                                                                      \
  } while (0)

/* few bodies: grid.y slices of the sources, partial sums in part[slice][3][padded] */
__global__ void forces_slice(Soa s, float *__restrict__ part, int tiles_per_slice, float eps2) {
  __shared__ float bx[PAD], by[PAD], bz[PAD], bm[PAD];
  const int i = blockIdx.x * PAD + threadIdx.x, t = threadIdx.x, tiles = s.padded / PAD;
  const int first = blockIdx.y * tiles_per_slice, last = min(first + tiles_per_slice, tiles);
  const float px = s.x[i], py = s.y[i], pz = s.z[i];
  float ax = 0.f, ay = 0.f, az = 0.f;
  for (int k = first; k < last; k++) {
    const int j = k * PAD + t;
    __syncthreads();
    bx[t] = s.x[j];
    by[t] = s.y[j];
    bz[t] = s.z[j];
    bm[t] = s.m[j];
    __syncthreads();
#pragma unroll 4
    for (int q = 0; q < PAD; q++)
      PAIR(ax, ay, az, px, py, pz, q);
  }
  float *o = part + (size_t)blockIdx.y * 3 * s.padded + i;
  o[0] = ax;
  o[s.padded] = ay;
  o[2 * s.padded] = az;
}

/* many bodies: every thread carries two targets through the source tiles (half the shared memory traffic) */
__global__ void forces_two(Soa s, float *__restrict__ part, float eps2) {
  __shared__ float bx[PAD], by[PAD], bz[PAD], bm[PAD];
  const int t = threadIdx.x, i = blockIdx.x * PAD + t, h = i + PAD / 2; /* blockDim.x == PAD / 2 */
  const float px = s.x[i], py = s.y[i], pz = s.z[i], rx = s.x[h], ry = s.y[h], rz = s.z[h];
  float ax = 0.f, ay = 0.f, az = 0.f, cx = 0.f, cy = 0.f, cz = 0.f;
  for (int j0 = 0; j0 < s.padded; j0 += PAD) {
    for (int e = t; e < PAD; e += PAD / 2) {
      bx[e] = s.x[j0 + e];
      by[e] = s.y[j0 + e];
      bz[e] = s.z[j0 + e];
      bm[e] = s.m[j0 + e];
    }
    __syncthreads();
#pragma unroll 4
    for (int q = 0; q < PAD; q++) {
      PAIR(ax, ay, az, px, py, pz, q);
      PAIR(cx, cy, cz, rx, ry, rz, q);
    }
    __syncthreads();
  }
  part[i] = ax;
  part[s.padded + i] = ay;
  part[2 * s.padded + i] = az;
  part[h] = cx;
  part[s.padded + h] = cy;
  part[2 * s.padded + h] = cz;
}

/* sum the slices, integrate, and refresh both representations of the position */
__global__ void integrate(Soa s, const float *__restrict__ part, int slices, float4 *pos, float4 *vel, int n,
                          float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float a[3] = {0.f, 0.f, 0.f};
  for (int k = 0; k < slices; k++)
    for (int d = 0; d < 3; d++)
      a[d] += part[(size_t)(k * 3 + d) * s.padded + i];
  float4 v = vel[i];
  v.x += dt * a[0];
  v.y += dt * a[1];
  v.z += dt * a[2];
  vel[i] = v;
  const float x = s.x[i] + dt * v.x, y = s.y[i] + dt * v.y, z = s.z[i] + dt * v.z;
  s.x[i] = x;
  s.y[i] = y;
  s.z[i] = z;
  pos[i] = make_float4(x, y, z, s.m[i]);
}

void run(float4 *pos, float4 *vel, Sim sim) {
  if (sim.n <= 0 || sim.steps <= 0)
    return;
  const int padded = (sim.n + PAD - 1) / PAD * PAD, tiles = padded / PAD;
  const bool split = sim.n < 768;
  int slices = split ? (tiles < 4 ? tiles : 4) : 1;
  const int per = (tiles + slices - 1) / slices;
  slices = (tiles + per - 1) / per;
  float *mem;
  cudaMalloc(&mem, sizeof(float) * padded * (4 + 3 * slices));
  Soa s = {mem, mem + padded, mem + 2 * padded, mem + 3 * padded, padded};
  float *part = mem + 4 * padded;
  unpack<<<(padded + 127) / 128, 128>>>(pos, s, sim.n);
  for (int k = 0; k < sim.steps; k++) {
    if (split)
      forces_slice<<<dim3(tiles, slices), PAD>>>(s, part, per, sim.eps2);
    else
      forces_two<<<tiles, PAD / 2>>>(s, part, sim.eps2);
    integrate<<<(sim.n + 127) / 128, 128>>>(s, part, slices, pos, vel, sim.n, sim.dt);
  }
  cudaFree(mem);
}
//--- main
int main(int argc, char **argv) {
  Sim sim = {argc > 1 ? atoi(argv[1]) : 250, 0.01f, 0.05f, argc > 2 ? atoi(argv[2]) : 2};
  const int n = sim.n;
  std::vector<float4> p(n + 1), v(n + 1);
  unsigned s = 31337u;
  auto rnd = [&s] {
    s = s * 1664525u + 1013904223u;
    return (float)(s >> 9) / 4194304.0f - 1.0f;
  };
  for (int i = 0; i < n; i++) {
    p[i].x = 4.f * rnd();
    p[i].y = 3.f * rnd();
    p[i].z = 2.f * rnd();
    p[i].w = 1.5f + rnd();
    v[i].x = rnd();
    v[i].y = rnd();
    v[i].z = rnd();
    v[i].w = rnd();
  }
  float4 *dp, *dv;
  cudaMalloc(&dp, (n + 1) * sizeof(float4));
  cudaMalloc(&dv, (n + 1) * sizeof(float4));
  cudaMemcpy(dp, p.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemcpy(dv, v.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  run(dp, dv, sim);
  cudaMemcpy(p.data(), dp, n * sizeof(float4), cudaMemcpyDeviceToHost);
  cudaMemcpy(v.data(), dv, n * sizeof(float4), cudaMemcpyDeviceToHost);
  double c[8] = {0};
  for (int i = 0; i < n; i++) {
    const float t[8] = {p[i].x, p[i].y, p[i].z, p[i].w, v[i].x, v[i].y, v[i].z, v[i].w};
    for (int d = 0; d < 8; d++)
      c[d] += t[d] * (double)(i % 9 + 1);
  }
  printf("nbody n %d steps %d\n", n, sim.steps);
  for (int d = 0; d < 8; d++)
    printf("c[%d] = %.4f\n", d, c[d]);
  for (int i = 0; i < n; i += n / 4 + 1)
    printf("p[%d] = %.5f %.5f %.5f v %.5f\n", i, p[i].x, p[i].y, p[i].z, v[i].x);
  cudaFree(dp);
  cudaFree(dv);
  return 0;
}
