// Statistics of a large ASCII text: lines, words, occurrences of a pattern,
// letter frequencies, longest line.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <cuda_runtime.h>

using count_t = unsigned long long;

constexpr int THREADS = 256;
constexpr int WARPS   = THREADS / 32;
constexpr int TILE    = THREADS * 16;    // bytes per tile, 16 per thread
constexpr int HALO    = 16;              // bytes before and after the tile
constexpr int MAX_PATTERN = HALO + 1;    // longest pattern that the halo covers

// 0..25 for a letter, 26 or more for anything else
__device__ __forceinline__ unsigned letterIndex(unsigned c) { return (c | 32u) - 'a'; }
__device__ __forceinline__ bool isLetter(unsigned c) { return letterIndex(c) < 26u; }

// One pass over the text for all statistics.  Each thread takes 16 bytes in one load; a shared
// copy of the tile serves neighbours (previous byte, pattern tail, line start).
__global__ void __launch_bounds__(THREADS)
textStats(const char* __restrict__ s, size_t n, const char* __restrict__ pattern, int length,
          count_t* __restrict__ counts, int* __restrict__ longest)
{
    __shared__ __align__(16) unsigned char buf[HALO + TILE + HALO];
    __shared__ unsigned hist[WARPS][32];
    __shared__ unsigned char pat[MAX_PATTERN];
    __shared__ unsigned total[3];
    __shared__ int best;

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    hist[warp][lane] = 0;
    if (tid < 3) total[tid] = 0;
    if (tid == 0) best = 0;
    if (tid < length) pat[tid] = (unsigned char)pattern[tid];

    const unsigned char* text = reinterpret_cast<const unsigned char*>(s);
    const size_t tiles = (n + TILE - 1) / TILE;
    unsigned lines = 0, words = 0, matches = 0;
    int myBest = 0;

    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const size_t base = tile * TILE;
        const size_t mine = base + (size_t)tid * 16;

        // bytes past the end of the text read as 0: no letter, no newline, no match
        uint4 v = make_uint4(0u, 0u, 0u, 0u);
        if (mine + 16 <= n) {
            v = *reinterpret_cast<const uint4*>(text + mine);
        } else if (mine < n) {
            unsigned w[4] = {0u, 0u, 0u, 0u};
            #pragma unroll
            for (int k = 0; k < 16; ++k)
                if (mine + k < n) w[k / 4] |= (unsigned)text[mine + k] << (8 * (k % 4));
            v = make_uint4(w[0], w[1], w[2], w[3]);
        }
        __syncthreads();                         // the previous tile is finished with
        *reinterpret_cast<uint4*>(buf + HALO + tid * 16) = v;
        if (tid < HALO) {
            buf[tid] = base ? text[base - HALO + tid] : 0;
        } else if (tid < 2 * HALO) {
            const size_t p = base + TILE + (tid - HALO);
            buf[HALO + TILE + (tid - HALO)] = p < n ? text[p] : 0;
        }
        __syncthreads();

        const unsigned w[4] = {v.x, v.y, v.z, v.w};
        const unsigned first = pat[0];
        bool prevLetter = isLetter(buf[HALO + tid * 16 - 1]);
        #pragma unroll
        for (int k = 0; k < 16; ++k) {
            const unsigned c = (w[k / 4] >> (8 * (k % 4))) & 255u;
            const unsigned idx = letterIndex(c);
            const bool letter = idx < 26u;
            words += letter && !prevLetter;
            prevLetter = letter;
            if (letter) atomicAdd(&hist[warp][idx], 1u);

            const int at = HALO + tid * 16 + k;  // position in buf
            if (c == first && mine + k + length <= n) {
                int m = 1;
                while (m < length && buf[at + m] == pat[m]) ++m;
                matches += m == length;
            }
            if (c == '\n') {
                ++lines;
                int b = at - 1;
                while (b >= HALO && buf[b] != '\n') --b;
                int len = at - 1 - b;
                if (b < HALO) {                  // line began in an earlier tile
                    long long j = (long long)base - 1;
                    while (j >= 0 && text[j] != '\n') { --j; ++len; }
                }
                myBest = max(myBest, len);
            }
        }
    }

    lines   = __reduce_add_sync(0xffffffffu, lines);
    words   = __reduce_add_sync(0xffffffffu, words);
    matches = __reduce_add_sync(0xffffffffu, matches);
    myBest  = __reduce_max_sync(0xffffffffu, myBest);
    if (lane == 0) {
        atomicAdd(&total[0], lines);
        atomicAdd(&total[1], words);
        atomicAdd(&total[2], matches);
        atomicMax(&best, myBest);
    }
    __syncthreads();
    if (tid < 26) {
        unsigned sum = 0;
        #pragma unroll
        for (int k = 0; k < WARPS; ++k) sum += hist[k][tid];
        atomicAdd(&counts[3 + tid], (count_t)sum);
    } else if (tid >= 32 && tid < 35) {
        atomicAdd(&counts[tid - 32], (count_t)total[tid - 32]);
    } else if (tid == 64) {
        atomicMax(longest, best);
    }
}

static std::string makeText(size_t n)
{
    static const char* letters = "etaoinshrdlcumwfgypbvkjxqzETAIS";
    std::string text;
    text.reserve(n + 64);
    unsigned state = 20240229u;
    auto random = [&](unsigned range) {
        state = state * 1103515245u + 12345u;
        return (state >> 12) % range;
    };
    size_t lineStart = 0;
    while (text.size() < n) {
        if (random(40) == 0) {
            text += "kernel";
        } else {
            unsigned len = 1 + std::min(random(11), random(11));
            for (unsigned k = 0; k < len; ++k)
                text += letters[std::min(random(31), random(31))];
        }
        unsigned r = random(30);
        if (r == 0) text += ". ";
        else if (r == 1) text += ", ";
        else if (r == 2) text += "-";
        else text += ' ';
        if (text.size() - lineStart > 40 + random(60)) {
            text += '\n';
            if (random(12) == 0) text += '\n';
            lineStart = text.size();
        }
    }
    text.resize(n);
    return text;
}

int main()
{
    const size_t n = 8000003;
    const std::string text = makeText(n);
    const std::string pattern = "kern";

    char *dText, *dPattern;
    count_t* dCounts;   // lines, words, matches, then 26 letters
    int* dLongest;
    cudaMalloc(&dText, n);
    cudaMalloc(&dPattern, pattern.size());
    cudaMalloc(&dCounts, 29 * sizeof(count_t));
    cudaMalloc(&dLongest, sizeof(int));
    cudaMemcpy(dText, text.data(), n, cudaMemcpyHostToDevice);
    cudaMemcpy(dPattern, pattern.data(), pattern.size(), cudaMemcpyHostToDevice);
    cudaMemset(dCounts, 0, 29 * sizeof(count_t));
    cudaMemset(dLongest, 0, sizeof(int));

    if (pattern.empty() || (int)pattern.size() > MAX_PATTERN) {
        std::puts("pattern length not supported");
        return 1;
    }
    const int blocks = (int)std::min<size_t>((n + TILE - 1) / TILE, 132 * 4);
    textStats<<<blocks, THREADS>>>(dText, n, dPattern, (int)pattern.size(), dCounts, dLongest);

    count_t counts[29];
    int longest = 0;
    cudaMemcpy(counts, dCounts, sizeof(counts), cudaMemcpyDeviceToHost);
    cudaMemcpy(&longest, dLongest, sizeof(int), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) {
        std::puts("CUDA failure");
        return 1;
    }

    std::printf("lines %llu words %llu matches %llu longest line %d\n", counts[0], counts[1], counts[2], longest);
    count_t letters = 0, mixed = 0;
    for (int k = 0; k < 26; ++k) {
        letters += counts[3 + k];
        mixed += counts[3 + k] * (count_t)(k + 1);
    }
    std::printf("letters %llu weighted %llu e %llu z %llu\n", letters, mixed, counts[3 + 4], counts[3 + 25]);

    cudaFree(dText);
    cudaFree(dPattern);
    cudaFree(dCounts);
    cudaFree(dLongest);
    return 0;
}
