// Hash join + group-by query, tuned for H200:
//   SELECT c.region, c.segment, COUNT(*), SUM(revenue), MAX(revenue)
//   FROM orders o JOIN customers c ON o.custKey = c.key
//   WHERE o.date >= LO AND o.date < HI AND o.status <> CANCELLED
//   GROUP BY c.region, c.segment
// The 16-byte hash slots carry the payload (group and price factor), so that a probe is one
// vector load; filter, probe and aggregation are one pass over the orders (three 16-byte
// streaming loads per pair of orders, four probes in flight per thread); groups are first
// aggregated in shared memory with native 32-bit atomics (64-bit sums as low word + carry).
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(x)                                                          \
    {                                                                       \
        cudaError_t e = (x);                                                \
        if (e != cudaSuccess) {                                             \
            fprintf(stderr, "CUDA error %s at line %d\n",                   \
                    cudaGetErrorString(e), __LINE__);                       \
            exit(EXIT_FAILURE);                                             \
        }                                                                   \
    }

typedef unsigned long long u64;

#define NUM_CUSTOMERS 300007
#define NUM_ORDERS 4200007
#define TABLE_SIZE (1 << 20)
#define EMPTY_KEY 0xFFFFFFFFFFFFFFFFull
#define NUM_REGIONS 25
#define NUM_SEGMENTS 5
#define NUM_GROUPS (NUM_REGIONS * NUM_SEGMENTS)
#define DATE_LO 400
#define DATE_HI 1600
#define STATUS_CANCELLED 2

constexpr int BLOCK = 512;
constexpr int BLOCKS_PER_SM = 2;

struct Customer {
    u64 key;
    int region;
    int segment;
    int discount;  // percent
    int pad;
};

struct Order {
    u64 custKey;
    int quantity;
    int price;  // cents
    int date;
    int status;
};
static_assert(sizeof(Order) == 24, "two orders are read as three 16-byte words");

struct __align__(16) Slot {
    u64 key;
    unsigned group;
    unsigned percent;
};

__device__ __forceinline__ unsigned first_slot(u64 x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    x ^= x >> 33;
    return (unsigned)x & (TABLE_SIZE - 1);
}

__global__ void __launch_bounds__(256)
build_table(const Customer* __restrict__ customers, int n, Slot* __restrict__ table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Customer c = customers[i];
    uint2 payload = make_uint2(c.region * NUM_SEGMENTS + c.segment, 100 - c.discount);
    unsigned slot = first_slot(c.key);
    while (atomicCAS(&table[slot].key, EMPTY_KEY, c.key) != EMPTY_KEY)
        slot = (slot + 1) & (TABLE_SIZE - 1);
    *reinterpret_cast<uint2*>(&table[slot].group) = payload;
}

struct Item {
    u64 key;
    unsigned gross;
    bool on;
};

__device__ __forceinline__ u64 join64(unsigned lo, unsigned hi)
{
    return ((u64)hi << 32) | lo;
}

__device__ __forceinline__ Item make_item(unsigned keyLo, unsigned keyHi, unsigned quantity,
                                          unsigned price, int date, int status)
{
    Item it;
    it.key = join64(keyLo, keyHi);
    it.gross = quantity * price;  // at most 50 * 1e5
    it.on = (unsigned)(date - DATE_LO) < (unsigned)(DATE_HI - DATE_LO) &&
            status != STATUS_CANCELLED;
    return it;
}

struct GroupAcc {
    unsigned lo[NUM_GROUPS];
    unsigned hi[NUM_GROUPS];
    unsigned count[NUM_GROUPS];
    unsigned max[NUM_GROUPS];
};

template <int COUNT>
__device__ __forceinline__ void process(const Item (&item)[COUNT], const uint4* __restrict__ table,
                                        GroupAcc& acc)
{
    unsigned slot[COUNT];
    uint4 data[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        slot[k] = first_slot(item[k].key);
        if (item[k].on) data[k] = __ldg(&table[slot[k]]);
        else data[k] = make_uint4(0xffffffffu, 0xffffffffu, 0u, 0u);  // reads as an empty slot
    }
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        uint4 d = data[k];
        u64 found = join64(d.x, d.y);
        while (found != item[k].key && found != EMPTY_KEY) {
            slot[k] = (slot[k] + 1) & (TABLE_SIZE - 1);
            d = __ldg(&table[slot[k]]);
            found = join64(d.x, d.y);
        }
        if (found != EMPTY_KEY) {
            unsigned g = d.z;
            unsigned revenue = item[k].gross * d.w;  // at most 5e8
            unsigned old = atomicAdd(&acc.lo[g], revenue);
            if (old + revenue < old) atomicAdd(&acc.hi[g], 1u);
            atomicAdd(&acc.count[g], 1u);
            atomicMax(&acc.max[g], revenue);
        }
    }
}

__global__ void __launch_bounds__(BLOCK, BLOCKS_PER_SM)
scan_orders(const Order* __restrict__ orders, int n, const uint4* __restrict__ table,
            u64* __restrict__ count, u64* __restrict__ sum, u64* __restrict__ maxRev)
{
    __shared__ GroupAcc acc;
    for (int g = threadIdx.x; g < NUM_GROUPS; g += BLOCK) {
        acc.lo[g] = 0;
        acc.hi[g] = 0;
        acc.count[g] = 0;
        acc.max[g] = 0;
    }
    __syncthreads();

    const uint4* words = reinterpret_cast<const uint4*>(orders);
    int pairs = n / 2;
    int stride = gridDim.x * BLOCK;
    for (int p = blockIdx.x * BLOCK + threadIdx.x; p < pairs; p += 2 * stride) {
        int p2 = p + stride;
        bool second = p2 < pairs;
        if (!second) p2 = p;
        const uint4* w = words + (size_t)p * 3;
        const uint4* w2 = words + (size_t)p2 * 3;
        uint4 a0 = __ldcs(w), a1 = __ldcs(w + 1), a2 = __ldcs(w + 2);
        uint4 b0 = __ldcs(w2), b1 = __ldcs(w2 + 1), b2 = __ldcs(w2 + 2);
        Item item[4];
        item[0] = make_item(a0.x, a0.y, a0.z, a0.w, (int)a1.x, (int)a1.y);
        item[1] = make_item(a1.z, a1.w, a2.x, a2.y, (int)a2.z, (int)a2.w);
        item[2] = make_item(b0.x, b0.y, b0.z, b0.w, (int)b1.x, (int)b1.y);
        item[3] = make_item(b1.z, b1.w, b2.x, b2.y, (int)b2.z, (int)b2.w);
        item[2].on = item[2].on && second;
        item[3].on = item[3].on && second;
        process(item, table, acc);
    }
    if ((n & 1) && blockIdx.x == 0 && threadIdx.x == 0) {
        Order o = orders[n - 1];
        Item item[1] = {make_item((unsigned)o.custKey, (unsigned)(o.custKey >> 32), o.quantity,
                                  o.price, o.date, o.status)};
        process(item, table, acc);
    }
    __syncthreads();

    for (int g = threadIdx.x; g < NUM_GROUPS; g += BLOCK) {
        if (acc.count[g] != 0) {
            atomicAdd(&count[g], (u64)acc.count[g]);
            atomicAdd(&sum[g], join64(acc.lo[g], acc.hi[g]));
            atomicMax(&maxRev[g], (u64)acc.max[g]);
        }
    }
}

static u64 customer_key(u64 i) { return (i + 1) * 0x9E3779B97F4A7C15ull; }

int main()
{
    std::vector<Customer> customers(NUM_CUSTOMERS);
    std::vector<Order> orders(NUM_ORDERS);
    uint32_t s = 2024u;
    auto rnd = [&s]() {
        s = s * 1664525u + 1013904223u;
        return s >> 8;
    };
    for (int i = 0; i < NUM_CUSTOMERS; i++) {
        customers[i].key = customer_key(i);
        customers[i].region = rnd() % NUM_REGIONS;
        customers[i].segment = rnd() % NUM_SEGMENTS;
        customers[i].discount = rnd() % 31;
        customers[i].pad = 0;
    }
    for (int i = 0; i < NUM_ORDERS; i++) {
        // about a tenth of the orders belong to unknown customers
        orders[i].custKey = customer_key(rnd() % (NUM_CUSTOMERS + NUM_CUSTOMERS / 9));
        orders[i].quantity = 1 + rnd() % 50;
        orders[i].price = 100 + rnd() % 99900;
        orders[i].date = rnd() % 2000;
        orders[i].status = rnd() % 7;
    }

    int device = 0, sms = 0;
    CUDA_OK(cudaGetDevice(&device));
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));

    Customer* d_customers;
    Order* d_orders;
    Slot* d_table;
    u64* d_groups;  // count, sum, max
    CUDA_OK(cudaMalloc(&d_customers, sizeof(Customer) * NUM_CUSTOMERS));
    CUDA_OK(cudaMalloc(&d_orders, sizeof(Order) * NUM_ORDERS));
    CUDA_OK(cudaMalloc(&d_table, sizeof(Slot) * TABLE_SIZE));
    CUDA_OK(cudaMalloc(&d_groups, sizeof(u64) * 3 * NUM_GROUPS));
    CUDA_OK(cudaMemcpy(d_customers, customers.data(), sizeof(Customer) * NUM_CUSTOMERS,
                       cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_orders, orders.data(), sizeof(Order) * NUM_ORDERS,
                       cudaMemcpyHostToDevice));

    CUDA_OK(cudaMemsetAsync(d_table, 0xff, sizeof(Slot) * TABLE_SIZE));
    CUDA_OK(cudaMemsetAsync(d_groups, 0, sizeof(u64) * 3 * NUM_GROUPS));
    build_table<<<(NUM_CUSTOMERS + 255) / 256, 256>>>(d_customers, NUM_CUSTOMERS, d_table);
    CUDA_OK(cudaGetLastError());
    scan_orders<<<sms * BLOCKS_PER_SM, BLOCK>>>(d_orders, NUM_ORDERS,
                                                reinterpret_cast<const uint4*>(d_table), d_groups,
                                                d_groups + NUM_GROUPS, d_groups + 2 * NUM_GROUPS);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    std::vector<u64> groups(3 * NUM_GROUPS);
    CUDA_OK(cudaMemcpy(groups.data(), d_groups, sizeof(u64) * 3 * NUM_GROUPS,
                       cudaMemcpyDeviceToHost));
    const u64* count = groups.data();
    const u64* sum = count + NUM_GROUPS;
    const u64* maxRev = sum + NUM_GROUPS;

    double rows = 0, total = 0, maxAll = 0, weighted = 0, maxSum = 0;
    for (int g = 0; g < NUM_GROUPS; g++) {
        rows += (double)count[g];
        total += (double)sum[g] * 1e-4;
        weighted += (double)sum[g] * 1e-4 * (g + 1);
        maxSum += (double)maxRev[g] * 1e-4;
        if ((double)maxRev[g] * 1e-4 > maxAll) maxAll = (double)maxRev[g] * 1e-4;
    }
    printf("joined rows %.0f\n", rows);
    printf("revenue %.10e\nweighted revenue %.10e\n", total, weighted);
    printf("largest order %.10e\nsum of largest %.10e\n", maxAll, maxSum);
    for (int g = 7; g < NUM_GROUPS; g += 39)
        printf("group: %.0f %.10e\n", (double)count[g], (double)sum[g] * 1e-4);

    cudaFree(d_customers);
    cudaFree(d_orders);
    cudaFree(d_table);
    cudaFree(d_groups);
    return 0;
}
