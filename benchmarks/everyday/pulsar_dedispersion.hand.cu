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

// ---------------------------------------------------------------- transpose
// [time][channel] bytes -> [channel][time] bytes, 64 x 64 tiles, words both ways.
__global__ void __launch_bounds__(256) corner_turn(const uint *__restrict__ in, uint *__restrict__ out)
{
    __shared__ uint tile[64][17];                  // 64 samples x 64 channels (+4 bytes)
    const int t0 = blockIdx.x * 64, c0 = blockIdx.y * 64;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int e = threadIdx.x + i * 256;
        int row = e >> 4, w = e & 15;
        tile[row][w] = in[(size_t)(t0 + row) * (NCHAN / 4) + c0 / 4 + w];
    }
    __syncthreads();
    // each thread turns one 4 x 4 byte block: words (4 tw .. 4 tw + 3, cw)
    const int tw = threadIdx.x & 15, cw = threadIdx.x >> 4;
    uint a = tile[4 * tw + 0][cw], b = tile[4 * tw + 1][cw];
    uint c = tile[4 * tw + 2][cw], d = tile[4 * tw + 3][cw];
    uint ab_lo = __byte_perm(a, b, 0x5140);        // a0 b0 a1 b1
    uint ab_hi = __byte_perm(a, b, 0x7362);        // a2 b2 a3 b3
    uint cd_lo = __byte_perm(c, d, 0x5140);
    uint cd_hi = __byte_perm(c, d, 0x7362);
    uint *o = out + (size_t)(c0 + 4 * cw) * (NTOT / 4) + t0 / 4 + tw;
    o[0 * (NTOT / 4)] = __byte_perm(ab_lo, cd_lo, 0x5410);
    o[1 * (NTOT / 4)] = __byte_perm(ab_lo, cd_lo, 0x7632);
    o[2 * (NTOT / 4)] = __byte_perm(ab_hi, cd_hi, 0x5410);
    o[3 * (NTOT / 4)] = __byte_perm(ab_hi, cd_hi, 0x7632);
}

// ---------------------------------------------------------------- dedispersion
// A thread owns 2 words (2 x 4 samples) for DMG trials. Four byte samples are
// added at once: raw += x and odd += odd bytes of x in 16 bit fields; the even
// fields follow as raw - (odd << 8). 256 channels * 255 < 65536: no overflow.
constexpr int DMG = 8;
constexpr int DTHREADS = 128;
constexpr int DTILE = DTHREADS * 8;                // samples per block

static_assert(NCHAN * 255 < 65536, "16 bit fields");
static_assert(NT % DTILE == 0 && NDM % DMG == 0 && NTOT % 64 == 0 && NCHAN % 64 == 0, "tiling");

__global__ void __launch_bounds__(DTHREADS) dedisperse_kernel(const uint *__restrict__ turned,
                                                              const int *__restrict__ delays,
                                                              uint *__restrict__ series)
{
    __shared__ __align__(16) int dly[NCHAN][DMG];
    const int tid = threadIdx.x;
    const int dm0 = blockIdx.x * DMG;              // DM groups of one time tile run together
    const int w0 = blockIdx.y * (DTILE / 4);

    for (int i = tid; i < NCHAN * DMG; i += DTHREADS) {
        int c = i % NCHAN, d = i / NCHAN;
        dly[c][d] = delays[(dm0 + d) * NCHAN + c];
    }
    __syncthreads();

    uint raw[2][DMG], odd[2][DMG];
#pragma unroll
    for (int d = 0; d < DMG; d++) {
        raw[0][d] = raw[1][d] = 0u;
        odd[0][d] = odd[1][d] = 0u;
    }

    const uint *row = turned + w0 + tid;
#pragma unroll 2
    for (int c = 0; c < NCHAN; c++, row += NTOT / 4) {
        int4 da = *reinterpret_cast<const int4 *>(&dly[c][0]);
        int4 db = *reinterpret_cast<const int4 *>(&dly[c][4]);
        const int dl[DMG] = {da.x, da.y, da.z, da.w, db.x, db.y, db.z, db.w};
#pragma unroll
        for (int d = 0; d < DMG; d++) {
            const uint *p = row + (dl[d] >> 2);
            const int sh = (dl[d] & 3) * 8;
            uint x = __funnelshift_r(__ldg(p), __ldg(p + 1), sh);
            uint y = __funnelshift_r(__ldg(p + DTHREADS), __ldg(p + DTHREADS + 1), sh);
            raw[0][d] += x;
            odd[0][d] += (x >> 8) & 0x00ff00ffu;
            raw[1][d] += y;
            odd[1][d] += (y >> 8) & 0x00ff00ffu;
        }
    }

#pragma unroll
    for (int d = 0; d < DMG; d++) {
        uint4 *o = reinterpret_cast<uint4 *>(series + (size_t)(dm0 + d) * NT) + w0 + tid;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint od = odd[h][d];
            uint ev = raw[h][d] - (od << 8);
            o[h * DTHREADS] = make_uint4(ev & 0xffffu, od & 0xffffu, ev >> 16, od >> 16);
        }
    }
}

// ---------------------------------------------------------------- search
struct Partial {
    ull sum, sq, peak;                             // peak: boxcar << 32 | (~position)
};

constexpr int SCHUNKS = 8;

__device__ __forceinline__ ull max64(ull a, ull b) { return a > b ? a : b; }

__global__ void __launch_bounds__(256) search_partial(const uint *__restrict__ series, Partial *__restrict__ part)
{
    static_assert(BOXCAR == 8, "window below");
    const uint4 *ts = reinterpret_cast<const uint4 *>(series + (size_t)blockIdx.y * NT);
    const int per = NT / 4 / SCHUNKS;
    const int q0 = blockIdx.x * per;
    ull sum = 0, sq = 0, peak = 0;
    for (int q = q0 + threadIdx.x; q < q0 + per; q += 256) {
        uint4 a = ts[q];
        sum += a.x + a.y + a.z + a.w;
        sq += (ull)a.x * a.x + (ull)a.y * a.y + (ull)a.z * a.z + (ull)a.w * a.w;
        // windows start at 4q .. 4q+3 and need samples up to 4q+10
        if (q + 1 < NT / 4) {
            uint4 b = ts[q + 1];
            const uint t = 4u * q;
            uint box = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
            peak = max64(peak, ((ull)box << 32) | (0xffffffffu - t));
            if (q + 2 < NT / 4) {
                uint4 c = ts[q + 2];
                box += c.x - a.x;
                peak = max64(peak, ((ull)box << 32) | (0xffffffffu - (t + 1)));
                box += c.y - a.y;
                peak = max64(peak, ((ull)box << 32) | (0xffffffffu - (t + 2)));
                box += c.z - a.z;
                peak = max64(peak, ((ull)box << 32) | (0xffffffffu - (t + 3)));
            }
        }
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, o);
        sq += __shfl_xor_sync(0xffffffffu, sq, o);
        peak = max64(peak, __shfl_xor_sync(0xffffffffu, peak, o));
    }
    __shared__ Partial sp[8];
    if ((threadIdx.x & 31) == 0)
        sp[threadIdx.x >> 5] = Partial{sum, sq, peak};
    __syncthreads();
    if (threadIdx.x == 0) {
        Partial p = sp[0];
        for (int i = 1; i < 8; i++) {
            p.sum += sp[i].sum;
            p.sq += sp[i].sq;
            p.peak = max64(p.peak, sp[i].peak);
        }
        part[blockIdx.y * SCHUNKS + blockIdx.x] = p;
    }
}

__global__ void search_final(const Partial *__restrict__ part, Candidate *__restrict__ cands)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= NDM)
        return;
    Partial p = part[d * SCHUNKS];
    for (int i = 1; i < SCHUNKS; i++) {
        Partial r = part[d * SCHUNKS + i];
        p.sum += r.sum;
        p.sq += r.sq;
        p.peak = max64(p.peak, r.peak);
    }
    double mean = (double)p.sum / NT;
    double var = (double)p.sq / NT - mean * mean;
    Candidate c;
    c.mean = (float)mean;
    c.rms = (float)sqrt(var);
    c.snr = (float)(((double)(uint)(p.peak >> 32) - BOXCAR * mean) / sqrt(BOXCAR * var));
    c.peak = (int)(0xffffffffu - (uint)p.peak);
    cands[d] = c;
}

static void dedisperse_and_search(const uchar *d_fil, const int *d_delays, uint *d_series, Candidate *d_cands)
{
    uint *d_turned;
    Partial *d_part;
    CHECK(cudaMalloc(&d_turned, (size_t)NTOT * NCHAN));
    CHECK(cudaMalloc(&d_part, NDM * SCHUNKS * sizeof(Partial)));

    corner_turn<<<dim3(NTOT / 64, NCHAN / 64), 256>>>(reinterpret_cast<const uint *>(d_fil), d_turned);
    dedisperse_kernel<<<dim3(NDM / DMG, NT / DTILE), DTHREADS>>>(d_turned, d_delays, d_series);
    search_partial<<<dim3(SCHUNKS, NDM), 256>>>(d_series, d_part);
    search_final<<<(NDM + 63) / 64, 64>>>(d_part, d_cands);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(d_turned));
    CHECK(cudaFree(d_part));
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
