// saxpy: y = a * x + y, one thread an element.
//
//   saxpy [n] [a]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t err = (call);                                                                                          \
    if (err != cudaSuccess) {                                                                                          \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err));                                     \
      exit(2);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[i] = a * x[i] + y[i];
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000000;
  float a = argc > 2 ? (float)atof(argv[2]) : 2.5f;
  if (n < 1) {
    fprintf(stderr, "usage: %s [n] [a]   with n >= 1\n", argv[0]);
    return 2;
  }

  std::vector<float> x(n), y(n), result(n);
  for (int i = 0; i < n; ++i) {
    x[i] = (float)((i * 7LL) % 101) / 101.0f - 0.25f;
    y[i] = (float)((i * 13LL) % 89) / 89.0f;
  }

  float *dx, *dy;
  CHECK(cudaMalloc(&dx, n * sizeof(float)));
  CHECK(cudaMalloc(&dy, n * sizeof(float)));
  CHECK(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  saxpy<<<(n + 255) / 256, 256>>>(n, a, dx, dy);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(result.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));

  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    double want = (double)a * x[i] + y[i];
    // Written so that a NaN counts as wrong.
    if (!(fabs(result[i] - want) <= 1e-6 * (fabs((double)a * x[i]) + fabs(y[i]) + 1e-6))) {
      if (wrong++ == 0)
        fprintf(stderr, "y[%d] = %g, want %g\n", i, result[i], want);
    }
  }
  CHECK(cudaFree(dx));
  CHECK(cudaFree(dy));
  printf("%s saxpy n=%d a=%g\n", wrong ? "FAIL" : "PASS", n, a);
  return wrong ? 1 : 0;
}
