// Backward pass of a 3x3 convolution (padding 1): gradients of weights and bias, then one
// SGD-with-momentum update.  Everything NCHW / KCRS in float.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <vector>

struct ConvShape {
    int N;   // images
    int C;   // input channels
    int K;   // output channels
    int H, W;
};

constexpr int R = 3;    // filter size
constexpr int PAD = 1;

template <typename T>
__device__ T inputAt(const T* x, const ConvShape& s, int n, int c, int h, int w)
{
    if (h < 0 || h >= s.H || w < 0 || w >= s.W)
        return T(0);
    return x[((n * s.C + c) * s.H + h) * s.W + w];
}

// block (c, k), thread (s, r): one weight per thread
template <typename T>
__global__ void weightGradient(const T* x, const T* dy, T* dw, ConvShape shape)
{
    int c = blockIdx.x;
    int k = blockIdx.y;
    int s = threadIdx.x;
    int r = threadIdx.y;

    T sum = 0;
    for (int n = 0; n < shape.N; ++n)
        for (int h = 0; h < shape.H; ++h)
            for (int w = 0; w < shape.W; ++w)
                sum += dy[((n * shape.K + k) * shape.H + h) * shape.W + w]
                     * inputAt(x, shape, n, c, h + r - PAD, w + s - PAD);

    dw[((k * shape.C + c) * R + r) * R + s] = sum;
}

template <typename T>
__global__ void biasGradient(const T* dy, T* db, ConvShape shape)
{
    int k = threadIdx.x;
    if (k < shape.K) {
        T sum = 0;
        for (int n = 0; n < shape.N; ++n)
            for (int i = 0; i < shape.H * shape.W; ++i)
                sum += dy[(n * shape.K + k) * shape.H * shape.W + i];
        db[k] = sum;
    }
}

template <typename T>
__global__ void sgdMomentum(T* param, T* velocity, const T* grad, T lr, T momentum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        velocity[i] = momentum * velocity[i] + grad[i];
        param[i] -= lr * velocity[i];
    }
}

static float* upload(const std::vector<float>& v)
{
    float* p = nullptr;
    cudaMalloc(&p, v.size() * sizeof(float));
    cudaMemcpy(p, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice);
    return p;
}

static void download(std::vector<float>& v, const float* p)
{
    cudaMemcpy(v.data(), p, v.size() * sizeof(float), cudaMemcpyDeviceToHost);
}

int main()
{
    const ConvShape shape = {16, 16, 32, 64, 64};
    const int weights = shape.K * shape.C * R * R;

    std::vector<float> x(shape.N * shape.C * shape.H * shape.W), dy(shape.N * shape.K * shape.H * shape.W);
    std::vector<float> w(weights), vw(weights), dw(weights), b(shape.K), vb(shape.K), db(shape.K);

    unsigned lcg = 5u;
    auto rnd = [&lcg] {
        lcg = lcg * 1664525u + 1013904223u;
        return (float)(lcg >> 8) / 16777216.0f;
    };
    for (float& v : x) v = rnd();
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = 0.01f * (rnd() - 0.2f) * (1.0f + 0.1f * ((i / 4096) % 7));
    for (float& v : w) v = 0.2f * (rnd() - 0.5f);
    for (float& v : vw) v = 0.1f * rnd();
    for (float& v : b) v = rnd() - 0.5f;
    for (float& v : vb) v = 0.1f * rnd();

    float *dX = upload(x), *dDy = upload(dy);
    float *dW = upload(w), *dVw = upload(vw), *dB = upload(b), *dVb = upload(vb);
    float *dDw, *dDb;
    cudaMalloc(&dDw, weights * sizeof(float));
    cudaMalloc(&dDb, shape.K * sizeof(float));

    weightGradient<<<dim3(shape.C, shape.K), dim3(R, R)>>>(dX, dDy, dDw, shape);
    biasGradient<<<1, 64>>>(dDy, dDb, shape);
    sgdMomentum<<<(weights + 255) / 256, 256>>>(dW, dVw, dDw, 0.01f, 0.9f, weights);
    sgdMomentum<<<1, 256>>>(dB, dVb, dDb, 0.01f, 0.9f, shape.K);

    download(w, dW);
    download(vw, dVw);
    download(dw, dDw);
    download(b, dB);
    download(vb, dVb);
    download(db, dDb);
    cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(status));
        return 1;
    }

    double gw = 0, gwPos = 0, pw = 0, sv = 0, gb = 0, pb = 0, maxGw = 0;
    for (int i = 0; i < weights; ++i) {
        gw += dw[i];
        gwPos += dw[i] * (double)(i % 9) * (1 + (i / 9) % 16) * (1 + i / 144 % 3);
        pw += std::fabs(w[i]) * (1 + i % 5);
        sv += vw[i];
        maxGw = std::fmax(maxGw, dw[i]);
    }
    for (int k = 0; k < shape.K; ++k) {
        gb += db[k] * (1 + k);
        pb += std::fabs(b[k]) + vb[k];
    }
    std::printf("dW %.3e by position %.3e max %.3g\n", gw, gwPos, maxGw);
    std::printf("W %.3e velocity %.3e\n", pw, sv);
    std::printf("db %.3e b %.3e\n", gb, pb);

    for (float* p : {dX, dDy, dW, dVw, dB, dVb, dDw, dDb}) cudaFree(p);
    return 0;
}
