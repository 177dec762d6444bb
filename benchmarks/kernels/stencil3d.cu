// stencil3d: explicit steps of the heat equation on a box, a 7-point stencil; the boundary stays fixed. One launch a
// step, one thread a cell, from one grid to the other.
//
//   stencil3d [nx ny nz [steps]]      default 256 256 256 10, large 512 512 512 10
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

__global__ void heatStep(const float *in, float *out, int nx, int ny, int nz, float c) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1 || z < 1 || z >= nz - 1)
    return;

  int i = (z * ny + y) * nx + x;
  float sum = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny];
  out[i] = in[i] + c * (sum - 6.0f * in[i]);
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

struct Box {
  int x0, x1, y0, y1, z0, z1;
};

// Compares the cells of a box with the same steps in double precision, and returns how many are wrong. The steps are
// done on the part of the grid that reaches these cells: where it is cut off, the error travels one cell a step.
static int checkBox(const std::vector<float> &start, const std::vector<float> &result, int nx, int ny, int nz, double c,
                    int steps, Box b) {
  const int left = std::max(0, b.x0 - steps), front = std::max(0, b.y0 - steps), bottom = std::max(0, b.z0 - steps);
  const int w = std::min(nx, b.x1 + steps) - left, d = std::min(ny, b.y1 + steps) - front;
  const int h = std::min(nz, b.z1 + steps) - bottom;
  std::vector<double> now((size_t)w * d * h), next;
  for (int z = 0; z < h; z++)
    for (int y = 0; y < d; y++)
      for (int x = 0; x < w; x++)
        now[((size_t)z * d + y) * w + x] = start[((size_t)(bottom + z) * ny + front + y) * nx + left + x];
  next = now;
  for (int step = 0; step < steps; step++) {
    for (int z = 1; z < h - 1; z++) {
      for (int y = 1; y < d - 1; y++) {
        const double *in = &now[((size_t)z * d + y) * w];
        double *out = &next[((size_t)z * d + y) * w];
        for (int x = 1; x < w - 1; x++) {
          double sum = in[x - 1] + in[x + 1] + in[x - w] + in[x + w] + in[x - w * d] + in[x + w * d];
          out[x] = in[x] + c * (sum - 6.0 * in[x]);
        }
      }
    }
    std::swap(now, next);
  }
  // Each step is a weighted average, so that it adds a few rounding errors of numbers below 1. NaN fails.
  const double bound = 2 * FLT_EPSILON * (steps + 1);
  int wrong = 0;
  for (int z = b.z0; z < b.z1; z++) {
    for (int y = b.y0; y < b.y1; y++) {
      for (int x = b.x0; x < b.x1; x++) {
        float got = result[((size_t)z * ny + y) * nx + x];
        double want = now[((size_t)(z - bottom) * d + (y - front)) * w + (x - left)];
        if (!(std::fabs(got - want) <= bound) && wrong++ < 3)
          fprintf(stderr, "cell [%d][%d][%d] = %g, want %g\n", z, y, x, got, want);
      }
    }
  }
  return wrong;
}

int main(int argc, char **argv) {
  int nx = 256, ny = 256, nz = 256, steps = 10;
  if (argc >= 4) {
    nx = atoi(argv[1]);
    ny = atoi(argv[2]);
    nz = atoi(argv[3]);
  }
  if (argc == 5)
    steps = atoi(argv[4]);
  if ((argc != 1 && argc != 4 && argc != 5) || nx < 1 || ny < 1 || nz < 1 || nx > 2048 || ny > 2048 || nz > 2048 ||
      (double)nx * ny * nz > 2e9 || steps < 1 || steps > 10000) {
    fprintf(stderr, "usage: %s [nx ny nz [steps]]   nx, ny and nz from 1 to 2048, steps from 1 to 10000\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t cells = (size_t)nx * ny * nz, bytes = cells * sizeof(float);
  const float c = 0.125f;

  std::vector<float> start(cells), result(cells);
  for (size_t i = 0; i < cells; i++) // between -1 and 1
    start[i] = (float)(hash((unsigned)i) >> 8) / 8388608.0f - 1.0f;

  float *dIn, *dOut;
  CUDA_CHECK(cudaMalloc(&dIn, bytes));
  CUDA_CHECK(cudaMalloc(&dOut, bytes));
  CUDA_CHECK(cudaMemcpy(dIn, start.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dOut, start.data(), bytes, cudaMemcpyHostToDevice)); // for its boundary

  dim3 block(8, 8, 8);
  dim3 grid((nx + block.x - 1) / block.x, (ny + block.y - 1) / block.y, (nz + block.z - 1) / block.z);
  for (int step = 0; step < steps; step++) {
    heatStep<<<grid, block>>>(dIn, dOut, nx, ny, nz, c);
    CUDA_CHECK(cudaGetLastError());
    std::swap(dIn, dOut); // dIn is the newest
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(result.data(), dIn, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dOut));

  int wrong = 0;
  if ((double)cells * steps <= 3e7) {
    wrong = checkBox(start, result, nx, ny, nz, c, steps, Box{0, nx, 0, ny, 0, nz});
  } else { // boxes of 12 x 12 x 12 cells in the corners, at the faces and anywhere
    const int side = 12 + 2 * steps;
    const double cost = (double)std::min(nx, side) * std::min(ny, side) * std::min(nz, side) * steps;
    const int boxes = (int)std::max(16.0, std::min(1000.0, 3e7 / cost));
    const int w = std::min(nx, 12), d = std::min(ny, 12), h = std::min(nz, 12);
    for (int s = 0; s < boxes; s++) {
      int x = (int)(hash(3 * s) % (nx - w + 1)), y = (int)(hash(3 * s + 1) % (ny - d + 1));
      int z = (int)(hash(3 * s + 2) % (nz - h + 1));
      if (s < 8) {
        x = s & 1 ? nx - w : 0;
        y = s & 2 ? ny - d : 0;
        z = s & 4 ? nz - h : 0;
      } else if (s % 8 < 6) { // one of the six faces
        int &at = s % 8 < 2 ? x : s % 8 < 4 ? y : z;
        at = s % 2 == 0 ? 0 : s % 8 < 2 ? nx - w : s % 8 < 4 ? ny - d : nz - h;
      }
      wrong += checkBox(start, result, nx, ny, nz, c, steps, Box{x, x + w, y, y + d, z, z + h});
    }
  }
  printf("%s stencil3d nx=%d ny=%d nz=%d steps=%d\n", wrong ? "FAIL" : "PASS", nx, ny, nz, steps);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
