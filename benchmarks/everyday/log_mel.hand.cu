// Log-mel spectrogram of a 16-bit PCM signal, tuned for H200: everything in one kernel.
// One warp per frame: the 1024 real samples are a 512-point complex FFT (8 x 8 x 8, two radix-8
// butterflies per lane and pass, data in registers, exchanged through padded warp-private shared
// memory with only __syncwarp), then the real-FFT split, the sparse mel filters from shared
// memory and the decibels. Band statistics are kept in registers over the frames of a warp; the
// last block to finish turns the global sums into mean and deviation.
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

constexpr int FFT_SIZE = 1024;
constexpr int HOP = 400;
constexpr int FRAMES = 12345;
constexpr int BINS = FFT_SIZE / 2 + 1;
constexpr int MELS = 80;
constexpr int SAMPLE_RATE = 16000;

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * 32;
constexpr int HALF = FFT_SIZE / 2;        // complex FFT length
constexpr int EXCHANGE = 8 * 72;          // padded exchange buffer
constexpr int MAX_WEIGHTS = 1152;         // non-zero filter weights
constexpr int MEL_SLOTS = (MELS + 31) / 32;

struct Filters {
    int start[MELS];       // first bin
    int offset[MELS + 1];  // into weight
    float weight[MAX_WEIGHTS];
};

__device__ __forceinline__ float2 cadd(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 csub(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 cmul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
__device__ __forceinline__ float2 mul_minus_i(float2 a) { return make_float2(a.y, -a.x); }

__device__ __forceinline__ void fft4(float2 a, float2 b, float2 c, float2 d,
                                     float2& o0, float2& o1, float2& o2, float2& o3)
{
    float2 ac = cadd(a, c), am = csub(a, c);
    float2 bd = cadd(b, d), bm = mul_minus_i(csub(b, d));
    o0 = cadd(ac, bd);
    o1 = cadd(am, bm);
    o2 = csub(ac, bd);
    o3 = csub(am, bm);
}

// forward 8-point DFT in place, natural order in and out
__device__ __forceinline__ void fft8(float2* v)
{
    const float r = 0.70710678118654752f;
    float2 a0 = cadd(v[0], v[4]), a4 = csub(v[0], v[4]);
    float2 a1 = cadd(v[1], v[5]), a5 = csub(v[1], v[5]);
    float2 a2 = cadd(v[2], v[6]), a6 = csub(v[2], v[6]);
    float2 a3 = cadd(v[3], v[7]), a7 = csub(v[3], v[7]);
    a5 = make_float2(r * (a5.x + a5.y), r * (a5.y - a5.x));
    a6 = mul_minus_i(a6);
    a7 = make_float2(r * (a7.y - a7.x), -r * (a7.x + a7.y));
    fft4(a0, a1, a2, a3, v[0], v[2], v[4], v[6]);
    fft4(a4, a5, a6, a7, v[1], v[3], v[5], v[7]);
}

// v[k] *= w^k
__device__ __forceinline__ void twiddle8(float2* v, float2 w)
{
    float2 w2 = cmul(w, w);
    float2 w3 = cmul(w2, w);
    float2 w4 = cmul(w2, w2);
    v[1] = cmul(v[1], w);
    v[2] = cmul(v[2], w2);
    v[3] = cmul(v[3], w3);
    v[4] = cmul(v[4], w4);
    v[5] = cmul(v[5], cmul(w4, w));
    v[6] = cmul(v[6], cmul(w3, w3));
    v[7] = cmul(v[7], cmul(w4, w3));
}

// exp(-2 pi i k / n)
__device__ __forceinline__ float2 unit_root(int k, int n)
{
    float s, c;
    sincospif(-2.0f * (float)k / (float)n, &s, &c);
    return make_float2(c, s);
}

struct Shared {
    float2 window[HALF];
    Filters filters;
    float2 z[WARPS][EXCHANGE];
    float power[WARPS][BINS + 3];
    bool last;
};

__global__ void __launch_bounds__(THREADS)
log_mel(const short* __restrict__ pcm, const Filters* __restrict__ filters,
        float* __restrict__ mel, double* sums, unsigned* finished, float* __restrict__ mean,
        float* __restrict__ stddev)
{
    __shared__ __align__(16) Shared sm;
    int tid = threadIdx.x;
    int lane = tid & 31;
    int warp = tid >> 5;

    for (int i = tid; i < HALF; i += THREADS)
        sm.window[i] = make_float2(0.5f - 0.5f * cospif(2.0f * (2 * i) / FFT_SIZE),
                                   0.5f - 0.5f * cospif(2.0f * (2 * i + 1) / FFT_SIZE));
    for (int i = tid; i < (int)(sizeof(Filters) / 4); i += THREADS)
        reinterpret_cast<int*>(&sm.filters)[i] = reinterpret_cast<const int*>(filters)[i];
    __syncthreads();

    // roots that depend only on the lane
    const float2 rootA0 = unit_root(lane, 512);
    const float2 rootA1 = unit_root(lane + 32, 512);
    const float2 rootB = unit_root(lane & 7, 64);
    const float2 rootC = unit_root(lane, 1024);

    float2* z = sm.z[warp];
    float* power = sm.power[warp];
    double bandSum[MEL_SLOTS], bandSq[MEL_SLOTS];
#pragma unroll
    for (int s = 0; s < MEL_SLOTS; s++) bandSum[s] = bandSq[s] = 0;

    for (int frame = blockIdx.x * WARPS + warp; frame < FRAMES; frame += gridDim.x * WARPS) {
        // z[n] = x[2n] + i x[2n+1], n = 64 a + b; this lane has b = lane and b = lane + 32
        const short2* src = reinterpret_cast<const short2*>(pcm + (size_t)frame * HOP);
        float2 v[16];
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int a = 0; a < 8; a++) {
                int n = 64 * a + lane + 32 * h;
                short2 p = __ldg(&src[n]);
                float2 w = sm.window[n];
                v[8 * h + a] = make_float2(w.x * (float)p.x, w.y * (float)p.y);
            }

        // pass 1: over a
        fft8(v);
        fft8(v + 8);
        twiddle8(v, rootA0);
        twiddle8(v + 8, rootA1);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int k0 = 0; k0 < 8; k0++) z[k0 * 72 + lane + 32 * h] = v[8 * h + k0];
        __syncwarp();

        // pass 2: item (k0, d), b = 8 c + d, over c
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int k0 = (lane + 32 * h) >> 3, d = lane & 7;
#pragma unroll
            for (int c = 0; c < 8; c++) v[8 * h + c] = z[k0 * 72 + 8 * c + d];
        }
        __syncwarp();
        fft8(v);
        fft8(v + 8);
        twiddle8(v, rootB);
        twiddle8(v + 8, rootB);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int k0 = (lane + 32 * h) >> 3, d = lane & 7;
#pragma unroll
            for (int k1 = 0; k1 < 8; k1++) z[k1 * 72 + k0 * 9 + d] = v[8 * h + k1];
        }
        __syncwarp();

        // pass 3: item k0 + 8 k1, over d
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int k0 = lane & 7, k1 = (lane + 32 * h) >> 3;
#pragma unroll
            for (int d = 0; d < 8; d++) v[8 * h + d] = z[k1 * 72 + k0 * 9 + d];
        }
        __syncwarp();
        fft8(v);
        fft8(v + 8);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int k2 = 0; k2 < 8; k2++) z[lane + 32 * h + 64 * k2] = v[8 * h + k2];
        __syncwarp();

        // split into the spectrum of the real signal: bins k and 512 - k
        const float cosTable[8] = {1.0f, 0.98078528040323044f, 0.92387953251128676f,
                                   0.83146961230254524f, 0.70710678118654752f,
                                   0.55557023301960222f, 0.38268343236508977f,
                                   0.19509032201612827f};
        const float sinTable[8] = {0.0f, 0.19509032201612827f, 0.38268343236508977f,
                                   0.55557023301960222f, 0.70710678118654752f,
                                   0.83146961230254524f, 0.92387953251128676f,
                                   0.98078528040323044f};
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int k = lane + 32 * j;
            float2 a = z[k];
            float2 b = z[(HALF - k) & (HALF - 1)];
            float2 even = make_float2(0.5f * (a.x + b.x), 0.5f * (a.y - b.y));
            float2 odd = make_float2(0.5f * (a.y + b.y), -0.5f * (a.x - b.x));
            float2 t = cmul(odd, cmul(rootC, make_float2(cosTable[j], -sinTable[j])));
            float2 lo = cadd(even, t), hi = csub(even, t);
            power[k] = lo.x * lo.x + lo.y * lo.y;
            power[HALF - k] = hi.x * hi.x + hi.y * hi.y;
        }
        if (lane == 0) {
            float2 a = z[HALF / 2];
            power[HALF / 2] = a.x * a.x + a.y * a.y;
        }
        __syncwarp();

#pragma unroll
        for (int s = 0; s < MEL_SLOTS; s++) {
            int m = lane + 32 * s;
            if (m < MELS) {
                int first = sm.filters.offset[m];
                int count = sm.filters.offset[m + 1] - first;
                const float* p = power + sm.filters.start[m];
                const float* w = sm.filters.weight + first;
                float sum = 0.0f;
                for (int i = 0; i < count; i++) sum += w[i] * p[i];
                float db = 10.0f * log10f(fmaxf(sum, 1e-3f));
                mel[frame * MELS + m] = db;
                bandSum[s] += db;
                bandSq[s] += (double)db * db;
            }
        }
        // the next write to power comes after several __syncwarp
    }

    // block sums; the exchange buffers are free now
    __syncthreads();
    double* block = reinterpret_cast<double*>(&sm.z[0][0]);  // [WARPS][2][MELS]
#pragma unroll
    for (int s = 0; s < MEL_SLOTS; s++) {
        int m = lane + 32 * s;
        if (m < MELS) {
            block[(warp * 2 + 0) * MELS + m] = bandSum[s];
            block[(warp * 2 + 1) * MELS + m] = bandSq[s];
        }
    }
    __syncthreads();
    for (int i = tid; i < 2 * MELS; i += THREADS) {
        double sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += block[w * 2 * MELS + i];
        atomicAdd(&sums[i], sum);
    }
    __threadfence();
    __syncthreads();
    if (tid == 0) sm.last = atomicAdd(finished, 1u) == gridDim.x - 1;
    __syncthreads();
    if (sm.last && tid < MELS) {
        __threadfence();
        double mu = __ldcg(&sums[tid]) / FRAMES;
        double var = __ldcg(&sums[MELS + tid]) / FRAMES - mu * mu;
        mean[tid] = (float)mu;
        stddev[tid] = (float)sqrt(fmax(var, 0.0));
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
    // triangular mel filters, only the non-zero weights
    static Filters filters;
    double edge[MELS + 2];
    for (int m = 0; m < MELS + 2; m++)
        edge[m] = mel_to_hz(hz_to_mel(SAMPLE_RATE / 2.0) * m / (MELS + 1));
    int used = 0;
    for (int m = 0; m < MELS; m++) {
        filters.offset[m] = used;
        for (int b = 0; b < BINS; b++) {
            double hz = (double)b * SAMPLE_RATE / FFT_SIZE;
            double up = (hz - edge[m]) / (edge[m + 1] - edge[m]);
            double down = (edge[m + 2] - hz) / (edge[m + 2] - edge[m + 1]);
            double w = up < down ? up : down;
            if (w > 0) {
                if (used == filters.offset[m]) filters.start[m] = b;
                if (used == MAX_WEIGHTS) {
                    printf("too many filter weights\n");
                    return 1;
                }
                filters.weight[used++] = (float)w;
            }
        }
    }
    filters.offset[MELS] = used;

    int device = 0, sms = 0, perSm = 0;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, log_mel, THREADS, 0));

    short* d_pcm;
    Filters* d_filters;
    float *d_mel, *d_mean, *d_std;
    double* d_sums;  // 2 * MELS sums, then the counter of finished blocks
    CHECK(cudaMalloc(&d_pcm, samples * sizeof(short)));
    CHECK(cudaMalloc(&d_filters, sizeof(Filters)));
    CHECK(cudaMalloc(&d_mel, sizeof(float) * FRAMES * MELS));
    CHECK(cudaMalloc(&d_mean, sizeof(float) * MELS));
    CHECK(cudaMalloc(&d_std, sizeof(float) * MELS));
    CHECK(cudaMalloc(&d_sums, sizeof(double) * (2 * MELS + 1)));
    CHECK(cudaMemcpy(d_pcm, pcm.data(), samples * sizeof(short), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_filters, &filters, sizeof(Filters), cudaMemcpyHostToDevice));

    // equal number of frames for all warps
    int capacity = sms * perSm * WARPS;
    int rounds = (FRAMES + capacity - 1) / capacity;
    int blocks = (FRAMES + rounds * WARPS - 1) / (rounds * WARPS);
    CHECK(cudaMemsetAsync(d_sums, 0, sizeof(double) * (2 * MELS + 1)));
    log_mel<<<blocks, THREADS>>>(d_pcm, d_filters, d_mel, d_sums,
                                 reinterpret_cast<unsigned*>(d_sums + 2 * MELS), d_mean, d_std);
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
    CHECK(cudaFree(d_filters));
    CHECK(cudaFree(d_mel));
    CHECK(cudaFree(d_mean));
    CHECK(cudaFree(d_std));
    CHECK(cudaFree(d_sums));
    return 0;
}
