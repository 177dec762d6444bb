// A global read-modify-write in a loop becomes a register.
//
// RUN: %plan --passes='promote-accumulator[dot/k:c]' %s | FileCheck %s
// RUN: %opt --passes='promote-accumulator[scaled/k:c]' %s | %check=TOUCHED
// RUN: %opt --passes='promote-accumulator[begun/k:c]' %s | %check=BEGUN
// RUN: %refused --passes='promote-accumulator[moving/k:c]' %s 2>&1 | %check=MOVING
// RUN: %opt --passes='promote-accumulator[sometimes/k:c]' %s | %check=SOMETIMES
// RUN: %opt --passes='promote-accumulator[listed/k:c]' %s | %check=LISTED
// RUN: %refused --passes='promote-accumulator[partly/k:c]' %s 2>&1 | %check=PARTLY
// RUN: %refused --passes='promote-accumulator[noted/k:flag]' %s 2>&1 | %check=NOTED
// RUN: %refused --passes='promote-accumulator[begins/k:c]' %s 2>&1 | %check=PARTLY
// RUN: %refused --passes='promote-accumulator[looked/k:c]' %s 2>&1 | %check=LOOKED
// RUN: %plan --passes='promote-accumulator[unbounded/k:c]' %s | %check=UNBOUNDED
// RUN: %opt --passes='promote-accumulator[voxels/k:v]' %s | %check=VOXELS
// RUN: %refused --passes='promote-accumulator[apart/k:v]' %s 2>&1 | %check=APART

// The loop may not run at all: then the element must not be touched.
// CHECK: // when disjoint(a, 4 * (k_ * n), c, 4 * n)
// CHECK: if (0 < k_) {
// CHECK-NEXT: float acc = c[i];
// CHECK-NEXT: for (int k = 0; k < k_; ++k) {
// CHECK-NEXT: acc += a[i * k_ + k];
// CHECK-NEXT: }
// CHECK-NEXT: c[i] = acc;
__global__ void dot(const float *a, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      c[i] += a[i * k_ + k];
}

// Written before the loop: no test is needed.
// TOUCHED: c[i] *= 0.5f;
// TOUCHED-NEXT: float acc = c[i];
// TOUCHED-NEXT: for
__global__ void scaled(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] *= 0.5f;
    for (int k = 0; k < k_; ++k)
      c[i] = c[i] + a[i * k_ + k];
  }
}

// What was written before may be written again, though no iteration did.
// BEGUN: c[i] = 0.0f;
// BEGUN-NEXT: float acc = c[i];
// BEGUN-NEXT: for
// BEGUN-NEXT: if (a[k] > 0) {
// BEGUN-NEXT: acc += a[k];
// BEGUN: c[i] = acc;
__global__ void begun(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  c[i] = 0.0f;
  for (int k = 0; k < k_; ++k)
    if (a[k] > 0)
      c[i] += a[k];
}

// MOVING: the index of 'c' changes within the loop
__global__ void moving(const float *a, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      c[i + k] += a[k];
}

// An element that no iteration touches must stay alone: the first that comes to it loads it.
// SOMETIMES: float acc;
// SOMETIMES-NEXT: bool loaded = false;
// SOMETIMES-NEXT: for
// SOMETIMES-NEXT: if (a[k] > 0) {
// SOMETIMES-NEXT: if (!loaded) {
// SOMETIMES-NEXT: acc = c[i];
// SOMETIMES-NEXT: loaded = true;
// SOMETIMES: acc += a[k];
// SOMETIMES: if (loaded) {
// SOMETIMES-NEXT: c[i] = acc;
__global__ void sometimes(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      if (a[k] > 0)
        c[i] += a[k];
}

// The same where the loop is left early.
// LISTED: if (at < 0) {
// LISTED-NEXT: break;
// LISTED: if (!loaded) {
// LISTED: acc += v[at];
// LISTED: if (loaded) {
__global__ void listed(const float *__restrict__ v, const int *__restrict__ list, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  for (int k = 0; k < k_; ++k) {
    int at = list[i * k_ + k];
    if (at < 0)
      break;
    c[i] += v[at];
  }
}

// Others may have changed what is only read.
// PARTLY: may read 'c' where no iteration changes it
__global__ void partly(const float *__restrict__ a, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      if (a[k] > 0 && c[i] < 9)
        c[i] += a[k];
}

// A thread that finds 0 must not store it: another may have noted something.
// NOTED: may read 'flag' where no iteration changes it
__global__ void noted(const float *__restrict__ a, int *__restrict__ flag, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      if (flag[0] == 0)
        if (a[i * k_ + k] > 3)
          flag[0] = 1;
}

__global__ void begins(const float *__restrict__ a, int *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      if (a[k] > 0) {
        int count = 0;
        for (int q = c[i]; q < 10; ++q)
          count += 2;
        c[i] = count;
      }
}

// LOOKED: the index of 'c' is not known before the loop
__global__ void looked(const int *__restrict__ at, float *__restrict__ c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k) {
      const int place = at[i * k_ + k];
      c[place] += 1;
    }
}

// UNBOUNDED: when apart(a, c)
// UNBOUNDED: when disjoint(c, 4 * n, index, 4 * k_)
// UNBOUNDED: acc += a[index[k]];
__global__ void unbounded(const float *a, const int *index, float *c, int n, int k_) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < k_; ++k)
      c[i] += a[index[k]];
}

// Of a record, the members that are changed together are stored; the third may be somebody else's.
// VOXELS: if (!loaded) {
// VOXELS: acc_value += a[k];
// VOXELS-NEXT: acc_weight += 1.0f;
// VOXELS: if (loaded) {
// VOXELS-NEXT: ].value = acc_value;
// VOXELS-NEXT: ].weight = acc_weight;
// VOXELS-NEXT: }
struct Voxel {
  float value, weight;
  int owner;
};
__global__ void voxels(const float *__restrict__ a, Voxel *__restrict__ v, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < m; ++k) {
      if (a[k] > 0) {
        size_t at = i;
        v[at].value += a[k];
        v[at].weight += 1.0f;
      }
    }
}

// APART: members of 'v' are changed apart from one another
__global__ void apart(const float *__restrict__ a, Voxel *__restrict__ v, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < m; ++k)
      if (a[k] > 0)
        v[i].value += a[k];
      else
        v[i].weight += 1.0f;
}
