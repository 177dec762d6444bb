// transpose-through-shared: both directions, its conditions, and what it refuses.
// RUN: %plan --passes='transpose-through-shared[store]{tile=32,rows=8}' %s | %check=STORE
// RUN: %opt --passes='transpose-through-shared[load]{tile=16,rows=16}' %s | %check=LOAD
// RUN: optiml-opt --emit --passes='transpose-through-shared[store];transpose-through-shared[load]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %refused --passes='transpose-through-shared[plain]' %s 2>&1 | %check=PLAIN
// RUN: %refused --passes='transpose-through-shared[two]' %s 2>&1 | %check=TWO
// RUN: %refused --passes='transpose-through-shared[add]' %s 2>&1 | %check=ADD
// RUN: %refused --passes='transpose-through-shared[place]' %s 2>&1 | %check=PLACE
// RUN: %refused --passes='transpose-through-shared[store]{tile=48,rows=9}' %s 2>&1 | %check=SIZE
// SIZE: a tile of 48x48 cannot be worked on by 48x9 threads

__global__ void store(const float *in, const float *shift, float *out, size_t rows, int cols) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  size_t y = (size_t)blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= cols)
    return;
  if (y < rows) {
    float v = in[y * cols + x];
    out[x * rows + y] = v * v + shift[x];
  }
}
// STORE: <<<(ceildiv(grid.x * block.x, 32), ceildiv(grid.y * block.y, 32), 1), (32, 8, 1), shared>>>
// STORE-DAG: when cols <= grid.x * block.x
// STORE-DAG: when rows <= grid.y * block.y
// STORE-DAG: when grid.z * block.z == 1
// STORE: __shared__ float out_tile[32][33];
// STORE-NEXT: #pragma unroll
// STORE-NEXT: for (int k = 0; k < 32; k += 8) {
// STORE-NEXT: int x = blockIdx.x * 32 + threadIdx.x;
// STORE-NEXT: size_t y = (size_t)blockIdx.y * 32 + threadIdx.y + k;
// STORE: out_tile[threadIdx.y + k][threadIdx.x] = v * v + shift[x];
// STORE: __syncthreads();
// STORE: int x1 = blockIdx.x * 32 + threadIdx.y + k;
// STORE-NEXT: size_t y1 = (size_t)blockIdx.y * 32 + threadIdx.x;
// STORE-NOT: in[
// STORE: out[x1 * rows + y1] = out_tile[threadIdx.x][threadIdx.y + k];

// The operand lies across the threads: results are computed in exchanged roles.
__global__ void load(const double *in, double *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    out[y * w + x] = in[x * h + y];
}
// LOAD: __shared__ double out_tile[16][17];
// LOAD-NEXT: int x = blockIdx.x * 16 + threadIdx.y;
// LOAD-NEXT: int y = blockIdx.y * 16 + threadIdx.x;
// LOAD-NEXT: if (x < w && y < h) {
// LOAD-NEXT: out_tile[threadIdx.x][threadIdx.y] = in[x * h + y];
// LOAD: __syncthreads();
// LOAD-NEXT: int x1 = blockIdx.x * 16 + threadIdx.x;
// LOAD-NEXT: int y1 = blockIdx.y * 16 + threadIdx.y;
// LOAD: out[y1 * w + x1] = out_tile[threadIdx.y][threadIdx.x];

__global__ void plain(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    out[y * w + x] = in[y * w + x];
}
// PLAIN: neighbouring threads access neighbouring elements already

__global__ void two(const float *in, float *out, float *copy, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    copy[y * w + x] = in[y * w + x];
    out[x * h + y] = in[y * w + x];
  }
}
// TWO: is a second effect

__global__ void add(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    out[x * h + y] += in[y * w + x];
}
// ADD: the kernel does not end with a store

__global__ void place(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    int to = x * h;
    to += y;
    out[to + 0 * (x * h + y)] = in[y * w + x] + in[x * h + y];
  }
}
// PLACE: where the result goes depends on more than indices
