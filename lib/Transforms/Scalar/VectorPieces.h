//===- VectorPieces.h - 16 bytes of an array at once ------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_VECTORPIECES_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_VECTORPIECES_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"
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

private:
  const KernelModel &model;
  const std::map<std::string, int64_t> &known;
  int64_t width;
};

/// What `fact` >= 0 says of an index: index < bound (direction -1), index >= -bound (1), or nothing (0: it is `bound`).
struct IndexBound {
  int64_t direction;
  Poly bound;
};
/// None where the index has another factor than 1 or -1.
std::optional<IndexBound> indexBound(const Poly &fact, const std::string &index);

constexpr int64_t pieceWidth = 4; ///< of elements of 4 bytes

/// An access in a loop over a thread's copies, which goes from element to element of an array.
struct PieceLoop {
  Stmt *loop;
  CountedLoop counted;
  const Access *access;
  ExprRef guard; ///< under which it stands; null: none
};

/// for v from 0, unrolled completely, over whole pieces.
std::optional<CountedLoop> asLoopOverPieces(Stmt &s);
/// Of an array that is a parameter, with elements of 4 bytes that have vectors.
bool isPieceElement(const KernelModel &model, const Access &access);
/// That pieces begin at multiples of 16 bytes, and that the guard holds for all elements of a piece, or for none: its
/// parts that mention the loop's variable are bounds at multiples of the width.
llvm::Error requireWholePieces(const KernelModel &model, const PieceLoop &found, Multiples &multiples);
/// Records that the array begins where a piece may, and that the parameters are multiples. `done`: "read" or "written".
void requireAligned(KernelState &state, const std::string &array, const std::string &done, const Multiples &multiples);

} // namespace optiml

#endif
