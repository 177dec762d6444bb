// momentum: trains the biases of a layer of tanh units by gradient descent with momentum, a kernel for each formula:
// the units' outputs, the gradient at their inputs, its mean over the batch for each bias, the velocity and the update.
//
//   momentum [batch units steps]      default 4096 2048 4
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

__global__ void activate(const float *x, const float *bias, float *y, int batch, int units) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < batch * units)
    y[i] = tanhf(x[i] + bias[i % units]);
}

// Of half the squared distance to the targets.
__global__ void inputGradient(const float *y, const float *target, float *dx, int batch, int units) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < batch * units)
    dx[i] = (y[i] - target[i]) * (1.0f - y[i] * y[i]);
}

__global__ void biasGradient(const float *dx, float *dBias, int batch, int units) {
  int unit = blockIdx.x * blockDim.x + threadIdx.x;
  if (unit >= units)
    return;
  float sum = 0.0f;
  for (int b = 0; b < batch; ++b)
    sum += dx[b * units + unit];
  dBias[unit] = sum / batch;
}

__global__ void addMomentum(float *velocity, const float *dBias, int n, float momentum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    velocity[i] = momentum * velocity[i] + dBias[i];
}

__global__ void update(float *bias, const float *velocity, int n, float rate) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    bias[i] -= rate * velocity[i];
}

static unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static float uniform(unsigned counter) { return (float)(hash(counter) >> 8) / 16777216.0f; }

int main(int argc, char **argv) {
  int batch = argc > 1 ? atoi(argv[1]) : 4096;
  int units = argc > 2 ? atoi(argv[2]) : 2048;
  int steps = argc > 3 ? atoi(argv[3]) : 4;
  if (argc > 4 || batch < 1 || units < 1 || (long long)batch * units > 1000000000 || steps < 1 || steps > 1000) {
    fprintf(stderr, "usage: %s [batch units steps]   each at least 1, batch * units at most 1e9, 1000 steps at most\n",
            argv[0]);
    return EXIT_FAILURE;
  }
  const float rate = 0.5f, momentum = 0.75f;
  const int count = batch * units;

  std::vector<float> x(count), target(count), bias(units), got(units);
  for (int i = 0; i < count; ++i) {
    x[i] = 2.0f * uniform(i) - 1.0f;
    target[i] = 1.5f * uniform(0x80000000u + i) - 0.25f;
  }
  for (int i = 0; i < units; ++i)
    bias[i] = uniform(0x60000000u + i) - 0.5f;

  float *dx, *dTarget, *dy, *dGradient, *dBias, *dBiasGradient, *dVelocity;
  CUDA_CHECK(cudaMalloc(&dx, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dTarget, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dy, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dGradient, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dBias, units * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dBiasGradient, units * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dVelocity, units * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dTarget, target.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dBias, bias.data(), units * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dVelocity, 0, units * sizeof(float)));
  CUDA_CHECK(cudaMemset(dBiasGradient, 0xff, units * sizeof(float))); // NaN, so that one that is not written shows

  const int threads = 256;
  for (int step = 0; step < steps; ++step) {
    activate<<<(count + threads - 1) / threads, threads>>>(dx, dBias, dy, batch, units);
    inputGradient<<<(count + threads - 1) / threads, threads>>>(dy, dTarget, dGradient, batch, units);
    biasGradient<<<(units + threads - 1) / threads, threads>>>(dGradient, dBiasGradient, batch, units);
    addMomentum<<<(units + threads - 1) / threads, threads>>>(dVelocity, dBiasGradient, units, momentum);
    update<<<(units + threads - 1) / threads, threads>>>(dBias, dVelocity, units, rate);
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got.data(), dBias, units * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dTarget));
  CUDA_CHECK(cudaFree(dy));
  CUDA_CHECK(cudaFree(dGradient));
  CUDA_CHECK(cudaFree(dBias));
  CUDA_CHECK(cudaFree(dBiasGradient));
  CUDA_CHECK(cudaFree(dVelocity));

  // All units, or of many the first, the last and others anywhere, 2e7 activations together. A mean of numbers below 2
  // is off by some roundings of its sum; the steps add up what their gradients are off. NaN fails.
  const int checked = (int)std::min<long long>(units, std::max<long long>(16, 20000000LL / ((long long)batch * steps)));
  const double bound = 2e-7 * (4 + std::sqrt((double)batch)) * steps;
  int wrong = 0;
  for (int s = 0; s < checked; ++s) {
    int unit = checked == units ? s : s == 0 ? 0 : s == 1 ? units - 1 : (int)(hash(s) % units);
    double want = bias[unit], velocity = 0;
    for (int step = 0; step < steps; ++step) {
      double sum = 0;
      for (int b = 0; b < batch; ++b) {
        double y = tanh(x[(size_t)b * units + unit] + want);
        sum += (y - target[(size_t)b * units + unit]) * (1 - y * y);
      }
      velocity = (double)momentum * velocity + sum / batch;
      want -= (double)rate * velocity;
    }
    if (!(fabs(got[unit] - want) <= bound) && wrong++ < 3)
      fprintf(stderr, "bias[%d] = %g, want %g\n", unit, got[unit], want);
  }
  printf("%s momentum batch=%d units=%d steps=%d\n", wrong ? "FAIL" : "PASS", batch, units, steps);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
