//===- StageSlices.cpp - each thread's own part of an array in shared memory ===//
//
// stage-slices[kernel:A+B]: every thread works on its own slice of A: a small matrix, the numbers of a cell. Threads of
// a warp that each walk through a slice touch as many lines as there are threads. So the block's threads copy all of
// its slices into shared memory together, neighbours next to each other, and each works on its own there.
//
// Example:
//   if (i < n) {                     __shared__ float a_slices[64][17];
//     float s = 0;                   if (blockIdx.x * 64 + 64 < n) {
//     for (k = 0; k < 16; k++)         for (int j = 0; j < 16; ++j) {
//       s += a[i * 16 + k];              const int e = threadIdx.x + j * 64;
//     out[i] = s;                        a_slices[e / 16][e % 16] = a[blockIdx.x * 1024 + e];
//   }                                  }
//                                      __syncthreads();
//                                      … s += a_slices[threadIdx.x][k]; …
//                                    } else {
//                                      … s += a[i * 16 + k]; …
//                                    }
//
// Elements that every thread writes go back in the same way, and what it writes before it reads is not copied in. Where
// it depends on data which ones are written, each goes to both places at once.
//
// Legal: the block shape is fixed. Threads neither meet nor share memory. In every access to A, the index is a constant
// times threadIdx.x, what a whole block has alike, and what stays within the slice, as bounds of loops prove. A
// does not overlap other arrays of which one is written (proved, or a condition). Each thread that passes the guards
// around all accesses is certain to access its slice's first element. A block copies slices only where all of its
// threads, and the next one, pass these guards: then all that lies between is part of the array. Other blocks run the
// kernel as it was.
//
// Refuses: slices whose size is not constant (`specialize-scalar` may give them one); elements of other sizes than 4
// and 8 bytes; indices that depend on data; atomic operations on A; slices of which no access is certain. With what the
// kernel has already, shared memory is limited to 48 KiB.
//
//===----------------------------------------------------------------------===//
#include "OwnSlices.h"
#include "Scalar/VectorPieces.h"
#include "SharedTile.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class SliceStager {
public:
  SliceStager(KernelState &state, Kernel &kernel)
      : state(state), kernel(kernel), shape(state.pinnedBlock()), model(kernel, shape), taken(allNames(kernel)) {}

  llvm::Error run(llvm::ArrayRef<llvm::StringRef> arrays) {
    if (llvm::Error e = requireApart(kernel, Kept::Order))
      return e;
    if (unsigned line = model.unknownOutsideLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    llvm::Expected<OwnSlices> own = findOwnSlices(model, arrays);
    if (!own)
      return own.takeError();
    all = std::move(own->arrays);
    gate = std::move(own->gate);
    std::map<std::string, bool> staged;
    for (const Slices &slices : all)
      staged[slices.array] = slices.isWritten;
    if (llvm::Error e = requireStagedApart(state, model, nullptr, staged))
      return e;
    int64_t bytes = sharedBytes(kernel);
    for (const Slices &slices : all)
      bytes += threads() * slices.padded() * slices.word.bytes;
    if (bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("{0} bytes of shared memory are too many", bytes);
    return rewrite();
  }

private:
  int64_t threads() const { return shape[0] * shape[1]; }

  static ExprRef sharedWord(const Slices &slices, const ExprRef &thread, const ExprRef &place) {
    return subscript(subscript(var(slices.name, slices.word), thread, slices.word), place, slices.word);
  }
  /// What stands for the element that is accessed.
  ExprRef sharedElement(const Slices &slices, const ExprRef &thread, const Poly &within) const {
    const ExprRef word = sharedWord(slices, thread, polyExpr(model, Poly(slices.words) * (within - Poly(slices.low))));
    return slices.isOfRecords() ? reinterpreted(word, slices.element, /*isConst=*/false) : word;
  }

  /// Copies all slices of the block: into shared memory, or back.
  StmtRef copy(const Slices &slices, bool back, const std::string &tid) {
    const Poly words(slices.words);
    const Type word = slices.isOfRecords() ? slices.word : slices.accesses.front().element->type;
    const ExprRef root =
        slices.isOfRecords() ? castTo(Type::makePointer(word.withConst(!back)), slices.root) : slices.root;
    constexpr int64_t longest = 16;
    return takeTurns(model, taken, tid, slices.copied(), slices.copied() <= longest ? FullUnroll : 8,
                     [&](const std::string &row, const std::string &column) {
                       const ExprRef index =
                           indexInRow(model, words * (slices.base + Poly(slices.low)) + Poly::atom(column),
                                      words * Poly(slices.stride), words * slices.rowStride, row);
                       const ExprRef global = subscript(root, slices.wideIndex ? wideExpr(index) : index, word);
                       const ExprRef shared =
                           sharedWord(slices, var(row, Type::makeInt()), var(column, Type::makeInt()));
                       return exprStmt(back ? assign("=", global, shared) : assign("=", shared, global));
                     });
  }

  llvm::Error rewrite() {
    auto condition =
        holdsForBlock(model, gate, llvm::any_of(all, [](const Slices &slices) { return slices.needsNext; }));
    if (!condition)
      return condition.takeError();
    const StmtRef plain = *condition ? clone(kernel.body) : nullptr;
    if (plain && !renameDeclarations(*plain, taken))
      return notApplicable("verbatim text names a variable of the kernel, which is needed twice");
    const std::string tid = freshName(taken, "tid");
    const ExprRef thread = linearThread(shape);
    std::vector<StmtRef> declarations, staged;
    staged.push_back(declStmt(tid, Type::makeInt().withConst(true), thread));
    std::map<const Expr *, ExprRef> replacement;
    for (Slices &slices : all) {
      slices.name = stagedName(taken, slices.array, "_slices");
      declarations.push_back(sharedArray(slices.name, slices.word, {intLit(threads()), intLit(slices.padded())},
                                         slices.isOfRecords() * 16));
      if (!slices.isSet)
        staged.push_back(copy(slices, /*back=*/false, tid));
      for (const SliceAccess &a : slices.accesses)
        replacement[a.element.get()] = sharedElement(slices, thread, a.within);
    }
    if (!llvm::all_of(all, [](const Slices &slices) { return slices.isSet; }))
      staged.push_back(barrierStmt());
    // What goes to both places: the target there, and here.
    std::vector<std::pair<Stmt *, ExprRef>> both;
    for (const Slices &slices : all)
      for (const SliceAccess &a : slices.accesses)
        if (a.access->write && !slices.isDense)
          both.emplace_back(a.access->stmt, a.access->place);
    replaceNodes(*kernel.body, replacement);
    for (const auto &[stmt, target] : both) {
      auto place = findPlace(*kernel.body, stmt);
      place->block->body.insert(place->block->body.begin() + long(place->index) + 1,
                                exprStmt(assign("=", target, stmt->expr->args[0])));
    }
    llvm::append_range(staged, kernel.body->body);
    if (llvm::any_of(all, [](const Slices &slices) { return slices.isDense; }))
      staged.push_back(barrierStmt());
    for (const Slices &slices : all)
      if (slices.isDense)
        staged.push_back(copy(slices, /*back=*/true, tid));
    if (*condition)
      declarations.push_back(ifStmt(*condition, block(std::move(staged)), plain));
    else
      llvm::append_range(declarations, staged);
    kernel.body = block(std::move(declarations));
    return llvm::Error::success();
  }

  KernelState &state;
  Kernel &kernel;
  const std::array<int64_t, 3> shape;
  const KernelModel model;
  std::set<std::string> taken;
  std::vector<Slices> all;
  std::vector<Poly> gate; ///< each >= 0 where a thread has slices
};

class StageSlices : public Transform {
public:
  llvm::StringRef name() const override { return "stage-slices"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    if (!state.isPinned())
      return {};
    const KernelModel model(*state.tree, state.pinnedBlock());
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses())
      if (access.space == Space::Global) {
        const std::string name = arrayOf(model, access);
        if (model.param(name) && !llvm::is_contained(arrays, name))
          arrays.push_back(name);
      }
    std::vector<ActionTemplate> result;
    std::string joint;
    for (const std::string &array : arrays)
      if (offer(result, state, ":" + array, {{}}))
        joint += (joint.empty() ? "" : "+") + array;
    if (result.size() > 1 && offer(result, state, ":" + joint, {{}})) // all of them together first
      std::rotate(result.begin(), result.end() - 1, result.end());
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    const std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || shape[2] != 1)
      return notApplicable("{0}", shapeIsOpen);
    llvm::SmallVector<llvm::StringRef, 4> arrays;
    site.ltrim(':').split(arrays, '+', -1, /*KeepEmpty=*/false);
    if (arrays.empty())
      return notApplicable("no array is named");
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = SliceStager(result, *kernel).run(arrays))
      return std::move(e);
    return result;
  }
};

} // namespace

DEFINE_TRANSFORM(StageSlices)
