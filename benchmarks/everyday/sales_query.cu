// SELECT region, category, COUNT(*), SUM(price * quantity * (100 - discount)), MAX(price)
// FROM sales JOIN stores USING (store) JOIN products USING (product)
// WHERE date >= D0 AND date < D1 AND quantity >= 3 AND discount <= 7
// GROUP BY region, category
// Column store, plain version: one kernel per operator, one thread per row.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(e) do { cudaError_t r = (e); \
    if (r) { fprintf(stderr, "%s failed: %s\n", #e, cudaGetErrorString(r)); exit(1); } } while (0)

typedef long long row_t;

constexpr row_t NROWS = 8000003;
constexpr int NSTORES = 300;
constexpr int NPRODUCTS = 2500;
constexpr int NREGIONS = 7;
constexpr int NCATEGORIES = 23;
constexpr int NGROUPS = NREGIONS * NCATEGORIES;

struct SalesTable {                  // device pointers to the columns
    const int32_t *date;             // days
    const int32_t *product;
    const int32_t *price;            // cents
    const uint16_t *store;
    const uint8_t *quantity;
    const uint8_t *discount;         // percent
};

struct GroupRow {
    unsigned long long count;
    unsigned long long revenue;      // hundredths of cents
    unsigned int max_price;
};

__constant__ uint8_t store_region[NSTORES];

struct SalesPredicate {
    int32_t first_day, end_day;
    int min_quantity, max_discount;

    __device__ bool operator()(const SalesTable &t, row_t i) const
    {
        if (t.date[i] < first_day || t.date[i] >= end_day) return false;
        if (t.quantity[i] < min_quantity) return false;
        return t.discount[i] <= max_discount;
    }
};

template <typename Predicate>
__global__ void filter_rows(SalesTable t, Predicate pred, uint8_t *selected, row_t n)
{
    row_t i = (row_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        selected[i] = pred(t, i) ? 1 : 0;
}

__global__ void lookup_groups(SalesTable t, const uint8_t *product_category, int32_t *group, row_t n)
{
    row_t i = (row_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        group[i] = store_region[t.store[i]] * NCATEGORIES + product_category[t.product[i]];
}

__global__ void compute_revenue(SalesTable t, unsigned long long *revenue, row_t n)
{
    row_t i = (row_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        revenue[i] = (unsigned long long)t.price[i] * t.quantity[i] * (100 - t.discount[i]);
}

__global__ void aggregate(SalesTable t, const uint8_t *selected, const int32_t *group,
                          const unsigned long long *revenue, GroupRow *result, row_t n)
{
    row_t i = (row_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || !selected[i])
        return;
    GroupRow *g = &result[group[i]];
    atomicAdd(&g->count, 1ULL);
    atomicAdd(&g->revenue, revenue[i]);
    atomicMax(&g->max_price, (unsigned int)t.price[i]);
}

static uint64_t splitmix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

template <typename T>
static T *to_device(const std::vector<T> &host)
{
    T *d;
    CK(cudaMalloc(&d, host.size() * sizeof(T)));
    CK(cudaMemcpy(d, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return d;
}

int main()
{
    std::vector<int32_t> date(NROWS), product(NROWS), price(NROWS);
    std::vector<uint16_t> store(NROWS);
    std::vector<uint8_t> quantity(NROWS), discount(NROWS);
    for (row_t i = 0; i < NROWS; i++) {
        uint64_t h = splitmix((uint64_t)i);
        date[i] = 10000 + (int)((h & 0xfff) * 1500 >> 12);
        product[i] = (int)((h >> 12 & 0xffff) * NPRODUCTS >> 16);
        store[i] = (uint16_t)((h >> 28 & 0xfff) * NSTORES >> 12);
        quantity[i] = (uint8_t)(1 + ((h >> 40 & 0xff) * 20 >> 8));
        discount[i] = (uint8_t)((h >> 48 & 0xf) * 11 >> 4);
        price[i] = 100 + (int)(h >> 52) + 7 * (product[i] % 1000);
    }
    std::vector<uint8_t> region(NSTORES), category(NPRODUCTS);
    for (int s = 0; s < NSTORES; s++) region[s] = splitmix(1000000007ULL + s) % NREGIONS;
    for (int p = 0; p < NPRODUCTS; p++) category[p] = splitmix(2000000011ULL + p) % NCATEGORIES;

    SalesTable t;
    int32_t *d_date = to_device(date), *d_product = to_device(product), *d_price = to_device(price);
    uint16_t *d_store = to_device(store);
    uint8_t *d_quantity = to_device(quantity), *d_discount = to_device(discount);
    uint8_t *d_category = to_device(category);
    t.date = d_date; t.product = d_product; t.price = d_price;
    t.store = d_store; t.quantity = d_quantity; t.discount = d_discount;
    CK(cudaMemcpyToSymbol(store_region, region.data(), NSTORES));

    uint8_t *d_selected;
    int32_t *d_group;
    unsigned long long *d_revenue;
    GroupRow *d_result;
    CK(cudaMalloc(&d_selected, NROWS * sizeof(uint8_t)));
    CK(cudaMalloc(&d_group, NROWS * sizeof(int32_t)));
    CK(cudaMalloc(&d_revenue, NROWS * sizeof(unsigned long long)));
    CK(cudaMalloc(&d_result, NGROUPS * sizeof(GroupRow)));
    CK(cudaMemset(d_result, 0, NGROUPS * sizeof(GroupRow)));

    SalesPredicate pred;
    pred.first_day = 10200; pred.end_day = 11300;
    pred.min_quantity = 3; pred.max_discount = 7;

    const int block = 256;
    const int grid = (int)((NROWS + block - 1) / block);
    filter_rows<<<grid, block>>>(t, pred, d_selected, NROWS);
    CK(cudaGetLastError());
    lookup_groups<<<grid, block>>>(t, d_category, d_group, NROWS);
    CK(cudaGetLastError());
    compute_revenue<<<grid, block>>>(t, d_revenue, NROWS);
    CK(cudaGetLastError());
    aggregate<<<grid, block>>>(t, d_selected, d_group, d_revenue, d_result, NROWS);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());

    std::vector<GroupRow> result(NGROUPS);
    CK(cudaMemcpy(result.data(), d_result, NGROUPS * sizeof(GroupRow), cudaMemcpyDeviceToHost));

    double rows = 0, revenue = 0, max_sum = 0, best = 0, weighted = 0;
    double by_region[NREGIONS] = {0};
    for (int g = 0; g < NGROUPS; g++) {
        rows += (double)result[g].count;
        revenue += (double)result[g].revenue;
        max_sum += result[g].max_price;
        weighted += (double)(g + 1) * (double)result[g].revenue;
        if ((double)result[g].revenue > best) best = (double)result[g].revenue;
        by_region[g / NCATEGORIES] += (double)result[g].revenue;
    }
    printf("rows             %.9e\n", rows);
    printf("revenue          %.9e\n", revenue);
    printf("sum of max price %.9e\n", max_sum);
    printf("largest group    %.9e\n", best);
    printf("weighted revenue %.9e\n", weighted);
    for (int r = 0; r < NREGIONS; r++)
        printf("region revenue   %.9e\n", by_region[r]);
    for (int i = 0; i < 4; i++) {
        const GroupRow &g = result[(i * 41 + 5) % NGROUPS];
        printf("group            %.9e %.9e\n", (double)g.count, (double)g.revenue);
    }

    CK(cudaFree(d_date)); CK(cudaFree(d_product)); CK(cudaFree(d_price));
    CK(cudaFree(d_store)); CK(cudaFree(d_quantity)); CK(cudaFree(d_discount)); CK(cudaFree(d_category));
    CK(cudaFree(d_selected)); CK(cudaFree(d_group)); CK(cudaFree(d_revenue)); CK(cudaFree(d_result));
    return 0;
}
