// kmeans: the assignment step: the nearest of k centroids of each of n points in d dimensions, one thread a point.
//
//   kmeans [n k d]      default 1048576 64 16, large 4194304 64 16
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__device__ float squaredDistance(const float *a, const float *b, int d) {
  float sum = 0.0f;
  for (int i = 0; i < d; ++i) {
    float difference = a[i] - b[i];
    sum += difference * difference;
  }
  return sum;
}

__global__ void assign(const float *points, const float *centroids, int *label, int n, int k, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;

  int nearest = 0;
  float least = FLT_MAX;
  for (int c = 0; c < k; ++c) {
    float distance = squaredDistance(points + (size_t)i * d, centroids + c * d, d);
    if (distance < least) {
      least = distance;
      nearest = c;
    }
  }
  label[i] = nearest;
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static float uniform(unsigned counter) { return (float)(hash(counter) >> 8) / 8388608.0f - 1.0f; } // between -1 and 1

int main(int argc, char **argv) {
  int n = 1048576, k = 64, d = 16;
  if (argc == 4) {
    n = atoi(argv[1]);
    k = atoi(argv[2]);
    d = atoi(argv[3]);
  }
  if ((argc != 1 && argc != 4) || n < 1 || n > 100000000 || k < 1 || k > 65536 || d < 1 || d > 4096) {
    fprintf(stderr, "usage: %s [n k d]   n up to 1e8, k up to 65536, d up to 4096\n", argv[0]);
    return EXIT_FAILURE;
  }

  // Every point lies around one of the centroids, which spread over a cube; the clusters overlap a little.
  std::vector<float> points((size_t)n * d), centroids((size_t)k * d);
  std::vector<int> label(n);
  for (size_t i = 0; i < centroids.size(); ++i)
    centroids[i] = 4.0f * uniform(0x80000000u + (unsigned)i);
  for (int i = 0; i < n; ++i) {
    int c = (int)(hash(0x40000000u + i) % k);
    for (int j = 0; j < d; ++j)
      points[(size_t)i * d + j] = centroids[(size_t)c * d + j] + 2.5f * uniform((unsigned)i * d + j);
  }

  float *dPoints, *dCentroids;
  int *dLabel;
  CUDA_CHECK(cudaMalloc(&dPoints, points.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dCentroids, centroids.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dLabel, n * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(dPoints, points.data(), points.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dCentroids, centroids.data(), centroids.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dLabel, 0xff, n * sizeof(int))); // -1, so that a label that is not written shows

  const int threads = 256;
  assign<<<(n + threads - 1) / threads, threads>>>(dPoints, dCentroids, dLabel, n, k, d);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(label.data(), dLabel, n * sizeof(int), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dPoints));
  CUDA_CHECK(cudaFree(dCentroids));
  CUDA_CHECK(cudaFree(dLabel));

  // All points, or of many the first, the last and others anywhere, as many as 1e8 squares allow. Where two centroids
  // are equally near but for rounding, either will do.
  const int checked = (int)std::min<size_t>(n, std::max<size_t>(1000, 100000000 / ((size_t)k * d)));
  int wrong = 0;
  std::vector<double> distance(k);
  for (int s = 0; s < checked; ++s) {
    int i = checked == n ? s : s == 0 ? 0 : s == 1 ? n - 1 : (int)(hash(s) % n);
    const float *point = &points[(size_t)i * d];
    int nearest = 0;
    for (int c = 0; c < k; ++c) {
      const float *centroid = &centroids[(size_t)c * d];
      double sum = 0;
      for (int j = 0; j < d; ++j) {
        double difference = (double)point[j] - centroid[j];
        sum += difference * difference;
      }
      distance[c] = sum;
      if (sum < distance[nearest])
        nearest = c;
    }
    bool good = label[i] >= 0 && label[i] < k && distance[label[i]] <= distance[nearest] * (1 + 1e-5);
    if (!good && wrong++ < 3)
      fprintf(stderr, "label[%d] = %d, want %d\n", i, label[i], nearest);
  }
  printf("%s kmeans n=%d k=%d d=%d\n", wrong ? "FAIL" : "PASS", n, k, d);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
