// Database query on the GPU:
//   SELECT c.region, c.segment, COUNT(*), SUM(revenue), MAX(revenue)
//   FROM orders o JOIN customers c ON o.custKey = c.key
//   WHERE o.date >= LO AND o.date < HI AND o.status <> CANCELLED
//   GROUP BY c.region, c.segment
// Open addressing hash table, one kernel per query operator.
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

__host__ __device__ inline u64 mix64(u64 x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    x ^= x >> 33;
    return x;
}

__global__ void clear_table(u64* keys, int* rows, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        keys[i] = EMPTY_KEY;
        rows[i] = -1;
    }
}

__global__ void clear_groups(u64* count, u64* sum, u64* maxRev)
{
    int g = threadIdx.x;
    if (g < NUM_GROUPS) {
        count[g] = 0;
        sum[g] = 0;
        maxRev[g] = 0;
    }
}

__global__ void build_table(const Customer* customers, size_t n, u64* keys, int* rows)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 key = customers[i].key;
    size_t slot = mix64(key) % TABLE_SIZE;
    while (true) {
        u64 old = atomicCAS(&keys[slot], EMPTY_KEY, key);
        if (old == EMPTY_KEY) {
            rows[slot] = (int)i;
            return;
        }
        slot = (slot + 1) % TABLE_SIZE;
    }
}

__global__ void filter_orders(const Order* orders, size_t n, unsigned char* selected)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        int date = orders[i].date;
        selected[i] = date >= DATE_LO && date < DATE_HI && orders[i].status != STATUS_CANCELLED;
    }
}

__global__ void probe_table(const Order* orders, const unsigned char* selected, size_t n,
                            const u64* keys, const int* rows, int* matchRow)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        int result = -1;
        if (selected[i]) {
            u64 key = orders[i].custKey;
            size_t slot = mix64(key) % TABLE_SIZE;
            while (keys[slot] != EMPTY_KEY) {
                if (keys[slot] == key) {
                    result = rows[slot];
                    break;
                }
                slot = (slot + 1) % TABLE_SIZE;
            }
        }
        matchRow[i] = result;
    }
}

__global__ void compute_revenue(const Order* orders, const Customer* customers,
                                const int* matchRow, size_t n, u64* revenue)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        int row = matchRow[i];
        if (row >= 0) {
            u64 gross = (u64)orders[i].quantity * (u64)orders[i].price;
            revenue[i] = gross * (u64)(100 - customers[row].discount);
        } else {
            revenue[i] = 0;
        }
    }
}

__global__ void aggregate(const Customer* customers, const int* matchRow, const u64* revenue,
                          size_t n, u64* count, u64* sum, u64* maxRev)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row = matchRow[i];
    if (row < 0) return;
    int g = customers[row].region * NUM_SEGMENTS + customers[row].segment;
    atomicAdd(&count[g], 1ull);
    atomicAdd(&sum[g], revenue[i]);
    atomicMax(&maxRev[g], revenue[i]);
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

    Customer* d_customers;
    Order* d_orders;
    u64 *d_keys, *d_revenue, *d_count, *d_sum, *d_max;
    int *d_rows, *d_match;
    unsigned char* d_selected;
    CUDA_OK(cudaMalloc(&d_customers, sizeof(Customer) * NUM_CUSTOMERS));
    CUDA_OK(cudaMalloc(&d_orders, sizeof(Order) * NUM_ORDERS));
    CUDA_OK(cudaMalloc(&d_keys, sizeof(u64) * TABLE_SIZE));
    CUDA_OK(cudaMalloc(&d_rows, sizeof(int) * TABLE_SIZE));
    CUDA_OK(cudaMalloc(&d_selected, NUM_ORDERS));
    CUDA_OK(cudaMalloc(&d_match, sizeof(int) * NUM_ORDERS));
    CUDA_OK(cudaMalloc(&d_revenue, sizeof(u64) * NUM_ORDERS));
    CUDA_OK(cudaMalloc(&d_count, sizeof(u64) * NUM_GROUPS));
    CUDA_OK(cudaMalloc(&d_sum, sizeof(u64) * NUM_GROUPS));
    CUDA_OK(cudaMalloc(&d_max, sizeof(u64) * NUM_GROUPS));
    CUDA_OK(cudaMemcpy(d_customers, customers.data(), sizeof(Customer) * NUM_CUSTOMERS,
                       cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_orders, orders.data(), sizeof(Order) * NUM_ORDERS,
                       cudaMemcpyHostToDevice));

    const int block = 256;
    const int strideGrid = 2048;
    clear_table<<<(TABLE_SIZE + block - 1) / block, block>>>(d_keys, d_rows, TABLE_SIZE);
    clear_groups<<<1, 128>>>(d_count, d_sum, d_max);
    build_table<<<(NUM_CUSTOMERS + block - 1) / block, block>>>(d_customers, NUM_CUSTOMERS,
                                                                d_keys, d_rows);
    filter_orders<<<strideGrid, block>>>(d_orders, NUM_ORDERS, d_selected);
    probe_table<<<strideGrid, block>>>(d_orders, d_selected, NUM_ORDERS, d_keys, d_rows, d_match);
    compute_revenue<<<strideGrid, block>>>(d_orders, d_customers, d_match, NUM_ORDERS, d_revenue);
    aggregate<<<(NUM_ORDERS + block - 1) / block, block>>>(d_customers, d_match, d_revenue,
                                                           NUM_ORDERS, d_count, d_sum, d_max);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    std::vector<u64> count(NUM_GROUPS), sum(NUM_GROUPS), maxRev(NUM_GROUPS);
    CUDA_OK(cudaMemcpy(count.data(), d_count, sizeof(u64) * NUM_GROUPS, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(sum.data(), d_sum, sizeof(u64) * NUM_GROUPS, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(maxRev.data(), d_max, sizeof(u64) * NUM_GROUPS, cudaMemcpyDeviceToHost));

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
    cudaFree(d_keys);
    cudaFree(d_rows);
    cudaFree(d_selected);
    cudaFree(d_match);
    cudaFree(d_revenue);
    cudaFree(d_count);
    cudaFree(d_sum);
    cudaFree(d_max);
    return 0;
}
