// Video denoising with a running background model.
// Each frame is smoothed, corrected for flicker and compared with a per-pixel running
// mean/variance. Static pixels are replaced by the background mean, moving ones keep
// the smoothed value. Upload of the next frame overlaps with the current one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CU(call)                                                                  \
    if (cudaError_t e_ = (call)) {                                                \
        fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_));       \
        exit(1);                                                                  \
    }

constexpr int W = 640, H = 480, PIXELS = W * H, FRAMES = 80;

struct FrameParams { float gain, offset, alpha; };

__device__ float corrected(uint8_t v, const FrameParams& p) { return fmaf(p.gain, (float)v, p.offset); }

__device__ uint8_t toByte(float v) { return (uint8_t)(fminf(fmaxf(v, 0.0f), 255.0f) + 0.5f); }

__global__ void smooth3x3(const uint8_t* in, uint8_t* out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int sum = 8;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int xx = min(max(x + dx, 0), W - 1), yy = min(max(y + dy, 0), H - 1);
            sum += (2 - abs(dx)) * (2 - abs(dy)) * in[yy * W + xx];
        }
    out[y * W + x] = (uint8_t)(sum >> 4);
}

__global__ void updateModel(const uint8_t* smooth, FrameParams p, bool first,
                            float* mean, float* var, uint8_t* mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= PIXELS) return;
    float v = corrected(smooth[i], p);
    if (first) {
        mean[i] = v;
        var[i] = 100.0f;
        mask[i] = 0;
        return;
    }
    float d = v - mean[i];
    bool moving = fmaf(d, d, -9.0f * var[i]) > 0.0f;   // more than three sigma
    float rate = moving ? 0.1f * p.alpha : p.alpha;
    mean[i] = fmaf(rate, d, mean[i]);
    var[i] = fmaxf(fmaf(rate, fmaf(d, d, -var[i]), var[i]), 4.0f);
    mask[i] = moving ? 1 : 0;
}

// Majority vote in the 3x3 neighbourhood removes isolated detections.
__global__ void cleanMask(const uint8_t* mask, uint8_t* clean)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int votes = 0;
    for (int yy = y - 1; yy <= y + 1; ++yy)
        for (int xx = x - 1; xx <= x + 1; ++xx)
            if (xx >= 0 && xx < W && yy >= 0 && yy < H) votes += mask[yy * W + xx];
    clean[y * W + x] = votes >= 5;
}

__global__ void composeFrame(const uint8_t* smooth, const uint8_t* clean, const float* mean,
                             FrameParams p, uint8_t* out, unsigned int* moving, unsigned int* brightness)
{
    __shared__ unsigned int partial[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint8_t value = 0;
    if (i < PIXELS) {
        value = toByte(clean[i] ? corrected(smooth[i], p) : mean[i]);
        out[i] = value;
        if (clean[i]) atomicAdd(moving, 1u);
    }
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(brightness, partial[0]);
}

class BackgroundDenoiser {
public:
    BackgroundDenoiser() : frame_(0)
    {
        for (uint8_t** p : {&smooth_, &mask_, &clean_, &out_}) CU(cudaMalloc(p, PIXELS));
        for (float** p : {&mean_, &var_}) CU(cudaMalloc(p, PIXELS * sizeof(float)));
        CU(cudaMalloc(&stats_, 2 * FRAMES * sizeof(unsigned int)));
        CU(cudaMemset(stats_, 0, 2 * FRAMES * sizeof(unsigned int)));
    }
    ~BackgroundDenoiser()
    {
        for (uint8_t* p : {smooth_, mask_, clean_, out_}) cudaFree(p);
        cudaFree(mean_); cudaFree(var_); cudaFree(stats_);
    }
    void process(const uint8_t* frame, const FrameParams& p, cudaStream_t stream)
    {
        dim3 tile(32, 8), tiles((W + 31) / 32, (H + 7) / 8);
        int blocks = (PIXELS + 255) / 256;
        smooth3x3<<<tiles, tile, 0, stream>>>(frame, smooth_);
        updateModel<<<blocks, 256, 0, stream>>>(smooth_, p, frame_ == 0, mean_, var_, mask_);
        cleanMask<<<tiles, tile, 0, stream>>>(mask_, clean_);
        composeFrame<<<blocks, 256, 0, stream>>>(smooth_, clean_, mean_, p, out_,
                                                 stats_ + frame_, stats_ + FRAMES + frame_);
        ++frame_;
    }
    void download(std::vector<uint8_t>& out, std::vector<float>& mean, std::vector<unsigned>& stats) const
    {
        CU(cudaMemcpy(out.data(), out_, PIXELS, cudaMemcpyDeviceToHost));
        CU(cudaMemcpy(mean.data(), mean_, PIXELS * sizeof(float), cudaMemcpyDeviceToHost));
        CU(cudaMemcpy(stats.data(), stats_, stats.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    }

private:
    int frame_;
    uint8_t *smooth_, *mask_, *clean_, *out_;
    float *mean_, *var_;
    unsigned int* stats_;
};

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
    uint8_t *video, *dFrame[2];
    CU(cudaMallocHost(&video, (size_t)FRAMES * PIXELS));
    std::vector<FrameParams> params(FRAMES);
    uint32_t rng = 99u;
    for (int f = 0; f < FRAMES; ++f) {
        int flicker = (f * 7) % 11 - 5;
        renderFrame(video + (size_t)f * PIXELS, f, flicker, rng);
        params[f] = {1.0f + 0.002f * (f % 5), -0.97f * flicker, f < 20 ? 1.0f / (f + 1) : 0.05f};
    }

    BackgroundDenoiser denoiser;
    cudaStream_t copyStream, workStream;
    cudaEvent_t uploaded[2], consumed[2];
    for (cudaStream_t* s : {&copyStream, &workStream}) CU(cudaStreamCreate(s));
    for (int b = 0; b < 2; ++b) {
        CU(cudaMalloc(&dFrame[b], PIXELS));
        CU(cudaEventCreate(&uploaded[b]));
        CU(cudaEventCreate(&consumed[b]));
    }
    CU(cudaDeviceSynchronize());
    for (int f = 0; f < FRAMES; ++f) {
        int b = f % 2;
        CU(cudaStreamWaitEvent(copyStream, consumed[b], 0));   // no-op before the first record
        CU(cudaMemcpyAsync(dFrame[b], video + (size_t)f * PIXELS, PIXELS, cudaMemcpyHostToDevice, copyStream));
        CU(cudaEventRecord(uploaded[b], copyStream));
        CU(cudaStreamWaitEvent(workStream, uploaded[b], 0));
        denoiser.process(dFrame[b], params[f], workStream);
        CU(cudaEventRecord(consumed[b], workStream));
    }
    CU(cudaStreamSynchronize(workStream));
    CU(cudaGetLastError());

    std::vector<uint8_t> out(PIXELS);
    std::vector<float> mean(PIXELS);
    std::vector<unsigned> stats(2 * FRAMES);
    denoiser.download(out, mean, stats);

    unsigned long long moving = 0, brightness = 0, check = 0;
    double meanSum = 0;
    for (int f = 0; f < FRAMES; ++f) { moving += stats[f]; brightness += stats[FRAMES + f]; }
    for (int i = 0; i < PIXELS; ++i) { check += (unsigned long long)out[i] * (i % 101 + 1); meanSum += mean[i]; }
    printf("moving pixels in frames 1, 10, 40, 79: %u %u %u %u\n", stats[1], stats[10], stats[40], stats[79]);
    printf("moving pixels in all frames: %llu\n", moving);
    printf("mean output brightness %.6g\n", (double)brightness / ((double)PIXELS * FRAMES));
    printf("last frame checksum %llu\n", check);
    printf("background mean %.6g, at centre %.5g\n", meanSum / PIXELS, mean[(H / 2) * W + W / 2]);

    for (int b = 0; b < 2; ++b) {
        CU(cudaFree(dFrame[b]));
        CU(cudaEventDestroy(uploaded[b]));
        CU(cudaEventDestroy(consumed[b]));
    }
    for (cudaStream_t s : {copyStream, workStream}) CU(cudaStreamDestroy(s));
    CU(cudaFreeHost(video));
    return 0;
}
