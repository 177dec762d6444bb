// Short-time Fourier transform of a long real signal and the power spectrum of every frame,
// tuned for H200 (sm_90). Everything is fused in one kernel:
//  * one warp transforms two real frames at once as one complex 512-point FFT (z = a + i b);
//  * 512 = 8 x 8 x 8: three radix-8 passes in registers (16 complex values per lane) with two exchanges
//    through swizzled, conflict-free shared memory, synchronized per warp only;
//  * the spectra of a and b are separated with shuffles, power and statistics come right after.
// DRAM traffic is only the signal (once) and the power spectrum.
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const int FRAME = 512;
static const int HOP = 200;
static const int NFRAMES = 20011;
static const int BINS = FRAME / 2 + 1;
static const int WARPS = 4;                 // per block
static const int PAIRS = (NFRAMES + 1) / 2;

struct FrameStats {
    float energy;
    float centroid;
};

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "CUDA error in %s: %s\n", what, cudaGetErrorString(e));
        exit(EXIT_FAILURE);
    }
}

__device__ __forceinline__ float2 cadd(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 csub(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 cmul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
__device__ __forceinline__ float2 mul_mi(float2 a) { return make_float2(a.y, -a.x); }      // a * (-i)

__device__ __forceinline__ void fft4(float2 &a0, float2 &a1, float2 &a2, float2 &a3)
{
    float2 s0 = cadd(a0, a2), s1 = csub(a0, a2);
    float2 s2 = cadd(a1, a3), s3 = mul_mi(csub(a1, a3));
    a0 = cadd(s0, s2);
    a1 = cadd(s1, s3);
    a2 = csub(s0, s2);
    a3 = csub(s1, s3);
}

// forward 8-point transform, natural order in and out
__device__ __forceinline__ void fft8(float2 (&v)[8])
{
    const float r = 0.70710678118654752f;
    float2 a0 = cadd(v[0], v[4]), b0 = csub(v[0], v[4]);
    float2 a1 = cadd(v[1], v[5]), b1 = csub(v[1], v[5]);
    float2 a2 = cadd(v[2], v[6]), b2 = csub(v[2], v[6]);
    float2 a3 = cadd(v[3], v[7]), b3 = csub(v[3], v[7]);
    b1 = make_float2((b1.x + b1.y) * r, (b1.y - b1.x) * r);
    b2 = mul_mi(b2);
    b3 = make_float2((b3.y - b3.x) * r, -(b3.x + b3.y) * r);
    fft4(a0, a1, a2, a3);
    fft4(b0, b1, b2, b3);
    v[0] = a0; v[2] = a1; v[4] = a2; v[6] = a3;
    v[1] = b0; v[3] = b1; v[5] = b2; v[7] = b3;
}

// v[j] *= w^j
__device__ __forceinline__ void twiddle8(float2 (&v)[8], float2 w)
{
    float2 w2 = cmul(w, w), w3 = cmul(w2, w), w4 = cmul(w2, w2);
    v[1] = cmul(v[1], w);
    v[2] = cmul(v[2], w2);
    v[3] = cmul(v[3], w3);
    v[4] = cmul(v[4], w4);
    v[5] = cmul(v[5], cmul(w4, w));
    v[6] = cmul(v[6], cmul(w3, w3));
    v[7] = cmul(v[7], cmul(w4, w3));
}

// power of the two real signals whose transforms are packed in x = X[k] and y = X[N - k]
__device__ __forceinline__ float2 split_power(float2 x, float2 y)
{
    const float ar = x.x + y.x, ai = x.y - y.y;
    const float br = x.y + y.y, bi = y.x - x.x;
    const float c = 0.25f / FRAME;
    return make_float2((ar * ar + ai * ai) * c, (br * br + bi * bi) * c);
}

__device__ __forceinline__ float2 shfl2(float2 v, int src)
{
    return make_float2(__shfl_sync(0xffffffffu, v.x, src), __shfl_sync(0xffffffffu, v.y, src));
}

__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
    return x;
}

__global__ void __launch_bounds__(WARPS * 32)
stft_kernel(const float *__restrict__ signal, const float *__restrict__ window,
            const float2 *__restrict__ roots, float *__restrict__ power, FrameStats *__restrict__ stats)
{
    __shared__ float2 buffer[WARPS][FRAME];
    const int lane = threadIdx.x & 31;
    const int pair = blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (pair >= PAIRS) return;                          // whole warps only
    float2 *sh = buffer[threadIdx.x >> 5];
    const int fa = 2 * pair;
    const bool has_b = fa + 1 < NFRAMES;

    // element n = 64 j + b of set s has b = lane + 32 s
    const float *sa = signal + (size_t)fa * HOP + lane;
    const float *sb = has_b ? sa + HOP : sa;            // odd frame count: the last frame is its own partner
    float2 v[2][8];
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int n = 64 * j + 32 * s;
            const float w = __ldg(window + n + lane);
            v[s][j] = make_float2(__ldg(sa + n) * w, __ldg(sb + n) * w);
        }
    const float2 w512_0 = __ldg(roots + lane);
    const float2 w512_1 = __ldg(roots + lane + 32);
    const float2 w64 = __ldg(roots + 8 * (lane & 7));

    // pass 1: y[k1][b] = W512^(b k1) sum_j z[64 j + b] W8^(j k1)
    fft8(v[0]); twiddle8(v[0], w512_0);
    fft8(v[1]); twiddle8(v[1], w512_1);
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int k1 = 0; k1 < 8; k1++)
            sh[k1 * 64 + ((lane + 32 * s) ^ ((k1 & 1) << 3))] = v[s][k1];
    __syncwarp();

    // pass 2: thread (k1, d) of 64; u[k1][m1][d] = W64^(d m1) sum_c y[k1][8 c + d] W8^(c m1)
    const int d = lane & 7;
#pragma unroll
    for (int s = 0; s < 2; s++) {
        const int k1 = (lane >> 3) + 4 * s;
#pragma unroll
        for (int c = 0; c < 8; c++)
            v[s][c] = sh[k1 * 64 + ((8 * c + d) ^ ((k1 & 1) << 3))];
    }
    fft8(v[0]); twiddle8(v[0], w64);
    fft8(v[1]); twiddle8(v[1], w64);
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 2; s++) {
        const int k1 = (lane >> 3) + 4 * s;
#pragma unroll
        for (int m1 = 0; m1 < 8; m1++)
            sh[m1 * 64 + k1 * 8 + (d ^ k1 ^ (m1 & 1))] = v[s][m1];
    }
    __syncwarp();

    // pass 3: thread t = k1 + 8 m1 of 64; X[t + 64 m2] = sum_d u[k1][m1][d] W8^(d m2)
#pragma unroll
    for (int s = 0; s < 2; s++) {
        const int k1 = lane & 7;
        const int m1 = (lane >> 3) + 4 * s;
#pragma unroll
        for (int e = 0; e < 8; e++)
            v[s][e] = sh[m1 * 64 + k1 * 8 + (e ^ k1 ^ (m1 & 1))];
    }
    fft8(v[0]);
    fft8(v[1]);

    // separation: bin k = lane + 32 s + 64 m needs X[512 - k], which is element 7 - m of the other set in
    // lane 32 - lane; lane 0 holds its partners itself (k = 64 m <-> 8 - m of set 0, 32 + 64 m <-> 7 - m of set 1)
    const int src = (32 - lane) & 31;
    float *pa = power + (size_t)fa * BINS;
    float *pb = pa + BINS;
    float ea = 0.f, eb = 0.f, wa = 0.f, wb = 0.f;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        float2 y0 = shfl2(v[1][7 - m], src);
        float2 y1 = shfl2(v[0][7 - m], src);
        if (lane == 0) {
            y0 = v[0][(8 - m) & 7];
            y1 = v[1][7 - m];
        }
        const int k0 = lane + 64 * m, k1 = k0 + 32;
        const float2 p0 = split_power(v[0][m], y0);
        const float2 p1 = split_power(v[1][m], y1);
        pa[k0] = p0.x;
        pa[k1] = p1.x;
        if (has_b) {
            pb[k0] = p0.y;
            pb[k1] = p1.y;
        }
        ea += p0.x + p1.x;
        eb += p0.y + p1.y;
        wa += k0 * p0.x + k1 * p1.x;
        wb += k0 * p0.y + k1 * p1.y;
    }
    if (lane == 0) {                                    // bin 256
        const float2 p = split_power(v[0][4], v[0][4]);
        pa[256] = p.x;
        if (has_b) pb[256] = p.y;
        ea += p.x; eb += p.y;
        wa += 256.f * p.x; wb += 256.f * p.y;
    }
    ea = warp_sum(ea); eb = warp_sum(eb);
    wa = warp_sum(wa); wb = warp_sum(wb);
    if (lane == 0) {
        stats[fa] = FrameStats{ea, wa / ea};
        if (has_b) stats[fa + 1] = FrameStats{eb, wb / eb};
    }
}

int main()
{
    const size_t nsignal = (size_t)(NFRAMES - 1) * HOP + FRAME;
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
    float2 roots[64];                                   // exp(-2 pi i k / 512)
    for (int i = 0; i < FRAME; i++)
        window[i] = (float)(0.5 - 0.5 * cos(2.0 * M_PI * i / (FRAME - 1)));
    for (int k = 0; k < 64; k++)
        roots[k] = make_float2((float)cos(2.0 * M_PI * k / FRAME), (float)-sin(2.0 * M_PI * k / FRAME));

    float *d_signal, *d_power, *d_window;
    float2 *d_roots;
    FrameStats *d_stats;
    check(cudaMalloc((void **)&d_signal, nsignal * sizeof(float)), "malloc signal");
    check(cudaMalloc((void **)&d_power, npower * sizeof(float)), "malloc power");
    check(cudaMalloc((void **)&d_stats, NFRAMES * sizeof(FrameStats)), "malloc stats");
    check(cudaMalloc((void **)&d_window, sizeof(window)), "malloc window");
    check(cudaMalloc((void **)&d_roots, sizeof(roots)), "malloc roots");
    check(cudaMemcpy(d_signal, signal, nsignal * sizeof(float), cudaMemcpyHostToDevice), "copy signal");
    check(cudaMemcpy(d_window, window, sizeof(window), cudaMemcpyHostToDevice), "copy window");
    check(cudaMemcpy(d_roots, roots, sizeof(roots), cudaMemcpyHostToDevice), "copy roots");

    stft_kernel<<<(PAIRS + WARPS - 1) / WARPS, WARPS * 32>>>(d_signal, d_window, d_roots, d_power, d_stats);
    check(cudaGetLastError(), "stft_kernel");
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

    cudaFree(d_signal); cudaFree(d_power); cudaFree(d_stats); cudaFree(d_window); cudaFree(d_roots);
    free(signal); free(power); free(stats);
    return 0;
}
