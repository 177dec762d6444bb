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

__global__ void find_infections(Network net, const Person *people, int *newly, int day)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= PEOPLE)
        return;

    newly[i] = 0;
    if (people[i].state != SUSCEPTIBLE)
        return;

    for (int e = net.offsets[i]; e < net.offsets[i + 1]; e++) {
        int other = net.contacts[e];
        if (people[other].state == INFECTIOUS &&
            transmits(other, i, day, net.hours[e], people[i].susceptibility)) {
            newly[i] = 1;
            break;
        }
    }
}

__global__ void advance_people(Person *people, const int *newly, int *counts, int day)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= PEOPLE)
        return;

    Person p = people[i];
    switch (p.state) {
    case SUSCEPTIBLE:
        if (newly[i]) {
            p.state = EXPOSED;
            p.days_left = exposed_days(i, day);
            p.infected_day = day;
        }
        break;
    case EXPOSED:
        if (--p.days_left == 0) {
            p.state = INFECTIOUS;
            p.days_left = infectious_days(i, day);
        }
        break;
    case INFECTIOUS:
        if (--p.days_left == 0)
            p.state = RECOVERED;
        break;
    }
    people[i] = p;
    atomicAdd(&counts[day * 4 + p.state], 1);
}

// counts has DAYS * 4 zeroed entries
void simulate(Network net, Person *people, int *counts)
{
    int *newly;
    CUDA_OK(cudaMalloc(&newly, PEOPLE * sizeof(int)));

    int threads = 256;
    int blocks = (PEOPLE + threads - 1) / threads;
    for (int day = 0; day < DAYS; day++) {
        find_infections<<<blocks, threads>>>(net, people, newly, day);
        advance_people<<<blocks, threads>>>(people, newly, counts, day);
    }
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaFree(newly);
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
