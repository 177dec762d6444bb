//===- SingleFloats.h - expressions of type float ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_SINGLEFLOATS_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_SINGLEFLOATS_H

#include "optiml/Analysis/Tree.h"
#include <cstdlib>

namespace optiml {

inline bool isSingle(const Type &type) { return type.isFloat() && type.bytes == 4; }

/// The number 1, as an integer or with a point.
inline bool isOne(const ExprRef &e) {
  return e->kind == ExprKind::FloatLit ? std::strtod(e->text.c_str(), nullptr) == 1 : constantValue(e) == 1;
}

} // namespace optiml

#endif
