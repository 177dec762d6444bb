// k-mer profiles of a set of assembled genomes and their pairwise Bray-Curtis
// dissimilarity. A k-mer and its reverse complement count as the same word.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda_runtime.h>

#define GPU(call)                                                              \
    do {                                                                       \
        cudaError_t rc = (call);                                               \
        if (rc != cudaSuccess) {                                               \
            fprintf(stderr, "%s (line %d)\n", cudaGetErrorString(rc), __LINE__); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

namespace kmer {

constexpr int K = 7;
constexpr uint32_t TABLE = 1u << (2 * K);
constexpr int SAMPLES = 40;

struct SampleView {
    const char* bases;
    uint64_t length;
    uint32_t* counts;
};

struct Summary { uint32_t total, topCount, topWord; };

__device__ int baseCode(char c)
{
    switch (c) {
    case 'A': return 0;
    case 'C': return 1;
    case 'G': return 2;
    case 'T': return 3;
    default: return -1;
    }
}

__device__ uint32_t reverseComplement(uint32_t word)
{
    uint32_t rc = 0;
    for (int i = 0; i < K; ++i) {
        rc = (rc << 2) | (3u - (word & 3u));
        word >>= 2;
    }
    return rc;
}

__global__ void countWords(SampleView sample)
{
    uint64_t pos = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (pos + K > sample.length) return;
    uint32_t word = 0;
    for (int i = 0; i < K; ++i) {
        int code = baseCode(sample.bases[pos + i]);
        if (code < 0) return;          // ambiguous base
        word = (word << 2) | (uint32_t)code;
    }
    atomicAdd(&sample.counts[min(word, reverseComplement(word))], 1u);
}

// One block per sample: total number of words and the most frequent one.
__global__ void summarize(const uint32_t* counts, Summary* summary)
{
    __shared__ uint32_t total[256], best[256], bestWord[256];
    const uint32_t* c = counts + (uint64_t)blockIdx.x * TABLE;
    unsigned t = threadIdx.x;
    total[t] = best[t] = bestWord[t] = 0;
    for (uint32_t w = t; w < TABLE; w += blockDim.x) {
        total[t] += c[w];
        if (c[w] > best[t]) {
            best[t] = c[w];
            bestWord[t] = w;
        }
    }
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) {
            total[t] += total[t + s];
            if (best[t + s] > best[t] || (best[t + s] == best[t] && bestWord[t + s] < bestWord[t])) {
                best[t] = best[t + s];
                bestWord[t] = bestWord[t + s];
            }
        }
        __syncthreads();
    }
    if (t == 0) summary[blockIdx.x] = {total[0], best[0], bestWord[0]};
}

__global__ void dissimilarity(const uint32_t* counts, const Summary* summary, float* matrix)
{
    int a = blockIdx.x * blockDim.x + threadIdx.x;
    int b = blockIdx.y * blockDim.y + threadIdx.y;
    if (a >= SAMPLES || b >= SAMPLES) return;
    const uint32_t* ca = counts + (uint64_t)a * TABLE;
    const uint32_t* cb = counts + (uint64_t)b * TABLE;
    uint64_t shared = 0;
    for (uint32_t w = 0; w < TABLE; ++w) shared += min(ca[w], cb[w]);
    double sum = (double)summary[a].total + (double)summary[b].total;
    matrix[b * SAMPLES + a] = (float)(1.0 - 2.0 * (double)shared / sum);
}

}  // namespace kmer

using namespace kmer;

static uint64_t nextRandom(uint64_t& s)
{
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return s >> 33;
}

int main()
{
    // Five ancestors; every sample is a mutated stretch of one of them.
    const char letters[] = "ACGT";
    uint64_t rng = 17;
    std::vector<std::string> ancestors(5, std::string(700000, 'A'));
    for (size_t a = 0; a < ancestors.size(); ++a)
        for (char& c : ancestors[a]) {
            uint64_t r = nextRandom(rng);
            c = (r & 1023) < 420 + 40 * a ? letters[1 + ((r >> 10) & 1)] : letters[3 * ((r >> 10) & 1)];
        }

    std::vector<uint64_t> offset(SAMPLES + 1, 0);
    std::vector<uint64_t> length(SAMPLES);
    for (int s = 0; s < SAMPLES; ++s) {
        length[s] = 500000 + (uint64_t)s * 7919 % 150000;
        offset[s + 1] = offset[s] + length[s];
    }
    std::vector<char> bases(offset[SAMPLES]);
    for (int s = 0; s < SAMPLES; ++s) {
        const char* src = ancestors[s / 8].data() + (s * 1237) % 40000;
        char* dst = bases.data() + offset[s];
        uint64_t mutation = 10 + 20 * (s % 8);      // per 1024 bases
        for (uint64_t i = 0; i < length[s]; ++i) {
            uint64_t r = nextRandom(rng);
            dst[i] = (r & 1023) < mutation ? letters[(r >> 10) & 3] : src[i];
            if ((r >> 16) == 77) dst[i] = 'N';
        }
    }

    char* dBases;
    uint32_t* dCounts;
    Summary* dSummary;
    float* dMatrix;
    GPU(cudaMalloc(&dBases, bases.size()));
    GPU(cudaMalloc(&dCounts, (size_t)SAMPLES * TABLE * sizeof(uint32_t)));
    GPU(cudaMalloc(&dSummary, SAMPLES * sizeof(Summary)));
    GPU(cudaMalloc(&dMatrix, SAMPLES * SAMPLES * sizeof(float)));
    GPU(cudaMemcpy(dBases, bases.data(), bases.size(), cudaMemcpyHostToDevice));
    GPU(cudaMemset(dCounts, 0, (size_t)SAMPLES * TABLE * sizeof(uint32_t)));

    for (int s = 0; s < SAMPLES; ++s) {
        SampleView view = {dBases + offset[s], length[s], dCounts + (size_t)s * TABLE};
        unsigned blocks = (unsigned)((length[s] + 255) / 256);
        countWords<<<blocks, 256>>>(view);
    }
    summarize<<<SAMPLES, 256>>>(dCounts, dSummary);
    dim3 block(16, 16), grid((SAMPLES + 15) / 16, (SAMPLES + 15) / 16);
    dissimilarity<<<grid, block>>>(dCounts, dSummary, dMatrix);
    GPU(cudaGetLastError());

    std::vector<Summary> summary(SAMPLES);
    std::vector<float> matrix(SAMPLES * SAMPLES);
    std::vector<uint32_t> counts((size_t)SAMPLES * TABLE);
    GPU(cudaMemcpy(summary.data(), dSummary, SAMPLES * sizeof(Summary), cudaMemcpyDeviceToHost));
    GPU(cudaMemcpy(matrix.data(), dMatrix, matrix.size() * sizeof(float), cudaMemcpyDeviceToHost));
    GPU(cudaMemcpy(counts.data(), dCounts, counts.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));

    uint64_t words = 0, check = 0;
    double sum = 0;
    int bestA = 0, bestB = 1;
    for (const Summary& s : summary) words += s.total;
    for (size_t i = 0; i < counts.size(); ++i) check = check * 31 + counts[i];
    for (int a = 0; a < SAMPLES; ++a)
        for (int b = a + 1; b < SAMPLES; ++b) {
            sum += matrix[a * SAMPLES + b];
            if (matrix[a * SAMPLES + b] < matrix[bestA * SAMPLES + bestB]) bestA = a, bestB = b;
        }
    printf("words %llu, table checksum %016llx\n", (unsigned long long)words, (unsigned long long)check);
    for (int s : {0, 13, 39})
        printf("sample %d: %u words, top word %u seen %u times\n", s, summary[s].total, summary[s].topWord,
            summary[s].topCount);
    printf("mean dissimilarity %.6g\n", sum / (SAMPLES * (SAMPLES - 1) / 2));
    printf("closest pair %d-%d: %.5g\n", bestA, bestB, matrix[bestA * SAMPLES + bestB]);
    printf("d(0,8) %.5g d(0,39) %.5g\n", matrix[8], matrix[39]);

    GPU(cudaFree(dBases));
    GPU(cudaFree(dCounts));
    GPU(cudaFree(dSummary));
    GPU(cudaFree(dMatrix));
    return 0;
}
