// Launches that follow one another and stay two, and why.
// RUN: optiml-opt --fuse-launches %s 2>&1 >%t.cu | FileCheck %s --implicit-check-not=note:
// RUN: grep -c '^// OptiML: .* as one kernel' %t.cu | %check=COUNT
// COUNT: {{^}}1{{$}}
__device__ float gain = 2;

__global__ void scale(float *x, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
}
__global__ void amplify(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] * gain;
}
__global__ void turned(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[n - 1 - i] = x[i];
}
__global__ void gather(const float *x, const int *index, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[index[i]];
}
__global__ void blockSum(const float *x, float *sums) {
  __shared__ float part[128];
  part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0;
    for (int k = 0; k < 128; ++k)
      s += part[k];
    sums[blockIdx.x] = s;
  }
}
__global__ void flagged(volatile float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = 1;
}
// One element for each column: rows of threads share it.
__global__ void column(float *x, int width) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r == 0)
    x[c] += 1;
}
__global__ void spread(const float *x, float *y, int width, int height) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < width && r < height)
    y[r * width + c] = x[c];
}
namespace other {
__global__ void scale(float *x, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
}
} // namespace other

struct State {
  float *x, *y;
  int *index;
  int n;
  bool launched;

  void kernels() {
    scale<<<1, 128>>>(x, 2.f, n);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: 'gain' may be a variable that another kernel writes
    amplify<<<1, 128>>>(x, n);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: 'gain' may be a variable that another kernel writes
    turned<<<1, 128>>>(x, y, n);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'y'
    gather<<<1, 128>>>(y, index, x, n);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'x'
    blockSum<<<1, 128>>>(x, y);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'sums'
    scale<<<1, 128>>>(y, 2.f, n);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: 'x' points to volatile memory
    flagged<<<1, 128>>>(y, n);
  }

  void axes() {
    column<<<dim3(1, 4), dim3(128, 1)>>>(x, n);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: one thread may need what another did to 'x'
    spread<<<dim3(1, 4), dim3(128, 1)>>>(x, y, n, 4);
    // CHECK-DAG: note: line [[#@LINE+1]]: the launch is not fused with what stands before it: the kernels are in different namespaces
    other::scale<<<dim3(1, 4), dim3(128, 1)>>>(y, 2.f, n);
  }

  void host(bool stop) {
    for (int k = 0; k < 3; ++k) {
      scale<<<1, 128>>>(x, 2.f, n);
      // CHECK-DAG: note: line [[#@LINE+1]]: a member behind a pointer
      launched = true;
      scale<<<1, 128>>>(x, 3.f, n);
      // CHECK-DAG: note: line [[#@LINE+1]]: the block may be left between launches
      if (stop)
        continue;
      scale<<<1, 128>>>(x, 4.f, n);
      // CHECK-DAG: note: line [[#@LINE+1]]: a launch within another statement
      if (!stop)
        scale<<<1, 128>>>(x, 5.f, n);
      scale<<<1, 128>>>(x, 6.f, n);
    }
  }

  void jumps(bool again) {
  start:
    scale<<<1, 128>>>(x, 2.f, n);
    scale<<<1, 128>>>(x, 3.f, n);
    if (again)
      goto start;
  }

  // This one is fused.
  void both() {
    scale<<<1, 128>>>(x, 2.f, n);
    const int m = n;
    scale<<<1, 128>>>(x, 3.f, m);
  }
};
