//===- Bounds.h - ranges of indices -----------------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_BOUNDS_H
#define OPTIML_ANALYSIS_BOUNDS_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// The uniform upper bound U such that every access to memory (and every other effect) runs under globalIdx.a < U; as a
/// polynomial in kernel parameters. Nothing when there is none.
std::optional<Poly> globalUpperBound(const KernelModel &model, unsigned axis);
/// The same for any index that threads have: "globalIdx.x", "blockIdx.y". `ofWrites`: reads may stand elsewhere.
std::optional<Poly> upperBoundOf(const KernelModel &model, const std::string &index, bool ofWrites = false);

/// Every effect stands under scale * globalIdx.a < end; `end` has a type of its own. `guard` says just that; null where
/// the effects have guards that say more.
struct ScaledBound {
  int64_t scale = 1;
  ExprRef guard, end;
};
/// A bound on a multiple of the global index: "first = i * 16; if (first < n)", or "first + 15 < n" and "first + lane <
/// n". The product, and one more than it, may wrap around in the type of its operands, which the caller has to exclude.
std::optional<ScaledBound> scaledUpperBound(const KernelModel &model, unsigned axis);

/// Text of a polynomial for IntExpr: only integer parameters as atoms; nothing otherwise.
std::optional<std::string> planText(const KernelModel &model, const Poly &p);
/// The same for a polynomial over the original kernel, whose gridDim and blockDim are those of the launch.
std::optional<std::string> originalPlanText(const KernelModel &original, Poly p);

/// A linear index split by its parametric strides: index = Σ stride·value, every value affine in what varies within a
/// launch. Nothing when a product of two varying values remains. `launch`: gridDim.a and blockDim.a are parameters,
/// too.
struct Dimension {
  Poly::Monomial stride; ///< product of parameters; empty: 1
  Poly value;
};
std::optional<std::vector<Dimension>> delinearize(const KernelModel &model, const Poly &index, bool launch = false);
/// A parameter (or a member of one): the same for every thread and all the time.
bool isParameter(const KernelModel &model, const std::string &atom);

/// gridDim.a or blockDim.a.
bool isLaunchExtent(llvm::StringRef atom);
/// A quotient of launch constants, as an atom: its text for IntExpr.
bool isQuotient(const std::string &atom);
/// Made of parameters, of how many blocks and threads there are, and of quotients of these.
bool onlyLaunchConstants(const KernelModel &model, const Poly &p);

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

} // namespace optiml

#endif
