//--- common
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
// out(x, y) = sum over |dx|, |dy| <= r of filt(dx + r, dy + r) * img(x + dx, y + dy), zero outside the image
//--- original
__global__ void conv(const float *img, float *out, const float *filt, int w, int h, int r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    int d = 2 * r + 1;
    float s = 0.0f;
    for (int j = 0; j < d; j++)
      for (int i = 0; i < d; i++) {
        int xx = x + i - r, yy = y + j - r;
        if (xx >= 0 && xx < w && yy >= 0 && yy < h)
          s += filt[j * d + i] * img[yy * w + xx];
      }
    out[y * w + x] = s;
  }
}
void run(const float *img, float *out, const float *filt, int w, int h, int r) {
  if (w <= 0 || h <= 0 || r < 0)
    return;
  dim3 block(32, 4), grid((w + 31) / 32, (h + 3) / 4);
  conv<<<grid, block>>>(img, out, filt, w, h, r);
}
//--- constant-filter-templated-tile
#define MAX_CONST_R 8
__constant__ float cfilt[(2 * MAX_CONST_R + 1) * (2 * MAX_CONST_R + 1)];

// fixed radius: tile with halo in shared memory, two output rows per thread sharing the loaded values
template <int R>
__global__ void __launch_bounds__(256) conv_tile(const float *__restrict__ img, float *__restrict__ out, int w, int h) {
  constexpr int TX = 32, TY = 16, D = 2 * R + 1, SW = TX + 2 * R, SH = TY + 2 * R;
  __shared__ float s[SH][SW + (SW % 2 == 0)];
  const int bx = blockIdx.x * TX, by = blockIdx.y * TY;
  const int tx = threadIdx.x, ty = threadIdx.y;
  if (bx >= R && by >= R && bx + TX + R <= w && by + TY + R <= h) {
    const float *base = img + (by - R) * w + (bx - R);
    for (int yy = ty; yy < SH; yy += 8)
      for (int xx = tx; xx < SW; xx += 32)
        s[yy][xx] = __ldg(base + yy * w + xx);
  } else {
    for (int yy = ty; yy < SH; yy += 8)
      for (int xx = tx; xx < SW; xx += 32) {
        const int gx = bx + xx - R, gy = by + yy - R;
        s[yy][xx] = ((unsigned)gx < (unsigned)w && (unsigned)gy < (unsigned)h) ? __ldg(img + gy * w + gx) : 0.f;
      }
  }
  __syncthreads();
  float a0 = 0.f, a1 = 0.f; // rows 2 ty and 2 ty + 1
#pragma unroll
  for (int j = 0; j <= D; ++j)
#pragma unroll
    for (int i = 0; i < D; ++i) {
      const float v = s[2 * ty + j][tx + i];
      if (j < D)
        a0 += cfilt[j * D + i] * v;
      if (j > 0)
        a1 += cfilt[(j - 1) * D + i] * v;
    }
  const int x = bx + tx, y = by + 2 * ty;
  if (x >= w)
    return;
  if (y < h)
    out[y * w + x] = a0;
  if (y + 1 < h)
    out[(y + 1) * w + x] = a1;
}

// radius up to MAX_CONST_R known only at run time: tile size through dynamic shared memory
__global__ void conv_dyn(const float *__restrict__ img, float *__restrict__ out, int w, int h, int r) {
  extern __shared__ float s[];
  const int pitch = blockDim.x + 2 * r, rows = blockDim.y + 2 * r, d = 2 * r + 1;
  const int bx = blockIdx.x * blockDim.x - r, by = blockIdx.y * blockDim.y - r;
  for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < pitch * rows; e += blockDim.x * blockDim.y) {
    const int gx = bx + e % pitch, gy = by + e / pitch;
    s[e] = gx >= 0 && gx < w && gy >= 0 && gy < h ? img[gy * w + gx] : 0.f;
  }
  __syncthreads();
  const int x = bx + r + threadIdx.x, y = by + r + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float acc = 0.f;
  for (int j = 0; j < d; ++j) {
    const float *row = s + (threadIdx.y + j) * pitch + threadIdx.x;
#pragma unroll 4
    for (int i = 0; i < d; ++i)
      acc += cfilt[j * d + i] * row[i];
  }
  out[y * w + x] = acc;
}

// large radius: loop bounds clipped once per thread instead of a test per tap
__global__ void conv_clip(const float *__restrict__ img, float *__restrict__ out, const float *__restrict__ filt, int w,
                          int h, int r) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  const int d = 2 * r + 1;
  const int j0 = max(0, r - y), j1 = min(d, h + r - y), i0 = max(0, r - x), i1 = min(d, w + r - x);
  float acc = 0.f;
  for (int j = j0; j < j1; ++j)
    for (int i = i0; i < i1; ++i)
      acc += __ldg(filt + j * d + i) * __ldg(img + (y + j - r) * w + x + i - r);
  out[y * w + x] = acc;
}

void run(const float *img, float *out, const float *filt, int w, int h, int r) {
  if (w <= 0 || h <= 0 || r < 0)
    return;
  const dim3 block(32, 8), tgrid((w + 31) / 32, (h + 15) / 16), grid((w + 31) / 32, (h + 7) / 8);
  if (r > MAX_CONST_R) {
    conv_clip<<<grid, block>>>(img, out, filt, w, h, r);
    return;
  }
  cudaMemcpyToSymbol(cfilt, filt, sizeof(float) * (2 * r + 1) * (2 * r + 1), 0, cudaMemcpyDeviceToDevice);
  switch (r) {
  case 0: conv_tile<0><<<tgrid, block>>>(img, out, w, h); break;
  case 1: conv_tile<1><<<tgrid, block>>>(img, out, w, h); break;
  case 2: conv_tile<2><<<tgrid, block>>>(img, out, w, h); break;
  case 3: conv_tile<3><<<tgrid, block>>>(img, out, w, h); break;
  case 4: conv_tile<4><<<tgrid, block>>>(img, out, w, h); break;
  default: conv_dyn<<<grid, block, sizeof(float) * (32 + 2 * r) * (8 + 2 * r)>>>(img, out, w, h, r);
  }
}
//--- rotating-rows-and-frame
struct Image {
  const float *__restrict__ px;
  float *__restrict__ out;
  const float *__restrict__ filt;
  int w, h;
};
// Interior [R, w-R) x [R, h-R): a thread walks down one column. Every loaded row segment feeds 2R+1 open output rows
// whose accumulators rotate by one per step. No bounds tests on taps.
template <int R, int ROWS> __global__ void conv_interior(Image m) {
  constexpr int D = 2 * R + 1;
  __shared__ float f[D * D];
  for (int e = threadIdx.x; e < D * D; e += blockDim.x)
    f[e] = m.filt[e];
  __syncthreads();
  const int x = R + blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= m.w - R)
    return;
  const int y0 = R + blockIdx.y * ROWS, y1 = min(y0 + ROWS, m.h - R);
  float acc[D];
#pragma unroll
  for (int k = 0; k < D; ++k)
    acc[k] = 0.f;
  for (int yy = y0 - R; yy < y1 + R; ++yy) {
    const float *row = m.px + (size_t)yy * m.w + x - R;
    float v[D];
#pragma unroll
    for (int i = 0; i < D; ++i)
      v[i] = row[i];
#pragma unroll
    for (int k = 0; k < D;
         ++k) { // acc[D-1-k] belongs to output row yy + R - k, which sees this row through filter row k
      float s = 0.f;
#pragma unroll
      for (int i = 0; i < D; ++i)
        s += f[k * D + i] * v[i];
      acc[D - 1 - k] += s;
    }
    if (yy - R >= y0)
      m.out[(size_t)(yy - R) * m.w + x] = acc[0];
#pragma unroll
    for (int k = 0; k + 1 < D; ++k)
      acc[k] = acc[k + 1];
    acc[D - 1] = 0.f;
  }
}

// The frame of width r (or the whole image when it has no interior), one thread per pixel of a flattened list:
// top band, bottom band, then left and right ends of the rows between.
__global__ void conv_frame(Image m, int r, unsigned count, bool whole) {
  for (unsigned e = blockIdx.x * blockDim.x + threadIdx.x; e < count; e += gridDim.x * blockDim.x) {
    int x, y;
    const unsigned band = (unsigned)r * m.w;
    if (whole || e < band) {
      x = e % m.w;
      y = e / m.w;
    } else if (e < 2 * band) {
      x = (e - band) % m.w;
      y = m.h - r + (e - band) / m.w;
    } else {
      const unsigned q = e - 2 * band, side = q % (2 * r);
      y = r + q / (2 * r);
      x = side < (unsigned)r ? side : m.w - 2 * r + side;
    }
    const int d = 2 * r + 1;
    float s = 0.f;
    for (int j = max(-r, -y); j <= min(r, m.h - 1 - y); ++j)
      for (int i = max(-r, -x); i <= min(r, m.w - 1 - x); ++i)
        s += m.filt[(j + r) * d + i + r] * m.px[(size_t)(y + j) * m.w + x + i];
    m.out[(size_t)y * m.w + x] = s;
  }
}

template <int R> static bool interior(const Image &m) {
  if (m.w <= 2 * R || m.h <= 2 * R)
    return false;
  constexpr int ROWS = 16;
  dim3 grid((m.w - 2 * R + 63) / 64, (m.h - 2 * R + ROWS - 1) / ROWS);
  conv_interior<R, ROWS><<<grid, 64>>>(m);
  return true;
}
void run(const float *img, float *out, const float *filt, int w, int h, int r) {
  if (w <= 0 || h <= 0 || r < 0)
    return;
  const Image m = {img, out, filt, w, h};
  bool split = false;
  if (r == 0)
    split = interior<0>(m);
  else if (r == 1)
    split = interior<1>(m);
  else if (r == 2)
    split = interior<2>(m);
  else if (r == 3)
    split = interior<3>(m);
  const unsigned count = split ? (unsigned)(w * h - (w - 2 * r) * (h - 2 * r)) : (unsigned)(w * h);
  if (count == 0)
    return;
  const unsigned blocks = (count + 127) / 128;
  conv_frame<<<(blocks < 48 ? blocks : 48), 128>>>(m, r, count, !split);
}
//--- main
int main(int argc, char **argv) {
  int w = argc > 1 ? atoi(argv[1]) : 90, h = argc > 2 ? atoi(argv[2]) : 70, r = argc > 3 ? atoi(argv[3]) : 2;
  if (r < 0)
    r = 0;
  size_t n = (size_t)w * h, nf = (size_t)(2 * r + 1) * (2 * r + 1);
  std::vector<float> img(n + 1), filt(nf);
  unsigned lcg = 4711u;
  auto next = [&lcg]() {
    lcg = lcg * 1664525u + 1013904223u;
    return (float)((lcg >> 10) % 3001) / 1500.0f - 1.0f;
  };
  for (size_t i = 0; i < n; i++)
    img[i] = next();
  for (size_t i = 0; i < nf; i++)
    filt[i] = next() * 0.5f;
  float *di, *dout, *df;
  cudaMalloc(&di, (n + 1) * sizeof(float));
  cudaMalloc(&dout, (n + 1) * sizeof(float));
  cudaMalloc(&df, nf * sizeof(float));
  cudaMemcpy(di, img.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(df, filt.data(), nf * sizeof(float), cudaMemcpyHostToDevice);
  run(di, dout, df, w, h, r);
  cudaMemcpy(img.data(), dout, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0, wsum = 0;
  for (size_t i = 0; i < n; i++) {
    sum += img[i];
    wsum += img[i] * (double)(i % 19 + 1);
  }
  printf("conv %d x %d r %d: sum %.5f weighted %.5f\n", w, h, r, sum, wsum);
  for (size_t i = 0; i < n; i += n / 6 + 1)
    printf("out[%zu] = %.6f\n", i, img[i]);
  cudaFree(di);
  cudaFree(dout);
  cudaFree(df);
  return 0;
}
