// An index in which an expression hides the loop's counter is no affine one, though all threads have it alike.
// RUN: %refused --passes='block-shape[row]{x=16,y=16};stage-shared[row/k:in]{tile=4}' %s 2>&1 | %check=REFUSED
// REFUSED: which is no affine index
__global__ void row(const float *in, const float *w, float *out, int width, int height) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int x = blockIdx.z;
  if (c >= 3 || y >= height)
    return;
  float sum = 0.0f;
  for (int k = 0; k < 11; k++) {
    int place = x + k < 5 ? 0 : x + k - 5;
    sum += w[k] * in[(y * width + place) * 3 + c];
  }
  out[(y * width + x) * 3 + c] = sum;
}
int main() { row<<<dim3(1, 4, 64), dim3(16, 16)>>>(nullptr, nullptr, nullptr, 64, 64); }
