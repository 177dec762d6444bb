// Depthwise 2D convolution, 5x5, zero padding, NCHW
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t e_ = (call);                                           \
        if (e_ != cudaSuccess) {                                           \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

struct Dims { int N, C, H, W; };

template <int K>
__global__ void depthwise_conv(const float* in, const float* weight, const float* bias, float* out, const Dims d)
{
    const int idx = blockIdx.x * blockDim.x + threadIdx.x;
    const int total = d.N * d.C * d.H * d.W;
    if (idx >= total) return;

    const int w = idx % d.W;
    const int h = (idx / d.W) % d.H;
    const int c = (idx / (d.W * d.H)) % d.C;
    const int n = idx / (d.W * d.H * d.C);

    float acc = bias[c];
    for (int kh = 0; kh < K; ++kh) {
        for (int kw = 0; kw < K; ++kw) {
            const int ih = h + kh - K / 2;
            const int iw = w + kw - K / 2;
            if (ih >= 0 && ih < d.H && iw >= 0 && iw < d.W) {
                acc += in[((n * d.C + c) * d.H + ih) * d.W + iw] * weight[(c * K + kh) * K + kw];
            }
        }
    }
    out[idx] = acc;
}

static float lcg(unsigned& s)
{
    s = s * 22695477u + 1u;
    return (float)(s >> 9) / 8388608.0f;
}

int main()
{
    const int K = 5;
    Dims d{16, 96, 112, 112};
    const size_t n = (size_t)d.N * d.C * d.H * d.W;
    float* h_in = (float*)malloc(n * sizeof(float));
    float* h_out = (float*)malloc(n * sizeof(float));
    float* h_w = (float*)malloc(d.C * K * K * sizeof(float));
    float* h_b = (float*)malloc(d.C * sizeof(float));
    unsigned s = 2024u;
    for (size_t i = 0; i < n; ++i) h_in[i] = lcg(s);
    for (int i = 0; i < d.C * K * K; ++i) h_w[i] = lcg(s) - 0.3f;
    for (int i = 0; i < d.C; ++i) h_b[i] = lcg(s);

    float *in, *out, *wt, *bs;
    CHECK(cudaMalloc(&in, n * sizeof(float)));
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    CHECK(cudaMalloc(&wt, d.C * K * K * sizeof(float)));
    CHECK(cudaMalloc(&bs, d.C * sizeof(float)));
    CHECK(cudaMemcpy(in, h_in, n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(wt, h_w, d.C * K * K * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(bs, h_b, d.C * sizeof(float), cudaMemcpyHostToDevice));

    const int threads = 256;
    const int blocks = (int)((n + threads - 1) / threads);
    depthwise_conv<K><<<blocks, threads>>>(in, wt, bs, out, d);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_out, out, n * sizeof(float), cudaMemcpyDeviceToHost));

    double sum = 0, sq = 0;
    for (size_t i = 0; i < n; ++i) { sum += h_out[i]; sq += (double)h_out[i] * h_out[i]; }
    printf("%.5e %.5e\n", sum, sq);
    printf("%.4e %.4e %.4e %.4e\n", h_out[0], h_out[111], h_out[n / 3], h_out[n - 1]);
    return 0;
}
