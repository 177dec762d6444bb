// conv2d: a grey image under a square filter, only where the filter lies wholly inside the image; one thread a pixel of
// the output, which has height - filter + 1 rows and width - filter + 1 columns.
//
//   conv2d [height width [filter]]      default 2048 2048 24, large 8192 8192 24
#include <algorithm>
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

__global__ void conv2d(const float *image, const float *filter, float *output, int height, int width, int size) {
  int outHeight = height - size + 1;
  int outWidth = width - size + 1;
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= outWidth || y >= outHeight)
    return;

  float sum = 0.0f;
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++)
      sum += image[(y + i) * width + (x + j)] * filter[i * size + j];
  output[y * outWidth + x] = sum;
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// The s-th pixel of a large output to look at: the corners, then points of the edges and points anywhere by turns.
static void pick(unsigned s, int rows, int cols, int *row, int *col) {
  *row = s < 4 ? (s & 1) * (rows - 1) : s % 8 == 4 ? 0 : s % 8 == 5 ? rows - 1 : (int)(hash(2 * s) % rows);
  *col = s < 4 ? (s >> 1) * (cols - 1) : s % 8 == 6 ? 0 : s % 8 == 7 ? cols - 1 : (int)(hash(2 * s + 1) % cols);
}

int main(int argc, char **argv) {
  int height = argc > 1 ? atoi(argv[1]) : 2048;
  int width = argc > 2 ? atoi(argv[2]) : 2048;
  int size = argc > 3 ? atoi(argv[3]) : 24;
  if (argc == 2 || argc > 4 || size < 1 || height < size || width < size || height > 32768 || width > 32768) {
    fprintf(stderr, "usage: %s [height width [filter]]   height and width from filter to 32768\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int outHeight = height - size + 1, outWidth = width - size + 1;

  std::vector<float> image((size_t)height * width), filter((size_t)size * size), output((size_t)outHeight * outWidth);
  for (size_t i = 0; i < image.size(); i++) // between 0 and 1
    image[i] = (float)(hash((unsigned)i) >> 8) / 16777216.0f;
  for (size_t i = 0; i < filter.size(); i++) // between -1 and 1
    filter[i] = (float)(hash((unsigned)i + 0x40000000u) >> 8) / 8388608.0f - 1.0f;

  float *dImage, *dFilter, *dOutput;
  CUDA_CHECK(cudaMalloc(&dImage, image.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dFilter, filter.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dOutput, output.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dImage, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dFilter, filter.data(), filter.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dOutput, 0xff, output.size() * sizeof(float))); // NaN, so that a pixel not written shows

  dim3 block(16, 16);
  dim3 grid((outWidth + block.x - 1) / block.x, (outHeight + block.y - 1) / block.y);
  conv2d<<<grid, block>>>(dImage, dFilter, dOutput, height, width, size);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(output.data(), dOutput, output.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dImage));
  CUDA_CHECK(cudaFree(dFilter));
  CUDA_CHECK(cudaFree(dOutput));

  // The whole output, or of a large one as many pixels as 5e7 multiplications allow. Rounding is relative to the sum of
  // the absolute products; a wrong or missing tap is far more than the bound. NaN fails.
  const size_t budget = std::max<size_t>(1000, 50000000 / filter.size());
  const bool all = output.size() <= budget;
  const unsigned samples = (unsigned)(all ? output.size() : budget);
  int wrong = 0;
  for (unsigned s = 0; s < samples; s++) {
    int y = s / outWidth, x = s % outWidth;
    if (!all)
      pick(s, outHeight, outWidth, &y, &x);
    double want = 0, magnitude = 0;
    for (int i = 0; i < size; i++) {
      for (int j = 0; j < size; j++) {
        double product = (double)image[(size_t)(y + i) * width + x + j] * filter[i * size + j];
        want += product;
        magnitude += fabs(product);
      }
    }
    float got = output[(size_t)y * outWidth + x];
    if (!(fabs(got - want) <= 1e-5 * magnitude) && wrong++ < 3)
      fprintf(stderr, "output[%d][%d] = %g, want %g\n", y, x, got, want);
  }
  printf("%s conv2d height=%d width=%d filter=%d\n", wrong ? "FAIL" : "PASS", height, width, size);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
