// A variable from outside that each iteration sets first is the iteration's own, unless something else leads to it.
//
// RUN: %opt --passes='thread-per-iteration[sunk]' %s | %check=SUNK
// RUN: %opt --passes='block-shape[leads]{x=64,y=1}' %s | %check=LEADS
// RUN: %opt --passes='block-shape[kept]{x=64,y=1}' %s | %check=KEPT

// SUNK: int i = 
// SUNK: float length = sqrtf(
__global__ void sunk(float2 *v, int n) {
  float length;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    length = sqrtf(v[i].x * v[i].x + v[i].y * v[i].y);
    v[i].x /= length;
    v[i].y /= length;
  }
}

// LEADS: float d = 0;
// LEADS-NEXT: float t;
__global__ void leads(const float *a, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float d = 0, t;
  float *p = &d;
  if (a[i] > 0) {
    t = 3;
    p = &t;
  }
  out[i] = *p;
}

// What one iteration leaves, the next one finds.
// KEPT: float last;
// KEPT-NEXT: for (int k = 0;
__global__ void kept(const float *a, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float last;
  for (int k = 0; k < 9; ++k) {
    if (k % 3 == 0)
      last = a[k];
    out[i * 9 + k] = last;
  }
}
