// Builtin indices are unsigned. Where the source compares a signed variable made of one with 0, the rewritten kernel
// must too: blockIdx.y + dy < 0 would never hold.
// RUN: %opt --block=16x16x1 --passes='block-shape[clampRows]{x=256,y=1};coarsen[clampRows]{x=2,style=strided}' %s | FileCheck %s
// RUN: %opt --passes='block-shape[shift]{x=128,y=1}' %s | %check=SHIFT
// CHECK-NOT: {{[^)]}}blockIdx.y + dy
// CHECK: (int)blockIdx.y + dy < 0
__global__ void clampRows(const float *in, float *out, int width, int height) {
  int x = blockIdx.x * 16 + threadIdx.x;
  int y = blockIdx.y * 16 + threadIdx.y;
  if (x >= width || y >= height)
    return;
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; ++dy) {
    int sy = y + dy < 0 ? 0 : y + dy > height - 1 ? height - 1 : y + dy;
    sum += in[sy * width + x];
  }
  out[y * width + x] = sum;
}

// SHIFT-NOT: {{[^)]}}(blockIdx.x * 128 + threadIdx.x) - 1
__global__ void shift(const float *in, float *out, int n) {
  int tx = threadIdx.x, bx = blockIdx.x, w = blockDim.x;
  if (bx * w + tx < n)
    out[bx * w + tx] = bx * w + tx - 1 < 0 ? 0.0f : in[bx * w + tx - 1];
}
