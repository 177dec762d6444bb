//--- common
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// Segment s covers val[offs[s]] .. val[offs[s + 1] - 1]; offs has nseg + 1 ascending entries
// between 0 and total. out[s] = sum of the segment, 0 if empty.
//--- original
__global__ void segsum(const double *val, const int *offs, int nseg, double *out) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= nseg)
    return;
  double sum = 0.0;
  for (int i = offs[s]; i < offs[s + 1]; i++)
    sum += val[i];
  out[s] = sum;
}

void run(const double *val, int total, const int *offs, int nseg, double *out) {
  if (nseg <= 0)
    return;
  segsum<<<(nseg + 63) / 64, 64>>>(val, offs, nseg, out);
}
//--- by-average-length
#define WARP_ALL 0xffffffffu
enum class Shape { Thread, Warp, Block };

__global__ void seg_thread(const double *__restrict__ val, const int *__restrict__ offs, int nseg,
                           double *__restrict__ out) {
  for (int s = blockIdx.x * blockDim.x + threadIdx.x; s < nseg; s += gridDim.x * blockDim.x) {
    int i = offs[s];
    const int end = offs[s + 1];
    double a = 0.0, b = 0.0;
    for (; i + 1 < end; i += 2) {
      a += val[i];
      b += val[i + 1];
    }
    if (i < end)
      a += val[i];
    out[s] = a + b;
  }
}

__device__ __forceinline__ double warp_sum(double v) {
#pragma unroll
  for (int d = 16; d; d >>= 1)
    v += __shfl_down_sync(WARP_ALL, v, d);
  return v;
}

// Strided sum of val[begin, end) by `step` threads; the even-aligned middle as double2
__device__ double strided_sum(const double *__restrict__ val, int begin, int end, int me, int step) {
  double sum = 0.0;
  if (((uintptr_t)(val + begin) & 15) && begin < end) {
    if (me == 0)
      sum += val[begin];
    ++begin;
  }
  const double2 *v2 = reinterpret_cast<const double2 *>(val + begin);
  const int pairs = begin < end ? (end - begin) / 2 : 0;
  for (int k = me; k < pairs; k += step) {
    const double2 t = v2[k];
    sum += t.x + t.y;
  }
  if (me == 0 && begin + 2 * pairs < end)
    sum += val[end - 1];
  return sum;
}

__global__ void seg_warp(const double *__restrict__ val, const int *__restrict__ offs, int nseg,
                         double *__restrict__ out) {
  const int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  for (int s = (blockIdx.x * blockDim.x + threadIdx.x) >> 5; s < nseg; s += warps) {
    const double sum = warp_sum(strided_sum(val, __ldg(offs + s), __ldg(offs + s + 1), lane, 32));
    if (lane == 0)
      out[s] = sum;
  }
}

template <int BLOCK>
__global__ void seg_block(const double *__restrict__ val, const int *__restrict__ offs, int nseg,
                          double *__restrict__ out) {
  __shared__ double part[BLOCK / 32];
  for (int s = blockIdx.x; s < nseg; s += gridDim.x) {
    const double w = warp_sum(strided_sum(val, offs[s], offs[s + 1], threadIdx.x, BLOCK));
    if ((threadIdx.x & 31) == 0)
      part[threadIdx.x >> 5] = w;
    __syncthreads();
    if (threadIdx.x == 0) {
      double sum = part[0];
#pragma unroll
      for (int k = 1; k < BLOCK / 32; ++k)
        sum += part[k];
      out[s] = sum;
    }
    __syncthreads();
  }
}

static Shape pick(int total, int nseg) {
  const int avg = total / nseg;
  return avg <= 6 ? Shape::Thread : avg <= 400 ? Shape::Warp : Shape::Block;
}

void run(const double *val, int total, const int *offs, int nseg, double *out) {
  if (nseg <= 0)
    return;
  switch (pick(total, nseg)) {
  case Shape::Thread: {
    const int b = (nseg - 1) / 128 + 1;
    seg_thread<<<(b < 1024 ? b : 1024), 128>>>(val, offs, nseg, out);
    break;
  }
  case Shape::Warp: {
    const int b = (nseg - 1) / 4 + 1;
    seg_warp<<<(b < 65535 ? b : 65535), 128>>>(val, offs, nseg, out);
    break;
  }
  case Shape::Block:
    if (total / nseg < 2000)
      seg_block<128><<<(nseg < 65535 ? nseg : 65535), 128>>>(val, offs, nseg, out);
    else
      seg_block<512><<<(nseg < 65535 ? nseg : 65535), 512>>>(val, offs, nseg, out);
    break;
  }
}
//--- element-parallel
#define RANGE 32   /* elements per lane in the element-parallel kernel */
#define PIECE 2048 /* elements per block in the few-segments path */

__global__ void clear_out(double *out, int nseg) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nseg)
    out[i] = 0.0;
}

// last s in [0, nseg) with offs[s] <= i; i is at least offs[0]
__device__ int segment_of(const int *offs, int nseg, int i) {
  int lo = 0, hi = nseg - 1;
  while (lo < hi) {
    int mid = lo + (hi - lo + 1) / 2;
    if (offs[mid] <= i)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

// A warp walks over 32 * RANGE elements, 32 at a time. A segmented suffix sum over the lanes leaves the
// sum of every run of equal segments in its first lane, which adds it to the result.
__global__ void seg_elements(const double *val, const int *offs, int nseg, double *out) {
  const int lane = threadIdx.x & 31, first = offs[0], last = offs[nseg];
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int begin = first + warp * 32 * RANGE;
  if (begin >= last)
    return;
  const int end = last - begin > 32 * RANGE ? begin + 32 * RANGE : last;
  int seg = -1;
  for (int base = begin; base < end; base += 32) {
    const int i = base + lane;
    double v = 0.0;
    if (i < end) {
      v = val[i];
      if (seg < 0)
        seg = segment_of(offs, nseg, i);
      else
        while (seg + 1 < nseg && offs[seg + 1] <= i)
          seg++;
    }
    const int key = i < end ? seg : -1;
    for (int d = 1; d < 32; d <<= 1) {
      const double u = __shfl_down_sync(0xffffffffu, v, d);
      const int k = __shfl_down_sync(0xffffffffu, key, d);
      if (lane + d < 32 && k == key)
        v += u;
    }
    const int left = __shfl_up_sync(0xffffffffu, key, 1);
    if (key >= 0 && (lane == 0 || left != key))
      atomicAdd(out + key, v);
    __syncwarp();
  }
}

// blockIdx.y: segment, blockIdx.x: every gridDim.x-th piece of it
__global__ void few_pieces(const double *val, const int *offs, double *part) {
  __shared__ double sh[256];
  const int end = offs[blockIdx.y + 1];
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  for (int b = offs[blockIdx.y] + blockIdx.x * PIECE; b < end; b += gridDim.x * PIECE) {
    const int stop = end - b < PIECE ? end : b + PIECE;
    int i = b + threadIdx.x;
    for (; i + 768 < stop; i += 1024) {
#pragma unroll
      for (int k = 0; k < 4; k++)
        sum[k] += val[i + 256 * k];
    }
    for (; i < stop; i += 256)
      sum[0] += val[i];
  }
  sh[threadIdx.x] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  __syncthreads();
  for (int w = 128; w > 0; w >>= 1) {
    if (threadIdx.x < w)
      sh[threadIdx.x] += sh[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    part[blockIdx.y * gridDim.x + blockIdx.x] = sh[0];
}

__global__ void few_finish(const double *part, int per, double *out) {
  double s = 0.0;
  for (int k = threadIdx.x; k < per; k += 32)
    s += part[blockIdx.x * per + k];
  for (int d = 16; d > 0; d >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, d);
  if (threadIdx.x == 0)
    out[blockIdx.x] = s;
}

void run(const double *val, int total, const int *offs, int nseg, double *out) {
  if (nseg <= 0)
    return;
  if (nseg <= 4 && total >= 4096) {
    int per = (total + PIECE - 1) / PIECE;
    if (per > 64)
      per = 64;
    double *part;
    cudaMalloc(&part, nseg * per * sizeof(double));
    few_pieces<<<dim3(per, nseg), 256>>>(val, offs, part);
    few_finish<<<nseg, 32>>>(part, per, out);
    cudaFree(part);
    return;
  }
  clear_out<<<(nseg + 255) / 256, 256>>>(out, nseg);
  if (total <= 0)
    return;
  int warps = (total - 1) / (32 * RANGE) + 1;
  seg_elements<<<(warps + 3) / 4, 128>>>(val, offs, nseg, out);
}
//--- main
// usage: prog [nseg] [typical length] [element offset of val]
int main(int argc, char **argv) {
  int nseg = argc > 1 ? atoi(argv[1]) : 500, len = argc > 2 ? atoi(argv[2]) : 9;
  int off = argc > 3 ? atoi(argv[3]) : 0;
  if (nseg < 0 || len < 0 || off < 0)
    return 1;
  int *ho = (int *)malloc((nseg + 1) * sizeof(int));
  unsigned s = 20240607u;
  ho[0] = 0;
  for (int k = 0; k < nseg; k++) {
    s = s * 1664525u + 1013904223u;
    int l = (s >> 28) < 3 ? 0 : (int)((s >> 9) % (unsigned)(2 * len + 1));
    ho[k + 1] = ho[k] + ((s >> 28) == 15 ? l + 5 * len : l);
  }
  int total = ho[nseg];
  double *hv = (double *)malloc((total + 1) * sizeof(double)), *hr = (double *)malloc((nseg + 1) * sizeof(double));
  for (int i = 0; i < total; i++) {
    s = s * 1664525u + 1013904223u;
    hv[i] = ((int)(s >> 7) - 16000000) / 1048576.0;
  }
  double *dv, *dr;
  int *dof;
  cudaMalloc(&dv, (total + off + 1) * sizeof(double));
  cudaMalloc(&dr, (nseg + 1) * sizeof(double));
  cudaMalloc(&dof, (nseg + 1) * sizeof(int));
  cudaMemset(dr, 0xff, nseg * sizeof(double));
  cudaMemset(dr + nseg, 0, sizeof(double));
  cudaMemcpy(dv + off, hv, total * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(dof, ho, (nseg + 1) * sizeof(int), cudaMemcpyHostToDevice);
  run(dv + off, total, dof, nseg, dr);
  cudaMemcpy(hr, dr, (nseg + 1) * sizeof(double), cudaMemcpyDeviceToHost);
  double all = 0, w = 0;
  for (int k = 0; k < nseg; k++) {
    all += hr[k];
    w += hr[k] * (1 + k % 8);
  }
  printf("nseg %d total %d sum %.6f weighted %.6f guard %g\n", nseg, total, all, w, hr[nseg]);
  for (int k = 0; k < nseg; k += nseg / 6 + 1)
    printf("seg %d (%d): %.6f\n", k, ho[k + 1] - ho[k], hr[k]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
