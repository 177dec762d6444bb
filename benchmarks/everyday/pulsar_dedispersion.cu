// Brute-force incoherent dedispersion of a pulsar search observation.
// Input is an 8 bit filterbank in SIGPROC order (time major, channel fastest).
// For each trial DM the channels are shifted and summed, then the time series
// is searched with a boxcar for its strongest pulse.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define NCHAN   256
#define NT      32768          // samples in the dedispersed series
#define NPAD    1024           // extra samples at the end for the delays
#define NTOT    (NT + NPAD)
#define NDM     128
#define BOXCAR  8

typedef unsigned char  uchar;
typedef unsigned int   uint;
typedef unsigned long long ull;

struct Candidate {
    float mean;
    float rms;
    float snr;
    int   peak;
};

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "CUDA error %s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

// one thread per output sample, one row of blocks per trial DM
__global__ void dedisperse_kernel(const uchar *fil, const int *delays, uint *series)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int dm = blockIdx.y;
    if (t >= NT)
        return;

    uint sum = 0;
    for (int c = 0; c < NCHAN; c++) {
        int shift = delays[dm * NCHAN + c];
        sum += fil[(size_t)(t + shift) * NCHAN + c];
    }
    series[(size_t)dm * NT + t] = sum;
}

// one block per trial DM
__global__ void search_kernel(const uint *series, Candidate *cands)
{
    __shared__ ull s_sum[256];
    __shared__ ull s_sq[256];
    __shared__ uint s_max[256];
    __shared__ int s_pos[256];

    const uint *ts = series + (size_t)blockIdx.x * NT;
    int tid = threadIdx.x;

    ull sum = 0, sq = 0;
    uint best = 0;
    int pos = NT;
    for (int t = tid; t < NT; t += blockDim.x) {
        uint v = ts[t];
        sum += v;
        sq += (ull)v * v;
        if (t + BOXCAR <= NT) {
            uint box = 0;
            for (int k = 0; k < BOXCAR; k++)
                box += ts[t + k];
            if (box > best) {
                best = box;
                pos = t;
            }
        }
    }
    s_sum[tid] = sum;
    s_sq[tid] = sq;
    s_max[tid] = best;
    s_pos[tid] = pos;
    __syncthreads();

    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (tid < s) {
            s_sum[tid] += s_sum[tid + s];
            s_sq[tid] += s_sq[tid + s];
            if (s_max[tid + s] > s_max[tid] ||
                (s_max[tid + s] == s_max[tid] && s_pos[tid + s] < s_pos[tid])) {
                s_max[tid] = s_max[tid + s];
                s_pos[tid] = s_pos[tid + s];
            }
        }
        __syncthreads();
    }

    if (tid == 0) {
        double mean = (double)s_sum[0] / NT;
        double var = (double)s_sq[0] / NT - mean * mean;
        Candidate c;
        c.mean = (float)mean;
        c.rms = (float)sqrt(var);
        c.snr = (float)(((double)s_max[0] - BOXCAR * mean) / sqrt(BOXCAR * var));
        c.peak = s_pos[0];
        cands[blockIdx.x] = c;
    }
}

static void dedisperse_and_search(const uchar *d_fil, const int *d_delays, uint *d_series, Candidate *d_cands)
{
    dim3 block(256);
    dim3 grid((NT + block.x - 1) / block.x, NDM);
    dedisperse_kernel<<<grid, block>>>(d_fil, d_delays, d_series);
    search_kernel<<<NDM, 256>>>(d_series, d_cands);
}

int main()
{
    // delay table
    const double f_top = 1500.0, chan_bw = 300.0 / NCHAN, tsamp = 256e-6;
    std::vector<int> delays(NDM * NCHAN);
    for (int d = 0; d < NDM; d++) {
        for (int c = 0; c < NCHAN; c++) {
            double f = f_top - c * chan_bw;
            double dt = 4.148808e3 * d * (1.0 / (f * f) - 1.0 / (f_top * f_top));
            delays[d * NCHAN + c] = (int)(dt / tsamp + 0.5);
        }
    }

    // noise plus a few dispersed pulses
    std::vector<uchar> fil((size_t)NTOT * NCHAN);
    uint seed = 20240917u;
    for (size_t i = 0; i < fil.size(); i++) {
        seed = seed * 1664525u + 1013904223u;
        uint r = seed >> 8;
        fil[i] = (uchar)(60 + (r & 31) + ((r >> 5) & 31) + ((r >> 10) & 31));
    }
    const int pulse_dm[4] = {23, 56, 57, 101};
    const int pulse_t[4] = {4021, 12345, 20050, 30111};
    for (int p = 0; p < 4; p++)
        for (int c = 0; c < NCHAN; c++)
            for (int w = 0; w < 6; w++) {
                size_t t = pulse_t[p] + w + delays[pulse_dm[p] * NCHAN + c];
                fil[t * NCHAN + c] = (uchar)(fil[t * NCHAN + c] + 4 + p);
            }

    uchar *d_fil;
    int *d_delays;
    uint *d_series;
    Candidate *d_cands;
    CHECK(cudaMalloc(&d_fil, fil.size()));
    CHECK(cudaMalloc(&d_delays, delays.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_series, (size_t)NDM * NT * sizeof(uint)));
    CHECK(cudaMalloc(&d_cands, NDM * sizeof(Candidate)));
    CHECK(cudaMemcpy(d_fil, fil.data(), fil.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_delays, delays.data(), delays.size() * sizeof(int), cudaMemcpyHostToDevice));

    dedisperse_and_search(d_fil, d_delays, d_series, d_cands);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    std::vector<uint> series((size_t)NDM * NT);
    std::vector<Candidate> cands(NDM);
    CHECK(cudaMemcpy(series.data(), d_series, series.size() * sizeof(uint), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(cands.data(), d_cands, NDM * sizeof(Candidate), cudaMemcpyDeviceToHost));

    uint check = 0;
    for (size_t i = 0; i < series.size(); i++)
        check = check * 31u + series[i];
    printf("series checksum %u\n", check % 1000003u);

    double rms = 0, snr = 0, peaks = 0;
    int best = 0;
    for (int d = 0; d < NDM; d++) {
        rms += cands[d].rms;
        snr += cands[d].snr;
        peaks += cands[d].peak;
        if (cands[d].snr > cands[best].snr)
            best = d;
    }
    printf("mean level %.2f  sum rms %.2f  sum snr %.2f  sum peaks %.0f\n", cands[0].mean, rms, snr, peaks);
    printf("best DM %d at sample %d snr %.3f\n", best, cands[best].peak, cands[best].snr);
    for (int p = 0; p < 4; p++)
        printf("DM %3d: snr %.3f peak %d\n", pulse_dm[p], cands[pulse_dm[p]].snr, cands[pulse_dm[p]].peak);

    cudaFree(d_fil);
    cudaFree(d_delays);
    cudaFree(d_series);
    cudaFree(d_cands);
    return 0;
}
