// Transcription factor motif scan (both strands), tuned for H200: one fused pass.
// The matrices are turned into tables over pairs of bases (5 x 5 = 25 entries, padded to 32, so
// that a warp's lookup never has a bank conflict); an entry holds the forward and the reverse
// strand score as two biased 16-bit fields of one word, so one LDS + one IADD advance both strands
// by two bases. A thread scores four neighbouring positions, its table offsets stay in registers
// for all motifs. Nothing but the final results goes to global memory.
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t err, const char* what)
{
    if (err != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
        exit(1);
    }
}

constexpr int MOTIFS = 24;
constexpr int LENGTH = 15;
constexpr size_t SEQ_LEN = 2500003;
constexpr size_t POSITIONS = SEQ_LEN - LENGTH + 1;
constexpr int N_PENALTY = -60;

constexpr int PAIRS = (LENGTH + 1) / 2;           // 8 table lookups per window
constexpr int BIAS = 128;                         // per lookup, keeps the fields non-negative
constexpr int TABLE_WORDS = MOTIFS * PAIRS * 32;  // 24 KB
constexpr int BLOCK = 256;
constexpr int PER_THREAD = 4;
constexpr int TILE = BLOCK * PER_THREAD;
constexpr int OFFSETS = PER_THREAD + 2 * (PAIRS - 1);  // 18 pair offsets per thread
constexpr unsigned FULL = 0xffffffffu;

struct Motifs {
    int pwm[MOTIFS][LENGTH][5];
    int threshold[MOTIFS];
};

__global__ void __launch_bounds__(PAIRS * 32)
build_tables(const Motifs* __restrict__ motifs, unsigned* __restrict__ tables,
             int* __restrict__ hits, int* __restrict__ motifMax)
{
    int m = blockIdx.x;
    int k = threadIdx.x / 32;
    int d = threadIdx.x % 32;
    unsigned word = 0;
    if (d < 25) {
        int a = d / 5, b = d % 5;
        int ca = a < 4 ? 3 - a : 4, cb = b < 4 ? 3 - b : 4;
        int forward = motifs->pwm[m][2 * k][a];
        int reverse = motifs->pwm[m][LENGTH - 1 - 2 * k][ca];
        if (2 * k + 1 < LENGTH) {
            forward += motifs->pwm[m][2 * k + 1][b];
            reverse += motifs->pwm[m][LENGTH - 2 - 2 * k][cb];
        }
        word = (unsigned)(forward + BIAS) | ((unsigned)(reverse + BIAS) << 16);
    }
    tables[(m * PAIRS + k) * 32 + d] = word;
    if (threadIdx.x == 0) {
        hits[m] = 0;
        motifMax[m] = INT_MIN;
    }
}

__device__ __forceinline__ unsigned encode_base(unsigned c)
{
    c &= 0xDFu;
    return c == 'A' ? 0u : c == 'C' ? 1u : c == 'G' ? 2u : c == 'T' ? 3u : 4u;
}

// four bases at text[i .. i + 3] as four code bytes
__device__ __forceinline__ unsigned encode_word(const char* __restrict__ text, int i)
{
    unsigned raw;
    if (i + 3 < (int)SEQ_LEN) {
        raw = __ldg(reinterpret_cast<const unsigned*>(text + i));
    } else {
        raw = 0;
        for (int k = 0; k < 4; k++)
            if (i + k < (int)SEQ_LEN) raw |= (unsigned)(unsigned char)text[i + k] << (8 * k);
    }
    return encode_base(raw & 0xff) | encode_base((raw >> 8) & 0xff) << 8 |
           encode_base((raw >> 16) & 0xff) << 16 | encode_base(raw >> 24) << 24;
}

__global__ void __launch_bounds__(BLOCK)
scan_motifs(const char* __restrict__ text, const Motifs* __restrict__ motifs,
            const uint4* __restrict__ tables, int* __restrict__ bestScore,
            unsigned char* __restrict__ bestMotif, int* __restrict__ hits,
            int* __restrict__ motifMax, int tiles)
{
    __shared__ __align__(16) unsigned table[TABLE_WORDS];
    __shared__ unsigned codes[BLOCK + 4];
    __shared__ int sHits[MOTIFS];
    __shared__ int sMax[MOTIFS];
    __shared__ int sThreshold[MOTIFS];

    int tid = threadIdx.x;
    for (int i = tid; i < TABLE_WORDS / 4; i += BLOCK)
        reinterpret_cast<uint4*>(table)[i] = __ldg(&tables[i]);
    if (tid < MOTIFS) {
        sHits[tid] = 0;
        sMax[tid] = INT_MIN;
        sThreshold[tid] = motifs->threshold[tid];
    }

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int base = tile * TILE;
        __syncthreads();  // tables ready, previous tile's codes consumed
        codes[tid] = encode_word(text, base + 4 * tid);
        if (tid < 4) codes[BLOCK + tid] = encode_word(text, base + TILE + 4 * tid);
        __syncthreads();

        unsigned w[5];
#pragma unroll
        for (int i = 0; i < 5; i++) w[i] = codes[tid + i];
        unsigned offset[OFFSETS];  // byte offsets of the pairs (j, j + 1)
#pragma unroll
        for (int j = 0; j < OFFSETS; j++) {
            unsigned a = (w[j / 4] >> (8 * (j % 4))) & 0xff;
            unsigned b = (w[(j + 1) / 4] >> (8 * ((j + 1) % 4))) & 0xff;
            offset[j] = (5 * a + b) * 4;
        }

        int p0 = base + PER_THREAD * tid;
        int bias[PER_THREAD], best[PER_THREAD], arg[PER_THREAD];
#pragma unroll
        for (int q = 0; q < PER_THREAD; q++) {
            // positions beyond the end get a score that never counts
            bias[q] = p0 + q < (int)POSITIONS ? PAIRS * BIAS : 1 << 24;
            best[q] = INT_MIN;
            arg[q] = 0;
        }

#pragma unroll 4
        for (int m = 0; m < MOTIFS; m++) {
            const char* t = reinterpret_cast<const char*>(table) + m * (PAIRS * 128);
            unsigned sum[PER_THREAD];
#pragma unroll
            for (int q = 0; q < PER_THREAD; q++) sum[q] = 0;
#pragma unroll
            for (int k = 0; k < PAIRS; k++)
#pragma unroll
                for (int q = 0; q < PER_THREAD; q++)
                    sum[q] += *reinterpret_cast<const unsigned*>(t + k * 128 + offset[q + 2 * k]);
            int top = INT_MIN;
            int score[PER_THREAD];
#pragma unroll
            for (int q = 0; q < PER_THREAD; q++) {
                score[q] = (int)max(sum[q] & 0xffffu, sum[q] >> 16) - bias[q];
                top = max(top, score[q]);
                if (score[q] > best[q]) {
                    best[q] = score[q];
                    arg[q] = m;
                }
            }
            int threshold = sThreshold[m];
            if (top >= threshold) {  // rare
                int count = 0;
#pragma unroll
                for (int q = 0; q < PER_THREAD; q++) count += score[q] >= threshold;
                atomicAdd(&sHits[m], count);
            }
            int warpTop = __reduce_max_sync(FULL, top);
            if ((tid & 31) == 0 && warpTop > sMax[m]) atomicMax(&sMax[m], warpTop);
        }

        if (p0 + 3 < (int)POSITIONS) {
            *reinterpret_cast<int4*>(bestScore + p0) = make_int4(best[0], best[1], best[2], best[3]);
            *reinterpret_cast<uchar4*>(bestMotif + p0) =
                make_uchar4((unsigned char)arg[0], (unsigned char)arg[1], (unsigned char)arg[2],
                            (unsigned char)arg[3]);
        } else {
#pragma unroll
            for (int q = 0; q < PER_THREAD; q++)
                if (p0 + q < (int)POSITIONS) {
                    bestScore[p0 + q] = best[q];
                    bestMotif[p0 + q] = (unsigned char)arg[q];
                }
        }
    }

    __syncthreads();
    if (tid < MOTIFS) {
        if (sHits[tid] != 0) atomicAdd(&hits[tid], sHits[tid]);
        atomicMax(&motifMax[tid], sMax[tid]);
    }
}

static unsigned int g_seed = 777;
static unsigned int next_random()
{
    g_seed = g_seed * 1103515245u + 12345u;
    return g_seed >> 10;
}

int main()
{
    static Motifs motifs;
    int preferred[MOTIFS][LENGTH];
    for (int m = 0; m < MOTIFS; m++) {
        int top = 0;
        for (int k = 0; k < LENGTH; k++) {
            preferred[m][k] = next_random() % 4;
            for (int b = 0; b < 4; b++) motifs.pwm[m][k][b] = -2 - (int)(next_random() % 9);
            int good = 12 + (int)(next_random() % 9);
            motifs.pwm[m][k][preferred[m][k]] = good;
            motifs.pwm[m][k][4] = N_PENALTY;
            top += good;
        }
        motifs.threshold[m] = top / 2;
    }
    // random sequence with a few unknown and soft masked bases and planted motifs
    std::vector<char> text(SEQ_LEN);
    for (size_t i = 0; i < SEQ_LEN; i++) {
        unsigned int r = next_random();
        text[i] = "ACGT"[r & 3];
        if ((r >> 2) % 500 == 0) text[i] = 'N';
        else if ((r >> 2) % 20 == 1) text[i] = "acgt"[r & 3];
    }
    for (size_t i = 100; i + LENGTH < SEQ_LEN; i += 997) {
        int m = (int)(i / 997 % MOTIFS);
        bool reverse = next_random() & 1;
        for (int k = 0; k < LENGTH; k++)
            text[i + k] = reverse ? "TGCA"[preferred[m][LENGTH - 1 - k]] : "ACGT"[preferred[m][k]];
        text[i + next_random() % LENGTH] = "ACGT"[next_random() % 4];
    }

    int device = 0, sms = 0, perSm = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "attribute");
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, scan_motifs, BLOCK, 0),
          "occupancy");

    char* d_text;
    unsigned char* d_bestMotif;
    Motifs* d_motifs;
    unsigned* d_tables;
    int *d_bestScore, *d_hits, *d_max;
    check(cudaMalloc(&d_text, SEQ_LEN), "malloc text");
    check(cudaMalloc(&d_motifs, sizeof(Motifs)), "malloc motifs");
    check(cudaMalloc(&d_tables, TABLE_WORDS * sizeof(unsigned)), "malloc tables");
    check(cudaMalloc(&d_bestScore, POSITIONS * sizeof(int)), "malloc best score");
    check(cudaMalloc(&d_bestMotif, POSITIONS), "malloc best motif");
    check(cudaMalloc(&d_hits, MOTIFS * sizeof(int)), "malloc hits");
    check(cudaMalloc(&d_max, MOTIFS * sizeof(int)), "malloc max");
    check(cudaMemcpy(d_text, text.data(), SEQ_LEN, cudaMemcpyHostToDevice), "copy text");
    check(cudaMemcpy(d_motifs, &motifs, sizeof(Motifs), cudaMemcpyHostToDevice), "copy motifs");

    int tiles = (int)((POSITIONS + TILE - 1) / TILE);
    // equal number of tiles for all blocks
    int rounds = (tiles + sms * perSm - 1) / (sms * perSm);
    int blocks = (tiles + rounds - 1) / rounds;
    build_tables<<<MOTIFS, PAIRS * 32>>>(d_motifs, d_tables, d_hits, d_max);
    check(cudaGetLastError(), "launch");
    scan_motifs<<<blocks, BLOCK>>>(d_text, d_motifs, reinterpret_cast<const uint4*>(d_tables),
                                   d_bestScore, d_bestMotif, d_hits, d_max, tiles);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "kernels");

    std::vector<int> bestScore(POSITIONS), hits(MOTIFS), motifMax(MOTIFS);
    std::vector<unsigned char> bestMotif(POSITIONS);
    check(cudaMemcpy(bestScore.data(), d_bestScore, POSITIONS * sizeof(int),
                     cudaMemcpyDeviceToHost), "copy back");
    check(cudaMemcpy(bestMotif.data(), d_bestMotif, POSITIONS, cudaMemcpyDeviceToHost),
          "copy back");
    check(cudaMemcpy(hits.data(), d_hits, MOTIFS * sizeof(int), cudaMemcpyDeviceToHost),
          "copy back");
    check(cudaMemcpy(motifMax.data(), d_max, MOTIFS * sizeof(int), cudaMemcpyDeviceToHost),
          "copy back");

    double positiveSum = 0, negativeSum = 0, motifSum = 0, weighted = 0;
    int top = INT_MIN;
    for (size_t p = 0; p < POSITIONS; p++) {
        if (bestScore[p] > 0) positiveSum += bestScore[p];
        else negativeSum += bestScore[p];
        motifSum += bestMotif[p];
        weighted += (double)bestMotif[p] * (double)(p % 1013);
        top = std::max(top, bestScore[p]);
    }
    double hitSum = 0, maxSum = 0;
    for (int m = 0; m < MOTIFS; m++) {
        hitSum += hits[m];
        maxSum += motifMax[m];
    }
    printf("best scores: %.10e %.10e max %d\n", positiveSum, negativeSum, top);
    printf("best motifs: %.10e %.10e\n", motifSum, weighted);
    printf("hits %.0f motif maxima %.0f\n", hitSum, maxSum);
    for (int m = 3; m < MOTIFS; m += 10) printf("motif hits %d max %d\n", hits[m], motifMax[m]);
    printf("last position %d %d\n", bestScore[POSITIONS - 1], (int)bestMotif[POSITIONS - 1]);

    cudaFree(d_text);
    cudaFree(d_motifs);
    cudaFree(d_tables);
    cudaFree(d_bestScore);
    cudaFree(d_bestMotif);
    cudaFree(d_hits);
    cudaFree(d_max);
    return 0;
}
