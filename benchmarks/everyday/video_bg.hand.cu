// Video denoising with a running background model, tuned for H200.
// Frames are processed in chunks. The background model of a pixel depends only on
// that pixel's own smoothed history, so
//   trackChunk  smooths and updates the model for all frames of a chunk with mean and
//               variance in registers (4 pixels per thread, byte rows read as words),
//   finishChunk does the 3x3 vote on packed bytes, composes and counts, all frames of
//               the chunk in one 3-D launch.
// Upload of the next chunk overlaps with the kernels of the current one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

static void cudaCheck(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
        exit(1);
    }
}
#define CU(call) cudaCheck((call), __LINE__)

constexpr int W = 640, H = 480, PIXELS = W * H, FRAMES = 80;
constexpr int CHUNK = 16;
constexpr int QUADS_X = W / 4, QUADS = PIXELS / 4;
static_assert(FRAMES % CHUNK == 0 && W % 4 == 0, "whole chunks and quads");

struct FrameParams { float gain, offset, alpha; };
__constant__ FrameParams cParams[FRAMES];

__device__ __forceinline__ unsigned toByte(float v)
{
    return (unsigned)(fminf(fmaxf(v, 0.0f), 255.0f) + 0.5f);
}

__device__ __forceinline__ unsigned byteOf(unsigned word, int i) { return (word >> (8 * i)) & 255u; }

__global__ void __launch_bounds__(128)
trackChunk(const uint8_t* __restrict__ frames, int firstFrame, float4* __restrict__ mean4,
           float4* __restrict__ var4, unsigned* __restrict__ movingOut,
           unsigned* __restrict__ foreOut, unsigned* __restrict__ backOut)
{
    const int q = blockIdx.x * 128 + threadIdx.x;
    if (q >= QUADS) return;
    const int y = q / QUADS_X, x = (q % QUADS_X) * 4;
    const int rows[3] = {max(y - 1, 0) * W, y * W, min(y + 1, H - 1) * W};
    const int left = max(x - 1, 0), right = min(x + 4, W - 1);

    float mean[4], var[4];
    if (firstFrame > 0) {
        const float4 m = mean4[q], v = var4[q];
        mean[0] = m.x; mean[1] = m.y; mean[2] = m.z; mean[3] = m.w;
        var[0] = v.x; var[1] = v.y; var[2] = v.z; var[3] = v.w;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) mean[i] = var[i] = 0.0f;
    }

#pragma unroll 4
    for (int f = 0; f < CHUNK; ++f) {
        const uint8_t* img = frames + (size_t)f * PIXELS;
        unsigned col[6] = {};                 // vertical 1-2-1 sums of columns x-1 .. x+4
#pragma unroll
        for (int r = 0; r < 3; ++r) {
            const int shift = (r == 1) ? 1 : 0;
            const unsigned word = __ldg(reinterpret_cast<const unsigned*>(img + rows[r] + x));
            col[0] += (unsigned)__ldg(img + rows[r] + left) << shift;
            col[5] += (unsigned)__ldg(img + rows[r] + right) << shift;
#pragma unroll
            for (int i = 0; i < 4; ++i) col[i + 1] += byteOf(word, i) << shift;
        }
        const FrameParams p = cParams[firstFrame + f];
        unsigned movingWord = 0, foreWord = 0, backWord = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned smooth = (col[i] + 2 * col[i + 1] + col[i + 2] + 8) >> 4;
            const float v = fmaf(p.gain, (float)smooth, p.offset);
            unsigned moving = 0;
            if (firstFrame + f == 0) {
                mean[i] = v;
                var[i] = 100.0f;
            } else {
                const float d = v - mean[i];
                moving = fmaf(d, d, -9.0f * var[i]) > 0.0f;
                const float rate = moving ? 0.1f * p.alpha : p.alpha;
                mean[i] = fmaf(rate, d, mean[i]);
                var[i] = fmaxf(fmaf(rate, fmaf(d, d, -var[i]), var[i]), 4.0f);
            }
            movingWord |= moving << (8 * i);
            foreWord |= toByte(v) << (8 * i);
            backWord |= toByte(mean[i]) << (8 * i);
        }
        movingOut[f * QUADS + q] = movingWord;
        foreOut[f * QUADS + q] = foreWord;
        backOut[f * QUADS + q] = backWord;
    }
    mean4[q] = make_float4(mean[0], mean[1], mean[2], mean[3]);
    var4[q] = make_float4(var[0], var[1], var[2], var[3]);
}

// block (32, 8): one quad per thread; grid (5, 60, CHUNK)
__global__ void __launch_bounds__(256)
finishChunk(const unsigned* __restrict__ moving, const unsigned* __restrict__ fore,
            const unsigned* __restrict__ back, int firstFrame, unsigned* __restrict__ out,
            unsigned* __restrict__ stats)
{
    __shared__ unsigned counts[8], sums[8];
    const int qx = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int f = blockIdx.z, frame = firstFrame + f;
    const unsigned* m = moving + (size_t)f * QUADS;

    unsigned count = 0, sum = 0;
    if (qx < QUADS_X && y < H) {
        unsigned column = 0, leftCol = 0, rightCol = 0;    // per byte sums of three rows
        for (int yy = max(y - 1, 0); yy <= min(y + 1, H - 1); ++yy) {
            const unsigned* row = m + yy * QUADS_X + qx;
            column += row[0];
            if (qx > 0) leftCol += row[-1] >> 24;
            if (qx < QUADS_X - 1) rightCol += row[1] & 255u;
        }
        const unsigned votes = column + ((column << 8) | leftCol) + ((column >> 8) | (rightCol << 24));
        const unsigned keep = __vcmpgeu4(votes, 0x05050505u);   // 0xff where moving
        const int q = f * QUADS + y * QUADS_X + qx;
        const unsigned value = (fore[q] & keep) | (back[q] & ~keep);
        if (frame == FRAMES - 1) out[y * QUADS_X + qx] = value;
        count = __popc(keep) >> 3;
        sum = byteOf(value, 0) + byteOf(value, 1) + byteOf(value, 2) + byteOf(value, 3);
    }
    for (int s = 16; s > 0; s >>= 1) {
        count += __shfl_down_sync(0xffffffffu, count, s);
        sum += __shfl_down_sync(0xffffffffu, sum, s);
    }
    if (threadIdx.x == 0) {
        counts[threadIdx.y] = count;
        sums[threadIdx.y] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        for (int i = 1; i < 8; ++i) {
            count += counts[i];
            sum += sums[i];
        }
        if (count) atomicAdd(stats + frame, count);
        atomicAdd(stats + FRAMES + frame, sum);
    }
}

static void renderFrame(uint8_t* img, int f, int flicker, uint32_t& rng)
{
    int cx = 40 + 7 * f, cy = 240 + ((f * 13) % 61) - 30;
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
            rng = rng * 1664525u + 1013904223u;
            int v = 70 + ((x * 5 + y * 3) >> 6) + ((x ^ y) & 16);
            if (abs(x - cx) < 35 && abs(y - cy) < 50) v = 190 - ((x + y) & 15);
            img[y * W + x] = (uint8_t)(v + flicker + (int)(rng >> 28) - 8);
        }
}

int main()
{
    uint8_t* video;
    CU(cudaMallocHost(&video, (size_t)FRAMES * PIXELS));
    std::vector<FrameParams> params(FRAMES);
    uint32_t rng = 99u;
    for (int f = 0; f < FRAMES; ++f) {
        int flicker = (f * 7) % 11 - 5;
        renderFrame(video + (size_t)f * PIXELS, f, flicker, rng);
        params[f] = {1.0f + 0.002f * (f % 5), -0.97f * flicker, f < 20 ? 1.0f / (f + 1) : 0.05f};
    }

    uint8_t *dVideo, *dOut;
    unsigned *dMoving, *dFore, *dBack, *dStats;
    float4 *dMean, *dVar;
    CU(cudaMalloc(&dVideo, (size_t)FRAMES * PIXELS));
    CU(cudaMalloc(&dOut, PIXELS));
    CU(cudaMalloc(&dMoving, (size_t)CHUNK * PIXELS));
    CU(cudaMalloc(&dFore, (size_t)CHUNK * PIXELS));
    CU(cudaMalloc(&dBack, (size_t)CHUNK * PIXELS));
    CU(cudaMalloc(&dMean, PIXELS * sizeof(float)));
    CU(cudaMalloc(&dVar, PIXELS * sizeof(float)));
    CU(cudaMalloc(&dStats, 2 * FRAMES * sizeof(unsigned)));
    CU(cudaMemset(dStats, 0, 2 * FRAMES * sizeof(unsigned)));
    CU(cudaMemcpyToSymbol(cParams, params.data(), FRAMES * sizeof(FrameParams)));
    CU(cudaDeviceSynchronize());

    cudaStream_t copyStream, workStream;
    cudaEvent_t uploaded;
    CU(cudaStreamCreateWithFlags(&copyStream, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&workStream, cudaStreamNonBlocking));
    CU(cudaEventCreateWithFlags(&uploaded, cudaEventDisableTiming));
    const dim3 finishBlock(32, 8), finishGrid((QUADS_X + 31) / 32, (H + 7) / 8, CHUNK);
    for (int f = 0; f < FRAMES; f += CHUNK) {
        const size_t at = (size_t)f * PIXELS;
        CU(cudaMemcpyAsync(dVideo + at, video + at, (size_t)CHUNK * PIXELS, cudaMemcpyHostToDevice, copyStream));
        CU(cudaEventRecord(uploaded, copyStream));
        CU(cudaStreamWaitEvent(workStream, uploaded, 0));
        trackChunk<<<(QUADS + 127) / 128, 128, 0, workStream>>>(dVideo + at, f, dMean, dVar, dMoving, dFore, dBack);
        finishChunk<<<finishGrid, finishBlock, 0, workStream>>>(dMoving, dFore, dBack, f,
                                                                reinterpret_cast<unsigned*>(dOut), dStats);
    }
    CU(cudaStreamSynchronize(workStream));
    CU(cudaGetLastError());

    std::vector<uint8_t> out(PIXELS);
    std::vector<float> mean(PIXELS);
    std::vector<unsigned int> stats(2 * FRAMES);
    CU(cudaMemcpy(out.data(), dOut, PIXELS, cudaMemcpyDeviceToHost));
    CU(cudaMemcpy(mean.data(), dMean, PIXELS * sizeof(float), cudaMemcpyDeviceToHost));
    CU(cudaMemcpy(stats.data(), dStats, stats.size() * sizeof(unsigned int), cudaMemcpyDeviceToHost));

    unsigned long long moving = 0, brightness = 0, check = 0;
    double meanSum = 0;
    for (int f = 0; f < FRAMES; ++f) { moving += stats[f]; brightness += stats[FRAMES + f]; }
    for (int i = 0; i < PIXELS; ++i) { check += (unsigned long long)out[i] * (i % 101 + 1); meanSum += mean[i]; }
    printf("moving pixels in frames 1, 10, 40, 79: %u %u %u %u\n", stats[1], stats[10], stats[40], stats[79]);
    printf("moving pixels in all frames: %llu\n", moving);
    printf("mean output brightness %.6g\n", (double)brightness / ((double)PIXELS * FRAMES));
    printf("last frame checksum %llu\n", check);
    printf("background mean %.6g, at centre %.5g\n", meanSum / PIXELS, mean[(H / 2) * W + W / 2]);

    CU(cudaFree(dVideo)); CU(cudaFree(dOut)); CU(cudaFree(dMoving)); CU(cudaFree(dFore));
    CU(cudaFree(dBack)); CU(cudaFree(dMean)); CU(cudaFree(dVar)); CU(cudaFree(dStats));
    CU(cudaEventDestroy(uploaded));
    CU(cudaStreamDestroy(copyStream));
    CU(cudaStreamDestroy(workStream));
    CU(cudaFreeHost(video));
    return 0;
}
