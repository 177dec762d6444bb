// thread-per-block refuses what one thread would do otherwise than the threads of a block.
// RUN: %refused --block=64x1x1 --passes='thread-per-block[draws]' %s 2>&1 | %check=DRAWS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[shuffled]' %s 2>&1 | %check=SHUFFLED
// RUN: %refused --block=64x1x1 --passes='thread-per-block[uniformShuffle]' %s 2>&1 | %check=UNIFORMSHUFFLE
// RUN: %refused --block=64x1x1 --passes='thread-per-block[lanes]' %s 2>&1 | %check=LANES
// RUN: %refused --block=64x1x1 --passes='thread-per-block[parts]' %s 2>&1 | %check=PARTS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[biased]' %s 2>&1 | %check=BIASED
// RUN: %refused --block=64x1x1 --passes='thread-per-block[mixed]' %s 2>&1 | %check=MIXED
// RUN: %refused --block=64x1x1 --passes='thread-per-block[shifted]' %s 2>&1 | %check=SHIFTED
// RUN: %refused --block=64x1x1 --passes='thread-per-block[leaves]' %s 2>&1 | %check=LEAVES
// RUN: %refused --block=64x1x1 --passes='thread-per-block[neighbours]' %s 2>&1 | %check=NEIGHBOURS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[firstPart]' %s 2>&1 | %check=FIRSTPART
// RUN: %refused --block=64x1x1 --passes='thread-per-block[counts]' %s 2>&1 | %check=COUNTS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[again]' %s 2>&1 | %check=AGAIN
// RUN: %refused --block=64x1x1 --passes='thread-per-block[ordered]' %s 2>&1 | %check=ORDERED
// RUN: %refused --block=64x1x1 --passes='thread-per-block[voted]' %s 2>&1 | %check=VOTED
// RUN: %refused --block=64x1x1 --passes='thread-per-block[lastBlock]' %s 2>&1 | %check=LASTBLOCK
// RUN: %refused --block=64x1x1 --passes='thread-per-block[registers]' %s 2>&1 | %check=REGISTERS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[structArrayLoop]' %s 2>&1 | %check=STRUCTARRAYLOOP
// RUN: %refused --block=64x1x1 --passes='thread-per-block[offsets]' %s 2>&1 | %check=OFFSETS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[sharedScalar]' %s 2>&1 | %check=SHAREDSCALAR
// RUN: %refused --block=64x1x1 --passes='thread-per-block[maxOne]' %s 2>&1 | %check=MAXONE
// RUN: %refused --block=64x1x1 --passes='thread-per-block[loopBreaks]' %s 2>&1 | %check=LOOPBREAKS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[firstReturns]' %s 2>&1 | %check=FIRSTRETURNS
// RUN: %refused --block=64x1x1 --passes='thread-per-block[condBreak]' %s 2>&1 | %check=CONDBREAK
// RUN: %refused --block=64x1x1 --passes='thread-per-block[narrowSum]' %s 2>&1 | %check=NARROWSUM
// RUN: %refused --block=64x1x1 --passes='thread-per-block[ptrLocal]' %s 2>&1 | %check=PTRLOCAL
// RUN: %refused --block=64x1x1 --passes='thread-per-block[atomicScalar]' %s 2>&1 | %check=ATOMICSCALAR
// RUN: %refused --block=64x1x1 --passes='thread-per-block[atomicFirst]' %s 2>&1 | %check=ATOMICFIRST
// RUN: %refused --block=64x1x1 --passes='thread-per-block[foldSwap]' %s 2>&1 | %check=FOLDSWAP
// RUN: %refused --block=64x1x1 --passes='thread-per-block[sharedInLoop]' %s 2>&1 | %check=SHAREDINLOOP
// a[0] becomes the sum of what the threads have stored.
#define SUM_OF_BLOCK                                                                                                   \
  for (int h = 32; h > 0; h /= 2) {                                                                                    \
    if (threadIdx.x < h)                                                                                               \
      a[threadIdx.x] += a[threadIdx.x + h];                                                                            \
    __syncthreads();                                                                                                   \
  }

__global__ void draws(int *count, float *x, int n) {
  while (atomicAdd(count, 1) < n)
    x[0] = 1;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    x[i] = 0;
}
// DRAWS: a condition that each thread asks has effects

// A warp's part by shuffles.
__global__ void shuffled(const float *x, float *out, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  for (int o = 16; o > 0; o /= 2)
    s += __shfl_down_sync(0xffffffff, s, o);
  if (threadIdx.x == 0)
    out[blockIdx.x] = s;
}
// SHUFFLED: understood
__global__ void uniformShuffle(const float *x, float *out, int n) {
  float s = x[0];
  s += __shfl_down_sync(0xffffffff, s, 1);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[i] = s;
}
// UNIFORMSHUFFLE: understood
__global__ void lanes(const float *x, float *out, int n) {
  unsigned m = __activemask();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[i] = m;
}
// LANES: understood
// Every thread's own part is stored.
__global__ void parts(const float *x, float *out, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  out[threadIdx.x] = s;
}
// PARTS: uses 's', of which every thread has a part
// The sum starts at something.
__global__ void biased(const float *x, float *out, int n, float bias) {
  __shared__ float a[64];
  float s = bias;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  a[threadIdx.x] = s;
  __syncthreads();
  SUM_OF_BLOCK
  if (threadIdx.x == 0)
    out[blockIdx.x] = a[0];
}
// BIASED: 's' does not start with what changes nothing
// Sums of maxima.
__global__ void mixed(const float *x, float *out, int n) {
  __shared__ float a[64];
  float m = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    m = fmaxf(m, x[i]);
  a[threadIdx.x] = m;
  __syncthreads();
  SUM_OF_BLOCK
  if (threadIdx.x == 0)
    out[blockIdx.x] = a[0];
}
// MIXED: 'm' is folded in another way than the block does
// What a thread has loaded it uses after others have stored.
__global__ void shifted(float *x) {
  float v = x[(threadIdx.x + 1) % 64];
  __syncthreads();
  x[threadIdx.x] = v;
}
// SHIFTED: differs between the threads of a block
__global__ void leaves(const float *x, float *out, int n) {
  if (threadIdx.x >= n)
    return;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[i] = x[i];
}
// LEAVES: differs between the threads of a block
__global__ void neighbours(const float *x, float *out) {
  __shared__ float a[64];
  a[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = a[63 - threadIdx.x];
}
// NEIGHBOURS: shared memory is used for more than folds
// The first thread's own sum.
__global__ void firstPart(const float *x, float *out, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  if (threadIdx.x == 0)
    out[blockIdx.x] = s;
}
// FIRSTPART: uses 's', of which every thread has a part
__global__ void counts(const int *x, int *out, int n) {
  int c = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (x[i] > 0)
      c++;
  }
  if (c > 3)
    atomicAdd(out, 1);
}
// COUNTS: uses 'c', of which every thread has a part
// The next part begins with a whole.
__global__ void again(const float *x, float *out, int n) {
  __shared__ float a[64];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  a[threadIdx.x] = s;
  __syncthreads();
  SUM_OF_BLOCK
  s = a[0];
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  __syncthreads();
  a[threadIdx.x] = s;
  __syncthreads();
  SUM_OF_BLOCK
  if (threadIdx.x == 0)
    out[blockIdx.x] = a[0];
}
// AGAIN: 's' does not start with what changes nothing
__global__ void ordered(const float *x, float *out, int n) {
  float last = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = x[i] - last;
    last = x[i];
  }
}
// ORDERED: what the loop computes in 'last' is no sum, product or extreme alone
__global__ void voted(const float *x, float *out, int n) {
  int any = __syncthreads_or(x[0] > 0);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[i] = any;
}
// VOTED: understood
__device__ unsigned tickets;
__global__ void lastBlock(const float *x, float *out, int n) {
  __shared__ bool last;
  __shared__ float a[64];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    s += x[i];
  a[threadIdx.x] = s;
  __syncthreads();
  SUM_OF_BLOCK
  if (threadIdx.x == 0) {
    out[blockIdx.x] = a[0];
    __threadfence();
    last = atomicAdd(&tickets, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    float t = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x)
      t += out[i];
    a[threadIdx.x] = t;
    __syncthreads();
    SUM_OF_BLOCK
    if (threadIdx.x == 0)
      out[0] = a[0];
  }
}
// LASTBLOCK: understood

// What each thread has for itself.
struct S {
  float a[4];
  int n;
};
__global__ void registers(const float *x, float *y, int n) {
  float v[4];
  int k = 0;
  for (int i = threadIdx.x; i < 256; i += 64) {
    v[i / 64] = x[blockIdx.x * 256 + i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 64)
    y[blockIdx.x * 256 + i] = v[i / 64] * n;
}
// REGISTERS: each thread has its own

__global__ void structArrayLoop(const float *x, float *y, int n) {
  S s;
  for (int k = 0; k < 4; ++k)
    s.a[k] = 0;
  for (int i = threadIdx.x; i < n; i += 64)
    s.a[i / 64 % 4] += x[i];
  __syncthreads();
  for (int k = 0; k < 4; ++k)
    y[threadIdx.x + k * 64] = s.a[k];
}
// STRUCTARRAYLOOP: each thread has its own

__global__ void offsets(float *y, int n) {
  int off = blockIdx.x * n;
  for (int r = 0; r < n; ++r) {
    int i = off + threadIdx.x;
    off += 64;
    y[i] = 1;
    __syncthreads();
  }
}
// OFFSETS: differs between the threads of a block

__global__ void sharedScalar(const float *x, float *y, int n) {
  __shared__ float m;
  if (threadIdx.x == 0)
    m = x[0];
  __syncthreads();
  float v = x[threadIdx.x] * m;
  __syncthreads();
  if (threadIdx.x == 0)
    m = x[1];
  __syncthreads();
  y[threadIdx.x + blockIdx.x * 64] = v + m;
}
// SHAREDSCALAR: differs between the threads of a block

__global__ void maxOne(const float *x, float *out, int n) {
  __shared__ float a[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  a[threadIdx.x] = x[i];
  __syncthreads();
  for (int h = 32; h > 0; h /= 2) {
    if (threadIdx.x < h)
      a[threadIdx.x] = fmaxf(a[threadIdx.x], a[threadIdx.x + h]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = a[0];
}
// MAXONE: begins with nothing that could be written down

__global__ void loopBreaks(const float *x, float *y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (x[i] < 0)
      break;
    y[i] = x[i];
  }
}
// LOOPBREAKS: a thread may leave the loop early

__global__ void firstReturns(float *x, float *out, int n) {
  if (threadIdx.x == 0) {
    out[blockIdx.x] = 5;
    return;
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    x[blockIdx.x * n + i] = 1;
}
// FIRSTRETURNS: the first thread goes another way than the others

__global__ void condBreak(float *x, int n) {
  __syncthreads();
  for (int r = 0; r < n; ++r) {
    if (x[threadIdx.x] > r)
      break;
    x[r * 64 + threadIdx.x + 64] = 1;
  }
}
// CONDBREAK: differs between the threads of a block

__global__ void narrowSum(const int *x, long long *y, int n) {
  __shared__ long long a[64];
  int s = 0;
  for (int i = threadIdx.x; i < n; i += 64)
    s += x[i];
  a[threadIdx.x] = s;
  __syncthreads();
  SUM_OF_BLOCK
  if (threadIdx.x == 0)
    y[blockIdx.x] = a[0];
}
// NARROWSUM: folded in another way than the block does

__global__ void ptrLocal(const float *x, float *y, int n) {
  float v = 0, w = 0;
  float *q = n > 3 ? &v : &w;
  *q = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = v + w;
}
// PTRLOCAL: may lead to what each thread has for itself

__global__ void atomicScalar(const float *x, int *y, int n) {
  __shared__ int c;
  if (threadIdx.x == 0)
    c = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 64)
    if (x[i] > 0)
      atomicAdd(&c, 1);
  __syncthreads();
  if (threadIdx.x == 0)
    y[blockIdx.x] = c;
}
// ATOMICSCALAR: shared memory is used for more than folds

__global__ void atomicFirst(const float *x, float *y, int n) {
  __shared__ float a[64];
  a[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  SUM_OF_BLOCK
  if (x[threadIdx.x] > 5)
    atomicAdd(&a[0], 1.f);
  __syncthreads();
  if (threadIdx.x == 0)
    y[blockIdx.x] = a[0];
}
// ATOMICFIRST: another element of

__global__ void foldSwap(const float *x, float *y, int n) {
  __shared__ float a[64];
  float m = -1e30f;
  for (int i = threadIdx.x; i < n; i += 64)
    m = fmaxf(m, x[i]);
  if (n > 500) {
    m = 1e30f;
    for (int i = threadIdx.x; i < n; i += 64)
      m = fminf(m, x[i]);
  }
  a[threadIdx.x] = m;
  __syncthreads();
  for (int h = 32; h > 0; h /= 2) {
    if (threadIdx.x < h)
      a[threadIdx.x] = fminf(a[threadIdx.x], a[threadIdx.x + h]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    y[blockIdx.x] = a[0];
}
// FOLDSWAP: partial results leave a condition or a loop

__global__ void sharedInLoop(const float *x, float *y, int n) {
  for (int r = 0; r < n; ++r) {
    __shared__ float prev;
    if (threadIdx.x == 0) {
      y[r] = r ? prev : 0;
      prev = x[r];
    }
    __syncthreads();
  }
}
// SHAREDINLOOP: shared memory is used for more than folds
