// Short-time Fourier transform of a long real signal and the power spectrum of every frame.
// Plain version: window + bit reversal, then one launch per radix-2 stage, then power, then statistics.
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const int FRAME = 512;
static const int LOG2_FRAME = 9;
static const int HOP = 200;
static const int NFRAMES = 20011;
static const int BINS = FRAME / 2 + 1;

struct FrameStats {
    float energy;
    float centroid;
};

__constant__ float c_window[512];

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "CUDA error in %s: %s\n", what, cudaGetErrorString(e));
        exit(EXIT_FAILURE);
    }
}

__device__ float2 cadd(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ float2 csub(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ float2 cmul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ int reverse_bits(int x, int bits)
{
    int r = 0;
    for (int i = 0; i < bits; i++) {
        r = (r << 1) | (x & 1);
        x >>= 1;
    }
    return r;
}

// grid.y = frame, threads of x = sample inside the frame
__global__ void window_and_reorder(const float *signal, float2 *work)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int frame = blockIdx.y;
    if (i >= FRAME) return;
    float x = signal[(size_t)frame * HOP + i] * c_window[i];
    work[(size_t)frame * FRAME + reverse_bits(i, LOG2_FRAME)] = make_float2(x, 0.0f);
}

// one thread per butterfly; half = distance between the two inputs
__global__ void fft_stage(float2 *work, int half)
{
    size_t tid = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= (size_t)NFRAMES * (FRAME / 2)) return;
    size_t frame = tid / (FRAME / 2);
    int j = tid % (FRAME / 2);
    int k = j % half;
    int top = (j / half) * 2 * half + k;
    float2 *x = work + frame * FRAME;

    float angle = -3.14159265358979f * k / half;
    float2 w = make_float2(cosf(angle), sinf(angle));
    float2 a = x[top];
    float2 b = cmul(w, x[top + half]);
    x[top] = cadd(a, b);
    x[top + half] = csub(a, b);
}

// one thread per output bin
__global__ void power_spectrum(const float2 *work, float *power)
{
    size_t tid = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= (size_t)NFRAMES * BINS) return;
    size_t frame = tid / BINS;
    int k = tid % BINS;
    float2 v = work[frame * FRAME + k];
    power[tid] = (v.x * v.x + v.y * v.y) / FRAME;
}

// one thread per frame
__global__ void frame_statistics(const float *power, FrameStats *stats)
{
    int frame = blockIdx.x * blockDim.x + threadIdx.x;
    if (frame >= NFRAMES) return;
    float sum = 0.0f, weighted = 0.0f;
    for (int k = 0; k < BINS; k++) {
        float p = power[(size_t)frame * BINS + k];
        sum += p;
        weighted += k * p;
    }
    stats[frame].energy = sum;
    stats[frame].centroid = weighted / sum;
}

int main()
{
    const size_t nsignal = (size_t)(NFRAMES - 1) * HOP + FRAME;
    const size_t nwork = (size_t)NFRAMES * FRAME;
    const size_t npower = (size_t)NFRAMES * BINS;

    // signal: square wave of slowly changing period + noise from an LCG
    float *signal = (float *)malloc(nsignal * sizeof(float));
    uint32_t lcg = 12345u;
    double phase = 0.0;
    for (size_t i = 0; i < nsignal; i++) {
        lcg = lcg * 1664525u + 1013904223u;
        double step = 0.01 + 0.15 * (double)i / (double)nsignal;
        phase += step;
        if (phase >= 1.0) phase -= 1.0;
        signal[i] = (phase < 0.4 ? 1.0f : -0.5f) + 0.5f * ((lcg >> 8) / 16777216.0f - 0.5f);
    }
    float window[FRAME];
    for (int i = 0; i < FRAME; i++)
        window[i] = (float)(0.5 - 0.5 * cos(2.0 * M_PI * i / (FRAME - 1)));

    float *d_signal, *d_power;
    float2 *d_work;
    FrameStats *d_stats;
    check(cudaMalloc((void **)&d_signal, nsignal * sizeof(float)), "malloc signal");
    check(cudaMalloc((void **)&d_work, nwork * sizeof(float2)), "malloc work");
    check(cudaMalloc((void **)&d_power, npower * sizeof(float)), "malloc power");
    check(cudaMalloc((void **)&d_stats, NFRAMES * sizeof(FrameStats)), "malloc stats");
    check(cudaMemcpy(d_signal, signal, nsignal * sizeof(float), cudaMemcpyHostToDevice), "copy signal");
    check(cudaMemcpyToSymbol(c_window, window, sizeof(window)), "copy window");

    dim3 grid(FRAME / 256, NFRAMES);
    window_and_reorder<<<grid, 256>>>(d_signal, d_work);
    check(cudaGetLastError(), "window_and_reorder");

    size_t butterflies = (size_t)NFRAMES * (FRAME / 2);
    for (int half = 1; half < FRAME; half *= 2) {
        fft_stage<<<(unsigned)((butterflies + 255) / 256), 256>>>(d_work, half);
        check(cudaGetLastError(), "fft_stage");
    }
    power_spectrum<<<(unsigned)((npower + 255) / 256), 256>>>(d_work, d_power);
    check(cudaGetLastError(), "power_spectrum");
    frame_statistics<<<(NFRAMES + 127) / 128, 128>>>(d_power, d_stats);
    check(cudaGetLastError(), "frame_statistics");
    check(cudaDeviceSynchronize(), "sync");

    float *power = (float *)malloc(npower * sizeof(float));
    FrameStats *stats = (FrameStats *)malloc(NFRAMES * sizeof(FrameStats));
    check(cudaMemcpy(power, d_power, npower * sizeof(float), cudaMemcpyDeviceToHost), "copy power");
    check(cudaMemcpy(stats, d_stats, NFRAMES * sizeof(FrameStats), cudaMemcpyDeviceToHost), "copy stats");

    double total = 0.0, maxp = 0.0, sqrt_sum = 0.0;
    for (size_t i = 0; i < npower; i++) {
        total += power[i];
        sqrt_sum += sqrt((double)power[i]);
        if (power[i] > maxp) maxp = power[i];
    }
    double energy = 0.0, centroid = 0.0, max_energy = 0.0;
    for (int f = 0; f < NFRAMES; f++) {
        energy += stats[f].energy;
        centroid += stats[f].centroid;
        if (stats[f].energy > max_energy) max_energy = stats[f].energy;
    }
    printf("total power     %.7e\n", total);
    printf("sum of moduli   %.7e\n", sqrt_sum);
    printf("largest bin     %.7e\n", maxp);
    printf("energy          %.7e\n", energy);
    printf("largest energy  %.7e\n", max_energy);
    printf("mean centroid   %.7e\n", centroid / NFRAMES);
    for (int i = 0; i < 6; i++) {
        int f = (int)((long long)i * (NFRAMES - 1) / 5);
        double low = 0.0;
        for (int k = 0; k < 64; k++) low += power[(size_t)f * BINS + k];
        printf("frame centroid and low band  %.7e %.7e\n", stats[f].centroid, low);
    }

    cudaFree(d_signal); cudaFree(d_work); cudaFree(d_power); cudaFree(d_stats);
    free(signal); free(power); free(stats);
    return 0;
}
