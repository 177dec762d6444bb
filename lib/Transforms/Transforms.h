//===- Transforms.h - one maker a transform ---------------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_TRANSFORMS_H
#define OPTIML_LIB_TRANSFORMS_TRANSFORMS_H

namespace optiml {
class Transform;
#define TRANSFORM(CLASS) const Transform *make##CLASS();
#include "Transforms.def"
} // namespace optiml

#endif
