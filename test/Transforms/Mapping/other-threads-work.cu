// What keeps a thread from doing another thread's work, or a part of it: state of its own that would carry over, memory
// that the analysis cannot place, values that depend on who computes them.
// RUN: %refused --passes='grid-stride[changes]' %s 2>&1 | %check=CHANGES
// RUN: %refused --passes='grid-stride[moves]' %s 2>&1 | %check=MOVES
// RUN: %refused --passes='grid-stride[counts]' %s 2>&1 | %check=COUNTS
// RUN: %refused --passes='distribute-loop[counted]' %s 2>&1 | %check=COUNTED
// RUN: %refused --passes='distribute-loop[condition]' %s 2>&1 | %check=CONDITION
// RUN: %refused --passes='distribute-loop[truncates]' %s 2>&1 | %check=TRUNCATES
// RUN: %refused --passes='grid-stride[asks]' %s 2>&1 | %check=ASKS
// RUN: %refused --passes='transpose-through-shared[looked]' %s 2>&1 | %check=LOOKED
// RUN: %refused --passes='block-shape[own]{x=128,y=1};privatize-atomic[own:low]' %s 2>&1 | %check=OWN
// RUN: %refused --block=128x1 --passes='block-shape[beside]{x=128,y=1};privatize-atomic[beside:sum]' %s 2>&1 | %check=BESIDE
// RUN: %opt --passes='distribute-loop[unequal]{threads=256}' %s | %check=UNEQUAL
// RUN: %opt --passes='distribute-loop[narrow]{threads=256}' %s | %check=NARROW
// RUN: %opt --passes='distribute-loop[leaves]{threads=256}' %s | %check=LEAVES

__global__ void changes(float *x, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    while (f < x[i])
      f *= 2;
    x[i] = f;
  }
}
// CHANGES: the kernel changes its parameter 'f'

__global__ void moves(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    for (int k = 0; k < 3; ++k)
      x += i;
    x[0] = 0;
  }
}
// MOVES: the kernel changes its parameter 'x'

__device__ int hits;
__global__ void counts(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&hits, 1);
  if (i < n)
    x[i] = 0;
}
// COUNTS: nothing bounds the global index of all that the kernel does

__global__ void counted(const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += x[i * n + j];
  if (s > 0)
    atomicAdd(&hits, 1);
}
// COUNTED: may access memory in ways that are not understood

__global__ void condition(const float *x, float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += x[i * n + j];
  if ((y[i] += s) > 1)
    z[i] = s;
}
// CONDITION: writes memory in a condition

__global__ void truncates(const float *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 100;
  for (int j = 0; j < n; ++j)
    s += x[i * n + j];
  y[i] = s;
}
// TRUNCATES: what the loop computes in 's' is no sum, product or extreme alone

__device__ float lane() { return threadIdx.x % 32; }
__global__ void asks(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = lane();
}
// ASKS: the kernel uses more than its global index along x

__global__ void looked(const int *row, const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    int r = row[y];
    out[r * w + x] = in[x * h + y];
  }
}
// LOOKED: where the result goes depends on more than indices

// The user's own function of that name may do anything.
__device__ __noinline__ float atomicMin(float *at, float value) {
  return *at = value;
}
__global__ void own(const float *x, float *low, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicMin(low, x[i]);
}
// OWN: {{threads work together|not fixed|may access memory|is not updated by atomics}}

__global__ void beside(const float *x, float *low, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicMin(low, x[i]);
    atomicAdd(sum, x[i]);
  }
}
// BESIDE: may access memory in ways that are not understood

// Steps of the group would pass an end that a loop meets exactly.
__global__ void unequal(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j != 128; ++j)
    s += x[i * 128 + j];
  y[i] = s;
}
// UNEQUAL: for (int j = threadIdx.x; j < 128; j += 256) {

// Steps of the group would not fit the counter.
__global__ void narrow(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (unsigned char j = 0; j < 200; ++j)
    s += x[i * 200 + j];
  y[i] = s;
}
// NARROW: for (long long j_of_group = threadIdx.x; j_of_group < 200; j_of_group += 256) {
// NARROW-NEXT: unsigned char j = j_of_group;

// Whoever leaves the loop has not met the barrier at its end.
__global__ void leaves(const float *__restrict__ a, float *__restrict__ y, float *__restrict__ out, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int p = 0; p < n; ++p) {
    float s = 0;
    for (int j = 0; j < n; ++j)
      s += a[row * n + j];
    y[row] = s;
    if (s < 1)
      break;
  }
  for (int j = 0; j < n; ++j)
    out[row * n + j] = a[row * n + j] / y[row];
}
// LEAVES: break;
// LEAVES: __syncthreads();
// LEAVES-NEXT: }
// LEAVES-NEXT: __syncthreads();
// LEAVES-NEXT: for (int j = threadIdx.x; j < n; j += 256) {
