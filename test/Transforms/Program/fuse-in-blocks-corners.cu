// What loops of launches must do for a block to have a row, and what is found out when they run: indices that leave
// their row, buffers that are one, launches in other streams or of other geometry, turns that miss a launch.
// RUN: optiml-opt --fuse-launches --emit %s > %t.cu 2> %t.notes
// RUN: %nvcc -arch=sm_90 -cubin -o %t.cubin %t.cu
// RUN: optiml-run %s > %t.before
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu > %t.after 2> %t.paths
// RUN: cmp %t.before %t.after
// RUN: FileCheck %s --check-prefix=PATHS < %t.paths
// RUN: grep -v '^ *// *[A-Z-]*: ' %t.cu | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTES < %t.notes
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

constexpr int COLS = 24, ROWS = 6, CELLS = ROWS * COLS;

static int *buffer(int first) {
  std::vector<int> host(CELLS);
  for (int i = 0; i < CELLS; ++i)
    host[i] = first * (i + 3) % 101;
  int *memory = nullptr;
  cudaMalloc(&memory, CELLS * sizeof(int));
  cudaMemcpy(memory, host.data(), CELLS * sizeof(int), cudaMemcpyHostToDevice);
  return memory;
}
static void show(const char *what, const int *device) {
  std::vector<int> host(CELLS);
  cudaMemcpy(host.data(), device, CELLS * sizeof(int), cudaMemcpyDeviceToHost);
  unsigned sum = 0;
  for (int x : host)
    sum = sum * 31 + unsigned(x);
  printf("%s %x\n", what, sum);
}

// The cell `by` further on is of the same row, or of the next one.
__global__ void addFurther(const int *in, int *out, int by, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (i < count)
    out[row * COLS + i] = in[row * COLS + i] + in[row * COLS + i + by];
}
void further(int by, int count, int turns, bool sameBuffer) {
  int *a = buffer(7), *b = sameBuffer ? a : buffer(11);
  int *from = a, *to = b;
  for (int turn = 0; turn < turns; ++turn) {
    addFurther<<<dim3(1, ROWS - 1), 32>>>(from, to, by, count);
    std::swap(from, to);
  }
  show("further", a);
  show("and", b);
}
// Of those that stay within their rows, one has a single turn, and one a single buffer.
// CHECK: launches of addFurther that follow
// PATHS-DAG: OptiML: addFurther_fused{{[0-9]*}}: 3 optimized, 3 original launches

// What decides where threads go is in memory.
__global__ void follow(int *cells, const int *next) {
  int i = threadIdx.x, row = blockIdx.x;
  cells[row * COLS + next[i]] += 1;
}
void followed() {
  int *cells = buffer(3), *order;
  std::vector<int> host(COLS);
  for (int i = 0; i < COLS; ++i)
    host[i] = (i * 5) % COLS;
  cudaMalloc(&order, COLS * sizeof(int));
  cudaMemcpy(order, host.data(), COLS * sizeof(int), cudaMemcpyHostToDevice);
  for (int turn = 0; turn < 4; ++turn)
    follow<<<ROWS, COLS>>>(cells, order);
  show("followed", cells);
}
// CHECK-NOT: launches of follow that
// NOTES-DAG: note: line 69: the loop of launches does not become one of a block: which elements are accessed depends on data

// Whether a cell changes is in memory; where it is, is not.
__global__ void bubble(int *cells, int odd) {
  int i = 2 * threadIdx.x + odd, row = blockIdx.x;
  if (i + 1 < COLS) {
    int *own = cells + row * COLS;
    if (own[i] > own[i + 1]) {
      int t = own[i];
      own[i] = own[i + 1];
      own[i + 1] = t;
    }
  }
}
void bubbled() {
  int *cells = buffer(13);
  for (int phase = 0; phase < COLS; ++phase)
    bubble<<<ROWS, COLS / 2>>>(cells, phase % 2);
  show("bubbled", cells);
}
// CHECK: launches of bubble that follow
// PATHS-DAG: OptiML: bubble_fused{{[0-9]*}}: 1 optimized, 0 original launches

// Rows of two lengths; three buffers; sums of all rows; neighbours in other rows.
__global__ void narrower(int *cells, int cols) {
  int i = threadIdx.x, row = blockIdx.x;
  if (i < cols)
    cells[row * cols + i] += cells[row * COLS + i];
}
__global__ void wave(const int *before, const int *now, int *after) {
  int i = threadIdx.x, at = blockIdx.x * COLS + i;
  after[at] = 2 * now[at] - before[at] + (i > 0 ? now[at - 1] : 0);
}
__global__ void total(const int *cells, int *sum, int k) {
  int i = threadIdx.x, row = blockIdx.x;
  atomicAdd(&sum[k], cells[row * COLS + i] * (sum[0] & 3));
}
__global__ void vertical(const int *in, int *out, int cols) {
  int c = threadIdx.x, r = blockIdx.x + 1;
  out[r * cols + c] = in[(r - 1) * cols + c] + in[(r + 1) * cols + c];
}
__global__ void below(const int *in, int *out) {
  int at = (blockIdx.x + 1) * COLS + threadIdx.x;
  out[at] = in[at - COLS] - in[at];
}
__global__ void spread(int *cells, int rows, int cols) { // a block for each row is worth more
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  int sum = 0;
  for (int c = 0; c < cols; ++c)
    sum += cells[row * cols + c];
  for (int c = 0; c < cols; ++c)
    cells[row * cols + c] -= sum / cols;
}
__device__ int board[ROWS * COLS];
__global__ void onBoard(const int *in, int *out) {
  int at = blockIdx.x * COLS + threadIdx.x;
  board[at] = board[at] / 2 + in[at];
  out[at] = board[blockIdx.x * COLS + (threadIdx.x + 1) % COLS] * 0 + in[at];
}
__global__ void inTurn(int *lock, int *cells) {
  int at = blockIdx.x * COLS + threadIdx.x;
  while (atomicCAS(&lock[blockIdx.x * COLS], threadIdx.x, threadIdx.x + 1) != int(threadIdx.x))
    ;
  cells[at] += 1;
}
void others() {
  int *a = buffer(2), *b = buffer(5), *c = buffer(9);
  for (int i = 0; i < 2; ++i)
    narrower<<<1, 32>>>(a, COLS - 4);
  show("narrower", a);
  for (int i = 0; i < 5; ++i) {
    wave<<<ROWS, COLS>>>(a, b, c);
    int *t = a;
    a = b;
    b = c;
    c = t;
  }
  show("waved", b);
  for (int k = 1; k < 4; ++k)
    total<<<ROWS, COLS>>>(a, c, k);
  show("summed", c);
  for (int k = 0; k < 4; ++k) {
    vertical<<<ROWS - 2, COLS>>>(k % 2 ? b : a, k % 2 ? a : b, COLS);
    below<<<ROWS - 1, COLS>>>(k % 2 ? a : b, c);
  }
  int *from = a, *to = b;
  for (int k = 0; k < 4; ++k) {
    vertical<<<ROWS - 2, COLS>>>(from, to, COLS);
    std::swap(from, to);
  }
  for (int k = 0; k < 4; ++k) {
    below<<<ROWS - 1, COLS>>>(from, to);
    std::swap(from, to);
  }
  for (int k = 0; k < 3; ++k)
    onBoard<<<ROWS, COLS>>>(a, b);
  for (int k = 0; k < 3; ++k)
    spread<<<1, 32>>>(a, ROWS, COLS);
  show("neighbours", c);
  show("and", from);
}
// CHECK-NOT: launches of narrower that
// CHECK-NOT: launches of wave that
// CHECK-NOT: launches of total that
// CHECK-NOT: launches of {{(vertical|below|onBoard|inTurn|spread)}}

// A step that some turns have, one that one turn misses in between, and other streams and geometries.
__global__ void step(int *cells, int k) {
  int i = threadIdx.x, at = blockIdx.x * COLS + i;
  if (i < COLS - 1)
    cells[at] += k;
}
__global__ void mirror(int *cells) {
  int i = threadIdx.x, at = blockIdx.x * COLS;
  if (i < COLS / 2) {
    int t = cells[at + i];
    cells[at + i] = cells[at + COLS - 1 - i];
    cells[at + COLS - 1 - i] = t;
  }
}
void steps(int turns, int first, int last, int but, cudaStream_t other, int threads) {
  int *cells = buffer(17);
  for (int k = 0; k < turns; ++k) {
    step<<<ROWS, 32, 0, k == 2 ? other : nullptr>>>(cells, 3 * k + 1);
    if (k >= first && k < last && k != but)
      mirror<<<ROWS, threads>>>(cells);
  }
  show("steps", cells);
}
// CHECK: launches of step and mirror that follow
// PATHS-DAG: OptiML: step_mirror_fused{{[0-9]*}}: 3 optimized, 5 original launches

// A launch that is refused changes nothing, and its error is seen where it was.
void refused() {
  int *cells = buffer(19), errors[3];
  for (int k = 0; k < 3; ++k) {
    bubble<<<ROWS, k == 1 ? 2048 : COLS / 2>>>(cells, k % 2);
    errors[k] = int(cudaGetLastError());
  }
  printf("errors %d %d %d\n", errors[0], errors[1], errors[2]);
  show("refused", cells);
}
// PATHS-DAG: OptiML: bubble_fused{{[0-9]*}}: 0 optimized, 1 original launches

int main() {
  int *cells = buffer(1);
  cudaStream_t other;
  cudaStreamCreate(&other);
  further(1, COLS - 1, 4, false);
  further(1, COLS, 4, false); // into the next row
  further(4, COLS - 4, 5, false);
  further(4, COLS - 4, 1, false);
  further(0, COLS, 4, true); // both are one buffer
  further(2, 10, 4, false);
  followed();
  bubbled();
  others();
  steps(6, 0, 6, -1, nullptr, 32);
  steps(6, 2, 5, -1, nullptr, 32);
  steps(7, 6, 7, -1, nullptr, 64);
  steps(6, 2, 5, 3, nullptr, 32);  // one is missing in between
  steps(6, 9, 9, -1, nullptr, 32); // it never takes place
  steps(6, 0, 6, -1, other, 32);
  steps(6, 0, 6, -1, nullptr, 8); // too few threads: the block would do more
  steps(0, 0, 6, -1, nullptr, 32);
  refused();
  if (!cells) // it would wait for ever
    for (int k = 0; k < 3; ++k)
      inTurn<<<ROWS, COLS>>>(cells, cells);
  return 0;
}
