// Helpers that touch memory, and methods, are read where they are called, so that transforms see what they do. What
// only computes stays a call.
//
// RUN: %opt --passes='block-shape[nearest]{x=128,y=1}' %s | %check=NEAREST
// RUN: %opt --passes='block-shape[clamped]{x=128,y=1}' %s | %check=CLAMPED
// RUN: %opt --passes='block-shape[views]{x=128,y=1}' %s | %check=VIEWS
// RUN: %opt --passes='block-shape[functors<Axpy>]{x=128,y=1}' %s | %check=FUNCTORS
// RUN: %opt --passes='block-shape[lambda]{x=128,y=1}' %s | %check=LAMBDA
// RUN: %opt --passes='block-shape[writes]{x=128,y=1}' %s | %check=BUMP
// RUN: %opt --passes='block-shape[constructed]{x=128,y=1}' %s | %check=MADE
// RUN: %opt --passes='block-shape[bodies]{x=128,y=1}' %s | %check=BODIES
// RUN: %opt --passes='block-shape[early]{x=128,y=1}' %s | %check=EARLY
// RUN: %opt --passes='block-shape[scoped]{x=128,y=1}' %s | %check=SCOPED
// RUN: %opt --passes='block-shape[ownState]{x=128,y=1}' %s | %check=OWN
// RUN: %refused --passes='block-shape[sharedState]{x=128,y=1};coarsen[sharedState]{x=2}' %s 2>&1 | %check=WRITES
// RUN: optiml-opt --emit %s --passes='block-shape[nearest]{x=128,y=1};block-shape[clamped]{x=128,y=1};block-shape[views]{x=128,y=1};block-shape[functors<Axpy>]{x=128,y=1};block-shape[lambda]{x=128,y=1};block-shape[bodies]{x=128,y=1};block-shape[early]{x=128,y=1};block-shape[scoped]{x=128,y=1};block-shape[ownState]{x=128,y=1};block-shape[writes]{x=128,y=1};block-shape[constructed]{x=128,y=1}' > %t.cu
// RUN: %nvcc -arch=sm_90 -std=c++17 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 300
//
// What stays a call, and what then stands in the way:
// RUN: %refused --passes='split-reduction[recursive/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[address/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[jumps/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[variadic/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[wakeful/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[assembly/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[lasting/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[inLoop/k]{blocks=4}' %s 2>&1 | %check=EARLIER
// RUN: %refused --passes='split-reduction[sometimes/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[overtakes/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// RUN: %refused --passes='split-reduction[moving/k]{blocks=4}' %s 2>&1 | %check=REFUSED
// REFUSED: the kernel's threads work together, or wait for each other
// EARLIER: the loop may be left early
#include <cstdio>
#include <cstdlib>

// Pointers into arrays become indices of the arrays; the loop goes before the statement that uses the sum.
__device__ float squaredDistance(const float *a, const float *b, int d) {
  float sum = 0.0f;
  for (int i = 0; i < d; ++i) {
    float difference = a[i] - b[i];
    sum += difference * difference;
  }
  return sum;
}
// NEAREST: for (int c = 0; c < k; ++c) {
// NEAREST-NEXT: float sum = 0.0f;
// NEAREST-NEXT: for (int i_1 = 0; i_1 < d; ++i_1) {
// NEAREST-NEXT: float difference = points[(size_t)i * d + i_1] - centers[(long long)(c * d) + i_1];
// NEAREST-NEXT: sum += difference * difference;
// NEAREST-NEXT: }
// NEAREST-NEXT: if (sum < least) {
__global__ void nearest(const float *points, const float *centers, float *out, int n, int k, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float least = 1e30f;
    for (int c = 0; c < k; ++c)
      if (squaredDistance(points + (size_t)i * d, centers + c * d, d) < least)
        least = squaredDistance(points + (size_t)i * d, &centers[c * d], d);
    out[i] = least;
  }
}

// One expression takes the place of the call, wherever that is.
__device__ inline float at(const float *image, int x, int y, int w) { return image[y * w + x]; }
__device__ inline int inside(int x, int w) {
  if (x < 0)
    return 0;
  else if (x >= w)
    return w - 1;
  return x;
}
// CLAMPED: out[i] = i > 0 ? in[(i < 0 ? 0 : i >= n ? n - 1 : i) * 1 + 0] + in[i * 1 + 0] : 0.0f;
__global__ void clamped(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = i > 0 ? at(in, 0, inside(i, n), 1) + at(in, 0, i, 1) : 0.0f;
}

// Methods of structs, and references to elements.
struct View {
  float *data;
  int stride;
  __device__ float &operator()(int r, int c) const { return data[r * stride + c]; }
  __device__ float get(int r, int c) const { return (*this)(r, c); }
};
// VIEWS: v.data[i * v.stride + 1] = v.data[i * v.stride + 0] * 2.0f;
__global__ void views(View v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    v(i, 1) = v.get(i, 0) * 2.0f;
}

struct Axpy {
  float a;
  const float *x;
  __device__ float operator()(int i, float y) const {
    float old = y;
    y = a * x[i];
    return y + old;
  }
};
// The parameter that the body changes gets a variable of its own.
// FUNCTORS: float y_1 = y[i];
// FUNCTORS-NEXT: float old = y_1;
// FUNCTORS-NEXT: y_1 = f.a * f.x[i];
// FUNCTORS-NEXT: y[i] = y_1 + old;
template <typename F> __global__ void functors(F f, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = f(i, y[i]);
}

// LAMBDA-NOT: [=]
// LAMBDA: out[i] = in[i] * scale + in[n - 1 - i] * scale;
__global__ void lambda(const float *in, float *out, float scale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto load = [=](int k) { return in[k] * scale; };
  if (i < n)
    out[i] = load(i) + load(n - 1 - i);
}

// A helper that writes is read where its call is a statement of its own.
__device__ void bump(float *p, float by, int &count) {
  if (by == 0.0f)
    return;
  p[0] += by;
  ++count;
}
// BUMP: float by = in[i];
// BUMP-NEXT: if (!(by == 0.0f)) {
// BUMP-NEXT: out[i] += by;
// BUMP-NEXT: ++count;
__global__ void writes(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int count = 0;
    bump(out + i, in[i], count);
    out[n + i] = (float)count;
  }
}

// What it writes may be a variable of the thread's own that the statement names nowhere else.
struct Sum {
  float total;
  int count;
  __device__ Sum &operator+=(const Sum &o) {
    total += o.total;
    count += o.count;
    return *this;
  }
};
__device__ unsigned next(unsigned &state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}
// OWN: float sum_total = 0.0f;
// OWN: state = state * 1664525u + 1013904223u;
// OWN-NEXT: unsigned int r = (state >> 8) % n;
// OWN-NEXT: sum_total += in[r];
// OWN-NEXT: sum_count += 1;
__global__ void ownState(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned state = i;
    Sum sum = {0.0f, 0};
    for (int k = 0; k < 10; ++k) {
      unsigned r = next(state) % n;
      const Sum one = {in[r], 1};
      sum += one;
    }
    out[i] = sum.total / sum.count;
  }
}
// WRITES: the kernel's threads work together, or wait for each other: 
__global__ void sharedState(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned state = i;
    unsigned r = next(state) + state;
    out[i] = in[r % n];
  }
}

// A class with constructors and operators.
struct Vec {
  float x, y;
  __host__ __device__ Vec(float a = 0, float b = 0) : x(a), y(b) {}
  __device__ Vec operator-(const Vec &o) const { return Vec(x - o.x, y - o.y); }
  __device__ Vec operator*(float s) const { return Vec(x * s, y * s); }
  __device__ float dot(const Vec &o) const { return x * o.x + y * o.y; }
  __device__ Vec &operator+=(const Vec &o) {
    x += o.x;
    y += o.y;
    return *this;
  }
};
// MADE: float sum_x = 0;
// MADE: float d_x = in[2 * k] - me_x;
// MADE-NEXT: float d_y = in[2 * k + 1] - me_y;
// MADE-NEXT: float s = 1.0f / (d_x * d_x + d_y * d_y + 0.5f);
// MADE-NEXT: sum_x += d_x * s;
// MADE-NEXT: sum_y += d_y * s;
__global__ void constructed(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Vec sum;
    const Vec me(in[i], 1.0f);
    for (int k = 0; k < n / 2; ++k) {
      Vec d = Vec(in[2 * k], in[2 * k + 1]) - me;
      sum += d * (1.0f / (d.dot(d) + 0.5f));
    }
    out[i] = sum.x + sum.y;
  }
}

struct Body {
  float x, y, mass;
};
__device__ float pull(const Body &a, const Body &b) {
  float dx = a.x - b.x, dy = a.y - b.y;
  return b.mass * (dx * dx + dy * dy);
}
__device__ float weigh(const Body *p) { return p->mass; }
// References of the kernel itself are what they refer to as well.
// BODIES: for (int j = 0; j < n; ++j) {
// BODIES-NEXT: float dx = all[i].x - all[j].x;
// BODIES-NEXT: float dy = all[i].y - all[j].y;
// BODIES-NEXT: sum += all[j].mass * (dx * dx + dy * dy) * all[j].mass;
// BODIES-NEXT: }
// BODIES-NEXT: out[i] = sum;
__global__ void bodies(const Body *all, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) {
      const Body &other = all[j];
      sum += pull(all[i], other) * weigh(all + j);
    }
    float &to = out[i];
    to = sum;
  }
}

// Returns under conditions.
__device__ float branchy(const float *a, int i, int n) {
  if (i >= n)
    return 0.0f;
  float x = a[i];
  if (x < 0.0f) {
    x = -x;
    return x * 0.5f;
  }
  return x;
}
// EARLY: int n_1 = n - 1;
// EARLY-NEXT: float result;
// EARLY-NEXT: if (i >= n_1) {
// EARLY-NEXT: result = 0.0f;
// EARLY-NEXT: } else {
// EARLY-NEXT: float x = in[i + 1ll];
// EARLY-NEXT: if (x < 0.0f) {
// EARLY-NEXT: x = -x;
// EARLY-NEXT: result = x * 0.5f;
// EARLY-NEXT: } else {
// EARLY-NEXT: result = x;
// EARLY-NEXT: }
// EARLY-NEXT: }
// EARLY-NEXT: out[i] = result;
__global__ void early(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = branchy(in + 1, i, n - 1);
}

// What a helper calls is named as the kernel must name it.
namespace tools {
__device__ float half(float x) { return 0.5f * x; }
template <typename T, int N> struct Table {
  static __device__ T sum(const T *a) {
    T total = 0;
    for (int k = 0; k < N; ++k)
      total += half(a[k]);
    return total;
  }
};
} // namespace tools
// SCOPED: float total = 0;
// SCOPED-NEXT: for (int k = 0; k < 3; ++k) {
// SCOPED-NEXT: total += tools::half(in[(long long)i + k]);
// SCOPED-NEXT: }
// SCOPED-NEXT: out[i] = total;
__global__ void scoped(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 3 <= n)
    out[i] = tools::Table<float, 3>::sum(in + i);
}

// Refusals.
__device__ float again(const float *a, int n) { return n == 0 ? 0.0f : a[n] + again(a, n - 1); }
__global__ void recursive(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = again(in, 3);
}
__device__ float addressOf(const float *a, int i) {
  int *p = &i;
  ++*p;
  return a[i];
}
__global__ void address(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = addressOf(in, i);
}
__device__ float leap(const float *a, int i) {
  if (i > 3)
    goto end;
  ++i;
end:
  return a[i];
}
__global__ void jumps(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = leap(in, i);
}
__device__ float many(const float *a, ...) { return a[0]; }
__global__ void variadic(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = many(in + i);
}
__device__ float look(const volatile float *a, int i) { return a[i]; }
__global__ void wakeful(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = look(in, i);
}
__device__ float loadNow(const float *a, int i) {
  float x;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(a + i));
  return x;
}
__global__ void assembly(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = loadNow(in, i);
}
__device__ float remember(const float *a, int i) {
  static float last;
  last = a[i];
  return last;
}
__global__ void lasting(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = remember(in, i);
}
__device__ int firstAbove(const float *a, int n, float x) {
  for (int k = 0; k < n; ++k)
    if (a[k] > x)
      return k;
  return n;
}
__global__ void inLoop(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = firstAbove(in, n, in[i]);
}
// It may not run at all.
__global__ void sometimes(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = i > 0 ? squaredDistance(in, in + i, 1) : 0.0f;
}
// Its effect would come before what the statement does first.
__device__ float add(float *p) {
  p[0] += 1.0f;
  return p[0];
}
__global__ void overtakes(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = out[i] * 2.0f + add(out + i);
}
// What it refers to is no longer a[k].
__global__ void moving(const float *a, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int k = i;
    const float &x = a[k];
    k = n - 1 - i;
    out[i] = x + a[k];
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 300, blocks = (n + 127) / 128;
  float *in, *out, host[2048];
  for (int i = 0; i < 2048; ++i)
    host[i] = float(i % 23) - 7.0f;
  cudaMalloc(&in, 8 * n * sizeof(float) + 64);
  cudaMalloc(&out, 4 * n * sizeof(float));
  cudaMemset(in, 0, 8 * n * sizeof(float) + 64);
  cudaMemset(out, 0, 4 * n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  auto show = [&] {
    cudaMemcpy(host, out, 2 * n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g %g\n", host[0], host[n - 1]);
  };
  nearest<<<blocks, 128>>>(in, in + 32, out, n, 4, 3), show();
  clamped<<<blocks, 128>>>(in, out, n), show();
  views<<<blocks, 128>>>(View{out, 2}, n), show();
  functors<<<blocks, 128>>>(Axpy{2.0f, in}, out, n), show();
  lambda<<<blocks, 128>>>(in, out, 3.0f, n), show();
  writes<<<blocks, 128>>>(in, out, n), show();
  bodies<<<blocks, 128>>>((const Body *)in, out, n / 8), show();
  early<<<blocks, 128>>>(in, out, n), show();
  scoped<<<blocks, 128>>>(in, out, n), show();
  ownState<<<blocks, 128>>>(in, out, n), show();
  constructed<<<blocks, 128>>>(in, out, n), show();
  return 0;
}
