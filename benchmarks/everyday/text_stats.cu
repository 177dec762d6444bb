// Statistics of a large ASCII text: lines, words, occurrences of a pattern,
// letter frequencies, longest line.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <cuda_runtime.h>

using count_t = unsigned long long;

__host__ __device__ inline bool isLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// ---- predicates: "does something start at position i?"
struct Newline {
    __device__ bool operator()(const char* s, size_t i, size_t) const { return s[i] == '\n'; }
};

struct WordStart {
    __device__ bool operator()(const char* s, size_t i, size_t) const
    {
        return isLetter(s[i]) && (i == 0 || !isLetter(s[i - 1]));
    }
};

struct PatternAt {
    const char* pattern;
    int length;
    __device__ bool operator()(const char* s, size_t i, size_t n) const
    {
        if (i + length > n) return false;
        int k = 0;
        while (k < length && s[i + k] == pattern[k])
            ++k;
        return k == length;
    }
};

template <class Predicate>
__global__ void countIf(const char* s, size_t n, Predicate pred, count_t* result)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        if (pred(s, i, n))
            atomicAdd(result, (count_t)1);
}

__global__ void letterFrequency(const char* s, size_t n, count_t* freq)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        char c = s[i];
        if (isLetter(c)) {
            int k = c >= 'a' ? c - 'a' : c - 'A';
            atomicAdd(&freq[k], (count_t)1);
        }
    }
}

// at every line end walk back to the line's beginning
__global__ void longestLine(const char* s, size_t n, int* longest)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        if (s[i] != '\n') continue;
        long long j = (long long)i - 1;
        while (j >= 0 && s[j] != '\n')
            --j;
        atomicMax(longest, (int)((long long)i - 1 - j));
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

    const int blocks = 1024, threads = 256;
    countIf<<<blocks, threads>>>(dText, n, Newline(), dCounts + 0);
    countIf<<<blocks, threads>>>(dText, n, WordStart(), dCounts + 1);
    countIf<<<blocks, threads>>>(dText, n, PatternAt{dPattern, (int)pattern.size()}, dCounts + 2);
    letterFrequency<<<blocks, threads>>>(dText, n, dCounts + 3);
    longestLine<<<blocks, threads>>>(dText, n, dLongest);

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
