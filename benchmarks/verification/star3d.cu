//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// Star stencil of radius R (7 points for R = 1, 25 points for R = 4) with symmetric coefficients c[0..R];
// points nearer than R to a face are copied. x runs fastest.
typedef struct {
  int nx, ny, nz;
} Box;
#define MAX_COEF 16
//--- original
__global__ void star(const float *in, float *out, const float *c, Box b, int R) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= b.nx || y >= b.ny || z >= b.nz)
    return;
  int i = (z * b.ny + y) * b.nx + x;
  if (x < R || y < R || z < R || x >= b.nx - R || y >= b.ny - R || z >= b.nz - R) {
    out[i] = in[i];
    return;
  }
  int plane = b.nx * b.ny;
  float s = c[0] * in[i];
  for (int r = 1; r <= R; r++)
    s += c[r] * (in[i - r] + in[i + r] + in[i - r * b.nx] + in[i + r * b.nx] + in[i - r * plane] + in[i + r * plane]);
  out[i] = s;
}
void run(const float *in, float *out, const float *c, Box b, int R) {
  if (b.nx <= 0 || b.ny <= 0 || b.nz <= 0)
    return;
  dim3 block(8, 4, 4);
  dim3 grid((b.nx + 7) / 8, (b.ny + 3) / 4, (b.nz + 3) / 4);
  star<<<grid, block>>>(in, out, c, b, R);
}
//--- march-z-register-queue
__constant__ float kc[MAX_COEF];

// 2.5-D blocking: the current plane in shared memory with halo, 2R+1 values of the thread's own column in registers.
// Works on the interior only; the faces were copied before.
template <int R, int TX, int TY>
__global__ void __launch_bounds__(TX *TY)
    march(const float *__restrict__ in, float *__restrict__ out, Box b, int zchunk) {
  static_assert(TX >= R && TY >= R, "halo is loaded by the first R rows and columns of threads");
  __shared__ float t[TY + 2 * R][TX + 2 * R + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x = R + blockIdx.x * TX + tx, y = R + blockIdx.y * TY + ty;
  const bool active = x < b.nx - R && y < b.ny - R;
  const int xs = min(x, b.nx - 1), ys = min(y, b.ny - 1); // clamped: values loaded there are never used
  const int xe = min(x + TX, b.nx - 1), ye = min(y + TY, b.ny - 1);
  const size_t plane = (size_t)b.nx * b.ny;
  const int z0 = R + blockIdx.z * zchunk, z1 = min(z0 + zchunk, b.nz - R);
  const float *col = in + (size_t)ys * b.nx + xs;
  float q[2 * R + 1];
#pragma unroll
  for (int i = 0; i < 2 * R; ++i)
    q[i + 1] = col[(z0 - R + i) * plane];
  for (int z = z0; z < z1; ++z) {
#pragma unroll
    for (int i = 0; i < 2 * R; ++i)
      q[i] = q[i + 1];
    q[2 * R] = col[(z + R) * plane];
    const float *p = in + z * plane;
    __syncthreads();
    t[ty + R][tx + R] = q[R];
    if (ty < R) {
      t[ty][tx + R] = p[(size_t)min(y - R, b.ny - 1) * b.nx + xs];
      t[ty + TY + R][tx + R] = p[(size_t)ye * b.nx + xs];
    }
    if (tx < R) {
      t[ty + R][tx] = p[(size_t)ys * b.nx + min(x - R, b.nx - 1)];
      t[ty + R][tx + TX + R] = p[(size_t)ys * b.nx + xe];
    }
    __syncthreads();
    if (active) {
      float s = kc[0] * q[R];
#pragma unroll
      for (int r = 1; r <= R; ++r)
        s += kc[r] * ((t[ty + R][tx + R - r] + t[ty + R][tx + R + r]) +
                      (t[ty + R - r][tx + R] + t[ty + R + r][tx + R]) + (q[R - r] + q[R + r]));
      out[z * plane + (size_t)y * b.nx + x] = s;
    }
  }
}
// any radius below MAX_COEF, interior only, flattened index space
__global__ void star_any(const float *__restrict__ in, float *__restrict__ out, Box b, int R) {
  const int ix = b.nx - 2 * R, iy = b.ny - 2 * R, iz = b.nz - 2 * R;
  const int total = ix * iy * iz, plane = b.nx * b.ny;
  for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < total; e += gridDim.x * blockDim.x) {
    const int x = R + e % ix, y = R + e / ix % iy, z = R + e / (ix * iy);
    const float *p = in + (z * b.ny + y) * b.nx + x;
    float s = kc[0] * p[0];
    for (int r = 1; r <= R; ++r)
      s += kc[r] * ((p[-r] + p[r]) + (p[-r * b.nx] + p[r * b.nx]) + (p[-r * plane] + p[r * plane]));
    out[p - in] = s;
  }
}
template <int R> static void launch_march(const float *in, float *out, Box b) {
  constexpr int TX = 16, TY = 8;
  const int zchunk = b.nz - 2 * R > 16 ? 8 : b.nz - 2 * R; // cut tall grids into several columns of blocks
  dim3 grid((b.nx - 2 * R + TX - 1) / TX, (b.ny - 2 * R + TY - 1) / TY, (b.nz - 2 * R + zchunk - 1) / zchunk);
  march<R, TX, TY><<<grid, dim3(TX, TY)>>>(in, out, b, zchunk);
}
void run(const float *in, float *out, const float *c, Box b, int R) {
  if (b.nx <= 0 || b.ny <= 0 || b.nz <= 0)
    return;
  cudaMemcpyAsync(out, in, sizeof(float) * (size_t)b.nx * b.ny * b.nz, cudaMemcpyDeviceToDevice);
  if (b.nx <= 2 * R || b.ny <= 2 * R || b.nz <= 2 * R)
    return;
  cudaMemcpyToSymbol(kc, c, sizeof(float) * (R + 1), 0, cudaMemcpyDeviceToDevice);
  switch (R) {
  case 1: launch_march<1>(in, out, b); break;
  case 2: launch_march<2>(in, out, b); break;
  case 3: launch_march<3>(in, out, b); break;
  case 4: launch_march<4>(in, out, b); break;
  default: star_any<<<32, 128>>>(in, out, b, R);
  }
}
//--- z-column-tiles-and-vec7
// R = 1 and nx % 4 == 0: a thread makes 4 neighbours in x from aligned float4 loads plus two scalars
__global__ void star7_vec(const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ c, Box b) {
  const int x4 = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  const int w4 = b.nx / 4;
  if (x4 >= w4 || y >= b.ny)
    return;
  const size_t i4 = ((size_t)z * b.ny + y) * w4 + x4;
  const float4 *v = reinterpret_cast<const float4 *>(in);
  const float4 m = __ldg(v + i4);
  float4 o = m;
  if (y > 0 && y < b.ny - 1 && z > 0 && z < b.nz - 1) {
    const float c0 = __ldg(c), c1 = __ldg(c + 1);
    const size_t p4 = (size_t)w4 * b.ny;
    const float4 n = __ldg(v + i4 - w4), s = __ldg(v + i4 + w4), d = __ldg(v + i4 - p4), u = __ldg(v + i4 + p4);
    if (x4 > 0)
      o.x = c0 * m.x + c1 * (__ldg(in + 4 * i4 - 1) + m.y + n.x + s.x + d.x + u.x);
    o.y = c0 * m.y + c1 * (m.x + m.z + n.y + s.y + d.y + u.y);
    o.z = c0 * m.z + c1 * (m.y + m.w + n.z + s.z + d.z + u.z);
    if (x4 < w4 - 1)
      o.w = c0 * m.w + c1 * (m.z + __ldg(in + 4 * i4 + 4) + n.w + s.w + d.w + u.w);
  }
  reinterpret_cast<float4 *>(out)[i4] = o;
}

// ZT outputs in z per thread share one register column of ZT + 2R values
template <int R, int ZT>
__global__ void zcolumn(const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ c, Box b) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z0 = (blockIdx.z * blockDim.z + threadIdx.z) * ZT;
  if (x >= (unsigned)b.nx || y >= (unsigned)b.ny || z0 >= b.nz)
    return;
  const size_t plane = (size_t)b.nx * b.ny;
  const float *p = in + y * (size_t)b.nx + x;
  float *o = out + y * (size_t)b.nx + x;
  float v[ZT + 2 * R];
#pragma unroll
  for (int k = 0; k < ZT + 2 * R; ++k) {
    const int z = z0 + k - R;
    v[k] = (z >= 0 && z < b.nz) ? __ldg(p + z * plane) : 0.f;
  }
  // x - R < nx - 2R in unsigned arithmetic is R <= x < nx - R
  const bool in_xy =
      b.nx > 2 * R && b.ny > 2 * R && x - R < (unsigned)(b.nx - 2 * R) && y - R < (unsigned)(b.ny - 2 * R);
  float cr[R + 1];
#pragma unroll
  for (int r = 0; r <= R; ++r)
    cr[r] = __ldg(c + r);
#pragma unroll
  for (int k = 0; k < ZT; ++k) {
    const int z = z0 + k;
    if (z >= b.nz)
      break;
    float s = v[k + R];
    if (in_xy && z >= R && z < b.nz - R) {
      const float *q = p + z * plane;
      s *= cr[0];
#pragma unroll
      for (int r = 1; r <= R; ++r) {
        const int dy = r * b.nx;
        s = fmaf(cr[r], v[k + R - r] + v[k + R + r] + __ldg(q - r) + __ldg(q + r) + __ldg(q - dy) + __ldg(q + dy), s);
      }
    }
    o[z * plane] = s;
  }
}
__global__ void star_rows(const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ c, Box b,
                          int R) {
  const int y = blockIdx.x, z = blockIdx.y, plane = b.nx * b.ny; // a block per row
  const bool inner = y >= R && y < b.ny - R && z >= R && z < b.nz - R;
  for (int x = threadIdx.x; x < b.nx; x += blockDim.x) {
    const int i = (z * b.ny + y) * b.nx + x;
    float s = in[i];
    if (inner && x >= R && x < b.nx - R) {
      s *= c[0];
      for (int r = R; r >= 1; --r) {
        const int dy = r * b.nx, dz = r * plane;
        s += c[r] * ((in[i - r] + in[i + r]) + (in[i - dy] + in[i + dy]) + (in[i - dz] + in[i + dz]));
      }
    }
    out[i] = s;
  }
}
void run(const float *in, float *out, const float *c, Box b, int R) {
  if (b.nx <= 0 || b.ny <= 0 || b.nz <= 0)
    return;
  if (R == 1 && b.nx % 4 == 0 && ((uintptr_t)in | (uintptr_t)out) % 16 == 0) {
    star7_vec<<<dim3((b.nx / 4 + 15) / 16, (b.ny + 7) / 8, b.nz), dim3(16, 8)>>>(in, out, c, b);
    return;
  }
  const dim3 block(16, 4, 2);
#define ZC(RAD, ZT)                                                                                                    \
  zcolumn<RAD, ZT><<<dim3((b.nx + 15) / 16, (b.ny + 3) / 4, (b.nz + 2 * ZT - 1) / (2 * ZT)), block>>>(in, out, c, b)
  switch (R) {
  case 1: ZC(1, 4); break;
  case 2: ZC(2, 4); break;
  case 3: ZC(3, 4); break;
  case 4:
    if (b.nz >= 32)
      ZC(4, 8);
    else
      ZC(4, 4);
    break;
  default: star_rows<<<dim3(b.ny, b.nz), 64>>>(in, out, c, b, R);
  }
#undef ZC
}
//--- main
int main(int argc, char **argv) {
  Box b = {argc > 1 ? atoi(argv[1]) : 24, argc > 2 ? atoi(argv[2]) : 20, argc > 3 ? atoi(argv[3]) : 18};
  int R = argc > 4 ? atoi(argv[4]) : 2;
  if (R < 0)
    R = 0;
  if (R >= MAX_COEF)
    R = MAX_COEF - 1;
  const size_t n = (size_t)b.nx * b.ny * b.nz;
  std::vector<float> h(n + 1), c(R + 1);
  unsigned s = 99u;
  for (float &v : h) {
    s = s * 69069u + 1u;
    v = (float)(s >> 8) / 8388608.0f - 1.0f;
  }
  for (int r = 0; r <= R; ++r)
    c[r] = (r % 2 ? 0.7f : -1.1f) / (float)(r * r + 1);
  float *din, *dout, *dc;
  cudaMalloc(&din, (n + 1) * 4);
  cudaMalloc(&dout, (n + 1) * 4);
  cudaMalloc(&dc, (R + 1) * 4);
  cudaMemcpy(din, h.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dc, c.data(), (R + 1) * 4, cudaMemcpyHostToDevice);
  run(din, dout, dc, b, R);
  cudaMemcpy(h.data(), dout, n * 4, cudaMemcpyDeviceToHost);
  double sum = 0, w = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += h[i];
    w += h[i] * (double)(i % 23 + 1);
  }
  printf("star %d x %d x %d R %d: sum %.5f weighted %.5f\n", b.nx, b.ny, b.nz, R, sum, w);
  for (size_t i = n / 9; i < n; i += n / 6 + 1)
    printf("out[%zu] = %.6f\n", i, h[i]);
  cudaFree(din);
  cudaFree(dout);
  cudaFree(dc);
  return 0;
}
