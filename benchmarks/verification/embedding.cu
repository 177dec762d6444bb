//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <vector>

// forward: out[i, :] = table[ids[i], :], zeros for a negative id (padding)
// backward: dtable[ids[i], :] += dout[i, :] in float, nothing for padding; dtable may already hold something
typedef __nv_bfloat16 bf16;

//--- original
__global__ void gather_kernel(const bf16 *table, const int *ids, bf16 *out, int n, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * dim)
    return;
  int id = ids[i / dim];
  out[i] = id >= 0 ? table[id * dim + i % dim] : __float2bfloat16(0.0f);
}

__global__ void scatter_kernel(const bf16 *dout, const int *ids, float *dtable, int n, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * dim)
    return;
  int id = ids[i / dim];
  if (id >= 0)
    atomicAdd(&dtable[id * dim + i % dim], __bfloat162float(dout[i]));
}

void run(const bf16 *table, const int *ids, const bf16 *dout, bf16 *out, float *dtable, int n, int vocab, int dim) {
  if (n <= 0 || dim <= 0)
    return;
  int blocks = (n * dim + 127) / 128;
  gather_kernel<<<blocks, 128>>>(table, ids, out, n, dim);
  scatter_kernel<<<blocks, 128>>>(dout, ids, dtable, n, dim);
}

//--- packed128-shared-accumulators
#define DIVUP(a, b) (((a) + (b) - 1) / (b))

template <typename T> __device__ __forceinline__ T zero() { return T(0); }
template <> __device__ __forceinline__ uint4 zero<uint4>() { return make_uint4(0u, 0u, 0u, 0u); }

// T: 8 (uint4), 2 (unsigned) or 1 (unsigned short) bf16 at once, only moved, never looked at
template <typename T>
__global__ void gather_packed(const T *__restrict__ table, const int *__restrict__ ids, T *__restrict__ out, unsigned n,
                              unsigned per_row) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * per_row)
    return;
  int id = __ldg(ids + i / per_row);
  out[i] = id < 0 ? zero<T>() : table[(size_t)id * per_row + i % per_row];
}

// the whole gradient table fits in shared memory: blocks collect their tokens there and add the result once
__global__ void scatter_shared(const bf16 *dout, const int *ids, float *dtable, int n, int vocab, int dim) {
  extern __shared__ float acc[];
  for (int i = threadIdx.x; i < vocab * dim; i += blockDim.x)
    acc[i] = 0.0f;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n * dim; i += gridDim.x * blockDim.x) {
    int id = ids[i / dim];
    if (id >= 0)
      atomicAdd(acc + id * dim + i % dim, __bfloat162float(dout[i]));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < vocab * dim; i += blockDim.x)
    if (acc[i] != 0.0f)
      atomicAdd(dtable + i, acc[i]);
}

// dim even: a thread takes one column pair of 4 tokens in turn and merges neighbours with equal ids
__global__ void scatter_pairs(const __nv_bfloat162 *dout, const int *ids, float *dtable, int n, int pairs) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= pairs)
    return;
  int first = blockIdx.y * 4, last = min(first + 4, n), cur = -1;
  float2 sum = make_float2(0.0f, 0.0f);
  for (int t = first; t <= last; t++) {
    int id = t < last ? ids[t] : -1;
    if (id != cur || t == last) {
      if (cur >= 0) {
        atomicAdd(dtable + (size_t)cur * pairs * 2 + 2 * p, sum.x);
        atomicAdd(dtable + (size_t)cur * pairs * 2 + 2 * p + 1, sum.y);
      }
      sum = make_float2(0.0f, 0.0f);
      cur = id;
    }
    if (id >= 0) {
      float2 f = __bfloat1622float2(dout[(size_t)t * pairs + p]);
      sum.x += f.x;
      sum.y += f.y;
    }
  }
}

__global__ void scatter_scalar(const bf16 *dout, const int *ids, float *dtable, int n, int dim) {
  int t = blockIdx.x * blockDim.y + threadIdx.y;
  if (t >= n)
    return;
  int id = ids[t];
  if (id < 0)
    return;
  for (int c = threadIdx.x; c < dim; c += 32)
    atomicAdd(dtable + (size_t)id * dim + c, __bfloat162float(dout[(size_t)t * dim + c]));
}

void run(const bf16 *table, const int *ids, const bf16 *dout, bf16 *out, float *dtable, int n, int vocab, int dim) {
  if (n <= 0 || dim <= 0)
    return;
  uintptr_t bits = (uintptr_t)table | (uintptr_t)out;
  if (dim % 8 == 0 && bits % 16 == 0)
    gather_packed<uint4><<<DIVUP(n * (dim / 8), 128), 128>>>((const uint4 *)table, ids, (uint4 *)out, n, dim / 8);
  else if (dim % 2 == 0 && bits % 4 == 0)
    gather_packed<unsigned>
        <<<DIVUP(n * (dim / 2), 128), 128>>>((const unsigned *)table, ids, (unsigned *)out, n, dim / 2);
  else
    gather_packed<unsigned short>
        <<<DIVUP(n * dim, 128), 128>>>((const unsigned short *)table, ids, (unsigned short *)out, n, dim);
  size_t bytes = (size_t)vocab * dim * sizeof(float);
  if (bytes <= 16 * 1024 && n > 4 * vocab)
    scatter_shared<<<(n * dim < 8192 ? 2 : 8), 256, bytes>>>(dout, ids, dtable, n, vocab, dim);
  else if (dim % 2 == 0 && (uintptr_t)dout % 4 == 0)
    scatter_pairs<<<dim3(DIVUP(dim / 2, 64), DIVUP(n, 4)), 64>>>((const __nv_bfloat162 *)dout, ids, dtable, n, dim / 2);
  else
    scatter_scalar<<<DIVUP(n, 4), dim3(32, 4)>>>(dout, ids, dtable, n, dim);
}

//--- counting-sort-segments
// gradient without float atomics: tokens are sorted by id (count, scan, fill), one warp adds up each table row
__global__ void gather_warp(const bf16 *table, const int *ids, bf16 *out, int n, int dim, bool quads) {
  const int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
  for (int t = (blockIdx.x * blockDim.x + threadIdx.x) / 32; t < n; t += warps) {
    const int id = ids[t];
    const bf16 *src = table + (size_t)max(id, 0) * dim; // not used for a negative id
    bf16 *dst = out + (size_t)t * dim;
    if (quads) {
      for (int c = lane * 4; c < dim; c += 128)
        *(uint2 *)(dst + c) = id < 0 ? make_uint2(0, 0) : *(const uint2 *)(src + c);
    } else {
      for (int c = lane; c < dim; c += 32)
        dst[c] = id < 0 ? __float2bfloat16(0.0f) : src[c];
    }
  }
}

__global__ void count_ids(const int *ids, int *count, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n && ids[t] >= 0)
    atomicAdd(&count[ids[t]], 1);
}

// exclusive scan over the vocabulary by one block of 256; start[vocab] becomes the number of tokens that count
__global__ void scan_counts(const int *count, int *start, int *next, int vocab) {
  __shared__ int warp_total[8];
  const int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  int carry = 0;
  for (int base = 0; base < vocab; base += 256) {
    const int i = base + threadIdx.x, c = i < vocab ? count[i] : 0;
    int v = c;
    for (int o = 1; o < 32; o *= 2) {
      const int u = __shfl_up_sync(0xffffffffu, v, o);
      if (lane >= o)
        v += u;
    }
    if (lane == 31)
      warp_total[w] = v;
    __syncthreads();
    int before = 0, all = 0;
    for (int j = 0; j < 8; j++) {
      if (j < w)
        before += warp_total[j];
      all += warp_total[j];
    }
    if (i < vocab)
      start[i] = next[i] = carry + before + v - c;
    carry += all;
    __syncthreads();
  }
  if (threadIdx.x == 0)
    start[vocab] = carry;
}

__global__ void fill_order(const int *ids, int *next, int *order, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n && ids[t] >= 0)
    order[atomicAdd(&next[ids[t]], 1)] = t;
}

__global__ void sum_segments(const bf16 *dout, const int *start, const int *order, float *dtable, int vocab, int dim) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= vocab)
    return;
  const int a = start[row], b = start[row + 1];
  if (a == b)
    return;
  for (int c = threadIdx.x; c < dim; c += 32) {
    float s0 = 0.0f, s1 = 0.0f;
    int j = a;
    for (; j + 1 < b; j += 2) {
      s0 += __bfloat162float(dout[(size_t)order[j] * dim + c]);
      s1 += __bfloat162float(dout[(size_t)order[j + 1] * dim + c]);
    }
    if (j < b)
      s0 += __bfloat162float(dout[(size_t)order[j] * dim + c]);
    dtable[(size_t)row * dim + c] += s0 + s1;
  }
}

// few tokens: no sorting, the first token of each id collects the later ones with the same id
__global__ void sum_first_owner(const bf16 *dout, const int *ids, float *dtable, int n, int dim) {
  extern __shared__ int sid[];
  for (int t = threadIdx.x; t < n; t += blockDim.x)
    sid[t] = ids[t];
  __syncthreads();
  const int mine = sid[blockIdx.x];
  if (mine < 0)
    return;
  for (int t = 0; t < (int)blockIdx.x; t++)
    if (sid[t] == mine)
      return; // uniform: another block owns this id
  for (int c = threadIdx.x; c < dim; c += blockDim.x) {
    float s = 0.0f;
    for (int t = blockIdx.x; t < n; t++)
      if (sid[t] == mine)
        s += __bfloat162float(dout[(size_t)t * dim + c]);
    dtable[(size_t)mine * dim + c] += s;
  }
}

void run(const bf16 *table, const int *ids, const bf16 *dout, bf16 *out, float *dtable, int n, int vocab, int dim) {
  if (n <= 0 || dim <= 0)
    return;
  const bool quads = dim % 4 == 0 && (((uintptr_t)table | (uintptr_t)out) & 7) == 0;
  gather_warp<<<(n < 256 ? (n + 3) / 4 : 64), 128>>>(table, ids, out, n, dim, quads);
  if (vocab <= 0)
    return;
  if (n <= 64) {
    sum_first_owner<<<n, 64, n * sizeof(int)>>>(dout, ids, dtable, n, dim);
    return;
  }
  int *scratch;
  cudaMalloc(&scratch, (3 * (size_t)vocab + 1 + n) * sizeof(int));
  int *count = scratch, *next = count + vocab, *start = next + vocab, *order = start + vocab + 1;
  cudaMemset(count, 0, vocab * sizeof(int));
  count_ids<<<(n + 127) / 128, 128>>>(ids, count, n);
  scan_counts<<<1, 256>>>(count, start, next, vocab);
  fill_order<<<(n + 127) / 128, 128>>>(ids, next, order, n);
  sum_segments<<<(vocab + 3) / 4, dim3(32, 4)>>>(dout, start, order, dtable, vocab, dim);
  cudaFree(scratch);
}

//--- main
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 90, vocab = argc > 2 ? atoi(argv[2]) : 21, dim = argc > 3 ? atoi(argv[3]) : 24;
  if (n < 0 || vocab < 0 || dim < 0)
    n = vocab = dim = 0;
  size_t nt = (size_t)vocab * dim, no = (size_t)n * dim;
  std::vector<bf16> table(nt), dout(no), out(no);
  std::vector<float> grad(nt);
  std::vector<int> ids(n);
  uint64_t s = 42;
  auto rnd = [&s](int m) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    return (int)((s >> 20) % m);
  };
  for (auto &v : table)
    v = __float2bfloat16((rnd(4001) - 2000) / 500.0f);
  for (auto &v : dout)
    v = __float2bfloat16((rnd(2001) - 900) / 300.0f);
  for (auto &v : grad)
    v = rnd(100) / 64.0f - 0.5f;
  for (auto &v : ids)
    v = vocab == 0 || rnd(8) == 0 ? -1 : rnd(2) ? rnd(vocab) : rnd((vocab + 3) / 4);
  bf16 *dt, *dd, *dv;
  float *dg;
  int *di;
  cudaMalloc(&dt, nt * 2 + 2), cudaMalloc(&dd, no * 2 + 2), cudaMalloc(&dv, no * 2 + 2);
  cudaMalloc(&dg, nt * 4 + 4), cudaMalloc(&di, n * 4 + 4);
  cudaMemcpy(dt, table.data(), nt * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(dd, dout.data(), no * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(dg, grad.data(), nt * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(di, ids.data(), n * 4, cudaMemcpyHostToDevice);
  run(dt, di, dd, dv, dg, n, vocab, dim);
  cudaMemcpy(out.data(), dv, no * 2, cudaMemcpyDeviceToHost);
  cudaMemcpy(grad.data(), dg, nt * 4, cudaMemcpyDeviceToHost);
  double so = 0, sg = 0;
  for (size_t i = 0; i < no; i++)
    so += __bfloat162float(out[i]) * (1 + i % 7);
  for (size_t i = 0; i < nt; i++)
    sg += grad[i] * (1 + i % 7);
  printf("out %.4f grad %.4f\n", so, sg);
  for (size_t i = 0; i < nt; i += nt / 8 + 1)
    printf("grad[%zu] %.5f\n", i, grad[i]);
  return 0;
}
