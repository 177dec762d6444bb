// Log-mel spectrogram of a 16-bit PCM signal: Hann window, radix-2 FFT, power spectrum, mel
// filter bank, decibels, and the mean and standard deviation of every mel band over time.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(x)                                                                   \
    do {                                                                           \
        cudaError_t e_ = (x);                                                      \
        if (e_ != cudaSuccess) {                                                   \
            printf("error: %s in line %d\n", cudaGetErrorString(e_), __LINE__);    \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

#define PI_F 3.14159265358979f

const int FFT_SIZE = 1024;
const int LOG2_FFT = 10;
const int HOP = 400;
const int FRAMES = 12345;
const int BINS = FFT_SIZE / 2 + 1;
const int MELS = 80;
const int SAMPLE_RATE = 16000;

struct Complex {
    float re;
    float im;
};

__device__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
__device__ Complex operator*(Complex a, Complex b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__device__ int reverse_bits(int v, int bits)
{
    int r = 0;
    for (int i = 0; i < bits; i++) {
        r = (r << 1) | (v & 1);
        v >>= 1;
    }
    return r;
}

// windowed samples, in bit reversed order
__global__ void window_frames(const short* pcm, Complex* data)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int frame = blockIdx.y;
    if (i >= FFT_SIZE) return;
    float w = 0.5f - 0.5f * cosf(2.0f * PI_F * i / FFT_SIZE);
    Complex c;
    c.re = w * (float)pcm[frame * HOP + i];
    c.im = 0.0f;
    data[frame * FFT_SIZE + reverse_bits(i, LOG2_FFT)] = c;
}

// one butterfly per thread
__global__ void fft_stage(Complex* data, int half)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int frame = blockIdx.y;
    if (t >= FFT_SIZE / 2) return;
    int k = t % half;
    int i = (t / half) * half * 2 + k;
    Complex* x = data + frame * FFT_SIZE;
    float angle = -PI_F * k / half;
    Complex w;
    w.re = cosf(angle);
    w.im = sinf(angle);
    Complex a = x[i];
    Complex b = x[i + half] * w;
    x[i] = a + b;
    x[i + half] = a - b;
}

__global__ void power_spectrum(const Complex* data, float* power)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    int frame = blockIdx.y;
    if (b >= BINS) return;
    Complex c = data[frame * FFT_SIZE + b];
    power[frame * BINS + b] = c.re * c.re + c.im * c.im;
}

// one thread per (frame, mel band), dense filter matrix
__global__ void mel_filter(const float* power, const float* filters, float* mel)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= FRAMES * MELS) return;
    int frame = t / MELS;
    int m = t % MELS;
    float sum = 0.0f;
    for (int b = 0; b < BINS; b++) sum += filters[m * BINS + b] * power[frame * BINS + b];
    mel[t] = sum;
}

__global__ void to_decibel(float* mel, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    mel[t] = 10.0f * log10f(fmaxf(mel[t], 1e-3f));
}

// one block per band
__global__ void band_statistics(const float* mel, float* mean, float* stddev)
{
    __shared__ float buf[128];
    int m = blockIdx.x;
    int tid = threadIdx.x;

    float sum = 0.0f;
    for (int f = tid; f < FRAMES; f += 128) sum += mel[f * MELS + m];
    buf[tid] = sum;
    __syncthreads();
    for (int s = 64; s > 0; s /= 2) {
        if (tid < s) buf[tid] += buf[tid + s];
        __syncthreads();
    }
    float mu = buf[0] / FRAMES;
    __syncthreads();

    float sq = 0.0f;
    for (int f = tid; f < FRAMES; f += 128) {
        float d = mel[f * MELS + m] - mu;
        sq += d * d;
    }
    buf[tid] = sq;
    __syncthreads();
    for (int s = 64; s > 0; s /= 2) {
        if (tid < s) buf[tid] += buf[tid + s];
        __syncthreads();
    }
    if (tid == 0) {
        mean[m] = mu;
        stddev[m] = sqrtf(buf[0] / FRAMES);
    }
}

static double hz_to_mel(double hz) { return 2595.0 * log10(1.0 + hz / 700.0); }
static double mel_to_hz(double mel) { return 700.0 * (pow(10.0, mel / 2595.0) - 1.0); }

int main()
{
    // two gliding square waves and noise, with a slowly changing level
    const int samples = (FRAMES - 1) * HOP + FFT_SIZE;
    std::vector<short> pcm(samples);
    uint32_t rng = 99, phase1 = 0, phase2 = 0;
    for (int i = 0; i < samples; i++) {
        rng = rng * 1664525u + 1013904223u;
        phase1 += 60000000u + (uint32_t)(i % 160000) * 1500u;
        phase2 += 400000000u - (uint32_t)(i % 96000) * 3000u;
        int level = 800 + (i >> 4) % 4000;
        int v = (phase1 >> 31) ? level : -level;
        v += (phase2 >> 31) ? 900 : -900;
        v += (int)(rng >> 20) - 2048;
        pcm[i] = (short)v;
    }
    // triangular mel filters
    std::vector<float> filters(MELS * BINS, 0.0f);
    double edge[MELS + 2];
    for (int m = 0; m < MELS + 2; m++)
        edge[m] = mel_to_hz(hz_to_mel(SAMPLE_RATE / 2.0) * m / (MELS + 1));
    for (int m = 0; m < MELS; m++)
        for (int b = 0; b < BINS; b++) {
            double hz = (double)b * SAMPLE_RATE / FFT_SIZE;
            double up = (hz - edge[m]) / (edge[m + 1] - edge[m]);
            double down = (edge[m + 2] - hz) / (edge[m + 2] - edge[m + 1]);
            double w = up < down ? up : down;
            if (w > 0) filters[m * BINS + b] = (float)w;
        }

    short* d_pcm;
    Complex* d_data;
    float *d_power, *d_filters, *d_mel, *d_mean, *d_std;
    CHECK(cudaMalloc(&d_pcm, samples * sizeof(short)));
    CHECK(cudaMalloc(&d_data, sizeof(Complex) * FRAMES * FFT_SIZE));
    CHECK(cudaMalloc(&d_power, sizeof(float) * FRAMES * BINS));
    CHECK(cudaMalloc(&d_filters, sizeof(float) * MELS * BINS));
    CHECK(cudaMalloc(&d_mel, sizeof(float) * FRAMES * MELS));
    CHECK(cudaMalloc(&d_mean, sizeof(float) * MELS));
    CHECK(cudaMalloc(&d_std, sizeof(float) * MELS));
    CHECK(cudaMemcpy(d_pcm, pcm.data(), samples * sizeof(short), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_filters, filters.data(), sizeof(float) * MELS * BINS,
                     cudaMemcpyHostToDevice));

    window_frames<<<dim3(FFT_SIZE / 256, FRAMES), 256>>>(d_pcm, d_data);
    CHECK(cudaGetLastError());
    for (int half = 1; half < FFT_SIZE; half *= 2) {
        fft_stage<<<dim3(FFT_SIZE / 2 / 256, FRAMES), 256>>>(d_data, half);
        CHECK(cudaGetLastError());
    }
    power_spectrum<<<dim3((BINS + 127) / 128, FRAMES), 128>>>(d_data, d_power);
    CHECK(cudaGetLastError());
    mel_filter<<<(FRAMES * MELS + 255) / 256, 256>>>(d_power, d_filters, d_mel);
    CHECK(cudaGetLastError());
    to_decibel<<<(FRAMES * MELS + 255) / 256, 256>>>(d_mel, FRAMES * MELS);
    CHECK(cudaGetLastError());
    band_statistics<<<MELS, 128>>>(d_mel, d_mean, d_std);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    std::vector<float> mel(FRAMES * MELS), mean(MELS), stddev(MELS);
    CHECK(cudaMemcpy(mel.data(), d_mel, sizeof(float) * FRAMES * MELS, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(mean.data(), d_mean, sizeof(float) * MELS, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(stddev.data(), d_std, sizeof(float) * MELS, cudaMemcpyDeviceToHost));

    double total = 0, weighted = 0, top = 0, meanSum = 0, stdSum = 0;
    for (int i = 0; i < FRAMES * MELS; i++) {
        total += mel[i];
        weighted += mel[i] * (1.0 + i % 11);
        if (mel[i] > top) top = mel[i];
    }
    for (int m = 0; m < MELS; m++) {
        meanSum += mean[m];
        stdSum += stddev[m];
    }
    printf("log mel sum %.8e weighted %.8e max %.8e\n", total, weighted, top);
    printf("band mean sum %.8e deviation sum %.8e\n", meanSum, stdSum);
    for (int m = 2; m < MELS; m += 25) printf("band %.8e %.8e\n", mean[m], stddev[m]);
    for (int f = 1; f < FRAMES; f += 4111) printf("value %.8e\n", mel[f * MELS + f % MELS]);

    CHECK(cudaFree(d_pcm));
    CHECK(cudaFree(d_data));
    CHECK(cudaFree(d_power));
    CHECK(cudaFree(d_filters));
    CHECK(cudaFree(d_mel));
    CHECK(cudaFree(d_mean));
    CHECK(cudaFree(d_std));
    return 0;
}
