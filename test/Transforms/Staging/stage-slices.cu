// Each thread's own part of an array in shared memory.
// RUN: %opt --passes='block-shape[solve]{x=32,y=1};stage-slices[solve:m]' %s | %check=SOLVE
// RUN: %opt --passes='block-shape[collide]{x=16,y=4};stage-slices[collide:from+to]' %s | %check=COLLIDE
// RUN: %opt --passes='block-shape[legendre]{x=64,y=1};stage-slices[legendre:c]' %s | %check=LEGENDRE
// RUN: %opt --passes='block-shape[unguarded]{x=64,y=1};stage-slices[unguarded:v]' %s | %check=UNGUARDED
// RUN: %opt --passes='specialize-scalar[rows:n]{value=16};block-shape[rows]{x=64,y=1};stage-slices[rows:a]' %s | %check=ROWS
// RUN: %opt --passes='block-shape[drift]{x=64,y=1};stage-slices[drift:b]' %s | %check=DRIFT
// RUN: %opt --passes='block-shape[square]{x=32,y=1};stage-slices[square:a+out]' %s | %check=SQUARE
// RUN: %opt --passes='block-shape[bounce]{x=32,y=1};stage-slices[bounce:f]' %s | %check=BOUNCE
// RUN: %refused --passes='block-shape[apart]{x=32,y=1};stage-slices[apart:f]' %s 2>&1 | %check=APART
// RUN: %refused --passes='block-shape[rows]{x=64,y=1};stage-slices[rows:a]' %s 2>&1 | %check=SIZE
// RUN: %refused --passes='block-shape[next]{x=64,y=1};stage-slices[next:a]' %s 2>&1 | %check=NEXT
// RUN: %refused --passes='block-shape[chosen]{x=64,y=1};stage-slices[chosen:a]' %s 2>&1 | %check=CHOSEN
// RUN: %refused --passes='block-shape[counts]{x=64,y=1};stage-slices[counts:n]' %s 2>&1 | %check=COUNTS
// RUN: %refused --passes='block-shape[maybe]{x=64,y=1};stage-slices[maybe:a]' %s 2>&1 | %check=MAYBE
// RUN: %refused --passes='block-shape[solve]{x=64,y=1};stage-slices[solve:y]' %s 2>&1 | %check=CLOSE
// RUN: optiml-opt --emit --passes='block-shape[solve]{x=32,y=1};stage-slices[solve:m];block-shape[collide]{x=16,y=4};stage-slices[collide:from+to];block-shape[legendre]{x=64,y=1};stage-slices[legendre:c];block-shape[unguarded]{x=64,y=1};stage-slices[unguarded:v];specialize-scalar[rows:n]{value=16};block-shape[rows]{x=64,y=1};stage-slices[rows:a];block-shape[drift]{x=64,y=1};stage-slices[drift:b];block-shape[square]{x=32,y=1};stage-slices[square:a+out];block-shape[bounce]{x=32,y=1};stage-slices[bounce:f]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 150 20 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 150 20 2>&1 | %check=RAN
// RAN-DAG: solve: 1 optimized, 0 original launches
// RAN-DAG: collide: 1 optimized, 0 original launches
// RAN-DAG: legendre: 1 optimized, 0 original launches
// RAN-DAG: unguarded: 1 optimized, 0 original launches
// RAN-DAG: rows: 1 optimized, 0 original launches
// RAN-DAG: drift: 1 optimized, 0 original launches
// RAN-DAG: square: 1 optimized, 0 original launches
// RAN-DAG: bounce: 1 optimized, 0 original launches
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// A matrix in place: where it is left early, elements beyond stay as they were, and each goes back alone.
// SOLVE: __shared__ float m_slices[32][37];
// SOLVE-NEXT: if ((long long)blockIdx.x * 32 + 33 <= (long long)n) {
// SOLVE: m_slices[r][c] = m[(long long)blockIdx.x * 1152 + c + (long long)r * 36];
// SOLVE: __syncthreads();
// SOLVE: float d = m_slices[threadIdx.x][j * 7];
// SOLVE: m_slices[threadIdx.x][i * 6 + j] = m_slices[threadIdx.x][i * 6 + j] / d;
// SOLVE-NEXT: {{m|a}}[{{.*}}] = m_slices[threadIdx.x][i * 6 + j];
// SOLVE: } else {
// SOLVE-NOT: m_slices
__global__ void solve(float *m, float *y, int n) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= n)
    return;
  float *a = m + (size_t)s * 36;
  for (int j = 0; j < 6; j++) {
    float d = a[j * 6 + j];
    if (d > 9.0f) {
      y[s] = -1;
      return;
    }
    for (int i = j + 1; i < 6; i++) {
      a[i * 6 + j] = a[i * 6 + j] / d;
      for (int k = j + 1; k < 6; k++)
        a[i * 6 + k] -= a[i * 6 + j] * a[j * 6 + k];
    }
  }
  y[s] = a[35];
}

// Cells of a plane, all of whose numbers are read, and all written.
// COLLIDE: __shared__ float from_slices[64][5];
// COLLIDE: __shared__ float to_slices[64][5];
// COLLIDE: from_slices[r][c] = from[
// COLLIDE-NOT: to_slices[r][c] = to[
// COLLIDE: to_slices[threadIdx.x + threadIdx.y * 16][q] = from_slices[threadIdx.x + threadIdx.y * 16][q] - {{.*}};
// COLLIDE: __syncthreads();
// COLLIDE: to[{{.*}}] = to_slices[r1][c1];
__global__ void collide(const float *from, float *to, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int cell = y * w + x;
  float sum = 0;
  for (int q = 0; q < 5; q++)
    sum += from[cell * 5 + q];
  for (int q = 0; q < 5; q++)
    to[cell * 5 + q] = from[cell * 5 + q] - 0.1f * sum;
}

// Numbers of 8 bytes, from the last to the first.
// LEGENDRE: __shared__ double c_slices[64][9];
// LEGENDRE: c_slices[threadIdx.x][
__global__ void legendre(const double *c, double *y, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double s = 0, x = 0.01 * (i % 100);
    for (int k = 7; k >= 0; --k)
      s = s * x + c[i * 8 + k];
    y[i] = s * c[i * 8];
  }
}

// Where every thread has a slice, all blocks copy them.
// UNGUARDED: __shared__ int v_slices[64][3];
// UNGUARDED-NEXT: const int tid = threadIdx.x;
// UNGUARDED-NOT: else
__global__ void unguarded(int *v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int t = v[i * 3];
  v[i * 3] = v[i * 3 + 1];
  v[i * 3 + 1] = v[i * 3 + 2];
  v[i * 3 + 2] = t;
}

// ROWS: __shared__ float a_slices[64][17];
// SIZE: no constant size
__global__ void rows(const float *a, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m) {
    float s = 0;
    for (int k = 0; k < n; ++k)
      s += a[i * n + k] * a[i * n + n - 1 - k];
    y[i] = s;
  }
}

// NEXT: the threads' parts of a are no slices apart from one another
__global__ void next(const float *a, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int k = 0; k < 5; ++k)
      s += a[i * 4 + k];
    y[i] = s;
  }
}
// CHOSEN: it is not known which part of a a thread accesses
__global__ void chosen(const float *a, const int *at, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a[i * 4] + a[i * 4 + at[i]];
}
// COUNTS: n is updated by atomic operations
__global__ void counts(int *n, int *y, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m) {
    atomicAdd(&n[i * 4], 1);
    y[i] = n[i * 4 + 3];
  }
}
// MAYBE: it is not certain that each thread accesses its first element of a
__global__ void maybe(const float *a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0.0f)
    for (int k = 0; k < 4; ++k)
      y[i] += a[i * 4 + k];
}

// Records: what changes goes back member by member.
struct Body {
  float x, y, z, vx, vy, vz;
  int hits;
};
// DRIFT: __shared__ __align__(16) unsigned int b_slices[64][7];
// DRIFT: b_slices[r][c] = ((const unsigned int *)b)[blockIdx.x * 448 + c + r * 7];
// DRIFT: {{.*}}(Body *)&b_slices[threadIdx.x][0]{{.*}}.x += 0.5f * {{.*}}(Body *)&b_slices[threadIdx.x][0]{{.*}}.vx;
// DRIFT-NEXT: b[i].x = {{.*}}(Body *)&b_slices[threadIdx.x][0]{{.*}}.x;
__global__ void drift(Body *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    b[i].x += 0.5f * b[i].vx;
    if (b[i].x > 3.0f) {
      b[i].vx = -b[i].vx;
      b[i].hits++;
    }
  }
}

// Records of arrays, computed by value.
struct Matrix {
  double v[9];
  __host__ __device__ double operator()(int r, int c) const { return v[r * 3 + c]; }
  __host__ __device__ double &operator()(int r, int c) { return v[r * 3 + c]; }
};
__host__ __device__ Matrix operator*(const Matrix &a, const Matrix &b) {
  Matrix c;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double s = 0;
      for (int k = 0; k < 3; ++k)
        s += a(i, k) * b(k, j);
      c(i, j) = s;
    }
  return c;
}
// SQUARE: __shared__ __align__(16) long long a_slices[32][9];
// SQUARE: __shared__ __align__(16) long long out_slices[32][9];
// SQUARE: a_slices[r][c] = ((const long long *)a)[
// SQUARE-NOT: out_slices[r][c] =
// SQUARE: *(Matrix *)&out_slices[threadIdx.x][0] = c_1;
// SQUARE: ((long long *)out)[{{.*}}] = out_slices[
__global__ void square(const Matrix *a, Matrix *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = a[i] * a[i] * a[i];
}

// Every thread writes all of its slice, on one side of a condition or on the other.
// BOUNCE: __shared__ float f_slices[32][9];
// BOUNCE-NOT: f_slices[r][c] = f[
// BOUNCE: f[{{.*}}] = f_slices[
__global__ void bounce(const float *from, float *f, const int *solid, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  if (solid[i]) {
    for (int q = 0; q < 9; q++)
      f[i * 9 + q] = -from[i];
    return;
  }
  for (int q = 0; q < 9; q++)
    f[i * 9 + q] = from[i] * q;
}
// A condition that has changed in between is another one.
// APART: it is not certain that each thread accesses its first element of f
__global__ void apart(const int *in, float *f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    bool some = in[i] > 1;
    if (some)
      for (int q = 0; q < 4; q++)
        f[i * 4 + q] = 1;
    some = !some || in[i] > 7;
    if (!some)
      for (int q = 0; q < 4; q++)
        f[i * 4 + q] = 2;
  }
}
// CLOSE: neighbouring threads access no slices of y

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 150, w = argc > 2 ? atoi(argv[2]) : 20;
  float *m, *y, *from, *to;
  double *c, *z;
  int *v;
  Body *b;
  Matrix *a, *cubes;
  cudaMallocManaged(&b, n * sizeof(Body));
  cudaMallocManaged(&a, n * sizeof(Matrix));
  cudaMallocManaged(&cubes, n * sizeof(Matrix));
  for (int i = 0; i < n; ++i) {
    b[i] = {i * 37 % 11 - 5.0f, 1, 2, i * 31 % 7 - 3.0f, 4, 5, 6};
    for (int k = 0; k < 9; ++k)
      a[i].v[k] = (i * 29 + k * 7) % 13 - 6;
  }
  cudaMallocManaged(&m, n * 36 * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&from, n * w * 5 * sizeof(float));
  cudaMallocManaged(&to, n * w * 5 * sizeof(float));
  cudaMallocManaged(&c, n * 8 * sizeof(double));
  cudaMallocManaged(&z, n * sizeof(double));
  cudaMallocManaged(&v, 128 * 3 * sizeof(int));
  for (int i = 0; i < n * 36; ++i)
    m[i] = i % 36 % 7 == 0 ? 2.0f + i % 11 : (i * 37 % 101) / 101.0f;
  for (int i = 0; i < n * w * 5; ++i)
    from[i] = (i * 31 % 71) / 71.0f;
  for (int i = 0; i < n * 8; ++i)
    c[i] = (i * 29 % 53) / 53.0;
  for (int i = 0; i < 128 * 3; ++i)
    v[i] = i * 17 % 23;
  solve<<<(n + 63) / 64, 64>>>(m, y, n);
  collide<<<dim3((w + 15) / 16, (n + 3) / 4), dim3(16, 4)>>>(from, to, w, n);
  legendre<<<(n + 127) / 128, 128>>>(c, z, n);
  unguarded<<<2, 64>>>(v);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += y[i] + z[i];
  for (int i = 0; i < n * 36; ++i)
    sum += m[i];
  for (int i = 0; i < n * w * 5; ++i)
    sum += to[i];
  for (int i = 0; i < 128 * 3; ++i)
    sum += v[i] * (i % 3);
  rows<<<(n + 63) / 64, 64>>>(m, y, n, 16);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; ++i)
    sum += y[i];
  drift<<<(n + 63) / 64, 64>>>(b, n);
  square<<<(n + 63) / 64, 64>>>(a, cubes, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; ++i)
    sum += b[i].x + b[i].vx + b[i].hits + cubes[i].v[i % 9];
  for (int i = 0; i < 128 * 3; ++i)
    v[i] &= 1;
  const int few = n < 384 ? n : 384;
  bounce<<<(few + 63) / 64, 64>>>(y, m, v, few);
  cudaDeviceSynchronize();
  for (int i = 0; i < n * 36; ++i)
    sum += m[i];
  printf("%g\n", sum);
  return 0;
}
