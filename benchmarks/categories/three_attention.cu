// Attention for 8 heads of 1024 queries and keys of dimension 64, in three kernels: scaled scores,
// softmax of each score row, and the product with the values.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

struct Dims {
    int heads;
    int len;
    int dim;
};

__global__ void attention_scores(const float* q, const float* k, float* scores, Dims d)
{
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    int head = blockIdx.z;
    if (key >= d.len || query >= d.len) return;
    const float* qrow = q + (head * d.len + query) * d.dim;
    const float* krow = k + (head * d.len + key) * d.dim;
    float dot = 0.0f;
    for (int i = 0; i < d.dim; ++i)
        dot += qrow[i] * krow[i];
    scores[(head * d.len + query) * d.len + key] = dot / sqrtf((float)d.dim);
}

__global__ void attention_softmax(float* scores, Dims d)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= d.heads * d.len) return;
    float* s = scores + row * d.len;
    float top = -INFINITY;
    for (int i = 0; i < d.len; ++i)
        top = fmaxf(top, s[i]);
    float sum = 0.0f;
    for (int i = 0; i < d.len; ++i) {
        s[i] = expf(s[i] - top);
        sum += s[i];
    }
    for (int i = 0; i < d.len; ++i)
        s[i] /= sum;
}

__global__ void attention_output(const float* scores, const float* v, float* out, Dims d)
{
    int col = threadIdx.x;
    int query = blockIdx.x * blockDim.y + threadIdx.y;
    int head = blockIdx.y;
    float sum = 0.0f;
    for (int key = 0; key < d.len; ++key)
        sum += scores[(head * d.len + query) * d.len + key] * v[(head * d.len + key) * d.dim + col];
    out[(head * d.len + query) * d.dim + col] = sum;
}

static void fill(std::vector<float>& a, unsigned seed, float scale, float offset)
{
    for (size_t i = 0; i < a.size(); ++i) {
        seed = seed * 214013u + 2531011u;
        a[i] = scale * (((seed >> 8) & 0xffff) / 32768.0f - 1.0f) + offset;
    }
}

int main()
{
    Dims d = {8, 1024, 64};
    size_t n = (size_t)d.heads * d.len * d.dim;
    size_t bytes = n * sizeof(float);
    std::vector<float> q(n), k(n), v(n), out(n);
    fill(q, 1, 4.0f, 0.0f);
    fill(k, 2, 1.0f, 0.0f);
    fill(v, 3, 1.0f, 0.75f);

    float *dq, *dk, *dv, *dout, *dscores;
    cudaMalloc(&dq, bytes);
    cudaMalloc(&dk, bytes);
    cudaMalloc(&dv, bytes);
    cudaMalloc(&dout, bytes);
    cudaMalloc(&dscores, (size_t)d.heads * d.len * d.len * sizeof(float));
    cudaMemcpy(dq, q.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(dk, k.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(dv, v.data(), bytes, cudaMemcpyHostToDevice);

    attention_scores<<<dim3(d.len / 32, d.len / 8, d.heads), dim3(32, 8)>>>(dq, dk, dscores, d);
    attention_softmax<<<d.heads * d.len / 64, 64>>>(dscores, d);
    attention_output<<<dim3(d.len / 4, d.heads), dim3(64, 4)>>>(dscores, dv, dout, d);

    if (cudaMemcpy(out.data(), dout, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        fprintf(stderr, "attention failed\n");
        return 1;
    }
    double sum = 0.0, weighted = 0.0, spread = 0.0;
    for (size_t i = 0; i < n; ++i) {
        sum += out[i];
        weighted += fabs(out[i]) * (1 + i % 64 + i / 65536);
        spread += (out[i] - 0.75) * (out[i] - 0.75);
    }
    printf("sum %.6e\nweighted %.6e\nspread %.6e\n", sum, weighted, spread);
    return 0;
}
