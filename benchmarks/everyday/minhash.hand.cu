// Near-duplicate detection in a text collection: MinHash signatures and all-pairs comparison.
// H200 version: one block per document, every shingle is hashed once into shared memory and
// used by all hash functions (two per thread, in registers); the all-pairs comparison is tiled
// like a matrix product (64 x 64, 4 x 4 per thread), computes the upper triangle only, and is
// fused with the best match / statistics, so that no similarity matrix is stored.
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

static const int MH_THREADS = 128;
static const int MH_CHUNK = 1024;          // shingles in shared memory
static const int TILE = 64;
static const int KCHUNK = 32;
static_assert(NUM_DOCS % TILE == 0 && NUM_HASHES % KCHUNK == 0 && NUM_DOCS < 65536, "tiling");

__global__ void __launch_bounds__(MH_THREADS)
minhashKernel(const unsigned char* __restrict__ text, const int* __restrict__ offsets,
              const uint64_t* __restrict__ mul, const uint64_t* __restrict__ add,
              uint32_t* __restrict__ signatures)
{
    __shared__ __align__(16) uint64_t sHash[MH_CHUNK];
    __shared__ uint32_t sMin[NUM_HASHES];

    const int tid = threadIdx.x;
    const int f = tid & 63;                // hash functions f and f + 64
    const int half = tid >> 6;             // which half of the chunk (warp uniform)
    const int doc = blockIdx.x;
    const int begin = offsets[doc];
    const int count = offsets[doc + 1] - begin - SHINGLE + 1;
    const uint64_t a0 = mul[f], a1 = mul[f + 64], b0 = add[f], b1 = add[f + 64];
    uint32_t m0 = 0xffffffffu, m1 = 0xffffffffu;

    for (int c0 = 0; c0 < count; c0 += MH_CHUNK) {
        const int n = min(MH_CHUNK, count - c0);
        const int padded = (n + 7) & ~7;   // padding repeats the chunk's last shingle
        __syncthreads();
        for (int i = tid; i < padded; i += MH_THREADS) {
            const unsigned char* p = text + begin + c0 + min(i, n - 1);
            uint64_t x = 14695981039346656037ull;
#pragma unroll
            for (int k = 0; k < SHINGLE; k++) {
                x ^= __ldg(p + k);
                x *= 1099511628211ull;
            }
            sHash[i] = x;
        }
        __syncthreads();
        const ulonglong2* h = reinterpret_cast<const ulonglong2*>(sHash);
        // pairs of shingles, even pairs for one half of the block, odd pairs for the other
#pragma unroll 4
        for (int i = half; i < padded / 2; i += 2) {
            const ulonglong2 x = h[i];
            m0 = min(m0, (uint32_t)((a0 * x.x + b0) >> 32));
            m1 = min(m1, (uint32_t)((a1 * x.x + b1) >> 32));
            m0 = min(m0, (uint32_t)((a0 * x.y + b0) >> 32));
            m1 = min(m1, (uint32_t)((a1 * x.y + b1) >> 32));
        }
    }
    if (half == 1) {
        sMin[f] = m0;
        sMin[f + 64] = m1;
    }
    __syncthreads();
    if (half == 0) {
        signatures[doc * NUM_HASHES + f] = min(m0, sMin[f]);
        signatures[doc * NUM_HASHES + f + 64] = min(m1, sMin[f + 64]);
    }
}

// best[] holds (matches << 16) | (0xffff - other): the maximum is the best match, smallest index first
__global__ void __launch_bounds__(256)
pairsKernel(const uint32_t* __restrict__ signatures, uint32_t* __restrict__ best,
            unsigned long long* __restrict__ totals)
{
    const int bi = blockIdx.y, bj = blockIdx.x;
    if (bj < bi) return;

    __shared__ __align__(16) uint32_t sA[KCHUNK][TILE + 4];
    __shared__ __align__(16) uint32_t sB[KCHUNK][TILE + 4];
    __shared__ uint32_t sCol[TILE];
    __shared__ unsigned sTotal[2];

    const int tid = threadIdx.x;
    const int tx = tid & 15, ty = tid >> 4;
    const bool diagonal = bi == bj;
    if (tid < TILE) sCol[tid] = 0u;
    if (tid < 2) sTotal[tid] = 0u;

    int cnt[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) cnt[i][j] = 0;

    const int lr = tid >> 3, lk = tid & 7;     // loads: row (32 at a time), group of 4 hashes
    for (int k0 = 0; k0 < NUM_HASHES; k0 += KCHUNK) {
        __syncthreads();
#pragma unroll
        for (int r = lr; r < TILE; r += 32) {
            uint4 va = __ldg(reinterpret_cast<const uint4*>(signatures + (bi * TILE + r) * NUM_HASHES + k0) + lk);
            uint4 vb = __ldg(reinterpret_cast<const uint4*>(signatures + (bj * TILE + r) * NUM_HASHES + k0) + lk);
            sA[lk * 4 + 0][r] = va.x;
            sA[lk * 4 + 1][r] = va.y;
            sA[lk * 4 + 2][r] = va.z;
            sA[lk * 4 + 3][r] = va.w;
            sB[lk * 4 + 0][r] = vb.x;
            sB[lk * 4 + 1][r] = vb.y;
            sB[lk * 4 + 2][r] = vb.z;
            sB[lk * 4 + 3][r] = vb.w;
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < KCHUNK; k++) {
            const uint4 a = *reinterpret_cast<const uint4*>(&sA[k][ty * 4]);
            const uint4 b = *reinterpret_cast<const uint4*>(&sB[k][tx * 4]);
            const uint32_t av[4] = {a.x, a.y, a.z, a.w};
            const uint32_t bv[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) cnt[i][j] += av[i] == bv[j];
        }
    }

    uint32_t rowBest[4] = {0u, 0u, 0u, 0u}, colBest[4] = {0u, 0u, 0u, 0u};
    unsigned sum = 0, dups = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int gi = bi * TILE + ty * 4 + i;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int gj = bj * TILE + tx * 4 + j;
            const uint32_t c = (uint32_t)cnt[i][j];
            if (gi != gj) {
                rowBest[i] = max(rowBest[i], (c << 16) | (0xffffu - gj));
                colBest[j] = max(colBest[j], (c << 16) | (0xffffu - gi));
            }
            if (gi < gj) {
                sum += c;
                dups += c >= (uint32_t)DUP_MATCHES;
            }
        }
    }
    // rows: the 16 threads of a row are neighbours in the warp
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int o = 8; o > 0; o >>= 1) rowBest[i] = max(rowBest[i], __shfl_xor_sync(0xffffffffu, rowBest[i], o));
        if (tx == 0) atomicMax(&best[bi * TILE + ty * 4 + i], rowBest[i]);
    }
    sum = __reduce_add_sync(0xffffffffu, sum);
    dups = __reduce_add_sync(0xffffffffu, dups);
    if ((tid & 31) == 0) {
        atomicAdd(&sTotal[0], sum);
        atomicAdd(&sTotal[1], dups);
    }
    // columns: only off the diagonal, where the mirrored tile is not computed
    if (!diagonal) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint32_t v = max(colBest[j], __shfl_xor_sync(0xffffffffu, colBest[j], 16));
            if ((tid & 16) == 0) atomicMax(&sCol[tx * 4 + j], v);
        }
    }
    __syncthreads();
    if (!diagonal && tid < TILE) atomicMax(&best[bj * TILE + tid], sCol[tid]);
    if (tid < 2) atomicAdd(&totals[tid], (unsigned long long)sTotal[tid]);
}

static void findDuplicates(const std::string& text, const std::vector<int>& offsets,
                           const std::vector<uint64_t>& mul, const std::vector<uint64_t>& add,
                           DedupResult& res)
{
    unsigned char* d_text;
    int* d_offsets;
    uint64_t *d_mul, *d_add;
    uint32_t *d_sig, *d_best;
    unsigned long long* d_totals;
    gpuErrchk(cudaMalloc(&d_text, text.size()));
    gpuErrchk(cudaMalloc(&d_offsets, offsets.size() * sizeof(int)));
    gpuErrchk(cudaMalloc(&d_mul, NUM_HASHES * sizeof(uint64_t)));
    gpuErrchk(cudaMalloc(&d_add, NUM_HASHES * sizeof(uint64_t)));
    gpuErrchk(cudaMalloc(&d_sig, NUM_DOCS * NUM_HASHES * sizeof(uint32_t)));
    gpuErrchk(cudaMalloc(&d_best, NUM_DOCS * sizeof(uint32_t)));
    gpuErrchk(cudaMalloc(&d_totals, 2 * sizeof(unsigned long long)));
    gpuErrchk(cudaMemcpy(d_text, text.data(), text.size(), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_mul, mul.data(), NUM_HASHES * sizeof(uint64_t), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_add, add.data(), NUM_HASHES * sizeof(uint64_t), cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    gpuErrchk(cudaEventCreate(&start));
    gpuErrchk(cudaEventCreate(&stop));
    gpuErrchk(cudaEventRecord(start));

    gpuErrchk(cudaMemsetAsync(d_best, 0, NUM_DOCS * sizeof(uint32_t)));
    gpuErrchk(cudaMemsetAsync(d_totals, 0, 2 * sizeof(unsigned long long)));
    minhashKernel<<<NUM_DOCS, MH_THREADS>>>(d_text, d_offsets, d_mul, d_add, d_sig);
    pairsKernel<<<dim3(NUM_DOCS / TILE, NUM_DOCS / TILE), 256>>>(d_sig, d_best, d_totals);

    gpuErrchk(cudaEventRecord(stop));
    gpuErrchk(cudaEventSynchronize(stop));
    gpuErrchk(cudaGetLastError());
    float ms = 0;
    gpuErrchk(cudaEventElapsedTime(&ms, start, stop));
    fprintf(stderr, "kernels: %.3f ms\n", ms);

    std::vector<uint32_t> packed(NUM_DOCS);
    unsigned long long totals[2];
    res.signatures.resize(NUM_DOCS * NUM_HASHES);
    res.best.resize(NUM_DOCS);
    res.bestSim.resize(NUM_DOCS);
    gpuErrchk(cudaMemcpy(res.signatures.data(), d_sig, res.signatures.size() * sizeof(uint32_t),
        cudaMemcpyDeviceToHost));
    gpuErrchk(cudaMemcpy(packed.data(), d_best, NUM_DOCS * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    gpuErrchk(cudaMemcpy(totals, d_totals, sizeof(totals), cudaMemcpyDeviceToHost));
    for (int d = 0; d < NUM_DOCS; d++) {
        res.best[d] = 0xffff - (int)(packed[d] & 0xffffu);
        res.bestSim[d] = (packed[d] >> 16) / (float)NUM_HASHES;
    }
    res.duplicatePairs = (long long)totals[1];
    res.meanSim = 2.0 * (double)totals[0] / NUM_HASHES / ((double)NUM_DOCS * (NUM_DOCS - 1));

    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaFree(d_text); cudaFree(d_offsets); cudaFree(d_mul); cudaFree(d_add); cudaFree(d_sig);
    cudaFree(d_best); cudaFree(d_totals);
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
