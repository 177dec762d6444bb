// Near-duplicate detection in a text collection: MinHash signatures and all-pairs comparison.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char* file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

static const int NUM_DOCS = 2048;
static const int NUM_HASHES = 128;
static const int SHINGLE = 9;              // characters per shingle
static const int DUP_MATCHES = 64;         // "near duplicate": half of the hashes agree
static const int CLUSTER = 8;              // edited copies per original text

struct DedupResult {
    std::vector<uint32_t> signatures;      // [doc][hash]
    std::vector<int> best;                 // most similar other document
    std::vector<float> bestSim;
    long long duplicatePairs;
    double meanSim;                        // over ordered pairs of different documents
};

// one thread per (document, hash function)
__global__ void minhashKernel(const unsigned char* text, const int* offsets, const uint64_t* mul,
                              const uint64_t* add, uint32_t* signatures)
{
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= NUM_DOCS * NUM_HASHES) return;
    int doc = tid / NUM_HASHES;
    int h = tid % NUM_HASHES;

    uint32_t smallest = 0xffffffffu;
    for (int p = offsets[doc]; p + SHINGLE <= offsets[doc + 1]; p++) {
        // FNV-1a of the shingle
        uint64_t x = 14695981039346656037ull;
        for (int k = 0; k < SHINGLE; k++) {
            x ^= text[p + k];
            x *= 1099511628211ull;
        }
        uint32_t v = (uint32_t)((mul[h] * x + add[h]) >> 32);
        if (v < smallest) smallest = v;
    }
    signatures[tid] = smallest;
}

// one thread per pair of documents
__global__ void similarityKernel(const uint32_t* signatures, float* sim)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= NUM_DOCS || j >= NUM_DOCS) return;
    int equal = 0;
    for (int k = 0; k < NUM_HASHES; k++)
        if (signatures[i * NUM_HASHES + k] == signatures[j * NUM_HASHES + k]) equal++;
    sim[i * NUM_DOCS + j] = equal / (float)NUM_HASHES;
}

// one warp per document: best match, sum of similarities, number of near duplicates
__global__ void bestMatchKernel(const float* sim, int* best, float* bestSim, float* simSum, int* dups)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int doc = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (doc >= NUM_DOCS) return;

    int bj = -1;
    float bs = -1.0f, sum = 0.0f;
    int count = 0;
    for (int j = warp.thread_rank(); j < NUM_DOCS; j += warp.size()) {
        if (j == doc) continue;
        float s = sim[doc * NUM_DOCS + j];
        sum += s;
        if (s >= DUP_MATCHES / (float)NUM_HASHES) count++;
        if (s > bs) {
            bs = s;
            bj = j;
        }
    }
    for (int off = warp.size() / 2; off > 0; off /= 2) {
        float os = warp.shfl_down(bs, off);
        int oj = warp.shfl_down(bj, off);
        sum += warp.shfl_down(sum, off);
        count += warp.shfl_down(count, off);
        if (os > bs || (os == bs && oj < bj)) {
            bs = os;
            bj = oj;
        }
    }
    if (warp.thread_rank() == 0) {
        best[doc] = bj;
        bestSim[doc] = bs;
        simSum[doc] = sum;
        dups[doc] = count;
    }
}

static void findDuplicates(const std::string& text, const std::vector<int>& offsets,
                           const std::vector<uint64_t>& mul, const std::vector<uint64_t>& add,
                           DedupResult& res)
{
    unsigned char* d_text;
    int *d_offsets, *d_best, *d_dups;
    uint64_t *d_mul, *d_add;
    uint32_t* d_sig;
    float *d_sim, *d_bestSim, *d_simSum;
    gpuErrchk(cudaMalloc(&d_text, text.size()));
    gpuErrchk(cudaMalloc(&d_offsets, offsets.size() * sizeof(int)));
    gpuErrchk(cudaMalloc(&d_mul, NUM_HASHES * sizeof(uint64_t)));
    gpuErrchk(cudaMalloc(&d_add, NUM_HASHES * sizeof(uint64_t)));
    gpuErrchk(cudaMalloc(&d_sig, NUM_DOCS * NUM_HASHES * sizeof(uint32_t)));
    gpuErrchk(cudaMalloc(&d_sim, (size_t)NUM_DOCS * NUM_DOCS * sizeof(float)));
    gpuErrchk(cudaMalloc(&d_best, NUM_DOCS * sizeof(int)));
    gpuErrchk(cudaMalloc(&d_bestSim, NUM_DOCS * sizeof(float)));
    gpuErrchk(cudaMalloc(&d_simSum, NUM_DOCS * sizeof(float)));
    gpuErrchk(cudaMalloc(&d_dups, NUM_DOCS * sizeof(int)));
    gpuErrchk(cudaMemcpy(d_text, text.data(), text.size(), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_mul, mul.data(), NUM_HASHES * sizeof(uint64_t), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_add, add.data(), NUM_HASHES * sizeof(uint64_t), cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    gpuErrchk(cudaEventCreate(&start));
    gpuErrchk(cudaEventCreate(&stop));
    gpuErrchk(cudaEventRecord(start));

    minhashKernel<<<(NUM_DOCS * NUM_HASHES + 255) / 256, 256>>>(d_text, d_offsets, d_mul, d_add, d_sig);
    dim3 block(16, 16);
    dim3 grid((NUM_DOCS + 15) / 16, (NUM_DOCS + 15) / 16);
    similarityKernel<<<grid, block>>>(d_sig, d_sim);
    bestMatchKernel<<<(NUM_DOCS * 32 + 255) / 256, 256>>>(d_sim, d_best, d_bestSim, d_simSum, d_dups);

    gpuErrchk(cudaEventRecord(stop));
    gpuErrchk(cudaEventSynchronize(stop));
    gpuErrchk(cudaGetLastError());
    float ms = 0;
    gpuErrchk(cudaEventElapsedTime(&ms, start, stop));
    fprintf(stderr, "kernels: %.3f ms\n", ms);

    std::vector<float> simSum(NUM_DOCS);
    std::vector<int> dups(NUM_DOCS);
    res.signatures.resize(NUM_DOCS * NUM_HASHES);
    res.best.resize(NUM_DOCS);
    res.bestSim.resize(NUM_DOCS);
    gpuErrchk(cudaMemcpy(res.signatures.data(), d_sig, res.signatures.size() * sizeof(uint32_t),
        cudaMemcpyDeviceToHost));
    gpuErrchk(cudaMemcpy(res.best.data(), d_best, NUM_DOCS * sizeof(int), cudaMemcpyDeviceToHost));
    gpuErrchk(cudaMemcpy(res.bestSim.data(), d_bestSim, NUM_DOCS * sizeof(float), cudaMemcpyDeviceToHost));
    gpuErrchk(cudaMemcpy(simSum.data(), d_simSum, NUM_DOCS * sizeof(float), cudaMemcpyDeviceToHost));
    gpuErrchk(cudaMemcpy(dups.data(), d_dups, NUM_DOCS * sizeof(int), cudaMemcpyDeviceToHost));

    double total = 0;
    long long pairs = 0;
    for (int d = 0; d < NUM_DOCS; d++) {
        total += simSum[d];
        pairs += dups[d];
    }
    res.duplicatePairs = pairs / 2;
    res.meanSim = total / ((double)NUM_DOCS * (NUM_DOCS - 1));

    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaFree(d_text); cudaFree(d_offsets); cudaFree(d_mul); cudaFree(d_add); cudaFree(d_sig);
    cudaFree(d_sim); cudaFree(d_best); cudaFree(d_bestSim); cudaFree(d_simSum); cudaFree(d_dups);
}

// ---------------------------------------------------------------------------------------

static uint64_t splitmix(uint64_t& x)
{
    uint64_t z = (x += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

int main()
{
    uint64_t rng = 2024;

    // vocabulary, then clusters of documents that are edited copies of one text
    std::vector<std::string> vocab;
    for (int i = 0; i < 1500; ++i) {
        std::string w;
        int len = 2 + (int)(splitmix(rng) % 8);
        for (int k = 0; k < len; ++k) w += (char)('a' + splitmix(rng) % 26);
        vocab.push_back(w);
    }
    std::string text;
    std::vector<int> offsets;
    for (int d = 0; d < NUM_DOCS; d += CLUSTER) {
        std::string original;
        size_t want = 800 + splitmix(rng) % 1600;
        while (original.size() < want) {
            uint64_t r = splitmix(rng) % 1500;
            uint64_t q = splitmix(rng) % 1500;
            original += vocab[r < q ? r : q];      // small indices are frequent
            original += ' ';
        }
        for (int c = 0; c < CLUSTER; ++c) {
            std::string copy = original;
            for (size_t k = 0; k < copy.size(); ++k)
                if (splitmix(rng) % 1000 < (uint64_t)(c * 6)) copy[k] = (char)('a' + splitmix(rng) % 26);
            if (c & 1) copy = copy.substr(0, copy.size() - copy.size() / 10);
            offsets.push_back((int)text.size());
            text += copy;
        }
    }
    offsets.push_back((int)text.size());

    std::vector<uint64_t> mul(NUM_HASHES), add(NUM_HASHES);
    for (int i = 0; i < NUM_HASHES; ++i) {
        mul[i] = splitmix(rng) | 1;
        add[i] = splitmix(rng);
    }

    DedupResult res;
    findDuplicates(text, offsets, mul, add, res);

    double sig = 0, sigW = 0, simSum = 0, simW = 0;
    for (int d = 0; d < NUM_DOCS; ++d)
        for (int i = 0; i < NUM_HASHES; ++i) {
            double v = res.signatures[d * NUM_HASHES + i] / 4294967296.0;
            sig += v;
            sigW += v * (1 + (d + i * 3) % 19);
        }
    long long sameCluster = 0, indexSum = 0;
    for (int d = 0; d < NUM_DOCS; ++d) {
        sameCluster += res.best[d] / CLUSTER == d / CLUSTER;
        indexSum += (long long)res.best[d] * (1 + d % 5);
        simSum += res.bestSim[d];
        simW += res.bestSim[d] * (1 + d % 9);
    }
    printf("characters %d\n", (int)text.size());
    printf("signature sums %.6f %.6f\n", sig, sigW);
    printf("best match: in cluster %lld, index sum %lld, mean %.5f, weighted %.4f\n", sameCluster,
           indexSum, simSum / NUM_DOCS, simW / NUM_DOCS);
    printf("near-duplicate pairs %lld, mean similarity %.6f\n", res.duplicatePairs, res.meanSim);
    return 0;
}
