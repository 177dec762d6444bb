/* access_log.cu -- statistics of a web server's access log
 *
 * Every line of the log looks like
 *
 *   1700000123 93.12.7.201 GET /items?id=4821 200 5123 87
 *
 * (time, client, method, path, status, bytes sent, latency in ms).  One pass
 * over the text gives requests, errors, bytes and latency for each known
 * route, requests for each minute, a latency histogram, and a bitmap from
 * which the number of distinct clients is estimated (linear counting).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cuda_runtime.h>

typedef unsigned int u32;
typedef unsigned long long u64;

#define LINES      800000
#define MAX_LINE   80              /* longest line, with its newline */
#define T0         1700000000u
#define MINUTES    240
#define N_ROUTES   8
#define BUCKETS    16
#define MAP_BITS   20

typedef struct {
    u64 bytes[N_ROUTES + 1];       /* last one: unknown route */
    u64 latency[N_ROUTES + 1];
    u32 hits[N_ROUTES + 1];
    u32 errors[N_ROUTES + 1];
    u32 minute[MINUTES];
    u32 hist[BUCKETS];             /* bucket b: latency of b significant bits */
    u32 clients[1 << (MAP_BITS - 5)];
} stats_t;

#define ROUTE_NAMES { "home", "login", "search", "cart", "items", "users", "static", "checkout" }

static void die_on(cudaError_t e, const char *where)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", where, cudaGetErrorString(e));
        exit(1);
    }
}

/* A block takes 256 consecutive lines: their text is one contiguous piece,
 * copied to shared memory in 16-byte units.  A thread then parses one line by
 * words: digits, separators and route names are found and converted four or
 * eight bytes at a time.  Counters are kept per block in shared memory
 * (32 bits are enough: at most 256 lines with numbers of 7 digits); minutes
 * are added up per warp, since consecutive lines mostly share one; a bit of
 * the client map is set only where it is not yet set.
 */
#define TILE     256
#define FULL     0xffffffffu
#define BUF_VEC  ((TILE * MAX_LINE + 64) / 16)

/* four bytes from any position */
__device__ __forceinline__ u32 load4(const u32 *w, u32 pos)
{
    return __funnelshift_r(w[pos >> 2], w[(pos >> 2) + 1], (pos & 3) * 8);
}

/* flags (0x80) where a byte equals c; exact up to the first such byte */
__device__ __forceinline__ u32 equal_bytes(u32 w, u32 c)
{
    u32 x = w ^ (c * 0x01010101u);
    return (x - 0x01010101u) & ~x & 0x80808080u;
}

__device__ __forceinline__ u32 first_byte(u32 flags)
{
    return (u32)(__ffs((int)flags) - 1) >> 3;
}

__device__ __forceinline__ u32 find_space(const u32 *w, u32 pos)
{
    for (;;) {
        u32 f = equal_bytes(load4(w, pos), ' ');
        if (f)
            return pos + first_byte(f);
        pos += 4;
    }
}

/* up to three digits, right aligned in the word (unused bytes have low nibble 0) */
__device__ __forceinline__ u32 digits3(u32 w)
{
    return __dp4a(w & 0x0f0f0f0fu, 0x010a6400u, 0u);
}

__device__ __forceinline__ u32 digits4(u32 w)
{
    w &= 0x0f0f0f0fu;
    return __dp4a(w, 0x0000010au, 0u) * 100u + __dp4a(w, 0x010a0000u, 0u);
}

/* a number of 1..3 digits; pos moves behind its separator.  Digits have bit
   0x10 set, the separators ' ', '.' and '\n' do not. */
__device__ __forceinline__ u32 number3(const u32 *w, u32 &pos)
{
    u32 v = load4(w, pos);
    u32 len = first_byte(~v & 0x10101010u);
    pos += len + 1;
    return digits3(v << (32 - 8 * len));
}

/* a number of 1..7 digits */
__device__ __forceinline__ u32 number7(const u32 *w, u32 &pos)
{
    u32 lo = load4(w, pos), hi = load4(w, pos + 4);
    u32 nlo = ~lo & 0x10101010u, nhi = ~hi & 0x10101010u;
    u32 len = nlo ? first_byte(nlo) : 4 + first_byte(nhi);
    pos += len + 1;
    u64 v = ((u64)hi << 32 | lo) << (64 - 8 * len);
    return digits4((u32)v) * 10000u + digits4((u32)(v >> 32));
}

__host__ __device__ constexpr u64 name_key(const char *s)
{
    u64 k = 0;
    for (int i = 0; s[i]; i++)
        k |= (u64)(unsigned char)s[i] << (8 * i);
    return k;
}

__device__ __forceinline__ int route_of(u64 key)
{
    constexpr u64 k0 = name_key("home"), k1 = name_key("login"), k2 = name_key("search"),
                  k3 = name_key("cart"), k4 = name_key("items"), k5 = name_key("users"),
                  k6 = name_key("static"), k7 = name_key("checkout");
    int r = N_ROUTES;
    r = key == k0 ? 0 : r;
    r = key == k1 ? 1 : r;
    r = key == k2 ? 2 : r;
    r = key == k3 ? 3 : r;
    r = key == k4 ? 4 : r;
    r = key == k5 ? 5 : r;
    r = key == k6 ? 6 : r;
    r = key == k7 ? 7 : r;
    return r;
}

__global__ void __launch_bounds__(TILE, 8)
scan_log(const uint4 *__restrict__ text, const u32 *__restrict__ line_start, int lines,
         stats_t *__restrict__ st)
{
    __shared__ uint4 buf[BUF_VEC];
    __shared__ u32 s_hits[N_ROUTES + 1], s_errors[N_ROUTES + 1];
    __shared__ u32 s_bytes[N_ROUTES + 1], s_latency[N_ROUTES + 1];
    __shared__ u32 s_hist[BUCKETS];

    const int tid = threadIdx.x;
    const int first = blockIdx.x * TILE;
    const int last = min(first + TILE, lines);
    const bool valid = first + tid < lines;

    if (tid <= N_ROUTES) {
        s_hits[tid] = 0;
        s_errors[tid] = 0;
        s_bytes[tid] = 0;
        s_latency[tid] = 0;
    }
    if (tid < BUCKETS)
        s_hist[tid] = 0;

    /* the text is padded: 16 bytes more than needed are always there */
    const u32 v0 = line_start[first] >> 4;
    const u32 nv = ((line_start[last] + 15) >> 4) + 1 - v0;
    u32 pos = valid ? line_start[first + tid] - (v0 << 4) : 0;
    for (u32 i = tid; i < nv; i += TILE)
        buf[i] = __ldcs(text + v0 + i);
    __syncthreads();

    const u32 *w = reinterpret_cast<const u32 *>(buf);
    u32 minute = 0xffffffffu;
    if (valid) {
        u32 time = digits4(load4(w, pos)) * 1000000u + digits4(load4(w, pos + 4)) * 100u;
        u32 tail = load4(w, pos + 8);
        time += (tail & 15) * 10u + ((tail >> 8) & 15);
        pos += 11;

        u32 ip = number3(w, pos);
        ip = ip << 8 | number3(w, pos);
        ip = ip << 8 | number3(w, pos);
        ip = ip << 8 | number3(w, pos);

        /* look at the client map early, the answer is needed at the end */
        u32 h = ip * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h >>= 32 - MAP_BITS;
        u32 *slot = &st->clients[h >> 5];
        const u32 bit = 1u << (h & 31);
        u32 seen;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                     : "=r"(seen) : "l"(__cvta_generic_to_global(slot)) : "memory");

        pos = find_space(w, pos) + 2;             /* behind "METHOD /" */

        u32 lo = load4(w, pos), hi = load4(w, pos + 4);
        u32 tlo = equal_bytes(lo, '?') | equal_bytes(lo, ' ');
        u32 thi = equal_bytes(hi, '?') | equal_bytes(hi, ' ');
        u32 len;
        if (tlo) {
            len = first_byte(tlo);
            lo &= (1u << (8 * len)) - 1;
            hi = 0;
        } else if (thi) {
            len = first_byte(thi);
            hi &= (1u << (8 * len)) - 1;
            len += 4;
        } else {
            len = 8;
            u32 c = load4(w, pos + 8) & 255;
            if (c != '?' && c != ' ')
                lo = 0;                           /* longer than any name */
        }
        const int route = route_of((u64)hi << 32 | lo);

        pos = find_space(w, pos + len) + 1;
        const u32 status = number3(w, pos);
        const u32 bytes = number7(w, pos);
        const u32 latency = number7(w, pos);

        atomicAdd(&s_hits[route], 1u);
        if (status >= 500)
            atomicAdd(&s_errors[route], 1u);
        atomicAdd(&s_bytes[route], bytes);
        atomicAdd(&s_latency[route], latency);
        atomicAdd(&s_hist[min(32 - __clz((int)latency), BUCKETS - 1)], 1u);
        if (!(seen & bit))
            atomicOr(slot, bit);

        minute = (time - T0) / 60;
        if (minute >= MINUTES)
            minute = 0xffffffffu;
    }

    __syncwarp();
    const u32 peers = __match_any_sync(FULL, minute);
    if (minute < MINUTES && (tid & 31) == __ffs((int)peers) - 1)
        atomicAdd(&st->minute[minute], (u32)__popc(peers));

    __syncthreads();
    if (tid <= N_ROUTES) {
        if (s_hits[tid]) {
            atomicAdd(&st->hits[tid], s_hits[tid]);
            atomicAdd(&st->bytes[tid], (u64)s_bytes[tid]);
            atomicAdd(&st->latency[tid], (u64)s_latency[tid]);
        }
        if (s_errors[tid])
            atomicAdd(&st->errors[tid], s_errors[tid]);
    } else if (tid >= 32 && tid < 32 + BUCKETS) {
        if (s_hist[tid - 32])
            atomicAdd(&st->hist[tid - 32], s_hist[tid - 32]);
    }
}

static void run_scan(const char *text, const u32 *line_start, int lines, stats_t *st)
{
    scan_log<<<(lines + TILE - 1) / TILE, TILE>>>(reinterpret_cast<const uint4 *>(text),
                                                  line_start, lines, st);
}

/* ---- synthetic log ---- */

static u32 rng_state = 2463534242u;

static u32 rnd(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 17;
    rng_state ^= rng_state << 5;
    return rng_state;
}

static char *put_uint(char *p, u32 v)
{
    char tmp[12];
    int n = 0;
    do {
        tmp[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n)
        *p++ = tmp[--n];
    return p;
}

static char *put_str(char *p, const char *s)
{
    while (*s)
        *p++ = *s++;
    return p;
}

static size_t make_log(char *text, u32 *line_start)
{
    static const char *methods[4] = { "GET ", "GET ", "POST ", "PUT " };
    static const char *paths[16] = {
        "home", "home", "home", "items", "items", "items", "items", "search",
        "search", "login", "cart", "users", "static", "static", "checkout", "favicon.ico"
    };
    static const u32 codes[16] = { 200, 200, 200, 200, 200, 200, 200, 200,
                                   200, 304, 304, 302, 404, 403, 500, 503 };
    char *p = text;
    for (int i = 0; i < LINES; i++) {
        char *begin = p;
        line_start[i] = (u32)(p - text);
        u32 a = rnd(), b = rnd(), c = rnd();

        p = put_uint(p, T0 + (u32)((u64)i * (MINUTES * 60) / LINES));
        *p++ = ' ';
        u32 client = (u32)(((u64)(a & 0xffff) * (a >> 16)) >> 16);   /* skewed */
        u32 ip = client * 2654435769u + 12345u;
        p = put_uint(p, 1 + (ip >> 24) % 223);
        *p++ = '.';
        p = put_uint(p, (ip >> 16) & 255);
        *p++ = '.';
        p = put_uint(p, (ip >> 8) & 255);
        *p++ = '.';
        p = put_uint(p, ip & 255);
        *p++ = ' ';
        p = put_str(p, methods[b & 3]);
        *p++ = '/';
        const char *path = paths[(b >> 2) & 15];
        p = put_str(p, path);
        if (((b >> 6) & 31) == 0)
            p = put_str(p, "2");                       /* an unknown route */
        if ((b >> 11) & 1) {
            p = put_str(p, "?id=");
            p = put_uint(p, (b >> 12) % 1000000);
        }
        *p++ = ' ';
        p = put_uint(p, codes[c & 15]);
        *p++ = ' ';
        p = put_uint(p, (c >> 4) & ((1u << (7 + ((c >> 24) & 7))) - 1));
        *p++ = ' ';
        p = put_uint(p, (a ^ c) % (3u << ((b >> 20) % 13)));
        *p++ = '\n';
        if (p - begin > MAX_LINE) {
            fprintf(stderr, "line too long\n");
            exit(1);
        }
    }
    line_start[LINES] = (u32)(p - text);
    return (size_t)(p - text);
}

int main(void)
{
    /* room behind the text, so that it can be read in larger units */
    char *text = (char *)malloc((size_t)LINES * MAX_LINE + 64);
    u32 *line_start = (u32 *)malloc((LINES + 1) * sizeof(u32));
    stats_t *st = (stats_t *)malloc(sizeof(stats_t));
    if (!text || !line_start || !st)
        return 1;
    size_t len = make_log(text, line_start);
    size_t padded = (len + 15) / 16 * 16 + 32;
    memset(text + len, 0, padded - len);

    char *d_text;
    u32 *d_start;
    stats_t *d_st;
    die_on(cudaMalloc((void **)&d_text, padded), "malloc");
    die_on(cudaMalloc((void **)&d_start, (LINES + 1) * sizeof(u32)), "malloc");
    die_on(cudaMalloc((void **)&d_st, sizeof(stats_t)), "malloc");
    die_on(cudaMemcpy(d_text, text, padded, cudaMemcpyHostToDevice), "copy");
    die_on(cudaMemcpy(d_start, line_start, (LINES + 1) * sizeof(u32), cudaMemcpyHostToDevice), "copy");
    die_on(cudaMemset(d_st, 0, sizeof(stats_t)), "memset");

    run_scan(d_text, d_start, LINES, d_st);
    die_on(cudaGetLastError(), "launch");
    die_on(cudaDeviceSynchronize(), "kernel");
    die_on(cudaMemcpy(st, d_st, sizeof(stats_t), cudaMemcpyDeviceToHost), "copy");

    static const char *names[N_ROUTES + 1] = { "home", "login", "search", "cart", "items",
                                               "users", "static", "checkout", "(other)" };
    printf("%d lines, %.1f MB\n", LINES, len / 1e6);
    for (int r = 0; r <= N_ROUTES; r++)
        printf("%-9s %7u requests %6u errors %12llu bytes %10llu ms\n", names[r], st->hits[r],
               st->errors[r], st->bytes[r], st->latency[r]);

    u64 sum = 0, busy = 0;
    u32 top = 0;
    for (int m = 0; m < MINUTES; m++) {
        sum += st->minute[m];
        busy += (u64)(m + 1) * st->minute[m];
        if (st->minute[m] > top)
            top = st->minute[m];
    }
    printf("minutes: %llu requests, weighted %llu, most %u\n", sum, busy, top);
    printf("latency histogram:");
    for (int b = 0; b < BUCKETS; b++)
        printf(" %u", st->hist[b]);
    printf("\n");

    u32 set = 0;
    u64 where = 0;
    for (u32 w = 0; w < 1u << (MAP_BITS - 5); w++) {
        u32 ones = 0;
        for (u32 v = st->clients[w]; v; v &= v - 1)
            ones++;
        set += ones;
        where += (u64)ones * (w % 1000 + 1);
    }
    double m = (double)(1u << MAP_BITS);
    printf("clients: %u bits, weighted %llu, about %.0f distinct\n", set, where,
           -m * log(1.0 - set / m));

    cudaFree(d_text);
    cudaFree(d_start);
    cudaFree(d_st);
    free(text);
    free(line_start);
    free(st);
    return 0;
}
