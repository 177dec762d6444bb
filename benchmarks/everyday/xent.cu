// Cross entropy with softmax: loss of each row and gradient of the logits
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cmath>
#include <cuda_runtime.h>

using index_t = int64_t;

#define IGNORE_INDEX (-100)

__global__ void cross_entropy(const float *logits, const int *target, float *loss, float *grad,
                              index_t rows, index_t vocab)
{
    const index_t r = static_cast<index_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r >= rows) return;

    const float *z = logits + r * vocab;
    float *g = grad + r * vocab;
    const int t = target[r];
    if (t == IGNORE_INDEX) {
        loss[r] = 0.0f;
        for (index_t j = 0; j < vocab; ++j) g[j] = 0.0f;
        return;
    }

    float zmax = -INFINITY;
    for (index_t j = 0; j < vocab; ++j) zmax = fmaxf(zmax, z[j]);

    float denom = 0.0f;
    for (index_t j = 0; j < vocab; ++j) denom += expf(z[j] - zmax);

    loss[r] = logf(denom) + zmax - z[t];

    for (index_t j = 0; j < vocab; ++j) {
        float p = expf(z[j] - zmax) / denom;
        if (j == t) p -= 1.0f;
        g[j] = p / rows;
    }
}

int main()
{
    const index_t rows = 2048, vocab = 10000;
    std::vector<float> logits(rows * vocab), grad(rows * vocab), loss(rows);
    std::vector<int> target(rows);
    uint32_t s = 20240607u;
    for (auto &v : logits) {
        s = s * 747796405u + 2891336453u;
        v = (s >> 8) * (8.0f / 16777216.0f) - 4.0f;
    }
    for (index_t r = 0; r < rows; ++r) {
        s = s * 747796405u + 2891336453u;
        target[r] = (r % 37 == 5) ? IGNORE_INDEX : (int)((s >> 4) % vocab);
    }

    float *d_logits, *d_loss, *d_grad;
    int *d_target;
    cudaMalloc(&d_logits, logits.size() * sizeof(float));
    cudaMalloc(&d_grad, grad.size() * sizeof(float));
    cudaMalloc(&d_loss, rows * sizeof(float));
    cudaMalloc(&d_target, rows * sizeof(int));
    cudaMemcpy(d_logits, logits.data(), logits.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_target, target.data(), rows * sizeof(int), cudaMemcpyHostToDevice);

    cross_entropy<<<(unsigned)((rows + 63) / 64), 64>>>(d_logits, d_target, d_loss, d_grad, rows, vocab);

    cudaMemcpy(loss.data(), d_loss, rows * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(grad.data(), d_grad, grad.size() * sizeof(float), cudaMemcpyDeviceToHost);

    double total = 0, ga = 0;
    for (float v : loss) total += v;
    for (float v : grad) ga += std::fabs((double)v);
    printf("mean loss %.4e  sum|grad| %.4e\n", total / rows, ga);
    printf("loss[0] %.4e loss[5] %.4e loss[2047] %.4e grad[0] %.3e grad[last] %.3e\n",
           loss[0], loss[5], loss[2047], grad[0], grad[grad.size() - 1]);
    return 0;
}
