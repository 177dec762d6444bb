// What is copied of a filter that is read under conditions on the pixel.
// RUN: %plan --passes='block-shape[blur]{x=32,y=1};stage-shared[blur/c:w]{tile=4}' %s | FileCheck %s
// RUN: %plan --passes='block-shape[far]{x=32,y=1};stage-shared[far/c:w]{tile=4}' %s | %check=FAR

// CHECK: when width >= 5  (one thread reads all that is copied)
// CHECK: w_tile{{.*}} ? w[
__global__ void blur(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int channels,
                     int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width)
    return;
  float s = 0;
  for (int c = 0; c < channels; ++c)
    for (int k = 0; k < 5; ++k) {
      int at = i - 2 + k;
      if (at >= 0 && at < width)
        s += x[c * width + at] * w[c * 5 + k];
    }
  y[i] = s;
}

// No thread of a block reaches all of it.
// FAR-NOT: one thread reads
// FAR: w_tile{{.*}}blockIdx.x
__global__ void far(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int channels,
                    int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width)
    return;
  float s = 0;
  for (int c = 0; c < channels; ++c)
    for (int k = 0; k < 101; ++k) {
      int at = i - 50 + k;
      if (at >= 0 && at < width)
        s += x[c * width + at] * w[c * 101 + k];
    }
  y[i] = s;
}
