// Felsenstein pruning: log likelihood of an alignment on a fixed tree, for several
// substitution models (4 states, discrete rate categories).
// H200 version: one kernel walks the whole tree for a (site, category) with the running
// partial in registers and a stack of at most 4 partials in shared memory (heavier child
// first); tips stay one byte and select a column of the transition matrix; all transition
// matrices of a model live in shared memory, [column][row pair][category] so that a warp
// reads without conflicts; all models are evaluated by one launch.
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

constexpr int BLOCK = 256;
constexpr int TILE = BLOCK / 4;                 // sites per tile: four lanes (categories) each
constexpr int TILES = (SITES + TILE - 1) / TILE;
constexpr int GRID_X = 33;                      // 33 x 8 models = 264 blocks = 2 per SM
constexpr int COLS = STATES + 1;                // column 4: any state, all ones
constexpr int NODE_TAB = COLS * STATES * NCATS; // table entries per node
constexpr int MAX_DEPTH = 4;                    // log2(TAXA) - 1
constexpr int MAX_OPS = 2 * TAXA;
static_assert(NCATS == 4 && SITES % 8 == 0 && TAXA * (TILE / 8) == BLOCK, "layout");

enum OpKind { CHERRY = 0, WITH_TIP = 1, PUSH = 2, WITH_TOP = 3 };
struct Op {
    int kind, a, b, pad;
};
__constant__ Op cOps[MAX_OPS];

template <typename Real, int CATS>
struct Batch {
    Model<Real, CATS> m[NMODELS];
};

template <typename Real> struct Vec2;
template <> struct Vec2<double> { using type = double2; };
template <> struct Vec2<float> { using type = float2; };

// 16 threads per matrix, one per element; products by shuffles
template <typename Real>
__device__ __forceinline__ Real matmulLane(Real a, Real b, int row, int col)
{
    Real s = 0;
#pragma unroll
    for (int k = 0; k < STATES; ++k)
        s += __shfl_sync(0xffffffffu, a, row * 4 + k, 16) * __shfl_sync(0xffffffffu, b, k * 4 + col, 16);
    return s;
}

template <typename Real, int CATS>
__global__ void transitionKernel(const __grid_constant__ Batch<Real, CATS> batch,
                                 const Real* __restrict__ length, Real* __restrict__ tab)
{
    const int mat = (blockIdx.x * blockDim.x + threadIdx.x) / 16;
    const int e = threadIdx.x & 15, row = e >> 2, col = e & 3;
    const int cat = mat % CATS, node = (mat / CATS) % NODES;
    int k = mat / (CATS * NODES);
    const bool live = k < NMODELS;
    if (!live) k = 0;

    Real a = batch.m[k].q[e] * (length[node] * batch.m[k].rates[cat] / (Real)(1 << SQUARINGS));
    Real p = row == col ? (Real)1 : (Real)0;
    Real term = p;
#pragma unroll
    for (int n = 1; n <= TAYLOR; ++n) {
        term = matmulLane(term, a, row, col) * ((Real)1 / n);
        p += term;
    }
#pragma unroll
    for (int n = 0; n < SQUARINGS; ++n) p = matmulLane(p, p, row, col);

    if (live) {
        Real* t = tab + ((size_t)k * NODES + node) * NODE_TAB;
        t[((col * 2 + (row >> 1)) * CATS + cat) * 2 + (row & 1)] = p;
        if (col == 0) t[((4 * 2 + (row >> 1)) * CATS + cat) * 2 + (row & 1)] = (Real)1;
    }
}

template <typename Real, int CATS>
constexpr int pruneSmem()
{
    return (int)(NODES * NODE_TAB * sizeof(Real) + MAX_DEPTH * STATES * BLOCK * sizeof(Real) + 2 * TAXA * TILE);
}

template <typename Real, int CATS>
__global__ void __launch_bounds__(BLOCK, 2)
pruneKernel(const __grid_constant__ Batch<Real, CATS> batch, const Real* __restrict__ tab,
            const uint8_t* __restrict__ tips, const int* __restrict__ weight, int nOps,
            Real* __restrict__ siteLnl, Real* __restrict__ lnl)
{
    using V2 = typename Vec2<Real>::type;
    extern __shared__ __align__(16) unsigned char smem[];
    V2* sTab = reinterpret_cast<V2*>(smem);
    Real* sStack = reinterpret_cast<Real*>(sTab + NODES * NODE_TAB / 2);
    uint8_t* sTips = reinterpret_cast<uint8_t*>(sStack + MAX_DEPTH * STATES * BLOCK);   // 2 buffers

    const int tid = threadIdx.x;
    const int cat = tid & 3, ls = tid >> 2;
    const int model = blockIdx.y;

    const V2* src = reinterpret_cast<const V2*>(tab + (size_t)model * NODES * NODE_TAB);
    for (int i = tid; i < NODES * NODE_TAB / 2; i += BLOCK) sTab[i] = src[i];

    // tip staging: 8 sites of one taxon per thread
    const int tTaxon = tid / (TILE / 8), tGroup = tid % (TILE / 8);
    auto fetchTips = [&](int tile) {
        int s0 = tile * TILE + tGroup * 8;
        uint2 v = make_uint2(0u, 0u);
        if (tile < TILES && s0 < SITES)
            v = __ldg(reinterpret_cast<const uint2*>(tips + (size_t)tTaxon * SITES + s0));
        return v;
    };
    uint2 next = fetchTips(blockIdx.x);

    const V2* myTab = sTab + cat;
    Real* myStack = sStack + tid;
    Real acc = 0;
    int buf = 0;

    for (int tile = blockIdx.x; tile < TILES; tile += GRID_X, buf ^= 1) {
        uint8_t* tb = sTips + buf * TAXA * TILE;
        *reinterpret_cast<uint2*>(tb + tTaxon * TILE + tGroup * 8) = next;
        __syncthreads();        // also: everyone has left the other buffer's previous use
        next = fetchTips(tile + GRID_X);

        Real c0 = 0, c1 = 0, c2 = 0, c3 = 0;
        int depth = 0;
        for (int o = 0; o < nOps; ++o) {
            const int kind = cOps[o].kind, a = cOps[o].a, b = cOps[o].b;
            if (kind == CHERRY) {
                const V2* ta = myTab + (a * COLS + tb[a * TILE + ls]) * 2 * CATS;
                const V2* tc = myTab + (b * COLS + tb[b * TILE + ls]) * 2 * CATS;
                V2 u0 = ta[0], u1 = ta[CATS], w0 = tc[0], w1 = tc[CATS];
                c0 = u0.x * w0.x;
                c1 = u0.y * w0.y;
                c2 = u1.x * w1.x;
                c3 = u1.y * w1.y;
                continue;
            }
            // move the running partial up branch a
            const V2* t = myTab + a * COLS * 2 * CATS;
            V2 p0 = t[0], p1 = t[CATS];
            Real r0 = p0.x * c0, r1 = p0.y * c0, r2 = p1.x * c0, r3 = p1.y * c0;
            p0 = t[2 * CATS], p1 = t[3 * CATS];
            r0 += p0.x * c1, r1 += p0.y * c1, r2 += p1.x * c1, r3 += p1.y * c1;
            p0 = t[4 * CATS], p1 = t[5 * CATS];
            r0 += p0.x * c2, r1 += p0.y * c2, r2 += p1.x * c2, r3 += p1.y * c2;
            p0 = t[6 * CATS], p1 = t[7 * CATS];
            r0 += p0.x * c3, r1 += p0.y * c3, r2 += p1.x * c3, r3 += p1.y * c3;

            if (kind == PUSH) {
                Real* st = myStack + depth * STATES * BLOCK;
                st[0] = r0;
                st[BLOCK] = r1;
                st[2 * BLOCK] = r2;
                st[3 * BLOCK] = r3;
                ++depth;
            } else if (kind == WITH_TIP) {
                const V2* tc = myTab + (b * COLS + tb[b * TILE + ls]) * 2 * CATS;
                V2 w0 = tc[0], w1 = tc[CATS];
                c0 = r0 * w0.x;
                c1 = r1 * w0.y;
                c2 = r2 * w1.x;
                c3 = r3 * w1.y;
            } else {
                --depth;
                const Real* st = myStack + depth * STATES * BLOCK;
                c0 = r0 * st[0];
                c1 = r1 * st[BLOCK];
                c2 = r2 * st[2 * BLOCK];
                c3 = r3 * st[3 * BLOCK];
            }
        }

        const Real* f = batch.m[model].freq;
        Real lik = f[0] * c0 + f[1] * c1 + f[2] * c2 + f[3] * c3;
        lik += __shfl_xor_sync(0xffffffffu, lik, 1);
        lik += __shfl_xor_sync(0xffffffffu, lik, 2);
        const int site = tile * TILE + ls;
        if (cat == 0 && site < SITES) {
            Real ll = log(lik / CATS);
            siteLnl[(size_t)model * SITES + site] = ll;
            acc += ll * weight[site];
        }
    }

#pragma unroll
    for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, o);
    __syncthreads();            // the stack is free now
    if ((tid & 31) == 0) sStack[tid >> 5] = acc;
    __syncthreads();
    if (tid == 0) {
        Real s = 0;
        for (int w = 0; w < BLOCK / 32; ++w) s += sStack[w];
        atomicAdd(lnl + model, s);
    }
}

// ---- engine ----------------------------------------------------------------

template <typename Real, int CATS>
class Likelihood {
    Tree tree_;
    cudaStream_t stream_;
    uint8_t* tips_;
    int* weight_;
    Real* length_;
    Real* tab_;
    Real* siteLnl_;
    Real* lnl_;
    int nOps_;

    static constexpr int SMEM = pruneSmem<Real, CATS>();

    // stack entries needed to evaluate the subtree
    int need(int n) const
    {
        int l = tree_.left[n], r = tree_.right[n];
        if (l < 0) return 0;
        bool li = tree_.left[l] >= 0, ri = tree_.left[r] >= 0;
        if (!li && !ri) return 0;
        if (li && !ri) return need(l);
        if (!li && ri) return need(r);
        int a = need(l), b = need(r);
        return std::max(std::max(a, b), std::min(a, b) + 1);
    }

    void schedule(int n, std::vector<Op>& ops) const
    {
        int l = tree_.left[n], r = tree_.right[n];
        bool li = tree_.left[l] >= 0, ri = tree_.left[r] >= 0;
        if (!li && !ri) {
            ops.push_back(Op{CHERRY, l, r, 0});
        } else if (li != ri) {
            int inner = li ? l : r, tip = li ? r : l;
            schedule(inner, ops);
            ops.push_back(Op{WITH_TIP, inner, tip, 0});
        } else {
            int first = need(l) >= need(r) ? l : r;
            int second = first == l ? r : l;
            schedule(first, ops);
            ops.push_back(Op{PUSH, first, 0, 0});
            schedule(second, ops);
            ops.push_back(Op{WITH_TOP, second, 0, 0});
        }
    }

public:
    Likelihood(const Tree& tree, const std::vector<uint8_t>& tips, const std::vector<int>& weight)
        : tree_(tree)
    {
        CK(cudaStreamCreate(&stream_));
        CK(cudaMalloc(&tips_, tips.size()));
        CK(cudaMalloc(&weight_, weight.size() * sizeof(int)));
        CK(cudaMalloc(&length_, NODES * sizeof(Real)));
        CK(cudaMalloc(&tab_, (size_t)NMODELS * NODES * NODE_TAB * sizeof(Real)));
        CK(cudaMalloc(&siteLnl_, (size_t)NMODELS * SITES * sizeof(Real)));
        CK(cudaMalloc(&lnl_, NMODELS * sizeof(Real)));

        std::vector<Op> ops;
        schedule(NODES - 1, ops);
        nOps_ = (int)ops.size();
        if (nOps_ > MAX_OPS || need(NODES - 1) > MAX_DEPTH) {
            std::fprintf(stderr, "tree does not fit the schedule\n");
            std::exit(2);
        }
        std::vector<Real> len(tree.length, tree.length + NODES);
        CK(cudaMemcpyToSymbolAsync(cOps, ops.data(), ops.size() * sizeof(Op), 0, cudaMemcpyHostToDevice, stream_));
        CK(cudaMemcpyAsync(tips_, tips.data(), tips.size(), cudaMemcpyHostToDevice, stream_));
        CK(cudaMemcpyAsync(weight_, weight.data(), weight.size() * sizeof(int), cudaMemcpyHostToDevice, stream_));
        CK(cudaMemcpyAsync(length_, len.data(), NODES * sizeof(Real), cudaMemcpyHostToDevice, stream_));
        CK(cudaFuncSetAttribute(pruneKernel<Real, CATS>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
        CK(cudaStreamSynchronize(stream_));
    }

    ~Likelihood()
    {
        cudaFree(tips_);
        cudaFree(weight_);
        cudaFree(length_);
        cudaFree(tab_);
        cudaFree(siteLnl_);
        cudaFree(lnl_);
        cudaStreamDestroy(stream_);
    }

    void evaluate(const Model<Real, CATS>* models, Real* lnl, std::vector<Real>& site)
    {
        Batch<Real, CATS> batch;
        for (int k = 0; k < NMODELS; ++k) batch.m[k] = models[k];
        CK(cudaMemsetAsync(lnl_, 0, NMODELS * sizeof(Real), stream_));
        const int threads = NMODELS * NODES * CATS * 16;
        transitionKernel<Real, CATS><<<(threads + 127) / 128, 128, 0, stream_>>>(batch, length_, tab_);
        pruneKernel<Real, CATS><<<dim3(GRID_X, NMODELS), BLOCK, SMEM, stream_>>>(batch, tab_, tips_, weight_,
            nOps_, siteLnl_, lnl_);
        CK(cudaGetLastError());
        CK(cudaMemcpyAsync(lnl, lnl_, NMODELS * sizeof(Real), cudaMemcpyDeviceToHost, stream_));
        // per-site values of the last model
        CK(cudaMemcpyAsync(site.data(), siteLnl_ + (size_t)(NMODELS - 1) * SITES, SITES * sizeof(Real),
                           cudaMemcpyDeviceToHost, stream_));
        CK(cudaStreamSynchronize(stream_));
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
