// Batch inference with a gradient boosted forest (multi-class), missing values supported.
// H200 version: nodes packed to 8 bytes and staged through shared memory, feature tile of
// 256 samples resident in shared memory (lane == bank), four trees walked at once per thread,
// one grid row per class so that no accumulation leaves the registers.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                          \
    do {                                                                          \
        cudaError_t err_ = (call);                                                \
        if (err_ != cudaSuccess) {                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

namespace gbdt {

constexpr int kSamples = 80000;
constexpr int kFeatures = 64;
constexpr int kTrees = 256;
constexpr int kClasses = 4;      // tree t votes for class t % kClasses
constexpr int kMaxDepth = 8;
constexpr float kBaseScore = 0.1f;

struct Node {
    int feature;        // -1 for a leaf
    float threshold;
    int left;
    int right;
    float value;
    int default_left;   // where a missing value goes
};

constexpr int kSlots = 1 << (kMaxDepth + 1);          // node slots per packed tree (>= 511)
constexpr int kTreesPerClass = kTrees / kClasses;     // 64
constexpr int kTile = 256;                            // samples per block
constexpr int kThreads = 512;                         // two threads per sample
constexpr int kChains = 4;                            // trees walked at once by a thread
constexpr int kStage = 2 * kChains;                   // trees in shared memory at once
constexpr int kSmem = kTile * kFeatures * 4 + kStage * kSlots * 8;   // 64 KiB + 32 KiB

static_assert(kTreesPerClass % kStage == 0, "whole stages only");
static_assert(kClasses == 4, "float4 rows");

// .x threshold, or value of a leaf; .y left child (16 bits, self for a leaf) | feature << 16 |
// missing goes right << 24 | leaf << 25.  The right child is left + 1.
__global__ void packKernel(const Node* __restrict__ nodes, const int* __restrict__ offsets,
                           uint2* __restrict__ packed)
{
    const int t = blockIdx.x;
    const int slot = threadIdx.x;
    const int base = offsets[t];
    const int count = offsets[t + 1] - base;
    uint2 out = make_uint2(0u, (unsigned)slot | (1u << 25));
    if (slot < count) {
        Node nd = nodes[base + slot];
        if (nd.feature < 0) {
            out.x = __float_as_uint(nd.value);
        } else {
            out.x = __float_as_uint(nd.threshold);
            out.y = (unsigned)nd.left | ((unsigned)nd.feature << 16) |
                    (nd.default_left ? 0u : (1u << 24));
        }
    }
    packed[((t % kClasses) * kTreesPerClass + t / kClasses) * kSlots + slot] = out;
}

__global__ void __launch_bounds__(kThreads, 2)
predictKernel(const uint2* __restrict__ packed, const float* __restrict__ x,
              float* __restrict__ scores, int n)
{
    extern __shared__ __align__(16) unsigned char smem[];
    float* sF = reinterpret_cast<float*>(smem);                               // [feature][sample]
    uint2* sT = reinterpret_cast<uint2*>(smem + kTile * kFeatures * 4);       // [tree][slot]

    const int tid = threadIdx.x;
    const int s = tid & (kTile - 1);
    const int half = tid / kTile;
    const int sample = blockIdx.x * kTile + s;
    const int cls = blockIdx.y;

    // Each thread brings half the row of its sample; writes are conflict free (lane == bank).
    {
        const int q0 = half * (kFeatures / 8);
        const float4* row = reinterpret_cast<const float4*>(x + (size_t)(sample < n ? sample : 0) * kFeatures);
#pragma unroll
        for (int q = 0; q < kFeatures / 8; ++q) {
            float4 v = __ldg(row + q0 + q);
            float* dst = sF + (q0 + q) * 4 * kTile + s;
            dst[0] = v.x;
            dst[kTile] = v.y;
            dst[2 * kTile] = v.z;
            dst[3 * kTile] = v.w;
        }
    }

    const float* myF = sF + s;
    const uint2* myT = sT + half * kChains * kSlots;
    float acc = 0.0f;
    const uint4* src = reinterpret_cast<const uint4*>(packed + (size_t)cls * kTreesPerClass * kSlots);
    constexpr int kVec = kStage * kSlots / 2;           // uint4 per stage

    for (int st = 0; st < kTreesPerClass / kStage; ++st) {
        uint4 r[kVec / kThreads];
#pragma unroll
        for (int i = 0; i < kVec / kThreads; ++i) r[i] = __ldg(src + st * kVec + i * kThreads + tid);
        __syncthreads();                                // last stage consumed
#pragma unroll
        for (int i = 0; i < kVec / kThreads; ++i) reinterpret_cast<uint4*>(sT)[i * kThreads + tid] = r[i];
        __syncthreads();

        unsigned cur[kChains];
#pragma unroll
        for (int j = 0; j < kChains; ++j) cur[j] = 0u;
#pragma unroll
        for (int d = 0; d < kMaxDepth; ++d) {
#pragma unroll
            for (int j = 0; j < kChains; ++j) {
                uint2 nd = myT[j * kSlots + cur[j]];
                float v = myF[((nd.y >> 16) & 0xffu) * kTile];
                bool right = (v != v) ? ((nd.y >> 24) & 1u) != 0u : v >= __uint_as_float(nd.x);
                right = right && !(nd.y & (1u << 25));
                cur[j] = (nd.y & 0xffffu) + (right ? 1u : 0u);
            }
        }
#pragma unroll
        for (int j = 0; j < kChains; ++j) acc += __uint_as_float(myT[j * kSlots + cur[j]].x);
    }

    __syncthreads();                                    // sT is free now
    float* part = reinterpret_cast<float*>(sT);
    if (half == 1) part[s] = acc;
    __syncthreads();
    if (half == 0 && sample < n) scores[sample * kClasses + cls] = kBaseScore + acc + part[s];
}

// softmax and metrics in one pass
__global__ void __launch_bounds__(256)
finishKernel(const float4* __restrict__ scores, float4* __restrict__ probs,
             const int* __restrict__ labels, double* loss, int* correct, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float l = 0.0f;
    int ok = 0;
    if (i < n) {
        float4 v = scores[i];
        const int lab = labels[i];
        float m = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        float4 e = make_float4(expf(v.x - m), expf(v.y - m), expf(v.z - m), expf(v.w - m));
        float sum = e.x + e.y + e.z + e.w;
        float4 p = make_float4(e.x / sum, e.y / sum, e.z / sum, e.w / sum);
        probs[i] = p;
        int best = 0;
        float bp = p.x;
        if (p.y > bp) { bp = p.y; best = 1; }
        if (p.z > bp) { bp = p.z; best = 2; }
        if (p.w > bp) { bp = p.w; best = 3; }
        ok = best == lab;
        float pl = lab == 0 ? p.x : lab == 1 ? p.y : lab == 2 ? p.z : p.w;
        l = -logf(pl);
    }
    double dl = l;
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) dl += __shfl_down_sync(0xffffffffu, dl, o);
    ok = __popc(__ballot_sync(0xffffffffu, ok != 0));
    __shared__ double sl[8];
    __shared__ int sk[8];
    if ((threadIdx.x & 31) == 0) {
        sl[threadIdx.x >> 5] = dl;
        sk[threadIdx.x >> 5] = ok;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double a = 0.0;
        int c = 0;
        for (int w = 0; w < 8; ++w) { a += sl[w]; c += sk[w]; }
        atomicAdd(loss, a);
        atomicAdd(correct, c);
    }
}

class Booster {
public:
    Booster()
    {
        CUDA_CHECK(cudaMalloc(&x_, sizeof(float) * kSamples * kFeatures));
        CUDA_CHECK(cudaMalloc(&labels_, sizeof(int) * kSamples));
        CUDA_CHECK(cudaMalloc(&scores_, sizeof(float) * kSamples * kClasses));
        CUDA_CHECK(cudaMalloc(&probs_, sizeof(float) * kSamples * kClasses));
        CUDA_CHECK(cudaMalloc(&packed_, sizeof(uint2) * kTrees * kSlots));
        CUDA_CHECK(cudaMalloc(&loss_, sizeof(double)));
        CUDA_CHECK(cudaMalloc(&correct_, sizeof(int)));
        CUDA_CHECK(cudaFuncSetAttribute(predictKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
    }
    ~Booster()
    {
        cudaFree(nodes_);
        cudaFree(offsets_);
        cudaFree(x_);
        cudaFree(labels_);
        cudaFree(scores_);
        cudaFree(probs_);
        cudaFree(packed_);
        cudaFree(loss_);
        cudaFree(correct_);
    }
    Booster(const Booster&) = delete;
    Booster& operator=(const Booster&) = delete;

    void loadModel(const std::vector<Node>& nodes, const std::vector<int>& offsets)
    {
        CUDA_CHECK(cudaMalloc(&nodes_, nodes.size() * sizeof(Node)));
        CUDA_CHECK(cudaMalloc(&offsets_, offsets.size() * sizeof(int)));
        CUDA_CHECK(cudaMemcpy(nodes_, nodes.data(), nodes.size() * sizeof(Node), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(offsets_, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
    }

    void loadData(const std::vector<float>& x, const std::vector<int>& labels)
    {
        CUDA_CHECK(cudaMemcpy(x_, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(labels_, labels.data(), labels.size() * sizeof(int), cudaMemcpyHostToDevice));
    }

    void predict()
    {
        CUDA_CHECK(cudaMemset(loss_, 0, sizeof(double)));
        CUDA_CHECK(cudaMemset(correct_, 0, sizeof(int)));
        packKernel<<<kTrees, kSlots>>>(nodes_, offsets_, packed_);
        dim3 grid((kSamples + kTile - 1) / kTile, kClasses);
        predictKernel<<<grid, kThreads, kSmem>>>(packed_, x_, scores_, kSamples);
        finishKernel<<<(kSamples + 255) / 256, 256>>>(reinterpret_cast<const float4*>(scores_),
                                                      reinterpret_cast<float4*>(probs_), labels_,
                                                      loss_, correct_, kSamples);
        CUDA_CHECK(cudaGetLastError());
    }

    void fetch(std::vector<float>& scores, std::vector<float>& probs, double& loss, int& correct)
    {
        scores.resize((size_t)kSamples * kClasses);
        probs.resize((size_t)kSamples * kClasses);
        CUDA_CHECK(cudaMemcpy(scores.data(), scores_, scores.size() * sizeof(float), cudaMemcpyDeviceToHost));
        CUDA_CHECK(cudaMemcpy(probs.data(), probs_, probs.size() * sizeof(float), cudaMemcpyDeviceToHost));
        CUDA_CHECK(cudaMemcpy(&loss, loss_, sizeof(double), cudaMemcpyDeviceToHost));
        CUDA_CHECK(cudaMemcpy(&correct, correct_, sizeof(int), cudaMemcpyDeviceToHost));
    }

private:
    Node* nodes_ = nullptr;
    int* offsets_ = nullptr;
    float* x_ = nullptr;
    int* labels_ = nullptr;
    float* scores_ = nullptr;
    float* probs_ = nullptr;
    uint2* packed_ = nullptr;
    double* loss_ = nullptr;
    int* correct_ = nullptr;
};

}  // namespace gbdt

// ---------------------------------------------------------------------------

static unsigned g_state = 20240517u;
static unsigned nextRand()
{
    g_state ^= g_state << 13;
    g_state ^= g_state >> 17;
    g_state ^= g_state << 5;
    return g_state;
}
static float uniform01() { return (nextRand() >> 8) * (1.0f / 16777216.0f); }

// Grows one tree breadth first; the two children of a node are neighbours.
static void growTree(std::vector<gbdt::Node>& nodes)
{
    std::vector<int> depth;
    size_t base = nodes.size();
    nodes.push_back(gbdt::Node());
    depth.push_back(0);
    for (size_t i = 0; i < depth.size(); ++i) {
        bool leaf = depth[i] == gbdt::kMaxDepth || (depth[i] >= 3 && uniform01() < 0.08f);
        gbdt::Node n;
        n.feature = -1;
        n.threshold = 0.0f;
        n.left = n.right = -1;
        n.value = 0.0f;
        n.default_left = 0;
        if (leaf) {
            n.value = 0.25f * (uniform01() - 0.42f);
        } else {
            n.feature = (int)(nextRand() % gbdt::kFeatures);
            n.threshold = 0.2f + 0.6f * uniform01();
            n.left = (int)depth.size();
            n.right = n.left + 1;
            n.default_left = (int)(nextRand() & 1u);
            int d = depth[i] + 1;
            depth.push_back(d);
            depth.push_back(d);
            nodes.push_back(gbdt::Node());
            nodes.push_back(gbdt::Node());
        }
        nodes[base + i] = n;
    }
}

int main()
{
    using namespace gbdt;
    std::vector<Node> nodes;
    std::vector<int> offsets;
    for (int t = 0; t < kTrees; ++t) {
        offsets.push_back((int)nodes.size());
        growTree(nodes);
    }
    offsets.push_back((int)nodes.size());

    std::vector<float> x((size_t)kSamples * kFeatures);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = (nextRand() % 20u == 0u) ? NAN : uniform01();
    std::vector<int> labels(kSamples);
    for (int i = 0; i < kSamples; ++i) labels[i] = (int)(nextRand() % kClasses);

    Booster booster;
    booster.loadModel(nodes, offsets);
    booster.loadData(x, labels);
    booster.predict();

    std::vector<float> scores, probs;
    double loss = 0.0;
    int correct = 0;
    booster.fetch(scores, probs, loss, correct);

    double cls[kClasses] = {0.0}, wsum = 0.0, top = 0.0;
    for (int i = 0; i < kSamples; ++i) {
        float best = 0.0f;
        for (int k = 0; k < kClasses; ++k) {
            float p = probs[(size_t)i * kClasses + k];
            cls[k] += p;
            if (p > best) best = p;
            wsum += std::fabs(scores[(size_t)i * kClasses + k]) * (1 + (i * 4 + k) % 11);
        }
        top += best;
    }
    printf("nodes %d\n", (int)nodes.size());
    for (int k = 0; k < kClasses; ++k) printf("mean p[%d] %.5f\n", k, cls[k] / kSamples);
    printf("mean top p %.5f\n", top / kSamples);
    printf("weighted |score| %.5f\n", wsum / kSamples);
    printf("logloss %.5f  accuracy %.4f\n", loss / kSamples, (double)correct / kSamples);
    return 0;
}
