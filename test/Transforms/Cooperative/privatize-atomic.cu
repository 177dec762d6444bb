// privatize-atomic: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='grid-stride[total]{x=256,blocks=264};privatize-atomic[total:sum]' %s | %check=SUM
// RUN: %opt --passes='block-shape[extremes]{x=128,y=1};privatize-atomic[extremes:low];privatize-atomic[extremes:high]' %s | %check=EXTREMES
// RUN: %opt --passes='grid-stride[count]{x=256,blocks=264};privatize-atomic[count:bins]{bins=256}' %s | %check=TABLE
// RUN: %plan --passes='block-shape[then]{x=128,y=1};privatize-atomic[then:sum]' %s | %check=THEN
// RUN: %plan --passes='block-shape[mean]{x=128,y=1};privatize-atomic[mean:result];block-shape[own]{x=128,y=1};privatize-atomic[own:result];block-shape[single]{x=128,y=1};privatize-atomic[single:result]' %s | %check=MEAN
// RUN: optiml-opt --emit --passes='grid-stride[total];privatize-atomic[total:sum];grid-stride[count];privatize-atomic[count:bins]{bins=256};block-shape[extremes]{x=128,y=1};privatize-atomic[extremes:low];privatize-atomic[extremes:high]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %refused --passes='privatize-atomic[total:sum]' %s 2>&1 | %check=SHAPE
// RUN: %refused --passes='block-shape[total]{x=100,y=1};privatize-atomic[total:sum]' %s 2>&1 | %check=WARPS
// RUN: %refused --passes='block-shape[count]{x=128,y=1};privatize-atomic[count:bins]' %s 2>&1 | %check=DIFFERS
// RUN: %refused --passes='block-shape[read]{x=128,y=1};privatize-atomic[read:sum]' %s 2>&1 | %check=READ
// RUN: %refused --passes='grid-stride[total];privatize-atomic[total:sum];privatize-atomic[total:sum]' %s 2>&1 | %check=TWICE
// RUN: %refused --passes='grid-stride[count];privatize-atomic[count:bins]{bins=20000}' %s 2>&1 | %check=SIZE
// SHAPE: the block shape is not fixed yet
// WARPS: a block of 100x1x1 threads holds no whole warps
// TWICE: 'sum' is updated by one thread of a block already
// SIZE: a table of 20000 elements is too large

__global__ void total(const float *x, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(sum, x[i]);
}
// The update is the last thing a thread does: no condition on overlaps.
// SUM-NOT: disjoint
// SUM: float sum_of_thread = 0.0f;
// SUM-NEXT: for (int i = {{.*}}) {
// SUM-NEXT: sum_of_thread += x[i];
// SUM-NEXT: }
// SUM-NEXT: __shared__ float sum_of_warps[8];
// SUM: sum_of_thread += __shfl_xor_sync(0xffffffff, sum_of_thread, offset);
// SUM: if (threadIdx.x == 0 && sum_of_thread != 0.0f) {
// SUM-NEXT: atomicAdd(sum, sum_of_thread);

__global__ void extremes(const int *x, int *low, int *high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  atomicMin(low, x[i]);
  atomicMax(&high[2], x[i]);
}
// EXTREMES: int high_of_thread = -2147483647 - 1;
// EXTREMES-NEXT: int low_of_thread = 2147483647;
// EXTREMES: int value = x[i];
// EXTREMES-NEXT: if (value < low_of_thread) {
// EXTREMES-NEXT: low_of_thread = value;
// EXTREMES: int value1 = x[i];
// EXTREMES-NEXT: if (value1 > high_of_thread) {
// EXTREMES: atomicMin(low, low_of_thread);
// EXTREMES: atomicMax(&high[2], high_of_thread);

__global__ void count(const unsigned *x, unsigned *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[x[i] % 200], 1);
}
// TABLE: __shared__ unsigned int bins_of_block[256];
// TABLE-NEXT: for (int k = threadIdx.x; k < 256; k += 256) {
// TABLE-NEXT: bins_of_block[k] = 0;
// TABLE-NEXT: }
// TABLE-NEXT: __syncthreads();
// TABLE: unsigned int bin = x[i] % 200;
// TABLE-NEXT: if (bin < 256) {
// TABLE-NEXT: atomicAdd(&bins_of_block[bin], 1);
// TABLE-NEXT: } else {
// TABLE-NEXT: atomicAdd(&bins[bin], 1);
// TABLE: __syncthreads();
// TABLE-NEXT: for (int k = threadIdx.x; k < 256; k += 256) {
// TABLE-NEXT: if (bins_of_block[k] != 0) {
// TABLE-NEXT: atomicAdd(&bins[k], bins_of_block[k]);
// DIFFERS: the element of 'bins' differs between threads

// What follows the update must not notice that it comes later.
__global__ void then(const float *x, float *sum, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(sum, x[i]);
    y[i] = x[i];
  }
}
// THEN: disjoint(sum, 4{{.*}}, x, 4 * n)
// THEN: disjoint(sum, 4{{.*}}, y, 4 * n)

__global__ void read(const float *x, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(sum, x[i]);
    if (sum[0] > 10)
      sum[1] = 1;
  }
}
// READ: 'sum' is accessed other than by atomic updates

// The sum is divided, not each of its terms: a division of doubles for each element takes longer than reading it.
__global__ void mean(const float *x, double *result, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double d = x[i];
    atomicAdd(result, d * d / n);
  }
}
// Terms that are divided by something of their own, and floats, whose sum might overflow, stay as they are.
__global__ void own(const float *x, double *result, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(result, (double)x[i] / (i + 1));
}
__global__ void single(const float *x, float *result, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(result, x[i] / n);
}
// MEAN: // plan mean
// MEAN: // when n >= 1  (the sum is divided in place of its terms)
// MEAN: result_of_thread += d * d;
// MEAN: atomicAdd(result, result_of_thread / n);
// MEAN: result_of_thread += (double)x[i] / (i + 1);
// MEAN: atomicAdd(result, result_of_thread);
// MEAN: result_of_thread += x[i] / n;
// MEAN: atomicAdd(result, result_of_thread);
