// Transcription factor motif scan: every position of a DNA sequence is scored against a set of
// integer position weight matrices on both strands. Reported per position: best score and best
// motif; per motif: maximum score and number of hits above the motif's threshold.
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

__constant__ int c_pwm[MOTIFS][LENGTH][5];  // A C G T N
__constant__ int c_threshold[MOTIFS];

__device__ int encode_base(char c)
{
    switch (c) {
        case 'A': case 'a': return 0;
        case 'C': case 'c': return 1;
        case 'G': case 'g': return 2;
        case 'T': case 't': return 3;
        default: return 4;
    }
}

__device__ int complement(int code)
{
    return code < 4 ? 3 - code : 4;
}

__global__ void encode_sequence(const char* text, unsigned char* codes, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) codes[i] = (unsigned char)encode_base(text[i]);
}

// one thread per (position, motif)
__global__ void score_motifs(const unsigned char* codes, int* scores, size_t positions)
{
    size_t p = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    int m = blockIdx.y;
    if (p >= positions) return;
    int forward = 0;
    int reverse = 0;
    for (int k = 0; k < LENGTH; k++) {
        int code = codes[p + k];
        forward += c_pwm[m][k][code];
        reverse += c_pwm[m][LENGTH - 1 - k][complement(code)];
    }
    scores[m * positions + p] = max(forward, reverse);
}

// best motif of each position
__global__ void best_per_position(const int* scores, int* bestScore, unsigned char* bestMotif,
                                  size_t positions)
{
    size_t p = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (p >= positions) return;
    int best = scores[p];
    int arg = 0;
    for (int m = 1; m < MOTIFS; m++) {
        int s = scores[m * positions + p];
        if (s > best) {
            best = s;
            arg = m;
        }
    }
    bestScore[p] = best;
    bestMotif[p] = (unsigned char)arg;
}

__global__ void count_hits(const int* scores, int* hits, size_t positions)
{
    size_t p = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    int m = blockIdx.y;
    if (p >= positions) return;
    if (scores[m * positions + p] >= c_threshold[m]) atomicAdd(&hits[m], 1);
}

// one block per motif
__global__ void max_per_motif(const int* scores, int* motifMax, size_t positions)
{
    __shared__ int buf[256];
    int m = blockIdx.x;
    int best = INT_MIN;
    for (size_t p = threadIdx.x; p < positions; p += blockDim.x)
        best = max(best, scores[m * positions + p]);
    buf[threadIdx.x] = best;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) buf[threadIdx.x] = max(buf[threadIdx.x], buf[threadIdx.x + s]);
        __syncthreads();
    }
    if (threadIdx.x == 0) motifMax[m] = buf[0];
}

static unsigned int g_seed = 777;
static unsigned int next_random()
{
    g_seed = g_seed * 1103515245u + 12345u;
    return g_seed >> 10;
}

int main()
{
    // motifs: one preferred base per column
    static int pwm[MOTIFS][LENGTH][5];
    int preferred[MOTIFS][LENGTH];
    int threshold[MOTIFS];
    for (int m = 0; m < MOTIFS; m++) {
        int top = 0;
        for (int k = 0; k < LENGTH; k++) {
            preferred[m][k] = next_random() % 4;
            for (int b = 0; b < 4; b++) pwm[m][k][b] = -2 - (int)(next_random() % 9);
            int good = 12 + (int)(next_random() % 9);
            pwm[m][k][preferred[m][k]] = good;
            pwm[m][k][4] = N_PENALTY;
            top += good;
        }
        threshold[m] = top / 2;
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

    char* d_text;
    unsigned char *d_codes, *d_bestMotif;
    int *d_scores, *d_bestScore, *d_hits, *d_max;
    check(cudaMalloc(&d_text, SEQ_LEN), "malloc text");
    check(cudaMalloc(&d_codes, SEQ_LEN), "malloc codes");
    check(cudaMalloc(&d_scores, MOTIFS * POSITIONS * sizeof(int)), "malloc scores");
    check(cudaMalloc(&d_bestScore, POSITIONS * sizeof(int)), "malloc best score");
    check(cudaMalloc(&d_bestMotif, POSITIONS), "malloc best motif");
    check(cudaMalloc(&d_hits, MOTIFS * sizeof(int)), "malloc hits");
    check(cudaMalloc(&d_max, MOTIFS * sizeof(int)), "malloc max");
    check(cudaMemcpy(d_text, text.data(), SEQ_LEN, cudaMemcpyHostToDevice), "copy text");
    check(cudaMemcpyToSymbol(c_pwm, pwm, sizeof(pwm)), "copy pwm");
    check(cudaMemcpyToSymbol(c_threshold, threshold, sizeof(threshold)), "copy thresholds");
    check(cudaMemset(d_hits, 0, MOTIFS * sizeof(int)), "clear hits");

    int threads = 256;
    dim3 grid((unsigned)((POSITIONS + threads - 1) / threads), MOTIFS);
    encode_sequence<<<(unsigned)((SEQ_LEN + threads - 1) / threads), threads>>>(d_text, d_codes,
                                                                               SEQ_LEN);
    score_motifs<<<grid, threads>>>(d_codes, d_scores, POSITIONS);
    best_per_position<<<grid.x, threads>>>(d_scores, d_bestScore, d_bestMotif, POSITIONS);
    count_hits<<<grid, threads>>>(d_scores, d_hits, POSITIONS);
    max_per_motif<<<MOTIFS, threads>>>(d_scores, d_max, POSITIONS);
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
    cudaFree(d_codes);
    cudaFree(d_scores);
    cudaFree(d_bestScore);
    cudaFree(d_bestMotif);
    cudaFree(d_hits);
    cudaFree(d_max);
    return 0;
}
