//===- VectorStream.h - elements that are accessed together -----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_VECTORSTREAM_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_VECTORSTREAM_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Transforms/Transform.h"

namespace optiml {

/// An array whose elements the lanes access side by side. A lane may have several neighbouring elements, as in
/// "rgb[3 * i + 1]": they are like members of one.
struct VectorStream {
  std::string array;
  ExprRef index;               ///< in lane 0
  Type element;                ///< of the array
  Type number;                 ///< that element, or each member of it
  int64_t count = 1;           ///< numbers of a lane
  int64_t together = 1;        ///< numbers of a vector
  std::optional<Poly> firstOf; ///< where a lane has several elements: the subscript of the first
  std::optional<Poly> own;     ///< where others are read, too: the subscript of a lane's own element
  bool reads = false, writes = false;
  size_t lastWrite = 0;
  std::string lanes;

  /// Takes what `access` tells of the elements. False unless all accesses are to numbers of one type, or store all
  /// numbers of an element.
  bool describe(const Access &access);
  /// Which of the lane's numbers is accessed, or the first of them.
  int64_t numberOf(const Access &access) const;
  /// The largest vectors that the elements of `width` lanes are made of; false: there are none.
  bool findVectors(int64_t width);
  /// Half as many lanes would have vectors of the same size.
  bool needsHalfOf(int64_t width) const;
  /// Of the elements of `width` lanes.
  int64_t vectors(int64_t width) const { return width * count / together; }
  /// Number `place` of a vector as it is loaded, and a number as it stands in a vector that is stored.
  ExprRef fromVector(const ExprRef &vector, unsigned place) const;
  /// The vector of these numbers.
  ExprRef toVector(const std::vector<ExprRef> &values) const;
  /// Vector `number` of those in memory that begin with the element `first`.
  ExprRef vectorAt(const ExprRef &first, int64_t number, bool store) const;
  /// Loads the elements of `width` lanes from there into new variables, and gives a list of their numbers.
  ExprRef load(const ExprRef &first, int64_t width, std::set<std::string> &taken, std::vector<StmtRef> &out) const;
};

/// What every lane of a thread does.
struct LaneWork {
  const Kernel &kernel;
  const KernelModel &model;
  const Stmt &body;                       ///< under the bounds
  size_t guardCount;                      ///< conditions around it
  const std::vector<StmtRef> &indexDecls; ///< its integers that grow with the lane, which are moved before the lanes
  int64_t width;                          ///< lanes
};

/// The arrays that are accessed by vectors, with the conditions for it. `multiples`: values that are then multiples of
/// the width, besides. An error: there are none, or something else is in the way.
llvm::Error findStreams(KernelState &state, const LaneWork &work, std::vector<VectorStream> &streams,
                        std::vector<std::string> &multiples);
/// How much `p` grows from lane to lane; nothing when that differs.
std::optional<int64_t> stepAlongX(const KernelModel &model, const Poly &p);

/// "float" of float4, whatever the source calls the type, "ushort" of numbers of 16 bits; empty for types that have no
/// vectors.
std::string vectorBase(const Type &type);
/// float4 and the like: so many numbers.
Type vectorOf(const Type &number, unsigned count);
/// The numbers of "a[i] = {x, y};", or null.
const Expr *storedList(const Access &access);

} // namespace optiml

#endif
