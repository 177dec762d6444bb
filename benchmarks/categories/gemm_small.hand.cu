// Two single-precision matrix products, 512 x 512 x 512 and 1024 x 1024 x 256 (rows, columns, inner size).
// By hand: 128 blocks for each product, three-stage async copies, 8 x 4 or 8 x 8 register tiles read from
// shared memory as float4, and thread groups that split every k slab and add their tiles at the end.
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

// Block tile BM x BN, thread tile TM x TN, G groups of threads that share the inner dimension.
template <int BM, int BN, int TM, int TN, int G>
struct Gemm {
  static constexpr int BK = 32, STAGES = 3, PITCH = BK + 4;
  static constexpr int TX = BN / TN, TY = BM / TM, GROUP = TX * TY, THREADS = G * GROUP;
  static constexpr int STAGE = BM * PITCH + BK * BN;
  static constexpr int SMEM = STAGES * STAGE * 4;
  static_assert((G - 1) * BM * BN <= STAGES * STAGE, "partial tiles fit");
  static __device__ __forceinline__ float4 &at(float *p) { return *reinterpret_cast<float4 *>(p); }

  static __device__ __forceinline__ void fetch(float *s, const float *a, const float *b, int n, int k, int k0)
  {
    if (k0 < k) {
#pragma unroll
      for (int i = threadIdx.x; i < BM * BK / 4; i += THREADS)
        __pipeline_memcpy_async(s + i / (BK / 4) * PITCH + i % (BK / 4) * 4,
                                a + i / (BK / 4) * k + k0 + i % (BK / 4) * 4, 16);
#pragma unroll
      for (int i = threadIdx.x; i < BK * BN / 4; i += THREADS)
        __pipeline_memcpy_async(s + BM * PITCH + i * 4, b + (k0 + i / (BN / 4)) * n + i % (BN / 4) * 4, 16);
    }
    __pipeline_commit();
  }
  static __device__ __forceinline__ void run(const float *a, const float *b, float *c, int n, int k, float *smem)
  {
    const int group = threadIdx.x / GROUP, t = threadIdx.x % GROUP, tx = t % TX, ty = t / TX;
    a += blockIdx.y * BM * k;
    b += blockIdx.x * BN;
    c += blockIdx.y * BM * n + blockIdx.x * BN;
    float acc[TM][TN] = {};  // rows ty + TY i, columns 4 tx + 4 TX (j / 4) + j % 4
    fetch(smem, a, b, n, k, 0);
    fetch(smem + STAGE, a, b, n, k, BK);
    for (int slab = 0; slab < k / BK; slab++) {
      __pipeline_wait_prior(1);
      __syncthreads();
      fetch(smem + (slab + 2) % STAGES * STAGE, a, b, n, k, (slab + 2) * BK);
      float *as = smem + slab % STAGES * STAGE + ty * PITCH + group * (BK / G);
      float *bs = smem + slab % STAGES * STAGE + BM * PITCH + group * (BK / G) * BN + 4 * tx;
#pragma unroll
      for (int kk = 0; kk < BK / G; kk += 4) {
        __align__(16) float y[4][TN];
#pragma unroll
        for (int i = 0; i < TN; i++)  // 4 rows of TN / 4 vectors
          at(y[i / (TN / 4)] + i % (TN / 4) * 4) = at(bs + (kk + i / (TN / 4)) * BN + i % (TN / 4) * 4 * TX);
#pragma unroll
        for (int i = 0; i < TM; i++) {
          const float4 x = at(as + i * TY * PITCH + kk);
#pragma unroll
          for (int j = 0; j < TN; j++)
            acc[i][j] = fmaf(x.w, y[3][j], fmaf(x.z, y[2][j], fmaf(x.y, y[1][j], fmaf(x.x, y[0][j], acc[i][j]))));
        }
      }
    }
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < TM * TN; e += 4) {
      const int i = e / TN, j = e % TN;
      float *part = smem + (group - 1) * BM * BN + (ty + TY * i) * BN + 4 * tx + TX * j;
      if (group > 0) at(part) = make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
    }
    __syncthreads();
    if (group > 0) return;
#pragma unroll
    for (int e = 0; e < TM * TN; e += 4) {
      const int i = e / TN, j = e % TN;
      float4 sum = make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
      for (int g = 0; g < G - 1; g++) {
        const float4 p = at(smem + g * BM * BN + (ty + TY * i) * BN + 4 * tx + TX * j);
        sum = make_float4(sum.x + p.x, sum.y + p.y, sum.z + p.z, sum.w + p.w);
      }
      at(c + (ty + TY * i) * n + 4 * tx + TX * j) = sum;
    }
  }
};

template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS) matmul(const float *__restrict__ a, const float *__restrict__ b,
                                                         float *__restrict__ c, int n, int k)
{
  extern __shared__ __align__(16) float smem[];
  Shape::run(a, b, c, n, k, smem);
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
    cudaMalloc(&da, a.size() * 4);
    cudaMalloc(&db, b.size() * 4);
    cudaMalloc(&dc, c.size() * 4);
    cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), b.size() * 4, cudaMemcpyHostToDevice);
  }

  template <int BM, int BN, int TM, int TN, int G>
  void launch()
  {
    using Shape = Gemm<BM, BN, TM, TN, G>;
    cudaFuncSetAttribute(matmul<Shape>, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::SMEM);
    matmul<Shape><<<dim3(n / BN, m / BM), Shape::THREADS, Shape::SMEM>>>(da, db, dc, n, k);
  }

  bool report(const char *name)
  {
    if (cudaMemcpy(c.data(), dc, c.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
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
  cube.launch<64, 32, 8, 4, 4>();
  flat.launch<64, 128, 8, 8, 2>();
  return cube.report("cube") && flat.report("flat") ? 0 : 1;
}
