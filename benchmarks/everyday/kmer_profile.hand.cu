// k-mer profiles of a set of assembled genomes and their pairwise Bray-Curtis
// dissimilarity. A k-mer and its reverse complement count as the same word.
// Tuned version: all samples in one launch, rolling words, shared memory tables.
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

constexpr int THREADS = 512;
constexpr int RUN = 16;                                // k-mers per thread and pass
constexpr uint32_t BLOCK_SPAN = THREADS * RUN * 8;     // positions per block
constexpr uint64_t PAD = 32;                           // 'N' after every sample

struct SampleRange {
    uint64_t offset;      // multiple of 16
    uint64_t length;
};
__constant__ SampleRange cSamples[SAMPLES];

struct Summary {
    uint32_t total;
    uint32_t topCount;
    uint32_t topWord;
};

struct Roller {
    uint32_t fwd = 0, rev = 0;
    int valid = 0;          // bases since the last ambiguous one

    __device__ __forceinline__ void push(uint32_t c)
    {
        const uint32_t x = (c >> 1) & 3u;
        const uint32_t code = x ^ (x >> 1);             // A C G T -> 0 1 2 3
        fwd = ((fwd << 2) | code) & (TABLE - 1);
        rev = (rev >> 2) | ((3u - code) << (2 * (K - 1)));
        valid = c == 'N' ? 0 : valid + 1;
    }
    __device__ __forceinline__ uint32_t word() const { return min(fwd, rev); }
};

// Rolling k-mers: 16 start positions per thread from one 16-byte and one 8-byte load,
// counted in a shared memory table that is merged into the global one at the end.
__global__ void __launch_bounds__(THREADS)
countWords(const char* __restrict__ bases, uint32_t* __restrict__ counts)
{
    extern __shared__ uint32_t hist[];
    const SampleRange sample = cSamples[blockIdx.y];
    const uint64_t first = (uint64_t)blockIdx.x * BLOCK_SPAN;
    if (first >= sample.length) return;
    for (uint32_t i = threadIdx.x; i < TABLE / 4; i += THREADS)
        reinterpret_cast<uint4*>(hist)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();

    const char* seq = bases + sample.offset;
    const uint64_t last = min(first + BLOCK_SPAN, sample.length);
    for (uint64_t pos = first + threadIdx.x * RUN; pos < last; pos += THREADS * RUN) {
        const uint4 a = __ldg(reinterpret_cast<const uint4*>(seq + pos));
        const uint2 b = __ldg(reinterpret_cast<const uint2*>(seq + pos + 16));
        const uint32_t w[6] = {a.x, a.y, a.z, a.w, b.x, b.y};
        Roller roll;
#pragma unroll
        for (int i = 0; i < RUN + K - 1; ++i) {
            roll.push((w[i / 4] >> (8 * (i % 4))) & 255u);
            if (i >= K - 1 && roll.valid >= K) atomicAdd(&hist[roll.word()], 1u);
        }
    }
    __syncthreads();
    uint32_t* out = counts + (uint64_t)blockIdx.y * TABLE;
    for (uint32_t i = threadIdx.x; i < TABLE; i += THREADS)
        if (hist[i]) atomicAdd(&out[i], hist[i]);
}

// One block per sample: total number of words and the most frequent one.
__global__ void summarize(const uint32_t* counts, Summary* summary)
{
    const uint32_t* c = counts + (uint64_t)blockIdx.x * TABLE;
    uint32_t total = 0;
    uint64_t best = 0;       // count in the high half, inverted word below: max gives the lowest word
#pragma unroll 4
    for (uint32_t w = threadIdx.x; w < TABLE; w += 1024) {
        const uint32_t n = __ldg(c + w);
        total += n;
        best = max(best, ((uint64_t)n << 32) | (0xffffffffu - w));
    }
    __shared__ uint32_t totals[32];
    __shared__ uint64_t bests[32];
    for (int s = 16; s > 0; s >>= 1) {
        total += __shfl_down_sync(0xffffffffu, total, s);
        best = max(best, (uint64_t)__shfl_down_sync(0xffffffffu, (unsigned long long)best, s));
    }
    if (threadIdx.x % 32 == 0) {
        totals[threadIdx.x / 32] = total;
        bests[threadIdx.x / 32] = best;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        total = totals[threadIdx.x];
        best = bests[threadIdx.x];
        for (int s = 16; s > 0; s >>= 1) {
            total += __shfl_down_sync(0xffffffffu, total, s);
            best = max(best, (uint64_t)__shfl_down_sync(0xffffffffu, (unsigned long long)best, s));
        }
        if (threadIdx.x == 0)
            summary[blockIdx.x] = {total, (uint32_t)(best >> 32), 0xffffffffu - (uint32_t)best};
    }
}

// One block per pair a <= b, coalesced 16-byte loads. The shared count of a pair is
// at most a sample length, so 32 bits are enough.
__global__ void __launch_bounds__(256)
dissimilarity(const uint32_t* __restrict__ counts, const Summary* __restrict__ summary,
              float* __restrict__ matrix)
{
    const int a = blockIdx.x, b = blockIdx.y;
    if (a > b) return;
    const uint4* ca = reinterpret_cast<const uint4*>(counts + (uint64_t)a * TABLE);
    const uint4* cb = reinterpret_cast<const uint4*>(counts + (uint64_t)b * TABLE);
    uint32_t common = 0;
#pragma unroll 4
    for (uint32_t w = threadIdx.x; w < TABLE / 4; w += 256) {
        const uint4 u = __ldg(ca + w), v = __ldg(cb + w);
        common += min(u.x, v.x) + min(u.y, v.y) + min(u.z, v.z) + min(u.w, v.w);
    }
    __shared__ uint32_t partial[8];
    common = __reduce_add_sync(0xffffffffu, common);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = common;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t all = 0;
        for (int i = 0; i < 8; ++i) all += partial[i];
        const double sum = (double)summary[a].total + (double)summary[b].total;
        const float d = (float)(1.0 - 2.0 * (double)all / sum);
        matrix[b * SAMPLES + a] = d;
        matrix[a * SAMPLES + b] = d;
    }
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

    std::vector<SampleRange> ranges(SAMPLES);
    uint64_t end = 0, longest = 0;
    for (int s = 0; s < SAMPLES; ++s) {
        uint64_t length = 500000 + (uint64_t)s * 7919 % 150000;
        ranges[s] = {end, length};
        end += (length + PAD + 15) / 16 * 16;
        longest = std::max(longest, length);
    }
    std::vector<char> bases(end, 'N');
    for (int s = 0; s < SAMPLES; ++s) {
        const char* src = ancestors[s / 8].data() + (s * 1237) % 40000;
        char* dst = bases.data() + ranges[s].offset;
        uint64_t mutation = 10 + 20 * (s % 8);      // per 1024 bases
        for (uint64_t i = 0; i < ranges[s].length; ++i) {
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

    GPU(cudaMemcpyToSymbol(cSamples, ranges.data(), SAMPLES * sizeof(SampleRange)));

    const size_t tableBytes = TABLE * sizeof(uint32_t);
    GPU(cudaFuncSetAttribute(countWords, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)tableBytes));
    dim3 grid((unsigned)((longest + BLOCK_SPAN - 1) / BLOCK_SPAN), SAMPLES);
    countWords<<<grid, THREADS, tableBytes>>>(dBases, dCounts);
    summarize<<<SAMPLES, 1024>>>(dCounts, dSummary);
    dissimilarity<<<dim3(SAMPLES, SAMPLES), 256>>>(dCounts, dSummary, dMatrix);
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
