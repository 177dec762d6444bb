// Felsenstein pruning: log likelihood of an alignment on a fixed tree, for several
// substitution models (4 states, discrete rate categories).
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                                              \
    do {                                                                                   \
        cudaError_t e = (x);                                                               \
        if (e != cudaSuccess) {                                                            \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e));        \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

namespace phylo {

constexpr int TAXA = 32;
constexpr int NODES = 2 * TAXA - 1;    // tips first, then inner nodes in post order, root last
constexpr int SITES = 30000;
constexpr int STATES = 4;
constexpr int NCATS = 4;
constexpr int NMODELS = 8;
constexpr int SQUARINGS = 6;
constexpr int TAYLOR = 8;

template <typename Real, int CATS>
struct Model {
    Real q[STATES * STATES];    // rate matrix, rows sum to zero
    Real freq[STATES];
    Real rates[CATS];
};

struct Tree {
    int left[NODES];            // -1 for tips
    int right[NODES];
    double length[NODES];       // branch above the node
};

// ---- kernels ---------------------------------------------------------------

template <typename Real>
__device__ void matmul4(const Real* a, const Real* b, Real* c)
{
    for (int i = 0; i < STATES; ++i)
        for (int j = 0; j < STATES; ++j) {
            Real s = 0;
            for (int k = 0; k < STATES; ++k) s += a[i * STATES + k] * b[k * STATES + j];
            c[i * STATES + j] = s;
        }
}

// P = exp(Q * rate * length) by scaling and squaring, one thread per (node, category)
template <typename Real, int CATS>
__global__ void transitionKernel(Model<Real, CATS> m, const Real* length, Real* P)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= NODES * CATS) return;
    int node = idx / CATS;
    int cat = idx % CATS;

    Real a[16], term[16], p[16], tmp[16];
    Real scale = length[node] * m.rates[cat] / (Real)(1 << SQUARINGS);
    for (int i = 0; i < 16; ++i) {
        a[i] = m.q[i] * scale;
        p[i] = (i % 5 == 0) ? (Real)1 : (Real)0;
        term[i] = p[i];
    }
    for (int n = 1; n <= TAYLOR; ++n) {
        matmul4(term, a, tmp);
        for (int i = 0; i < 16; ++i) {
            term[i] = tmp[i] / n;
            p[i] += term[i];
        }
    }
    for (int n = 0; n < SQUARINGS; ++n) {
        matmul4(p, p, tmp);
        for (int i = 0; i < 16; ++i) p[i] = tmp[i];
    }
    for (int i = 0; i < 16; ++i) P[idx * 16 + i] = p[i];
}

template <typename Real, int CATS>
__global__ void tipKernel(const uint8_t* tips, Real* partials)
{
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    int taxon = blockIdx.y;
    if (site >= SITES) return;
    int s = tips[taxon * SITES + site];
    Real* out = partials + ((size_t)taxon * SITES + site) * CATS * STATES;
    for (int c = 0; c < CATS; ++c)
        for (int i = 0; i < STATES; ++i) out[c * STATES + i] = (s == 4 || s == i) ? (Real)1 : (Real)0;
}

// partials are [node][site][category][state]
template <typename Real, int CATS>
__global__ void pruneKernel(Real* partials, const Real* P, int left, int right, int parent)
{
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= SITES) return;

    const size_t nodeSize = (size_t)SITES * CATS * STATES;
    const Real* l = partials + left * nodeSize + (size_t)site * CATS * STATES;
    const Real* r = partials + right * nodeSize + (size_t)site * CATS * STATES;
    Real* out = partials + parent * nodeSize + (size_t)site * CATS * STATES;

    for (int c = 0; c < CATS; ++c) {
        const Real* pl = P + (left * CATS + c) * 16;
        const Real* pr = P + (right * CATS + c) * 16;
        for (int i = 0; i < STATES; ++i) {
            Real suml = 0, sumr = 0;
            for (int j = 0; j < STATES; ++j) {
                suml += pl[i * STATES + j] * l[c * STATES + j];
                sumr += pr[i * STATES + j] * r[c * STATES + j];
            }
            out[c * STATES + i] = suml * sumr;
        }
    }
}

template <typename Real, int CATS, int BLOCK>
__global__ void rootKernel(Model<Real, CATS> m, const Real* partials, const int* weight,
                           Real* siteLnl, Real* blockSums)
{
    __shared__ Real cache[BLOCK];
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    Real v = 0;
    if (site < SITES) {
        const Real* root = partials + ((size_t)(NODES - 1) * SITES + site) * CATS * STATES;
        Real lik = 0;
        for (int c = 0; c < CATS; ++c)
            for (int i = 0; i < STATES; ++i) lik += m.freq[i] * root[c * STATES + i];
        Real ll = log(lik / CATS);
        siteLnl[site] = ll;
        v = ll * weight[site];
    }
    cache[threadIdx.x] = v;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) blockSums[blockIdx.x] = cache[0];
}

// ---- engine ----------------------------------------------------------------

template <typename Real, int CATS>
class Likelihood {
    static constexpr int BLOCK = 256;
    static constexpr int GRID = (SITES + BLOCK - 1) / BLOCK;

    Tree tree_;
    cudaStream_t stream_;
    uint8_t* tips_;
    int* weight_;
    Real* length_;
    Real* P_;
    Real* partials_;
    Real* siteLnl_;
    Real* blockSums_;
    Real* hostSums_;     // pinned

public:
    Likelihood(const Tree& tree, const std::vector<uint8_t>& tips, const std::vector<int>& weight)
        : tree_(tree)
    {
        CK(cudaStreamCreate(&stream_));
        CK(cudaMalloc(&tips_, tips.size()));
        CK(cudaMalloc(&weight_, weight.size() * sizeof(int)));
        CK(cudaMalloc(&length_, NODES * sizeof(Real)));
        CK(cudaMalloc(&P_, NODES * CATS * 16 * sizeof(Real)));
        CK(cudaMalloc(&partials_, (size_t)NODES * SITES * CATS * STATES * sizeof(Real)));
        CK(cudaMalloc(&siteLnl_, SITES * sizeof(Real)));
        CK(cudaMalloc(&blockSums_, GRID * sizeof(Real)));
        CK(cudaMallocHost(&hostSums_, GRID * sizeof(Real)));

        std::vector<Real> len(tree.length, tree.length + NODES);
        CK(cudaMemcpyAsync(tips_, tips.data(), tips.size(), cudaMemcpyHostToDevice, stream_));
        CK(cudaMemcpyAsync(weight_, weight.data(), weight.size() * sizeof(int), cudaMemcpyHostToDevice, stream_));
        CK(cudaMemcpyAsync(length_, len.data(), NODES * sizeof(Real), cudaMemcpyHostToDevice, stream_));
        tipKernel<Real, CATS><<<dim3(GRID, TAXA), BLOCK, 0, stream_>>>(tips_, partials_);
        CK(cudaStreamSynchronize(stream_));
    }

    ~Likelihood()
    {
        cudaFree(tips_);
        cudaFree(weight_);
        cudaFree(length_);
        cudaFree(P_);
        cudaFree(partials_);
        cudaFree(siteLnl_);
        cudaFree(blockSums_);
        cudaFreeHost(hostSums_);
        cudaStreamDestroy(stream_);
    }

    void evaluate(const Model<Real, CATS>* models, Real* lnl, std::vector<Real>& site)
    {
        for (int k = 0; k < NMODELS; ++k) {
            transitionKernel<Real, CATS><<<(NODES * CATS + 63) / 64, 64, 0, stream_>>>(models[k], length_, P_);
            for (int n = TAXA; n < NODES; ++n)
                pruneKernel<Real, CATS><<<GRID, BLOCK, 0, stream_>>>(partials_, P_, tree_.left[n], tree_.right[n], n);
            rootKernel<Real, CATS, BLOCK><<<GRID, BLOCK, 0, stream_>>>(models[k], partials_, weight_,
                siteLnl_, blockSums_);
            CK(cudaMemcpyAsync(hostSums_, blockSums_, GRID * sizeof(Real), cudaMemcpyDeviceToHost, stream_));
            CK(cudaStreamSynchronize(stream_));
            Real s = 0;
            for (int b = 0; b < GRID; ++b) s += hostSums_[b];
            lnl[k] = s;
        }
        // per-site values of the last model
        CK(cudaMemcpyAsync(site.data(), siteLnl_, SITES * sizeof(Real), cudaMemcpyDeviceToHost, stream_));
        CK(cudaStreamSynchronize(stream_));
        CK(cudaGetLastError());
    }
};

}  // namespace phylo

namespace {

struct Lcg {
    uint64_t s = 88172645463325252ull;
    double uni()
    {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        return (double)(s >> 11) * (1.0 / 9007199254740992.0);
    }
    int below(int n) { return (int)(uni() * n); }
};

phylo::Tree randomTree(Lcg& rng)
{
    phylo::Tree t;
    std::vector<int> active;
    for (int i = 0; i < phylo::TAXA; ++i) {
        t.left[i] = t.right[i] = -1;
        active.push_back(i);
    }
    for (int n = phylo::TAXA; n < phylo::NODES; ++n) {
        int a = rng.below((int)active.size());
        t.left[n] = active[a];
        active.erase(active.begin() + a);
        int b = rng.below((int)active.size());
        t.right[n] = active[b];
        active[b] = n;
    }
    for (int n = 0; n < phylo::NODES; ++n) t.length[n] = 0.02 + 0.2 * rng.uni();
    return t;
}

template <typename Real, int CATS>
phylo::Model<Real, CATS> makeModel(int k)
{
    phylo::Model<Real, CATS> m;
    const double f[4] = {0.30 - 0.01 * k, 0.20 + 0.005 * k, 0.22, 0.28 + 0.005 * k};
    const double kappa = 1.5 + 0.5 * k;
    double q[16], norm = 0.0;
    for (int i = 0; i < 4; ++i) {
        double row = 0.0;
        for (int j = 0; j < 4; ++j) {
            if (i == j) continue;
            bool transition = (i ^ j) == 2;     // A<->G, C<->T
            q[i * 4 + j] = f[j] * (transition ? kappa : 1.0);
            row += q[i * 4 + j];
        }
        q[i * 4 + i] = -row;
        norm += f[i] * row;
    }
    for (int i = 0; i < 16; ++i) m.q[i] = (Real)(q[i] / norm);
    for (int i = 0; i < 4; ++i) m.freq[i] = (Real)f[i];
    const double r[4] = {0.14, 0.48, 1.0, 2.38};
    for (int c = 0; c < CATS; ++c) m.rates[c] = (Real)(r[c % 4] * (0.8 + 0.06 * k));
    return m;
}

}  // namespace

int main()
{
    using namespace phylo;
    Lcg rng;
    Tree tree = randomTree(rng);

    // evolve sequences down the tree
    std::vector<uint8_t> seq((size_t)NODES * SITES);
    std::vector<int> weight(SITES);
    for (int s = 0; s < SITES; ++s) {
        double speed = 0.1 + 1.9 * rng.uni();
        seq[(size_t)(NODES - 1) * SITES + s] = (uint8_t)rng.below(4);
        for (int n = NODES - 1; n >= TAXA; --n) {
            for (int side = 0; side < 2; ++side) {
                int c = side ? tree.right[n] : tree.left[n];
                uint8_t v = seq[(size_t)n * SITES + s];
                if (rng.uni() < speed * tree.length[c]) v = (uint8_t)rng.below(4);
                seq[(size_t)c * SITES + s] = v;
            }
        }
        weight[s] = 1 + rng.below(3);
    }
    std::vector<uint8_t> tips(seq.begin(), seq.begin() + (size_t)TAXA * SITES);
    for (size_t i = 0; i < tips.size(); ++i)
        if (rng.uni() < 0.02) tips[i] = 4;      // gap or N: any state

    Model<double, NCATS> models[NMODELS];
    for (int k = 0; k < NMODELS; ++k) models[k] = makeModel<double, NCATS>(k);

    double lnl[NMODELS];
    std::vector<double> site(SITES);
    {
        Likelihood<double, NCATS> engine(tree, tips, weight);
        engine.evaluate(models, lnl, site);
    }

    for (int k = 0; k < NMODELS; ++k) std::printf("model %d: lnL %.6e\n", k, lnl[k]);
    double sum = 0.0, wsum = 0.0, lo = 0.0;
    for (int s = 0; s < SITES; ++s) {
        sum += site[s];
        wsum += site[s] * (1 + s % 17);
        lo = std::min(lo, site[s]);
    }
    std::printf("sites: mean %.5f  weighted mean %.5f  worst %.4f\n", sum / SITES, wsum / SITES, lo);
    return 0;
}
