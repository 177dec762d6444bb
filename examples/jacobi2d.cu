// jacobi2d: steps of the Jacobi iteration for the Poisson equation on a rectangle, in double precision; the boundary
// stays fixed. The grid's description travels to the kernels as one struct.
//
//   jacobi2d [nx ny steps]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

struct Grid {
  int nx, ny;    // points, boundary included
  double hx, hy; // spacing
  __host__ __device__ int at(int x, int y) const { return y * nx + x; }
};

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      std::fprintf(stderr, "%s failed at line %d: %s\n", #call, __LINE__, cudaGetErrorString(status_));                \
      std::exit(2);                                                                                                    \
    }                                                                                                                  \
  } while (0)

__global__ void jacobiStep(Grid g, const double *u, const double *f, double *next) {
  int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (x < g.nx - 1 && y < g.ny - 1) {
    double ax = 1.0 / (g.hx * g.hx), ay = 1.0 / (g.hy * g.hy);
    double sum = ax * (u[g.at(x - 1, y)] + u[g.at(x + 1, y)]) + ay * (u[g.at(x, y - 1)] + u[g.at(x, y + 1)]);
    next[g.at(x, y)] = (sum - f[g.at(x, y)]) / (2.0 * (ax + ay));
  }
}

// The largest change of one step in every row of the grid, one thread a row.
__global__ void rowChange(Grid g, const double *u, const double *next, double *change) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y < g.ny) {
    double largest = 0.0;
    for (int x = 0; x < g.nx; ++x)
      largest = fmax(largest, fabs(next[g.at(x, y)] - u[g.at(x, y)]));
    change[y] = largest;
  }
}

static void referenceStep(const Grid &g, const std::vector<double> &u, const std::vector<double> &f,
                          std::vector<double> &next) {
  double ax = 1.0 / (g.hx * g.hx), ay = 1.0 / (g.hy * g.hy);
  for (int y = 1; y < g.ny - 1; ++y)
    for (int x = 1; x < g.nx - 1; ++x) {
      double sum = ax * (u[g.at(x - 1, y)] + u[g.at(x + 1, y)]) + ay * (u[g.at(x, y - 1)] + u[g.at(x, y + 1)]);
      next[g.at(x, y)] = (sum - f[g.at(x, y)]) / (2.0 * (ax + ay));
    }
}

int main(int argc, char **argv) {
  int steps = 10;
  Grid g{200, 160, 0.0, 0.0};
  if (argc > 3) {
    g.nx = std::atoi(argv[1]);
    g.ny = std::atoi(argv[2]);
    steps = std::atoi(argv[3]);
  }
  if (g.nx < 3 || g.ny < 3 || steps < 1) {
    std::fprintf(stderr, "usage: jacobi2d [nx ny steps]   at least 3, 3 and 1\n");
    return 2;
  }
  g.hx = 1.0 / (g.nx - 1);
  g.hy = 2.0 / (g.ny - 1);

  std::size_t points = (std::size_t)g.nx * g.ny, bytes = points * sizeof(double);
  std::vector<double> u(points), f(points), next;
  for (int y = 0; y < g.ny; ++y)
    for (int x = 0; x < g.nx; ++x) {
      bool boundary = x == 0 || y == 0 || x == g.nx - 1 || y == g.ny - 1;
      u[g.at(x, y)] = boundary ? std::sin(3.0 * x * g.hx) + std::cos(2.0 * y * g.hy) : 0.01 * ((x * 31 + y * 17) % 64);
      f[g.at(x, y)] = 4.0 * x * g.hx - y * g.hy;
    }
  next = u;

  double *du, *df, *dnext, *dchange;
  CHECK(cudaMalloc(&du, bytes));
  CHECK(cudaMalloc(&df, bytes));
  CHECK(cudaMalloc(&dnext, bytes));
  CHECK(cudaMalloc(&dchange, g.ny * sizeof(double)));
  CHECK(cudaMemcpy(du, u.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(df, f.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dnext, u.data(), bytes, cudaMemcpyHostToDevice));

  dim3 block(32, 4);
  dim3 grid((g.nx - 2 + block.x - 1) / block.x, (g.ny - 2 + block.y - 1) / block.y);
  for (int step = 0; step < steps; ++step) {
    jacobiStep<<<grid, block>>>(g, du, df, dnext);
    std::swap(du, dnext);
  }
  CHECK(cudaGetLastError());
  rowChange<<<(g.ny + 63) / 64, 64>>>(g, dnext, du, dchange); // du is the newest, dnext the one before
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());

  std::vector<double> result(points), change(g.ny);
  CHECK(cudaMemcpy(result.data(), du, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(change.data(), dchange, g.ny * sizeof(double), cudaMemcpyDeviceToHost));

  for (int step = 0; step < steps; ++step) {
    referenceStep(g, u, f, next);
    std::swap(u, next);
  }
  int wrong = 0;
  for (std::size_t i = 0; i < points; ++i)
    if (!(std::fabs(result[i] - u[i]) <= 1e-11 * (1.0 + std::fabs(u[i]))))
      wrong++;
  for (int y = 0; y < g.ny; ++y) {
    double want = 0;
    for (int x = 0; x < g.nx; ++x)
      want = std::fmax(want, std::fabs(u[g.at(x, y)] - next[g.at(x, y)]));
    if (!(std::fabs(change[y] - want) <= 1e-10))
      wrong++;
  }
  CHECK(cudaFree(du));
  CHECK(cudaFree(df));
  CHECK(cudaFree(dnext));
  CHECK(cudaFree(dchange));
  std::printf("%s jacobi2d nx=%d ny=%d steps=%d wrong=%d\n", wrong ? "FAIL" : "PASS", g.nx, g.ny, steps, wrong);
  return wrong ? 1 : 0;
}
