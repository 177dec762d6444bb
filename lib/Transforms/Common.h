//===- Common.h - what several transforms need ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COMMON_H
#define OPTIML_LIB_TRANSFORMS_COMMON_H

#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

namespace optiml {

/// Text of the launch's threads along an axis, for KernelState::require and overOriginal.
inline std::string threadsAlong(unsigned axis) {
  std::string suffix(1, char('x' + axis));
  return "grid." + suffix + " * block." + suffix;
}

/// How a kernel uses one launch axis.
struct AxisUse {
  bool global = false;      ///< through blockIdx*blockDim + threadIdx
  unsigned otherLine = 0;   ///< line of another use of threadIdx/blockIdx/blockDim/gridDim; 0: none
  bool other = false;
};

/// The kernel has shared memory, or something in it may synchronize.
bool threadsWorkTogether(const Kernel &kernel);

/// Replaces every blockIdx.a * blockDim.a + threadIdx.a (in any order, through copies of the indices in locals, with the
/// pinned extent in place of blockDim) by the pseudo index globalIdx.a, and tells how each axis is used then.
std::array<AxisUse, 3> normalizeGlobalIndex(Kernel &kernel, const std::array<int64_t, 3> &block);

/// (a + i)[k] as a[i + k], the sum of 64 bits as that of pointers is; null for any other expression.
ExprRef withoutPointerSum(const ExprRef &e);

/// Puts locals that only hold a place in an array (const float *row = a + i * n;) in where they are used, so that there is
/// no pointer for each copy of a thread.
void inlinePointerLocals(Kernel &kernel);

/// Along an axis that the kernel uses by its block index alone (blocks being one thread thick), or by its thread index
/// alone (in one block), that is the global index: writes it so, and records the condition.
void adoptPlainIndices(KernelState &state, Kernel &kernel);

/// Replaces globalIdx.a by `make(axis)`.
void lowerGlobalIndex(Kernel &kernel, const std::function<ExprRef(unsigned axis)> &make);
/// block * extent + thread computed in `type`, which has 64 bits.
ExprRef widenedIndex(const ExprRef &index, const Type &type);
/// blockIdx.a * extent + threadIdx.a
ExprRef globalIndexExpr(unsigned axis, int64_t extent);
ExprRef axisBuiltin(const char *base, unsigned axis);

/// The uniform upper bound U such that every access to memory (and every other effect) runs under globalIdx.a < U; as a
/// polynomial in kernel parameters. Nothing when there is none.
std::optional<Poly> globalUpperBound(const KernelModel &model, unsigned axis);
/// The same for any index that threads have: "globalIdx.x", "blockIdx.y". `ofWrites`: reads may stand elsewhere.
std::optional<Poly> upperBoundOf(const KernelModel &model, const std::string &index, bool ofWrites = false);

/// Every effect stands under scale * globalIdx.a < end, where `guard` says just that; `end` has a type of its own.
struct ScaledBound {
  int64_t scale = 1;
  ExprRef guard, end;
};
/// A bound on a multiple of the global index: "first = i * 16; if (first < n)". The product may wrap around in the type
/// of its operands, which the caller has to exclude.
std::optional<ScaledBound> scaledUpperBound(const KernelModel &model, unsigned axis);

/// Text of a polynomial for IntExpr: only integer parameters as atoms; nothing otherwise.
std::optional<std::string> planText(const KernelModel &model, const Poly &p);

/// A linear index split by its parametric strides: index = Σ stride·value, every value affine in what varies within a
/// launch. Nothing when a product of two varying values remains.
struct Dimension {
  Poly::Monomial stride; ///< product of parameters; empty: 1
  Poly value;
};
std::optional<std::vector<Dimension>> delinearize(const KernelModel &model, const Poly &index);
/// A parameter (or a member of one): the same for every thread and all the time.
bool isParameter(const KernelModel &model, const std::string &atom);

/// Greatest (least) value of `p` under facts f >= 0, as a polynomial in parameters, by adding non-negative multiples of
/// facts until nothing else is left.
std::optional<Poly> upperBound(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts);
std::optional<Poly> lowerBound(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts);

/// An element of a constant array of the file, which no kernel writes. (A pointer of the file may point anywhere.)
bool isConstantOfFile(const KernelModel &model, const Access &access);

/// Parameters whose own value (or that of a member) the kernel changes, or takes the address of.
std::set<std::string> changedParameters(const Kernel &kernel);
/// NotApplicable when there are any.
llvm::Error requireConstantParameters(const Kernel &kernel);

/// Records in `state` the run-time conditions under which arrays `a` and `b` (pointer parameters) do not overlap, as
/// far as the kernel touches them. Nothing to record when the source promises it by __restrict__. NotApplicable when the
/// touched ranges cannot be bounded.
/// `byType`: where no test can be made, C++'s rule about the types of objects may stand for it; it says nothing of accesses
/// by different kernels.
/// `firstOfA`: only so many elements of `a`, from its beginning on, matter; 0: all that the kernel touches.
llvm::Error requireDisjoint(KernelState &state, const KernelModel &model, const std::string &a, const std::string &b,
                            bool byType = true, int64_t firstOfA = 0);

/// Tree of a polynomial, typed int (or wider when an atom is).
ExprRef polyExpr(const KernelModel &model, const Poly &p);
/// The same computed in 64 bits, for indices that the source computes so.
ExprRef wideExpr(const ExprRef &e);
/// The element at linear index `index` of the array that `access` accesses.
ExprRef elementExpr(const KernelModel &model, const Access &access, const Poly &index);

/// Replaces expressions by identity, wherever they stand under `root`.
void replaceNodes(Stmt &root, const std::map<const Expr *, ExprRef> &with);

/// Of the kernel's static shared memory.
int64_t sharedBytes(const Kernel &kernel);

/// The site of a transform that has one for a whole kernel, with those of `offers` that apply; none when the first does
/// not.
std::vector<ActionTemplate> kernelSite(const Transform &transform, const KernelState &state, const std::vector<Params> &offers);

/// The list that holds statement `target` and its place in it.
struct StmtPlace {
  Stmt *block = nullptr;
  size_t index = 0;
};
std::optional<StmtPlace> findPlace(Stmt &root, const Stmt *target);

/// "kernel", then the loop variables from the outside in: the path of a loop in site names.
std::string loopPath(const std::vector<Stmt *> &path, const std::string &var);
/// The loop with that path; null when there is none.
Stmt *findLoop(Kernel &kernel, llvm::StringRef path, std::vector<Stmt *> *enclosing = nullptr);
/// Every counted loop with its path.
std::vector<std::pair<std::string, Stmt *>> countedLoops(const Kernel &kernel);

/// Whether the access stands in the loop.
inline bool insideOf(const Access &access, const Stmt *loop) {
  return std::find(access.path.begin(), access.path.end(), loop) != access.path.end();
}

} // namespace optiml

#endif
