/*
 * Full-revaluation VaR of a bond portfolio.
 *
 * Every bond is priced on every scenario zero curve (linear interpolation of
 * the zero rates, continuous compounding, issuer spread on top), the prices
 * are summed per trading book, and the host turns the book values into
 * profit-and-loss figures, VaR and expected shortfall.
 * Scenario 0 is today's curve.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <algorithm>
#include <vector>

#define NUM_SCENARIOS  3072
#define NUM_BOOKS      8
#define BONDS_PER_BOOK 256
#define NUM_BONDS      (NUM_BOOKS * BONDS_PER_BOOK)
#define NUM_PILLARS    16

#define CUDA_CHECK(x)                                                       \
    do {                                                                    \
        cudaError_t e_ = (x);                                               \
        if (e_ != cudaSuccess) {                                            \
            fprintf(stderr, "CUDA error %s, line %d\n",                     \
                    cudaGetErrorString(e_), __LINE__);                      \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

struct Bond {
    float notional;
    float coupon;       /* yearly rate */
    float spread;       /* over the zero curve */
    float first;        /* years until the first coupon */
    int   freq;         /* coupons per year: 1, 2 or 4 */
    int   num_coupons;  /* at most 120 */
};

__device__ float zero_rate(const float *curve, const float *pillars, float t)
{
    if (t <= pillars[0])
        return curve[0];
    if (t >= pillars[NUM_PILLARS - 1])
        return curve[NUM_PILLARS - 1];

    int i = 0;
    while (t > pillars[i + 1])
        i++;
    float w = (t - pillars[i]) / (pillars[i + 1] - pillars[i]);
    return curve[i] + w * (curve[i + 1] - curve[i]);
}

__global__ void price_bonds(const Bond *bonds, const float *curves,
                            const float *pillars, float *pv)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    int s = blockIdx.y * blockDim.y + threadIdx.y;
    if (b >= NUM_BONDS || s >= NUM_SCENARIOS)
        return;

    Bond bond = bonds[b];
    const float *curve = curves + s * NUM_PILLARS;
    float sum = 0.0f;
    for (int j = 0; j < bond.num_coupons; j++) {
        float t = bond.first + (float)j / (float)bond.freq;
        float amount = bond.notional * bond.coupon / (float)bond.freq;
        if (j == bond.num_coupons - 1)
            amount += bond.notional;
        float r = zero_rate(curve, pillars, t) + bond.spread;
        sum += amount * expf(-r * t);
    }
    pv[s * NUM_BONDS + b] = sum;
}

__global__ void sum_books(const float *pv, float *book_value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= NUM_SCENARIOS * NUM_BOOKS)
        return;
    int s = i / NUM_BOOKS;
    int k = i % NUM_BOOKS;

    float sum = 0.0f;
    for (int b = 0; b < BONDS_PER_BOOK; b++)
        sum += pv[s * NUM_BONDS + k * BONDS_PER_BOOK + b];
    book_value[i] = sum;
}

static void value_books(const Bond *d_bonds, const float *d_curves,
                        const float *d_pillars, float *d_book_value)
{
    float *d_pv;
    CUDA_CHECK(cudaMalloc(&d_pv, sizeof(float) * NUM_SCENARIOS * NUM_BONDS));

    dim3 block(16, 16);
    dim3 grid((NUM_BONDS + 15) / 16, (NUM_SCENARIOS + 15) / 16);
    price_bonds<<<grid, block>>>(d_bonds, d_curves, d_pillars, d_pv);

    int n = NUM_SCENARIOS * NUM_BOOKS;
    sum_books<<<(n + 127) / 128, 128>>>(d_pv, d_book_value);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaFree(d_pv));
}

/* ---------------------------------------------------------------- host -- */

static unsigned int rng_state = 12345u;

static unsigned int next_u32(void)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return rng_state >> 8;
}

static float uniform(void)
{
    return (float)(next_u32() & 0xffff) / 65536.0f;
}

static float normal(void)
{
    float s = 0.0f;
    for (int i = 0; i < 12; i++)
        s += uniform();
    return s - 6.0f;
}

int main(void)
{
    const float pillars[NUM_PILLARS] = {0.25f, 0.5f, 0.75f, 1, 1.5f, 2, 3, 4,
                                        5, 7, 10, 12, 15, 20, 25, 30};
    std::vector<Bond> bonds(NUM_BONDS);
    for (int b = 0; b < NUM_BONDS; b++) {
        Bond &x = bonds[b];
        x.freq = 1 << (next_u32() % 3);
        x.num_coupons = 1 + (int)(next_u32() % (unsigned)(30 * x.freq));
        x.first = (float)(1 + next_u32() % 89) / (90.0f * (float)x.freq);
        x.notional = 1.0f + (float)(next_u32() % 90) * 0.1f;
        x.coupon = 0.01f + 0.05f * uniform();
        x.spread = 0.002f + 0.02f * uniform();
    }

    std::vector<float> curves(NUM_SCENARIOS * NUM_PILLARS);
    for (int s = 0; s < NUM_SCENARIOS; s++) {
        float level = s ? 0.0060f * normal() : 0.0f;
        float slope = s ? 0.0040f * normal() : 0.0f;
        for (int p = 0; p < NUM_PILLARS; p++) {
            float x = pillars[p] / 30.0f;
            float base = 0.020f + 0.018f * sqrtf(x);
            float noise = s ? 0.0005f * normal() : 0.0f;
            curves[s * NUM_PILLARS + p] = base + level + slope * (x - 0.3f) + noise;
        }
    }

    Bond *d_bonds;
    float *d_curves, *d_pillars, *d_book_value;
    CUDA_CHECK(cudaMalloc(&d_bonds, sizeof(Bond) * NUM_BONDS));
    CUDA_CHECK(cudaMalloc(&d_curves, sizeof(float) * NUM_SCENARIOS * NUM_PILLARS));
    CUDA_CHECK(cudaMalloc(&d_pillars, sizeof(float) * NUM_PILLARS));
    CUDA_CHECK(cudaMalloc(&d_book_value, sizeof(float) * NUM_SCENARIOS * NUM_BOOKS));
    CUDA_CHECK(cudaMemcpy(d_bonds, bonds.data(), sizeof(Bond) * NUM_BONDS, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_curves, curves.data(), sizeof(float) * NUM_SCENARIOS * NUM_PILLARS,
                          cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_pillars, pillars, sizeof(pillars), cudaMemcpyHostToDevice));

    value_books(d_bonds, d_curves, d_pillars, d_book_value);

    std::vector<float> value(NUM_SCENARIOS * NUM_BOOKS);
    CUDA_CHECK(cudaMemcpy(value.data(), d_book_value, sizeof(float) * value.size(), cudaMemcpyDeviceToHost));

    double checksum = 0.0;
    std::vector<double> pnl(NUM_SCENARIOS, 0.0), rms(NUM_BOOKS, 0.0);
    for (int s = 0; s < NUM_SCENARIOS; s++) {
        for (int k = 0; k < NUM_BOOKS; k++) {
            double v = value[s * NUM_BOOKS + k];
            double d = v - value[k];
            pnl[s] += d;
            rms[k] += d * d;
            checksum += v * (1.0 + 0.1 * ((s * NUM_BOOKS + k) % 13));
        }
    }
    double base = 0.0;
    for (int k = 0; k < NUM_BOOKS; k++)
        base += value[k];
    std::sort(pnl.begin(), pnl.end());
    int tail = NUM_SCENARIOS / 40;
    double es = 0.0;
    for (int i = 0; i < tail; i++)
        es -= pnl[i];

    printf("portfolio value today  %.5g\n", base);
    printf("VaR 99%%                %.4g\n", -pnl[NUM_SCENARIOS / 100]);
    printf("ES 97.5%%               %.4g\n", es / tail);
    printf("best scenario          %.4g\n", pnl[NUM_SCENARIOS - 1]);
    for (int k = 0; k < NUM_BOOKS; k++)
        printf("book %d rms P&L         %.4g\n", k, sqrt(rms[k] / NUM_SCENARIOS));
    printf("checksum               %.5g\n", checksum);

    CUDA_CHECK(cudaFree(d_bonds));
    CUDA_CHECK(cudaFree(d_curves));
    CUDA_CHECK(cudaFree(d_pillars));
    CUDA_CHECK(cudaFree(d_book_value));
    return 0;
}
