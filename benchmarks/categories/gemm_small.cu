// Two single-precision matrix products, 512 x 512 x 512 and 1024 x 1024 x 256 (rows, columns, inner size).
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float acc = 0.f;
    for (int i = 0; i < k; i++)
      acc += a[row * k + i] * b[i * n + col];
    c[row * n + col] = acc;
  }
}

struct Problem {
  int m, n, k;
  std::vector<float> a, b, c;
  float *da, *db, *dc;

  Problem(int m_, int n_, int k_, unsigned seed) : m(m_), n(n_), k(k_), a(m_ * k_), b(k_ * n_), c(m_ * n_)
  {
    for (auto *v : {&a, &b})
      for (float &x : *v) {
        seed = seed * 69069u + 1u;
        x = (seed >> 16) / 65536.f - 0.4f;
      }
    cudaMalloc(&da, a.size() * sizeof(float));
    cudaMalloc(&db, b.size() * sizeof(float));
    cudaMalloc(&dc, c.size() * sizeof(float));
    cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice);
  }

  void launch()
  {
    dim3 threads(16, 16);
    dim3 blocks((n + 15) / 16, (m + 15) / 16);
    matmul<<<blocks, threads>>>(da, db, dc, m, n, k);
  }

  bool report(const char *name)
  {
    if (cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess)
      return false;
    double squares = 0, weighted = 0;
    for (size_t i = 0; i < c.size(); i++) {
      squares += (double)c[i] * c[i];
      weighted += std::fabs(c[i]) * (1 + i % 23);
    }
    printf("%s squares %.6e weighted %.6e\n", name, squares, weighted);
    return true;
  }
};

int main()
{
  Problem cube(512, 512, 512, 17), flat(1024, 1024, 256, 29);
  cube.launch();
  flat.launch();
  if (!cube.report("cube") || !flat.report("flat")) {
    fprintf(stderr, "product failed\n");
    return 1;
  }
  return 0;
}
