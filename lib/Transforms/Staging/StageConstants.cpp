//===- StageConstants.cpp - constant arrays in shared memory --------------===//
//
// stage-constants[kernel]: arrays of constants whose elements differ between threads are copied into shared memory at
// the kernel's start. Constant memory answers a warp with one element at a time, shared memory with one of each bank.
// It pays where a block reads many elements: after `coarsen` or `grid-stride`.
//
// Example:
//   __constant__ float table[16][5];          __shared__ float table_of_block[16][5];
//   …                                         for (int k = threadIdx.x; k < 80; k += 128)
//   out[i] = table[m][code[i]];                 (&table_of_block[0][0])[k] = (&table[0][0])[k];
//                                             __syncthreads();
//                                             …
//                                             out[i] = table_of_block[m][code[i]];
//
// Legal: nothing changes constant memory, or an array of constants, while a kernel runs.
//
// Refuses: a block shape that is not fixed; arrays whose elements all threads read alike; arrays of a size that is not
// written in their type, or too large for shared memory; uses in text that is kept as it is.
//
//===----------------------------------------------------------------------===//
#include "SharedTile.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// Bytes of the largest array: a block copies all of it.
constexpr int64_t mostBytes = 16 << 10;

/// An array of the file that is staged.
struct Constants {
  ExprRef array;
  std::vector<int64_t> extents;
  Type element;
  std::string staged; ///< the name in shared memory
  int64_t count() const {
    int64_t all = 1;
    for (int64_t extent : extents)
      all *= extent;
    return all;
  }
};

/// Of "float[16][5]"; empty: the text does not say.
std::vector<int64_t> extentsOf(llvm::StringRef type) {
  std::vector<int64_t> extents;
  type = type.drop_until([](char c) { return c == '['; });
  while (type.consume_front("[")) {
    int64_t extent = 0;
    if (type.consumeInteger(10, extent) || extent < 1 || !type.consume_front("]"))
      return {};
    extents.push_back(extent);
  }
  return type.empty() ? extents : std::vector<int64_t>();
}

class StageConstants : public Transform {
public:
  llvm::StringRef name() const override { return "stage-constants"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override {
    if (!state.isPinned())
      return notApplicable("{0}", shapeIsOpen);
    KernelState result = state;
    auto kernel = state.tree->clone();
    std::vector<Constants> arrays = divergentArrays(state, *kernel);
    if (arrays.empty())
      return notApplicable("no array of constants is read at places that differ between threads");
    int64_t bytes = sharedBytes(*kernel);
    for (const Constants &c : arrays)
      bytes += c.count() * int64_t(c.element.bytes);
    if (bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("the arrays are too large for shared memory");
    std::vector<StmtRef> before, copies;
    std::set<std::string> taken = allNames(*kernel);
    for (Constants &c : arrays) {
      c.staged = freshName(taken, c.array->text + "_of_block");
      std::vector<ExprRef> dims;
      for (int64_t extent : c.extents)
        dims.push_back(intLit(extent));
      before.push_back(sharedArray(c.staged, c.element, dims));
      copies.push_back(copied(state, c, freshName(taken, "k")));
    }
    rewriteExprs(*kernel->body, [&](const ExprRef &e) -> ExprRef {
      auto staged = llvm::find_if(arrays, [&](const Constants &c) { return isVar(e, c.array->text); });
      return staged == arrays.end() ? nullptr : var(staged->staged, e->type.unqualified());
    });
    before.insert(before.end(), copies.begin(), copies.end());
    before.push_back(barrierStmt());
    kernel->body->body.insert(kernel->body->body.begin(), before.begin(), before.end());
    result.tree = kernel;
    return result;
  }

private:
  static std::vector<Constants> divergentArrays(const KernelState &state, Kernel &kernel) {
    const KernelModel model(kernel, state.pinnedBlock());
    std::vector<Constants> arrays;
    for (const Access &access : model.accesses()) {
      const ExprRef &root = access.root;
      if (!isConstantOfFile(model, access) || root->kind != ExprKind::Var || access.node->kind != ExprKind::Subscript ||
          llvm::any_of(arrays, [&](const Constants &c) { return c.array->text == root->text; }))
        continue;
      bool differs = false;
      for (const ExprRef *e = &access.node; (*e)->kind == ExprKind::Subscript; e = &(*e)->args[0])
        differs |= (model.varies((*e)->args[1]) & AnyThread) != 0;
      Constants found{root, extentsOf(root->type.text), access.node->type.unqualified(), ""};
      const bool isNumber = found.element.isInt() || found.element.isFloat();
      if (differs && isNumber && !found.extents.empty() && found.element.bytes > 0 &&
          found.count() <= mostBytes / int64_t(found.element.bytes) && !opaqueMentions(*kernel.body, {root->text}))
        arrays.push_back(std::move(found));
    }
    return arrays;
  }

  /// The first element's address with an index, which goes through all dimensions.
  static ExprRef flat(ExprRef array, const Constants &c, const ExprRef &index) {
    if (c.extents.size() == 1)
      return subscript(std::move(array), index, c.element);
    for (size_t i = 0; i < c.extents.size(); ++i)
      array = subscript(array, intLit(0), i + 1 == c.extents.size() ? c.element : array->type);
    return subscript(addressOf(array), index, c.element);
  }

  /// The array, by all threads of the block.
  static StmtRef copied(const KernelState &state, const Constants &c, const std::string &counter) {
    const ExprRef k = var(counter, Type::makeInt());
    StmtRef copy = exprStmt(assign("=", flat(var(c.staged, c.array->type.unqualified()), c, k), flat(c.array, c, k)));
    return sharedLoop(counter, c.count(), state.pinnedBlock(), copy);
  }
};
} // namespace

DEFINE_TRANSFORM(StageConstants)
