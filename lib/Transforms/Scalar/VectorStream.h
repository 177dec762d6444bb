//===- VectorStream.h - elements that are accessed together -----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_VECTORSTREAM_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_VECTORSTREAM_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// An array whose elements the lanes access side by side.
struct VectorStream {
  std::string array;
  ExprRef index;        ///< in lane 0
  Type element;         ///< of the array
  Type number;          ///< that element, or each member of it
  int64_t count = 1;    ///< numbers of an element
  int64_t together = 1; ///< numbers of a vector
  bool reads = false, writes = false;
  size_t lastWrite = 0;
  std::string lanes;

  /// Takes what `access` tells of the elements. False unless all accesses are to numbers of one type, or store all
  /// numbers of an element.
  bool describe(const Access &access);
  /// The largest vectors that the elements of `width` lanes are made of; false: there are none.
  bool findVectors(int64_t width);
  /// Of the elements of `width` lanes.
  int64_t vectors(int64_t width) const { return width * count / together; }
  /// Number `place` of a vector as it is loaded, and a number as it stands in a vector that is stored.
  ExprRef fromVector(const ExprRef &vector, unsigned place) const;
  ExprRef toVector(const ExprRef &value) const;
  /// Vector `number` of these in memory.
  ExprRef vectorAt(const Param &param, int64_t number, bool store) const;
};

/// "float" of float4, whatever the source calls the type, "ushort" of numbers of 16 bits; empty for types that have no
/// vectors.
std::string vectorBase(const Type &type);
/// float4 and the like: so many numbers.
Type vectorOf(const Type &number, unsigned count);
/// Bytes from the element's begin to what is accessed of it.
int64_t offsetOf(const Access &access);
/// The numbers of "a[i] = {x, y};", or null.
const Expr *storedList(const Access &access);

} // namespace optiml

#endif
