// A thread's own arrays: what pointers in one lead to is not its own, and members of its own records are.
// RUN: %refused --passes='distribute-loop[chained]' %s 2>&1 | %check=CHAINED
// RUN: %refused --passes='loop-to-grid[chained/j]' %s 2>&1 | %check=CHAINED
// RUN: %plan --passes='distribute-loop[ofRecord]' %s | %check=RECORD
// RUN: optiml-opt --kernels-only --print-plan --passes='block-shape[effect]{x=96}' %s | %check=EFFECT
// RUN: %plan --passes='block-shape[nearest]{x=64};stage-shared[nearest/p:points]{tile=16}' %s | %check=NEAREST
// RUN: %refused --passes='distribute-loop[changes]' %s 2>&1 | %check=CHANGES
// RUN: %plan --passes='block-shape[shared]{x=64};stage-shared[shared/p:points]{tile=16}' %s | %check=SHARED
// RUN: optiml-opt --emit --passes='block-shape[nearest]{x=64};stage-shared[nearest/p:points]{tile=16}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 37 | %check=SAME
// RUN: %verify=%t.cu %s -- 130 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 37 2>&1 | %check=RAN
// RAN: nearest: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// Each element is made of the one before.
// CHAINED: whose memory line [[#@LINE+6]] writes is not known
__global__ void chained(float *a, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; ++j) {
    float *at[2];
    at[0] = a, at[1] = a + 1;
    at[1][row * (n + 1) + j] = at[0][row * (n + 1) + j] * 0.5f;
  }
}

struct Rows {
  float *at[2];
};
// Pointers at a known place in a parameter are like parameters.
// RECORD: when disjoint(rows.at[0], {{.*}}, rows.at[1], {{.*}}  (rows.at[0] and rows.at[1] must not overlap)
__global__ void ofRecord(Rows rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; ++j)
    rows.at[1][row * (n + 1) + j] = rows.at[0][row * (n + 1) + j] * 0.5f;
}

// Threads that the launch does not have must not store to a.
// EFFECT: when grid.x * block.x % 96 == 0
__global__ void effect(float *a, float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float *at[2];
  at[0] = a, at[1] = b;
  at[0][i] = 2;
  if (i < n)
    b[i] = 1;
}

template <int K> struct Best {
  float distance[K];
  int place[K];
  __device__ Best() {
    for (int k = 0; k < K; ++k) {
      distance[k] = 1e30f;
      place[k] = -1;
    }
  }
  __device__ void insert(float d, int p) {
    if (d >= distance[K - 1])
      return;
    int k = K - 1;
    while (k > 0 && distance[k - 1] > d) {
      distance[k] = distance[k - 1];
      place[k] = place[k - 1];
      --k;
    }
    distance[k] = d;
    place[k] = p;
  }
};

// NEAREST-NOT: when disjoint({{.*}}best
// NEAREST: float best_distance[4];
// NEAREST: for (int p0 = 0; p0 < m; p0 += 16) {
// NEAREST: points_tile
// NEAREST: best_distance[k] = best_distance[k - 1];
__global__ void nearest(const float *__restrict__ points, const float *__restrict__ queries, int *__restrict__ places,
                        int n, int m) {
  int q = blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= n)
    return;
  Best<4> best;
  for (int p = 0; p < m; ++p) {
    float d = points[p] - queries[q];
    best.insert(d * d, p);
  }
  for (int k = 0; k < 4; ++k)
    places[q * 4 + k] = best.place[k];
}

struct Places {
  int *at;
};
// SHARED: when apart(places.at, points)
__global__ void shared(const int *points, Places places, int n, int m) {
  int q = blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= n)
    return;
  for (int p = 0; p < m; ++p)
    places.at[places.at[q]] += points[p];
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 37, m = 3 * n + 1;
  float *points, *queries;
  int *places;
  cudaMallocManaged(&points, m * sizeof(float));
  cudaMallocManaged(&queries, n * sizeof(float));
  cudaMallocManaged(&places, 4 * n * sizeof(int));
  for (int i = 0; i < m; i++)
    points[i] = i * 37 % 101 * 0.13f;
  for (int i = 0; i < n; i++)
    queries[i] = i * 0.07f;
  nearest<<<(n + 31) / 32, 32>>>(points, queries, places, n, m);
  cudaDeviceSynchronize();
  unsigned sum = 0;
  for (int i = 0; i < 4 * n; i++)
    sum = sum * 31 + places[i];
  printf("%u\n", sum);
}

struct Sums {
  float of[4];
};
// CHANGES: the kernel changes its parameter 'sums'
__global__ void changes(Sums sums, const float *x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  sums.of[row % 4] += 1;
  for (int j = 0; j < n; ++j)
    y[row * n + j] = x[row * n + j] * sums.of[j % 4];
}
