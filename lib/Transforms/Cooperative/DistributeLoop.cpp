//===- DistributeLoop.cpp - the loops of one thread, by many threads ------===//
//
// distribute-loop[kernel]{threads=256}: what one thread did becomes the work of a group of threads. The group is a
// block, or a warp with `threads=32,rows=8` (several in a block), or 4, 8 or 16 lanes of a warp with
// `threads=8,rows=32`. The group shares out the iterations of the thread's loops. Shuffles combine the scalars that the
// loops fold values into, and shared memory does so across the warps of a block. It pays where a thread works on a row:
// neighbouring threads then read neighbouring elements, and a few thousand rows fill the GPU. Of a loop that follows a
// sum (a scan of a row), a thread takes `items` neighbouring iterations at a time, 1 if nothing is said. Of loops in
// one another that only fold values, the one along which neighbouring elements lie is shared out by the lanes of a
// warp, and the one around it by the warps of a block. `filter=1`: the values of a loop that keeps the k best are
// looked at twice, first for a bound, so that few are then inserted. `each=4`: a group of at most a warp has four
// neighbouring rows, which share what they read alike.
//
// Example:
//   int row = blockIdx.x * blockDim.x + threadIdx.x;    int row = blockIdx.x * 8 + threadIdx.y;
//   if (row < rows) {                                   if (row < rows) {
//     float s = 0;                                        float s = 0;
//     for (int j = 0; j < n; ++j)                         for (int j = threadIdx.x; j < n; j += 32) {
//       s += a[row * n + j] * x[j];                         s += a[row * n + j] * x[j];
//     y[row] = s;                                         }
//   }                                                     for (int offset = 16; offset > 0; offset /= 2) {
//                                                           s += __shfl_xor_sync(0xffffffff, s, offset);
//                                                         }
//                                                         __syncwarp();
//                                                         if (threadIdx.x == 0) {
//                                                           y[row] = s;
//                                                         }
//                                                       }
//   // plan: gemv_optiml<<<(ceildiv(grid.x * block.x, 8), 1, 1), (32, 8, 1), shared>>>
//
// Legal: the kernel uses x through its global index, does not synchronize, and reads nothing volatile. All threads of a
// group then compute the same outside the shared loops. A counted loop is shared out when
//  - it folds values into scalars only as sums, products, extremes (`fmaxf`, `max`, `if (x > m) m = x`) or bits, and
//    uses each scalar for nothing else; or into elements of private arrays, which groups within a warp combine;
//  - its iterations write different elements, of arrays that overlap nothing else the loop accesses (a condition), or
//    of private arrays: those of which each loop's iteration i accesses element i alone, one for each thread;
//  - nothing leaves it early.
//
// The first thread writes what is written elsewhere, and barriers stand where accesses on both sides may meet.
// Floating-point sums change their order, which `--optiml-fp=strict` forbids.
//
// With `each`, the number of rows is a multiple of it (a condition), where the kernel compares rows with it.
//
// Refuses: loops with fewer iterations than the group, or a warp of it, has lanes; recurrences other than running sums.
// With `each`, it refuses whatever needs shared memory.
//
//===----------------------------------------------------------------------===//
#include "CarriedValues.h"
#include "GroupSharing.h"
#include "LocalLists.h"
#include "Matches.h"
#include "OwnState.h"
#include "SeveralRows.h"
#include "SortedFold.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/FirstIteration.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Canonicalize/LoopBounds.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

using namespace optiml;

namespace {

class DistributeLoop : public Transform {
public:
  llvm::StringRef name() const override { return "distribute-loop"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    static const std::vector<Params> common = {{{"threads", "256"}},
                                               {{"threads", "32"}, {"rows", "8"}},
                                               {{"threads", "128"}},
                                               {{"threads", "512"}},
                                               {{"threads", "1024"}},
                                               {{"threads", "32"}, {"rows", "4"}},
                                               {{"threads", "64"}},
                                               {{"threads", "8"}, {"rows", "32"}},
                                               {{"threads", "16"}, {"rows", "16"}},
                                               {{"threads", "4"}, {"rows", "64"}},
                                               {{"threads", "256"}, {"items", "4"}},
                                               {{"threads", "32"}, {"rows", "8"}, {"items", "4"}},
                                               {{"threads", "128"}, {"items", "8"}}};
    if (!pays(state))
      return {};
    std::vector<Params> offers(std::begin(common), std::end(common));
    KernelState trial = state;
    if (auto kernel = remappable(trial, 1, 256, /*batches=*/true); !kernel)
      llvm::consumeError(kernel.takeError());
    else if (rowsShareReads(**kernel))
      for (const char *each : {"4", "2", "8"})
        offers.push_back({{"threads", "32"}, {"rows", "8"}, {"each", each}});
    int64_t entries = entriesOf(state);
    if (!entries)
      return hasPrivateArray(*state.tree) ? siteWithinWarps(state, offers) : kernelSite(*this, state, offers);
    std::vector<Params> withEntries = offers;
    withEntries.push_back({{"threads", "256"}, {"filter", "1"}});
    withEntries.push_back({{"threads", "32"}, {"rows", "8"}, {"filter", "1"}});
    withEntries.push_back({{"threads", "128"}, {"filter", "1"}});
    for (Params &params : withEntries)
      params["entries"] = std::to_string(entries);
    std::vector<ActionTemplate> sites = kernelSite(*this, state, withEntries);
    return sites.empty() ? kernelSite(*this, state, offers) : sites;
  }

  static bool hasPrivateArray(const Kernel &kernel) {
    return anyStmt(*kernel.body, [](const Stmt &s) { return !s.dims.empty() && !s.isShared; });
  }

  /// What a private array asks for: groups within a warp, or of as many threads as it has elements.
  std::vector<ActionTemplate> siteWithinWarps(const KernelState &state, std::vector<Params> offers) const {
    for (size_t first = 0; first < offers.size(); ++first) {
      if (first > 0 && paramInt(offers[first], "threads", 0) > 32)
        continue;
      std::rotate(offers.begin(), offers.begin() + long(first), offers.begin() + long(first) + 1);
      if (std::vector<ActionTemplate> sites = kernelSite(*this, state, offers); !sites.empty())
        return sites;
    }
    return {};
  }

  /// Threads of two axes are mostly neighbours along x already, and many: only where loops run along rows instead, or
  /// the launch has few threads, are they worth a group each.
  static bool pays(const KernelState &state) {
    KernelState trial = state;
    auto kernel = remappable(trial, 1, 32, /*batches=*/true);
    if (!kernel) {
      llvm::consumeError(kernel.takeError());
      return false;
    }
    if (!usesGlobalIndex(**kernel, 1) && !usesGlobalIndex(**kernel, 2))
      return true;
    if (fewThreads(state.hints))
      return true;
    KernelModel model(**kernel, {0, 0, 0});
    int balance = 0;
    for (const auto &[path, loop] : countedLoops(**kernel))
      for (const Access &access : model.accesses())
        if (insideOf(access, loop))
          balance += int(accessesNeighbours(access, loop->init->text)) - int(accessesNeighbours(access, "globalIdx.x"));
    return balance > 0;
  }

  /// How many entries of sorted arrays are enough for the launch that is known; 0: that is not known, or there are
  /// none.
  static int64_t entriesOf(const KernelState &state) {
    KernelModel model(*state.tree, state.pinnedBlock());
    int64_t most = 0;
    for (Poly count : sortedCounts(*state.tree, model)) {
      for (const auto &[name, value] : state.hints.scalars)
        count = count.substitute(name, Poly(value));
      auto value = count.constant();
      if (!value || *value < 1 || *value > mostSorted)
        return 0;
      most = std::max(most, sortedSize(*value));
    }
    return most;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    int64_t threads = paramInt(params, "threads", 256), rows = paramInt(params, "rows", 1);
    bool fills =
        threads >= 32 ? threads % 32 == 0 : threads >= 2 && !(threads & (threads - 1)) && threads * rows % 32 == 0;
    if (!fills || rows < 1 || threads * rows > state.hints.maxThreads)
      return notApplicable("a block of {0} groups of {1} threads cannot be launched", rows, threads);
    int64_t entries = paramInt(params, "entries", 0);
    if (entries && (entries < 2 || entries > mostSorted || (entries & (entries - 1))))
      return notApplicable("the number of entries must be a power of two from 2 to {0}", mostSorted);
    const int64_t items = paramInt(params, "items", 1), filters = paramInt(params, "filter", 0),
                  each = paramInt(params, "each", 1);
    if (items < 1 || items > 16)
      return notApplicable("a thread takes 1 to 16 elements of a running sum");
    if ((rows > 1 || each > 1) && threads > 32)
      return notApplicable("only groups within warps can share a block, or have several rows");
    if (each < 1 || each > 16)
      return notApplicable("a group takes 1 to 16 rows");
    if (llvm::Error e = requireSameMemory(*state.tree))
      return std::move(e);
    KernelState result = state;
    auto made = remappable(result, 1, threads * rows, /*batches=*/true);
    if (!made)
      return made.takeError();
    std::shared_ptr<Kernel> kernel = *made;
    countStridedLoops(result, *kernel);
    beginAtFirstElement(*kernel);
    boundBreakingLoops(*kernel);
    splitLocalArrays(*kernel);
    keepOneOfCopies(*kernel);
    carryElements(*kernel);
    countOwn(*kernel);
    recomputePrevious(*kernel);
    markMatches(*kernel);
    RunsAgain again = runAgainWhereUnordered(*kernel);
    std::set<const Stmt *> forOneThread = moveListsIntoArrays(result, *kernel, entries);
    KernelModel model(*kernel, {0, 0, 0});
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    const std::optional<Poly> end = globalUpperBound(model, 0);
    if (rows * each > 1)
      requireCover(result, model, 0, rows * each);
    if (llvm::Error e =
            shareAmongGroup(result, *kernel, model,
                            {{threads}, filters != 0, entries, items, std::move(forOneThread), std::move(again)}))
      return std::move(e);
    if (llvm::Error e = each > 1 ? giveSeveralRows(result, *kernel, each, end) : llvm::Error::success())
      return std::move(e);

    LaunchStep &step = result.rewrite.plan.steps[0];
    for (unsigned axis : {1, 2}) {
      bool batch = usesGlobalIndex(*kernel, axis);
      step.grid[axis] = batch ? result.overOriginal(threadsAlong(axis)) : IntExpr::literal(1);
      if (batch)
        result.require(IntExpr::of(step.grid[axis].str() + " <= 65535"), "a grid cannot be larger");
      else
        requireOneCopy(result, axis);
    }
    std::string work = threadsAlong(0);
    const int64_t ofBlock = rows * each;
    step.grid[0] = result.overOriginal(ofBlock == 1 ? work : "ceildiv(" + work + ", " + std::to_string(ofBlock) + ")");
    result.require(IntExpr::of(step.grid[0].str() + " <= 2147483647"), "a grid cannot be larger");
    step.block = {IntExpr::literal(threads), IntExpr::literal(rows), IntExpr::literal(1)};
    lowerGlobalIndex(*kernel, [&](unsigned axis) -> ExprRef {
      ExprRef block = axisBuiltin("blockIdx", axis);
      if (axis)
        return block;
      ExprRef first = mul(block, intLit(ofBlock));
      return rows == 1 ? first : add(first, mul(builtin("threadIdx.y"), intLit(each)));
    });
    kernel->maxThreads = unsigned(threads * rows);
    result.tree = kernel;
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(DistributeLoop)
