//===- VectorPieces.h - 16 bytes of an array at once ------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_VECTORPIECES_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_VECTORPIECES_H

#include "optiml/Analysis/KernelModel.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// "float4" and its kin: 16 bytes of `element`; empty when CUDA has none.
std::string vectorName(const Type &element);
Type vectorType(const Type &element);
/// ((type *)&element)[0]
ExprRef reinterpreted(const ExprRef &element, Type type, bool isConst);

/// Which parameters must be multiples of a width so that polynomials are.
class Multiples {
public:
  /// `known`: atoms that are multiples of something; it must live as long.
  Multiples(const KernelModel &model, const std::map<std::string, int64_t> &known, int64_t width)
      : model(model), known(known), width(width) {}

  /// False: a term of `p` cannot be made a multiple.
  bool require(const Poly &p);

  std::set<std::string> parameters;
  int64_t multiple() const { return width; }

private:
  const KernelModel &model;
  const std::map<std::string, int64_t> &known;
  int64_t width;
};

/// That `guard` holds for all values of `variable` of a piece, or for none: its parts that mention the variable are
/// bounds at multiples of the width.
llvm::Error requireWholePieces(const KernelModel &model, const ExprRef &guard, const std::string &variable,
                               Multiples &multiples);

} // namespace optiml

#endif
