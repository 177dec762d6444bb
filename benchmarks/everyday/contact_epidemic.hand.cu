// Stochastic SEIR epidemic on a contact network (CSR, undirected).
// Every contact has a weight (hours per day); random numbers are a hash of
// (source, target, day), so that a run is reproducible.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

static const int PEOPLE = 400000;
static const int DAYS = 80;
static const int SEEDS = 60;

enum State { SUSCEPTIBLE, EXPOSED, INFECTIOUS, RECOVERED };

struct Person {
    int state;
    int days_left;
    int infected_day;
    float susceptibility;
};

struct Network {
    int *offsets;
    int *contacts;
    float *hours;
};

#define CUDA_OK(x) \
    if ((x) != cudaSuccess) { \
        printf("CUDA call failed, line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError())); \
        exit(1); \
    }

__host__ __device__ inline unsigned int hash3(unsigned int a, unsigned int b, unsigned int c)
{
    unsigned int h = a * 0x9E3779B1u ^ b * 0x85EBCA77u ^ c * 0xC2B2AE3Du;
    h ^= h >> 16;
    h *= 0x7FEB352Du;
    h ^= h >> 15;
    h *= 0x846CA68Bu;
    h ^= h >> 16;
    return h;
}

__device__ inline bool transmits(int from, int to, int day, float hours, float susceptibility)
{
    float u = (hash3(from, to, day) >> 8) * (1.0f / 16777216.0f);
    return u < hours * susceptibility;
}

__device__ inline int exposed_days(int person, int day)
{
    return 2 + hash3(person, 0x51u, day) % 3;
}

__device__ inline int infectious_days(int person, int day)
{
    return 4 + hash3(person, 0xA7u, day) % 5;
}

// The network is undirected with one weight per contact, so infectious people push
// to their contacts instead of every susceptible person scanning all of his. State
// and timer share a byte (double buffered, it stays in cache); an infection is a bit
// in a mask for the next day. One launch per day: advance everybody by the bits of
// today, count, and push for tomorrow. The susceptibility test reads the previous
// buffer; a bit set for someone infected today is ignored tomorrow.
typedef unsigned char byte_t;

constexpr int THREADS = 256;
constexpr int BLOCKS = (PEOPLE + THREADS - 1) / THREADS;
constexpr int WORDS = PEOPLE / 32;
static_assert(PEOPLE % 32 == 0, "whole warps");

// whole warp; half a warp per infectious person
__device__ __forceinline__ void push_infections(const Network &net, const byte_t *__restrict__ state,
                                                const float *__restrict__ susceptibility,
                                                unsigned int *__restrict__ bits,
                                                int i, bool infectious, int day)
{
    const unsigned int FULL = 0xffffffffu;
    const int lane = threadIdx.x & 31;
    unsigned int mask = __ballot_sync(FULL, infectious);
    if (mask == 0)
        return;
    int begin = 0, end = 0;
    if (infectious) {
        begin = net.offsets[i];
        end = net.offsets[i + 1];
    }
    const int warp_base = i - lane;
    while (mask) {
        int first = __ffs(mask) - 1;
        mask &= mask - 1;
        int second = mask ? __ffs(mask) - 1 : -1;
        mask &= mask - 1;                            // 0 stays 0
        int src = lane < 16 ? first : second;
        int b = __shfl_sync(FULL, begin, src & 31);
        int e = __shfl_sync(FULL, end, src & 31);
        if (src < 0)
            continue;                                // lanes meet again at the next shuffle
        int from = warp_base + src;
        for (int k = b + (lane & 15); k < e; k += 16) {
            int to = __ldg(&net.contacts[k]);
            float h = __ldg(&net.hours[k]);
            if ((state[to] & 3) == SUSCEPTIBLE && transmits(from, to, day, h, susceptibility[to]))
                atomicOr(&bits[to >> 5], 1u << (to & 31));
        }
    }
}

__global__ void __launch_bounds__(THREADS) unpack(const Person *__restrict__ people, byte_t *__restrict__ state,
                                                  float *__restrict__ susceptibility)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= PEOPLE)
        return;
    Person p = people[i];
    state[i] = (byte_t)(p.state | (p.days_left << 2));
    susceptibility[i] = p.susceptibility;
}

__global__ void __launch_bounds__(THREADS) push_seeds(Network net, const byte_t *__restrict__ state,
                                                      const float *__restrict__ susceptibility, unsigned int *bits)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    bool infectious = i < PEOPLE && (state[i] & 3) == INFECTIOUS;
    push_infections(net, state, susceptibility, bits, i, infectious, 0);
}

__global__ void __launch_bounds__(THREADS) one_day(Network net, Person *__restrict__ people,
                                                   const byte_t *__restrict__ before, byte_t *__restrict__ after,
                                                   const float *__restrict__ susceptibility,
                                                   const unsigned int *__restrict__ today,
                                                   unsigned int *__restrict__ tomorrow,
                                                   unsigned int *__restrict__ cleared,
                                                   int *__restrict__ counts, int day)
{
    __shared__ int total[4];
    if (threadIdx.x < 4)
        total[threadIdx.x] = 0;
    __syncthreads();

    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int lane = threadIdx.x & 31;
    bool infectious = false;
    if (i < PEOPLE) {                                // whole warps
        const unsigned int word = today[i >> 5];
        if (lane == 0)
            cleared[i >> 5] = 0u;
        const int packed = before[i];
        int state = packed & 3, left = packed >> 2;
        if (state == SUSCEPTIBLE) {
            if ((word >> lane) & 1u) {
                state = EXPOSED;
                left = exposed_days(i, day);
                people[i].infected_day = day;
            }
        } else if (state == EXPOSED) {
            if (--left == 0) {
                state = INFECTIOUS;
                left = infectious_days(i, day);
            }
        } else if (state == INFECTIOUS) {
            if (--left == 0)
                state = RECOVERED;
        }
        after[i] = (byte_t)(state | (left << 2));
        infectious = state == INFECTIOUS;

        const unsigned int low = __ballot_sync(0xffffffffu, state & 1);
        const unsigned int high = __ballot_sync(0xffffffffu, state & 2);
        if (lane < 4) {
            unsigned int m = (lane & 1 ? low : ~low) & (lane & 2 ? high : ~high);
            if (m)
                atomicAdd(&total[lane], __popc(m));
        }
    }
    __syncthreads();
    if (threadIdx.x < 4 && total[threadIdx.x])
        atomicAdd(&counts[day * 4 + threadIdx.x], total[threadIdx.x]);

    if (day + 1 < DAYS)
        push_infections(net, before, susceptibility, tomorrow, i, infectious, day + 1);
}

__global__ void __launch_bounds__(THREADS) pack(Person *__restrict__ people, const byte_t *__restrict__ state)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= PEOPLE)
        return;
    int s = state[i];
    people[i].state = s & 3;
    people[i].days_left = s >> 2;
}

// counts has DAYS * 4 zeroed entries
void simulate(Network net, Person *people, int *counts)
{
    byte_t *state;
    float *susceptibility;
    unsigned int *bits;
    CUDA_OK(cudaMalloc(&state, 2 * PEOPLE));
    CUDA_OK(cudaMalloc(&susceptibility, PEOPLE * sizeof(float)));
    CUDA_OK(cudaMalloc(&bits, 3 * WORDS * sizeof(unsigned int)));
    CUDA_OK(cudaMemset(bits, 0, 3 * WORDS * sizeof(unsigned int)));

    unpack<<<BLOCKS, THREADS>>>(people, state, susceptibility);
    push_seeds<<<BLOCKS, THREADS>>>(net, state, susceptibility, bits);
    for (int day = 0; day < DAYS; day++)
        one_day<<<BLOCKS, THREADS>>>(net, people,
                                     state + (day & 1) * PEOPLE, state + ((day + 1) & 1) * PEOPLE,
                                     susceptibility,
                                     bits + (day % 3) * WORDS,
                                     bits + ((day + 1) % 3) * WORDS,
                                     bits + ((day + 2) % 3) * WORDS, counts, day);
    pack<<<BLOCKS, THREADS>>>(people, state + (DAYS & 1) * PEOPLE);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaFree(state);
    cudaFree(susceptibility);
    cudaFree(bits);
}

static unsigned int lcg = 4242;

static unsigned int next_random()
{
    lcg = lcg * 1664525u + 1013904223u;
    return lcg >> 4;
}

int main()
{
    // people know some neighbours and some others from anywhere
    std::vector<int> from, to;
    from.reserve(PEOPLE * 9);
    to.reserve(PEOPLE * 9);
    for (int i = 0; i < PEOPLE; i++) {
        int n = 4 + next_random() % 9;
        for (int k = 0; k < n; k++) {
            int j = (k % 3 == 2) ? next_random() % PEOPLE : (i + 1 + next_random() % 300) % PEOPLE;
            if (j != i) {
                from.push_back(i);
                to.push_back(j);
            }
        }
    }
    std::vector<int> offsets(PEOPLE + 1, 0);
    for (size_t e = 0; e < from.size(); e++) {
        offsets[from[e] + 1]++;
        offsets[to[e] + 1]++;
    }
    for (int i = 0; i < PEOPLE; i++)
        offsets[i + 1] += offsets[i];
    std::vector<int> contacts(offsets[PEOPLE]);
    std::vector<float> hours(offsets[PEOPLE]);
    std::vector<int> cursor(offsets.begin(), offsets.end() - 1);
    for (size_t e = 0; e < from.size(); e++) {
        float w = 0.006f + 0.03f * (next_random() % 1024) / 1024.0f;
        int a = cursor[from[e]]++;
        int b = cursor[to[e]]++;
        contacts[a] = to[e];
        contacts[b] = from[e];
        hours[a] = hours[b] = w;
    }

    std::vector<Person> people(PEOPLE);
    for (int i = 0; i < PEOPLE; i++) {
        people[i].state = SUSCEPTIBLE;
        people[i].days_left = 0;
        people[i].infected_day = -1;
        people[i].susceptibility = 0.8f + 0.3f * (next_random() % 5);
    }
    for (int k = 0; k < SEEDS; k++) {
        Person &p = people[next_random() % PEOPLE];
        p.state = INFECTIOUS;
        p.days_left = 6;
        p.infected_day = 0;
    }

    Network net;
    Person *d_people;
    int *d_counts;
    CUDA_OK(cudaMalloc(&net.offsets, offsets.size() * sizeof(int)));
    CUDA_OK(cudaMalloc(&net.contacts, contacts.size() * sizeof(int)));
    CUDA_OK(cudaMalloc(&net.hours, hours.size() * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_people, PEOPLE * sizeof(Person)));
    CUDA_OK(cudaMalloc(&d_counts, DAYS * 4 * sizeof(int)));
    CUDA_OK(cudaMemcpy(net.offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(net.contacts, contacts.data(), contacts.size() * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(net.hours, hours.data(), hours.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_people, people.data(), PEOPLE * sizeof(Person), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(d_counts, 0, DAYS * 4 * sizeof(int)));

    simulate(net, d_people, d_counts);

    std::vector<int> counts(DAYS * 4);
    CUDA_OK(cudaMemcpy(counts.data(), d_counts, DAYS * 4 * sizeof(int), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(people.data(), d_people, PEOPLE * sizeof(Person), cudaMemcpyDeviceToHost));

    int peak = 0;
    for (int day = 0; day < DAYS; day++) {
        int *c = &counts[day * 4];
        if (day % 8 == 7)
            printf("day %2d: S %d E %d I %d R %d\n", day, c[0], c[1], c[2], c[3]);
        if (c[INFECTIOUS] > counts[peak * 4 + INFECTIOUS])
            peak = day;
    }
    long long check = 0, left = 0;
    int infected = 0;
    for (int i = 0; i < PEOPLE; i++) {
        check += (long long)(people[i].infected_day + 1) * (i % 1009 + 1);
        left += (people[i].days_left + 10 * people[i].state) * (i % 13 + 1);
        infected += people[i].infected_day >= 0;
    }
    printf("peak on day %d, %d ever infected\n", peak, infected);
    printf("checks %lld %lld\n", check, left);

    cudaFree(net.offsets);
    cudaFree(net.contacts);
    cudaFree(net.hours);
    cudaFree(d_people);
    cudaFree(d_counts);
    return 0;
}
