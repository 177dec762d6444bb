// SELECT region, category, COUNT(*), SUM(price * quantity * (100 - discount)), MAX(price)
// FROM sales JOIN stores USING (store) JOIN products USING (product)
// WHERE date >= D0 AND date < D1 AND quantity >= 3 AND discount <= 7
// GROUP BY region, category
// Column store, tuned for H200 (sm_90): one fused pass that reads every column exactly once.
//  * 4 rows per thread and step, all column loads vectorized, coalesced and issued up front (2 steps unrolled);
//  * both dimension tables (as partial group numbers) live in shared memory;
//  * groups are aggregated in several shared-memory copies per block with native 32-bit atomics; the 64-bit
//    revenue is a low word plus a rarely touched carry word;
//  * one merge of the copies into global memory per block.
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

constexpr int THREADS = 512;
constexpr int BLOCKS = 132 * 2;
constexpr int COPIES = 4;                       // 4 warps share one copy of the group table
constexpr int COPY_STRIDE = NGROUPS + 4;        // shifts the copies against each other by 5 banks

static_assert(NGROUPS <= 256, "partial group numbers are stored in bytes");

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

struct SalesPredicate {
    int32_t first_day, end_day;
    int min_quantity, max_discount;
};

struct Rows4 {                       // the same 4 rows of all columns
    int4 date, product, price;
    ushort4 store;
    uchar4 quantity, discount;
};

struct SharedTables {
    unsigned int count[COPIES][COPY_STRIDE];
    unsigned int low[COPIES][COPY_STRIDE];
    unsigned int high[COPIES][COPY_STRIDE];
    unsigned int max_price[COPIES][COPY_STRIDE];
    uint8_t store_part[NSTORES];     // region * NCATEGORIES
    uint8_t product_part[NPRODUCTS]; // category
};

__device__ __forceinline__ Rows4 load_rows(const SalesTable &t, row_t quad)
{
    Rows4 r;
    r.date = __ldcs(reinterpret_cast<const int4 *>(t.date) + quad);
    r.product = __ldcs(reinterpret_cast<const int4 *>(t.product) + quad);
    r.price = __ldcs(reinterpret_cast<const int4 *>(t.price) + quad);
    r.store = __ldcs(reinterpret_cast<const ushort4 *>(t.store) + quad);
    r.quantity = __ldcs(reinterpret_cast<const uchar4 *>(t.quantity) + quad);
    r.discount = __ldcs(reinterpret_cast<const uchar4 *>(t.discount) + quad);
    return r;
}

__device__ __forceinline__ void add_row(SharedTables &sh, int copy, const SalesPredicate &pred, int date, int product,
                                        int price, int store, int quantity, int discount)
{
    const bool selected = date >= pred.first_day && date < pred.end_day &&
                          quantity >= pred.min_quantity && discount <= pred.max_discount;
    if (!selected) return;
    const int g = sh.store_part[store] + sh.product_part[product];
    const unsigned int revenue = (unsigned int)price * (unsigned int)(quantity * (100 - discount));   // < 2^32
    atomicAdd(&sh.count[copy][g], 1u);
    const unsigned int old = atomicAdd(&sh.low[copy][g], revenue);
    if (old + revenue < old) atomicAdd(&sh.high[copy][g], 1u);
    // a stale read only costs a superfluous atomic
    if ((unsigned int)price > *(volatile unsigned int *)&sh.max_price[copy][g])
        atomicMax(&sh.max_price[copy][g], (unsigned int)price);
}

__device__ __forceinline__ void add_rows(SharedTables &sh, int copy, const SalesPredicate &pred, const Rows4 &r)
{
    add_row(sh, copy, pred, r.date.x, r.product.x, r.price.x, r.store.x, r.quantity.x, r.discount.x);
    add_row(sh, copy, pred, r.date.y, r.product.y, r.price.y, r.store.y, r.quantity.y, r.discount.y);
    add_row(sh, copy, pred, r.date.z, r.product.z, r.price.z, r.store.z, r.quantity.z, r.discount.z);
    add_row(sh, copy, pred, r.date.w, r.product.w, r.price.w, r.store.w, r.quantity.w, r.discount.w);
}

__global__ void __launch_bounds__(THREADS, 2)
query_kernel(SalesTable t, SalesPredicate pred, const uint8_t *__restrict__ store_region,
             const uint8_t *__restrict__ product_category, GroupRow *__restrict__ result, row_t n)
{
    __shared__ SharedTables sh;
    const int tid = threadIdx.x;
    for (int i = tid; i < COPIES * COPY_STRIDE; i += THREADS) {
        (&sh.count[0][0])[i] = 0;
        (&sh.low[0][0])[i] = 0;
        (&sh.high[0][0])[i] = 0;
        (&sh.max_price[0][0])[i] = 0;
    }
    for (int i = tid; i < NSTORES; i += THREADS) sh.store_part[i] = store_region[i] * NCATEGORIES;
    for (int i = tid; i < NPRODUCTS; i += THREADS) sh.product_part[i] = product_category[i];
    __syncthreads();

    const int copy = (tid >> 5) % COPIES;
    const row_t quads = n / 4;
    const row_t stride = (row_t)BLOCKS * THREADS;
    row_t q = (row_t)blockIdx.x * THREADS + tid;
    for (; q + stride < quads; q += 2 * stride) {
        const Rows4 a = load_rows(t, q);
        const Rows4 b = load_rows(t, q + stride);
        add_rows(sh, copy, pred, a);
        add_rows(sh, copy, pred, b);
    }
    if (q < quads) add_rows(sh, copy, pred, load_rows(t, q));
    if (blockIdx.x == 0 && tid < (int)(n % 4)) {                       // the last n mod 4 rows
        const row_t i = quads * 4 + tid;
        add_row(sh, copy, pred, t.date[i], t.product[i], t.price[i], t.store[i], t.quantity[i], t.discount[i]);
    }
    __syncthreads();

    for (int g = tid; g < NGROUPS; g += THREADS) {
        unsigned int count = 0, top = 0;
        unsigned long long revenue = 0;
#pragma unroll
        for (int c = 0; c < COPIES; c++) {
            count += sh.count[c][g];
            revenue += ((unsigned long long)sh.high[c][g] << 32) + sh.low[c][g];
            top = max(top, sh.max_price[c][g]);
        }
        if (count != 0) {
            atomicAdd(&result[g].count, (unsigned long long)count);
            atomicAdd(&result[g].revenue, revenue);
            atomicMax(&result[g].max_price, top);
        }
    }
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
    uint8_t *d_category = to_device(category), *d_region = to_device(region);
    t.date = d_date; t.product = d_product; t.price = d_price;
    t.store = d_store; t.quantity = d_quantity; t.discount = d_discount;

    GroupRow *d_result;
    CK(cudaMalloc(&d_result, NGROUPS * sizeof(GroupRow)));
    CK(cudaMemset(d_result, 0, NGROUPS * sizeof(GroupRow)));

    SalesPredicate pred;
    pred.first_day = 10200; pred.end_day = 11300;
    pred.min_quantity = 3; pred.max_discount = 7;

    query_kernel<<<BLOCKS, THREADS>>>(t, pred, d_region, d_category, d_result, NROWS);
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
    CK(cudaFree(d_store)); CK(cudaFree(d_quantity)); CK(cudaFree(d_discount));
    CK(cudaFree(d_category)); CK(cudaFree(d_region)); CK(cudaFree(d_result));
    return 0;
}
