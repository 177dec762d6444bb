// distribute-loop: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='distribute-loop[softmax]{threads=128}' %s | %check=BLOCK
// RUN: %plan --passes='distribute-loop[softmax]{threads=32,rows=4}' %s | %check=WARP
// RUN: %plan --passes='distribute-loop[sparse]{threads=32,rows=8}' %s | %check=SPARSE
// RUN: %opt --passes='distribute-loop[passes]{threads=64}' %s | %check=PASSES
// RUN: optiml-opt --list-sites %s | %check=SITES
// RUN: optiml-opt --emit --passes='distribute-loop[softmax];distribute-loop[sparse]{threads=32,rows=8};distribute-loop[passes]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %refused --passes='distribute-loop[softmax]{threads=48}' %s 2>&1 | %check=SIZE
// RUN: %refused --passes='block-shape[softmax]{x=128,y=1};distribute-loop[softmax]' %s 2>&1 | %check=FIXED
// RUN: %refused --passes='distribute-loop[chain]' %s 2>&1 | %check=CHAIN
// RUN: %refused --passes='distribute-loop[collide]' %s 2>&1 | %check=COLLIDE
// RUN: %refused --passes='distribute-loop[shift]' %s 2>&1 | %check=SHIFT
// RUN: %refused --passes='distribute-loop[find]' %s 2>&1 | %check=FIND
// RUN: %refused --passes='distribute-loop[plane]' %s 2>&1 | %check=PLANE
// RUN: %refused --passes='distribute-loop[watch]' %s 2>&1 | %check=WATCH
// SIZE: a block of 1 groups of 48 threads cannot be launched
// FIXED: the block shape is fixed already

__global__ void softmax(const float *x, float *y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float m = x[row * cols];
  for (int j = 1; j < cols; j++)
    m = fmaxf(m, x[row * cols + j]);
  float s = 1e-9f;
  for (int j = 0; j < cols; j++)
    s += expf(x[row * cols + j] - m);
  for (int j = 0; j < cols; j++)
    y[row * cols + j] = expf(x[row * cols + j] - m) / s;
}
// BLOCK: plan softmax: {{.*}}<<<(grid.x * block.x, 1, 1), (128, 1, 1), shared>>>
// BLOCK: when cols <= 2147483519
// BLOCK: when disjoint(x, 4 * {{.*}}, y, 4 * (cols * rows))
// BLOCK: __launch_bounds__(128)
// BLOCK: int row = blockIdx.x;
// BLOCK: if (row < rows) {
// BLOCK-NEXT: float m = x[row * cols];
// BLOCK-NEXT: for (int j = 1 + threadIdx.x; j < cols; j += 128) {
// BLOCK-NEXT: m = fmaxf(m, x[row * cols + j]);
// BLOCK-NEXT: }
// BLOCK-NEXT: __shared__ float m_of_warps[4];
// BLOCK-NEXT: for (int offset = 16; offset > 0; offset /= 2) {
// BLOCK-NEXT: float other = __shfl_xor_sync(0xffffffff, m, offset);
// BLOCK-NEXT: m = fmaxf(m, other);
// BLOCK-NEXT: }
// BLOCK-NEXT: if (threadIdx.x % 32 == 0) {
// BLOCK-NEXT: m_of_warps[threadIdx.x / 32] = m;
// BLOCK-NEXT: }
// BLOCK-NEXT: __syncthreads();
// BLOCK-NEXT: m = m_of_warps[0];
// BLOCK: float s = 1e-9f;
// Only one thread starts at what the sum starts at.
// BLOCK-NEXT: if (threadIdx.x != 0) {
// BLOCK-NEXT: s = 0.0f;
// BLOCK-NEXT: }
// BLOCK-NEXT: for (int j = threadIdx.x; j < cols; j += 128) {
// BLOCK: __syncthreads();
// BLOCK: for (int j = threadIdx.x; j < cols; j += 128) {
// BLOCK-NEXT: y[row * cols + j] = expf(x[row * cols + j] - m) / s;
// BLOCK-NOT: __syncthreads

// WARP: <<<(ceildiv(grid.x * block.x, 4), 1, 1), (32, 4, 1), shared>>>
// WARP: when rows <= grid.x * block.x
// WARP: int row = blockIdx.x * 4 + threadIdx.y;
// WARP: for (int j = 1 + threadIdx.x; j < cols; j += 32) {
// WARP-NOT: __shared__
// WARP-NOT: __syncthreads
// WARP: __syncwarp();
// WARP-NEXT: for (int j = threadIdx.x; j < cols; j += 32) {
// WARP-NEXT: y[row * cols + j]

// A bound from memory: nothing tells that the counter cannot overflow in larger steps, so a wider one counts.
__global__ void sparse(int rows, const int *start, const int *column, const float *value, const float *x, float *y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0;
    for (int k = start[row]; k < start[row + 1]; ++k)
      sum += value[k] * x[column[k]];
    y[row] = sum;
  }
}
// SPARSE: for (long long k_of_group = (long long)start[row] + threadIdx.x; k_of_group < start[row + 1]; k_of_group += 32) {
// SPARSE-NEXT: int k = k_of_group;
// SPARSE: __syncwarp();
// SPARSE-NEXT: if (threadIdx.x == 0) {
// SPARSE-NEXT: y[row] = sum;

// A loop around shared work runs in all threads;
// barriers keep its iterations, and what is written in between, in order.
__global__ void passes(float *a, float *norms, int n, int count) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int p = 0; p < count; ++p) {
    float norm = 0;
    for (int j = 0; j < n; ++j)
      norm += a[row * n + j] * a[row * n + j];
    norms[row] = norm;
    norms[row] += p;
  }
}
// PASSES: for (int p = 0; p < count; ++p) {
// PASSES-NEXT: float norm = 0;
// PASSES-NEXT: for (int j = threadIdx.x; j < n; j += 64) {
// PASSES: __syncthreads();
// PASSES: if (threadIdx.x == 0) {
// PASSES-NEXT: norms[row] = norm;
// PASSES-NEXT: norms[row] += p;
// PASSES-NEXT: }
// PASSES-NEXT: __syncthreads();
// PASSES-NEXT: }

__global__ void chain(const float *x, float *y, int n) { // each iteration needs the one before
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s = s * 0.5f + x[row * n + j];
  y[row] = s;
}
// CHAIN: what the loop computes in 's' is no sum, product or extreme alone

__global__ void collide(const float *x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; ++j)
    y[row * n + j / 2] = x[row * n + j];
}
// COLLIDE: iterations may write the same element of 'y'

__global__ void shift(float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 1; j < n; ++j)
    y[row * n + j] = y[row * n + j - 1];
}
// SHIFT: iterations may meet in 'y'

__global__ void find(const float *x, int *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int found = 0;
  for (int j = 0; j < n; ++j) {
    if (x[row * n + j] > 0) {
      found += j;
      break;
    }
  }
  y[row] = found;
}
// FIND: the loop may be left early

__global__ void plane(const float *x, float *y, int n) {
  int row = blockIdx.y * 4 + threadIdx.y % 4, col = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += x[row * n + j] * x[j * n + col];
  y[row * n + col] = s;
}
// PLANE: the kernel uses more than its global index along x

__global__ void watch(const volatile float *x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += x[row * n + j];
  y[row] = s;
}
// WATCH: the kernel reads volatile memory, which may differ between threads

// SITES: distribute-loop[softmax]{threads=256}
// SITES-NEXT: distribute-loop[softmax]{rows=8,threads=32}
// SITES-NOT: distribute-loop[{{chain|collide|shift|find|plane|watch}}]
