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

__constant__ char route_names[N_ROUTES][12] = ROUTE_NAMES;

__device__ const char *parse_uint(const char *p, u32 *value)
{
    u32 v = 0;
    while (*p >= '0' && *p <= '9') {
        v = v * 10 + (*p - '0');
        p++;
    }
    *value = v;
    return p;
}

__device__ const char *skip_past(const char *p, char c)
{
    while (*p != c)
        p++;
    return p + 1;
}

/* p points behind the slash; a route ends at '?' or ' ' */
__device__ int find_route(const char *p)
{
    for (int r = 0; r < N_ROUTES; r++) {
        int i = 0;
        while (route_names[r][i] != 0 && p[i] == route_names[r][i])
            i++;
        if (route_names[r][i] == 0 && (p[i] == '?' || p[i] == ' '))
            return r;
    }
    return N_ROUTES;
}

__global__ void scan_log(const char *text, const u32 *line_start, int lines, stats_t *st)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lines)
        return;

    const char *p = text + line_start[i];
    u32 time, octet, ip = 0, status, bytes, latency;

    p = parse_uint(p, &time) + 1;
    for (int k = 0; k < 4; k++) {
        p = parse_uint(p, &octet) + 1;
        ip = ip << 8 | octet;
    }
    p = skip_past(p, ' ');                  /* method */
    int route = find_route(p + 1);
    p = skip_past(p, ' ');
    p = parse_uint(p, &status) + 1;
    p = parse_uint(p, &bytes) + 1;
    parse_uint(p, &latency);

    atomicAdd(&st->hits[route], 1u);
    if (status >= 500)
        atomicAdd(&st->errors[route], 1u);
    atomicAdd(&st->bytes[route], (u64)bytes);
    atomicAdd(&st->latency[route], (u64)latency);

    u32 minute = (time - T0) / 60;
    if (minute < MINUTES)
        atomicAdd(&st->minute[minute], 1u);

    int bucket = 32 - __clz(latency);
    if (bucket >= BUCKETS)
        bucket = BUCKETS - 1;
    atomicAdd(&st->hist[bucket], 1u);

    u32 h = ip * 2654435761u;
    h ^= h >> 15;
    h *= 2246822519u;
    h >>= 32 - MAP_BITS;
    atomicOr(&st->clients[h >> 5], 1u << (h & 31));
}

static void run_scan(const char *text, const u32 *line_start, int lines, stats_t *st)
{
    scan_log<<<(lines + 255) / 256, 256>>>(text, line_start, lines, st);
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
