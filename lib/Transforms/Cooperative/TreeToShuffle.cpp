//===- TreeToShuffle.cpp - folds of shared memory by shuffles -------------===//
//
// tree-to-shuffle[kernel]: a block often folds or scans an array in shared memory step by step, with a barrier after
// each step. Its threads exchange their values by shuffles instead, and meet once.
//
// Example:
//   part[threadIdx.x] = s;                    part[threadIdx.x] = s;
//   __syncthreads();                          __syncthreads();
//   for (int d = blockDim.x / 2; d; d /= 2) { float part_of_thread = part[threadIdx.x];
//     if (threadIdx.x < d)                    __shared__ float part_of_warps[8];
//       part[threadIdx.x] +=                  for (int offset = 16; offset > 0; offset /= 2) {
//           part[threadIdx.x + d];              part_of_thread += __shfl_xor_sync(0xffffffff, part_of_thread, offset);
//     __syncthreads();                        }
//   }                                         … // a value for each warp, one barrier
//   if (threadIdx.x == 0)                     if (threadIdx.x == 0) {
//     sums[blockIdx.x] = part[0];               part[0] = part_of_thread;
//                                             }
//                                             __syncthreads();
//                                             if (threadIdx.x == 0) …
//                                             // when block.x == 256
//
// Legal: right before the steps every thread has stored its own element, or has its value in a register. Apart from the
// steps and these stores, only element 0 is read; of a scan, only the elements that hold its results. All threads of a
// block reach the steps together. Two conditions name the number of threads (`block.x == 256`,
// `block.y * block.z == 1`) and the room for the warps' values beside the launch's shared memory. Floating-point sums
// change their order.
//
// Refuses: blocks that are not whole warps along x; steps without barriers, as between threads of one warp; elements
// that are read after the fold; arrays that are accessed in other ways; paths around the steps that only some threads
// take. Under `--optiml-fp=strict` it refuses floating point.
//
//===----------------------------------------------------------------------===//
#include "SharedScan.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
class TreeToShuffle : public Transform {
public:
  llvm::StringRef name() const override { return "tree-to-shuffle"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override;
};

/// What is to stand in the place of statements.
struct Replacement : StatementRange {
  std::vector<StmtRef> made;
};
} // namespace

static llvm::Error checkUses(const std::string &array, Kernel &kernel, const KernelModel &model,
                             const std::set<const Stmt *> &known) {
  if (!isOpenlyUsed(kernel, model, array))
    return notApplicable("'{0}' is used in a way that hides what is accessed", array);
  for (const Access &access : model.accesses()) {
    if (access.array != array || known.count(access.stmt))
      continue;
    bool first = access.node->kind == ExprKind::Subscript && constantValue(access.node->args[1]) == 0;
    if (access.write || !first)
      return notApplicable("another element of '{0}' than the first is used after it was folded (line {1})", array,
                           access.stmt->line);
  }
  return llvm::Error::success();
}

/// Every thread puts a value into its own element before, and nothing but the first element is looked at after.
/// `known`: statements of folds and scans, and of stores before scans.
static llvm::Error checkTrees(const std::vector<TreeRegion> &regions, Kernel &kernel, const KernelModel &model,
                              int64_t threads, std::set<const Stmt *> known) {
  std::set<std::string> arrays;
  for (const TreeRegion &region : regions) {
    for (const SharedTree &tree : region.trees) {
      arrays.insert(tree.array);
      if (findOwnStores(model, ThreadValues(model, threads), threads, *region.list, region.first, tree.array, known) !=
          0)
        return notApplicable("not every thread has just stored its own element of '{0}' (line {1})", tree.array,
                             region.list->body[region.first]->line);
    }
  }
  for (const std::string &array : arrays)
    if (llvm::Error e = checkUses(array, kernel, model, known))
      return e;
  return llvm::Error::success();
}

static llvm::Error checkValues(const std::string &array, const Type &type, const Fold &fold, bool strictFloat) {
  bool exchanged = (type.cls == Type::Class::Int || type.isFloat()) && (type.bytes == 4 || type.bytes == 8);
  if (!exchanged)
    return notApplicable("'{0}' has elements of a type that threads cannot exchange", array);
  if (fold.kind == Fold::Kind::Compare && type.isFloat()) // "if (a[i] > a[j]) …" keeps one that is in the way
    return notApplicable("which elements of '{0}' a NaN hides may not change; fmaxf and fminf pass it over", array);
  if (strictFloat && type.isFloat())
    return notApplicable("the order in which '{0}' is folded may not change (--optiml-fp=strict)", array);
  return llvm::Error::success();
}

static std::vector<StmtRef> byShuffles(const TreeRegion &region, const ThreadGroup &group,
                                       std::set<std::string> &taken) {
  ExprRef thread = builtin("threadIdx.x");
  std::vector<StmtRef> made;
  for (const SharedTree &tree : region.trees) {
    Reduction reduction{freshName(taken, tree.array + "_of_thread"), tree.type, tree.fold};
    ExprRef array = var(tree.array, tree.type), value = var(reduction.variable, tree.type);
    made.push_back(declStmt(reduction.variable, tree.type, subscript(array, thread, tree.type)));
    llvm::append_range(made, Combiner(group, taken).combine(reduction));
    made.push_back(ifStmt(binary("==", thread, intLit(0)),
                          block({exprStmt(assign("=", subscript(array, intLit(0), tree.type), value))})));
  }
  return made;
}

llvm::Expected<KernelState> TreeToShuffle::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  auto kernel = state.tree->clone();
  std::array<int64_t, 3> pinned = state.pinnedBlock(), shape = pinned[0] ? pinned : state.hints.block;
  if (!shape[0])
    return notApplicable("the number of threads of a block is not known");
  if (shape[1] != 1 || shape[2] != 1 || shape[0] % 32 || shape[0] > 1024)
    return notApplicable("the block is not a number of warps along x");
  KernelModel model(*kernel, {shape[0], 1, 1});
  std::vector<SharedScan> scans = findScans(*kernel, model, shape[0]);
  std::vector<TreeRegion> regions = findTrees(*kernel, model, shape[0]);
  llvm::erase_if(regions, [&](const TreeRegion &region) {
    return llvm::any_of(scans, [&](const SharedScan &scan) {
      return scan.list == region.list && scan.first < region.end && region.first < scan.end;
    });
  });
  if (regions.empty() && scans.empty())
    return notApplicable("no array in shared memory is folded by a block of {0} threads", shape[0]);
  std::vector<StatementRange> ranges(regions.begin(), regions.end());
  ranges.insert(ranges.end(), scans.begin(), scans.end());
  std::set<const Stmt *> known;
  for (const StatementRange &range : ranges)
    for (size_t i = range.first; i < range.end; ++i)
      walk(*range.list->body[i], [&](Stmt &s) { known.insert(&s); });
  for (const SharedScan &scan : scans)
    known.insert(scan.stores.begin(), scan.stores.end());
  if (llvm::Error e = checkTrees(regions, *kernel, model, shape[0], known))
    return e;
  for (const TreeRegion &region : regions)
    for (const SharedTree &tree : region.trees)
      if (llvm::Error e = checkValues(tree.array, tree.type, tree.fold, state.hints.strictFloat))
        return e;
  for (const SharedScan &scan : scans) {
    if (llvm::Error e = checkUses(scan, *kernel, model, shape[0], known))
      return e;
    if (llvm::Error e = checkValues(scan.source.name, scan.type, scan.fold, state.hints.strictFloat))
      return e;
  }
  if (unsigned line = partingLine(*kernel, model, ranges))
    return notApplicable("not all threads of a block go the same way (line {0})", line);
  KernelState result = state;
  if (!pinned[0]) {
    result.require("block.x == " + std::to_string(shape[0]), "the block is folded by its number of threads");
    result.require("block.y * block.z == 1", "the block is folded by its number of threads");
  }
  std::set<std::string> taken = allNames(*kernel);
  ThreadGroup group;
  group.threads = shape[0];
  std::vector<Replacement> replacements;
  for (const TreeRegion &region : regions)
    replacements.push_back({region, byShuffles(region, group, taken)});
  for (const SharedScan &scan : scans)
    replacements.push_back({scan, scanByShuffles(scan, model, shape[0], taken)});
  llvm::sort(replacements, [](const Replacement &a, const Replacement &b) { return a.first > b.first; });
  for (Replacement &replacement : replacements) { // from the back, so that places stay where they are
    std::vector<StmtRef> &list = replacement.list->body;
    if (replacement.end >= list.size() || list[replacement.end]->kind != StmtKind::Barrier)
      replacement.made.push_back(barrierStmt());
    list.erase(list.begin() + long(replacement.first), list.begin() + long(replacement.end));
    list.insert(list.begin() + long(replacement.first), replacement.made.begin(), replacement.made.end());
  }
  removeUnused(*kernel);
  int64_t bytes = sharedBytes(*kernel);
  if (bytes > int64_t(state.hints.maxSharedBytes))
    return notApplicable("the arrays of a block would be {0} bytes", bytes);
  result.tree = kernel;
  return result;
}

DEFINE_TRANSFORM(TreeToShuffle)
