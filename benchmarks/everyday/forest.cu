// Batch inference with a gradient boosted forest (multi-class), missing values supported.
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

__global__ void predictKernel(const Node* nodes, const int* offsets, const float* x,
                              float* scores, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    for (int k = 0; k < kClasses; ++k) scores[i * kClasses + k] = kBaseScore;

    for (int t = 0; t < kTrees; ++t) {
        const Node* tree = nodes + offsets[t];
        int cur = 0;
        while (tree[cur].feature >= 0) {
            float v = x[i * kFeatures + tree[cur].feature];
            bool goLeft;
            if (isnan(v))
                goLeft = tree[cur].default_left != 0;
            else
                goLeft = v < tree[cur].threshold;
            cur = goLeft ? tree[cur].left : tree[cur].right;
        }
        scores[i * kClasses + t % kClasses] += tree[cur].value;
    }
}

__global__ void softmaxKernel(const float* scores, float* probs, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = scores[i * kClasses];
    for (int k = 1; k < kClasses; ++k) m = fmaxf(m, scores[i * kClasses + k]);
    float sum = 0.0f;
    for (int k = 0; k < kClasses; ++k) {
        float e = expf(scores[i * kClasses + k] - m);
        probs[i * kClasses + k] = e;
        sum += e;
    }
    for (int k = 0; k < kClasses; ++k) probs[i * kClasses + k] /= sum;
}

__global__ void metricsKernel(const float* probs, const int* labels, double* loss, int* correct, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int best = 0;
    for (int k = 1; k < kClasses; ++k)
        if (probs[i * kClasses + k] > probs[i * kClasses + best]) best = k;
    if (best == labels[i]) atomicAdd(correct, 1);
    atomicAdd(loss, -(double)logf(probs[i * kClasses + labels[i]]));
}

class Booster {
public:
    Booster()
    {
        CUDA_CHECK(cudaMalloc(&x_, sizeof(float) * kSamples * kFeatures));
        CUDA_CHECK(cudaMalloc(&labels_, sizeof(int) * kSamples));
        CUDA_CHECK(cudaMalloc(&scores_, sizeof(float) * kSamples * kClasses));
        CUDA_CHECK(cudaMalloc(&probs_, sizeof(float) * kSamples * kClasses));
        CUDA_CHECK(cudaMalloc(&loss_, sizeof(double)));
        CUDA_CHECK(cudaMalloc(&correct_, sizeof(int)));
    }
    ~Booster()
    {
        cudaFree(nodes_);
        cudaFree(offsets_);
        cudaFree(x_);
        cudaFree(labels_);
        cudaFree(scores_);
        cudaFree(probs_);
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
        const int threads = 128;
        const int blocks = (kSamples + threads - 1) / threads;
        CUDA_CHECK(cudaMemset(loss_, 0, sizeof(double)));
        CUDA_CHECK(cudaMemset(correct_, 0, sizeof(int)));
        predictKernel<<<blocks, threads>>>(nodes_, offsets_, x_, scores_, kSamples);
        softmaxKernel<<<blocks, threads>>>(scores_, probs_, kSamples);
        metricsKernel<<<blocks, threads>>>(probs_, labels_, loss_, correct_, kSamples);
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
