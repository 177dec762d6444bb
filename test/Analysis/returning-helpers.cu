// Helpers, and kernels, that return from within loops, or where both branches go on.
//
// RUN: %opt --passes='block-shape[factored]{x=64,y=1}' %s | %check=FACTORED
// RUN: %opt --passes='block-shape[searched]{x=64,y=1}' %s | %check=SEARCHED
// RUN: %opt --passes='block-shape[branches]{x=64,y=1}' %s | %check=BRANCHES
// RUN: %opt --passes='block-shape[leaving]{x=64,y=1}' %s | %check=LEAVING
// RUN: %opt --passes='block-shape[walks]{x=64,y=1}' %s | %check=WALKS
// RUN: %refused --passes='block-shape[twice]{x=64,y=1};coarsen[twice]{style=strided,x=2,y=1}' %s 2>&1 | %check=TWICE
// RUN: %opt --passes='block-shape[drawn]{x=64,y=1}' %s | %check=DRAWN
// RUN: %opt --passes='block-shape[computing]{x=64,y=1}' %s | %check=COMPUTING
// RUN: optiml-opt --emit %s --passes='block-shape[factored]{x=64,y=1};block-shape[searched]{x=64,y=1};block-shape[branches]{x=64,y=1};block-shape[leaving]{x=64,y=1};block-shape[computing]{x=64,y=1}' > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 300 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

// From two loops, with a value that the caller negates.
__device__ bool halve(float *row, int n) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      if (row[j] > 90.0f)
        return false;
      row[i] -= 0.25f * row[j];
    }
    if (row[i] < -90.0f)
      return false;
  }
  row[0] += 1.0f;
  return true;
}
// FACTORED: bool result;
// FACTORED-NEXT: bool returned = false;
// FACTORED-NEXT: for (int i_1 = 0; i_1 < 8; i_1++) {
// FACTORED-NEXT: for (int j = 0; j < i_1; j++) {
// FACTORED-NEXT: if (data[(long long)(i * 8) + j] > 90.0f) {
// FACTORED-NEXT: result = false;
// FACTORED-NEXT: returned = true;
// FACTORED-NEXT: break;
// FACTORED-NEXT: }
// FACTORED-NEXT: data[(long long)(i * 8) + i_1] -= 0.25f * data[(long long)(i * 8) + j];
// FACTORED-NEXT: }
// FACTORED-NEXT: if (returned) {
// FACTORED-NEXT: break;
// FACTORED-NEXT: }
// FACTORED-NEXT: if (data[(long long)(i * 8) + i_1] < -90.0f) {
// FACTORED: if (!returned) {
// FACTORED-NEXT: data[i * 8] += 1.0f;
// FACTORED-NEXT: result = true;
// FACTORED-NEXT: }
// FACTORED-NEXT: if (!result) {
__global__ void factored(float *data, int *failed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  if (!halve(data + i * 8, 8)) {
    failed[i] = 1;
    return;
  }
  failed[i] = 0;
}

// A part of a condition that is evaluated first.
__device__ int moveFront(int *keys, int wanted, int n) {
  int k = 0;
  while (k < n) {
    if (keys[k] == wanted) {
      keys[k] = keys[0];
      keys[0] = wanted;
      return k;
    }
    ++k;
  }
  keys[n - 1] = wanted;
  return -1;
}
// SEARCHED: if (!returned) {
// SEARCHED-NEXT: keys[(long long)(i * 8) + (8 - 1)] = wanted;
// SEARCHED-NEXT: result = -1;
// SEARCHED-NEXT: }
// SEARCHED-NEXT: if (0 <= result && keys[i * 8] == 3) {
__global__ void searched(int *keys, int *found, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int wanted = keys[i * 8 + 5] % 4;
    if (0 <= moveFront(keys + i * 8, wanted, 8) && keys[i * 8] == 3)
      found[i] = 1;
    else
      found[i] = 0;
  }
}

// Both branches may go on.
__device__ void settle(float *x, float *log, int i) {
  if (x[i] > 0.0f) {
    if (x[i] > 50.0f) {
      x[i] = 50.0f;
      return;
    }
    x[i] += 1.0f;
  } else if (x[i] < -50.0f) {
    return;
  }
  log[i] = x[i];
}
// BRANCHES: bool returned = false;
// BRANCHES-NEXT: if (x[i] > 0.0f) {
// BRANCHES-NEXT: if (x[i] > 50.0f) {
// BRANCHES-NEXT: x[i] = 50.0f;
// BRANCHES-NEXT: returned = true;
// BRANCHES-NEXT: } else {
// BRANCHES-NEXT: x[i] += 1.0f;
// BRANCHES-NEXT: }
// BRANCHES-NEXT: } else {
// BRANCHES-NEXT: if (x[i] < -50.0f) {
// BRANCHES-NEXT: returned = true;
// BRANCHES-NEXT: }
// BRANCHES-NEXT: }
// BRANCHES-NEXT: if (!returned) {
// BRANCHES-NEXT: log[i] = x[i];
__global__ void branches(float *x, float *log, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    settle(x, log, i);
}

// A kernel of its own.
// LEAVING: bool returned = false;
// LEAVING: for (int k = i; k < n; ++k) {
// LEAVING-NEXT: if (in[k] > 90.0f) {
// LEAVING-NEXT: out[i] = k;
// LEAVING-NEXT: returned = true;
// LEAVING-NEXT: break;
// LEAVING: if (!returned) {
// LEAVING-NEXT: out[i] = -1;
__global__ void leaving(const float *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  for (int k = i; k < n; ++k) {
    if (in[k] > 90.0f) {
      out[i] = k;
      return;
    }
  }
  out[i] = -1;
}

// What only computes stays a call.
__device__ int steps(int x) {
  for (int k = 0; k < 100; ++k) {
    if (x <= 1)
      return k;
    x = x % 2 ? 3 * x + 1 : x / 2;
  }
  return 100;
}
// COMPUTING: out[i] = steps(keys[i]);
__global__ void computing(const int *keys, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = steps(keys[i]);
}

// A generator's state in memory: nothing else in the statement may show the call.
__device__ float roll(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 16777216.0f;
}
// WALKS: states[i] = states[i] * 1664525u + 1013904223u;
// WALKS-NEXT: x[i] = ((float)(states[i] >> 8) / 16777216.0f - 0.5f) * 4.0f;
// WALKS: states[i] = states[i] * 1664525u + 1013904223u;
// WALKS-NEXT: float step = place + {{.*}}(float)(states[i] >> 8) / 16777216.0f - 0.5f) * 0.1f;
// WALKS: states[i] = states[i] * 1664525u + 1013904223u;
// WALKS-NEXT: place += (float)(states[i] >> 8) / 16777216.0f;
__global__ void walks(unsigned *states, float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] = (roll(states + i) - 0.5f) * 4.0f;
    float place = x[i];
    for (int k = 0; k < 5; ++k) {
      float step = place + (roll(states + i) - 0.5f) * 0.1f;
      if (step > 0.0f)
        place = step;
      place += roll(&states[i]);
    }
    x[i] = place;
  }
}
// A generator of the thread's own, and a helper of the helper that follows a pointer to a member of it.
struct Generator {
  unsigned a, b;
};
__device__ void advance(unsigned *word, int by) { *word = *word * 1664525u + by; }
__device__ float draw(Generator *g) {
  for (int i = 0; i < 9; ++i) {
    advance(&g->a, i);
    if (g->a >> 31)
      return g->a * 0.5f;
  }
  advance(&g->b, 7);
  return g->b * 0.25f;
}
// DRAWN: g_a = g_a * 1664525u + i_1;
// DRAWN: g_b = g_b * 1664525u + 7;
// DRAWN: s += result;
__global__ void drawn(float *out, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Generator g;
  g.a = i;
  g.b = 5;
  float s = 0;
  for (int k = 0; k < steps; ++k)
    s += draw(&g);
  out[i] = s;
}
// TWICE: a call of 'roll'
__global__ void twice(unsigned *states, float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] = roll(states + i) - roll(states + i);
    x[i] += states[i] + roll(states + i);
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 300;
  float *x, *log;
  int *keys, *out;
  cudaMallocManaged(&x, n * 8 * sizeof(float));
  cudaMallocManaged(&log, n * sizeof(float));
  cudaMallocManaged(&keys, n * 8 * sizeof(int));
  cudaMallocManaged(&out, n * 4 * sizeof(int));
  for (int i = 0; i < n * 8; ++i) {
    x[i] = (i * 37 % 211) - 105.0f;
    keys[i] = i * 13 % 29;
  }
  for (int i = 0; i < n; ++i)
    log[i] = 0;
  leaving<<<(n + 127) / 128, 128>>>(x, out + 2 * n, n);
  factored<<<(n + 127) / 128, 128>>>(x, out, n);
  searched<<<(n + 127) / 128, 128>>>(keys, out + n, n);
  branches<<<(n + 127) / 128, 128>>>(x, log, n);
  computing<<<(n + 127) / 128, 128>>>(keys, out + 3 * n, n);
  drawn<<<(n + 127) / 128, 128>>>(log, n, 3);
  walks<<<(n + 127) / 128, 128>>>((unsigned *)keys, x + n, n);
  twice<<<(n + 127) / 128, 128>>>((unsigned *)keys, log, n);
  cudaDeviceSynchronize();
  double sum = 0, places = 0;
  for (int i = 0; i < n; ++i)
    sum += x[i] * (i % 7) + log[i];
  for (int i = 0; i < 4 * n; ++i)
    places += out[i] * (i % 5);
  printf("%g %g\n", sum, places);
  return 0;
}
