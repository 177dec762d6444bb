// Finds bright dust specks on a scanned film frame:
//   RGB -> luminance -> 5x5 median against grain -> white top-hat with a
//   15x15 square (erosion followed by dilation, then difference) -> histogram of
//   the top-hat response, from which the speck statistics are read.
//
// Hand-tuned version: two pixels per register (16-bit SIMD min/max), shared column
// sorts for the median, separable log-step windows, privatised histogram.
// Estimated kernel time on an H200: about 0.09 ms in total.
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                          \
    do {                                                                          \
        cudaError_t err_ = (call);                                                \
        if (err_ != cudaSuccess) {                                                \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,               \
                         cudaGetErrorString(err_));                               \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

typedef unsigned char uchar;

constexpr int kWidth = 4060;
constexpr int kHeight = 2900;
constexpr int kRadius = 7;        // structuring element is 15 x 15
constexpr int kSpeckLevel = 40;   // top-hat response that counts as dust

constexpr int kHalf = kHeight / 2;                   // rows y and y + kHalf share a register
constexpr int kPitch = (kWidth + 15) / 16 * 16;      // row pitch of all 8-bit planes
static_assert(kHeight % 2 == 0 && kWidth % 4 == 0, "packing works on row pairs and pixel quads");
static_assert(kRadius == 7, "window code is written for 15 samples");

// Two pixels per 32-bit word (16 bits each): low half row y, high half row y + kHalf.
__device__ __forceinline__ unsigned vmin(unsigned a, unsigned b) { return __vminu2(a, b); }
__device__ __forceinline__ unsigned vmax(unsigned a, unsigned b) { return __vmaxu2(a, b); }

__device__ __forceinline__ void order(unsigned& a, unsigned& b)
{
    const unsigned lo = vmin(a, b);
    b = vmax(a, b);
    a = lo;
}

// four words from the pixel quads of the two rows, and back
__device__ __forceinline__ void unpack(unsigned lo, unsigned hi, unsigned* w)
{
    const unsigned p = __byte_perm(lo, hi, 0x5410);
    const unsigned q = __byte_perm(lo, hi, 0x7632);
    w[0] = p & 0x00ff00ffu;
    w[1] = (p >> 8) & 0x00ff00ffu;
    w[2] = q & 0x00ff00ffu;
    w[3] = (q >> 8) & 0x00ff00ffu;
}
__device__ __forceinline__ void pack(const unsigned* w, unsigned& lo, unsigned& hi)
{
    const unsigned p = __byte_perm(w[0], w[1], 0x6240);
    const unsigned q = __byte_perm(w[2], w[3], 0x6240);
    lo = __byte_perm(p, q, 0x5410);
    hi = __byte_perm(p, q, 0x7632);
}

// ---------------------------------------------------------------- luminance + median
__device__ __forceinline__ void sort5(unsigned (&c)[5])
{
    order(c[0], c[1]); order(c[3], c[4]); order(c[2], c[4]);
    order(c[2], c[3]); order(c[1], c[4]); order(c[0], c[3]);
    order(c[0], c[2]); order(c[1], c[3]); order(c[1], c[2]);
}

// odd-even merge of two sorted groups of five
__device__ __forceinline__ void merge5(const unsigned (&a)[5], const unsigned (&b)[5], unsigned (&m)[10])
{
    // odd-numbered elements a0 a2 a4 / b0 b2 b4
    unsigned p0 = a[0], p1 = b[0], p2 = a[4], p3 = b[4];
    order(p0, p1);
    order(p2, p3);
    order(p1, p2);
    unsigned q0 = a[2], q1 = b[2];
    order(q0, q1);
    order(p1, q0);
    order(p2, q1);               // sorted: p0 p1 q0 p2 q1 p3
    // even-numbered elements a1 a3 / b1 b3
    unsigned e0 = a[1], e1 = b[1], e2 = a[3], e3 = b[3];
    order(e0, e1);
    order(e2, e3);
    order(e1, e2);               // sorted: e0 e1 e2 e3
    m[0] = p0;
    m[1] = p1; m[2] = e0; order(m[1], m[2]);
    m[3] = q0; m[4] = e1; order(m[3], m[4]);
    m[5] = p2; m[6] = e2; order(m[5], m[6]);
    m[7] = q1; m[8] = e3; order(m[7], m[8]);
    m[9] = p3;
}

// ranks 8..13 (of 20), sorted, of two sorted groups of ten
__device__ __forceinline__ void middle6(const unsigned (&a)[10], const unsigned (&b)[10], unsigned (&s)[6])
{
    unsigned low[5], high[5];
#pragma unroll
    for (int i = 0; i < 5; ++i) {
        low[i] = vmax(vmin(a[i], b[9 - i]), vmin(a[i + 5], b[4 - i]));    // 5 largest of the lower ten
        high[i] = vmin(vmax(a[i], b[9 - i]), vmax(a[i + 5], b[4 - i]));   // 5 smallest of the upper ten
    }
    sort5(low);
    sort5(high);
    s[0] = low[2]; s[1] = low[3]; s[2] = low[4];
    s[3] = high[0]; s[4] = high[1]; s[5] = high[2];
}

// median of the 25 = sixth smallest of the 6 shared candidates and the window's own column
__device__ __forceinline__ unsigned finish(const unsigned (&s)[6], const unsigned (&c)[5])
{
    unsigned m = s[5];
#pragma unroll
    for (int i = 0; i < 5; ++i) m = vmin(m, vmax(s[i], c[4 - i]));
    return m;
}

__device__ __forceinline__ void luma4(const uchar* __restrict__ rgb, int x, int y, unsigned* v)
{
    if (x >= 0 && x < kWidth) {
        const unsigned* p = reinterpret_cast<const unsigned*>(rgb + 3 * ((size_t)y * kWidth + x));
        const unsigned a = __ldg(p), b = __ldg(p + 1), c = __ldg(p + 2);
        v[0] = __dp4a(a, 0x001d964du, 128u) >> 8;
        v[1] = __dp4a(a, 0x4d000000u, __dp4a(b, 0x00001d96u, 128u)) >> 8;
        v[2] = __dp4a(b, 0x964d0000u, __dp4a(c, 0x0000001du, 128u)) >> 8;
        v[3] = __dp4a(c, 0x1d964d00u, 128u) >> 8;
    } else {
        const uchar* p = rgb + 3 * ((size_t)y * kWidth + (x < 0 ? 0 : kWidth - 1));
        v[0] = v[1] = v[2] = v[3] = (77u * p[0] + 150u * p[1] + 29u * p[2] + 128u) >> 8;
    }
}

constexpr int kMedX = 32, kMedY = 16;                // threads; 4 columns x 2 rows each
constexpr int kTileW = 4 * kMedX;
constexpr int kTileStride = kTileW + 8;              // pixel x sits at x - x0 + 2

__global__ void __launch_bounds__(kMedX * kMedY)
luma_median(const uchar* __restrict__ rgb, uchar* __restrict__ smooth)
{
    __shared__ __align__(16) unsigned tile[kMedY + 4][kTileStride];
    const int x0 = blockIdx.x * kTileW;
    const int y0 = blockIdx.y * kMedY;
    const int tid = threadIdx.y * kMedX + threadIdx.x;

    constexpr int kQuads = kMedX + 2;
    for (int i = tid; i < (kMedY + 4) * kQuads; i += kMedX * kMedY) {
        const int r = i / kQuads, q = i % kQuads;
        const int x = x0 - 4 + 4 * q;
        const int y = y0 - 2 + r;
        unsigned lo[4], hi[4];
        luma4(rgb, x, min(max(y, 0), kHeight - 1), lo);
        luma4(rgb, x, min(max(y + kHalf, 0), kHeight - 1), hi);
        unsigned* dst = &tile[r][4 * q];
        if (q > 0)
            *reinterpret_cast<uint2*>(dst - 2) = make_uint2(lo[0] | hi[0] << 16, lo[1] | hi[1] << 16);
        *reinterpret_cast<uint2*>(dst) = make_uint2(lo[2] | hi[2] << 16, lo[3] | hi[3] << 16);
    }
    __syncthreads();

    const int x = x0 + 4 * threadIdx.x;
    const int y = y0 + threadIdx.y;
    if (x >= kWidth || y >= kHalf) return;

    unsigned c[8][5];
#pragma unroll
    for (int r = 0; r < 5; ++r) {
        const uint4* src = reinterpret_cast<const uint4*>(&tile[threadIdx.y + r][4 * threadIdx.x]);
        const uint4 u = src[0], v = src[1];
        c[0][r] = u.x; c[1][r] = u.y; c[2][r] = u.z; c[3][r] = u.w;
        c[4][r] = v.x; c[5][r] = v.y; c[6][r] = v.z; c[7][r] = v.w;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) sort5(c[k]);

    unsigned m12[10], m34[10], m56[10], mid[6], o[4];
    merge5(c[1], c[2], m12);
    merge5(c[3], c[4], m34);
    middle6(m12, m34, mid);
    o[0] = finish(mid, c[0]);
    o[1] = finish(mid, c[5]);
    merge5(c[5], c[6], m56);
    middle6(m34, m56, mid);
    o[2] = finish(mid, c[2]);
    o[3] = finish(mid, c[7]);

    unsigned lo, hi;
    pack(o, lo, hi);
    *reinterpret_cast<unsigned*>(smooth + (size_t)y * kPitch + x) = lo;
    *reinterpret_cast<unsigned*>(smooth + (size_t)(y + kHalf) * kPitch + x) = hi;
}

// ---------------------------------------------------------------- morphology
// running extremum over 15 samples, in place: v[i] = op(v[i..i+14]) for i < kOut
template <bool kErode, int kOut>
__device__ __forceinline__ void window15(unsigned* v)
{
#pragma unroll
    for (int i = 0; i < kOut + 13; ++i) v[i] = kErode ? vmin(v[i], v[i + 1]) : vmax(v[i], v[i + 1]);
#pragma unroll
    for (int i = 0; i < kOut + 11; ++i) v[i] = kErode ? vmin(v[i], v[i + 2]) : vmax(v[i], v[i + 2]);
#pragma unroll
    for (int i = 0; i < kOut + 7; ++i) v[i] = kErode ? vmin(v[i], v[i + 4]) : vmax(v[i], v[i + 4]);
#pragma unroll
    for (int i = 0; i < kOut; ++i) v[i] = kErode ? vmin(v[i], v[i + 7]) : vmax(v[i], v[i + 7]);
}

constexpr int kRun = 16;                             // pixels per thread in the row passes
constexpr int kRunsPerRow = kPitch / kRun;
constexpr int kRowItems = kRunsPerRow * kHalf;

// quads of one row around x: columns x-8 .. x+23, identity outside the image
template <bool kErode>
__device__ __forceinline__ void load_quads(const uchar* __restrict__ row, int x, unsigned (&q)[8])
{
    constexpr unsigned kId = kErode ? 0xffffffffu : 0u;
    uint2 left = make_uint2(kId, kId), right = make_uint2(kId, kId);
    if (x > 0) left = *reinterpret_cast<const uint2*>(row + x - 8);
    uint4 mid = *reinterpret_cast<const uint4*>(row + x);
    if (x + 16 < kPitch) right = *reinterpret_cast<const uint2*>(row + x + 16);
    q[0] = left.x; q[1] = left.y;
    q[2] = mid.x; q[3] = mid.y; q[4] = mid.z; q[5] = mid.w;
    q[6] = right.x; q[7] = right.y;
    if (x + 24 > kWidth) {                           // mask the columns beyond the image
#pragma unroll
        for (int k = 2; k < 8; ++k)
            if (x - 8 + 4 * k >= kWidth) q[k] = kId;
    }
}

// 15-wide extremum along rows y and y + kHalf, 16 outputs each, left in v[1..16]
template <bool kErode>
__device__ __forceinline__ void row_window(const uchar* __restrict__ in, int x, int y, unsigned (&v)[32])
{
    unsigned lo[8], hi[8];
    load_quads<kErode>(in + (size_t)y * kPitch, x, lo);
    load_quads<kErode>(in + (size_t)(y + kHalf) * kPitch, x, hi);
#pragma unroll
    for (int k = 0; k < 8; ++k) unpack(lo[k], hi[k], v + 4 * k);     // v[0] is column x-8
    window15<kErode, kRun>(v + 1);
}

__global__ void __launch_bounds__(256) erode_rows(const uchar* __restrict__ in, uchar* __restrict__ out)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= kRowItems) return;
    const int y = i / kRunsPerRow;
    const int x = (i - y * kRunsPerRow) * kRun;
    unsigned v[32];
    row_window<true>(in, x, y, v);
    uint4 lo, hi;
    pack(v + 1, lo.x, hi.x);
    pack(v + 5, lo.y, hi.y);
    pack(v + 9, lo.z, hi.z);
    pack(v + 13, lo.w, hi.w);
    *reinterpret_cast<uint4*>(out + (size_t)y * kPitch + x) = lo;
    *reinterpret_cast<uint4*>(out + (size_t)(y + kHalf) * kPitch + x) = hi;
}

constexpr int kColRun = 32;

// vertical erosion and vertical dilation of one column segment in registers
__global__ void __launch_bounds__(128) open_columns(const uchar* __restrict__ in, uchar* __restrict__ out)
{
    const int x = blockIdx.x * 128 + threadIdx.x;
    const int y0 = blockIdx.y * kColRun;
    if (x >= kWidth) return;

    unsigned v[kColRun + 28];
#pragma unroll
    for (int i = 0; i < kColRun + 28; ++i) {
        const int y = y0 - 14 + i;
        unsigned lo = 255u, hi = 255u;
        if (y >= 0) lo = in[(size_t)y * kPitch + x];
        if (y < kHalf) hi = in[(size_t)(y + kHalf) * kPitch + x];
        v[i] = lo | hi << 16;
    }
    window15<true, kColRun + 14>(v);                 // v[i] is the erosion at row y0 - 7 + i
    if (y0 < 7 || y0 + kColRun + 7 > kHalf) {        // rows outside the image do not take part
#pragma unroll
        for (int i = 0; i < kColRun + 14; ++i) {
            const int y = y0 - 7 + i;
            if (y < 0) v[i] &= 0xffff0000u;
            if (y >= kHalf) v[i] &= 0x0000ffffu;
        }
    }
    window15<false, kColRun>(v);
#pragma unroll
    for (int i = 0; i < kColRun; ++i) {
        const int y = y0 + i;
        if (y < kHalf) {
            out[(size_t)y * kPitch + x] = (uchar)(v[i] & 0xffu);
            out[(size_t)(y + kHalf) * kPitch + x] = (uchar)(v[i] >> 16);
        }
    }
}

// horizontal dilation, difference, and histogram of the non-zero responses
constexpr int kCopies = 8;

__global__ void __launch_bounds__(256)
dilate_rows_top_hat(const uchar* __restrict__ smooth, const uchar* __restrict__ in,
                    uchar* __restrict__ response, unsigned* __restrict__ histogram)
{
    __shared__ unsigned bins[256 * kCopies];         // copies interleaved: different banks
    for (int i = threadIdx.x; i < 256 * kCopies; i += 256) bins[i] = 0;
    __syncthreads();
    unsigned* mine = bins + (threadIdx.x & (kCopies - 1));

    for (int i = blockIdx.x * 256 + threadIdx.x; i < kRowItems; i += gridDim.x * 256) {
        const int y = i / kRunsPerRow;
        const int x = (i - y * kRunsPerRow) * kRun;
        const size_t at_lo = (size_t)y * kPitch + x;
        const size_t at_hi = (size_t)(y + kHalf) * kPitch + x;
        unsigned v[32];
        row_window<false>(in, x, y, v);
        const uint4 s_lo = *reinterpret_cast<const uint4*>(smooth + at_lo);
        const uint4 s_hi = *reinterpret_cast<const uint4*>(smooth + at_hi);
        const unsigned sl[4] = {s_lo.x, s_lo.y, s_lo.z, s_lo.w};
        const unsigned sh[4] = {s_hi.x, s_hi.y, s_hi.z, s_hi.w};
        unsigned rl[4], rh[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned d[4];
            unpack(sl[k], sh[k], d);
#pragma unroll
            for (int j = 0; j < 4; ++j) d[j] -= v[1 + 4 * k + j];    // opening <= smooth, no borrow
            pack(d, rl[k], rh[k]);
            if (x + 4 * k < kWidth) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const unsigned a = d[j] & 0xffffu, b = d[j] >> 16;
                    if (a) atomicAdd(mine + a * kCopies, 1u);
                    if (b) atomicAdd(mine + b * kCopies, 1u);
                }
            }
        }
        *reinterpret_cast<uint4*>(response + at_lo) = make_uint4(rl[0], rl[1], rl[2], rl[3]);
        *reinterpret_cast<uint4*>(response + at_hi) = make_uint4(rh[0], rh[1], rh[2], rh[3]);
    }
    __syncthreads();
    unsigned total = 0;
#pragma unroll
    for (int c = 0; c < kCopies; ++c) total += bins[threadIdx.x * kCopies + c];
    if (total) atomicAdd(&histogram[threadIdx.x], total);
}

struct Speck {
    int x, y, radius;
};

// slowly varying picture, film grain, and bright round specks
static std::vector<uchar> make_frame(std::vector<Speck>& specks)
{
    std::vector<uchar> rgb((size_t)3 * kWidth * kHeight);
    std::vector<float> across(kWidth), down(kHeight);
    for (int x = 0; x < kWidth; ++x) across[x] = 35.0f * std::sin(0.004f * x) + 10.0f * std::sin(0.05f * x);
    for (int y = 0; y < kHeight; ++y) down[y] = 30.0f * std::cos(0.003f * y + 1.0f);

    uint32_t state = 2024u;
    auto next = [&state]() {
        state = state * 1664525u + 1013904223u;
        return state >> 8;
    };
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) {
            uint32_t n = next();
            int base = (int)(100.0f + across[x] + down[y]);
            uchar* p = &rgb[3 * ((size_t)y * kWidth + x)];
            p[0] = (uchar)std::min(255, std::max(0, base + (int)(n & 31) - 16));
            p[1] = (uchar)std::min(255, std::max(0, base + (int)(n >> 5 & 31) - 16));
            p[2] = (uchar)std::min(255, std::max(0, base + (int)(n >> 10 & 31) - 10));
        }
    for (int s = 0; s < 9000; ++s) {
        Speck k{(int)(next() % kWidth), (int)(next() % kHeight), 2 + (int)(next() % 6)};
        int lift = 40 + (int)(next() % 60);
        for (int y = std::max(0, k.y - k.radius); y <= std::min(kHeight - 1, k.y + k.radius); ++y)
            for (int x = std::max(0, k.x - k.radius); x <= std::min(kWidth - 1, k.x + k.radius); ++x) {
                int dx = x - k.x, dy = y - k.y;
                if (dx * dx + dy * dy > k.radius * k.radius) continue;
                uchar* p = &rgb[3 * ((size_t)y * kWidth + x)];
                for (int c = 0; c < 3; ++c) p[c] = (uchar)std::min(255, p[c] + lift);
            }
        specks.push_back(k);
    }
    return rgb;
}

int main()
{
    std::vector<Speck> specks;
    std::vector<uchar> frame = make_frame(specks);
    const size_t pixels = (size_t)kWidth * kHeight;

    const size_t pitch = kPitch;
    const size_t plane = pitch * kHeight;

    uchar *d_rgb, *d_smooth, *d_eroded, *d_opened, *d_response;
    unsigned* d_histogram;
    CUDA_CHECK(cudaMalloc(&d_rgb, 3 * pixels));
    CUDA_CHECK(cudaMalloc(&d_smooth, plane));
    CUDA_CHECK(cudaMalloc(&d_eroded, plane));
    CUDA_CHECK(cudaMalloc(&d_opened, plane));
    CUDA_CHECK(cudaMalloc(&d_response, plane));
    CUDA_CHECK(cudaMalloc(&d_histogram, 256 * sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpy(d_rgb, frame.data(), 3 * pixels, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_histogram, 0, 256 * sizeof(unsigned)));

    int device = 0, sms = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));

    luma_median<<<dim3((kWidth + kTileW - 1) / kTileW, (kHalf + kMedY - 1) / kMedY),
                  dim3(kMedX, kMedY)>>>(d_rgb, d_smooth);
    erode_rows<<<(kRowItems + 255) / 256, 256>>>(d_smooth, d_eroded);
    open_columns<<<dim3((kWidth + 127) / 128, (kHalf + kColRun - 1) / kColRun), 128>>>(d_eroded, d_opened);
    dilate_rows_top_hat<<<sms * 4, 256>>>(d_smooth, d_opened, d_response, d_histogram);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    std::vector<uchar> smooth(pitch * kHeight), response(pitch * kHeight);
    std::vector<unsigned> histogram(256);
    CUDA_CHECK(cudaMemcpy(smooth.data(), d_smooth, smooth.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(response.data(), d_response, response.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(histogram.data(), d_histogram, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));

    // the kernel counts only non-zero responses
    histogram[0] = (unsigned)pixels;
    for (int level = 1; level < 256; ++level) histogram[0] -= histogram[level];

    double smooth_sum = 0.0, response_sum = 0.0;
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) smooth_sum += smooth[y * pitch + x];
    size_t dust = 0, seen = 0;
    int percentile = -1;
    for (int level = 0; level < 256; ++level) {
        response_sum += (double)level * histogram[level];
        if (level > kSpeckLevel) dust += histogram[level];
        seen += histogram[level];
        if (percentile < 0 && seen >= pixels / 100 * 98) percentile = level;
    }
    std::printf("mean smoothed level   %.6g\n", smooth_sum / pixels);
    std::printf("mean top-hat          %.6g\n", response_sum / pixels);
    std::printf("dust pixels           %zu\n", dust);
    std::printf("98th percentile       %d\n", percentile);
    for (int s : {3, 500, 8000})
        std::printf("speck %-5d            %d %d\n", s, smooth[specks[s].y * pitch + specks[s].x],
                    response[specks[s].y * pitch + specks[s].x]);

    CUDA_CHECK(cudaFree(d_rgb));
    CUDA_CHECK(cudaFree(d_smooth));
    CUDA_CHECK(cudaFree(d_eroded));
    CUDA_CHECK(cudaFree(d_opened));
    CUDA_CHECK(cudaFree(d_response));
    CUDA_CHECK(cudaFree(d_histogram));
    return 0;
}
