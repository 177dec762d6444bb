// A call that changes nothing but variables of its thread keeps no transform from giving that thread's work to another.
//
// RUN: %opt --passes='block-shape[walk]{x=128,y=1};coarsen[walk]{style=strided,x=2,y=1}' %s | %check=WALK
// RUN: %opt --passes='grid-stride[walk]{x=128}' %s | %check=STRIDE
// RUN: %opt --passes='block-shape[append]{x=128,y=1};coarsen[append]{style=strided,x=2,y=1}' %s | %check=APPEND
// RUN: %refused --passes='block-shape[common]{x=128,y=1};coarsen[common]{style=strided,x=2,y=1}' %s 2>&1 | %check=COMMON
// RUN: %refused --passes='block-shape[tabled]{x=128,y=1};coarsen[tabled]{style=strided,x=2,y=1}' %s 2>&1 | %check=TABLED
// RUN: optiml-opt --list-sites %s 2>&1 | %check=SITES

struct Generator {
  unsigned a, b;
};

__device__ void advance(unsigned *word, int by) { *word = *word * 1664525u + by; }

// It stays a call.
__device__ __noinline__ float draw(Generator *g) {
  for (int i = 0; i < 9; ++i) {
    advance(&g->a, i);
    if (g->a >> 31)
      return g->a * 0.5f;
  }
  advance(&g->b, 7);
  return g->b * 0.25f;
}

// Each copy has a generator and a list of its own.
// WALK: Generator g[2];
// WALK: draw(&g[ix])
__global__ void walk(float *__restrict__ out, int n, int steps) {
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
// STRIDE: for (int i = blockIdx.x * 128 + threadIdx.x; i < n;
// STRIDE-NEXT: Generator g;
// STRIDE: draw(&g)

// Here it reaches what other threads see. It may still be called in a loop, as it is.
// COMMON: a call of 'draw' (line [[#@LINE+4]])
__global__ void common(float *__restrict__ out, Generator *all, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = draw(&all[i % 4]);
}

// Places in a list are given in any order; but a thread that waits for another must not do both threads' work.
// APPEND: atomicAdd(count, 1)
__global__ void append(const float *__restrict__ in, float *__restrict__ out, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) {
    int at = atomicAdd(count, 1);
    out[at] = in[i];
  }
}

// Nor is it confined where it looks at the thread, or follows a pointer in constant memory.
// SITES: note: {{.*}}: looks may only be tuned
// SITES-SAME: a call of 'byDefault'
struct Lane {
  int value;
  __device__ Lane() { value = threadIdx.x; }
};
__device__ __noinline__ void addLane(float *x) {
  for (int k = 0; k < 9; ++k) {
    Lane lane;
    *x += lane.value;
    if (*x > 50)
      return;
  }
  *x = 0;
}
__device__ __noinline__ void byDefault(float *x, int t = threadIdx.x) {
  for (int k = 0; k < 9; ++k) {
    *x += t;
    if (*x > 50)
      return;
  }
  *x = 0;
}
__constant__ float *table;
__device__ __noinline__ void bump(float *x, int i) {
  for (int k = 0; k < 9; ++k) {
    table[i] += 1;
    *x += 1;
    if (*x > 50)
      return;
  }
  *x = 0;
}
__global__ void looks(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = 1;
  byDefault(&x);
  out[i] = x;
}
// SITES: note: {{.*}}: looksWithin may only be tuned
// SITES-SAME: a call of 'addLane'
__global__ void looksWithin(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = 1;
  addLane(&x);
  out[i] = x;
}
// TABLED: a call of 'bump'
__global__ void tabled(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = 1;
  bump(&x, i % 4);
  out[i] = x;
}

// SITES: note: {{.*}}: waits may only be tuned
// SITES-SAME: a call of 'atomicCAS'
__global__ void waits(int *lock, float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  while (atomicCAS(lock, 0, 1) != 0)
    ;
  sum[0] += in[i];
  atomicExch(lock, 0);
}
