// jacobi2d: steps of the Jacobi iteration for the Poisson equation on a rectangle; the boundary stays fixed. One launch
// a step, one thread a point, from one grid to the other.
//
//   jacobi2d [nx ny steps]      default 4096 4096 20, large 16384 16384 20
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void jacobiStep(const float *u, const float *f, float *next, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
    int i = y * nx + x;
    next[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - f[i]);
  }
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Compares the points [x0, x1) x [y0, y1) with the iteration in double precision, and returns how many are wrong. The
// iteration is done on the part of the grid that reaches these points: where it is cut off, the error travels one point
// a step.
static int checkWindow(const std::vector<float> &u, const std::vector<float> &f, const std::vector<float> &result,
                       int nx, int ny, int steps, int x0, int x1, int y0, int y1) {
  const int left = std::max(0, x0 - steps), right = std::min(nx, x1 + steps);
  const int top = std::max(0, y0 - steps), bottom = std::min(ny, y1 + steps);
  const int w = right - left, h = bottom - top;
  std::vector<double> now((size_t)w * h), next, source((size_t)w * h);
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      now[(size_t)y * w + x] = u[(size_t)(top + y) * nx + left + x];
      source[(size_t)y * w + x] = f[(size_t)(top + y) * nx + left + x];
    }
  }
  next = now;
  for (int step = 0; step < steps; ++step) {
    for (int y = 1; y < h - 1; ++y) {
      const double *line = &now[(size_t)y * w], *b = &source[(size_t)y * w];
      double *out = &next[(size_t)y * w];
      for (int x = 1; x < w - 1; ++x)
        out[x] = 0.25 * (line[x - 1] + line[x + 1] + line[x - w] + line[x + w] - b[x]);
    }
    std::swap(now, next);
  }
  // Each step averages, so that it adds a rounding error of numbers below 2 at most. NaN fails.
  const double bound = 2 * FLT_EPSILON * (steps + 1);
  int wrong = 0;
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) {
      float got = result[(size_t)y * nx + x];
      double want = now[(size_t)(y - top) * w + (x - left)];
      if (!(std::fabs(got - want) <= bound) && wrong++ < 3)
        fprintf(stderr, "u[%d][%d] = %g, want %g\n", y, x, got, want);
    }
  }
  return wrong;
}

int main(int argc, char **argv) {
  int nx = argc > 1 ? atoi(argv[1]) : 4096;
  int ny = argc > 2 ? atoi(argv[2]) : 4096;
  int steps = argc > 3 ? atoi(argv[3]) : 20;
  if (argc > 4 || nx < 1 || nx > 32768 || ny < 1 || ny > 32768 || steps < 1 || steps > 10000) {
    fprintf(stderr, "usage: %s [nx ny steps]   nx and ny from 1 to 32768, steps from 1 to 10000\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t points = (size_t)nx * ny, bytes = points * sizeof(float);

  std::vector<float> u(points), f(points), result(points);
  for (size_t i = 0; i < points; ++i) { // u between -1 and 1, f between -1/8 and 1/8
    unsigned bits = hash((unsigned)i);
    u[i] = (float)(bits >> 16) / 32768.0f - 1.0f;
    f[i] = (float)(bits & 0xffff) / 262144.0f - 0.125f;
  }

  float *du, *df, *dNext;
  CUDA_CHECK(cudaMalloc(&du, bytes));
  CUDA_CHECK(cudaMalloc(&df, bytes));
  CUDA_CHECK(cudaMalloc(&dNext, bytes));
  CUDA_CHECK(cudaMemcpy(du, u.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(df, f.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dNext, u.data(), bytes, cudaMemcpyHostToDevice)); // for its boundary

  dim3 block(16, 16);
  dim3 grid((nx + block.x - 1) / block.x, (ny + block.y - 1) / block.y);
  for (int step = 0; step < steps; ++step) {
    jacobiStep<<<grid, block>>>(du, df, dNext, nx, ny);
    CUDA_CHECK(cudaGetLastError());
    std::swap(du, dNext); // du is the newest
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(result.data(), du, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(du));
  CUDA_CHECK(cudaFree(df));
  CUDA_CHECK(cudaFree(dNext));

  int wrong = 0;
  if ((double)points * steps <= 3e7) {
    wrong = checkWindow(u, f, result, nx, ny, steps, 0, nx, 0, ny);
  } else { // windows of 32 x 32 points in the corners, at the edges and anywhere
    const double cost = (double)std::min(nx, 32 + 2 * steps) * std::min(ny, 32 + 2 * steps) * steps;
    const int windows = (int)std::max(16.0, std::min(1000.0, 3e7 / cost));
    const int w = std::min(nx, 32), h = std::min(ny, 32);
    for (int s = 0; s < windows; ++s) {
      int x0 = (int)(hash(2 * s) % (nx - w + 1)), y0 = (int)(hash(2 * s + 1) % (ny - h + 1));
      if (s < 4) {
        x0 = s & 1 ? nx - w : 0;
        y0 = s & 2 ? ny - h : 0;
      } else if (s % 8 < 4) { // one of the four edges
        int &at = s % 8 < 2 ? x0 : y0;
        at = s % 2 == 0 ? 0 : s % 8 < 2 ? nx - w : ny - h;
      }
      wrong += checkWindow(u, f, result, nx, ny, steps, x0, x0 + w, y0, y0 + h);
    }
  }
  printf("%s jacobi2d nx=%d ny=%d steps=%d\n", wrong ? "FAIL" : "PASS", nx, ny, steps);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
