// floydwarshall: the lengths of the shortest paths between all pairs of n vertices: n launches, the k-th of which
// allows paths through vertex k; one thread a pair.
//
//   floydwarshall [n]      default 512, large 2048
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define NO_PATH 1000000000 // twice this is still an int

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void allowVertex(int *distance, int n, int k) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  int through = distance[i * n + k] + distance[k * n + j];
  if (through < distance[i * n + j])
    distance[i * n + j] = through;
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// The shortest paths from one vertex, after Dijkstra.
static void shortestPaths(const std::vector<int> &edges, int n, int from, std::vector<int> &distance) {
  std::vector<char> done(n, 0);
  distance.assign(n, NO_PATH);
  distance[from] = 0;
  for (int round = 0; round < n; ++round) {
    int next = -1;
    for (int i = 0; i < n; ++i)
      if (!done[i] && (next < 0 || distance[i] < distance[next]))
        next = i;
    if (distance[next] == NO_PATH)
      return;
    done[next] = 1;
    const int *edge = &edges[(size_t)next * n];
    for (int i = 0; i < n; ++i)
      if (edge[i] != NO_PATH && distance[next] + edge[i] < distance[i])
        distance[i] = distance[next] + edge[i];
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 512;
  if (argc > 2 || n < 1 || n > 32768) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 32768\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t count = (size_t)n * n, bytes = count * sizeof(int);

  // A directed graph with about eight edges from every vertex, of lengths from 1 to 1000; not all pairs have a path.
  std::vector<int> edges(count), distance(count);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      unsigned bits = hash((unsigned)i * n + j);
      bool edge = bits % (n / 8 + 1) == 0 && i % 50 != 49; // every 50th vertex has no way out
      edges[(size_t)i * n + j] = i == j ? 0 : edge ? 1 + (int)(hash(bits) % 1000) : NO_PATH;
    }
  }

  int *dDistance;
  CUDA_CHECK(cudaMalloc(&dDistance, bytes));
  CUDA_CHECK(cudaMemcpy(dDistance, edges.data(), bytes, cudaMemcpyHostToDevice));

  dim3 block(16, 16);
  dim3 grid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y);
  for (int k = 0; k < n; ++k)
    allowVertex<<<grid, block>>>(dDistance, n, k);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(distance.data(), dDistance, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dDistance));

  // Exact. All rows, or of a large graph the first, the last and others anywhere.
  const int checked = (int)std::min<size_t>(n, std::max<size_t>(10, 150000000 / count));
  int wrong = 0;
  std::vector<int> want;
  for (int s = 0; s < checked; ++s) {
    int from = checked == n ? s : s == 0 ? 0 : s == 1 ? n - 1 : (int)(hash(s) % n);
    shortestPaths(edges, n, from, want);
    for (int to = 0; to < n; ++to) {
      int got = distance[(size_t)from * n + to];
      if (got != want[to] && wrong++ < 3)
        fprintf(stderr, "distance[%d][%d] = %d, want %d\n", from, to, got, want[to]);
    }
  }
  printf("%s floydwarshall n=%d\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
