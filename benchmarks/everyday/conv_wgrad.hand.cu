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

// The fast kernel is made for this layer.
constexpr int N_ = 16, C_ = 16, K_ = 32, H_ = 64, W_ = 64;
constexpr int CG = 2;                     // input channels per block (shared by its warps)
constexpr int KG = 4;                     // output channels per warp
constexpr int WARPS = K_ / KG;            // 8
constexpr int BAND = H_ / 2;              // output rows per block
constexpr int THREADS = WARPS * 32;
static_assert(C_ % CG == 0 && K_ % KG == 0 && W_ % 32 == 0 && PAD == 1 && R == 3, "layer shape");

// Block (image, channel pair, half of the rows); a lane walks down one pixel column with a 3x3
// window in registers and adds to 2x4x9 gradients, which the warp reduces at the very end.
__global__ void __launch_bounds__(THREADS, 2)
gradients(const float* __restrict__ x, const float* __restrict__ dy, float* __restrict__ dw,
          float* __restrict__ db)
{
    __shared__ float sx[CG][BAND + 2][W_ + 2];
    const int n = blockIdx.x, c0 = blockIdx.y * CG, h0 = blockIdx.z * BAND;
    const int tid = threadIdx.x, lane = tid & 31, k0 = (tid >> 5) * KG;

    for (int e = tid; e < CG * (BAND + 2) * (W_ + 2); e += THREADS) {
        const int col = e % (W_ + 2), row = e / (W_ + 2) % (BAND + 2), c = e / ((W_ + 2) * (BAND + 2));
        const int h = h0 + row - 1, w = col - 1;
        sx[c][row][col] = h >= 0 && h < H_ && w >= 0 && w < W_ ? x[((n * C_ + c0 + c) * H_ + h) * W_ + w] : 0.0f;
    }
    __syncthreads();

    float acc[CG][KG][R * R], bias[KG];
    #pragma unroll
    for (int k = 0; k < KG; ++k) {
        bias[k] = 0.0f;
        #pragma unroll
        for (int c = 0; c < CG; ++c)
            #pragma unroll
            for (int q = 0; q < R * R; ++q) acc[c][k][q] = 0.0f;
    }

    for (int w = lane; w < W_; w += 32) {
        float win[CG][R][R];              // win[c][r][s] = input (h + r - 1, w + s - 1)
        #pragma unroll
        for (int c = 0; c < CG; ++c)
            #pragma unroll
            for (int s = 0; s < R; ++s) {
                win[c][1][s] = sx[c][0][w + s];
                win[c][2][s] = sx[c][1][w + s];
            }
        const float* g = dy + ((n * K_ + k0) * H_ + h0) * W_ + w;
        #pragma unroll 4
        for (int h = 0; h < BAND; ++h) {
            #pragma unroll
            for (int c = 0; c < CG; ++c)
                #pragma unroll
                for (int s = 0; s < R; ++s) {
                    win[c][0][s] = win[c][1][s];
                    win[c][1][s] = win[c][2][s];
                    win[c][2][s] = sx[c][h + 2][w + s];
                }
            #pragma unroll
            for (int k = 0; k < KG; ++k) {
                const float d = g[k * H_ * W_ + h * W_];
                bias[k] += d;
                #pragma unroll
                for (int c = 0; c < CG; ++c)
                    #pragma unroll
                    for (int q = 0; q < R * R; ++q) acc[c][k][q] += d * win[c][q / R][q % R];
            }
        }
    }

    #pragma unroll
    for (int c = 0; c < CG; ++c)
        #pragma unroll
        for (int k = 0; k < KG; ++k)
            #pragma unroll
            for (int q = 0; q < R * R; ++q) {
                float v = acc[c][k][q];
                #pragma unroll
                for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
                if (lane == ((c * KG + k) * R * R + q) % 32)
                    atomicAdd(&dw[((k0 + k) * C_ + c0 + c) * R * R + q], v);
            }
    if (blockIdx.y == 0) {
        #pragma unroll
        for (int k = 0; k < KG; ++k) {
            float v = bias[k];
            #pragma unroll
            for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
            if (lane == k) atomicAdd(&db[k0 + k], v);
        }
    }
}

__device__ __forceinline__ void momentumStep(float& param, float& velocity, float grad, float lr, float momentum)
{
    const float v = momentum * velocity + grad;
    velocity = v;
    param -= lr * v;
}

// weights and bias in one launch
__global__ void __launch_bounds__(256)
sgdMomentum(float* __restrict__ w, float* __restrict__ vw, const float* __restrict__ dw, int weights,
            float* __restrict__ b, float* __restrict__ vb, const float* __restrict__ db, int biases,
            float lr, float momentum)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < weights)               momentumStep(w[i], vw[i], dw[i], lr, momentum);
    else if (i < weights + biases) momentumStep(b[i - weights], vb[i - weights], db[i - weights], lr, momentum);
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
    const ConvShape shape = {N_, C_, K_, H_, W_};
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

    cudaMemset(dDw, 0, weights * sizeof(float));
    cudaMemset(dDb, 0, shape.K * sizeof(float));

    gradients<<<dim3(N_, C_ / CG, H_ / BAND), THREADS>>>(dX, dDy, dDw, dDb);
    sgdMomentum<<<(weights + shape.K + 255) / 256, 256>>>(dW, dVw, dDw, weights, dB, dVb, dDb, shape.K, 0.01f, 0.9f);

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
